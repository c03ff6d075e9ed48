"""Functions of one element for the Ethos-U: a chain of calls between two feature maps is one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.ethosu.layers.operands import feature_type, tensor_of
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer, as_stored
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Constant, Expr, Function, TensorType, children, rebuild, var
from relaylang.ops import OPS, Trait
from relaylang.ops.record import Op

#: Operators with a further form of arguments, and operators on numbers whose scales are arguments.
_OTHERS = frozenset({"nn.prelu", "qnn.hardswish", "qnn.requantize", "where"})
_TRAITS = frozenset({Trait.UNARY, Trait.BROADCAST, Trait.QUANTISE, Trait.DEQUANTISE})
#: The most functions along an axis.
_MOST = 256


def _is_pointwise(op: Op) -> bool:
    if Trait.STATEFUL in op.traits or Trait.RANDOM in op.traits:
        return False
    return bool(_TRAITS & op.traits) or (Trait.QUANTISED in op.traits and op.of in OPS and _is_pointwise(OPS[op.of]))


#: The operators whose calls compute each element of the result from the elements at its place.
POINTWISE = frozenset({name for name, op in OPS.items() if _is_pointwise(op)} | _OTHERS)


@dataclass(frozen=True)
class Table:
    """A function of each element of `operand`, as the calls that compute it, the last one its result.

    With an `axis`, constants have a number for each index along it, and so each has a function.
    """

    calls: tuple[Call, ...]
    operand: Expr
    axis: int | None = None


@dataclass(frozen=True)
class Lookup(Table):
    """A function of int16 numbers, of which each has an entry."""


def joins_table(ends: Sequence[str], call: Call) -> bool:
    """Whether a call is a step between tensors of the types `ends`."""
    ty = call.checked_type
    inner = isinstance(ty, TensorType) and ty.dtype not in ends
    return inner and isinstance(call.op, Op) and call.op.name in POINTWISE


def read_table(calls: Sequence[Call]) -> Table:
    """Calls of `POINTWISE` operators, whose operands are constants, each other, and one tensor.

    A constant has one number, or one for each index along an axis.
    """
    inside = {id(call) for call in calls}
    operands: dict[int, Expr] = {}
    axes: set[int] = set()
    for call in calls:
        for arg in call.args:
            if isinstance(arg, Constant):
                if arg.data.size == 0 or not np.all(arg.data == arg.data.flat[0]):
                    axes.add(_axis(call, arg.data.shape))
            elif id(arg) not in inside:
                operands[id(arg)] = arg
    if len(operands) != 1:
        raise Unsupported("it computes with several tensors; a table has one operand")
    (operand,) = operands.values()
    source, result = feature_type(operand), feature_type(calls[-1], "its result")
    if not source.shape:
        raise Unsupported("a number without axes")
    for call in calls:
        if tensor_of(call, "a value").shape != source.shape:
            raise Unsupported("it changes the shape")
    if not axes:
        return (Lookup if source.dtype == "int16" else Table)(tuple(calls), operand)
    if "int16" in (source.dtype, result.dtype):
        raise Unsupported("its constants have several numbers, and functions of int16 one")
    if len(axes) > 1 or not 1 < len(source.shape) <= 4:
        raise Unsupported("its constants have numbers along several axes, or along the only one")
    (axis,) = axes
    if int(source.shape[axis]) > _MOST:  # type: ignore[arg-type]
        raise Unsupported(f"a function for each of {source.shape[axis]} channels; at most {_MOST} are taken")
    return Table(tuple(calls), operand, axis)


def _axis(call: Call, shape: tuple[int, ...]) -> int:
    """The axis of a call's result along which a constant has its numbers."""
    rank = len(tensor_of(call, "a value").shape)
    if hasattr(call.attrs, "axis") and len(shape) == 1:
        return int(call.attrs.axis) % rank
    long = [rank - len(shape) + i for i, extent in enumerate(shape) if extent > 1]
    if len(long) != 1:
        raise Unsupported("a constant has a number for each element; a table computes elements alike")
    return long[0]


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
    if isinstance(layer, Lookup):
        return _lookup(w, layer, at)
    perm, x = w.any_order(at.source)
    if layer.axis is None:
        entries_of_table = as_stored(entries(layer))
        return Value(
            at.dtype, {perm: w.table(x, entries_of_table) if entries_of_table.dtype == np.int8 else _of_halves(w, x, entries_of_table)}
        )
    axis = perm.index(layer.axis)
    functions = [as_stored(entries(layer, index)) for index in range(x.shape[axis])]
    parts = []
    first = 0
    for last in range(1, len(functions) + 1):
        if last == len(functions) or not np.array_equal(functions[first], functions[last]):
            parts.append(w.table(w.cut(x, axis, first, last - first), functions[first]))
            first = last
    return Value(at.dtype, {perm: w.graph.concat(parts, axis)})


def _of_halves(w: Writer, x: Tensor, entries_of_table: np.ndarray) -> Tensor:
    """int16 numbers by two tables: those of their upper and lower 8 bits."""
    high, low = (w.table(x, half.astype(np.int8)) for half in (entries_of_table >> 8, (entries_of_table & 0xFF) - 128))
    upper = w.graph.multiply(w.converted(high, "int32"), w.number(256, len(x.shape)))
    return w.converted(w.graph.binary("ADD", upper, w.converted(low, "int32", input_zp=-128)), "int16")


def _lookup(w: Writer, layer: Lookup, at: Composite) -> Value:
    perm, x = w.any_order(at.source)
    place = w.graph.binary("ADD", w.converted(x, "int32"), w.number(1 << 15, len(x.shape)))
    values = w.graph.constant(as_stored(entries(layer)).reshape(1, -1, 1), "table")
    picked = w.graph.gather(values, w.graph.reshape(place, (1, math.prod(x.shape))))
    return Value(at.dtype, {perm: w.graph.reshape(picked, x.shape)})
