"""Functions of one element for the Ethos-U: a chain of calls between tensors of 8 bits is one table."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ops import OPS, Trait
from relaylang.ops.record import Op
from relaylang.partition.fixed_point import Unsupported
from relaylang.partition.targets.ethos_u.parts import BYTES, feature_type, tensor_of

#: Operators with a further form of arguments, and operators on numbers whose scales are arguments.
_OTHERS = frozenset({"nn.prelu", "qnn.hardswish", "qnn.requantize"})
_TRAITS = frozenset({Trait.UNARY, Trait.BROADCAST, Trait.QUANTISE, Trait.DEQUANTISE})


def _is_pointwise(op: Op) -> bool:
    if Trait.STATEFUL in op.traits or Trait.RANDOM in op.traits:
        return False
    return bool(_TRAITS & op.traits) or (Trait.QUANTISED in op.traits and op.of in OPS and _is_pointwise(OPS[op.of]))


#: The operators whose calls compute each element of the result from the elements at its place.
POINTWISE = frozenset({name for name, op in OPS.items() if _is_pointwise(op)} | _OTHERS)


@dataclass(frozen=True)
class Table:
    """A function of each element of `operand`, as the calls that compute it, the last one its result."""

    calls: tuple[Call, ...]
    operand: Expr


def joins_table(call: Call) -> bool:
    """Whether a call is a step between two tensors of 8 bits."""
    ty = call.checked_type
    wide = isinstance(ty, TensorType) and ty.dtype not in BYTES
    return wide and isinstance(call.op, Op) and call.op.name in POINTWISE


def read_table(calls: Sequence[Call]) -> Table:
    """Calls of `POINTWISE` operators, whose operands are constants of one number, each other, and one tensor."""
    inside = {id(call) for call in calls}
    operands: dict[int, Expr] = {}
    for call in calls:
        for arg in call.args:
            if isinstance(arg, Constant):
                if arg.data.size == 0 or not np.all(arg.data == arg.data.flat[0]):
                    raise Unsupported("a constant has several numbers; a table computes each element alike")
            elif id(arg) not in inside:
                operands[id(arg)] = arg
    if len(operands) != 1:
        raise Unsupported("it computes with several tensors; a table has one operand")
    (operand,) = operands.values()
    source = feature_type(operand, dtypes=BYTES)
    feature_type(calls[-1], "its result", BYTES)
    for call in calls:
        if tensor_of(call, "a value").shape != source.shape:
            raise Unsupported("it changes the shape")
    return Table(tuple(calls), operand)
