"""Reads and checks a module's text after every keystroke: the changed parts, and the parts that depend on them.

A function is read again if its text changes, or if a function that it mentions comes or goes. It is checked again if the
type of a called function changes (see `relaylang.typing.Checker`). Of a long function, an edit concerns some statements
(see `stretches`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping

from relaylang.diagnostics import Diagnostic, error
from relaylang.ir import Expr, Function, GlobalTypeVar, GlobalVar, IRModule, Type, TypeData
from relaylang.lsp.segments import Part
from relaylang.lsp.stretches import Known, NotByStretches
from relaylang.syntax.spellings import has_old_header
from relaylang.syntax.tokeniser import metadata_start
from relaylang.syntax.tree import TYPES, begins_definitions, cut
from relaylang.typing import Checker
from relaylang.typing.partial import without_follow_ups

#: How many characters of two texts are compared at once.
_BLOCK = 1 << 15
_IMPORT = re.compile(r"^[ \t]*import\b", re.M)


class NotByParts(Exception):
    """The text must be read as a whole."""


class Document:
    """A module's text and its analysis.

    `Document(text, name)` reads everything. `changed(text)` reads the new parts of another text; this document then keeps
    only its text and parts. Both raise `NotByParts` for texts that are no modules, and for errors in type definitions.
    They also raise it for metadata sections, imports and old headers.
    """

    def __init__(self, text: str, name: str) -> None:
        _refuse(text)
        self.text = text
        self.parts = [Part(*piece) for piece in cut(text)[0]]
        if len(self.parts) == 1:
            raise NotByParts
        self.known = Known(name)
        self._place()
        self._read_types()
        self.known.functions = {name: GlobalVar(name) for name in self.first}
        self._read(range(len(self.parts) - 1, -1, -1))  # the last one first: it says whether this is a module alone
        wanted = self._wanted()
        functions = {self.known.functions[name]: function for name, function in wanted.items()}
        self.checker = Checker(IRModule(functions, self.known.types.type_definitions), partial=True)
        self._say()

    # -- one text after another

    def changed(self, text: str) -> Document:
        """The document of another text."""
        _refuse(text)
        begin, end = difference(self.text, text)
        try:
            return self._changed_inside(text, begin, end)
        except NotByStretches:
            pass
        first = max(0, bisect_right(self.starts, begin) - 1)
        if first and self.starts[first] == begin:
            first -= 1  # a part that ends in front of a word may take it in
        last = bisect_right(self.starts, end) - 1
        grown = len(text) - len(self.text)
        while True:
            stop = self.starts[last + 1] if last + 1 < len(self.parts) else len(self.text)
            new, closed = cut(text[self.starts[first] : stop + grown])
            if not closed and last + 1 < len(self.parts):
                last = len(self.parts) - 1
            elif first and new[0].text:
                first -= 1  # a definition lost its first word
            else:
                break
        if first:
            del new[0]  # the empty part in front of a text's first definition
        old = self.parts[first : last + 1]
        if not TYPES.isdisjoint([*(part.word for part in old), *(piece.word for piece in new)]):
            return Document(text, self.known.name)
        kept = {part.text: part for part in old}
        parts = [kept.pop(piece.text) if piece.text in kept else Part(*piece) for piece in new]
        document = self._with(text, [*self.parts[:first], *parts, *self.parts[last + 1 :]])
        unread = [first + i for i, part in enumerate(parts) if part not in old]
        document._update(unread, first + len(parts))
        return document

    def _changed_inside(self, text: str, begin: int, end: int) -> Document:
        """The document of a text that differs inside one function. Raises `NotByStretches` where other parts matter."""
        number = max(0, bisect_right(self.starts, begin) - 1)
        old, start = self.parts[number], self.starts[number]
        stop = start + len(old.text)
        before = self.parts[number - 1] if number else old
        if (end >= stop and number + 1 < len(self.parts)) or before.broken or self.first.get(old.name) is not old:
            raise NotByStretches
        places = {id(label.span.source) for d in self.checker.said.get(old.name, ()) for label in d.labels}
        again = [source for source in old.sources() if id(source) in places]
        part = old.changed(text[start : stop + len(text) - len(self.text)], begin - start, end - start, again)
        document = self._with(text, [*self.parts[:number], part, *self.parts[number + 1 :]])
        assert part.function is not None
        self.checker.update({self.known.functions[part.name]: part.function}, typed={part.name: part.statements})
        if stale := document._stale():
            self.checker.update(again=stale)
        document._say()
        return document

    def _with(self, text: str, parts: list[Part]) -> Document:
        """A document with other parts, which are at their places."""
        document: Document = object.__new__(Document)
        document.text, document.parts = text, parts
        document.known, document.checker = self.known, self.checker
        if len(parts) == 1:
            raise NotByParts
        document._place()
        return document

    def _update(self, unread: list[int], behind: int) -> None:
        """Read the new parts of this text, next to known parts."""
        names = self.known.functions
        come = self.first.keys() - names.keys()
        gone = names.keys() - self.first.keys()
        for name in come:
            names[name] = GlobalVar(name)
        for name in gone:
            del names[name]
        again = set(unread)
        if come or gone:
            other = come | gone
            again |= {
                i
                for i, p in enumerate(self.parts)
                # a message about an unknown name perhaps says a similar known one
                if not other.isdisjoint(p.mentions) or any(d.code in ("R0202", "R0206") for d in p.said)
            }
        again |= {i - 1 for i in (*again, behind) if 0 < i <= len(self.parts) and self.parts[i - 1].broken}
        for i in again:
            self.parts[i] = self.parts[i].fresh()
        self._place()
        self._read(sorted(again))
        wanted = self._wanted()
        module = self.checker.module
        changes: dict[str | GlobalVar, Function | None] = {
            var: None for var in module.functions if var.name_hint not in wanted or names[var.name_hint] is not var
        }
        for name, function in wanted.items():
            if module.functions.get(names[name]) is not function:
                changes[names[name]] = function
        if changes:
            self.checker.update(changes)
            if stale := self._stale():
                self.checker.update(again=stale)
        self._say()

    def _stale(self) -> list[str]:
        """The functions of which something is said that points into a text that is gone."""
        said = {name: diagnostics for name, diagnostics in self.checker.said.items() if diagnostics}
        if not said:
            return []
        there = {id(source) for part in self.parts for source in part.sources()}
        return [
            name
            for name, diagnostics in said.items()
            if any(id(label.span.source) not in there for d in diagnostics for label in d.labels)
        ]

    def _place(self) -> None:
        """Where the parts begin, and which is the first to define a function's name."""
        self.starts: list[int] = []
        self.first: dict[str, Part] = {}
        at = 0
        for part in self.parts:
            self.starts.append(at)
            part.move(at)
            at += len(part.text)
            if part.word == "def":
                self.first.setdefault(part.name, part)

    # -- reading

    def _read_types(self) -> None:
        parts = [part for part in self.parts if part.word in TYPES]
        self.known.type_vars = {part.name: GlobalTypeVar(part.name) for part in parts}
        for part in parts:
            part.read(self.known, "")
        constructors = [name for part in parts for name in part.constructors]
        if (
            not all(part.sound and not part.has_expression and part.definitions for part in parts)
            or len(self.known.type_vars) != len(parts)
            or len(set(constructors)) != len(constructors)
        ):
            raise NotByParts
        definitions = {var: data for part in parts for var, data in part.definitions.items()}
        self.known.types = IRModule({}, definitions)

    def _read(self, numbers: range | list[int]) -> None:
        for i in numbers:
            part = self.parts[i]
            if part.word in TYPES or (not part.word and not part.text.strip()):
                continue
            part.read(self.known, self.parts[i + 1].text if i + 1 < len(self.parts) else "")
            if part.has_expression and not part.broken:
                raise NotByParts

    # -- checking

    def _wanted(self) -> dict[str, Function]:
        """The functions to check. The type of one that could not be read agrees with every type."""
        return {name: part.function for name, part in self.first.items() if part.function is not None}

    def _say(self) -> None:
        said = [d for part in self.parts for d in part.said]
        counts = Counter(part.name for part in self.parts if part.word == "def")
        if len(counts) != counts.total():
            for part in self.parts:
                first = self.first.get(part.name)
                if part.word == "def" and first is not None and first is not part and part.name_place is not None:
                    also = [(first.name_place, "first here")]
                    said.append(error("R0205", f"function `@{part.name}` is defined twice", part.name_place, "here again", also=also))
        said += without_follow_ups(self.checker.diagnostics, said)
        self.diagnostics: list[Diagnostic] = sorted(said, key=lambda d: (d.severity == "note", start_of(d)))

    # -- answers

    @property
    def sound(self) -> bool:
        return not any(d.severity == "error" for d in self.diagnostics)

    def part_at(self, offset: int) -> Part:
        """The part that an offset stands in."""
        return self.parts[max(0, bisect_right(self.starts, offset) - 1)]

    def nodes_at(self, start: int) -> list[Expr]:
        """The nodes that begin at an offset."""
        part = self.part_at(start)
        return part.nodes_at(start - part.base)

    def function_at(self, offset: int) -> Function | None:
        """The function whose text holds an offset."""
        return self.part_at(offset).function

    def functions(self) -> dict[str, Type | None]:
        """The functions by name, with their types."""
        return {name: _declared(part) for name, part in self.first.items()}

    def definitions(self) -> Mapping[GlobalTypeVar, TypeData]:
        """The type definitions."""
        return self.known.types.type_definitions


def _declared(part: Part) -> Type | None:
    """A function's type, as the checker found it or as the header says."""
    return part.function.checked_type if part.function is not None else None


def start_of(diagnostic: Diagnostic) -> int:
    span = diagnostic.span
    return span.source.base + span.start if span is not None else 0


def _refuse(text: str) -> None:
    if not begins_definitions(text):
        raise NotByParts
    if metadata_start(text) != len(text) or ("import" in text and _IMPORT.search(text)) or has_old_header(text):
        raise NotByParts


def difference(old: str, new: str) -> tuple[int, int]:
    """Where two texts begin to differ, and where in the old one they are the same again."""

    def same(most: int, holds: Callable[[int, int], bool]) -> int:
        low = 0
        while low + _BLOCK <= most and holds(low, low + _BLOCK):
            low += _BLOCK
        most = min(most, low + _BLOCK)
        while low < most:
            middle = (low + most + 1) // 2
            low, most = (middle, most) if holds(low, middle) else (low, middle - 1)
        return low

    begin = same(min(len(old), len(new)), lambda a, b: old[a:b] == new[a:b])
    rest = min(len(old), len(new)) - begin
    return begin, len(old) - same(rest, lambda a, b: old[len(old) - b : len(old) - a] == new[len(new) - b : len(new) - a])


__all__ = ["Document", "NotByParts", "difference", "start_of"]
