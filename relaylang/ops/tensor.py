"""Operators on each element: arithmetic, comparison, logic, and the functions of one variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, Type
from relaylang.ops.record import Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.relations import broadcast, compare, identity, identity_of_tensors, to_bool
from relaylang.ops.shapes import bits_of, need_scalar, norm_axis, product, same_dim

E, B = OpPattern.ELEMWISE, OpPattern.BROADCAST

#: name -> support level; f(x) of each element, any tensor to the same type
UNARY = {
    "abs": 3, "acos": 1, "acosh": 1, "asin": 1, "asinh": 1, "atan": 1, "atanh": 1, "bitwise_not": 4, "ceil": 3,
    "copy": 3, "cos": 1, "cosh": 1, "erf": 1, "exp": 1, "fast_erf": 1, "fast_exp": 1, "fast_tanh": 1, "floor": 3,
    "log": 1, "log10": 1, "log2": 1, "logical_not": 4, "negative": 3, "ones_like": 4, "round": 3, "rsqrt": 1, "sigmoid": 1,
    "sign": 3, "sin": 1, "sinh": 1, "sqrt": 1, "tan": 1, "tanh": 1, "trunc": 3, "zeros_like": 4,
}  # fmt: skip

#: two tensors of one element type, broadcast
BINARY = {
    "add": 1, "bitwise_and": 4, "bitwise_or": 4, "bitwise_xor": 4, "divide": 1, "floor_divide": 1, "floor_mod": 1,
    "left_shift": 4, "logical_and": 4, "logical_or": 4, "logical_xor": 4, "maximum": 4, "minimum": 4, "mod": 1,
    "multiply": 1, "power": 4, "right_shift": 4, "subtract": 1, "trunc_divide": 1, "trunc_mod": 1,
}  # fmt: skip

#: two tensors of one element type, broadcast, to truth values
COMPARE = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")

#: each element to a truth value
TEST = ("isfinite", "isinf", "isnan")


@attrs_class("relay.attrs.ClipAttrs")
class ClipAttrs:
    a_min: float
    a_max: float


@attrs_class("relay.attrs.CastAttrs")
class CastAttrs:
    dtype: str


@attrs_class("relay.attrs.FixedPointMultiplyAttrs")
class FixedPointMultiplyAttrs:
    multiplier: int
    shift: int


@attrs_class("relay.attrs.FixedPointMultiplyPerAxisAttrs")
class FixedPointMultiplyPerAxisAttrs:
    is_lshift_required: bool = False
    is_rshift_required: bool = False
    axes: Ints


def cast(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; the result has it, with the attribute dtype."""
    return TensorType(tensor(types, 0, ctx).shape, attrs.dtype)


def reinterpret(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; the result has it, with the attribute dtype, whose elements have as many bits."""
    data = tensor(types, 0, ctx)
    have, want = bits_of(data.dtype), bits_of(attrs.dtype)
    if have is not None and want is not None and have != want:
        ctx.fail(f"is of {data.dtype}, which has {have} bits, and {attrs.dtype} has {want}", 0)
    return TensorType(data.shape, attrs.dtype)


def cast_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data and dtype_like of any shape; the result has the data's shape and the element type of dtype_like."""
    return TensorType(tensor(types, 0, ctx).shape, tensor(types, 1, ctx).dtype)


def full_like(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any type, fill_value a scalar; the result has the data's type."""
    need_scalar(types, 1, None, ctx)
    return tensor(types, 0, ctx)


def multiply_per_axis(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data, and a multiplier and two shifts for each of its entries along axes; the result has the data's type."""
    data, multiplier = tensor(types, 0, ctx), tensor(types, 1, ctx)
    count = product([data.shape[norm_axis(a, len(data.shape), ctx)] for a in attrs.axes])
    if multiplier.shape and not same_dim(count, multiplier.shape[0]):
        ctx.fail(f"must have {count} entries, as the data `{data!r}` along axes={list(attrs.axes)}", 1)
    return identity_of_tensors(types, attrs, ctx)


OPS = (
    *(Op(name, ("data",), None, identity, E, level, needs=()) for name, level in UNARY.items()),
    *(Op(name, ("lhs", "rhs"), None, broadcast, B, level) for name, level in BINARY.items()),
    *(Op(name, ("lhs", "rhs"), None, compare, B, 4) for name in COMPARE),
    *(Op(name, ("data",), None, to_bool, E, 3) for name in TEST),
    Op("clip", ("data",), ClipAttrs, identity, E, 3, needs=(), doc="Each element, held between a_min and a_max."),
    Op("cast", ("data",), CastAttrs, cast, E, 3, doc="Each element as another type."),
    Op("reinterpret", ("data",), CastAttrs, reinterpret, E, 3, doc="Each element's bits as another type."),
    Op("cast_like", ("data", "dtype_like"), None, cast_like, E, 3),
    Op("full_like", ("data", "fill_value"), None, full_like, E, 3),
    Op("fixed_point_multiply", ("data",), FixedPointMultiplyAttrs, identity, E, 10, needs=()),
    Op(
        "fixed_point_multiply_per_axis",
        ("data", "fp_multiplier", "left_shift", "right_shift"),
        FixedPointMultiplyPerAxisAttrs,
        multiply_per_axis,
        B,
        10,
    ),
)
