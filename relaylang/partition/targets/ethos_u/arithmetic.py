"""Element-wise layers for the Ethos-U, read from their calls."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Constant
from relaylang.partition.fixed_point import IDENTITY, Rescale, Unsupported, make_rescale
from relaylang.partition.targets.ethos_u.parts import (
    RANGES,
    Output,
    clamp_of,
    feature_type,
    in_range,
    narrow,
    scalar,
    scales,
    spread_of,
    tail,
)


@dataclass(frozen=True)
class Operand:
    """One input of an addition or concatenation and how it gets to the output's scale."""

    input_zp: int
    rescale: Rescale


@dataclass(frozen=True)
class Add:
    """The sum of two rescaled operands, plus `output_zp`, saturated and clamped."""

    operands: tuple[Operand, Operand]
    output_zp: int
    out: Output


@dataclass(frozen=True)
class Elementwise:
    """A requantize, clip or relu of an (u)int8 or int32 tensor."""

    input_zp: int
    out: Output


def read_add(calls: Sequence[Call]) -> Add:
    """qnn.add [clip | nn.relu | cast]*: both sides are brought to the output's scale in int32 and added there."""
    call, *rest = calls
    result = feature_type(call, "its result")
    output_scale = scales(call.args[6], "its output scale")
    output_zp = in_range(scalar(call.args[7], "its output zero point"), result.dtype, "the output zero point")
    sides = []
    for name, data, scale, zero_point in (("left", 0, 2, 3), ("right", 1, 4, 5)):
        source = feature_type(call.args[data], f"its {name} side")
        if isinstance(call.args[data], Constant):
            raise Unsupported(f"its {name} side is a constant")
        if len(source.shape) != len(result.shape):
            raise Unsupported(f"its {name} side has {len(source.shape)} axes, the result {len(result.shape)}")
        zp = scalar(call.args[zero_point], f"the zero point of its {name} side")
        sides.append(operand(source.dtype, scales(call.args[scale], f"the scale of its {name} side"), zp,
                              output_scale, output_zp, 0))  # fmt: skip
    low, high, dtype = narrow(rest, *RANGES[result.dtype], result.dtype)
    if dtype != result.dtype:
        raise Unsupported(f"a cast to {dtype} behind it")
    return Add((sides[0], sides[1]), output_zp, Output(dtype, None, clamp_of(low, high, dtype)))


def operand(
    dtype: str, scale: np.ndarray, zero_point: int, output_scale: np.ndarray, output_zp: int, added: int
) -> Operand:
    """An input's way to another scale; `added` is the zero point that is added behind the rescale."""
    in_range(zero_point, dtype, "an input zero point")
    if scale.size != 1 or output_scale.size != 1:
        raise Unsupported("a scale differs between channels")
    if np.float32(scale.flat[0]) == np.float32(output_scale.flat[0]):
        return Operand(zero_point, Rescale((IDENTITY[0],), (IDENTITY[1],), added))
    limit = np.array([spread_of(dtype, zero_point)])
    return Operand(zero_point, make_rescale(scale.reshape(()), output_scale.flat[0], added, limit))


def read_requantize(calls: Sequence[Call]) -> Elementwise:
    """qnn.requantize [clip | nn.relu | cast]* of an int8, uint8 or int32 tensor."""
    first = calls[0]
    source = feature_type(first.args[0], dtypes=("int8", "uint8", "int32"))
    input_zp = scalar(first.args[2], "its input zero point")
    if source.dtype == "int32":
        if input_zp != 0:
            raise Unsupported("an int32 input wants the zero point 0")
        bound = 1 << 31
    else:
        bound = spread_of(source.dtype, in_range(input_zp, source.dtype, "the input zero point"))
    return Elementwise(input_zp, tail(calls, np.array([bound], dtype=object)))


def read_clamp(calls: Sequence[Call]) -> Elementwise:
    """[clip | nn.relu]+ of an int8 or uint8 tensor."""
    source = feature_type(calls[0].args[0])
    low, high, dtype = narrow(calls, *RANGES[source.dtype], source.dtype)
    return Elementwise(0, Output(dtype, None, clamp_of(low, high, dtype)))
