"""Element-wise layers for the Ethos-U."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.operands import (
    FEATURES,
    RANGES,
    Output,
    clamp_of,
    feature_type,
    in_range,
    joined,
    narrow,
    op_name,
    scalar,
    scales,
    spread_of,
    tail,
)
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant, Expr
from relaylang.partition.fixed_point import Rescale, make_rescale, unscaled

#: The sums of int32 numbers.
_FINER = {"add": "ADD", "subtract": "SUB"}


@dataclass(frozen=True)
class Operand:
    """One input of an addition or concatenation and how it gets to the output's scale."""

    input_zp: int
    rescale: Rescale


@dataclass(frozen=True)
class Sum:
    """The sum (`op` "ADD") or difference ("SUB") of two rescaled operands, plus `output_zp`, saturated and clamped.

    Where `out` has a rescale, the sum is finer than the result, and the rescale adds the zero point.
    """

    op: str
    operands: tuple[Operand, Operand]
    output_zp: int
    out: Output


@dataclass(frozen=True)
class Product:
    """The product of two operands less their zero points, then `out`."""

    zero_points: tuple[int, int]
    out: Output


@dataclass(frozen=True)
class Extreme:
    """The smaller (`op` "MINIMUM") or larger ("MAXIMUM") of two numbers, clamped, less `input_zp`, then `out`."""

    op: str
    clamp: tuple[int, int] | None
    input_zp: int
    out: Output


@dataclass(frozen=True)
class Shift:
    """int32 numbers shifted by 0 to 31 bits: `up`, where bits fall off the top, or down and rounded down. Then limits."""

    up: bool
    limits: tuple[int, int] | None


@dataclass(frozen=True)
class Elementwise:
    """A requantize, clip or relu of a tensor."""

    input_zp: int
    out: Output


def read_sum(calls: Sequence[Call]) -> Sum:
    """qnn.add or qnn.subtract, then limits: both sides are brought to the output's scale in int32 and added there."""
    call, *rest = calls
    result = feature_type(call, "its result")
    output_scale = scales(call.args[6], "its output scale")
    output_zp = in_range(scalar(call.args[7], "its output zero point"), result.dtype, "the output zero point")
    sides = []
    for dtype, scale, zp in _sides(call):
        sides.append(operand(dtype, scale, zp, output_scale, output_zp, 0))
    op = "ADD" if op_name(call) == "qnn.add" else "SUB"
    return Sum(op, (sides[0], sides[1]), output_zp, _limited(rest, result.dtype))


def read_finer_sum(calls: Sequence[Call]) -> Sum:
    """A sum or difference of two requantized feature maps in int32, then a requantize and limits."""
    at = next(i for i, c in enumerate(calls) if op_name(c) in _FINER)
    total, rest = calls[at], calls[at + 1 :]
    sides, bound = [], 0
    for side, name in zip(total.args, ("left", "right")):
        if isinstance(side, Constant):
            sides.append(Operand(0, unscaled()))
            bound += int(np.abs(side.data.astype(np.int64)).max(initial=0))
            continue
        assert isinstance(side, Call)
        source = feature_type(side.args[0], f"its {name} side")
        feature_type(side, f"its {name} side", ("int32",))
        scale, finer = (scales(side.args[i], f"a scale of its {name} side") for i in (1, 3))
        if scalar(side.args[4], f"the new zero point of its {name} side") != 0:
            raise Unsupported("int32 operands want the zero point 0")
        zp = scalar(side.args[2], f"the zero point of its {name} side")
        sides.append(operand(source.dtype, scale, zp, finer, 0, 0))
        bound += int(np.ceil(spread_of(source.dtype, zp) * (float(scale.flat[0]) / float(finer.flat[0])))) + 1
    if bound >= 1 << 31:
        raise Unsupported("its sums may have more than 31 bits")
    return Sum(_FINER[op_name(total)], (sides[0], sides[1]), 0, tail(rest, np.array([bound], dtype=object)))


def _summands(at: Composite) -> Sequence[Expr]:
    """The feature maps that a sum has."""
    total = next((c for c in at.calls if op_name(c) in _FINER), None)
    if total is None:
        return at.calls[0].args[:2]
    return [side.args[0] if isinstance(side, Call) else side for side in total.args]


def read_product(calls: Sequence[Call]) -> Product:
    """qnn.mul, then limits: the product of int32 numbers, rescaled by the product of the scales in float32."""
    call, *rest = calls
    result = feature_type(call, "its result")
    (left, left_scale, left_zp), (right, right_scale, right_zp) = _sides(call)
    output_scale = scales(call.args[6], "its output scale")
    if any(scale.size != 1 for scale in (left_scale, right_scale, output_scale)):
        raise Unsupported("a scale differs between channels")
    output_zp = in_range(scalar(call.args[7], "its output zero point"), result.dtype, "the output zero point")
    bound = spread_of(left, left_zp) * spread_of(right, right_zp)
    scale = np.float32(left_scale.flat[0]) * np.float32(right_scale.flat[0])
    rescale = make_rescale(np.asarray(scale), output_scale.flat[0], output_zp, np.array([bound]))
    limits = _limited(rest, result.dtype)
    return Product((left_zp, right_zp), Output(limits.dtype, rescale, limits.clamp))


def _sides(call: Call) -> list[tuple[str, np.ndarray, int]]:
    """Element type, scale and zero point of a quantized operator's two operands, which are broadcast."""
    sides = []
    for name, data, scale, zero_point in (("left", 0, 2, 3), ("right", 1, 4, 5)):
        source = feature_type(call.args[data], f"its {name} side")
        zp = in_range(scalar(call.args[zero_point], f"the zero point of its {name} side"), source.dtype, "an input zero point")
        sides.append((source.dtype, scales(call.args[scale], f"the scale of its {name} side"), zp))
    return sides


def _limited(calls: Sequence[Call], dtype: str) -> Output:
    """Limits behind a saturation to `dtype`."""
    low, high, saturated = narrow(calls, *RANGES[dtype], dtype)
    if saturated != dtype:
        raise Unsupported(f"a cast to {saturated} behind it")
    return Output(dtype, None, clamp_of(low, high, dtype))


def read_extreme(calls: Sequence[Call]) -> Extreme:
    """minimum or maximum of stored numbers, then limits, or limits, a requantize and limits."""
    call, *rest = calls
    result = feature_type(call, "its result")
    for arg, name in zip(call.args, ("left", "right")):
        feature_type(arg, f"its {name} side")
    behind = next((i for i, c in enumerate(rest) if op_name(c) == "qnn.requantize"), len(rest))
    limits = _limited(rest[:behind], result.dtype)
    op = "MINIMUM" if op_name(call) == "minimum" else "MAXIMUM"
    if behind == len(rest):
        return Extreme(op, limits.clamp, 0, Output(result.dtype, None, None))
    then = read_requantize(rest[behind:])
    return Extreme(op, limits.clamp, then.input_zp, then.out)


def read_shift(calls: Sequence[Call]) -> Shift:
    """left_shift or right_shift of int32, then limits. Relay defines shifts by 0 to 31 bits alone."""
    call, *rest = calls
    types = [feature_type(arg, f"its {name} side", ("int32",)) for arg, name in zip(call.args, ("left", "right"))]
    rank = max(len(ty.shape) for ty in types)
    shapes: list[tuple[int, ...]] = [(*(1,) * (rank - len(ty.shape)), *ty.shape) for ty in types]  # type: ignore[arg-type]
    if len(joined(shapes)[0]) > 4:
        raise Unsupported("sides that are broadcast along axes in turn, more than 4 times")
    amounts = call.args[1]
    if isinstance(amounts, Constant) and not np.all((0 <= amounts.data) & (amounts.data < 32)):
        raise Unsupported("it shifts by less than 0 or more than 31 bits")
    return Shift(op_name(call) == "left_shift", _limited(rest, "int32").clamp)


def operand(dtype: str, scale: np.ndarray, zero_point: int, output_scale: np.ndarray, output_zp: int, added: int) -> Operand:
    """An input's way to another scale; `added` is the zero point that is added behind the rescale."""
    in_range(zero_point, dtype, "an input zero point")
    if scale.size != 1 or output_scale.size != 1:
        raise Unsupported("a scale differs between channels")
    if np.float32(scale.flat[0]) == np.float32(output_scale.flat[0]):
        return Operand(zero_point, unscaled(added))
    limit = np.array([spread_of(dtype, zero_point)])
    return Operand(zero_point, make_rescale(scale.reshape(()), output_scale.flat[0], added, limit))


def read_requantize(calls: Sequence[Call]) -> Elementwise:
    """qnn.requantize [clip | nn.relu | cast]* of a feature map or an int32 tensor."""
    first = calls[0]
    source = feature_type(first.args[0], dtypes=(*FEATURES, "int32"))
    input_zp = scalar(first.args[2], "its input zero point")
    if source.dtype == "int32":
        if input_zp != 0:
            raise Unsupported("an int32 input wants the zero point 0")
        bound = 1 << 31
    else:
        bound = spread_of(source.dtype, in_range(input_zp, source.dtype, "the input zero point"))
    return Elementwise(input_zp, tail(calls, np.array([bound], dtype=object)))


def read_clamp(calls: Sequence[Call]) -> Elementwise:
    """[clip | nn.relu]+ of a feature map."""
    source = feature_type(calls[0].args[0])
    low, high, dtype = narrow(calls, *RANGES[source.dtype], source.dtype)
    return Elementwise(0, Output(dtype, None, clamp_of(low, high, dtype)))


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
    perm, addends = w.operands(at, _summands(at))
    sides = [(x, operand.rescale, operand.input_zp - value.offset) for (x, value), operand in zip(addends, layer.operands)]
    # Whether the bytes of operands are bytes behind their rescales, too, but for a zero point.
    if not w.is_u85 and all(x.dtype == "int8" and int(np.ptp(_scaled(rescale, zero))) <= 255 for x, rescale, zero in sides):
        sides = [_tabled(w, *side) for side in sides]
    factors = [factor for _, rescale, _ in sides if (factor := _whole(rescale)) is not None]
    if len(factors) == 2 and factors[0] != factors[1]:
        operands = [_multiplied(w, x, factor, zero_point) for (x, _, zero_point), factor in zip(sides, factors)]
    else:
        operands = [
            x if x.dtype == "int32" and rescale == unscaled() else w.rescale(x, rescale, "int32", zero_point)
            for x, rescale, zero_point in sides
        ]
    total = w.graph.binary(layer.op, *operands)
    if layer.out.rescale is not None:
        return at.broadcast(layer.out.dtype, perm, w.finish(total, layer.out))
    back = unscaled(layer.output_zp)
    out = w.clamp(w.rescale(total, back, layer.out.dtype), layer.out)
    return at.broadcast(layer.out.dtype, perm, out)


def _scaled(rescale: Rescale, zero_point: int) -> np.ndarray:
    """All bytes less a zero point, rescaled."""
    return rescale.apply(np.arange(-128, 128) - zero_point)


def _tabled(w: Writer, x: Tensor, rescale: Rescale, zero_point: int) -> tuple[Tensor, Rescale, int]:
    """An operand behind its rescale, which a table makes. Without tables Vela would write it in int32, and add slowly."""
    if rescale == unscaled():
        return x, rescale, zero_point
    numbers = _scaled(rescale, zero_point)
    zero_point = -128 - int(numbers.min())
    return w.graph.table(x, (numbers + zero_point).astype(np.int8)), unscaled(), zero_point


def product(w: Writer, layer: Product, at: Composite) -> Value:
    perm, operands = w.operands(at, at.calls[0].args[:2])
    sides = [
        w.converted(x, "int32", input_zp=zero_point - value.offset) for (x, value), zero_point in zip(operands, layer.zero_points)
    ]
    return at.broadcast(layer.out.dtype, perm, w.finish(w.graph.multiply(*sides), layer.out))


def extreme(w: Writer, layer: Extreme, at: Composite) -> Value:
    perm, operands = w.operands(at, at.calls[0].args[:2])
    value = operands[0][1]
    out = w.graph.binary(layer.op, *[w.converted(x, "int32") for x, _ in operands])
    out = w.clamp(w.converted(out, operands[0][0].dtype), Output(value.dtype, None, layer.clamp))
    broadcast = at.broadcast(value.dtype, perm, out)
    if layer.out.rescale is not None:
        perm, _ = w.any_order(broadcast, layer.out.rescale.axis)
    return Value(layer.out.dtype, {perm: w.finish(broadcast.stored[perm], layer.out, layer.input_zp - value.offset)})


def shift(w: Writer, layer: Shift, at: Composite) -> Value:
    perm, operands = w.operands(at, at.calls[0].args[:2])
    (x, _), (amount, _) = operands
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
