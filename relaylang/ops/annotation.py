"""Marks on a program that compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import Type, scalar_type
from relaylang.ops.record import Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.relations import identity
from relaylang.ops.traits import Trait


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
    """Takes data of any rank; the scale and both bounds are scalars of float32. The result has the data's type."""
    data = tensor(types, 0, ctx)
    for i in range(1, 4):
        ctx.unify(i, scalar_type("float32"))
    return data


OPS = (
    Op(
        "annotation.bitpack_end",
        ("data",),
        None,
        identity,
        OpPattern.OPAQUE,
        10,
        needs=(),
        doc="Marks the end of what is computed on packed bits.",
        takes="any",
        traits={Trait.MARK, Trait.IDENTITY},
        python=None,
    ),
    Op(
        "annotation.bitpack_start",
        ("data",),
        None,
        identity,
        OpPattern.OPAQUE,
        10,
        needs=(),
        doc="Marks the begin of what is computed on packed bits.",
        takes="any",
        traits={Trait.MARK, Trait.IDENTITY},
        python=None,
    ),
    Op(
        "annotation.cast_hint",
        ("data",),
        CastHintAttrs,
        identity,
        OpPattern.OPAQUE,
        10,
        needs=(),
        doc="Says the element type that the value may be kept in.",
        takes="any",
        traits={Trait.MARK, Trait.IDENTITY},
        python=None,
    ),
    Op(
        "annotation.checkpoint",
        ("data",),
        None,
        identity,
        OpPattern.OPAQUE,
        10,
        needs=(),
        doc="Marks a value that a gradient keeps; others are computed anew.",
        takes="any",
        traits={Trait.MARK, Trait.IDENTITY, Trait.BARRIER},
    ),
    Op(
        "annotation.compiler_begin",
        ("data",),
        CompilerAttrs,
        identity,
        OpPattern.OPAQUE,
        10,
        needs=(),
        doc="Marks an input of a region for another compiler.",
        takes="any",
        traits={Trait.MARK, Trait.IDENTITY},
    ),
    Op(
        "annotation.compiler_end",
        ("data",),
        CompilerAttrs,
        identity,
        OpPattern.OPAQUE,
        10,
        needs=(),
        doc="Marks an output of a region for another compiler.",
        takes="any",
        traits={Trait.MARK, Trait.IDENTITY},
    ),
    Op(
        "annotation.stop_fusion",
        ("data",),
        None,
        identity,
        OpPattern.OPAQUE,
        10,
        needs=(),
        doc="Keeps what is in front and behind in different kernels.",
        takes="any",
        traits={Trait.MARK, Trait.IDENTITY, Trait.BARRIER, Trait.SEPARATION},
    ),
    Op(
        "annotation.with_funcid",
        ("func",),
        WithFuncIdAttrs,
        identity,
        OpPattern.OPAQUE,
        10,
        needs=(),
        doc="Names the function that the value belongs to.",
        takes="any",
        traits={Trait.MARK, Trait.IDENTITY},
        python=None,
    ),
    Op(
        "relay.op.annotation.simulated_quantize",
        ("data", "dom_scale", "clip_min", "clip_max"),
        SimulatedQuantizeAttrs,
        simulated_quantize,
        OpPattern.ELEMWISE,
        11,
        needs=(0,),
        doc="The data rounded to the steps of a scale, between two bounds.",
        takes="float same same same",
        python=None,
        example="fn (%x: Tensor[(2, 3), float32]) { relay.op.annotation.simulated_quantize(%x, 0.5f, -127f, 127f, kind=1) }",
    ),
)
