"""Softmax for the Ethos-U, read from its calls: quantized numbers, real ones in between, and quantized again."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Constant
from relaylang.partition.fixed_point import Unsupported
from relaylang.partition.targets.ethos_u.parts import BYTES, RANGES, constant, feature_type, op_name, scalar, scales

#: The scale of all probabilities: 8 bits for the numbers below 1.
OUTPUT_SCALE = 1 / 256
_MOST = 4096


@dataclass(frozen=True)
class Softmax:
    """Probabilities along an axis, as 256ths above the lowest number of `dtype`; the exponents are `scale` apart."""

    axis: int
    scale: float
    dtype: str


def read_softmax(calls: Sequence[Call]) -> Softmax:
    """qnn.dequantize [multiply by a constant] nn.softmax qnn.quantize, to the scale 1/256 and the lowest zero point."""
    first, *factors, softmax, last = calls
    source = feature_type(first.args[0], dtypes=BYTES)
    if not 1 <= len(source.shape) <= 4:
        raise Unsupported(f"an input of {len(source.shape)} axes; 1 to 4 are taken")
    input_scale, output_scale = scales(first.args[1], "its input scale"), scales(last.args[1], "its output scale")
    if input_scale.size != 1 or output_scale.size != 1:
        raise Unsupported("a scale differs between channels")
    scalar(first.args[2], "its input zero point")
    dtype = feature_type(last, "its result", BYTES).dtype
    if output_scale.flat[0] != OUTPUT_SCALE or scalar(last.args[2], "its output zero point") != RANGES[dtype][0]:
        raise Unsupported("its probabilities are not 256ths above the lowest number")
    scale = float(input_scale.flat[0])
    for call in factors:
        values = [constant(arg, "its factor") for arg in call.args if isinstance(arg, Constant)]
        if op_name(call) != "multiply" or not values or values[0].size != 1:
            raise Unsupported("a factor differs between numbers")
        scale *= float(values[0].flat[0])
    if not np.isfinite(scale) or scale <= 0:
        raise Unsupported("its scale is not a positive finite number")
    axis = int(softmax.attrs.axis) % len(source.shape)
    if not 1 <= int(source.shape[axis]) <= _MOST:  # type: ignore[arg-type]
        raise Unsupported(f"probabilities of {source.shape[axis]} numbers; at most {_MOST} are taken")
    return Softmax(axis, scale, dtype)
