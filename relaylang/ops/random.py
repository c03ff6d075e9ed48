"""Random numbers from explicit keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, TupleType, Type, scalar_type
from relaylang.ops.record import Integer, Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import need_entries
from relaylang.ops.traits import Trait

OPAQUE = OpPattern.OPAQUE
KEY = TensorType((10,), "uint64")


@attrs_class("relay.attrs.ThreefryGenerateAttrs")
class ThreefryGenerateAttrs:
    out_shape: Ints


@attrs_class("relay.attrs.UniformAttrs")
class UniformAttrs:
    out_shape: Ints
    out_dtype: str | None = None


@attrs_class("relay.attrs.NormalAttrs")
class NormalAttrs(UniformAttrs):
    pass


@attrs_class("relay.attrs.MultinomialAttrs")
class MultinomialAttrs:
    num_samples: Integer = 1


def generate(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes key (10,) of uint64; the result is a tuple (new key, out_shape of uint64)."""
    ctx.unify(0, KEY)
    return TupleType((KEY, TensorType(attrs.out_shape, "uint64")))


def split(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes key (10,) of uint64; the result is a tuple of two keys."""
    ctx.unify(0, KEY)
    return TupleType((KEY, KEY))


def distribution(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes key (10,) of uint64, both parameters scalars of out_dtype, float32 or float64. The result is a tuple (new
    key, numbers of out_shape and out_dtype).
    """
    if attrs.out_dtype is None:
        ctx.fail("out_dtype must be float32 or float64, but is not given")
    ctx.unify(0, KEY)
    ctx.unify(1, scalar_type(attrs.out_dtype))
    ctx.unify(2, scalar_type(attrs.out_dtype))
    return TupleType((KEY, TensorType(attrs.out_shape, attrs.out_dtype)))


def multinomial(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes key (10,) of uint64, probs (..., classes); the result is a tuple (new key, (..., num_samples) of int32)."""
    probs = tensor(types, 1, ctx)
    if not probs.shape:
        ctx.fail("must have at least one dimension", 1)
    ctx.unify(0, KEY)
    shape = (*probs.shape[:-1], attrs.num_samples)
    need_entries(probs.shape[-1:], shape, probs, 1, ctx)
    return TupleType((KEY, TensorType(shape, "int32")))


OPS = (
    Op(
        "random.threefry_generate",
        ("key",),
        ThreefryGenerateAttrs,
        generate,
        OPAQUE,
        10,
        needs=(),
        doc="Random words, and the key behind them.",
        traits={Trait.RANDOM},
        python="(key, shape: out_shape)",
    ),
    Op(
        "random.threefry_split",
        ("key",),
        None,
        split,
        OPAQUE,
        10,
        needs=(),
        doc="Two independent keys from one.",
        traits={Trait.RANDOM},
    ),
    Op(
        "random.uniform",
        ("key", "low", "high"),
        UniformAttrs,
        distribution,
        OPAQUE,
        10,
        needs=(),
        doc="Numbers drawn evenly from low to high.",
        traits={Trait.RANDOM},
        python="(key, shape: out_shape, dtype: out_dtype = 'float32', low=0.0, high=1.0)",
        example='fn (%key: Tensor[(10), uint64]) { random.uniform(%key, 0f, 1f, out_shape=[2, 3], out_dtype="float32") }',
    ),
    Op(
        "random.normal",
        ("key", "mean", "scale"),
        NormalAttrs,
        distribution,
        OPAQUE,
        10,
        needs=(),
        doc="Normally distributed numbers.",
        traits={Trait.RANDOM},
        python="(key, shape: out_shape, dtype: out_dtype = 'float32', mean=0.0, scale=1.0)",
        example='fn (%key: Tensor[(10), uint64]) { random.normal(%key, 0f, 1f, out_shape=[2, 3], out_dtype="float32") }',
    ),
    Op(
        "random.multinomial",
        ("key", "probs"),
        MultinomialAttrs,
        multinomial,
        OPAQUE,
        10,
        needs=(1,),
        doc="Indices drawn by their probabilities.",
        takes="tensor float",
        traits={Trait.RANDOM},
        python="(..., num_samples)",
        example="fn (%key: Tensor[(10), uint64], %probabilities: Tensor[(4), float32], %indices: Tensor[(3), int32]) { "
        "random.multinomial(%key, %probabilities, num_samples=3) }",
    ),
)
