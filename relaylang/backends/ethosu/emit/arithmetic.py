"""Writers of element-wise layers."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.partition.fixed_point import Rescale, unscaled
from relaylang.partition.targets.ethos_u.arithmetic import Elementwise, Extreme, Product, Shift, Sum
from relaylang.partition.targets.ethos_u.parts import Output


def _whole(rescale: Rescale) -> int | None:
    """The factor of a rescale by a whole number.

    Of two unequal ones in front of a sum, Vela shifts one operand by 19 bits on U55 and U65. So these become products.
    """
    factor, rest = divmod(rescale.multipliers[0], 1 << rescale.shifts[0])
    return None if rest else factor


def _multiplied(w: Writer, x: Tensor, factor: int, zero_point: int) -> Tensor:
    """An operand less its zero point, times a whole number, in int32."""
    return w.graph.multiply(w.converted(x, "int32", input_zp=zero_point), w.number(factor, len(x.shape)))


def sum_(w: Writer, layer: Sum, at: Composite) -> Value:
    perm, found = w.operands(at, at.calls[0].args[:2])
    sides = [(x, operand.rescale, operand.input_zp - value.offset) for (x, value), operand in zip(found, layer.operands)]
    if not w.is_u85 and all(_in_bytes(*side) for side in sides):
        sides = [_tabled(w, *side) for side in sides]
    factors = [factor for _, rescale, _ in sides if (factor := _whole(rescale)) is not None]
    if len(factors) == 2 and factors[0] != factors[1]:
        operands = [_multiplied(w, x, factor, zero_point) for (x, _, zero_point), factor in zip(sides, factors)]
    else:
        operands = [w.rescale(x, rescale, "int32", zero_point) for x, rescale, zero_point in sides]
    total = w.graph.binary(layer.op, *operands)
    back = unscaled(layer.output_zp)
    out = w.clamp(w.rescale(total, back, layer.out.dtype), layer.out)
    return at.broadcast(layer.out.dtype, perm, out)


def _scaled(rescale: Rescale, zero_point: int) -> np.ndarray:
    """All bytes less a zero point, rescaled."""
    return rescale.apply(np.arange(-128, 128) - zero_point)


def _in_bytes(x: Tensor, rescale: Rescale, zero_point: int) -> bool:
    """Whether the bytes of an operand are bytes behind its rescale, too, but for a zero point."""
    return x.dtype == "int8" and int(np.ptp(_scaled(rescale, zero_point))) <= 255


def _tabled(w: Writer, x: Tensor, rescale: Rescale, zero_point: int) -> tuple[Tensor, Rescale, int]:
    """An operand behind its rescale, which a table makes. Without tables Vela would write it in int32, and add slowly."""
    if rescale == unscaled():
        return x, rescale, zero_point
    numbers = _scaled(rescale, zero_point)
    zero_point = -128 - int(numbers.min())
    return w.graph.table(x, (numbers + zero_point).astype(np.int8)), unscaled(), zero_point


def product(w: Writer, layer: Product, at: Composite) -> Value:
    perm, found = w.operands(at, at.calls[0].args[:2])
    sides = [w.converted(x, "int32", input_zp=zero_point - value.offset) for (x, value), zero_point in zip(found, layer.zero_points)]
    return at.broadcast(layer.out.dtype, perm, w.finish(w.graph.multiply(*sides), layer.out))


def extreme(w: Writer, layer: Extreme, at: Composite) -> Value:
    perm, found = w.operands(at, at.calls[0].args[:2])
    value = found[0][1]
    out = w.graph.binary(layer.op, *[w.converted(x, "int32") for x, _ in found])
    out = w.clamp(w.converted(out, found[0][0].dtype), Output(value.dtype, None, layer.clamp))
    made = at.broadcast(value.dtype, perm, out)
    if layer.out.rescale is not None:
        perm, _ = w.any_order(made, layer.out.rescale.axis)
    return Value(layer.out.dtype, {perm: w.finish(made.stored[perm], layer.out, layer.input_zp - value.offset)})


def shift(w: Writer, layer: Shift, at: Composite) -> Value:
    perm, found = w.operands(at, at.calls[0].args[:2])
    (x, _), (amount, _) = found
    rank = len(x.shape)
    out = w.graph.shift_left(x, amount) if layer.up else _floored(w, x, amount)
    if layer.limits is not None:
        low, high = (w.number(limit, rank) for limit in layer.limits)
        out = w.graph.binary("MINIMUM", w.graph.binary("MAXIMUM", out, low), high)
    return at.broadcast("int32", perm, out)


def _floored(w: Writer, x: Tensor, amount: Tensor) -> Tensor:
    """A shift to the right that rounds down: half of the last bit goes first, because the accelerator rounds.

    Half cannot go from numbers next to the lowest. They have the quotient of the first number that it can go from.
    """
    graph, rank = w.graph, len(x.shape)
    one, zero = w.number(1, rank), w.number(0, rank)
    # 2^(n - 1), or 0 where nothing is shifted.
    fewer = graph.binary("MAXIMUM", graph.binary("SUB", amount, one), zero)
    none = graph.binary("MAXIMUM", graph.binary("SUB", one, amount), zero)
    half = graph.binary("SUB", graph.shift_left(one, fewer), none)
    least = graph.binary("ADD", half, w.number(-(1 << 31), rank))
    return graph.shift_right(graph.binary("SUB", graph.binary("MAXIMUM", x, least), half), amount)


def elementwise(w: Writer, layer: Elementwise, at: Composite) -> Value:
    rescale = layer.out.rescale
    perm, x = w.any_order(at.source, rescale.axis if rescale is not None else None)
    zero_point = layer.input_zp - at.source.offset if rescale is not None else 0
    return Value(layer.out.dtype, {perm: w.finish(x, layer.out, zero_point)})


WRITERS: dict[type, Write] = {Sum: sum_, Product: product, Extreme: extreme, Shift: shift, Elementwise: elementwise}
