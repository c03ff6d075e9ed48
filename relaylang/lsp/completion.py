"""Completion in an editor's text. A request follows a keystroke at once, so the text is not read again for it.

Names come from the tokens between the definition's beginning and the cursor. Types come from the last read version. Of a
long definition, tokens are made of its head and of the statements near the cursor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from relaylang.grammar import patterns
from relaylang.ir import GlobalTypeVar, Type, TypeData
from relaylang.ir.bulk import gc_paused
from relaylang.lsp import standard
from relaylang.lsp.analysis import Analysis
from relaylang.repl.completion import Suggestion, complete
from relaylang.syntax.literals import string
from relaylang.syntax.symbols import Symbol
from relaylang.syntax.tree import global_name

_BEGINS = re.compile(r"^[ \t]*(?:def|type|data|extern)\b", re.M)
_FUNCTION = re.compile(rf"[ \t]*def[ \t]+({patterns()['GLOBAL']})")
#: The first statement of a body, in a line of its own.
_BODY = re.compile(r"\{[ \t]*\n(?=([ \t]+)\S)")
#: How many characters in front of the cursor are always read.
_NEAR = 12_000


class Window(NamedTuple):
    """The part of a definition that is read: its head and the statements near the cursor, from `near` on.

    `earlier` has the variables of the statements between them: where each stands, and where its value begins.
    """

    text: str
    begin: int
    head: int
    near: int
    earlier: dict[str, tuple[int, int]]

    def place(self, offset: int) -> int:
        """The place of an offset in the whole text."""
        return offset + (self.begin if offset < self.head else self.near - self.head)


def _definition(text: str, offset: int) -> int:
    """Where the definition in front of an offset begins."""
    end, begin = offset, -1
    while end and begin < 0:  # backwards, in stretches
        start = text.rfind("\n", 0, max(0, end - _NEAR)) + 1
        begin = max((match.start() for match in _BEGINS.finditer(text, start, end)), default=-1)
        end = start
    return max(0, begin)


def window(text: str, offset: int) -> Window:
    """The part of the definition in front of an offset that completion reads."""
    begin = _definition(text, offset)
    body = _BODY.search(text, begin, offset) if offset - begin > 2 * _NEAR else None
    if body is not None:
        stop = (offset - _NEAR) // _NEAR * _NEAR  # the same for most keystrokes
        near, earlier = _statements(text[body.end() : stop], body[1], body.end())
        if earlier:
            return Window(text[begin : body.end()] + text[near:offset], begin, body.end() - begin, near, earlier)
    return Window(text[begin:offset], begin, offset - begin, offset, {})


@lru_cache(maxsize=1)
def _statements(text: str, indent: str, begin: int) -> tuple[int, dict[str, tuple[int, int]]]:
    """Where the last statement of a text begins, and the variables of those in front of it. The text stands at `begin`."""
    statement = re.compile(rf"^{indent}(?:let[ \t]+)?({patterns()['LOCAL']})[ \t]*(?::|=(?![=>])[ \t]*(?=(\S)))", re.M)
    earlier: dict[str, tuple[int, int]] = {}
    last = begin
    for match in statement.finditer(text):
        last = begin + match.start()
        earlier[match[1]] = begin + match.start(1), begin + match.start(2) if match.start(2) >= 0 else -1
    if earlier:
        earlier.popitem()
    return last, earlier


class TextNames(Mapping[str, "Type | None"]):
    """The names of a text whose last read version is known. As a mapping it has the variables in front of the window."""

    def __init__(self, text: str, part: Window, known: Analysis) -> None:
        self._part = part
        self._versions = [version for version in (known, known.before) if version is not None and version.reading is not None]
        self._library = standard.imported(text)
        function = _FUNCTION.match(part.text)
        self._function = global_name(function[1]) if function is not None else ""
        self._earlier = {string(name[1:]) if name[1] == '"' else name[1:]: name for name in part.earlier}

    def __len__(self) -> int:
        return len(self._earlier)

    def __iter__(self) -> Iterator[str]:
        return iter(self._earlier)

    def __getitem__(self, name: str) -> Type | None:
        return self._type(self._earlier[name], *self._part.earlier[self._earlier[name]])

    def variables(self) -> Mapping[str, Type | None]:
        return self

    def functions(self) -> Mapping[str, Type | None]:
        out: dict[str, Type | None] = {}
        for version in self._versions:
            assert version.reading is not None
            out |= {name: ty for name, ty in version.reading.functions().items() if out.get(name) is None}
        for module in self._library:
            out |= {var.name_hint: f.checked_type for var, f in module.functions.items() if var.name_hint not in out}
        return out

    def definitions(self) -> Mapping[GlobalTypeVar, TypeData]:
        out: dict[GlobalTypeVar, TypeData] = {}
        for version in self._versions:
            assert version.reading is not None
            out = dict(version.reading.definitions())
            if out:
                break
        for module in self._library:
            out |= module.type_definitions
        return out

    def types_of(self, text: str, symbols: Sequence[Symbol]) -> Mapping[str, Type | None]:
        return {symbol.name: self._type_of(symbol) for symbol in symbols}

    def _type_of(self, symbol: Symbol) -> Type | None:
        """The type at the same place of a version, else that of the same name."""
        assert symbol.definition is not None
        value = self._part.place(symbol.value_start) if symbol.value_start >= 0 else -1
        ty = self._type(symbol.name, self._part.place(symbol.definition.start), value)
        if ty is not None:
            return ty
        types = (version.known_type(symbol.kind, symbol.name, self._function) for version in self._versions if version.good)
        return next((ty for ty in types if ty is not None), None)

    def _type(self, name: str, start: int, value: int) -> Type | None:
        """The type of the variable at a place, if a version has it there."""
        types = (version.bound_type(start, value) for version in self._versions if version.text.startswith(name, start))
        return next((ty for ty in types if ty is not None), None)


def completion(text: str, offset: int, known: Analysis) -> list[Suggestion]:
    """The completions at an offset of a text, the best first. `known` is the last version that was read."""
    part = window(text, offset)
    with gc_paused():
        return complete(part.text, TextNames(text, part, known), text[offset : offset + 1])


__all__ = ["completion"]
