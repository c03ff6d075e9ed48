"""Random numbers from explicit keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, TupleType, Type
from relaylang.ops.record import Integer, Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import need_entries

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
class NormalAttrs:
    out_shape: Ints
    out_dtype: str | None = None


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
    """Takes key (10,) of uint64, both parameters scalars of out_dtype, float32 or float64; the result is a tuple (new
    key, numbers of out_shape and out_dtype).
    """
    if attrs.out_dtype not in ("float32", "float64"):
        ctx.fail(f"out_dtype must be float32 or float64, not {attrs.out_dtype}")
    ctx.unify(0, KEY)
    ctx.unify(1, TensorType((), attrs.out_dtype))
    ctx.unify(2, TensorType((), attrs.out_dtype))
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
    Op("random.threefry_generate", ("key",), ThreefryGenerateAttrs, generate, OPAQUE, 10, needs=()),
    Op("random.threefry_split", ("key",), None, split, OPAQUE, 10, needs=()),
    Op("random.uniform", ("key", "low", "high"), UniformAttrs, distribution, OPAQUE, 10, needs=()),
    Op("random.normal", ("key", "mean", "scale"), NormalAttrs, distribution, OPAQUE, 10, needs=()),
    Op("random.multinomial", ("key", "probs"), MultinomialAttrs, multinomial, OPAQUE, 10, needs=(1,)),
)
