"""Actions for calls."""

from __future__ import annotations

from typing import Any as AnyValue

from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Constructor, Expr, MetaRef
from relaylang.ops.extensions import EXTENSIONS
from relaylang.ops.record import Op
from relaylang.syntax.actions.attributes import WRONG
from relaylang.syntax.actions.globals import Callees
from relaylang.syntax.actions.metavalues import LooseNode, MetaValues
from relaylang.syntax.actions.operators import OperatorCalls
from relaylang.syntax.actions.reports import Reports
from relaylang.syntax.spellings import BY_NAME, OldOp

#: Operators by the token that opens their call.
CALLEES: dict[str, Expr] = {}


class CallActions:
    """Makes calls. An open call is a list: the callee, its token, the arguments so far."""

    def __init__(self, reports: Reports, callees: Callees, operators: OperatorCalls, meta: MetaValues) -> None:
        self.source = reports.source
        self.callees = callees
        self.operators = operators
        self.meta = meta

    def on_open_name(self, v: str, first: int, last: int) -> list[AnyValue]:
        callee = CALLEES.get(v)
        if callee is None:
            callee = self.callees.find(v[:-1], first, len(v) - 1)
            if callee.__class__ is Op and callee.name not in EXTENSIONS:  # type: ignore[attr-defined]
                CALLEES[v] = callee
        return [callee, first]

    def on_open_value(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        callee = v[0]
        if callee.__class__ is Call and callee.op.__class__ is Constructor and first + 1 == last and not callee.args:
            callee = callee.op  # `Nil ()`: the bare name has already been read as a value
        return [callee, first]

    def on_open_add(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        v[0].append(v[1])
        return v[0]

    def on_call_end(self, v: list[AnyValue], first: int, last: int) -> Expr:
        opened = v[0]
        return self._plain(opened[0], opened[2:], opened[1], last)

    def on_call_last(self, v: list[AnyValue], first: int, last: int) -> Expr:
        opened, value = v[0], v[1]
        callee = opened[0]
        if value.__class__ is LooseNode:
            node = self.meta.taken(value)
            if node is not None:
                return self.operators.meta_call(callee, opened[2:], node, opened[1], last)
        if value.__class__ is MetaRef and value.type_key.startswith("relay.attrs."):
            return self.operators.meta_call(callee, opened[2:], value, opened[1], last)
        opened.append(value)
        return self._plain(callee, opened[2:], opened[1], last)

    def on_call_attrs(self, v: list[AnyValue], first: int, last: int) -> Expr:
        opened = v[0]
        return self.operators.call(opened[0], opened[2:], v[1], opened[1], last)

    def _plain(self, callee: Expr, args: list[Expr], at: int, last: int) -> Expr:
        """A call without attributes."""
        attrs = None
        if callee.__class__ is Op:
            if callee.name in BY_NAME:  # type: ignore[attr-defined]
                return self.operators.call(callee, args, [], at, last)
            attrs = self.operators.no_attrs(callee, at)  # type: ignore[arg-type]
            if attrs is WRONG:
                return self.operators.made(callee, args, attrs, at, last)
        elif callee.__class__ is OldOp:
            return self.operators.call(callee, args, [], at, last)
        return Call(callee, args, attrs, (), Span(self.source, at, last))


__all__ = ["CallActions"]
