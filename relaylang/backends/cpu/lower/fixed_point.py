"""Fixed-point arithmetic of requantisation: products of an int32 and a number of 31 bits, in int64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from relaylang.backends.cpu.arith import keeps_narrow
from relaylang.backends.cpu.kernel import BufTensor, Kernel, Number, Tensor
from relaylang.backends.cpu.lower.common import axis_of
from relaylang.kernels import ir, visit
from relaylang.kernels.dtypes import int_range
from relaylang.kernels.index import ZERO
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.ops import SHORT

#: Values up to this, such as bytes less their zero point, may have a shorter factor. Each of them is tried.
_FEW_VALUES = 1024


def fixed_point(multiplier: float) -> tuple[int, int]:
    """A real number as `significand * 2**(shift - 31)` with a significand of 31 bits, halves rounded away from zero."""
    fraction, shift = math.frexp(multiplier)
    scaled = fraction * 2.0**31
    significand = int(math.floor(abs(scaled) + 0.5)) * (1 if scaled >= 0 else -1)
    if significand == 2**31:
        significand, shift = significand // 2, shift + 1
    return significand, shift


def along(vector: Tensor, axis: int, index: Sequence[Index], nest: Nest) -> Scalar:
    """The element of a scalar, or of a vector along an axis, that belongs to an index."""
    if not vector.shape:
        return vector.at(nest, [])
    if vector.shape[0] == 1 or not index:
        return vector.at(nest, [ZERO])
    return vector.at(nest, [index[axis_of(axis, len(index))]])


@dataclass(frozen=True)
class FixedPoints:
    """`scale / out_scale` of each channel in fixed point, worked out before the loops.

    `significands` are int32. `halves` and the shifts to the `right` are int64. Where memory is short, the shifts are int8,
    and make the halves. Where vector loops are written out, `upper` holds, as int32, both for the upper halves of products.
    Its last element tells whether all channels have them.
    """

    significands: Tensor
    right: Tensor
    halves: Tensor | None
    upper: Tensor | None

    def multiply(self, nest: Nest, value: Scalar, channel: Index) -> Scalar:
        """An int32 times the number of a channel. Halves are rounded up."""
        count = self.significands.shape[0] - 1
        right = self.right.at(nest, [channel])
        if self.halves is not None:
            half = self.halves.at(nest, [channel])
        else:
            half = nest.const(1, "uint64").op("shl", right).op("shr", 1).cast("int64")
        parts = [self.significands.at(nest, [channel]), half, right]
        if self.upper is not None:
            parts.append(nest.const(0, "int32"))
            parts += [self.upper.at(nest, [nest.add(channel, n * count)]) for n in range(2)]
            parts.append(self.upper.at(nest, [ir.number(2 * count)]))
        return value.op("fixed", *parts)


def fixed_points(kernel: Kernel, scale: Tensor, out_scale: Tensor) -> FixedPoints | None:
    """The table of a scale for each channel; None where there is one scale, or the parts come from elsewhere."""
    if len(scale.shape) != 1 or scale.shape[0] == 1 or not isinstance(scale, BufTensor) or math.prod(out_scale.shape) != 1:
        return None
    extra = [] if isinstance(out_scale, Number) else [out_scale]
    if isinstance(out_scale, Number):
        divisor: ir.Expr = ir.Const(out_scale.value, "float64")
    else:
        divisor = ir.cast(ir.load(kernel.in_memory(out_scale), 0), "float64")
    count = scale.shape[0]

    i, m = ir.Var("i"), ir.Var("m", "float64")

    def table(dtype: str, shape: tuple[int, ...], entries: Callable[[Buf], ir.Body], *before: Callable[[Buf], ir.Stmt]) -> Tensor:
        def body(source: Buf, target: Buf) -> ir.Body:
            factor = ir.cast(ir.load(source, i), m.type) / divisor
            loop = ir.loop("i", 0, count, [ir.Let(m.name, factor), *entries(target)])
            return [*(make(target) for make in before), loop]

        buf = kernel.packed(scale, math.prod(shape), dtype, body, extra)
        return BufTensor(Buf(buf.name, shape, dtype))

    right = ir.Var("right", "int64")
    shift = ir.Let(right.name, ir.op("fixed_right", m, type=right.type))
    one, beyond = ir.Const(1, "int64"), right > 32

    # Vectors read the element behind, too.
    significands = table(
        "int32",
        (count + 1,),
        lambda target: [ir.store(target, ir.op("fixed_low", m, type="int32"), i)],
        lambda target: ir.store(target, ir.Const(0, "int32"), count),
    )
    narrow = keeps_narrow(kernel.isa)
    kind = "int8" if narrow else "int64"
    rights = table(kind, (count,), lambda target: [shift, ir.store(target, ir.cast(right, kind), i)])
    halves = (
        None
        if narrow
        else table(
            kind,
            (count,),
            lambda target: [
                shift,
                ir.store(target, ir.select(right.ne(0), one << right - 1, ir.Const(0, right.type)), i),
            ],
        )
    )
    upper = (
        table(
            "int32",
            (2 * count + 1,),
            lambda target: [
                shift,
                ir.store(target, ir.Cast(ir.select(beyond, one << right - 33, ir.Const(0, right.type)), "int32"), i),
                ir.store(target, ir.Cast(ir.select(beyond, right - 32, ir.Const(0, right.type)), "int32"), i + count),
                ir.Reduce("and", target.name, ir.number(2 * count), ir.Cast(beyond, "int32")),
            ],
            lambda target: ir.store(target, ir.Const(1, "int32"), 2 * count),
        )
        if kernel.isa.explicit_lanes
        else None
    )
    return FixedPoints(significands, rights, halves, upper)


def reach(value: Scalar) -> int | None:
    """A bound of an integer's absolute value, for sums of bytes and constants."""
    match value:
        case ir.Const(number):
            return abs(int(number))
        case ir.Op("add" | "sub") | ir.Cast(_, "int32"):
            parts = [reach(a) for a in visit.parts(value)]
            return None if None in parts else sum(parts)  # type: ignore[arg-type]
    low, high = int_range(value.type) if value.type in SHORT else (0, None)
    return None if high is None else max(-low, high)


@cache
def _short_point(significand: int, left: int, right: int, most: int) -> tuple[int, int] | None:
    """The shortest factor and its shift with the same results in 32 bits, for values up to `most`; None without."""
    if most > _FEW_VALUES:
        return None
    values = range(-most, most + 1)
    wanted = [((x << left) * significand + (1 << (right - 1))) >> right for x in values]
    for cut in range(30, 0, -1):
        factor, shift = (significand + (1 << (cut - 1))) >> cut, right - left - cut
        if shift < 1 or factor == 0:
            continue
        half = 1 << (shift - 1)
        if most * abs(factor) + half >= 1 << 31:
            return None
        if all((x * factor + half) >> shift == y for x, y in zip(values, wanted)):
            return factor, shift
    return None


def _by_constant(nest: Nest, value: Scalar, significand: int, left: int, right: int) -> Scalar:
    """An int32 times a number in fixed point that is known. Halves are rounded up."""
    short = _short_point(significand, left, right, reach(value) or _FEW_VALUES + 1)
    if short is not None:
        parts = [nest.const(n, "int32") for n in (short[0], 1 << (short[1] - 1), short[1])]
        return value.op("fixed_short", *parts)
    # The upper half of a product has the result where the shift is past it. Small values are shifted up there before.
    more = left + max(0, 33 - right)
    most = reach(value)
    vectors = more == 0 or (most is not None and most << more < 1 << 31)
    upper = right + max(0, 33 - right) - 32
    if left and not vectors:
        product = value.cast("int64").op("left_shift", left) * significand
        return (product + (1 << (right - 1))).op("shr", right).cast("int32")
    if left:
        value, more = value.op("shl", nest.const(left, "int32")), more - left
    parts = [nest.const(n, "int64") for n in (1 << (right - 1), right)]
    parts += [nest.const(n, "int32") for n in (more, 1 << (upper - 1), upper, int(vectors))]
    return value.op("fixed", significand, *parts)


def scale_quotient(nest: Nest, scale: Tensor | float, out_scale: Tensor | float, axis: int, index: Sequence[Index]) -> Scalar:
    """`scale / out_scale` in float64."""
    numbers = [nest.const(s, "float64") if isinstance(s, float) else along(s, axis, index, nest) for s in (scale, out_scale)]
    return numbers[0].cast("float64") / numbers[1].cast("float64")


def multiply_fixed(
    nest: Nest, value: Scalar, scale: Tensor | float, out_scale: Tensor | float, axis: int, index: Sequence[Index], upward: bool
) -> Scalar:
    """An int32 times `scale / out_scale`, by the fixed-point rules."""
    numbers = [s if isinstance(s, float) else float(s.value) if isinstance(s, Number) else None for s in (scale, out_scale)]
    if numbers[0] is not None and numbers[1] is not None:
        significand, shift = fixed_point(numbers[0] / numbers[1])
        left, right = min(max(shift, 0), 63), min(max(-shift, 0) + 31, 63)
        half = 1 << (right - 1)
        if upward:
            return _by_constant(nest, value, significand, left, right)
        wide = value.cast("int64")
        product = (wide.op("left_shift", left) if left else wide) * significand
        return (product + (product >= 0).select(nest.const(half, "int64"), half - 1)).op("shr", right).cast("int32")
    multiplier = scale_quotient(nest, scale, out_scale, axis, index)
    factor = [ir.op(f"fixed_{part}", multiplier, type="int64") for part in ("significand", "shift")]
    return value.op("fixed_multiply" if upward else "fixed_multiply_nearest", *factor)
