"""Completions at the cursor: operators, their attributes, variables, globals, constructors, commands, files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from relaylang.backends.registry import BACKENDS
from relaylang.diagnostics import RelayError
from relaylang.diagnostics.pages import PAGES
from relaylang.ir import type_text
from relaylang.ir.types import Type
from relaylang.ops import OPS
from relaylang.ops.extensions import find
from relaylang.ops.extensions import names as operator_names
from relaylang.ops.record import Op
from relaylang.passes import PASSES
from relaylang.passes.describe import summary
from relaylang.repl.calls import open_call
from relaylang.repl.commands import COMMANDS
from relaylang.repl.opdoc import default_text, kind_text
from relaylang.repl.show import spelled
from relaylang.syntax.tokeniser import tokenise

#: The word at the end of the line, which may be a command of the session.
_WORD = re.compile(r'[%@]"(?:[^"\\\n]|\\.)*"?$|[%@:]?[\w/.]*$')
_KEYWORDS = (
    "def",
    "else",
    "fn",
    "if",
    "let",
    "match",
    "ref",
    "ref_read",
    "ref_write",
    "type",
    "Tensor",
    "True",
    "False",
)


class Suggestion(NamedTuple):
    """`text` replaces the `length` characters before the cursor; `says` is shown beside it."""

    text: str
    length: int
    says: str = ""


class Names(Protocol):
    """The completer's view of a session."""

    def variables(self) -> dict[str, Type | None]:
        """Variables by name, with their types."""

    def global_names(self) -> dict[str, str]:
        """Functions by name, with their type's text."""

    def constructor_names(self) -> dict[str, str]:
        """Constructors by name, with what they make."""


def suggestions(text: str, names: Names) -> Iterator[Suggestion]:
    """The completions at the end of `text`, the best first."""
    found = _WORD.search(text)
    word = found.group() if found else ""
    before = text[: len(text) - len(word)]
    if text.lstrip().startswith(":"):
        yield from _command(text.lstrip(), word, names)
        return
    yield from _plain(word, before, names)


def in_expression(before: str, names: Names) -> Iterator[Suggestion]:
    """The completions behind a text that is an expression or a program, the best first."""
    found = _WORD.search(before)
    word = found.group() if found else ""
    yield from _plain(word, before[: len(before) - len(word)], names)


def _command(text: str, word: str, names: Names) -> Iterator[Suggestion]:
    name, space, argument = text.partition(" ")
    if not space:
        for command, what in COMMANDS.items():
            if command.startswith(name):
                yield Suggestion(command, len(name), what.help)
        return
    known = COMMANDS.get(name)
    kind = known.takes if known is not None else "expression"
    if kind == "file":
        yield from _files(argument.lstrip())
    elif kind in _LISTS:
        start = re.split(r"[\s,]+", argument)[-1] if kind == "passes" else argument.lstrip()
        found = [s for s in _LISTS[kind]() if s[0].lower().startswith(start.lower())]
        yield from (Suggestion(text, len(start), says) for text, says in found)
        if kind == "passes" and " " in argument.strip():
            yield from _plain(word, argument[: len(argument) - len(word)], names)
    else:
        yield from _plain(word, argument[: len(argument) - len(word)], names)


def _operators() -> list[tuple[str, str]]:
    return [(name, OPS[name].doc or OPS[name].signature() if name in OPS else _ADDED) for name in sorted(operator_names())]


#: The description of an operator that nothing has used yet. A better one would need an import of its package.
_ADDED = "an operator of an installed package"


def _passes() -> list[tuple[str, str]]:
    return [(name, summary(made)) for name, made in PASSES.items()]


def _targets() -> list[tuple[str, str]]:
    return [("interpreter", "the reference"), *((name, backend.doc) for name, backend in BACKENDS.items())]


#: The completions of a command's argument, by the kind that the command names.
_LISTS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "operator": _operators,
    "code": lambda: [(code, page.title) for code, page in sorted(PAGES.items())],
    "passes": _passes,
    "target": _targets,
    "keys": lambda: [("emacs", "Ctrl-A, Ctrl-E, Alt-F and the like"), ("vi", "Esc for commands")],
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
            yield Suggestion(entry.name + ("/" if entry.is_dir() else ""), len(start))


def _operator(name: str) -> Op | None:
    """The called operator. None for a broken package; the call reports the failure."""
    try:
        return find(name)
    except RelayError:
        return None


def _begins(name: str, word: str) -> bool:
    """Whether a word, `%` or `@` included, begins a name, with quotes or without."""
    return name.startswith(word[1:]) or f'"{name}"'.startswith(word[1:])


def _plain(word: str, before: str, names: Names) -> Iterator[Suggestion]:
    size = len(word)
    if word.startswith("%"):
        known = {n: type_text(t) if t is not None else "" for n, t in names.variables().items()}
        written = [t.text[1:] for t in tokenise(before) if t.kind == "local" and t.text[1:2].isalpha()]
        known.update({name: "" for name in written if name not in known})
        yield from (Suggestion(spelled("%", n), size, says) for n, says in sorted(known.items()) if _begins(n, word))
        return
    if word.startswith("@"):
        for name, says in sorted(names.global_names().items()):
            if _begins(name, word):
                yield Suggestion(spelled("@", name), size, says)
        return
    call = open_call(before)
    op = _operator(call.name) if call is not None else None
    if op is not None and call is not None and call.attribute is None:
        for field in op.schema.values():
            if field.name.startswith(word) and field.name not in call.given:
                yield Suggestion(f"{field.name}=", size, f"{kind_text(field)}; {default_text(field)}")
    if op is not None and call is not None and call.attribute in op.schema:
        kind = op.schema[call.attribute].kind
        yield from (Suggestion(v, size, kind) for v in ("True", "False") if kind == "bool" and v.startswith(word))
    if not word:
        return
    for name, says in sorted(names.constructor_names().items()):
        if name.startswith(word):
            yield Suggestion(name, size, says)
    for name in sorted(operator_names()):
        if name.startswith(word) or f".{word}" in name:
            yield Suggestion(name, size, OPS[name].signature() if name in OPS else _ADDED)
    yield from (Suggestion(k, size, "keyword") for k in _KEYWORDS if k.startswith(word))
