"""Writers of layers that pick entries along axes: slices, and concatenations of slices.

A slice alone is concatenated, too: Vela would lose the slice in front of a rescale to int32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, var
from relaylang.partition.targets.ethos_u.picks import Nearest, Pick, Places, Split, runs
from relaylang.partition.targets.ethos_u.windows import nchw


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
    for axis, found in places.items():
        here = perm.index(axis)
        times = len(found) // x.shape[here]
        if times > 1 and found == tuple(np.repeat(np.arange(x.shape[here]), times)):
            x = _repeated(w, x, here, times)
        else:
            x = picked(w, x, here, found)
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
    found = np.asarray(evaluate(Function([x], Call(layer.call.op, [x], layer.call.attrs)), numbers.reshape(shape)))
    _, _, rows, columns = nchw(found.shape, layer.layout)
    grid = found.reshape(rows, columns)
    down, across = tuple(int(i) // width for i in grid[:, 0]), tuple(int(i) % width for i in grid[0])
    return along(w, at.source, {layer.layout.index("H"): down, layer.layout.index("W"): across})


def split(w: Writer, layer: Split, at: Composite) -> list[Value]:
    perm, x = w.any_order(at.source)
    axis = perm.index(layer.axis)
    parts = [w.graph.concat([w.cut(x, axis, first, count)], axis) for first, count in layer.parts]
    return [Value(at.source.dtype, {perm: part}) for part in parts]


WRITERS: dict[type, Write] = {Pick: pick, Split: split, Nearest: nearest}
