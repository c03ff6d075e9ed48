"""Resized images, and grids over images.

Each axis of a resized image has a few weighted source pixels for every new pixel. They are known when the code is
written, or the kernel computes them from the extents.

Resizing is linear in the pixels. So known weights of an axis are read off the interpreter's kernel, given a one at each
place. Every method and coordinate system agrees with the interpreter.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Sink, Value, unsupported
from relaylang.backends.cpu.lower.common import result_type
from relaylang.interpreter import KERNELS
from relaylang.ir import Call
from relaylang.kernels.dtypes import literal
from relaylang.kernels.index import Affine, constant, variable
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


#: A new pixel's place on the old axis, by the transformation of coordinates. `S` is the old extent, `T` the new one, and `x` the
#: new pixel. `begin` and `end` are the region's.
_PLACES = {
    "half_pixel": "(x + 0.5f) * (S / T) - 0.5f",
    "pytorch_half_pixel": "T > 1 ? (x + 0.5f) * (S / T) - 0.5f : 0",
    "align_corners": "T > 1 ? (S - 1) / (T - 1) * x : x",
    "asymmetric": "S / T * x",
    "tf_half_pixel_for_nn": "(x + 0.5f) * (S / T)",
    "tf_crop_and_resize": "T > 1 ? begin * (S - 1) + x * (end - begin) * (S - 1) / (T - 1) : 0.5f * (begin + end) * (S - 1)",
}
_ROUND = {
    "round": "roundf(at)", "round_prefer_floor": "ceilf(at - 0.5f)", "round_prefer_ceil": "floorf(at + 0.5f)",
    "floor": "floorf(at + 1e-5f)", "ceil": "ceilf(at - 1e-5f)",
}  # fmt: skip
#: The shares of the pixels around a place, `t` behind the second one of four, or the first of two. `a` is cubic's parameter.
_SHARES: dict[str, list[str | None]] = {
    "nearest_neighbor": [None],
    "linear": ["1 - t", "t"],
    "cubic": ["a * (t * t * t - 2 * t * t + t)", "(a + 2) * t * t * t - (3 + a) * t * t + 1",
              "-(a + 2) * t * t * t + (3 + 2 * a) * t * t - a * t", "-a * t * t * t + a * t * t"],
}  # fmt: skip


def _axis_of_sizes(kernel: Kernel, call: Call, number: int, size: int, acc: str) -> _Axis:
    """An axis whose extents are sizes: the same as the interpreter's kernel computes, in C."""
    attrs = call.attrs
    count, target = len(attrs.size), attrs.size[number]
    mode, method = attrs.coordinate_transformation_mode, attrs.method
    rounding = attrs.rounding_method or ("round" if mode == "align_corners" else "floor")
    if mode not in _PLACES or method not in _SHARES or rounding not in _ROUND:
        raise unsupported(f"{mode}, {method} and {rounding} of an unknown extent cannot be compiled", call)
    shares = _SHARES[method]
    taps = [(kernel.buffer((target,), "int32"), None if s is None else kernel.buffer((target,), acc)) for s in shares]
    outside = kernel.buffer((target,), "bool") if mode == "tf_crop_and_resize" else None
    begin, end = (attrs.roi[number], attrs.roi[count + number]) if attrs.roi else (0.0, 1.0)
    put = kernel.stage().put
    put(f"const long from = {size}, to = {target};\nconst float S = from, T = to;")
    if outside is not None:
        put(f"const float begin = {literal(float(begin), 'float32')}, end = {literal(float(end), 'float32')};")
    put(f"for (long i = 0; i < to; i++) {{\n  const float x = i, at = {_PLACES[mode]};")
    if method == "nearest_neighbor":
        place = f"(int64_t){_ROUND[rounding]}"
        if mode == "asymmetric" and count == 2:
            whole = "to % from == 0 && (double)to / from <= 1 / (1e-5 * from + 1e-5)"
            place = f"{whole} ? i / (to / from) : {place}"
        put(f"  {taps[0][0].name}[i] = r_clamp_index({place}, 0, from - 1);")
    else:
        first = len(shares) // 2 - 1
        put(f"  const float low = floorf(at), t = at - low, a = {literal(float(attrs.cubic_alpha), 'float32')};")
        put(f"  float w[] = {{{', '.join(str(s) for s in shares)}}};")
        if method == "cubic" and attrs.cubic_exclude:
            put("  for (int k = 0; k < 4; k++) if (low - 1 + k < 0 || low + k > from) w[k] = 0;\n"
                "  const float all = w[0] + w[1] + w[2] + w[3];\n  for (int k = 0; k < 4; k++) w[k] /= all;")  # fmt: skip
        for k, (places, held) in enumerate(taps):
            assert held is not None
            put(f"  {places.name}[i] = r_clamp_index((int64_t)low + {k - first}, 0, from - 1); {held.name}[i] = w[{k}];")
    if outside is not None:
        put(f"  {outside.name}[i] = at < 0 || at > S - 1;")
    put("}")
    return _Axis(taps, outside)


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
        sized = has_sizes((data.shape[d], shape[d]))
        found = (_axis_of_sizes if sized else _axis)(kernel, call, number, data.shape[d], acc)
        if found.outside is not None:
            mark = nest.load(found.outside, index[d])
            outside = mark if outside is None else outside | mark
        held = [nest.load(places, index[d]) for places, _ in found.taps]
        corners = [[*c[:d], place.cast("int64"), *c[d + 1 :]] for place in held for c in corners]
        steps.append([None if shares is None else nest.load(shares, index[d]) for _, shares in found.taps])
    values = [data.at(nest, c).cast(acc) for c in corners]
    # The last axis varies fastest among the corners, and is mixed first.
    for row in steps:
        mixed = []
        for first in range(0, len(values), len(row)):
            total: Scalar | None = None
            for value, share in zip(values[first : first + len(row)], row):
                term = value if share is None else value * share
                total = term if total is None else total + term
            assert total is not None
            mixed.append(total)
        values = mixed
    dtype = sink.anchor.dtype
    value = values[0].cast(dtype)
    if outside is not None:
        beyond = nest.const(attrs.extrapolation_value, "float32").cast(dtype)
        value = outside.select(beyond, value)
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
        return a * x + b * y + c

    return Recipe(shape, dtype, at)


RECIPES: dict[str, Any] = {"image.affine_grid": _affine_grid}
ANCHORS: dict[str, Any] = {f"image.resize{n}d": _resize for n in (1, 2, 3)}
