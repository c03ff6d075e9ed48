"""External functions in the place of layers that cannot be converted."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.frontends.common.builder import Builder
from relaylang.ir import Expr, Function, FuncType, GlobalVar, TupleType, Type
from relaylang.ir.typed import typed


def external(b: Builder, operator: str, inputs: Sequence[Expr], types: Sequence[Type | None]) -> list[Expr]:
    """A call of a new function without a body, named after the operator; its results, or [] where a type is not known."""
    known = [t for t in types if t is not None]
    if len(known) != len(types) or not known:
        return []
    result = known[0] if len(known) == 1 else TupleType(known)
    params = [b.variable(f"x{i}", x.checked_type) for i, x in enumerate(inputs) if x.checked_type is not None]
    name = GlobalVar(b.unique(f"extern_{operator}"))
    function = Function(params, None, result, span=b.span)  # type: ignore[arg-type]
    b.module[name] = typed(function, FuncType([p.checked_type for p in params if p.checked_type is not None], result))
    call = b.call(name, inputs)
    return [call] if len(known) == 1 else [b.field(call, i) for i in range(len(known))]


__all__ = ["external"]
