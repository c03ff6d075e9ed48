"""What `tvm.relay.op` has beside the functions that make calls of one operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.ir import Call, Expr, const
from relaylang.ops.build import op_call
from relaylang.ops.device import DEBUGGERS
from relaylang.ops.record import Op, OpPattern
from relaylang.tvm.arrays import with_numpy
from relaylang.tvm.ir.attributes import register_op_attr
from relaylang.tvm.op.registering import (
    register,
    register_broadcast_schedule,
    register_compute,
    register_injective_schedule,
    register_pattern,
    register_reduce_schedule,
    register_schedule,
    register_stateful,
)


def debug(expr: Expr, debug_func: Callable[[Any], object] | None = None) -> Call:
    """The value of an expression. Where the interpreter computes it, it first calls `debug_func` with it."""
    name = ""
    if debug_func is not None:
        name = f"debugger_func{len(DEBUGGERS)}"
        DEBUGGERS[name] = lambda value: debug_func(with_numpy(value))
    return op_call("debug", [expr], debug_func=name)


__all__ = [
    "Op",
    "OpPattern",
    "const",
    "debug",
    "register",
    "register_broadcast_schedule",
    "register_compute",
    "register_injective_schedule",
    "register_op_attr",
    "register_pattern",
    "register_reduce_schedule",
    "register_schedule",
    "register_stateful",
]
