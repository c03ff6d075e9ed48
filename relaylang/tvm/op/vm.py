"""The virtual machine's operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.ir import Call, Expr
from relaylang.ops.build import op_call
from relaylang.tvm.op.build import operand
from relaylang.tvm.op.namespace import lazy

_lazy, __dir__ = lazy(__name__, "op.vm.")


def __getattr__(name: str) -> Any:
    return _lazy(name)


def reshape_tensor(data: Expr, shape: Any, newshape: Sequence[int]) -> Call:
    """The memory of a tensor in the shape `newshape`; `shape` is the same as a tensor."""
    return op_call("vm.reshape_tensor", [data, operand(shape)], newshape=tuple(newshape))
