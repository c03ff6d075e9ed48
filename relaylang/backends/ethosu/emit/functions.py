"""Writers of functions of one element: tables."""

from __future__ import annotations

import math

import numpy as np

from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer, as_stored
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.interpreter import evaluate
from relaylang.ir import Constant, Expr, Function, TensorType, children, rebuild, var
from relaylang.partition.targets.ethos_u.functions import Lookup, Table


def entries(layer: Table, index: int = 0) -> np.ndarray:
    """The values at all numbers of the operand's type, the lowest first, at an index along the table's axis.

    The interpreter computes them.
    """
    ty = layer.operand.checked_type
    assert isinstance(ty, TensorType)
    info = np.iinfo(ty.dtype)
    shape = [1] * len(ty.shape)
    shape[1 if layer.axis == 0 else 0] = int(info.max) - int(info.min) + 1
    x = var("x", shape=shape, dtype=ty.dtype)
    done: dict[int, Expr] = {id(layer.operand): x}
    for call in layer.calls:
        parts = [_one(c, index) if isinstance(c, Constant) else done.get(id(c), c) for c in children(call)]
        done[id(call)] = rebuild(call, tuple(parts))
    values = np.arange(info.min, info.max + 1).astype(ty.dtype).reshape(shape)
    return np.asarray(evaluate(Function([x], done[id(layer.calls[-1])]), values)).reshape(-1)


def _one(constant: Constant, index: int) -> Constant:
    """A constant's number at an index, or its only one, with the extent 1 along each axis."""
    numbers = constant.data.reshape(-1)
    return Constant(numbers[index if numbers.size > 1 else 0].reshape((1,) * constant.data.ndim))


def table(w: Writer, layer: Table, at: Composite) -> Value:
    perm, x = w.any_order(at.source)
    if layer.axis is None:
        found = as_stored(entries(layer))
        return Value(at.dtype, {perm: w.table(x, found) if found.dtype == np.int8 else _of_halves(w, x, found)})
    axis = perm.index(layer.axis)
    functions = [as_stored(entries(layer, index)) for index in range(x.shape[axis])]
    parts = []
    first = 0
    for last in range(1, len(functions) + 1):
        if last == len(functions) or not np.array_equal(functions[first], functions[last]):
            parts.append(w.table(w.cut(x, axis, first, last - first), functions[first]))
            first = last
    return Value(at.dtype, {perm: w.graph.concat(parts, axis)})


def _of_halves(w: Writer, x: Tensor, found: np.ndarray) -> Tensor:
    """int16 numbers by two tables: those of their upper and lower 8 bits."""
    high, low = (w.table(x, half.astype(np.int8)) for half in (found >> 8, (found & 0xFF) - 128))
    upper = w.graph.multiply(w.converted(high, "int32"), w.number(256, len(x.shape)))
    return w.converted(w.graph.binary("ADD", upper, w.converted(low, "int32", input_zp=-128)), "int16")


def lookup(w: Writer, layer: Lookup, at: Composite) -> Value:
    perm, x = w.any_order(at.source)
    place = w.graph.binary("ADD", w.converted(x, "int32"), w.number(1 << 15, len(x.shape)))
    values = w.graph.constant(as_stored(entries(layer)).reshape(1, -1, 1), "table")
    found = w.graph.gather(values, w.graph.reshape(place, (1, math.prod(x.shape))))
    return Value(at.dtype, {perm: w.graph.reshape(found, x.shape)})


WRITERS: dict[type, Write] = {Table: table, Lookup: lookup}
