"""The analysis of a text: its diagnostics, its inferred types, its names."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Call, Expr, Function, GlobalTypeVar, IRModule, Type, TypeData, Var, type_text
from relaylang.ir.types import READABLE
from relaylang.lsp.document import Document, NotByParts
from relaylang.lsp.nodes import by_start
from relaylang.passes.lints import lint
from relaylang.passes.lints.settings import codes_for
from relaylang.stdlib.library import read
from relaylang.syntax import ParseResult
from relaylang.syntax.symbols import Symbol, SymbolTable
from relaylang.typing import infer
from relaylang.typing.partial import all_errors

#: The most characters of a text that lints look at with each change.
_LINTED = 100_000
#: The most characters of a text whose lines are found at once, but for a longer line.
_BLOCK = 1 << 14


class Lines:
    """Offsets of a text as lines and columns. Columns count code units of an encoding: 16, 8 or 32 bits. As the protocol says,
    lines end at `\\n`, `\\r\\n` and `\\r`.

    The lines of a long text are counted, and found only in the blocks that somebody asks for.
    """

    def __init__(self, text: str, unit: str = "utf-16") -> None:
        self.text = text
        self.unit = unit
        self.plain = text.isascii() or unit == "utf-32"
        self._end = re.compile(r"\r\n?|\n" if "\r" in text else r"\n")
        self._begins, self._before = [0], [0]  # where the blocks begin, and how many lines stand in front of each
        self._starts: dict[int, list[int]] = {}
        while (match := self._end.search(text, self._begins[-1] + _BLOCK)) is not None:
            begin, end = self._begins[-1], match.end()
            returns = text.count("\r", begin, end) - text.count("\r\n", begin, end) if "\r" in self._end.pattern else 0
            self._before.append(self._before[-1] + text.count("\n", begin, end) + returns)
            self._begins.append(end)

    def _lines(self, block: int) -> list[int]:
        """Where the lines of a block begin."""
        starts = self._starts.get(block)
        if starts is None:
            begin, end = self._begins[block], self._begins[block + 1] if block + 1 < len(self._begins) else len(self.text)
            starts = self._starts[block] = [begin, *(match.end() for match in self._end.finditer(self.text, begin, end))]
            if block + 1 < len(self._begins):
                starts.pop()
        return starts

    def _units(self, piece: str) -> int:
        if self.plain or piece.isascii():
            return len(piece)
        return len(piece.encode("utf-8")) if self.unit == "utf-8" else len(piece.encode("utf-16-le")) // 2

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 0."""
        offset = max(0, min(offset, len(self.text)))
        block = bisect_right(self._begins, offset) - 1
        starts = self._lines(block)
        line = bisect_right(starts, offset) - 1
        return self._before[block] + line, self._units(self.text[starts[line] : offset])

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column; after the end of a line it is the line's end."""
        block = bisect_right(self._before, max(0, line)) - 1
        starts, number = self._lines(block), max(0, line) - self._before[block]
        if number >= len(starts):
            return len(self.text)
        begin = starts[number]
        match = self._end.search(self.text, begin)
        end = match.start() if match is not None else len(self.text)
        if self.plain:
            return min(begin + column, end)
        at, used = begin, 0
        while at < end and used < column:
            used += self._units(self.text[at])
            at += 1
        return at


class Whole:
    """A text that is read as a whole."""

    def __init__(self, text: str, name: str) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.sound = False
        self.module = IRModule()
        self._roots: list[Expr] = []
        try:
            result = read(text, name)
            self.diagnostics += result.notes
            node = result.module if result.module is not None else result.value
            self.module = result.module or self.module
            if result.module is not None and result.expr is not None:
                self.diagnostics += infer(result.module)
                self._roots = [*_functions(result.module), result.expr]
                self.diagnostics += infer(result.expr, fragment=True, module=result.module)
            elif isinstance(node, Expr):
                self._roots = [node]
                self.diagnostics += infer(node, fragment=True)
            else:
                self._roots = _functions(node)
                self.diagnostics += infer(node)
            self.sound = True
        except RelayError as wrong:
            self.diagnostics += all_errors(wrong, beside_errors=True)
            if isinstance(wrong.partial, ParseResult):
                self.module = wrong.partial.module or self.module
                self._roots = [*_functions(self.module), *([wrong.partial.expr] if wrong.partial.expr is not None else [])]
        self._roots = [r for r in self._roots if r.span is None or r.span.source.name == name]

    @cached_property
    def _nodes(self) -> dict[int, list[Expr]]:
        return by_start(self._roots)

    def nodes_at(self, start: int) -> list[Expr]:
        """The nodes that begin at an offset."""
        return self._nodes.get(start, [])

    def functions(self) -> dict[str, Type | None]:
        """The functions by name, with their types."""
        return {var.name_hint: function.checked_type for var, function in self.module.functions.items()}

    def definitions(self) -> Mapping[GlobalTypeVar, TypeData]:
        """The type definitions."""
        return self.module.type_definitions

    @cached_property
    def _places(self) -> tuple[list[int], list[Function]]:
        """The functions and where they begin, in order."""
        places = [(r.span.start, r) for r in self._roots if isinstance(r, Function) and r.span is not None]
        places.sort(key=lambda place: place[0])
        return [start for start, _ in places], [function for _, function in places]

    def function_at(self, offset: int) -> Function | None:
        """The function whose text holds an offset."""
        starts, functions = self._places
        i = bisect_right(starts, offset) - 1
        root = functions[i] if i >= 0 else None
        return root if root is not None and root.span is not None and offset <= root.span.end else None


def _functions(module: IRModule) -> list[Expr]:
    return [f for f in module.functions.values() if isinstance(f, Function)]


def checked(source: SourceFile) -> IRModule:
    """The checked module of a text; of an expression or fragment, one with it as @main. Raises `RelayError`."""
    result = read(source.text, source.name)
    node = result.module if result.module is not None else result.value
    module = node if isinstance(node, IRModule) else IRModule.from_expr(node)
    infer(module, fragment=module is not node)
    return module


class Analysis:
    """What there is to know about one version of a text. `before` is the version in front of it."""

    def __init__(self, text: str, name: str, unit: str = "utf-16", before: Analysis | None = None) -> None:
        self.text = text
        self.name = name
        self.lines = Lines(text, unit)
        self.reading: Document | Whole | None = _read(text, name, before.reading if before is not None else None)
        self.diagnostics = self.reading.diagnostics if self.reading is not None else []
        self.good = self.reading is not None and self.reading.sound
        #: the last version that could be read
        self.before: Analysis | None = None
        if before is not None and not self.good:
            self.before = before if before.good else before.before

    @cached_property
    def findings(self) -> list[Diagnostic]:
        """What lints say of a text that is right. One that is too long for this has none."""
        codes = self.lints
        try:
            source = SourceFile(self.name, self.text)
            return lint(checked(source), source, codes) if codes else []
        except RelayError:
            return []

    @cached_property
    def lints(self) -> frozenset[str]:
        """The codes of the lints that look at this text."""
        if not self.good or len(self.text) > _LINTED:
            return frozenset()
        try:
            return codes_for(self.name)
        except RelayError:
            return frozenset()

    @cached_property
    def table(self) -> SymbolTable:
        """The text's tokens and names."""
        return SymbolTable(self.text, self.reading.parts if isinstance(self.reading, Document) else None)

    def range_of(self, span: Span) -> tuple[int, int]:
        """Where a span begins and ends in the text."""
        return span.source.base + span.start, span.source.base + span.end

    def type_at(self, start: int, kinds: tuple[type, ...] = (Expr,)) -> Type | None:
        """The type of what begins at an offset; of several that do, of the last, which holds the others."""
        for node in reversed(self.reading.nodes_at(start) if self.reading is not None else []):
            if isinstance(node, kinds) and node.checked_type is not None:
                return node.checked_type
        return None

    def call_at(self, start: int) -> Call | None:
        """The call whose operator's name begins at an offset."""
        nodes = self.reading.nodes_at(start) if self.reading is not None else []
        return next((n for n in nodes if isinstance(n, Call)), None)

    def symbol_type(self, symbol: Symbol) -> str | None:
        """The type of a name as text; if it is unknown, that of the last readable version."""
        ty = self.type_of(symbol)
        return type_text(ty, READABLE) if ty is not None else None

    def type_of(self, symbol: Symbol) -> Type | None:
        """The type of a name; if it is unknown, that of the last readable version."""
        ty: Type | None = None
        if symbol.kind == "function" and self.reading is not None:
            root = self.reading.function_at(symbol.definition.start) if symbol.definition is not None else None
            ty = root.checked_type if root is not None else None
        elif symbol.definition is not None:
            ty = self.bound_type(symbol.definition.start, symbol.value_start)
        elif symbol.kind == "variable" and symbol.uses:
            ty = self.type_at(symbol.uses[0].start, (Var,))
        if ty is None and self.before is not None:
            ty = self.before.known_type(symbol.kind, symbol.name, self._function_of(symbol))
        return ty

    def _function_of(self, symbol: Symbol) -> str:
        """The name of the function that binds a variable; "" for other names."""
        places = symbol.places() if symbol.kind in ("variable", "parameter") else ()
        return self.table.definitions[self.table.number_at(places[0].start)].name if places else ""

    def bound_type(self, start: int, value_start: int) -> Type | None:
        """The type of the variable that is bound at an offset, and whose value begins at another (-1: nowhere)."""
        ty = self.type_at(start, (Var,))
        return self.type_at(value_start) if ty is None and value_start >= 0 else ty

    def known_type(self, kind: str, name: str, function: str) -> Type | None:
        """The type of the last name of that kind in a function, for versions that cannot be read. None if it is not known."""
        if kind == "function":
            known = self.table.globals.get(name)
            return self.type_of(known) if known is not None else None
        types = (self.type_of(s) for s in reversed(self.table.variables(function)) if s.kind == kind and s.name == name)
        return next((ty for ty in types if ty is not None), None)


def _read(text: str, name: str, before: Document | Whole | None) -> Document | Whole | None:
    """Read a text, by parts where that is possible. None where there is nothing in it."""
    if not text or text.isspace():
        return None
    try:
        return before.changed(text) if isinstance(before, Document) else Document(text, name)
    except NotByParts:
        return Whole(text, name)


__all__ = ["Analysis", "Lines", "Whole"]
