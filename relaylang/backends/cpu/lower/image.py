"""Resized images, and grids over images.

Each axis of a resized image has a few weighted source pixels for every new pixel. They are known when the code is
written.

Resizing is linear in the pixels. So the weights of an axis are read off the interpreter's kernel, given a one at each
place in turn. Every method and coordinate system agrees with the interpreter.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.backends.cpu.index import Affine, constant, variable
from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Sink, Value, unsupported
from relaylang.backends.cpu.lower.common import convert, result_type
from relaylang.backends.cpu.scalar import Index, Nest, Scalar
from relaylang.interpreter import KERNELS
from relaylang.ir import Call
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
    index: list[Affine] = [variable(d) for d in range(len(shape))]
    corners: list[list[Index]] = [list(index)]
    steps: list[list[Scalar | None]] = []
    outside: Scalar | None = None
    for number in reversed(range(len(axes))):
        d = axes[number]
        weights = _weights(call, number, data.shape[d], "float64" if acc == "float64" else "float32")
        beyond = np.isnan(weights).any(axis=0)
        if beyond.any():
            mark = nest.load(kernel.constant(beyond.astype(np.uint8), "bool"), index[d])
            outside = mark if outside is None else nest.op("({0} | {1})", [outside, mark], "bool")
        taps = _taps(np.where(beyond, weights.dtype.type(0), weights))
        held = [nest.load(kernel.constant(places, "int32"), index[d]) for places, _ in taps]
        corners = [[*c[:d], convert(nest, place, "int64"), *c[d + 1 :]] for place in held for c in corners]
        steps.append([
            None if (shares == 1).all() else nest.load(kernel.constant(shares.astype(acc), acc), index[d])
            for _, shares in taps
        ])  # fmt: skip
    values = [convert(nest, data.at(nest, c), acc) for c in corners]
    # The last axis varies fastest among the corners, and is mixed first.
    for row in steps:
        mixed = []
        for first in range(0, len(values), len(row)):
            total: Scalar | None = None
            for value, share in zip(values[first : first + len(row)], row):
                term = value if share is None else nest.op("({0} * {1})", [value, share], acc)
                total = term if total is None else nest.op("({0} + {1})", [total, term], acc)
            assert total is not None
            mixed.append(total)
        values = mixed
    dtype = sink.anchor.dtype
    value = convert(nest, values[0], dtype)
    if outside is not None:
        beyond = convert(nest, nest.const(attrs.extrapolation_value, "float32"), dtype)
        value = nest.op("({0} ? {1} : {2})", [outside, beyond, value], dtype)
    sink.store(nest, index, value)
    kernel.loops(nest)


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
        a, b, c = (data.at(nest, [*index[:2], constant(k)]) for k in range(3))
        return nest.op("({0} * {1} + {2} * {3} + {4})", [a, x, b, y, c], dtype)

    return Recipe(shape, dtype, at)


RECIPES: dict[str, Any] = {"image.affine_grid": _affine_grid}
ANCHORS: dict[str, Any] = {f"image.resize{n}d": _resize for n in (1, 2, 3)}
