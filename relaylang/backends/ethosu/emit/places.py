"""Writers of layers whose places of entries are tensors."""

from __future__ import annotations

import math

from relaylang.backends.ethosu.emit.picks import picked
from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.partition.targets.ethos_u.places import Gather, Replaced, Scatter


def gather(w: Writer, layer: Gather, at: Composite) -> Value:
    source, indices = (at.operand(arg) for arg in at.calls[0].args)
    axis, count = layer.axis, len(indices.shape)
    if layer.batches:
        found = w.graph.gather(_rows(w, w.in_order(source), axis), _inside(w, indices, source.shape[axis], axis))
        return Value(at.dtype, {tuple(range(len(at.shape))): w.graph.reshape(found, at.shape)})
    others = [i for i in range(len(source.shape)) if i != axis]
    x = w.in_order(source, (axis, *others))
    found = w.graph.gather(_rows(w, x), _inside(w, indices, x.shape[0]))
    perm = (*range(axis, axis + count), *[i if i < axis else i - 1 + count for i in others])
    return Value(at.dtype, {perm: w.graph.reshape(found, (*indices.shape, *x.shape[1:]))})


def scatter(w: Writer, layer: Scatter, at: Composite) -> Value:
    data, indices, updates = (at.operand(arg) for arg in at.calls[0].args)
    x = w.in_order(data)
    out = w.graph.scatter(_rows(w, x), _inside(w, indices, x.shape[0]), _rows(w, w.in_order(updates)))
    return Value(at.dtype, {tuple(range(len(x.shape))): w.graph.reshape(out, x.shape)})


def replaced(w: Writer, layer: Replaced, at: Composite) -> Value:
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


WRITERS: dict[type, Write] = {Gather: gather, Scatter: scatter, Replaced: replaced}
