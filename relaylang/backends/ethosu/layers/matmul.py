"""Products of two computed matrices for the Ethos-U."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.convolutions import out_of_sums
from relaylang.backends.ethosu.layers.operands import (
    BYTES,
    RANGES,
    Output,
    clamp_of,
    constant,
    feature_type,
    in_range,
    narrow,
    op_name,
    scalar,
    spread_of,
    tail,
    tensor_of,
)
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Expr
from relaylang.partition.fixed_point import power_rescale

#: Operators that multiply matrices of whole numbers as they are stored.
PRODUCTS = ("nn.batch_matmul", "nn.matmul", "nn.dense")


@dataclass(frozen=True)
class MatMul:
    """Products of matrices, or of batches of them, then `out`; each side may be `turned`, as (rows, sums) is not."""

    sides: tuple[Expr, Expr]
    zero_points: tuple[int, int]
    turned: tuple[bool, bool]
    out: Output


def read_matmul(calls: Sequence[Call]) -> MatMul:
    """qnn.batch_matmul or qnn.dense of two tensors [qnn.requantize [clip | nn.relu | cast]*]"""
    call, *rest = calls
    batches = op_name(call) == "qnn.batch_matmul"
    # A dense layer's weight is (units, inputs), and so is the second matrix of a batch where it is transposed.
    turned = (bool(call.attrs.transpose_a), bool(call.attrs.transpose_b)) if batches else (False, True)
    types = [feature_type(arg, f"its {name} side", BYTES) for arg, name in zip(call.args, ("left", "right"))]
    if {len(ty.shape) for ty in types} != {3 if batches else 2}:
        raise Unsupported(f"sides of {len(types[0].shape)} and {len(types[1].shape)} axes")
    if batches and types[0].shape[0] != types[1].shape[0]:
        raise Unsupported("a side that is the same for all batches")
    if tensor_of(call, "its result").dtype != "int32":
        raise Unsupported(f"out_dtype {tensor_of(call, 'its result').dtype}; the accelerator sums in int32")
    left, right = (in_range(scalar(arg, "a zero point"), ty.dtype, "a zero point") for arg, ty in zip(call.args[2:4], types))
    count = int(types[0].shape[-2 if turned[0] else -1])  # type: ignore[arg-type]
    bound = count * spread_of(types[0].dtype, left) * spread_of(types[1].dtype, right)
    if bound >= 1 << 31:
        raise Unsupported("its sums may leave the range of int32")
    behind = [c for c in rest if op_name(c) == "qnn.requantize"][:1]
    if behind and scalar(behind[0].args[2], "its input zero point") != 0:
        raise Unsupported("an int32 input wants the zero point 0")
    if behind and constant(behind[0].args[1], "its input scale").size != 1:
        raise Unsupported("scales of channels behind a product of two tensors")
    return MatMul((call.args[0], call.args[1]), (left, right), turned, tail(rest, np.array([bound])))


@dataclass(frozen=True)
class WideMatMul(MatMul):
    """A product of two tensors of int16."""


def read_widened(calls: Sequence[Call]) -> MatMul:
    """nn.batch_matmul, nn.matmul or nn.dense of two tensors cast to int32 or int64, then the calls behind a convolution.

    Or nn.batch_matmul or another that makes such sums of 8 or 16 bits itself.
    """
    product = next(call for call in calls if op_name(call) in PRODUCTS)
    sums = tensor_of(product, "its result").dtype
    if sums not in ("int32", "int64"):
        raise Unsupported(f"sums of {sums}")
    inside = {id(call) for call in calls}
    sides = [side.args[0] if id(side) in inside and isinstance(side, Call) else side for side in product.args]
    types = [feature_type(side, f"its {name} side") for side, name in zip(sides, ("left", "right"))]
    if types[0].dtype != types[1].dtype and "int16" in (types[0].dtype, types[1].dtype):
        raise Unsupported(f"sides of {types[0].dtype} and {types[1].dtype}")
    if any(tensor_of(side, "a side").dtype != sums for side in product.args if id(side) in inside):
        raise Unsupported("a side is cast to another type than that of the sums")
    _check_shapes(types[0].shape, types[1].shape)
    turned = (False, True) if op_name(product) == "nn.dense" else (bool(product.attrs.transpose_a), bool(product.attrs.transpose_b))
    count = int(types[0].shape[-2 if turned[0] else -1])  # type: ignore[arg-type]
    bound = count * spread_of(types[0].dtype, 0) * spread_of(types[1].dtype, 0)
    rest = calls[calls.index(product) + 1 :]
    _check_behind(rest)
    out = out_of_sums(rest, np.array([bound]), types[0].dtype, sums)
    if out.rescale is not None and len(out.rescale.shifts) > 1:
        raise Unsupported("scales of channels behind a product of two tensors")
    kind = WideMatMul if types[0].dtype == "int16" else MatMul
    return kind((sides[0], sides[1]), (0, 0), turned, out)


def _check_shapes(left: Sequence[object], right: Sequence[object]) -> None:
    """Raise `Unsupported` for sides of other shapes than the NPU multiplies."""
    if len(left) != len(right) or not 2 <= len(left) <= 3:
        raise Unsupported(f"sides of {len(left)} and {len(right)} axes")
    if len(left) == 3 and left[0] != right[0]:
        raise Unsupported("a side that is the same for all batches")


def _check_behind(calls: Sequence[Call]) -> None:
    """Raise `Unsupported` for calls that may not stand behind a product of two tensors."""
    if calls and op_name(calls[0]) in ("nn.bias_add", "add"):
        raise Unsupported("a bias behind a product of two tensors")
    scaled = next((c for c in calls if op_name(c) == "qnn.requantize"), None)
    if scaled is not None and scalar(scaled.args[2], "its input zero point") != 0:
        raise Unsupported("an int32 input wants the zero point 0")


def read_fixed_point(calls: Sequence[Call]) -> MatMul:
    """nn.dense of two tensors cast to int32, whose factors leave them as they are. Behind it stand a factor and a cast."""
    dense = next(call for call in calls if op_name(call) == "nn.dense")
    widened = [_unscaled(factor) for factor in dense.args]
    types = [feature_type(cast.args[0], f"its {name} side", BYTES) for cast, name in zip(widened, ("left", "right"))]
    if {tensor_of(call, "a sum").dtype for call in (*widened, dense)} != {"int32"}:
        raise Unsupported("it is taken on int32 only")
    count = int(types[0].shape[1])  # type: ignore[arg-type]
    bound = count * spread_of(types[0].dtype, 0) * spread_of(types[1].dtype, 0)
    factor, *rest = calls[calls.index(dense) + 1 :]
    rescale = power_rescale(factor.attrs.multiplier, factor.attrs.shift, bound)
    most = (bound * rescale.multipliers[0] >> rescale.shifts[0]) + 1
    low, high, dtype = narrow(rest, -most, most, "int32")
    return MatMul((widened[0].args[0], widened[1].args[0]), (0, 0), (False, True), Output(dtype, rescale, clamp_of(low, high, dtype)))


def _unscaled(factor: Expr) -> Call:
    """The cast below a `fixed_point_multiply` that leaves all its numbers as they are."""
    assert isinstance(factor, Call)
    (cast,) = factor.args
    assert isinstance(cast, Call)
    low, high = RANGES[feature_type(cast.args[0], dtypes=BYTES).dtype]
    numbers = np.arange(low, high + 1)
    rescale = power_rescale(factor.attrs.multiplier, factor.attrs.shift, max(-low, high))
    if not np.array_equal(rescale.apply(numbers), numbers):
        raise Unsupported("a side has a factor other than 1")
    return cast


def matmul(w: Writer, layer: MatMul, at: Composite) -> Value:
    values = [at.operand(node) for node in layer.sides]

    def matrices(value: Value, turned: bool) -> Tensor:
        rank = len(value.shape)
        x = w.in_order(value, (*range(rank - 2), rank - 1, rank - 2) if turned else None)
        return w.graph.reshape(x, (1,) * (3 - rank) + x.shape)

    left, right = (matrices(value, turned) for value, turned in zip(values, layer.turned))
    zero_points = [zero_point - value.offset for zero_point, value in zip(layer.zero_points, values)]
    out = w.finish(w.graph.matmul(left, right, *zero_points), layer.out)
    return Value(layer.out.dtype, {tuple(range(len(at.shape))): w.graph.reshape(out, at.shape)})
