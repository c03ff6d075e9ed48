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


def _rows(w: Writer, x: Tensor) -> Tensor:
    return w.graph.reshape(x, (1, x.shape[0], math.prod(x.shape[1:])))


def _inside(w: Writer, indices: Value, extent: int) -> Tensor:
    """Indices as a row, moved to the ends of an axis where they lie beyond."""
    row = w.graph.reshape(w.in_order(indices), (1, math.prod(indices.shape)))
    row = w.graph.binary("MAXIMUM", row, w.number(0, 2))
    return w.graph.binary("MINIMUM", row, w.number(extent - 1, 2))


WRITERS: dict[type, Write] = {Gather: gather, Scatter: scatter, Replaced: replaced}
