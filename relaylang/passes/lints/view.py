"""What lints look at: a checked program, its text, and the names in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from relaylang.diagnostics import Diagnostic, Fix, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Expr, Function, IRModule, post_order
from relaylang.syntax.symbols import SymbolTable


@dataclass(frozen=True)
class View:
    """A program under inspection. Its functions are those that stand in the text; the types are known."""

    module: IRModule
    source: SourceFile
    _sources: dict[int, bool] = field(default_factory=dict, repr=False)  # by id: whether a source is this text

    @cached_property
    def symbols(self) -> SymbolTable:
        return SymbolTable(self.source.text)

    @cached_property
    def at(self) -> dict[int, int]:
        """The numbers of the code's tokens by where they begin."""
        return {token.start: number for number, token in enumerate(self.symbols.code)}

    @cached_property
    def closing(self) -> dict[int, int]:
        """The numbers of closing brackets by the numbers of their opening ones."""
        found: dict[int, int] = {}
        opened: list[int] = []
        for number, token in enumerate(self.symbols.code):
            if token.kind == "mark" and token.text in "([{":
                opened.append(number)
            elif token.kind == "mark" and token.text in ")]}" and opened:
                found[opened.pop()] = number
        return found

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The functions that stand in the text, by their names."""
        return {
            gv.name_hint: function
            for gv, function in self.module.functions.items()
            if isinstance(function, Function) and (self.has(function) or self.has(function.body))
        }

    @cached_property
    def nodes(self) -> list[Expr]:
        """Every node of the functions that the text wrote, operands first."""
        return [node for function in self.functions.values() for node in post_order(function) if self.has(node)]

    def has(self, node: Expr) -> bool:
        """Whether a node stands in the text."""
        if node.span is None:
            return False
        source = node.span.source
        known = self._sources.get(id(source))
        if known is None:
            known = self._sources[id(source)] = source.text == self.source.text
        return known

    def span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)

    def operand(self, call: Span | None) -> str | None:
        """The text of a call's first argument; None where the call has no parentheses of its own."""
        at = self.at.get(call.start) if call is not None else None
        if call is None or at is None:
            return None
        code = self.symbols.code
        opened = next((n for n in (at + 1, at + 2) if n < len(code) and code[n].text == "("), None)
        if opened is None or opened not in self.closing or code[self.closing[opened]].end != call.end:
            return None
        last = self.closing[opened]
        number = opened + 1
        while number < last and code[number].text != ",":
            number = self.closing.get(number, number) + 1
        return self.source.text[code[opened].end : code[number].start].strip() or None

    def without(self, call: Span | None, inner: Span | None = None) -> Fix | None:
        """The repair that leaves an operand in place of a call: its own, or that of a call inside it."""
        text = self.operand(inner if inner is not None else call)
        return Fix(call, text, "leave the call out") if call is not None and text is not None else None


def finding(code: str, title: str, span: Span | None, label: str = "", *, also: str = "", at: Span | None = None,
            note: str = "", fix: Fix | None = None) -> Diagnostic:  # fmt: skip
    """A lint's warning at a place, with a second place where `also` says something of it."""
    notes = [note] if note else []
    return error(code, title, span, label, also=[(at, also)] if also else [], notes=notes, fix=fix, severity="warning")
