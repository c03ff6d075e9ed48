"""Writers of functions of one element: tables."""
from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer, as_stored
from relaylang.interpreter import evaluate
from relaylang.ir import Constant, Expr, Function, TensorType, children, rebuild, var
from relaylang.partition.targets.ethos_u.functions import Table


def entries(layer: Table, index: int = 0) -> np.ndarray:
    """The values at all numbers of the operand's type, the lowest first, at an index along the table's axis.

    The interpreter computes them.
    """
    ty = layer.operand.checked_type
    assert isinstance(ty, TensorType)
    info = np.iinfo(ty.dtype)
    shape = [1] * len(ty.shape)
    shape[1 if layer.axis == 0 else 0] = 256
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
        return Value(at.dtype, {perm: w.table(x, as_stored(entries(layer)))})
    axis = perm.index(layer.axis)
    functions = [as_stored(entries(layer, index)) for index in range(x.shape[axis])]
    parts = []
    first = 0
    for last in range(1, len(functions) + 1):
        if last == len(functions) or not np.array_equal(functions[first], functions[last]):
            parts.append(w.table(w.cut(x, axis, first, last - first), functions[first]))
            first = last
    return Value(at.dtype, {perm: w.graph.concat(parts, axis)})


WRITERS: dict[type, Write] = {Table: table}
