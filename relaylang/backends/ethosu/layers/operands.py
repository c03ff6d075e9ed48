"""Parts that the readers of layers share: types, constants, zero points, scales, and the way out of a sum.

A reader takes a composite's calls, producers first, and returns a layer or raises `Unsupported` with the reason. The
pattern table's checks and the writer of TOSA both use the readers, so every offered layer can be written. Values here
are those of Relay (its zero points, its uint8); the writer makes int8 of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ops.record import Op
from relaylang.partition.fixed_point import Rescale, make_rescale, unscaled

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
#: The types of numbers of 8 bits, and of all feature maps.
BYTES = ("int8", "uint8")
FEATURES = (*BYTES, "int16")
#: The most numbers of a tensor.
MOST_NUMBERS = 1 << 28
#: Whole numbers that float32 holds.
_EXACT = 1 << 24


@dataclass(frozen=True)
class Output:
    """What happens to a layer's int32 sum (or to a value) on its way out: rescaled, saturated to `dtype`, clamped."""

    dtype: str
    rescale: Rescale | None
    clamp: tuple[int, int] | None

    def of_channels(self, own: slice) -> Output:
        """The same for some of the channels."""
        if self.rescale is None or len(self.rescale.shifts) == 1:
            return self
        rescale = replace(self.rescale, multipliers=self.rescale.multipliers[own], shifts=self.rescale.shifts[own])
        return replace(self, rescale=rescale)


def op_name(call: Expr) -> str:
    return call.op.name if isinstance(call, Call) and isinstance(call.op, Op) else ""


def tensor_of(expr: Expr, what: str) -> TensorType:
    """The static tensor type of an expression."""
    ty = expr.checked_type
    if not isinstance(ty, TensorType):
        raise Unsupported(f"{what} is not a tensor")
    if not all(isinstance(d, int) for d in ty.shape):
        raise Unsupported(f"{what} has a shape that is known only at run time")
    return ty


def feature_type(expr: Expr, what: str = "its input", dtypes: Sequence[str] = FEATURES) -> TensorType:
    """The type of a feature map that the accelerator can hold."""
    ty = tensor_of(expr, what)
    if ty.dtype not in dtypes:
        raise Unsupported(f"{what} is {ty.dtype}, the accelerator computes on {', '.join(dtypes)}")
    if any(d < 1 for d in ty.shape):  # type: ignore[operator]
        raise Unsupported(f"{what} is empty")
    if math.prod(ty.shape) > MOST_NUMBERS:  # type: ignore[arg-type]
        raise Unsupported(f"{what} has {math.prod(ty.shape)} numbers; at most {MOST_NUMBERS} are taken")  # type: ignore[arg-type]
    return ty


def joined(shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Shapes of one rank, in which neighbours become one axis where each operand has them, or each broadcasts them."""
    groups: list[list[int]] = []
    before: tuple[bool, ...] = ()
    for axis, extents in enumerate(zip(*shapes)):
        if max(extents) == 1:
            continue
        alike = tuple([extent == 1 for extent in extents])
        if not groups or alike != before:
            groups.append([])
        groups[-1].append(axis)
        before = alike
    return [tuple([math.prod([shape[axis] for axis in group]) for group in groups]) or (1,) for shape in shapes]


def constant(expr: Expr, what: str) -> np.ndarray:
    """The value of an argument that must be known at compile time."""
    if not isinstance(expr, Constant):
        raise Unsupported(f"{what} is not a constant; give it with the parameters")
    return expr.data


def scalar(expr: Expr, what: str) -> int:
    """A zero point: one integer, or the same for all channels."""
    value = constant(expr, what)
    if value.size == 0 or not np.all(value == value.flat[0]):
        raise Unsupported(f"{what} differs between channels")
    return int(value.flat[0])


def scales(expr: Expr, what: str) -> np.ndarray:
    value = constant(expr, what)
    if value.ndim > 1:
        raise Unsupported(f"{what} has {value.ndim} axes")
    return value.astype(np.float32)


def check_exact(given: Expr, wanted: Expr, most: int) -> None:
    """Two scales are one, of so few bits that float32 holds it times all whole numbers up to `most`.

    Then means of real numbers, quantised again, are those of the whole numbers. Their halves are exact.
    """
    before, behind = scales(given, "its input scale"), scales(wanted, "its output scale")
    if before.size != 1 or behind.size != 1 or before.flat[0] != behind.flat[0]:
        raise Unsupported("its input and output scales differ")
    scale = np.float32(before.flat[0])
    if not np.isfinite(scale) or scale <= 0:
        raise Unsupported("its scale is not a positive finite number")
    odd = float(scale).as_integer_ratio()[0]
    odd //= odd & -odd
    if most * odd > _EXACT:
        raise Unsupported(
            f"with the scale {scale:g} float32 rounds its means, and moves halves; scales of few bits, such as 1 or 0.25, do not"
        )


def in_range(zero_point: int, dtype: str, what: str) -> int:
    low, high = RANGES[dtype]
    if not low <= zero_point <= high:
        raise Unsupported(f"{what} {zero_point} is no {dtype} number")
    if dtype == "int16" and zero_point != 0:
        raise Unsupported(f"{what} is {zero_point}; numbers of int16 want 0")
    return zero_point


def spread_of(dtype: str, zero_point: int) -> int:
    """The largest |x - zero_point| of a tensor."""
    low, high = RANGES[dtype]
    return max(abs(low - zero_point), abs(high - zero_point))


def requantize(call: Call, bounds: np.ndarray) -> tuple[Rescale, str]:
    """A `qnn.requantize` as a rescale and its element type. `bounds` are those of the value less its zero point."""
    attrs = call.attrs
    if attrs.compute_dtype not in ("None", "int64", ""):
        raise Unsupported(f"its compute_dtype is {attrs.compute_dtype}; the accelerator rescales in integers")
    if attrs.rounding not in ("None", "", "UPWARD", "TONEAREST"):
        raise Unsupported(f"rounding {attrs.rounding} is unknown")
    dtype = tensor_of(call, "its result").dtype
    if dtype not in RANGES:
        raise Unsupported(f"it makes {dtype}; the accelerator makes {', '.join(RANGES)}")
    input_scale = scales(call.args[1], "its input scale")
    output_scale = scales(call.args[3], "its output scale")
    if output_scale.size != 1:
        raise Unsupported("its output scale differs between channels")
    output_zp = scalar(call.args[4], "its output zero point")
    if dtype != "int32":
        in_range(output_zp, dtype, "its output zero point")
    rank = len(tensor_of(call, "its result").shape)
    axis = attrs.axis if attrs.axis >= 0 else rank + attrs.axis
    if input_scale.ndim == 0 and np.float32(input_scale) == np.float32(output_scale.flat[0]):
        if int(np.max(bounds)) + abs(output_zp) >= 1 << 29:
            raise Unsupported("the value may leave the range in which a TOSA rescale is defined")
        return unscaled(output_zp), dtype
    rounding = "TONEAREST" if attrs.rounding == "TONEAREST" else "UPWARD"
    return make_rescale(input_scale, output_scale.flat[0], output_zp, bounds, rounding=rounding, axis=axis), dtype


def tail(calls: Sequence[Call], bounds: np.ndarray) -> Output:
    """The calls behind a sum: requantize, then clip, relu and cast in any order."""
    relu_first = bool(calls) and op_name(calls[0]) == "nn.relu"
    if relu_first:
        calls = calls[1:]
    if not calls:
        if relu_first:
            raise Unsupported("a relu on int32 is taken only in front of a requantize")
        return Output("int32", None, None)
    first, *rest = calls
    rescale, dtype = requantize(first, bounds)
    low, high = RANGES[dtype]
    if relu_first:
        if scalar(first.args[2], "its input zero point") != 0:
            raise Unsupported("a relu on int32 in front of a requantize wants the zero point 0")
        low = max(low, rescale.output_zp)
    low, high, dtype = narrow(rest, low, high, dtype)
    if dtype == "int32":
        if (low, high) != RANGES["int32"]:
            raise Unsupported("a clip of int32 is taken only in front of a cast to a narrower type")
        if rescale.output_zp != 0:
            raise Unsupported("an int32 result wants the zero point 0")
    return Output(dtype, rescale, clamp_of(low, high, dtype))


def clamp_of(low: int, high: int, dtype: str) -> tuple[int, int] | None:
    """The clamp behind a saturation, or None where it does nothing."""
    least, most = RANGES[dtype]
    low, high = max(low, least), min(high, most)
    return None if (low, high) == (least, most) else (low, high)


def narrow(calls: Sequence[Call], low: int, high: int, dtype: str) -> tuple[int, int, str]:
    """The range and type of a value in [low, high] after clips, relus and casts."""
    for call in calls:
        name = op_name(call)
        if name == "clip":
            least, most = _clip_bounds(call, dtype)
            low, high = min(max(low, least), most), max(min(high, most), least)
        elif name == "nn.relu":
            low, high = max(low, 0), max(high, 0)
        elif name == "cast":
            wanted = tensor_of(call, "the result of the cast").dtype
            if wanted not in RANGES:
                raise Unsupported(f"a cast to {wanted}")
            if low < RANGES[wanted][0] or high > RANGES[wanted][1]:
                raise Unsupported(f"a cast to {wanted} of values that it may wrap around; clip them first")
            dtype = wanted
        else:
            raise AssertionError(f"{name} in the tail of a composite")
    return low, high, dtype


def _clip_bounds(call: Call, dtype: str) -> tuple[int, int]:
    low, high = call.attrs.a_min, call.attrs.a_max
    if not (float(low).is_integer() and float(high).is_integer()) or low > high:
        raise Unsupported(f"clip bounds {low} and {high}: an integer tensor wants whole numbers in order")
    least, most = RANGES[dtype]
    if low > most or high < least:
        raise Unsupported(f"clip bounds {low} and {high} leave no {dtype} number")
    return max(int(low), least), min(int(high), most)
