"""Regions that work on slices: code for a batch of one runs for each slice of any batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from relaylang.ir import ANY, Call, Expr, Function, IRModule, TensorType, Tuple, TupleType, Type, substitute
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import typed_var
from relaylang.kernels.dtypes import SIZES
from relaylang.ops.record import Op
from relaylang.rules.slices import RULES
from relaylang.typing import check


@dataclass
class Slices:
    """The batch as C: how many slices there are, what must hold, the results' extents. `steps` are bytes between slices."""

    count: str
    checks: tuple[str, ...]
    extents: tuple[str, ...]
    steps: tuple[int, ...]


def is_sliced(ty: Type | None) -> bool:
    """Whether a tensor's first extent is unknown, and no other; of a tuple, those of all its fields."""
    if isinstance(ty, TupleType):
        return bool(ty.fields) and all(is_sliced(f) for f in ty.fields)
    if not isinstance(ty, TensorType) or not ty.shape or isinstance(ty.shape[0], int):
        return False
    return all(isinstance(d, int) for d in ty.shape[1:])


def works_on_slices(call: Call) -> bool:
    """Whether a call's result is made of what the call makes of slices."""
    assert isinstance(call.op, Op)
    rule = RULES.get(call.op.name)
    along = [is_sliced(arg.checked_type) for arg in call.args]
    return rule is not None and any(along) and rule(call, along)


def of_slices(module: IRModule) -> IRModule | None:
    """A region for a batch of one; None where a result of it is not sliced."""
    function = module["main"]
    types = _types(function.body)
    if not all(is_sliced(ty) for ty in types):
        return None
    values: dict[Expr, Expr] = {}
    for param in function.params:
        ty = param.checked_type
        if is_sliced(ty):
            assert isinstance(ty, TensorType)
            ty = TensorType((1, *ty.shape[1:]), ty.dtype)
        values[param] = typed_var(param.name_hint, ty, param.span)
    sliced = IRModule.from_expr(Function(list(values.values()), substitute(function.body, values)))  # type: ignore[arg-type]
    check(sliced, fresh=True)
    for old, new in zip(types, _types(sliced["main"].body)):
        if TensorType((ANY, *new.shape[1:]), new.dtype) != TensorType((ANY, *old.shape[1:]), old.dtype) or new.shape[0] != 1:
            return None
    return sliced


def slices_of(module: IRModule) -> Slices:
    """The batch of a region of which `of_slices` made one of one."""
    function = module["main"]
    places, steps, at = [], [], 0
    for param in function.params:
        ty = param.checked_type
        assert isinstance(ty, TensorType)
        if is_sliced(ty):
            places.append(f"d[{at}]")
        steps.append(_step(ty))
        at += len(ty.shape)
    extents: list[str] = []
    for ty in _types(function.body):
        extents += ["size0", *map(str, ty.shape[1:])]
        steps.append(_step(ty))
    return Slices(places[0], tuple(f"{place} == size0" for place in places[1:]), tuple(extents), tuple(steps))


def _types(body: Expr) -> Sequence[TensorType]:
    """The types of a region's results."""
    assert isinstance(body, Tuple)
    return [f.checked_type for f in body.fields]  # type: ignore[misc]


def _step(ty: TensorType) -> int:
    """The bytes of a slice; 0 for a tensor that all slices share."""
    return SIZES[ty.dtype] * prod(static_shape(TensorType(ty.shape[1:])) or ()) if is_sliced(ty) else 0
