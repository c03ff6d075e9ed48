"""Actions for names, literals, tuples, references, branches and infix operators."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from relaylang.diagnostics import error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    GlobalVar,
    If,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
)
from relaylang.ops import SYMBOLS
from relaylang.ops.record import Op
from relaylang.syntax.actions.globals import Callees, FunctionNames, TypeNames
from relaylang.syntax.actions.locals import Locals, Pending
from relaylang.syntax.actions.metavalues import MetaValues
from relaylang.syntax.actions.operators import OperatorCalls
from relaylang.syntax.actions.reports import Reports
from relaylang.syntax.literals import LiteralError, scalar, string

#: Literals by text: the array, which is read-only, and its element type.
_NUMBERS: dict[str, tuple[np.ndarray, str]] = {}
_BOOLS = {"True": np.array(True), "False": np.array(False)}
for _array in _BOOLS.values():
    _array.flags.writeable = False

#: The binding strength of each infix operator. `?` stands for one that Relay does not have.
_STRENGTH = {"*": 4, "/": 4, "+": 3, "-": 3, "<": 2, "<=": 2, ">": 2, ">=": 2, "==": 1, "!=": 1, "?": 0}


def _fits_negated(text: str) -> bool:
    try:
        scalar("-" + text)
    except LiteralError:
        return False
    return True


class ExpressionActions:
    """Makes expressions that bind no names and pass no arguments."""

    def __init__(
        self,
        reports: Reports,
        locals: Locals,
        functions: FunctionNames,
        types: TypeNames,
        callees: Callees,
        operators: OperatorCalls,
        meta: MetaValues,
    ) -> None:
        self.reports = reports
        self.source = reports.source
        self.locals = locals
        self.names = locals.names
        self.functions = functions
        self.types = types
        self.callees = callees
        self.operators = operators
        self.meta = meta
        #: Whether the signs in front of a number negate it, by the number's token.
        self.negated: dict[int, bool] = {}

    # -- leaves

    def on_var(self, v: str, first: int, last: int) -> Expr:
        node = self.names.get(v)
        if node is None or node.__class__ is Pending:
            return self.locals.find(v, first)
        return node

    def on_number(self, v: str, first: int, last: int) -> Expr:
        known = _NUMBERS.get(v)
        if known is None:
            known = self._number(v, first, last)
            if known is None:
                return self.reports.unknown_value(first, last)
        return Constant(known[0], Span(self.source, first, last), known[1])

    def _number(self, text: str, first: int, last: int) -> tuple[np.ndarray, str] | None:
        try:
            known = scalar(text)
        except LiteralError as e:
            # a minus in front may make it fit: `on_neg` looks again
            reports = self.reports
            said = error("R0105", str(e), reports.place(first, last))
            if text[0] != "-" and reports.tokens[first - 1 : first] == ["-"] and _fits_negated(text):
                reports.deferred[first] = said
                return np.array(0, "int32"), "int32"
            reports.add(said)
            return None
        if len(text) < 40:
            if len(_NUMBERS) > 50_000:
                _NUMBERS.clear()
            _NUMBERS[text] = known
        return known

    def on_neg(self, v: list[AnyValue], first: int, last: int) -> Expr:
        value = v[1]
        if value.__class__ is Constant and value.span is not None and value.span.last == last:
            text = self.reports.tokens[last]
            if text[0].isdigit() or text[:3] in ("inf", "nan"):
                negated = self.negated.get(last, False)
                key = text if negated else "-" + text  # TVM counts the signs, and makes one number
                self.negated[last] = not negated
                self.reports.deferred.pop(last, None)
                known = _NUMBERS.get(key) or self._number(key, first, last)
                if known is None:
                    return self.reports.unknown_value(first, last)
                return Constant(known[0], Span(self.source, first, last), known[1])
        return self._infix_call("negative", [value], first, last)

    def on_global_var(self, v: str, first: int, last: int) -> Expr:
        name = string(v[1:]) if v[1] == '"' else v[1:]
        return self.functions.var(name, first)

    def on_meta(self, v: str, first: int, last: int) -> Expr:
        value = self.meta.expression(v, first)
        return self.functions.var(value.name_hint, first) if isinstance(value, GlobalVar) else value

    def on_name(self, v: str, first: int, last: int) -> Expr:
        if v in _BOOLS:
            return Constant(_BOOLS[v], Span(self.source, first, last), "bool")
        callee = self.callees.find(v, first, len(v))
        if callee.__class__ is Constructor and not callee.inputs and not self.types.has_fields(v):  # type: ignore[attr-defined]
            return Call(callee, (), None, (), Span(self.source, first, last))  # `Nil` is `Nil()`, as TVM reads it
        return callee

    def on_string(self, v: str, first: int, last: int) -> Expr:
        notes = ["strings are values of attributes"]
        self.reports.add(error("R0103", "a string is not an expression", self.reports.place(first), notes=notes))
        return self.reports.unknown_value(first, last)

    def on_proj(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self._field(v[0], v[1][1:], first, last)

    def on_proj_spaced(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self._field(v[0], v[2], first, last)

    def _field(self, value: Expr, index: str, first: int, last: int) -> Expr:
        if not index.isdigit() or len(index) > 9:
            self.reports.add(error("R0105", "a field's number is a whole number", self.reports.place(last)))
            index = "0"
        return TupleGetItem(value, int(index), self.reports.span(first, last))

    # -- brackets

    def on_unit(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return Tuple((), self.reports.span(first, last))

    def on_paren(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return v[1]

    def on_paren_block(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return v[1]

    def on_braces(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return v[1]

    def on_tuple_first(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [v[1]]

    def on_tuple_more(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        v[0].append(v[1])
        return v[0]

    def on_tuple_end(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return Tuple(v[0], self.reports.span(first, last))

    def on_tuple_last(self, v: list[AnyValue], first: int, last: int) -> Expr:
        v[0].append(v[1])
        return Tuple(v[0], self.reports.span(first, last))

    def on_ref(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return RefCreate(v[2], self.reports.span(first, last))

    def on_ref_read(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return RefRead(v[2], self.reports.span(first, last))

    def on_ref_write(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return RefWrite(v[2], v[4], self.reports.span(first, last))

    def on_if_else(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return If(v[2], v[5], v[9], self.reports.span(first, last))

    # -- infix operators

    def _infix_call(self, name: str, args: list[Expr], first: int, last: int) -> Expr:
        if not name:
            return self.reports.unknown_call(args, first, last)
        op = self.callees.find(name, first, 1)
        attrs = self.operators.no_attrs(op, first) if op.__class__ is Op else None  # type: ignore[arg-type]
        return Call(op, args, attrs, (), self.reports.span(first, last))

    def on_infix_op(self, v: str, first: int, last: int) -> tuple[str, int]:
        return v, first

    def on_infix_first(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self.on_infix_more([([(v[0], first, v[1][1] - 1)], []), v[1], v[2]], first, last)

    def on_infix_more(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        operands, waiting = v[0]
        sign, at = v[1]
        self._join(operands, waiting, _STRENGTH[sign])
        waiting.append(sign)
        operands.append((v[2], at + 1, last))
        return v[0]

    def _join(self, operands: list[AnyValue], waiting: list[str], power: int) -> None:
        """Make the calls of the waiting operators that bind at least as tight as the next one."""
        while waiting and _STRENGTH[waiting[-1]] >= power:
            (right, _, last), (left, first, _) = operands.pop(), operands.pop()
            operands.append((self._infix_call(SYMBOLS.get(waiting.pop(), ""), [left, right], first, last), first, last))

    def on_infix(self, v: AnyValue, first: int, last: int) -> Expr:
        operands, waiting = v
        self._join(operands, waiting, 0)
        return operands[0][0]


__all__ = ["ExpressionActions"]
