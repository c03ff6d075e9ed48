"""Completions of the session's line: commands and their arguments, else what `completion` offers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import chain

from relaylang.backends.registry import BACKENDS
from relaylang.diagnostics.pages import PAGES
from relaylang.ops import OPS
from relaylang.ops.extensions import names as operator_names
from relaylang.passes import PASSES
from relaylang.passes.describe import summary
from relaylang.repl.commands import COMMANDS
from relaylang.repl.completion import Names, Offer, Suggestion, complete, ranked
from relaylang.repl.completion.offers import ADDED
from relaylang.repl.tools import list_end


def suggestions(text: str, names: Names, after: str = "") -> list[Suggestion]:
    """The completions between `text` and `after`, the best first."""
    line = text.lstrip()
    if line.startswith("?") and line[1:2] not in ("%", "@"):
        return ranked(chain(_operators(), _commands()), line[1:].lstrip())
    return _command(line, names, after) if line.startswith(":") else complete(line.removeprefix("?"), names, after)


def _command(text: str, names: Names, after: str) -> list[Suggestion]:
    name, space, argument = text.partition(" ")
    if not space:
        return ranked(_commands(), name)
    known = COMMANDS.get(name)
    kind = known.takes if known is not None else "expression"
    if kind == "file":
        return list(_files(argument.lstrip()))
    if kind in _LISTS and not (kind == "passes" and list_end(argument) < len(argument)):
        return ranked(_LISTS[kind](), re.split(r"[\s,]+", argument)[-1] if kind == "passes" else argument.lstrip())
    return complete(argument, names, after)


def _commands() -> Iterator[Offer]:
    yield from (Offer(name, "command", what.help) for name, what in COMMANDS.items())


def _operators() -> Iterator[Offer]:
    for name in sorted(operator_names()):
        yield Offer(name, "operator", OPS[name].doc or OPS[name].signature() if name in OPS else ADDED)


#: The completions of a command's argument, by the kind that the command names.
_LISTS: dict[str, Callable[[], Iterator[Offer]]] = {
    "operator": _operators,
    "code": lambda: (Offer(code, "value", page.title) for code, page in sorted(PAGES.items())),
    "passes": lambda: (Offer(name, "value", summary(pass_class)) for name, pass_class in PASSES.items()),
    "target": lambda: iter(
        [Offer("interpreter", "value", "the reference"), *(Offer(name, "value", b.doc) for name, b in BACKENDS.items())]
    ),
    "keys": lambda: iter([Offer("emacs", "value", "Ctrl-A, Ctrl-E, Alt-F and the like"), Offer("vi", "value", "Esc for commands")]),
}


def _files(typed: str) -> Iterator[Suggestion]:
    folder, _, start = typed.rpartition("/")
    base = folder + "/" if "/" in typed else ""
    try:
        entries = sorted(os.scandir(os.path.expanduser(base) or "."), key=lambda e: e.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith(".")):
            yield Suggestion(entry.name + ("/" if entry.is_dir() else ""), len(start), kind="file")
