"""Operators that put tensors together and take them apart."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any as AnyValue

from relaylang.ir.types import ANY, Dim, TensorType, TupleType, Type, extent_dtype
from relaylang.ops.record import AnyAttr, Integer, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import add_dim, div_dim, norm_axis, same_dim, shape_text
from relaylang.ops.traits import Trait

I = OpPattern.INJECTIVE


@attrs_class("relay.attrs.ConcatenateAttrs")
class ConcatenateAttrs:
    axis: int = 0


@attrs_class("relay.attrs.StackAttrs")
class StackAttrs:
    axis: Integer = 0


@attrs_class("relay.attrs.SplitAttrs")
class SplitAttrs:
    indices_or_sections: AnyAttr
    axis: int = 0


def tensors_of(types: Sequence[Type], arg: int, ctx: RelationContext) -> list[TensorType]:
    """The fields of a tuple of at least one tensor, all of one rank and element type."""
    ty = types[arg]
    if not isinstance(ty, TupleType):
        ctx.fail(f"must be a tuple of tensors, not `{ty!r}`", arg)
    assert isinstance(ty, TupleType)
    if not ty.fields:
        ctx.fail("must have at least one tensor", arg)
    first = ty.fields[0]
    tensors = []
    for i, field in enumerate(ty.fields):
        if not isinstance(field, TensorType) or not isinstance(first, TensorType):
            ctx.fail(f"field {i} of the tuple must be a tensor, not `{field!r}`", arg)
        assert isinstance(field, TensorType) and isinstance(first, TensorType)
        if len(field.shape) != len(first.shape):
            ctx.fail(f"field {i} is `{field!r}`, but field 0 is `{first!r}`: they differ in their dimensions", arg)
        if field.dtype != first.dtype:
            ctx.fail(f"field {i} is of {field.dtype}, but field 0 is of {first.dtype}", arg)
        tensors.append(field)
    return tensors


def _joinable(parts: Sequence[TensorType], axis: int, columns: Sequence[Sequence[Dim]]) -> str:
    """The note on fields that differ: the axis that joins them, or the shape that fits."""
    differ = [i for i, column in enumerate(columns) if any(not same_dim(column[0], d) for d in column)]
    if len(differ) == 1:
        return f"`axis={differ[0]}` joins them: they agree along the others"
    wanted = [ANY if i == axis else d for i, d in enumerate(parts[0].shape)]
    return f"fields of the shape {shape_text(wanted)} can be joined along axis {axis}, with any extent for `?`"


def concatenate(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a tuple of tensors of one element type that agree in all extents but that along axis. The result has the
    sum of the extents along axis, or `?` where one of them is `?`.
    """
    parts = tensors_of(types, 0, ctx)
    first = parts[0]
    axis = norm_axis(attrs.axis, len(first.shape), ctx)
    columns = list(zip(*[p.shape for p in parts]))
    joined = columns[axis]
    dynamic = any(d is ANY for d in joined)
    shape: list[Dim] = []
    for i, column in enumerate(columns):
        if i == axis:
            shape.append(reduce(add_dim, column))
            continue
        known = next((d for d in column if d is not ANY), ANY)
        if column.count(known) != len(column):
            for j, d in enumerate(column):
                if not same_dim(known, d):
                    ctx.fail(
                        f"field {j} is `{parts[j]!r}`, but field {column.index(known)} is "
                        f"`{parts[column.index(known)]!r}`: they differ along axis {i}, which is not the one joined",
                        0,
                        notes=[_joinable(parts, axis, columns)],
                    )
            known = known if dynamic else ANY
        shape.append(known)
    return TensorType(shape, first.dtype)


def stack(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a tuple of n tensors of one type. The result has n inserted as a new extent at axis."""
    parts = tensors_of(types, 0, ctx)
    first = parts[0]
    at = norm_axis(attrs.axis, len(first.shape) + 1, ctx)
    for j, part in enumerate(parts):
        for i, (a, b) in enumerate(zip(first.shape, part.shape)):
            if not same_dim(a, b):
                ctx.fail(f"field {j} is `{part!r}`, but field 0 is `{first!r}`: they differ along axis {i}", 0)
    return TensorType((*first.shape[:at], len(parts), *first.shape[at:]), first.dtype)


def split(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The result is a tuple of tensors of its element type. The attribute indices_or_sections
    is a number of equal parts of axis, or where each part but the first begins.
    """
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    size = data.shape[axis]
    how = attrs.indices_or_sections
    extents: list[Dim]
    if isinstance(how, int):
        if how < 1:
            ctx.fail(f"indices_or_sections={how} must be positive")
        if isinstance(size, int) and size % how:
            ctx.fail(f"axis {axis} of `{data!r}` has {size} entries, which do not go into {how} equal parts", 0)
        extents = [div_dim(size, how)] * how
    else:
        if not isinstance(how, (list, tuple)) or not all(isinstance(i, int) for i in how):
            ctx.fail("indices_or_sections must be a number of parts or a list of the places to split at")
        bounds = [0, *how]
        if any(b <= a for a, b in itertools.pairwise(bounds)) or (isinstance(size, int) and bounds[-1] >= size):
            ctx.fail(f"indices_or_sections={list(how)} must grow from above 0 to below {size}, the extent of axis {axis}")
        extents = [int(b) - int(a) for a, b in itertools.pairwise(bounds)]
        extents.append(add_dim(size, -int(bounds[-1])))
    parts: dict[tuple[Dim, str], TensorType] = {}
    for part in extents:
        key = part, extent_dtype(part)
        if key not in parts:
            parts[key] = TensorType((*data.shape[:axis], part, *data.shape[axis + 1 :]), data.dtype)
    return TupleType([parts[part, extent_dtype(part)] for part in extents])


DATA = ("data",)


def parts(args: Sequence[AnyValue], attrs: AnyValue) -> int:
    """How many parts a split makes: the number given, or one more than the places to cut at."""
    sections = attrs.indices_or_sections
    return sections if isinstance(sections, int) else len(sections) + 1


OPS = (
    Op(
        "concatenate",
        DATA,
        ConcatenateAttrs,
        concatenate,
        I,
        1,
        doc="Tensors joined along an axis.",
        takes="any",
        traits={Trait.OF_TUPLE},
        python="(..., axis)",
    ),
    Op(
        "stack",
        DATA,
        StackAttrs,
        stack,
        I,
        3,
        doc="Tensors joined along a new axis.",
        takes="any",
        traits={Trait.OF_TUPLE},
        python="(..., axis)",
    ),
    Op("split", DATA, SplitAttrs, split, I, 3, doc="Parts of the data along an axis.", results=parts),
)
