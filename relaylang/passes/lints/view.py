"""What lints look at: a checked program, its text, and the names in it."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

from relaylang.diagnostics import Diagnostic, Fix, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Expr, Function, IRModule, Let, Var, post_order
from relaylang.passes.lints.repairs import Repair
from relaylang.syntax.symbols import SymbolTable
from relaylang.syntax.tokeniser import Brackets

#: Comments of the printer.
_PRINTED = re.compile(r"/\*\s*\w+=")
#: Kinds of tokens that bind closer than any sign.
_OPERANDS = frozenset({"local", "global", "name", "number", "string", "constant", "type", "reference"})
#: The most names of one value that are followed.
_MOST_NAMES = 64


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
        return Brackets(self.symbols.code).closing

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

    @cached_property
    def bound(self) -> dict[Var, Expr]:
        """The values of variables that a let binds."""
        return {node.variable: node.value for node in self.nodes if isinstance(node, Let)}

    def value(self, expr: Expr) -> Expr:
        """The value of a name that a let binds, through other names; another expression itself."""
        seen = 0
        while isinstance(expr, Var) and expr in self.bound and seen < _MOST_NAMES:
            expr, seen = self.bound[expr], seen + 1
        return expr

    @cached_property
    def comments(self) -> list[int]:
        """Where comments begin, in order. Those that the printer writes, such as types, do not count."""
        return [t.start for t in self.symbols.tokens if t.kind == "comment" and not _PRINTED.match(t.text)]

    def has_comment(self, start: int, end: int) -> bool:
        """Whether a person's comment begins in a stretch of the text."""
        at = bisect_left(self.comments, start)
        return at < len(self.comments) and self.comments[at] < end

    def operand(self, call: Span | None) -> tuple[int, int] | None:
        """The numbers of the first and last token of a call's first argument.

        None where the call has no parentheses of its own.
        """
        at = self.at.get(call.start) if call is not None else None
        if call is None or at is None:
            return None
        code = self.symbols.code
        opened = at + 1
        if code[at].kind != "name" or self.closing.get(opened) is None or code[opened].text != "(":
            return None
        if code[self.closing[opened]].end != call.end:
            return None
        last = self.closing[opened]
        number = opened + 1
        while number < last and code[number].text != ",":
            number = self.closing.get(number, number) + 1
        return (opened + 1, number - 1) if number > opened + 1 else None

    def without(self, call: Span | None, inner: Span | None = None) -> Fix | None:
        """The repair that leaves an operand in place of a call: its own, or that of a call inside it.

        None where a comment would go.
        """
        operand_range = self.operand(inner if inner is not None else call)
        if call is None or operand_range is None:
            return None
        first, last = operand_range
        code = self.symbols.code
        kept = self.span(code[first].start, code[last].end)
        if self.has_comment(call.start, kept.start) or self.has_comment(kept.end, call.end):
            return None
        simple = self._binds_close(first, last)
        loose = not simple and self._in_brackets(call) and not any(code[n].kind == "keyword" for n in range(first, last + 1))
        text = kept.text if simple or loose else f"({kept.text})"
        return Repair(call, text, "leave the call out", kept, loose=loose)

    def _binds_close(self, first: int, last: int) -> bool:
        """Whether an expression needs no parentheses anywhere."""
        code = self.symbols.code
        number, close = first, not code[first].text.startswith("-")
        while number <= last and close:
            closing = self.closing.get(number)
            close = code[number].kind in _OPERANDS or closing is not None or code[number].text == "."
            number = (closing if closing is not None else number) + 1
        return close

    def _in_brackets(self, call: Span) -> bool:
        """Whether a call is alone between brackets and commas."""
        code = self.symbols.code
        before, after = self.at[call.start] - 1, bisect_left(self.starts, call.end)
        return before >= 0 and code[before].text in ("(", ",", "[") and after < len(code) and code[after].text in (")", ",", "]")

    @cached_property
    def starts(self) -> list[int]:
        """Where the code's tokens begin."""
        return [token.start for token in self.symbols.code]


def finding(
    code: str,
    title: str,
    span: Span | None,
    label: str = "",
    *,
    also: str = "",
    at: Span | None = None,
    note: str = "",
    fix: Fix | None = None,
) -> Diagnostic:
    """A lint's warning at a place, with a second place where `also` says something of it."""
    notes = [note] if note else []
    return error(code, title, span, label, also=[(at, also)] if also else [], notes=notes, fix=fix, severity="warning")
