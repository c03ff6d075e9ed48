"""Layers for the Ethos-U whose places of entries are tensors, read from their calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.operands import FEATURES, constant, feature_type
from relaylang.backends.ethosu.layers.picks import Places, check_runs, picked
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant

_MOVED = (*FEATURES, "int32")


@dataclass(frozen=True)
class Gather:
    """The entries along `axis` at computed places; those beyond the ends are at the ends.

    With `batches`, each index along the axes in front has places of its own.
    """

    axis: int
    batches: bool


@dataclass(frozen=True)
class Scatter:
    """A tensor with other entries along the first axis at computed places, which differ from each other."""


@dataclass(frozen=True)
class Replaced:
    """A tensor with other entries along the first axis: the places of all entries in both, one behind the other."""

    places: Places


def read_gather(calls: Sequence[Call]) -> Gather:
    """take of computed indices."""
    (call,) = calls
    source = feature_type(call.args[0], dtypes=_MOVED)
    feature_type(call.args[1], "its tensor of indices", ("int32",))
    result = feature_type(call, "its result", _MOVED)
    if call.attrs.axis is None:
        raise Unsupported("it takes from several axes at once")
    axis, batches = int(call.attrs.axis) % max(len(source.shape), 1), int(call.attrs.batch_dims)
    if batches not in (0, axis):
        raise Unsupported(f"{batches} axes of batches in front of axis {axis}")
    if call.attrs.mode == "wrap":
        raise Unsupported("indices that start again at the end")
    if not 1 <= len(source.shape) <= 4 or not 1 <= len(result.shape) <= 4:
        raise Unsupported(f"an input of {len(source.shape)} axes, a result of {len(result.shape)}; 1 to 4 are taken")
    return Gather(axis, batches > 0)


def read_scatter(calls: Sequence[Call]) -> Scatter | Replaced:
    """scatter_nd along the first axis, of replaced entries, or of those added to zeros at different places."""
    (call,) = calls
    data, indices, updates = call.args
    source = feature_type(data, dtypes=_MOVED)
    feature_type(updates, "its updates", _MOVED)
    places = feature_type(indices, "its tensor of indices", ("int32", "int64") if isinstance(indices, Constant) else ("int32",))
    if places.shape[0] != 1 or len(places.shape) != 2:
        raise Unsupported("indices of several axes; those of the first axis are taken")
    if not 1 <= len(source.shape) <= 4:
        raise Unsupported(f"an input of {len(source.shape)} axes; 1 to 4 are taken")
    if call.attrs.mode != "update":
        if call.attrs.mode != "add" or constant(data, "the tensor that it adds to").any():
            raise Unsupported(f"mode {call.attrs.mode}; entries are replaced, or added to zeros")
        rows = constant(indices, "its tensor of indices")
        if len(np.unique(rows)) != rows.size:
            raise Unsupported("it adds several entries at one place")
    if not isinstance(indices, Constant):
        return Scatter()
    extent = int(source.shape[0])  # type: ignore[arg-type]
    if indices.data.size and not (0 <= indices.data.min() and indices.data.max() < extent):
        raise Unsupported("an index beyond the ends")
    at = np.arange(extent)
    at[indices.data[0]] = extent + np.arange(indices.data.size)
    return Replaced(check_runs(tuple(at.tolist())))


def gather(w: Writer, layer: Gather, at: Composite) -> Value:
    source, indices = (at.operand(arg) for arg in at.calls[0].args)
    axis, count = layer.axis, len(indices.shape)
    if layer.batches:
        rows = w.graph.gather(_rows(w, w.in_order(source), axis), _inside(w, indices, source.shape[axis], axis))
        return Value(at.dtype, {tuple(range(len(at.shape))): w.graph.reshape(rows, at.shape)})
    others = [i for i in range(len(source.shape)) if i != axis]
    x = w.in_order(source, (axis, *others))
    rows = w.graph.gather(_rows(w, x), _inside(w, indices, x.shape[0]))
    perm = (*range(axis, axis + count), *[i if i < axis else i - 1 + count for i in others])
    return Value(at.dtype, {perm: w.graph.reshape(rows, (*indices.shape, *x.shape[1:]))})


def scatter(w: Writer, layer: Scatter | Replaced, at: Composite) -> Value:
    if isinstance(layer, Replaced):
        return _replaced(w, layer, at)
    data, indices, updates = (at.operand(arg) for arg in at.calls[0].args)
    x = w.in_order(data)
    out = w.graph.scatter(_rows(w, x), _inside(w, indices, x.shape[0]), _rows(w, w.in_order(updates)))
    return Value(at.dtype, {tuple(range(len(x.shape))): w.graph.reshape(out, x.shape)})


def _replaced(w: Writer, layer: Replaced, at: Composite) -> Value:
    data, _, updates = at.calls[0].args
    both = w.graph.concat([w.in_order(at.operand(arg)) for arg in (data, updates)], 0)
    return Value(at.dtype, {tuple(range(len(both.shape))): picked(w, both, 0, layer.places)})


def _rows(w: Writer, x: Tensor, axis: int = 0) -> Tensor:
    """Entries along an axis, in as many batches as the axes in front have."""
    return w.graph.reshape(x, (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])))


def _inside(w: Writer, indices: Value, extent: int, batches: int = 0) -> Tensor:
    """Indices as rows along all but the first `batches` axes, moved to the ends where they lie beyond."""
    shape = indices.shape
    row = w.graph.reshape(w.in_order(indices), (math.prod(shape[:batches]), math.prod(shape[batches:])))
    row = w.graph.binary("MAXIMUM", row, w.number(0, 2))
    return w.graph.binary("MINIMUM", row, w.number(extent - 1, 2))
