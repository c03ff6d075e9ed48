"""Operators on each element: arithmetic, comparison, logic, and the functions of one variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, Type
from relaylang.ops.record import Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.relations import broadcast, compare, identity, identity_of_tensors, to_bool
from relaylang.ops.shapes import bits_of, need_scalar, norm_axis, product, same_dim
from relaylang.ops.traits import Fact, Trait

E, B = OpPattern.ELEMWISE, OpPattern.BROADCAST


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
    """Takes data, and a multiplier and two shifts for each of its entries along axes. The result has the data's type."""
    data, multiplier = tensor(types, 0, ctx), tensor(types, 1, ctx)
    count = product([data.shape[norm_axis(a, len(data.shape), ctx)] for a in attrs.axes])
    if multiplier.shape and not same_dim(count, multiplier.shape[0]):
        ctx.fail(f"must have {count} entries, as the data `{data!r}` along axes={list(attrs.axes)}", 1)
    return identity_of_tensors(types, attrs, ctx)


def unary(name: str, level: int, doc: str, *traits: Fact, **facts: AnyValue) -> Op:
    """A function of each element, whose result has the data's type."""
    return Op(name, ("data",), None, identity, E, level, needs=(), doc=doc, traits={Trait.UNARY, *traits}, **facts)


def test(name: str, doc: str) -> Op:
    """A test of each element, whose result is of bool."""
    return Op(name, ("data",), None, to_bool, E, 3, doc=doc, traits={Trait.UNARY})


def binary(name: str, level: int, doc: str, *traits: Fact, **facts: AnyValue) -> Op:
    """A function of two broadcast tensors of one element type, whose result has that element type."""
    known = {Trait.BINARY, Trait.BROADCAST, *traits}
    return Op(name, ("lhs", "rhs"), None, broadcast, B, level, doc=doc, traits=known, **facts)


def comparison(name: str, symbol: str, doc: str, *traits: Fact) -> Op:
    """A comparison of two broadcast tensors of one element type, whose result is of bool."""
    known = {Trait.BINARY, Trait.BROADCAST, Trait.COMPARISON, *traits}
    return Op(name, ("lhs", "rhs"), None, compare, B, 4, doc=doc, traits=known, symbol=symbol)


SYMMETRIC = (Trait.COMMUTATIVE, Trait.ASSOCIATIVE)
ROUNDING = (Trait.MONOTONE, Trait.IDEMPOTENT)

OPS = (
    unary("abs", 3, "The absolute value of each element.", Trait.IDEMPOTENT),
    unary("acos", 1, "The arc cosine of each element."),
    unary("acosh", 1, "The inverse hyperbolic cosine of each element.", Trait.MONOTONE),
    unary("asin", 1, "The arc sine of each element.", Trait.MONOTONE),
    unary("asinh", 1, "The inverse hyperbolic sine of each element.", Trait.MONOTONE),
    unary("atan", 1, "The arc tangent of each element.", Trait.MONOTONE),
    unary("atanh", 1, "The inverse hyperbolic tangent of each element.", Trait.MONOTONE),
    unary("bitwise_not", 4, "The complement of each element's bits.", takes="whole"),
    unary("ceil", 3, "The smallest whole number not below each element.", *ROUNDING),
    unary("copy", 3, "The data as it is.", Trait.IDENTITY, *ROUNDING),
    unary("cos", 1, "The cosine of each element."),
    unary("cosh", 1, "The hyperbolic cosine of each element."),
    unary("erf", 1, "The error function of each element.", Trait.MONOTONE),
    unary("exp", 1, "The exponential function of each element.", Trait.MONOTONE),
    unary("fast_erf", 1, "The error function of each element, by a polynomial.", Trait.FAST, of="erf", python=None),
    unary("fast_exp", 1, "The exponential of each element, by a polynomial.", Trait.FAST, of="exp", python=None),
    unary(
        "fast_tanh",
        1,
        "The hyperbolic tangent of each element, by a quotient of polynomials.",
        Trait.FAST,
        of="tanh",
        python=None,
    ),
    unary("floor", 3, "The largest whole number not above each element.", *ROUNDING),
    unary("log", 1, "The natural logarithm of each element.", Trait.MONOTONE),
    unary("log10", 1, "The logarithm to base 10 of each element.", Trait.MONOTONE),
    unary("log2", 1, "The logarithm to base 2 of each element.", Trait.MONOTONE),
    unary("logical_not", 4, "Whether each element is zero."),
    unary("negative", 3, "Each element with the other sign."),
    unary("ones_like", 4, "Another tensor's type filled with 1.", Trait.FILL, Trait.LIKE, of="ones"),
    unary("round", 3, "The whole number nearest to each element, halves away from zero.", *ROUNDING),
    unary("rsqrt", 1, "One divided by the square root of each element."),
    unary("sigmoid", 1, "1 / (1 + exp(-x)) of each element.", Trait.MONOTONE),
    unary("sign", 3, "The sign of each element: -1, 0 or 1.", *ROUNDING),
    unary("sin", 1, "The sine of each element."),
    unary("sinh", 1, "The hyperbolic sine of each element.", Trait.MONOTONE),
    unary("sqrt", 1, "The square root of each element.", Trait.MONOTONE),
    unary("tan", 1, "The tangent of each element."),
    unary("tanh", 1, "The hyperbolic tangent of each element.", Trait.MONOTONE),
    unary("trunc", 3, "The whole part of each element.", *ROUNDING),
    unary("zeros_like", 4, "Another tensor's type filled with 0.", Trait.FILL, Trait.LIKE, of="zeros"),
    test("isfinite", "Whether each element is a finite number."),
    test("isinf", "Whether each element is infinite."),
    test("isnan", "Whether each element is not a number."),
    binary("add", 1, "lhs + rhs, element by element.", *SYMMETRIC, symbol="+"),
    binary("bitwise_and", 4, "The bits that both have, element by element.", *SYMMETRIC, takes="whole whole"),
    binary("bitwise_or", 4, "The bits that either has, element by element.", *SYMMETRIC, takes="whole whole"),
    binary("bitwise_xor", 4, "The bits that one of both has, element by element.", *SYMMETRIC, takes="whole whole"),
    binary("divide", 1, "lhs / rhs, element by element; whole numbers are rounded towards zero.", symbol="/"),
    binary("floor_divide", 1, "lhs / rhs, rounded down, element by element."),
    binary("floor_mod", 1, "The remainder of floor_divide, with the sign of rhs, element by element."),
    binary("left_shift", 4, "lhs with its bits moved up by rhs, element by element.", takes="whole whole"),
    binary("logical_and", 4, "Whether both hold, element by element.", *SYMMETRIC),
    binary("logical_or", 4, "Whether either holds, element by element.", *SYMMETRIC),
    binary("logical_xor", 4, "Whether one of both holds, element by element.", *SYMMETRIC),
    binary("maximum", 4, "The larger of both, element by element.", *SYMMETRIC),
    binary("minimum", 4, "The smaller of both, element by element.", *SYMMETRIC),
    binary("mod", 1, "The remainder of the division rounded towards zero, with the sign of lhs, element by element."),
    binary("multiply", 1, "lhs * rhs, element by element.", *SYMMETRIC, symbol="*"),
    binary("power", 4, "lhs to the power of rhs, element by element."),
    binary("right_shift", 4, "lhs with its bits moved down by rhs, element by element.", takes="whole whole"),
    binary("subtract", 1, "lhs - rhs, element by element.", symbol="-"),
    binary("trunc_divide", 1, "lhs / rhs, rounded towards zero, element by element."),
    binary("trunc_mod", 1, "The remainder of trunc_divide, with the sign of lhs, element by element."),
    comparison("equal", "==", "Whether lhs == rhs, element by element.", Trait.COMMUTATIVE),
    comparison("greater", ">", "Whether lhs > rhs, element by element."),
    comparison("greater_equal", ">=", "Whether lhs >= rhs, element by element."),
    comparison("less", "<", "Whether lhs < rhs, element by element."),
    comparison("less_equal", "<=", "Whether lhs <= rhs, element by element."),
    comparison("not_equal", "!=", "Whether lhs != rhs, element by element.", Trait.COMMUTATIVE),
    Op(
        "clip",
        ("data",),
        ClipAttrs,
        identity,
        E,
        3,
        needs=(),
        doc="Each element, held between a_min and a_max.",
        traits={Trait.UNARY, *ROUNDING},
        python="(a, a_min, a_max)",
    ),
    Op("cast", ("data",), CastAttrs, cast, E, 3, doc="Each element as another type.", traits={Trait.UNARY}),
    Op(
        "reinterpret",
        ("data",),
        CastAttrs,
        reinterpret,
        E,
        3,
        doc="Each element's bits as another type.",
        traits={Trait.UNARY},
    ),
    Op(
        "cast_like",
        ("data", "dtype_like"),
        None,
        cast_like,
        E,
        3,
        doc="Each element as the element type of another tensor.",
        traits={Trait.LIKE},
        of="cast",
    ),
    Op(
        "full_like",
        ("data", "fill_value"),
        None,
        full_like,
        E,
        3,
        doc="Another tensor's type filled with one number.",
        traits={Trait.FILL, Trait.LIKE},
        of="full",
    ),
    Op(
        "fixed_point_multiply",
        ("data",),
        FixedPointMultiplyAttrs,
        identity,
        E,
        10,
        needs=(),
        doc="Each whole number times multiplier * 2 ** (shift - 31), rounded.",
        takes="integer",
        traits={Trait.UNARY},
    ),
    Op(
        "fixed_point_multiply_per_axis",
        ("data", "fp_multiplier", "left_shift", "right_shift"),
        FixedPointMultiplyPerAxisAttrs,
        multiply_per_axis,
        B,
        10,
        doc="Whole numbers times a multiplier and shifts for each index along axes, rounded.",
        takes="integer integer[n] integer[n] integer[n]",
        python=None,
        example="fn (%x: Tensor[(2, 3), int32], %m: Tensor[(3), int32], %l: Tensor[(3), int32], %r: Tensor[(3), int32]) { "
        "fixed_point_multiply_per_axis(%x, %m, %l, %r, is_lshift_required=True, is_rshift_required=True, axes=[1]) }",
    ),
)
