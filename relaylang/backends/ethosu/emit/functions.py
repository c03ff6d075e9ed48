"""Writers of functions of one element: tables."""
from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer, as_stored
from relaylang.interpreter import evaluate
from relaylang.ir import Constant, Expr, Function, TensorType, children, rebuild, var
from relaylang.partition.targets.ethos_u.functions import Table


def entries(layer: Table) -> np.ndarray:
    """The function's values at all numbers of its operand's type, the lowest first; the interpreter computes them."""
    ty = layer.operand.checked_type
    assert isinstance(ty, TensorType)
    info = np.iinfo(ty.dtype)
    ones = [1] * len(ty.shape[1:])
    x = var("x", shape=[256, *ones], dtype=ty.dtype)
    done: dict[int, Expr] = {id(layer.operand): x}
    for call in layer.calls:
        done[id(call)] = rebuild(call, tuple([_one(c) if isinstance(c, Constant) else done.get(id(c), c) for c in children(call)]))
    values = np.arange(info.min, info.max + 1).astype(ty.dtype).reshape(256, *ones)
    return np.asarray(evaluate(Function([x], done[id(layer.calls[-1])]), values)).reshape(-1)


def _one(constant: Constant) -> Constant:
    """A constant of equal numbers, with one along each axis."""
    return Constant(constant.data.reshape(-1)[:1].reshape((1,) * constant.data.ndim))


def table(w: Writer, layer: Table, at: Composite) -> Value:
    perm, x = w.any_order(at.source)
    return Value(at.dtype, {perm: w.graph.table(x, as_stored(entries(layer)))})


WRITERS: dict[type, Write] = {Table: table}
