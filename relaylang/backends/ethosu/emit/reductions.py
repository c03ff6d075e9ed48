"""Writers of layers that combine the numbers along axes.

The combined axes become the width of an image, the axes around them its height and channels. So sums are convolutions
with ones, and extremes are pools.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.emit.pools import averaged
from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.partition.targets.ethos_u.reductions import Axes, ExtremeOver, MeanOver, PlaceOver, SumOver, TruthOver

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
    found = w.graph.binary("MINIMUM", places, w.graph.multiply(differs, w.number(-(1 << 15))))
    first = w.graph.max_pool2d(w.converted(found, "int16"), (1, lanes.numbers), (1, 1), (0, 0, 0, 0))
    return lanes.value(w, "int32", w.graph.binary("SUB", w.number(-1), w.converted(first, "int32")))


def _turned(w: Writer, x: Tensor, largest: bool) -> Tensor:
    if largest:
        return x
    if x.dtype == "int8":
        return w.table(x, _TURNED)
    return w.converted(w.graph.binary("SUB", w.number(-1, len(x.shape)), w.converted(x, "int32")), x.dtype)


WRITERS: dict[type, Write] = {
    SumOver: sum_over,
    MeanOver: mean_over,
    ExtremeOver: extreme_over,
    PlaceOver: place_over,
    TruthOver: truth_over,
}
