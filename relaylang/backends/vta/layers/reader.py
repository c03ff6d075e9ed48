"""What VTA computes: a composite as a layer, or the reason why it stays on the CPU.

The one rule for a layer: its values are int32 (or int8, which VTA widens when it loads), and its result is int8. Bounds of
values tell where 32 bits suffice for exact results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.backends.vta.layers.requantize import requantize
from relaylang.backends.vta.layers.steps import FULL, INT8, Layer, Step, Value
from relaylang.backends.vta.layers.windows import gemm_of, read_pool, weights_inside
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.interpreter.kernels.qnn import fixed_point
from relaylang.ir import Call, Constant, Expr
from relaylang.partition.checks import dtype, op_name, shape

#: The ALU's operations of two operands, the sign of the second one, and what they make of numbers.
_BINARY: dict[str, tuple[str, int, Callable[[int, int], int]]] = {
    "add": ("ADD", 1, lambda x, y: x + y),
    "nn.bias_add": ("ADD", 1, lambda x, y: x + y),
    "subtract": ("ADD", -1, lambda x, y: x + y),
    "multiply": ("MUL", 1, lambda x, y: x * y),
    "maximum": ("MAX", 1, max),
    "minimum": ("MIN", 1, min),
    "right_shift": ("SHR", 1, lambda x, y: x >> y),
    "left_shift": ("SHR", -1, lambda x, y: x << -y),
}


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
        self.values: dict[int, Value | Expr] = {}
        self.users: dict[int, list[Call]] = {}
        for call in calls:
            for arg in call.args:
                self.users.setdefault(id(arg), []).append(call)
        self.uses = {id(self.root): 1, **{key: len(users) for key, users in self.users.items()}}
        for call in calls:
            reader = READERS.get(op_name(call))
            if reader is None:
                raise Unsupported(f"VTA has no {op_name(call)}")
            self.values[id(call)] = reader(self, call)
        self.layer.finish(self.take(self.root).slot)

    # Operands.

    def leaf(self, expr: Expr) -> Expr | None:
        """The int8 tensor from outside that an operand is, widened or not; None for a computed operand."""
        held = self.values.get(id(expr), expr)
        if isinstance(held, Value):
            return None
        if isinstance(held, Constant) or dtype(held) != "int8":
            raise Unsupported(f"an operand is {'a constant' if isinstance(held, Constant) else dtype(held)}; VTA loads int8")
        return held

    def take(self, expr: Expr) -> Value:
        """An operand in a slot that may be overwritten."""
        self.uses[id(expr)] -= 1
        leaf = self.leaf(expr)
        if leaf is not None:
            if shape(leaf) != self.layer.shape:
                raise Unsupported(f"an operand of shape {shape(leaf)} is spread to {self.layer.shape}; VTA spreads constants only")
            slot = self.layer.new()
            self.layer.steps.append(Step("load8", slot, "leaf", self.layer.leaf(leaf)))
            return Value(slot, *INT8)
        value = self.values[id(expr)]
        assert isinstance(value, Value)
        return value._replace(slot=self.layer.copy(value.slot)) if self.uses[id(expr)] else value

    def number(self, expr: Expr, what: str) -> Any:
        """A scalar constant, whole or not as its element type is."""
        if not isinstance(expr, Constant) or expr.data.size < 1 or (expr.data != expr.data.reshape(-1)[0]).any():
            raise Unsupported(f"{what} is no constant number")
        return expr.data.reshape(-1)[0].item()

    def added_to(self, value: Value, summand: int | np.ndarray) -> Value:
        """A value plus a constant, one number or one for each channel."""
        self.layer.apply("ADD", value.slot, summand)
        return value.between(value.low + int(np.min(summand)), value.high + int(np.max(summand)))

    # Rules.

    def widened(self, call: Call) -> Value | Expr:
        """A cast. The store cuts a result to 8 bits itself; values between casts are cut by two shifts."""
        source = call.args[0]
        if dtype(call) == "int32" and dtype(source) == "int8" and id(source) not in self.inside:
            return source
        if dtype(call) not in ("int8", "int32") or dtype(source) not in ("int8", "int32"):
            raise Unsupported(f"it casts {dtype(source)} to {dtype(call)}")
        value = self.take(source)
        if dtype(call) == "int32" or (value.low >= INT8[0] and value.high <= INT8[1]):
            return value
        if call is not self.root:
            for amount in (-24, 24):
                self.layer.apply("SHR", value.slot, amount)
        return Value(value.slot, *INT8)

    def binary(self, call: Call) -> Value:
        """An operation of two operands, of which one may be constant."""
        (a, b), name, rank = call.args, op_name(call), len(self.layer.shape)
        operation, sign, ends = _BINARY[name]
        if isinstance(a, Constant) and sign > 0 and operation != "SHR":
            a, b = b, a
        if dtype(call) == "int8" and name not in ("maximum", "minimum"):
            raise Unsupported(f"{name} of int8 wraps; cast to int32 before it")
        if operation == "SHR" and not 0 <= (amount := self.number(b, "the amount of a shift")) < 32:
            raise Unsupported(f"it shifts by {amount}")
        value = self.take(a)
        if isinstance(b, Constant):
            if b.data.ndim > rank:
                raise Unsupported("a constant has more axes than the result")
            axis = call.attrs.axis % rank if name == "nn.bias_add" else rank - b.data.ndim
            array = sign * b.data.astype(np.int64).reshape((1,) * axis + b.data.shape + (1,) * (rank - b.data.ndim - axis))
            low, high = int(array.min()), int(array.max())
            self.layer.apply(operation, value.slot, array)
        else:
            other = self.take(b)
            self.layer.apply("MUL", other.slot, sign)
            low, high = sorted((sign * other.low, sign * other.high))
            self.layer.combine(operation, value.slot, "slot", other.slot)
        corners = [ends(x, y) for x in (value.low, value.high) for y in (low, high)]
        return value.between(min(corners), max(corners))

    def clip(self, call: Call) -> Value:
        return self.layer.limited(self.take(call.args[0]), *_limits(call))

    def kept(self, call: Call) -> tuple[int, int] | None:
        """The interval to which a call's one user limits its values, perhaps after it adds a number; None without limits."""
        offset, node = 0, call
        while abs(offset) < 1 << 16 and len(self.users.get(id(node), ())) == 1:
            (node,) = self.users[id(node)]
            if op_name(node) in ("clip", "nn.relu") and dtype(node) == "int32":
                return tuple([limit - offset for limit in _limits(node)])  # type: ignore[return-value]
            if op_name(node) != "add" or not isinstance(node.args[1], Constant) or node.args[1].data.size != 1:
                return None
            offset += int(node.args[1].data.reshape(-1)[0])
        return None

    def product(self, call: Call) -> Value:
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
        if kernel.min() < INT8[0] or kernel.max() > INT8[1]:
            raise Unsupported("a weight less its zero point has more than 8 bits")
        gemm = gemm_of(call, kernel, shape(data), self.layer.leaf(data))
        self.layer.gemms.append(gemm)
        slot = self.layer.zeros()
        self.layer.steps.append(Step("gemm", slot, "gemm", len(self.layer.gemms) - 1))
        most = int(np.abs(kernel).sum(axis=tuple(range(1, kernel.ndim))).max())
        if zero:
            self.layer.apply("ADD", slot, -zero * weights_inside(gemm, self.layer.shape))
        return Value(slot, 0, 0).between(-most * (128 + abs(zero)), most * (128 + abs(zero)))

    def requantized(self, call: Call) -> Value:
        """`qnn.requantize`: exact for every scale."""
        if call.attrs.rounding not in ("None", "UPWARD") or call.attrs.compute_dtype not in ("None", "int64"):
            raise Unsupported(f"it rounds {call.attrs.rounding} in {call.attrs.compute_dtype}; VTA rounds upward in integers")
        scales, zero_in, scale, zero_out = call.args[1:5]
        if not isinstance(scales, Constant) or not isinstance(scale, Constant):
            raise Unsupported("a scale is no constant")
        if scales.data.size > 1 and call.attrs.axis % len(self.layer.shape) != 1:
            raise Unsupported("its scales do not lie along the channels")
        significands, exponents = fixed_point(scales.data.reshape(-1).astype(np.float64) / np.float64(scale.data))
        zeros = self.number(zero_in, "a zero point"), self.number(zero_out, "a zero point")
        return self.scaled(call, self.take(call.args[0]), significands, exponents, *zeros)

    def multiplied(self, call: Call) -> Value:
        """`fixed_point_multiply`."""
        return self.scaled(call, self.take(call.args[0]), np.array([call.attrs.multiplier]), np.array([call.attrs.shift]), 0, 0)

    def scaled(self, call: Call, value: Value, significands: np.ndarray, exponents: np.ndarray, zero_in: int, zero_out: int) -> Value:
        limits = INT8 if dtype(call) == "int8" else FULL
        wanted = (limits[0] - zero_out, limits[1] - zero_out) if dtype(call) == "int8" else self.kept(call)
        if max(-value.low, value.high) >= 1 << 30 or exponents.max() > 0:
            wanted = wanted if dtype(call) == "int8" else None  # a sum after it may wrap
        value = requantize(self.layer, self.added_to(value, -zero_in), significands, 31 - exponents, wanted)
        return self.layer.limited(self.added_to(value, zero_out), *limits)

    def added(self, call: Call) -> Value:
        """`qnn.add`: each operand in the result's scale, then their sum."""
        left, right = self.rescaled(call, 0), self.rescaled(call, 1)
        self.layer.combine("ADD", left.slot, "slot", right.slot)
        total = left.between(left.low + right.low, left.high + right.high)
        return self.layer.limited(self.added_to(total, -self.number(call.args[7], "a zero point")), *INT8)

    def rescaled(self, call: Call, operand: int) -> Value:
        """An operand of `qnn.add` in the scale and zero point of its result."""
        places = (2 + 2 * operand, 3 + 2 * operand, 6, 7)
        scale, zero, wanted, zero_out = (self.number(call.args[n], "a scale or zero point") for n in places)
        value = self.take(call.args[operand])
        if (scale, zero) == (wanted, zero_out):
            return value
        significand, exponent = fixed_point(np.array([scale]) / wanted)
        return self.added_to(requantize(self.layer, self.added_to(value, -zero), significand, 31 - exponent), zero_out)

    def pool(self, call: Call) -> Value:
        """A pool of an int8 image: the greatest number of a window, or the average, rounded towards zero."""
        leaf = self.leaf(call.args[0])
        if leaf is None:
            raise Unsupported("the input of the pool is computed in the same layer")
        numbers = [self.number(a, "a scale or zero point") for a in call.args[1:]]
        if numbers[:2] != numbers[2:]:
            raise Unsupported("its result has another scale or zero point than its input")
        return read_pool(self.layer, call, shape(leaf), self.layer.leaf(leaf))


def _limits(call: Call) -> tuple[int, int]:
    """The least and greatest result of `clip` or `nn.relu`."""
    least, greatest = FULL if dtype(call) == "int32" else INT8
    if op_name(call) == "nn.relu":
        return 0, greatest
    return int(np.ceil(max(least, call.attrs.a_min))), int(np.floor(min(greatest, call.attrs.a_max)))


#: The operators that a layer may have, each with its rule. Those with an int32 result join the layer below them.
READERS: dict[str, Callable[[_Reader, Call], Value | Expr]] = {
    **dict.fromkeys(_BINARY, _Reader.binary),
    **dict.fromkeys(("nn.conv2d", "nn.dense", "qnn.conv2d", "qnn.dense"), _Reader.product),
    **dict.fromkeys(
        ("nn.max_pool2d", "nn.avg_pool2d", "qnn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d"), _Reader.pool
    ),
    "cast": _Reader.widened,
    "clip": _Reader.clip,
    "nn.relu": _Reader.clip,
    "qnn.requantize": _Reader.requantized,
    "fixed_point_multiply": _Reader.multiplied,
    "qnn.add": _Reader.added,
}

__all__ = ["READERS", "read_layer"]
