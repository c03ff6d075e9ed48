"""External functions in the place of layers that cannot be converted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from relaylang.frontends.common.builder import Builder
from relaylang.ir import ANY, Expr, Function, FuncType, GlobalVar, TensorType, TupleType, Type
from relaylang.ir.typed import typed
from relaylang.typing.valid_types import unsound


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


def stated_type(shape: Iterable[Any] | None, dtype: str | None) -> TensorType | None:
    """The type that a file states for a result; None where it does not. A negative extent, or None, is one that is left open."""
    if shape is None or dtype is None:
        return None
    ty = TensorType([ANY if d is None or d < 0 else d for d in shape], dtype)
    return ty if unsound(ty) is None else None


__all__ = ["external", "stated_type"]
