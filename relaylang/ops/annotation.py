"""Marks on a program that compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, Type
from relaylang.ops.record import Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.relations import identity


@attrs_class("relay.attrs.CompilerAttrs", in_metadata=True)
class CompilerAttrs:
    compiler: str


@attrs_class("relay.attrs.CastHintAttrs", in_metadata=True)
class CastHintAttrs:
    dtype: str | None


@attrs_class("relay.attrs.WithFuncIdAttrs", in_metadata=True)
class WithFuncIdAttrs:
    fid: int = -1


@attrs_class("relay.attrs.SimulatedQuantizeAttrs")
class SimulatedQuantizeAttrs:
    kind: int
    sign: bool = True
    rounding: str = "round"


def simulated_quantize(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of at least one dimension; the scale and both bounds are scalars of float32. The result has the
    data's type.
    """
    data = tensor(types, 0, ctx)
    if not data.shape:
        ctx.fail("must have at least one dimension", 0)
    for i in range(1, 4):
        ctx.unify(i, TensorType((), "float32"))
    return data


ATTRS = {
    "bitpack_end": None,
    "bitpack_start": None,
    "cast_hint": CastHintAttrs,
    "checkpoint": None,
    "compiler_begin": CompilerAttrs,
    "compiler_end": CompilerAttrs,
    "stop_fusion": None,
}

OPS = (
    *(Op(f"annotation.{name}", ("data",), attrs, identity, level=10, needs=()) for name, attrs in ATTRS.items()),
    Op("annotation.with_funcid", ("func",), WithFuncIdAttrs, identity, level=10, needs=()),
    Op(
        "relay.op.annotation.simulated_quantize",
        ("data", "dom_scale", "clip_min", "clip_max"),
        SimulatedQuantizeAttrs,
        simulated_quantize,
        OpPattern.ELEMWISE,
        11,
        needs=(0,),
    ),
)
