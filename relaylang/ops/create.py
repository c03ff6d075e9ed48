"""Operators that make tensors, or give a tensor's shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.expr import Constant
from relaylang.ir.types import ANY, Dim, TensorType, TupleType, Type, scalar_type
from relaylang.ops.record import AnyAttr, Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import need_scalar, norm_axis
from relaylang.ops.traits import Trait

E, I, OPAQUE = OpPattern.ELEMWISE, OpPattern.INJECTIVE, OpPattern.OPAQUE


@attrs_class("relay.attrs.InitOpAttrs")
class InitOpAttrs:
    shape: Ints | None
    dtype: str | None = None


@attrs_class("relay.attrs.ArangeAttrs")
class ArangeAttrs:
    start: AnyAttr
    stop: AnyAttr
    step: AnyAttr
    dtype: str


@attrs_class("relay.attrs.OneHotAttrs")
class OneHotAttrs:
    depth: int = 1
    axis: int = -1
    dtype: str | None = None


@attrs_class("relay.attrs.ShapeOfAttrs")
class ShapeOfAttrs:
    dtype: str | None = None


@attrs_class("relay.attrs.NdarraySizeAttrs")
class NdarraySizeAttrs:
    dtype: str | None = None


@attrs_class("relay.attrs.MeshgridAttrs")
class MeshgridAttrs:
    indexing: str = "ij"


def given_dtype(attrs: AnyValue, ctx: RelationContext) -> str:
    if attrs.dtype is None:
        ctx.fail("the attribute dtype must be given", None, ['such as `dtype="float32"` or `dtype="int32"`'])
    dtype: str = attrs.dtype
    return dtype


def given_shape(attrs: AnyValue, ctx: RelationContext) -> tuple[Dim, ...]:
    if attrs.shape is None:
        ctx.fail("the attribute shape must be given")
    shape: tuple[Dim, ...] = attrs.shape
    return shape


def init(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes no arguments; the result has the attributes' shape and dtype."""
    return TensorType(given_shape(attrs, ctx), given_dtype(attrs, ctx))


def full(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes fill_value a scalar; the result has the attribute shape, and the attribute dtype or else that of
    fill_value.
    """
    need_scalar(types, 0, None, ctx)
    return TensorType(given_shape(attrs, ctx), attrs.dtype or tensor(types, 0, ctx).dtype)


def arange(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes start, stop and step, scalars of the attribute dtype. The result is a vector of that dtype. Its length is
    known where the attributes carry all three as constants, and `?` elsewhere.
    """
    for i in range(3):
        ctx.unify(i, scalar_type(attrs.dtype))
    numbers = (attrs.start, attrs.stop, attrs.step)
    if not all(isinstance(n, Constant) for n in numbers):
        return TensorType((ANY,), attrs.dtype)
    start, stop, step = (float(n.data) for n in numbers)
    count = math.ceil((stop - start) / step) if step and math.isfinite((stop - start) / step) else 0
    if count <= 0:
        ctx.fail(f"from {start:g} to {stop:g} by {step:g} there are no numbers")
    return TensorType((count,), attrs.dtype)


def one_hot(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes indices of any shape, on_value and off_value scalars. The result has the shape of indices with depth
    inserted at axis (-1: last), and the attribute dtype.
    """
    indices = tensor(types, 0, ctx)
    if attrs.depth < 1:
        ctx.fail(f"depth={attrs.depth} must be positive")
    if attrs.axis < -1:
        ctx.fail(f"axis={attrs.axis} must be -1 or the number of a dimension")
    at = norm_axis(attrs.axis, len(indices.shape) + 1, ctx)
    return TensorType((*indices.shape[:at], attrs.depth, *indices.shape[at:]), given_dtype(attrs, ctx))


def shape_of(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape and element type. The result is (number of dimensions,) of the attribute dtype; for a
    scalar it is a scalar.
    """
    data = tensor(types, 0, ctx)
    return TensorType((len(data.shape),) if data.shape else (), given_dtype(attrs, ctx))


def ndarray_size(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape and element type; the result is a scalar of the attribute dtype."""
    tensor(types, 0, ctx)
    return scalar_type(given_dtype(attrs, ctx))


def meshgrid(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a tuple of n vectors or scalars of one element type. The result is a tuple of n tensors (d0, ..., dn-1) of
    that element type. Where indexing is "xy", the first two extents are exchanged.
    """
    ty = types[0]
    if not isinstance(ty, TupleType) or not ty.fields:
        ctx.fail(f"must be a tuple of at least one tensor, not `{ty!r}`", 0)
    assert isinstance(ty, TupleType)
    first = ty.fields[0]
    grid: list[Dim] = []
    for i, field in enumerate(ty.fields):
        if not isinstance(field, TensorType) or not isinstance(first, TensorType) or len(field.shape) > 1:
            ctx.fail(f"field {i} of the tuple must be a scalar or a vector, not `{field!r}`", 0)
        assert isinstance(field, TensorType) and isinstance(first, TensorType)
        if field.dtype != first.dtype:
            ctx.fail(f"field {i} is of {field.dtype}, but field 0 is of {first.dtype}", 0)
        grid.append(field.shape[0] if field.shape else 1)
    if attrs.indexing == "xy" and len(grid) >= 2:
        grid[:2] = grid[1::-1]
    assert isinstance(first, TensorType)
    return TupleType([TensorType(grid, first.dtype)] * len(grid))


DATA = ("data",)

OPS = (
    Op("zeros", (), InitOpAttrs, init, E, 3, doc="A shape filled with 0.", python="(..., dtype)", traits={Trait.FILL}),
    Op("ones", (), InitOpAttrs, init, E, 3, doc="A shape filled with 1.", python="(..., dtype)", traits={Trait.FILL}),
    Op(
        "full",
        ("fill_value",),
        InitOpAttrs,
        full,
        E,
        3,
        doc="A shape filled with one number.",
        takes="tensor[]",
        traits={Trait.FILL},
        python="(..., shape=(), dtype='')",
    ),
    Op(
        "arange",
        ("start", "end", "step"),
        ArangeAttrs,
        arange,
        OPAQUE,
        3,
        needs=(),
        doc="The numbers from start to before stop, by step.",
        takes="number[] number[] number[]",
        python="(start: argument, stop: argument = None, step: argument = None, dtype='float32')",
    ),
    Op(
        "one_hot",
        ("indices", "on_value", "off_value"),
        OneHotAttrs,
        one_hot,
        OpPattern.OUT_ELEMWISE_FUSABLE,
        10,
        needs=(0,),
        doc="A vector for each index, with on_value there and off_value elsewhere.",
        takes="integer tensor[] tensor[]",
        python="(..., depth, axis, dtype)",
    ),
    Op(
        "meshgrid",
        DATA,
        MeshgridAttrs,
        meshgrid,
        I,
        3,
        doc="The coordinates of a grid from a vector for each axis.",
        takes="any",
        traits={Trait.OF_TUPLE},
        results=lambda args, attrs: len(args[0].fields),
    ),
    Op(
        "shape_of",
        DATA,
        ShapeOfAttrs,
        shape_of,
        OPAQUE,
        10,
        doc="The extents of the data.",
        traits={Trait.EXTENTS},
        python="(..., dtype='int32')",
    ),
    Op(
        "ndarray_size",
        DATA,
        NdarraySizeAttrs,
        ndarray_size,
        I,
        10,
        doc="The number of elements.",
        traits={Trait.EXTENTS},
        python="(..., dtype='int32')",
    ),
)
