"""Blocked layouts as plain ones: the kernels here choose blocks themselves."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Call, Expr, Function, IRModule, post_order
from relaylang.ops import get
from relaylang.ops.record import Op
from relaylang.passes.layout.rewriter import Rewriter
from relaylang.rules.decompositions.layouts import BLOCKED
from relaylang.rules.layout.rule import changed as with_attrs


def without_blocks(function: Expr, mod: IRModule) -> Expr:
    """A typed function with blocked convolutions, and the operators around them, converted to NCHW.

    The kernels here choose their own blocks; changes of layout would only stand between them.
    """
    if not isinstance(function, Function):
        return function
    if not any(isinstance(n, Op) and n.name in BLOCKED for n in post_order(function)):
        return function

    def change(call: Call, attrs: Any, args: list[Expr]) -> Call:
        return Call(get("nn.conv2d"), args, with_attrs(attrs, data_layout="NCHW", kernel_layout="OIHW", out_layout=""))

    return Rewriter(mod, BLOCKED.__contains__, change, lambda *_: None, through=True).rewrite(function)
