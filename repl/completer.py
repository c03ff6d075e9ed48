"""What may stand at the cursor: operators, their attributes, variables, globals, constructors, commands, files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from relaylang.ir import type_text
from relaylang.ir.types import Type
from relaylang.ops import OPS
from relaylang.repl.commands import COMMANDS

_WORD = re.compile(r"[%@:]?[\w/.]*$")
_VARIABLE = re.compile(r"%[A-Za-z_][\w/]*")
_CALLEE = re.compile(r"([A-Za-z_][\w/.]*)\s*$")
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
    """What the completer asks of a session."""

    def variables(self) -> dict[str, Type | None]:
        """Variables by name, with their types."""

    def global_names(self) -> dict[str, str]:
        """Functions by name, with their type's text."""

    def constructor_names(self) -> dict[str, str]:
        """Constructors by name, with what they make."""


def suggestions(text: str, names: Names) -> Iterator[Suggestion]:
    """What may stand at the end of `text`, the best first."""
    found = _WORD.search(text)
    word = found.group() if found else ""
    before = text[: len(text) - len(word)]
    if text.lstrip().startswith(":"):
        yield from _command(text.lstrip(), word, names)
        return
    yield from _plain(word, before, names)


def _command(text: str, word: str, names: Names) -> Iterator[Suggestion]:
    name, space, argument = text.partition(" ")
    if not space:
        for command, what in COMMANDS.items():
            if command.startswith(name):
                yield Suggestion(command, len(name), what.help)
    elif name in (":load", ":save"):
        yield from _files(argument.lstrip())
    else:
        yield from _plain(word, argument[: len(argument) - len(word)], names)


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


def _plain(word: str, before: str, names: Names) -> Iterator[Suggestion]:
    size = len(word)
    if word.startswith("%"):
        known: dict[str, str] = {f"%{n}": type_text(t) if t is not None else "" for n, t in names.variables().items()}
        known.update({n: "" for n in _VARIABLE.findall(before) if n not in known})
        yield from (Suggestion(n, size, says) for n, says in sorted(known.items()) if n.startswith(word))
        return
    if word.startswith("@"):
        for name, says in sorted(names.global_names().items()):
            if f"@{name}".startswith(word):
                yield Suggestion(f"@{name}", size, says)
        return
    op = OPS.get(_open_call(before) or "")
    if op is not None:
        for field in op.schema.values():
            if field.name.startswith(word):
                default = "must be given" if field.required else f"default {field.default!r}"
                yield Suggestion(f"{field.name}=", size, f"{field.kind}, {default}")
    if not word:
        return
    for name, says in sorted(names.constructor_names().items()):
        if name.startswith(word):
            yield Suggestion(name, size, says)
    for name in sorted(OPS):
        if name.startswith(word) or f".{word}" in name:
            yield Suggestion(name, size, OPS[name].signature())
    yield from (Suggestion(k, size, "keyword") for k in _KEYWORDS if k.startswith(word))


def _open_call(before: str) -> str | None:
    """The name of the call whose parenthesis is still open at the end of the text."""
    depth = 0
    for at in range(len(before) - 1, max(-1, len(before) - 4000), -1):
        c = before[at]
        if c in ")]}":
            depth += 1
        elif c in "([{":
            if depth == 0:
                callee = _CALLEE.search(before[:at]) if c == "(" else None
                if callee is not None or c == "(":
                    return callee.group(1) if callee else None
            else:
                depth -= 1
        elif c == ";" and depth == 0:
            return None
    return None
