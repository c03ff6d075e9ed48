"""Resized images, and grids over images.

Each axis of a resized image has a few weighted source pixels for every new pixel. They are known when the code is
written, or the kernel computes them from the extents.

Resizing is linear in the pixels. So known weights of an axis are read off the interpreter's kernel, given a one at each
place. Every method and coordinate system agrees with the interpreter.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Sink, Value, unsupported
from relaylang.backends.cpu.lower.common import result_type
from relaylang.backends.cpu.lower.sampling import cubic
from relaylang.interpreter import KERNELS
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.index import variable
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import has_sizes
from relaylang.ops.shapes import split_layout


def _weights(call: Call, number: int, size: int, dtype: str) -> np.ndarray:
    """The weight of each old pixel of an axis in each new one, [old, new]. A new pixel that lies outside has nan."""
    attrs = call.attrs
    count = len(attrs.size)
    target = [1] * count
    target[number] = int(attrs.size[number])
    roi = None
    if attrs.roi:
        roi = [0.0] * count + [1.0] * count
        roi[number], roi[count + number] = float(attrs.roi[number]), float(attrs.roi[count + number])
    plain = "NC" + {1: "W", 2: "HW", 3: "DHW"}[count]
    shape = [size, 1, *[size if n == number else 1 for n in range(count)]]
    ones = np.eye(size, dtype=dtype).reshape(shape)
    own = replace(attrs, size=tuple(target), layout=plain, roi=roi, extrapolation_value=float("nan"), out_dtype="")
    kernel: Any = KERNELS[call.op.name]  # type: ignore[attr-defined]
    return np.asarray(kernel(own, ones)).reshape(size, target[number])


def _taps(weights: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same as pixels and weights: so many of them for each new pixel as any needs, in order."""
    used = [np.flatnonzero(column) for column in weights.T]
    most = max([1, *[len(u) for u in used]])
    places = np.zeros((most, len(used)), np.int32)
    shares = np.zeros((most, len(used)), weights.dtype)
    for new, old in enumerate(used):
        places[:, new] = old[0] if len(old) else 0
        places[: len(old), new] = old
        shares[: len(old), new] = weights[old, new]
    return list(zip(places, shares))


@dataclass
class _Axis:
    """A resized axis: the old pixels of each new one with their shares (None: all 1). `outside` says which have none."""

    taps: list[tuple[Buf, Buf | None]]
    outside: Buf | None


def _axis(kernel: Kernel, call: Call, number: int, size: int, acc: str) -> _Axis:
    """An axis of known extents, in tables."""
    weights = _weights(call, number, size, "float64" if acc == "float64" else "float32")
    beyond = np.isnan(weights).any(axis=0)
    taps = [
        (kernel.constant(places, "int32"), None if (shares == 1).all() else kernel.constant(shares.astype(acc), acc))
        for places, shares in _taps(np.where(beyond, weights.dtype.type(0), weights))
    ]
    return _Axis(taps, kernel.constant(beyond.astype(np.uint8), "bool") if beyond.any() else None)


@dataclass
class _Line:
    """A new pixel of an axis, in float32: its number `x`, the extents `old` and `new`, the region's ends."""

    x: ir.Expr
    old: ir.Expr
    new: ir.Expr
    begin: float
    end: float

    def of_several(self, place: ir.Expr, only: ir.Expr) -> ir.Expr:
        """A place, and the one where there is one new pixel."""
        return ir.select(self.new > 1, place, only)


def _half_pixel(at: _Line) -> ir.Expr:
    return (at.x + 0.5) * (at.old / at.new) - 0.5


def _crop(at: _Line) -> ir.Expr:
    begin, end = (ir.Const(v, "float32") for v in (at.begin, at.end))
    last = at.old - 1
    return at.of_several(begin * last + at.x * (end - begin) * last / (at.new - 1), 0.5 * (begin + end) * last)


#: A new pixel's place on the old axis, by the transformation of coordinates.
_PLACES: dict[str, Callable[[_Line], ir.Expr]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": lambda at: at.of_several(_half_pixel(at), ir.Const(0, "float32")),
    "align_corners": lambda at: at.of_several((at.old - 1) / (at.new - 1) * at.x, at.x),
    "asymmetric": lambda at: at.old / at.new * at.x,
    "tf_half_pixel_for_nn": lambda at: (at.x + 0.5) * (at.old / at.new),
    "tf_crop_and_resize": _crop,
}
#: An operation on a place that has a number added.
_ROUND = {
    "round": ("round", 0),
    "round_prefer_floor": ("ceil", -0.5),
    "round_prefer_ceil": ("floor", 0.5),
    "floor": ("floor", 1e-5),
    "ceil": ("ceil", -1e-5),
}
#: How many pixels have a share in a new one.
_AROUND = {"nearest_neighbor": 1, "linear": 2, "cubic": 4}


def _axis_of_sizes(kernel: Kernel, call: Call, number: int, size: int, acc: str) -> _Axis:
    """An axis whose extents are sizes: the same as the interpreter's kernel computes, when the kernel runs."""
    attrs = call.attrs
    count, target = len(attrs.size), attrs.size[number]
    mode, method = attrs.coordinate_transformation_mode, attrs.method
    rounding = attrs.rounding_method or ("round" if mode == "align_corners" else "floor")
    if mode not in _PLACES or method not in _AROUND or rounding not in _ROUND:
        raise unsupported(f"{mode}, {method} and {rounding} of an unknown extent cannot be compiled", call)
    nearest = method == "nearest_neighbor"
    taps = [(kernel.buffer((target,), "int32"), None if nearest else kernel.buffer((target,), acc)) for _ in range(_AROUND[method])]
    outside = kernel.buffer((target,), "bool") if mode == "tf_crop_and_resize" else None
    begin, end = (attrs.roi[number], attrs.roi[count + number]) if attrs.roi else (0.0, 1.0)
    b = Builder()
    old, new = b.let("old", size), b.let("new", target)

    def kept(place: ir.Expr) -> ir.Expr:
        return ir.op("clamp", place, 0, old - 1)

    with b.loop("i", new) as i:
        x, before, after = (ir.cast(v, "float32") for v in (i, old, new))
        line = _Line(x, before, after, float(begin), float(end))
        at = b.let("at", _PLACES[mode](line))
        if nearest:
            name, more = _ROUND[rounding]
            place = ir.cast(ir.op(name, at + more if more else at), ir.INDEX)
            if mode == "asymmetric" and count == 2:
                wide = ir.cast(old, "float64")
                few = ir.cast(new, "float64") / wide <= ir.Const(1.0, "float64") / (1e-5 * wide + 1e-5)
                place = ir.select((new % old).eq(0) & few, i // (new // old), place)
            b.store(taps[0][0], kept(place), i)
        else:
            low = b.let("low", ir.op("floor", at))
            shares = _shares(b, b.let("t", at - low), low, line.old, attrs)
            first = len(shares) // 2 - 1
            for k, ((places, held), share) in enumerate(zip(taps, shares)):
                b.store(places, kept(ir.cast(low, ir.INDEX) + (k - first)), i)
                b.store(held, share, i)
        if outside is not None:
            b.store(outside, (at < 0) | (at > line.old - 1), i)
    kernel.stage(body=b.body)
    return _Axis(taps, outside)


def _shares(b: Builder, t: ir.Expr, low: ir.Expr, old: ir.Expr, attrs: Any) -> list[Any]:
    """The shares of the pixels around a place that lies `t` behind the pixel `low` of `old`."""
    if attrs.method != "cubic":
        return [1 - t, t]
    shares = cubic(t, float(attrs.cubic_alpha))
    if not attrs.cubic_exclude:
        return shares
    beyond = [(low - 1 + k < 0) | (low + k > old) for k in range(4)]
    zero = ir.Const(0, "float32")
    shares = [b.let(f"w{k}", ir.select(gone, zero, w)) for k, (gone, w) in enumerate(zip(beyond, shares))]
    total = b.let("total", shares[0] + shares[1] + shares[2] + shares[3])
    return [w / total for w in shares]


def _resize(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    attrs = call.attrs
    data = BufTensor(kernel.strided(args[0]))
    letters = [letter for letter, _ in split_layout(attrs.layout)]
    if {"d", "h", "w"} & set(letters):
        raise unsupported(f"the layout {attrs.layout} cannot be compiled", call)
    axes = [letters.index(c) for c in "DHW" if c in letters]
    nearest = attrs.method == "nearest_neighbor"
    acc = data.dtype if nearest or data.dtype == "float64" else "float32"
    shape = sink.anchor.shape
    nest = Nest(shape)
    index: list[Index] = list(map(variable, range(len(shape))))
    corners: list[list[Index]] = [list(index)]
    steps: list[list[Scalar | None]] = []
    outside: Scalar | None = None
    for number in reversed(range(len(axes))):
        d = axes[number]
        sized = has_sizes((data.shape[d], shape[d]))
        weights = (_axis_of_sizes if sized else _axis)(kernel, call, number, data.shape[d], acc)
        if weights.outside is not None:
            mark = nest.load(weights.outside, index[d])
            outside = mark if outside is None else outside | mark
        held = [nest.load(places, index[d]) for places, _ in weights.taps]
        corners = [[*c[:d], place.cast("int64"), *c[d + 1 :]] for place in held for c in corners]
        steps.append([None if shares is None else nest.load(shares, index[d]) for _, shares in weights.taps])
    values = [data.at(nest, c).cast(acc) for c in corners]
    # The last axis varies fastest among the corners, and is mixed first.
    for row in steps:
        values = [_mixed(values[first : first + len(row)], row) for first in range(0, len(values), len(row))]
    dtype = sink.anchor.dtype
    value = values[0].cast(dtype)
    if outside is not None:
        beyond = nest.const(attrs.extrapolation_value, "float32").cast(dtype)
        value = outside.select(beyond, value)
    sink.store(nest, index, value)
    kernel.loops(nest)


def _mixed(values: Sequence[Scalar], shares: Sequence[Scalar | None]) -> Scalar:
    """The sum of values times their shares; None stands for 1."""
    terms = [value if share is None else value * share for value, share in zip(values, shares)]
    return reduce(operator.add, terms)


def _affine_grid(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """A matrix per image, over the coordinates from -1 to 1 of a target image."""
    data = args[0]
    shape, dtype = result_type(call)
    own = np.dtype(dtype)
    lines = []
    for n in shape[2:]:
        step = own.type((2.0 - 1e-7) / (n - 1) if n > 1 else 0)
        lines.append(kernel.constant(own.type(-1) + np.arange(n).astype(own) * step, dtype))

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        y, x = (nest.load(line, i) for line, i in zip(lines, index[2:]))
        a, b, c = (data.at(nest, [*index[:2], ir.number(k)]) for k in range(3))
        return a * x + b * y + c

    return Recipe(shape, dtype, at)


RECIPES: dict[str, Any] = {"image.affine_grid": _affine_grid}
ANCHORS: dict[str, Any] = {f"image.resize{n}d": _resize for n in (1, 2, 3)}
