"""What `tvm.relay.op` has beside the functions that make calls."""

from __future__ import annotations

from relaylang.ops.record import Op, OpPattern
from relaylang.tvm.ir.attributes import register_op_attr
from relaylang.tvm.op.registering import register, register_pattern, register_stateful

__all__ = ["Op", "OpPattern", "register", "register_op_attr", "register_pattern", "register_stateful"]
