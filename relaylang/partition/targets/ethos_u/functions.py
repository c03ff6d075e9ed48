"""Functions of one element for the Ethos-U: a chain of calls between two feature maps is one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ops import OPS, Trait
from relaylang.ops.record import Op
from relaylang.partition.targets.ethos_u.parts import feature_type, tensor_of

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
