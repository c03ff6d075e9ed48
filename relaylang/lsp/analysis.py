"""A text as the language sees it: what is wrong with it, the types that were found, its names."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.ir import Call, Expr, Function, IRModule, Let, Match, Type, Var, pattern_vars, post_order, type_text
from relaylang.lsp.scan import Scan, Symbol
from relaylang.prelude.library import read
from relaylang.typing import infer
from relaylang.typing.rest import check_rest


class Lines:
    """Offsets of a text as lines and columns. Columns count code units of an encoding: 16, 8 or 32 bits."""

    def __init__(self, text: str, unit: str = "utf-16") -> None:
        self.text = text
        self.unit = unit
        self.plain = text.isascii() or unit == "utf-32"
        starts = [0]
        at = text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        self.starts = starts

    def _units(self, piece: str) -> int:
        if self.plain or piece.isascii():
            return len(piece)
        return len(piece.encode("utf-8")) if self.unit == "utf-8" else len(piece.encode("utf-16-le")) // 2

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 0."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.starts, offset) - 1
        return line, self._units(self.text[self.starts[line] : offset])

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column; behind the end of a line it is the line's end."""
        if line >= len(self.starts):
            return len(self.text)
        begin = self.starts[max(0, line)]
        end = self.starts[line + 1] - 1 if line + 1 < len(self.starts) else len(self.text)
        if self.plain:
            return min(begin + column, end)
        at, used = begin, 0
        while at < end and used < column:
            used += self._units(self.text[at])
            at += 1
        return at


class Analysis:
    """What there is to know about one version of a text."""

    good: bool

    def __init__(self, text: str, name: str, unit: str = "utf-16", before: Analysis | None = None) -> None:
        self.text = text
        self.name = name
        self.lines = Lines(text, unit)
        self.diagnostics: list[Diagnostic] = []
        self.nodes: list[Expr] = []
        #: the last version that could be read
        self.before: Analysis | None = before if before is None or before.good else before.before
        self.good = False
        if not text.strip():
            return
        try:
            result = read(text, name)
            self.diagnostics += result.notes
            node = result.module if result.module is not None else result.value
            if result.module is not None and result.expr is not None:
                self.diagnostics += infer(result.module)
                self._roots: list[Expr] = [*self._functions(result.module), result.expr]
                self.diagnostics += infer(result.expr, fragment=True, module=result.module)
            elif isinstance(node, Expr):
                self._roots = [node]
                self.diagnostics += infer(node, fragment=True)
            else:
                self._roots = self._functions(node)
                self.diagnostics += infer(node)
            self.good = True
            self.before = None
        except RelayError as wrong:
            self.diagnostics += wrong.diagnostics
            if isinstance(wrong.partial, IRModule):
                self.diagnostics += check_rest(wrong.partial, wrong.diagnostics)

    @staticmethod
    def _functions(module: object) -> list[Expr]:
        return [f for f in module.functions.values() if isinstance(f, Function)]  # type: ignore[attr-defined]

    @cached_property
    def scan(self) -> Scan:
        """The text's tokens and names."""
        return Scan(self.text)

    @cached_property
    def by_start(self) -> dict[int, list[Expr]]:
        """The nodes of this text by where they begin; binders too."""
        out: dict[int, list[Expr]] = {}
        if not self.good:
            return out
        seen: set[int] = set()
        for root in self._roots:
            for node in post_order(root):
                extra: list[Var] = []
                if isinstance(node, Function):
                    extra = list(node.params)
                elif isinstance(node, Let):
                    extra = [node.variable]
                elif isinstance(node, Match):
                    extra = [v for c in node.clauses for v in pattern_vars(c.lhs)]
                for one in (node, *extra):
                    if id(one) in seen or one.span is None or one.span.source.name != self.name:
                        continue
                    seen.add(id(one))
                    out.setdefault(one.span.start, []).append(one)
        return out

    def type_at(self, start: int, kinds: tuple[type, ...] = (Expr,)) -> Type | None:
        """The type of what begins at an offset; of several that do, of the last, which holds the others."""
        for node in reversed(self.by_start.get(start, [])):
            if isinstance(node, kinds) and node.checked_type is not None:
                return node.checked_type
        return None

    def call_at(self, start: int) -> Call | None:
        """The call whose operator's name begins at an offset."""
        return next((n for n in self.by_start.get(start, []) if isinstance(n, Call)), None)

    @cached_property
    def _places(self) -> tuple[list[int], list[Function]]:
        """The functions of this text and where they begin, in order."""
        found = [r for r in self._roots if isinstance(r, Function) and r.span is not None and r.span.source.name == self.name]
        found.sort(key=lambda r: r.span.start if r.span is not None else 0)
        return [r.span.start for r in found if r.span is not None], found

    def _root_at(self, offset: int) -> Function | None:
        """The function whose text holds an offset."""
        starts, functions = self._places
        i = bisect_right(starts, offset) - 1
        root = functions[i] if i >= 0 else None
        return root if root is not None and root.span is not None and offset <= root.span.end else None

    def symbol_type(self, symbol: Symbol) -> str | None:
        """The type of a name as text, where it is known; that of the last version that could be read, where not."""
        ty: Type | None = None
        if symbol.kind == "function" and self.good:
            root = self._root_at(symbol.definition.start) if symbol.definition is not None else None
            ty = root.checked_type if root is not None else None
        elif symbol.definition is not None:
            ty = self.type_at(symbol.definition.start, (Var,))
            if ty is None and symbol.value_start >= 0:
                ty = self.type_at(symbol.value_start)
        elif symbol.kind == "variable" and symbol.uses:
            ty = self.type_at(symbol.uses[0].start, (Var,))
        if ty is not None:
            return type_text(ty)
        return self.before.known_types.get((symbol.kind, symbol.name)) if self.before is not None else None

    @cached_property
    def known_types(self) -> dict[tuple[str, str], str]:
        """The types of all names, for the versions that cannot be read."""
        out = {}
        for symbol in self.scan.symbols:
            says = self.symbol_type(symbol)
            if says is not None:
                out[symbol.kind, symbol.name] = says
        return out
