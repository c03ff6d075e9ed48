"""What VTA computes: a composite as steps on tiles of sums, or the reason why it stays on the CPU.

The one rule for a layer: its values are int32 (or int8, which VTA widens when it loads), and its result is int8. Each step
changes one slot: a copy of the output's tile on the chip. Bounds of values tell where 32 bits suffice for exact results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from relaylang.backends.vta.layers.pools import average_steps, pool_of
from relaylang.backends.vta.layers.requantize import requantize
from relaylang.backends.vta.steps import FULL, Gemm, Pool, Slots, Step
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.interpreter.kernels.qnn import fixed_point
from relaylang.ir import Call, Constant, Expr
from relaylang.partition.checks import dtype, op_name, shape

#: The operators with an int32 result that join a layer below them.
JOINS = frozenset(
    "nn.conv2d nn.dense qnn.conv2d qnn.dense nn.bias_add add subtract multiply right_shift left_shift maximum minimum clip nn.relu "
    "cast qnn.requantize fixed_point_multiply nn.avg_pool2d nn.global_avg_pool2d".split()
)
_INT8 = (-128, 127)


class _Value(NamedTuple):
    """A value in a slot, and the least and greatest number that it may hold."""

    slot: int
    low: int
    high: int


@dataclass
class Layer:
    """A composite's steps. `leaves` are int8 tensors of the region, `tensors` int32 constants of the result's shape."""

    shape: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)
    slots: int = 0
    leaves: list[Expr] = field(default_factory=list)
    gemms: list[Gemm] = field(default_factory=list)
    pools: list[Pool] = field(default_factory=list)
    vectors: list[np.ndarray] = field(default_factory=list)
    tensors: list[np.ndarray] = field(default_factory=list)

    def leaf(self, expr: Expr) -> int:
        """The number of an int8 tensor among the leaves."""
        for number, known in enumerate(self.leaves):
            if known is expr:
                return number
        self.leaves.append(expr)
        return len(self.leaves) - 1


def read_layer(calls: Sequence[Call]) -> Layer:
    """The layer of a composite's calls, producers first. Raises `Unsupported`."""
    return _Reader(calls).layer


class _Reader:
    def __init__(self, calls: Sequence[Call]) -> None:
        self.root, self.inside = calls[-1], {id(call) for call in calls}
        if dtype(self.root) != "int8":
            raise Unsupported(f"its result is {dtype(self.root)}; VTA stores int8")
        extents = shape(self.root)
        if len(extents) not in (2, 4) or not all(isinstance(e, int) and e > 0 for e in extents):
            raise Unsupported(f"the result has the shape {extents}; VTA takes matrices and images of known extents")
        self.layer = Layer(extents)
        self.out = Slots(self.layer.steps)
        self.values: dict[int, _Value | Expr] = {}
        self.uses: dict[int, int] = {id(self.root): 1}
        for call in calls:
            for arg in call.args:
                self.uses[id(arg)] = self.uses.get(id(arg), 0) + 1
        for call in calls:
            reader = _READERS.get(op_name(call))
            if reader is None:
                raise Unsupported(f"VTA has no {op_name(call)}")
            self.values[id(call)] = reader(self, call)
        value = self.take(self.root)
        if value.slot:  # the result lies in the first slot
            self.out.rename(value.slot)
        self.layer.slots = self.out.count

    # Operands.

    def leaf(self, expr: Expr) -> Expr | None:
        """The int8 tensor from outside that an operand is, widened or not; None for a computed operand."""
        held = self.values.get(id(expr), expr)
        if isinstance(held, _Value):
            return None
        if isinstance(held, Constant) or dtype(held) != "int8":
            raise Unsupported(f"an operand is {'a constant' if isinstance(held, Constant) else dtype(held)}; VTA loads int8")
        return held

    def take(self, expr: Expr) -> _Value:
        """An operand in a slot that may be overwritten."""
        self.uses[id(expr)] -= 1
        leaf = self.leaf(expr)
        if leaf is not None:
            self._same_shape(leaf)
            slot = self.out.new()
            self.layer.steps.append(Step("load8", slot, "leaf", self.layer.leaf(leaf)))
            return _Value(slot, *_INT8)
        value = self.values[id(expr)]
        assert isinstance(value, _Value)
        if not self.uses[id(expr)]:
            return value
        return value._replace(slot=self.out.copy(value.slot))

    def _same_shape(self, expr: Expr) -> None:
        if shape(expr) != self.layer.shape:
            raise Unsupported(f"an operand of shape {shape(expr)} is spread to {self.layer.shape}; VTA spreads constants only")

    def number(self, expr: Expr, what: str) -> int:
        """A scalar constant."""
        if not isinstance(expr, Constant) or expr.data.size < 1 or (expr.data != expr.data.reshape(-1)[0]).any():
            raise Unsupported(f"{what} is no constant number")
        return int(expr.data.reshape(-1)[0])

    def spread(self, value: np.ndarray) -> tuple[str, int]:
        """A constant operand: a number of the instruction, a vector over channels, or a tensor in a slot."""
        full = np.broadcast_to(value, self.layer.shape).astype(np.int32)
        if (full == full.flat[0]).all() and -(1 << 15) <= full.flat[0] < 1 << 15:
            return "imm", int(full.flat[0])
        channels = np.moveaxis(full, 1, 0).reshape(full.shape[1], -1)
        if (channels == channels[:, :1]).all():
            return "vec", self.vector(channels[:, 0])
        slot = self.out.new()
        self.layer.tensors.append(full)
        self.layer.steps.append(Step("load32", slot, "tensor", len(self.layer.tensors) - 1))
        return "slot", slot

    def vector(self, values: np.ndarray) -> int:
        """The number of a vector over channels."""
        full = np.broadcast_to(np.asarray(values, np.int64), (self.layer.shape[1],)).astype(np.int32)
        for number, known in enumerate(self.layer.vectors):
            if np.array_equal(known, full):
                return number
        self.layer.vectors.append(full)
        return len(self.layer.vectors) - 1

    def apply(self, operation: str, slot: int, values: Any) -> None:
        """A step with a constant: one number, or one for each channel, shape (C,)."""
        array = np.asarray(values)
        axis = [1, -1, *[1] * (len(self.layer.shape) - 2)] if array.ndim else []
        kind, number = self.spread(array.reshape(axis) if array.ndim else array)
        self.layer.steps.append(Step(operation, slot, kind, number))

    # Rules.

    def widened(self, call: Call) -> _Value | Expr:
        """A cast. The store cuts a result to 8 bits itself; values between casts are cut by two shifts."""
        source = call.args[0]
        if dtype(call) == "int32" and dtype(source) == "int8" and id(source) not in self.inside:
            return source
        if dtype(call) not in ("int8", "int32") or dtype(source) not in ("int8", "int32"):
            raise Unsupported(f"it casts {dtype(source)} to {dtype(call)}")
        value = self.take(source)
        if dtype(call) == "int32" or (value.low >= -128 and value.high <= 127):
            return value
        if call is not self.root:
            for amount in (-24, 24):
                self.layer.steps.append(Step("SHR", value.slot, "imm", amount))
        return _Value(value.slot, *_INT8)

    def binary(self, call: Call) -> _Value:
        """An operation of two operands, of which one may be constant."""
        a, b = call.args
        name = op_name(call)
        operation = {"add": "ADD", "subtract": "ADD", "multiply": "MUL", "maximum": "MAX", "minimum": "MIN"}[name]
        if isinstance(a, Constant) and name != "subtract":
            a, b = b, a
        if dtype(call) == "int8" and name not in ("maximum", "minimum"):
            raise Unsupported(f"{name} of int8 wraps; cast to int32 before it")
        value = self.take(a)
        sign = -1 if name == "subtract" else 1
        if isinstance(b, Constant):
            array = sign * b.data.astype(np.int64)
            if array.ndim > len(self.layer.shape):
                raise Unsupported("a constant has more axes than the result")
            low, high = int(array.min()), int(array.max())
            kind, number = self.spread(array)
        else:
            other = self.take(b)
            if sign < 0:
                self.layer.steps.append(Step("MUL", other.slot, "imm", -1))
            low, high = (other.low, other.high) if sign > 0 else (-other.high, -other.low)
            kind, number = "slot", other.slot
        self.layer.steps.append(Step(operation, value.slot, kind, number))
        if kind == "slot":
            self.out.free(number)
        ends: dict[str, Callable[[int, int], int]] = {"ADD": lambda x, y: x + y, "MUL": lambda x, y: x * y, "MAX": max, "MIN": min}
        corners = [ends[operation](x, y) for x in (value.low, value.high) for y in (low, high)]
        return _held(value.slot, min(corners), max(corners))

    def bias(self, call: Call) -> _Value:
        if call.attrs.axis % len(self.layer.shape) != 1 or not isinstance(call.args[1], Constant):
            raise Unsupported("the bias is no constant along the channels")
        value, array = self.take(call.args[0]), call.args[1].data
        self.apply("ADD", value.slot, array)
        return _held(value.slot, value.low + int(array.min()), value.high + int(array.max()))

    def shift(self, call: Call) -> _Value:
        right = op_name(call) == "right_shift"
        value, amount = self.take(call.args[0]), self.number(call.args[1], "the amount of a shift")
        if not 0 <= amount < 32 or dtype(call) != "int32":
            raise Unsupported(f"it shifts {dtype(call)} by {amount}")
        self.layer.steps.append(Step("SHR", value.slot, "imm", amount if right else -amount))
        if right:
            return _Value(value.slot, value.low >> amount, value.high >> amount)
        return _held(value.slot, value.low << amount, value.high << amount)

    def clip(self, call: Call) -> _Value:
        value = self.take(call.args[0])
        whole = FULL if dtype(call) == "int32" else _INT8
        low = max(whole[0], int(np.ceil(call.attrs.a_min))) if op_name(call) == "clip" else 0
        high = min(whole[1], int(np.floor(call.attrs.a_max))) if op_name(call) == "clip" else whole[1]
        return self.limited(value, low, high)

    def limited(self, value: _Value, low: int, high: int) -> _Value:
        """A value between limits; a limit that its bounds keep anyway costs nothing."""
        if value.low < low:
            self.apply("MAX", value.slot, low)
        if value.high > high:
            self.apply("MIN", value.slot, high)
        return _Value(value.slot, min(max(value.low, low), high), max(min(value.high, high), low))

    def product(self, call: Call) -> _Value:
        """A convolution or a dense layer, with or without zero points."""
        data, weight = call.args[:2]
        if id(data) in self.inside or dtype(data) != "int8" or isinstance(data, Constant):
            raise Unsupported(
                f"the input is {dtype(data) if id(data) not in self.inside else 'computed in the same layer'}; it takes int8"
            )
        if not isinstance(weight, Constant) or dtype(weight) != "int8":
            raise Unsupported("the weight is no constant of int8")
        if dtype(call) != "int32":
            raise Unsupported(f"its sums are {dtype(call)}; VTA adds int32")
        zero, weight_zero = (self.number(a, "a zero point") for a in call.args[2:4]) if len(call.args) > 2 else (0, 0)
        kernel = weight.data.astype(np.int32) - weight_zero
        if kernel.min() < -128 or kernel.max() > 127:
            raise Unsupported("a weight less its zero point has more than 8 bits")
        gemm = _geometry(call, kernel, shape(data), self.layer.leaf(data))
        self.layer.gemms.append(gemm)
        slot = self.out.new()
        self.layer.steps += [Step("reset", slot), Step("gemm", slot, "gemm", len(self.layer.gemms) - 1)]
        most = int(np.abs(kernel).sum(axis=tuple(range(1, kernel.ndim))).max())
        low, high = -most * 128, most * 128
        if zero:
            correction = -zero * _weights_inside(gemm, self.layer.shape)
            kind, number = self.spread(correction)
            self.layer.steps.append(Step("ADD", slot, kind, number))
            if kind == "slot":
                self.out.free(number)
            low, high = low - most * abs(zero), high + most * abs(zero)
        return _held(slot, low, high)

    def requantized(self, call: Call) -> _Value:
        """`qnn.requantize`: exact for every scale."""
        if call.attrs.rounding not in ("None", "UPWARD") or call.attrs.compute_dtype not in ("None", "int64"):
            raise Unsupported(f"it rounds {call.attrs.rounding} in {call.attrs.compute_dtype}; VTA rounds upward in integers")
        scales, zero_in, scale, zero_out = call.args[1:5]
        if not isinstance(scales, Constant) or not isinstance(scale, Constant):
            raise Unsupported("a scale is no constant")
        if scales.data.size > 1 and call.attrs.axis % len(self.layer.shape) != 1:
            raise Unsupported("its scales do not lie along the channels")
        ratios = scales.data.reshape(-1).astype(np.float64) / np.float64(scale.data)
        return self.scaled(call, self.number(zero_in, "a zero point"), *fixed_point(ratios), self.number(zero_out, "a zero point"))

    def multiplied(self, call: Call) -> _Value:
        """`fixed_point_multiply`."""
        return self.scaled(call, 0, np.array([call.attrs.multiplier]), np.array([call.attrs.shift]), 0)

    def scaled(self, call: Call, zero_in: int, multipliers: np.ndarray, exponents: np.ndarray, zero_out: int) -> _Value:
        value = self.take(call.args[0])
        if zero_in:
            self.apply("ADD", value.slot, -zero_in)
            value = _held(value.slot, value.low - zero_in, value.high - zero_in)
        low, high = requantize(self.out, self.apply, value, multipliers, 31 - exponents)
        if zero_out:
            self.apply("ADD", value.slot, zero_out)
        return self.limited(_held(value.slot, low + zero_out, high + zero_out), *(_INT8 if dtype(call) == "int8" else FULL))

    def added(self, call: Call) -> _Value:
        """`qnn.add`: each operand in the result's scale, then their sum."""
        left = self.rescaled(call, 0, 2)
        right = self.rescaled(call, 1, 4)
        zero = self.number(call.args[7], "a zero point")
        self.layer.steps.append(Step("ADD", left.slot, "slot", right.slot))
        self.out.free(right.slot)
        if zero:
            self.apply("ADD", left.slot, -zero)
        return self.limited(_held(left.slot, left.low + right.low - zero, left.high + right.high - zero), *_INT8)

    def rescaled(self, call: Call, operand: int, scale: int) -> _Value:
        """An operand of `qnn.add` in the scale and zero point of its result."""
        places = (scale, scale + 1, 6, 7)
        numbers = [c.data.reshape(-1)[0] for c in map(call.args.__getitem__, places) if isinstance(c, Constant) and c.data.size == 1]
        if len(numbers) < len(places):
            raise Unsupported("a scale or zero point is no constant number")
        ours, zero, wanted, zero_out = numbers
        value = self.take(call.args[operand])
        if ours == wanted and zero == zero_out:
            return value
        if zero:
            self.apply("ADD", value.slot, -int(zero))
        shifted = _held(value.slot, value.low - int(zero), value.high - int(zero))
        significand, exponent = fixed_point(np.array([np.float64(ours) / np.float64(wanted)]))
        low, high = requantize(self.out, self.apply, shifted, significand, 31 - exponent)
        if zero_out:
            self.apply("ADD", value.slot, int(zero_out))
        return _held(value.slot, low + int(zero_out), high + int(zero_out))

    def pool(self, call: Call) -> _Value:
        """A pool of an int8 image: the greatest number of a window, or the average, rounded towards zero."""
        leaf = self.leaf(call.args[0])
        if leaf is None:
            raise Unsupported("the input of the pool is computed in the same layer")
        pool, counted = pool_of(call, shape(leaf), self.layer.leaf(leaf))
        self.layer.pools.append(pool)
        slot = self.out.new()
        self.layer.steps.append(Step("reset", slot))
        if pool.operation == "MAX":
            self.apply("ADD", slot, -128)
        self.layer.steps.append(Step("pool", slot, "pool", len(self.layer.pools) - 1))
        if pool.operation == "ADD":
            average_steps(self.out, self.apply, slot, counted)
        return _Value(slot, *_INT8)


def _held(slot: int, low: int, high: int) -> _Value:
    """A value after arithmetic in 32 bits, which wraps."""
    return _Value(slot, low, high) if FULL[0] <= low and high <= FULL[1] else _Value(slot, *FULL)


def _geometry(call: Call, kernel: np.ndarray, data: tuple[int, ...], leaf: int) -> Gemm:
    """The product of a convolution or a dense layer. Raises `Unsupported`."""
    if op_name(call).endswith("dense"):
        if len(data) != 2:
            raise Unsupported(f"its input has {len(data)} axes; VTA takes matrices")
        return Gemm(leaf, data, kernel.astype(np.int8)[:, :, None, None], (1, 1), (0, 0), (1, 1))
    attrs = call.attrs
    for name, wanted in (("data_layout", "NCHW"), ("kernel_layout", "OIHW"), ("groups", 1)):
        if getattr(attrs, name) != wanted:
            raise Unsupported(f"{name} is {getattr(attrs, name)}; VTA takes {wanted}")
    if attrs.out_layout not in ("", "NCHW"):
        raise Unsupported(f"out_layout is {attrs.out_layout}; VTA takes NCHW")
    padding = tuple(attrs.padding) * {1: 4, 2: 2, 4: 1}[len(attrs.padding)]
    if max(padding) > 15:
        raise Unsupported("it pads by more than 15")
    reach = [(size - 1) * step + 1 for size, step in zip(kernel.shape[2:], attrs.dilation)]
    if any(pad >= size for pad, size in zip(padding, reach * 2)) and max(padding):
        raise Unsupported("its padding is as large as its kernel")
    if min(data) < 1:
        raise Unsupported("its input is empty")
    return Gemm(leaf, data, kernel.astype(np.int8), tuple(attrs.strides), padding[:2], tuple(attrs.dilation))


def _weights_inside(gemm: Gemm, out: tuple[int, ...]) -> np.ndarray:
    """For each place of the output, the sum of the weights that lie on the input and not on padding, shape (1, O, H, W)."""
    sums = gemm.weight.astype(np.int64).sum(axis=1)
    if len(out) == 2:
        return sums[None, :, 0, 0]
    inside = []
    for axis in (0, 1):
        places = np.arange(out[2 + axis])[:, None] * gemm.strides[axis] - gemm.padding[axis]
        taps = places + np.arange(gemm.weight.shape[2 + axis]) * gemm.dilation[axis]
        inside.append(((taps >= 0) & (taps < gemm.data[2 + axis])).astype(np.int64))
    return np.einsum("okl,yk,xl->oyx", sums, *inside)[None]


_BINARY = dict.fromkeys(("add", "subtract", "multiply", "maximum", "minimum"), _Reader.binary)
_PRODUCTS = dict.fromkeys(("nn.conv2d", "nn.dense", "qnn.conv2d", "qnn.dense"), _Reader.product)
_POOLS = dict.fromkeys(("nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d"), _Reader.pool)
#: The operators that a layer may have, each with its rule.
_READERS: dict[str, Callable[[_Reader, Call], _Value | Expr]] = {
    **_BINARY,
    **_PRODUCTS,
    **_POOLS,
    "cast": _Reader.widened,
    "nn.bias_add": _Reader.bias,
    "right_shift": _Reader.shift,
    "left_shift": _Reader.shift,
    "clip": _Reader.clip,
    "nn.relu": _Reader.clip,
    "qnn.requantize": _Reader.requantized,
    "fixed_point_multiply": _Reader.multiplied,
    "qnn.add": _Reader.added,
}

__all__ = ["JOINS", "Layer", "read_layer"]
