"""One layout for a whole graph: channels last, and none in blocks.

A convolution reads and writes neighbouring channels of a pixel as vectors, and sums over them in place. So the
operators around convolutions take this layout, too. Changes of layout remain at the program's ends and at operators
that fix an order of axes.
"""

from __future__ import annotations

from typing import Any

from relaylang.ir import Call, Expr, Function, IRModule, post_order
from relaylang.ops import get
from relaylang.ops.record import Op
from relaylang.passes.layout.conversions import converted
from relaylang.passes.layout.convert_layout import tensors
from relaylang.passes.layout.rewriter import Rewriter
from relaylang.rules.conversions import RULES
from relaylang.rules.decompositions.layouts import BLOCKED
from relaylang.rules.layout.rule import changed as with_attrs
from relaylang.rules.layout.rule import named

_LAST = {"NCW": "NWC", "NCHW": "NHWC", "NCDHW": "NDHWC"}
#: The convolutions that ask for the layout. Other operators follow their neighbours.
WANTED = {name: [_LAST[RULES[name].axes], "default"] for name in (*(f"nn.conv{n}d" for n in (1, 2, 3)), "qnn.conv2d")}


def channels_last(function: Expr, mod: IRModule) -> Expr:
    """A typed function whose convolutions have their channels last; itself where it has no convolution."""
    if not isinstance(function, Function) or not any(isinstance(n, Op) and n.name in WANTED for n in post_order(function)):
        return function

    def change(call: Call, attrs: Any, args: list[Expr]) -> Call | None:
        return converted(named(call), attrs, args, tensors(call), WANTED[named(call)])

    return Rewriter(mod, WANTED.__contains__, change, lambda *_: None, through=True).rewrite(function)


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
