"""Layers for the Ethos-U that combine the numbers along axes, read from their calls.

The combined axes become the width of an image, the axes around them its height and channels. So sums are convolutions
with ones, and extremes are pools.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.operands import (
    BYTES,
    RANGES,
    Output,
    constant,
    feature_type,
    op_name,
    scalar,
    tail,
    tensor_of,
)
from relaylang.backends.ethosu.layers.pools import AvgPool, Pool, average_of, averaged
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, TensorType
from relaylang.ops.reduce import taken_axes
from relaylang.partition.fixed_point import averaging

#: The most numbers of a sum: the elements of a kernel.
_MOST = 4096
_MOST_IN_WINDOW = 65536
_MOST_IN_AVERAGE = 256


@dataclass(frozen=True)
class Axes:
    """The axes that go away, or stay with the extent 1 if `keep`."""

    axes: tuple[int, ...]
    keep: bool


@dataclass(frozen=True)
class SumOver:
    """Sums along axes, less `input_zp`, then `out`. With `rounds`, these are rounded averages of so many numbers."""

    over: Axes
    input_zp: int
    out: Output
    rounds: int = 0


@dataclass(frozen=True)
class MeanOver:
    """Truncated averages along axes: those of windows that have all the numbers."""

    over: Axes
    average: AvgPool


@dataclass(frozen=True)
class ExtremeOver:
    """The largest or smallest numbers along axes."""

    over: Axes
    largest: bool


@dataclass(frozen=True)
class TruthOver:
    """Whether all truth values along axes hold, or any."""

    over: Axes
    every: bool


@dataclass(frozen=True)
class PlaceOver:
    """The place of the largest or smallest number along one axis, the first of several."""

    over: Axes
    largest: bool


def _axes(call: Call, source: TensorType, most: int) -> tuple[Axes, int]:
    """The axes of a reduction, and how many numbers it combines."""
    rank = len(source.shape)
    if not 1 <= rank <= 4:
        raise Unsupported(f"an input of {rank} axes; 1 to 4 are taken")
    axes = tuple(taken_axes(rank, call.attrs.axis, call.attrs.exclude))
    if not axes or (len(axes) == rank and not call.attrs.keepdims):
        raise Unsupported("its result has no axes" if axes else "it combines nothing")
    numbers = math.prod([d for i, d in enumerate(source.shape) if i in axes and isinstance(d, int)])
    if numbers > most:
        raise Unsupported(f"it combines {numbers} numbers; at most {most} are taken")
    return Axes(axes, bool(call.attrs.keepdims)), numbers


def _widened(call: Call) -> TensorType:
    """The source of a cast to int32."""
    source = feature_type(call.args[0])
    if tensor_of(call, "the result of the cast").dtype != "int32":
        raise Unsupported("it is taken on int32 only")
    return source


def read_sum_over(calls: Sequence[Call]) -> SumOver:
    """cast(int32) sum [qnn.requantize [clip | nn.relu | cast]*]"""
    widened, total, *rest = calls
    source = _widened(widened)
    over, numbers = _axes(total, source, _MOST)
    zero_point = 0
    if rest:
        zero_point = scalar(rest[0].args[2], "its input zero point")
        if constant(rest[0].args[1], "its input scale").size != 1:
            raise Unsupported("scales of channels behind a sum")
    bound = max(abs(numbers * end - zero_point) for end in RANGES[source.dtype])
    out = tail(rest, np.array([bound]))
    return SumOver(over, zero_point, out, numbers if _is_average(numbers, zero_point, source.dtype, out) else 0)


def _is_average(numbers: int, zero_point: int, dtype: str, out: Output) -> bool:
    """Whether a sum and its rescale are an average of the accelerator's for every sum, which is the cheaper form."""
    each, rest = divmod(zero_point, numbers)
    low, high = RANGES[dtype]
    if dtype not in BYTES or out.rescale is None or out.dtype != dtype or rest or numbers > _MOST_IN_AVERAGE:
        return False
    if not (low <= each <= high and low <= out.rescale.output_zp <= high):
        return False
    sums = np.arange(numbers * (low - each), numbers * (high - each) + 1)
    average = averaging(numbers).apply(sums) + out.rescale.output_zp
    return np.array_equal(np.clip(out.rescale.apply(sums), low, high), np.clip(average, low, high))


def read_mean_over(calls: Sequence[Call]) -> MeanOver:
    """cast(int32) mean, then cast or qnn.requantize, then limits."""
    widened, mean, *rest = calls
    source = _widened(widened)
    over, numbers = _axes(mean, source, _MOST)
    return MeanOver(over, average_of(Pool((1, numbers), (1, 1), (0, 0, 0, 0), "NHWC"), source, rest))


def read_extreme_over(calls: Sequence[Call]) -> ExtremeOver:
    """max or min of a feature map."""
    (call,) = calls
    over, _ = _axes(call, feature_type(call.args[0]), _MOST_IN_WINDOW)
    return ExtremeOver(over, op_name(call) == "max")


def read_truth_over(calls: Sequence[Call]) -> TruthOver:
    """all or any of a bool tensor."""
    (call,) = calls
    over, _ = _axes(call, feature_type(call.args[0], dtypes=("bool",)), _MOST_IN_WINDOW)
    return TruthOver(over, op_name(call) == "all")


def read_place_over(calls: Sequence[Call]) -> PlaceOver:
    """argmax or argmin along one axis."""
    (call,) = calls
    over, _ = _axes(call, feature_type(call.args[0]), _MOST_IN_WINDOW)
    if len(over.axes) != 1:
        raise Unsupported("it numbers the places of several axes")
    if call.attrs.select_last_index:
        raise Unsupported("it takes the last of several places")
    if tensor_of(call, "its result").dtype != "int32":
        raise Unsupported(f"it makes {tensor_of(call, 'its result').dtype}; the accelerator makes int32")
    return PlaceOver(over, op_name(call) == "argmax")


#: The most numbers of which the U55 and U65 tell the place of the largest.
_MOST_PLACES = 127
#: int8 numbers in the other direction, -1 - x: the largest becomes the smallest.
_TURNED = np.arange(127, -129, -1).astype(np.int8)


@dataclass(frozen=True)
class _Lanes:
    """A tensor whose combined axes are neighbours: its order of axes, and the place of the first of them."""

    over: Axes
    perm: tuple[int, ...]
    x: Tensor
    first: int

    @property
    def outer(self) -> int:
        return math.prod(self.x.shape[: self.first])

    @property
    def numbers(self) -> int:
        return math.prod(self.x.shape[self.first : self.first + len(self.over.axes)])

    @property
    def inner(self) -> int:
        return math.prod(self.x.shape[self.first + len(self.over.axes) :])

    def image(self, w: Writer) -> Tensor:
        return w.graph.reshape(self.x, (1, self.outer, self.numbers, self.inner))

    def value(self, w: Writer, dtype: str, out: Tensor) -> Value:
        """The combined numbers, in any shape, as a value."""
        gone = self.over.axes
        if self.over.keep:
            perm = self.perm
            shape = tuple(1 if axis in gone else d for axis, d in zip(perm, self.x.shape))
        else:
            left = [axis for axis in self.perm if axis not in gone]
            perm = tuple(sorted(left).index(axis) for axis in left)
            shape = tuple(d for axis, d in zip(self.perm, self.x.shape) if axis not in gone)
        return Value(dtype, {perm: w.graph.reshape(out, shape)})


def _lanes(w: Writer, source: Value, over: Axes) -> _Lanes:
    w.any_order(source)
    for perm, x in source.stored.items():
        places = sorted(perm.index(axis) for axis in over.axes)
        if places == list(range(places[0], places[0] + len(places))):
            return _Lanes(over, perm, x, places[0])
    perm = (*(axis for axis in range(len(source.shape)) if axis not in over.axes), *over.axes)
    return _Lanes(over, perm, w.in_order(source, perm), len(perm) - len(over.axes))


def sum_over(w: Writer, layer: SumOver, at: Composite) -> Value:
    lanes = _lanes(w, at.source, layer.over)
    x = lanes.image(w)
    if layer.rounds:
        assert layer.out.rescale is not None
        offset = at.source.offset
        zero_points = layer.input_zp // layer.rounds - offset, layer.out.rescale.output_zp - offset
        return lanes.value(w, layer.out.dtype, w.clamp(w.graph.avg_pool2d(x, (1, layer.rounds), *zero_points), layer.out))
    total = w.graph.conv2d(
        x,
        np.ones((1, lanes.numbers, lanes.inner, 1), np.int8),
        np.full(lanes.inner, -layer.input_zp, np.int32),
        pad=(0, 0, 0, 0),
        stride=(1, 1),
        dilation=(1, 1),
        input_zp=-at.source.offset,
        weight_zp=0,
        depthwise=True,
    )
    return lanes.value(w, layer.out.dtype, w.finish(total, layer.out))


def mean_over(w: Writer, layer: MeanOver, at: Composite) -> Value:
    lanes = _lanes(w, at.source, layer.over)
    out = averaged(w, lanes.image(w), (0, 0, 0, 0), layer.average, at.source)
    return lanes.value(w, layer.average.out.dtype, out)


def extreme_over(w: Writer, layer: ExtremeOver, at: Composite) -> Value:
    lanes = _lanes(w, at.source, layer.over)
    x = _turned(w, lanes.image(w), layer.largest)
    out = w.graph.max_pool2d(x, (1, lanes.numbers), (1, 1), (0, 0, 0, 0))
    return lanes.value(w, at.source.dtype, _turned(w, out, layer.largest))


def truth_over(w: Writer, layer: TruthOver, at: Composite) -> Value:
    lanes = _lanes(w, at.source, layer.over)
    return lanes.value(w, "bool", w.graph.reduce_truth("REDUCE_ALL" if layer.every else "REDUCE_ANY", lanes.image(w), 2))


def place_over(w: Writer, layer: PlaceOver, at: Composite) -> Value:
    (axis,) = layer.over.axes
    dtype, numbers = at.source.dtype, at.source.shape[axis]
    if not w.is_u85 and (dtype == "int16" or numbers > _MOST_PLACES) and numbers <= 1 << 15:
        return _first_of(w, layer, at)
    perm, x = w.any_order(at.source, axis)
    lanes = _Lanes(layer.over, perm, x, len(perm) - 1)
    x = _turned(w, x, layer.largest)
    if w.is_u85:  # joined with the operator in front, Vela writes behind the memory, or crashes
        x = w.held(x)
    rows = w.graph.reshape(x, (1, lanes.outer, lanes.numbers))
    return lanes.value(w, "int32", w.graph.argmax(rows, 2))


def _first_of(w: Writer, layer: PlaceOver, at: Composite) -> Value:
    """The first place whose number is the largest: the largest of -1 - place, where other places count as -2^15."""
    lanes = _lanes(w, at.source, layer.over)
    x = _turned(w, lanes.image(w), layer.largest)
    most = w.graph.max_pool2d(x, (1, lanes.numbers), (1, 1), (0, 0, 0, 0))
    apart = w.graph.binary("SUB", w.converted(most, "int32"), w.converted(x, "int32"))
    differs = w.graph.binary("MINIMUM", apart, w.number(1))
    places = w.graph.constant(np.arange(-1, -1 - lanes.numbers, -1, np.int32).reshape(1, 1, -1, 1), "places")
    largest = w.graph.binary("MINIMUM", places, w.graph.multiply(differs, w.number(-(1 << 15))))
    first = w.graph.max_pool2d(w.converted(largest, "int16"), (1, lanes.numbers), (1, 1), (0, 0, 0, 0))
    return lanes.value(w, "int32", w.graph.binary("SUB", w.number(-1), w.converted(first, "int32")))


def _turned(w: Writer, x: Tensor, largest: bool) -> Tensor:
    if largest:
        return x
    if x.dtype == "int8":
        return w.table(x, _TURNED)
    return w.converted(w.graph.binary("SUB", w.number(-1, len(x.shape)), w.converted(x, "int32")), x.dtype)
