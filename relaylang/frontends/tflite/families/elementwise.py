"""Element-wise operators: arithmetic, comparison, logic, activations, element types."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.tflite import integers
from relaylang.frontends.tflite.integers import STORED, is_whole, requantized
from relaylang.frontends.tflite.node import Complex, Node
from relaylang.frontends.tflite.tensors import PARTS
from relaylang.ir import Expr
from relaylang.ops.shapes import is_float_dtype


def unary(op: str) -> Callable[[Node], Any]:
    """An operator of one operand, on real numbers."""
    return lambda n: n.result(n.b.op(op, n.real(0)))


def binary(op: str) -> Callable[[Node], Any]:
    """An operator of two operands, on real numbers."""
    return lambda n: n.result(n.b.op(op, n.real(0), n.real(1)))


def compare(op: str) -> Callable[[Node], Any]:
    """A comparison of real numbers; of the stored integers where both operands are stored alike."""

    def convert(n: Node) -> Any:
        q, p = n.q(0), n.q(1)
        if q is not None and p is not None and np.array_equal(q.scales, p.scales) and np.array_equal(q.zero_points, p.zero_points):
            return n.b.op(op, n.x(0), n.x(1))
        return n.b.op(op, n.real(0), n.real(1))

    return convert


def divide(n: Node) -> Any:
    x, y = n.real(0), n.real(1)
    return n.result(n.b.op("divide" if "float" in n.b.dtype(x) else "trunc_divide", x, y))


def add_n(n: Node) -> Any:
    return n.result(reduce(lambda a, c: n.b.op("add", a, c), (n.real(i) for i in range(len(n)))))


def squared_difference(n: Node) -> Any:
    d = n.b.op("subtract", n.real(0), n.real(1))
    return n.result(n.b.op("multiply", d, d))


def square(n: Node) -> Any:
    return n.result(n.b.op("multiply", n.real(0), n.real(0)))


def relu(n: Node, low: float | None = 0.0, high: float | None = None) -> Any:
    """Integers get the result's scale, and are held to the bounds as they are stored there."""
    q, p = n.q(0), n.q_out()
    if is_whole(n, 0, dtypes=STORED) and q is not None and p is not None:
        info, scale, zero = np.iinfo(n.out_dtype()), float(p.scales[0]), int(p.zero_points[0])
        ends = [info.min if low is None else zero + round(low / scale), info.max if high is None else zero + round(high / scale)]
        converted = n.x(0) if n.same_scales() else requantized(n, n.x(0), q.scales, int(q.zero_points[0]))
        return n.b.op("clip", converted, a_min=float(max(ends[0], info.min)), a_max=float(min(ends[1], info.max)))
    return n.result(nn.clip(n.b, n.real(0), low, high) if high is not None else n.b.op("nn.relu", n.real(0)))


def leaky_relu(n: Node) -> Any:
    if is_whole(n, 0):
        return n.b.op("qnn.leaky_relu", n.x(0), *integers.scales(n, 0), alpha=n.options["alpha"])
    return n.result(n.b.op("nn.leaky_relu", n.real(0), alpha=n.options["alpha"]))


def prelu(n: Node) -> Any:
    """The slope is broadcast from behind: a slope along the channels only, or one for each element."""
    b, x = n.b, n.real(0)
    slope = n.real(1)
    shape = b.shape(slope)
    if all(d == 1 for d in shape[:-1]):
        vector = b.reshape(slope, [-1])
        return n.result(b.op("nn.prelu", x, vector, axis=b.rank(x) - 1) if shape[-1] == b.shape(x)[-1] else _general(n, x, slope))
    return n.result(_general(n, x, slope))


def _general(n: Node, x: Expr, slope: Expr) -> Any:
    b = n.b
    return b.op("add", b.op("nn.relu", x), b.op("multiply", slope, b.op("minimum", x, 0.0)))


def hard_swish(n: Node) -> Any:
    if is_whole(n, 0):
        return n.b.op("qnn.hardswish", n.x(0), *integers.scales(n, 0))
    return n.result(nn.hard_swish(n.b, n.real(0)))


def elu(n: Node) -> Any:
    return n.result(nn.elu(n.b, n.real(0)))


def gelu(n: Node) -> Any:
    return n.result(nn.gelu(n.b, n.real(0), bool(n.options.get("approximate"))))


def nearest_even(n: Node, x: Expr) -> Any:
    """The nearest whole number; of two, the even one."""
    b = n.b
    low = b.op("floor", x)
    rest = b.op("subtract", x, low)
    odd = b.op("not_equal", b.op("floor_mod", low, 2.0), 0.0)
    up = b.op("logical_or", b.op("greater", rest, 0.5), b.op("logical_and", b.op("equal", rest, 0.5), odd))
    return b.op("add", low, b.cast(up, b.dtype(x)))


def _held(b: Builder, x: Expr, dtype: str) -> Any:
    """Numbers of another type. Real ones beyond an integer type become its nearest end, NaN the largest number and true."""
    if not is_float_dtype(b.dtype(x)) or is_float_dtype(dtype):
        return b.cast(x, dtype)
    if dtype == "bool":
        return b.op("not_equal", x, 0.0)
    info, x = np.iinfo(dtype), b.cast(x, "float32") if b.dtype(x) in ("float16", "bfloat16") else x
    inside = b.op("less", x, float(info.max + 1))
    return b.op("where", inside, b.cast(b.op("maximum", x, float(info.min)), dtype), b.const(info.max, dtype))


def cast(n: Node) -> Any:
    """Complex numbers keep their real parts, real ones get the imaginary part 0."""
    b, x, wanted = n.b, n.x(0), n.out_dtype()
    part = PARTS.get(wanted)
    if part is None:
        return _held(b, x.real if isinstance(x, Complex) else x, wanted)
    if isinstance(x, Complex):
        return [Complex(b.cast(x.real, part), b.cast(x.imaginary, part))]
    real = b.cast(x, part)
    return [Complex(real, b.op("zeros_like", real))]


_multiply = integers.binary("multiply", "qnn.mul")


def multiply(n: Node) -> Any:
    """Products of two tensors, both complex or none."""
    x, y, b = n.x(0), n.x(1), n.b
    if not isinstance(x, Complex) or not isinstance(y, Complex):
        return _multiply(n)

    def of(left: Expr, right: Expr, op: str, first: Expr, second: Expr) -> Any:
        return b.op(op, b.op("multiply", left, right), b.op("multiply", first, second))

    real = of(x.real, y.real, "subtract", x.imaginary, y.imaginary)
    return [Complex(real, of(x.real, y.imaginary, "add", x.imaginary, y.real))]


def quantize(n: Node) -> Any:
    """Real numbers become integers; integers get other scales."""
    q, p, b = n.q(0), n.q_out(), n.b
    if p is None:
        raise Unsupported("its result has no scale")
    if q is None or not (q.per_tensor and p.per_tensor):
        return n.result(n.real(0), activation=False)
    (scale, zero), (to_scale, to_zero) = n.pair(q), n.pair(p)
    return b.op("qnn.requantize", n.x(0), scale, zero, to_scale, to_zero, out_dtype=n.out_dtype())


def dequantize(n: Node) -> Any:
    """Integers become real numbers; float16 becomes float32."""
    return n.b.cast(n.real(0), "float32")


def select(n: Node) -> Any:
    """A condition of one axis chooses rows."""
    b, cond = n.b, n.x(0)
    alike = n.same_scales(1) and n.same_scales(2)
    x, y = (n.x(i) if alike else n.real(i) for i in (1, 2))
    if b.rank(cond) == 1 and b.rank(x) > 1 and n.operator.name == "SELECT":
        cond = b.unsqueeze(cond, range(1, b.rank(x)))
    selected = b.op("where", cond, x, y)
    return selected if alike else n.result(selected, activation=False)


def same(op: str) -> Callable[[Node], Any]:
    """An operator on stored values without scales: logic, bits."""
    return lambda n: n.b.op(op, *[n.x(i) for i in range(len(n))])


def bitcast(n: Node) -> Any:
    """The bits as another element type; elements of another size change the last axis."""
    b, x, wanted = n.b, n.x(0), n.out_dtype()
    if np.dtype(b.dtype(x)).itemsize != np.dtype(wanted).itemsize:
        raise Unsupported(f"it makes elements of {wanted} of those of {b.dtype(x)}, which have another size")
    return b.op("reinterpret", x, dtype=wanted)


def fake_quant(n: Node) -> Any:
    """Numbers rounded to those that so many bits hold between two ends; the ends move until 0 is among them."""
    b, o = n.b, n.options
    low, high, bits = float(o["min"]), float(o["max"]), int(o["num_bits"])
    if not 2 <= bits <= 16:
        raise Malformed(f"the option num_bits is {bits}; it must be from 2 to 16")
    least, most = int(bool(o.get("narrow_range"))), (1 << bits) - 1
    scale = (high - low) / (most - least)
    if scale <= 0:
        raise Unsupported(f"its range goes from {low} to {high}")
    zero = float(np.clip(np.floor(least - low / scale + 0.5), least, most))
    first, last = (least - zero) * scale, (most - zero) * scale
    steps = b.op("divide", b.op("subtract", b.op("clip", n.x(0), a_min=first, a_max=last), first), scale)
    return b.op("add", b.op("multiply", b.op("floor", b.op("add", steps, 0.5)), scale), first)


RULES = (
    Rule("ABS", integers.unary("abs", "qnn.abs")),
    Rule("ADD", integers.binary("add", "qnn.add")),
    Rule("ADD_N", add_n),
    Rule("ATAN2", lambda n: n.result(nn.angle(n.b, n.real(0), n.real(1)))),
    Rule("BITCAST", bitcast),
    Rule("BITWISE_XOR", same("bitwise_xor")),
    Rule("CAST", cast),
    Rule("CEIL", unary("ceil")),
    Rule("COS", unary("cos")),
    Rule("DENSIFY", lambda n: n.x(0)),
    Rule("DEQUANTIZE", dequantize),
    Rule("DIV", divide),
    Rule("ELU", elu),
    Rule("EQUAL", compare("equal")),
    Rule("EXP", integers.unary("exp", "qnn.exp")),
    Rule("FAKE_QUANT", fake_quant),
    Rule("FLOOR", unary("floor")),
    Rule("FLOOR_DIV", binary("floor_divide")),
    Rule("FLOOR_MOD", lambda n: n.result(n.b.op("floor_mod", n.real(0), n.real(1)))),
    Rule("GELU", gelu),
    Rule("GREATER", compare("greater")),
    Rule("GREATER_EQUAL", compare("greater_equal")),
    Rule("HARD_SWISH", hard_swish),
    Rule("LEAKY_RELU", leaky_relu),
    Rule("LESS", compare("less")),
    Rule("LESS_EQUAL", compare("less_equal")),
    Rule("LOG", integers.unary("log", "qnn.log")),
    Rule("LOGICAL_AND", same("logical_and")),
    Rule("LOGICAL_NOT", same("logical_not")),
    Rule("LOGICAL_OR", same("logical_or")),
    Rule("LOGISTIC", integers.unary("sigmoid", "qnn.sigmoid")),
    Rule("MAXIMUM", integers.extreme("maximum")),
    Rule("MINIMUM", integers.extreme("minimum")),
    Rule("MUL", multiply),
    Rule("NEG", unary("negative")),
    Rule("NOT_EQUAL", compare("not_equal")),
    Rule("POW", binary("power")),
    Rule("PRELU", prelu),
    Rule("QUANTIZE", quantize),
    Rule("RELU", relu),
    Rule("RELU6", lambda n: relu(n, 0.0, 6.0)),
    Rule("RELU_0_TO_1", lambda n: relu(n, 0.0, 1.0)),
    Rule("RELU_N1_TO_1", lambda n: relu(n, -1.0, 1.0)),
    Rule("RIGHT_SHIFT", same("right_shift")),
    Rule("ROUND", lambda n: n.result(nearest_even(n, n.real(0)))),
    Rule("RSQRT", integers.unary("rsqrt", "qnn.rsqrt")),
    Rule("SELECT", select),
    Rule("SELECT_V2", select),
    Rule("SIGN", unary("sign")),
    Rule("SIN", unary("sin")),
    Rule("SQRT", unary("sqrt")),
    Rule("SQUARE", square),
    Rule("SQUARED_DIFFERENCE", squared_difference),
    Rule("SUB", integers.binary("subtract", "qnn.subtract")),
    Rule("TANH", integers.unary("tanh", "qnn.tanh")),
)
