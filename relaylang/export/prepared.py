"""What a program becomes before an export: plain operators in the place of the qnn dialect's."""

from __future__ import annotations

from relaylang.ir import Call, Function, IRModule, post_order
from relaylang.ops.record import Op
from relaylang.passes.infer_type import InferType
from relaylang.passes.quantize.qnn_canonicalize_ops import QnnCanonicalizeOps


def has_qnn(mod: IRModule) -> bool:
    """Whether a program calls operators of the qnn dialect."""
    for function in mod.functions.values():
        if isinstance(function, Function):
            for node in post_order(function):
                if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name.startswith("qnn."):
                    return True
    return False


def without_qnn(mod: IRModule) -> IRModule:
    """The program with quantised operators as integer arithmetic, exact to the integer."""
    if not has_qnn(mod):
        return mod
    return InferType()(QnnCanonicalizeOps()(mod))


__all__ = ["has_qnn", "without_qnn"]
