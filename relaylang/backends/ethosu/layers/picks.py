"""Layers for the Ethos-U that pick entries along axes, read from their calls: slices, mirrored borders, repetitions.

Such a layer has the picked indices of each axis. The writer makes slices and concatenations of them.

A slice alone is concatenated, too: Vela would lose the slice in front of a rescale to int32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from relaylang.backends.ethosu.layers.operands import constant, feature_type, op_name, tensor_of
from relaylang.backends.ethosu.layers.windows import nchw
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, TensorType, TupleType, var
from relaylang.ops.indexing import slice_bound, slice_entries

#: The most slices that one axis may need.
_MOST_RUNS = 256

#: The picked indices of an axis.
Places = tuple[int, ...]


@dataclass(frozen=True)
class Pick:
    """The entries at some places along some axes; the result has the shape `shape`."""

    places: Mapping[int, Places]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """Several parts along one axis: the first index and the extent of each."""

    axis: int
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Nearest:
    """A resize that takes the nearest pixel: the call, whose places the interpreter knows."""

    call: Call
    layout: str


def runs(places: Places) -> list[tuple[int, int, int]]:
    """Places as pieces: the first place, the step (0 for a repetition), and how many places."""
    pieces: list[tuple[int, int, int]] = []
    for place in places:
        first, step, count = pieces[-1] if pieces else (0, 0, 0)
        if count == 1 and place - first >= 0:
            pieces[-1] = (first, place - first, 2)
        elif count > 1 and place == first + step * count:
            pieces[-1] = (first, step, count + 1)
        else:
            pieces.append((place, 1, 1))
    return pieces


def _source(call: Call) -> tuple[TensorType, tuple[int, ...]]:
    source = feature_type(call.args[0])
    if not 1 <= len(source.shape) <= 4:
        raise Unsupported(f"an input of {len(source.shape)} axes; 1 to 4 are taken")
    return source, tuple(int(d) for d in source.shape)  # type: ignore[arg-type]


def _strided_slice(call: Call, shape: tuple[int, ...]) -> dict[int, np.ndarray]:
    places = {}
    for axis, begin, end, stride in slice_entries(call.attrs, len(shape)):
        first, last = (slice_bound(n, shape[axis], stride) for n in (begin, end))
        places[axis] = np.arange(first, last, stride)
    return places


def _reverse(call: Call, shape: tuple[int, ...]) -> dict[int, np.ndarray]:
    axis = int(call.attrs.axis) % len(shape)
    return {axis: np.arange(shape[axis])[::-1]}


def _mirror_pad(call: Call, shape: tuple[int, ...]) -> dict[int, np.ndarray]:
    return _bordered(call, shape, "symmetric" if call.attrs.mode.upper() == "SYMMETRIC" else "reflect")


def _bordered(call: Call, shape: tuple[int, ...], mode: Literal["symmetric", "reflect", "edge"]) -> dict[int, np.ndarray]:
    widths = [(int(a), int(b)) for a, b in call.attrs.pad_width]
    if any(min(pair) < 0 for pair in widths):
        raise Unsupported("a negative pad width")
    return {axis: np.pad(np.arange(d), widths[axis], mode=mode) for axis, d in enumerate(shape) if any(widths[axis])}


def _pad(call: Call, shape: tuple[int, ...]) -> dict[int, np.ndarray]:
    if call.attrs.pad_mode not in ("edge", "reflect"):
        raise Unsupported(f"pad_mode {call.attrs.pad_mode}")
    return _bordered(call, shape, call.attrs.pad_mode)


def _tile(call: Call, shape: tuple[int, ...]) -> dict[int, np.ndarray]:
    reps = [int(n) for n in call.attrs.reps]
    if len(reps) > len(shape):
        raise Unsupported("it adds axes")
    reps = [1] * (len(shape) - len(reps)) + reps
    return {axis: np.tile(np.arange(shape[axis]), n) for axis, n in enumerate(reps) if n != 1}


def _repeat(call: Call, shape: tuple[int, ...]) -> dict[int, np.ndarray]:
    if call.attrs.axis is None:
        raise Unsupported("it flattens the tensor")
    axis = int(call.attrs.axis) % len(shape)
    return {axis: np.repeat(np.arange(shape[axis]), int(call.attrs.repeats))}


def _take(call: Call, shape: tuple[int, ...]) -> dict[int, np.ndarray]:
    """take of constant indices: the picked axis becomes the axes of the indices."""
    indices = constant(call.args[1], "its indices")
    if call.attrs.axis is None or call.attrs.batch_dims:
        raise Unsupported("it takes from several axes at once")
    axis = int(call.attrs.axis) % len(shape)
    places = indices.astype(np.int64).reshape(-1)
    return {axis: places % shape[axis] if call.attrs.mode == "wrap" else np.clip(places, 0, shape[axis] - 1)}


_PLACES: dict[str, Callable[[Call, tuple[int, ...]], dict[int, np.ndarray]]] = {
    "strided_slice": _strided_slice,
    "reverse": _reverse,
    "nn.mirror_pad": _mirror_pad,
    "nn.pad": _pad,
    "tile": _tile,
    "repeat": _repeat,
    "take": _take,
}


def read_pick(calls: Sequence[Call]) -> Pick:
    """A call that picks entries along axes, each axis alone."""
    (call,) = calls
    _, shape = _source(call)
    picks = {axis: tuple(int(i) for i in places) for axis, places in _PLACES[op_name(call)](call, shape).items()}
    for places in picks.values():
        check_runs(places)
    result = tuple(int(d) for d in feature_type(call, "its result").shape)  # type: ignore[arg-type]
    if not 1 <= len(result) <= 4:
        raise Unsupported(f"a result of {len(result)} axes; 1 to 4 are taken")
    return Pick(picks, result)


def check_runs(places: Places) -> Places:
    """Places that are few enough pieces."""
    if not places:
        raise Unsupported("its result is empty")
    if len(runs(places)) > _MOST_RUNS:
        raise Unsupported(f"it takes {len(runs(places))} pieces of an axis; at most {_MOST_RUNS} are taken")
    return places


def read_split(calls: Sequence[Call]) -> Split:
    """split into equal parts, or at indices in order."""
    (call,) = calls
    _, shape = _source(call)
    axis = int(call.attrs.axis) % len(shape)
    ty = call.checked_type
    assert isinstance(ty, TupleType)
    extents = [_extent(field, axis) for field in ty.fields]
    sections: Any = call.attrs.indices_or_sections
    starts = [int(np.sum(extents[:i])) for i in range(len(extents))]
    if not isinstance(sections, int) and starts[1:] != [int(i) for i in sections]:
        raise Unsupported("its parts overlap")
    if min(extents) < 1:
        raise Unsupported("a part is empty")
    return Split(axis, tuple(zip(starts, extents)))


def _extent(ty: Any, axis: int) -> int:
    assert isinstance(ty, TensorType)
    return int(ty.shape[axis])  # type: ignore[arg-type]


def read_nearest(calls: Sequence[Call]) -> Nearest:
    """image.resize2d or nn.upsampling by the nearest pixel."""
    (call,) = calls
    attrs = call.attrs
    _source(call)
    layout = checked_layout(call)
    feature_type(call, "its result")
    if max(nchw(tensor_of(call, "its result").shape, layout)[2:]) > _MOST_RUNS:
        raise Unsupported(f"a result of more than {_MOST_RUNS} rows or columns")
    if getattr(attrs, "coordinate_transformation_mode", "") == "tf_crop_and_resize":
        raise Unsupported("a region of the image with a border of its own")
    return Nearest(call, layout)


def checked_layout(call: Call) -> str:
    """The layout of an image."""
    layout: str = call.attrs.layout
    if layout not in ("NCHW", "NHWC"):
        raise Unsupported(f"layout {layout}; NCHW and NHWC are taken")
    return layout


def picked(w: Writer, x: Tensor, axis: int, places: Places) -> Tensor:
    """The entries of a tensor at some places along one axis."""
    return w.graph.concat([_piece(w, x, axis, *piece) for piece in runs(places)], axis)


def _piece(w: Writer, x: Tensor, axis: int, first: int, step: int, count: int) -> Tensor:
    """Entries at a distance of `step` from each other; one entry several times where that is 0."""
    if step == 0:
        entry = w.cut(x, axis, first, 1)
        return w.graph.concat([entry] * count, axis)
    if step == 1:
        return w.cut(x, axis, first, count)
    # Blocks of `step` entries, of which each gives the one at `inside`.
    size = count * step
    inside = min(first, max(0, first + size - x.shape[axis]))
    missing = max(0, first - inside + size - x.shape[axis])
    if missing:
        x = w.pad(x, [(0, missing if i == axis else 0) for i in range(len(x.shape))], 0)
    x = w.cut(x, axis, first - inside, size)
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    blocks = w.graph.reshape(x, (outer, count, step, inner))
    kept = w.graph.slice(blocks, (0, 0, inside, 0), (outer, count, 1, inner))
    return w.graph.reshape(kept, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _repeated(w: Writer, x: Tensor, axis: int, times: int) -> Tensor:
    """Each entry several times, one behind the other."""
    outer, inner = math.prod(x.shape[: axis + 1]), math.prod(x.shape[axis + 1 :])
    each = w.graph.reshape(x, (1, outer, 1, inner))
    return w.graph.reshape(w.graph.concat([each] * times, 2), (*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1 :]))


def along(w: Writer, source: Value, places: Mapping[int, Places]) -> Value:
    """The entries of a value at some places along some axes."""
    perm, x = w.any_order(source)
    for axis, picks in places.items():
        here = perm.index(axis)
        times = len(picks) // x.shape[here]
        if times > 1 and picks == tuple(np.repeat(np.arange(x.shape[here]), times)):
            x = _repeated(w, x, here, times)
        else:
            x = picked(w, x, here, picks)
    return Value(source.dtype, {perm: x})


def pick(w: Writer, layer: Pick, at: Composite) -> Value:
    out = along(w, at.source, layer.places)
    if len(layer.shape) == len(out.shape):
        return out
    return Value(out.dtype, {tuple(range(len(layer.shape))): w.graph.reshape(w.in_order(out), layer.shape)})


def nearest(w: Writer, layer: Nearest, at: Composite) -> Value:
    """The interpreter resizes an image of the numbers of its rows, and one of its columns."""
    _, _, height, width = nchw(at.source.shape, layer.layout)
    numbers = np.arange(height * width, dtype=np.int32)
    shape = [{"H": height, "W": width}.get(letter, 1) for letter in layer.layout]
    x = var("x", shape=shape, dtype="int32")
    resized = np.asarray(evaluate(Function([x], Call(layer.call.op, [x], layer.call.attrs)), numbers.reshape(shape)))
    _, _, rows, columns = nchw(resized.shape, layer.layout)
    grid = resized.reshape(rows, columns)
    down, across = tuple(int(i) // width for i in grid[:, 0]), tuple(int(i) % width for i in grid[0])
    return along(w, at.source, {layer.layout.index("H"): down, layer.layout.index("W"): across})


def split(w: Writer, layer: Split, at: Composite) -> list[Value]:
    perm, x = w.any_order(at.source)
    axis = perm.index(layer.axis)
    parts = [w.graph.concat([w.cut(x, axis, first, count)], axis) for first, count in layer.parts]
    return [Value(at.source.dtype, {perm: part}) for part in parts]
