"""The value of one call on constants: what passes that fold constants ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.interpreter.kernels import KERNELS, KernelError
from relaylang.interpreter.kernels.added import added_kernel
from relaylang.ir import Call
from relaylang.ops.record import Op


def compute(call: Call, values: list[Any]) -> Any:
    """The value of a call of an operator on arrays; None where there is no kernel or the kernel refuses."""
    if not isinstance(call.op, Op):
        return None
    kernel = KERNELS.get(call.op.name) or added_kernel(call.op.name, call.checked_type)
    if kernel is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return kernel(call.attrs, *values)
    except (KernelError, RelayError, ArithmeticError, ValueError, TypeError, IndexError, MemoryError):
        return None


__all__ = ["compute"]
