"""Writers of layers that move elements."""

from __future__ import annotations

from relaylang.backends.ethosu.emit.writer import CHANNELS_LAST, Composite, Value, Write, Writer
from relaylang.ir import Tuple
from relaylang.partition.targets.ethos_u.movement import Concat, Pad, Reshape, Transpose


def concat(w: Writer, layer: Concat, at: Composite) -> Value:
    data = at.calls[-1].args[0]
    assert isinstance(data, Tuple)
    inputs = [at.operand(field) for field in data.fields]
    if layer.stacks:
        inputs = [_with_axis(w, value, layer.axis) for value in inputs]
    perm, _ = w.any_order(inputs[0])
    parts = []
    for value, operand in zip(inputs, layer.operands):
        tensor = w.in_order(value, perm)
        if operand is not None:
            tensor = w.rescale(tensor, operand.rescale, at.dtype, operand.input_zp - value.offset)
        parts.append(tensor)
    out = parts[0] if len(parts) == 1 else w.graph.concat(parts, perm.index(layer.axis))
    return Value(at.dtype, {perm: out})


def _with_axis(w: Writer, value: Value, axis: int) -> Value:
    """A value with a further axis of extent 1."""
    shape = value.shape
    out = w.graph.reshape(w.in_order(value), (*shape[:axis], 1, *shape[axis:]))
    return Value(value.dtype, {tuple(range(len(out.shape))): out})


def pad(w: Writer, layer: Pad, at: Composite) -> Value:
    perm, x = w.any_order(at.source)
    out = w.pad(x, [layer.widths[axis] for axis in perm], layer.value - at.source.offset)
    return Value(at.source.dtype, {perm: out})


def transpose(w: Writer, layer: Transpose, at: Composite) -> Value:
    """Nothing moves: the same tensors have their axes in other orders of the result's."""
    if not at.source.stored:
        w.in_order(at.source)
    stored = {tuple(layer.axes.index(axis) for axis in perm): x for perm, x in at.source.stored.items()}
    return Value(at.dtype, stored)


def reshape(w: Writer, layer: Reshape, at: Composite) -> Value:
    source, shape = at.source, layer.shape
    last = CHANNELS_LAST["NCHW"]
    if len(shape) == 2 and last in source.stored and source.stored[last].shape[0] == shape[0]:
        if (0, 1, 2, 3) not in source.stored:
            return Value(source.dtype, {}, source)
    out = w.graph.reshape(w.in_order(source), shape)
    return Value(source.dtype, {tuple(range(len(shape))): out})


WRITERS: dict[type, Write] = {Concat: concat, Pad: pad, Reshape: reshape, Transpose: transpose}
