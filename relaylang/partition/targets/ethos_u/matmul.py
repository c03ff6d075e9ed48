"""Products of two computed matrices for the Ethos-U, read from their calls."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call
from relaylang.partition.fixed_point import Unsupported
from relaylang.partition.targets.ethos_u.parts import (
    Output,
    constant,
    feature_type,
    in_range,
    op_name,
    scalar,
    spread_of,
    tail,
    tensor_of,
)


@dataclass(frozen=True)
class MatMul:
    """Products of matrices, or of batches of them, then `out`; each side may be `turned`, as (rows, sums) is not."""

    zero_points: tuple[int, int]
    turned: tuple[bool, bool]
    out: Output


def read_matmul(calls: Sequence[Call]) -> MatMul:
    """qnn.batch_matmul or qnn.dense of two tensors [qnn.requantize [clip | nn.relu | cast]*]"""
    call, *rest = calls
    batches = op_name(call) == "qnn.batch_matmul"
    # A dense layer's weight is (units, inputs), and so is the second matrix of a batch where it is transposed.
    turned = (bool(call.attrs.transpose_a), bool(call.attrs.transpose_b)) if batches else (False, True)
    types = [feature_type(arg, f"its {name} side") for arg, name in zip(call.args, ("left", "right"))]
    if {len(ty.shape) for ty in types} != {3 if batches else 2}:
        raise Unsupported(f"sides of {len(types[0].shape)} and {len(types[1].shape)} axes")
    if batches and types[0].shape[0] != types[1].shape[0]:
        raise Unsupported("a side that is the same for all batches")
    if tensor_of(call, "its result").dtype != "int32":
        raise Unsupported(f"out_dtype {tensor_of(call, 'its result').dtype}; the accelerator sums in int32")
    left, right = (
        in_range(scalar(arg, "a zero point"), ty.dtype, "a zero point") for arg, ty in zip(call.args[2:4], types)
    )
    count = int(types[0].shape[-2 if turned[0] else -1])  # type: ignore[arg-type]
    bound = count * spread_of(types[0].dtype, left) * spread_of(types[1].dtype, right)
    if bound >= 1 << 31:
        raise Unsupported("its sums may leave the range of int32")
    behind = [c for c in rest if op_name(c) == "qnn.requantize"][:1]
    if behind and scalar(behind[0].args[2], "its input zero point") != 0:
        raise Unsupported("an int32 input wants the zero point 0")
    if behind and constant(behind[0].args[1], "its input scale").size != 1:
        raise Unsupported("scales of channels behind a product of two tensors")
    return MatMul((left, right), turned, tail(rest, np.array([bound])))
