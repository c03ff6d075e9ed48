"""AlterOpLayout: operators become calls in the layouts that suit a target, and their neighbours follow.

Which call an operator becomes, a function says that was registered for it (`register_alter_op_layout`). Without one,
2-D convolutions of NCHW get their channels in blocks, as processors with vectors like them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Expr, IRModule
from relaylang.ir.tensors import static_shape
from relaylang.ops import get
from relaylang.passes.layout.conversions import is_depthwise
from relaylang.passes.layout.convert_layout import checked_call, refusal, tensors
from relaylang.passes.layout.registry import ALTER, Alter
from relaylang.passes.layout.rewriter import Rewriter
from relaylang.passes.manager import Pass, raised_in
from relaylang.passes.rewriting import per_function
from relaylang.rules.layout.rule import changed, named

#: The most channels in a block: the 32-bit numbers of the widest vectors.
LANES = 16


def _block(extent: int, most: int) -> int:
    """The largest block of at most so many into which an extent divides."""
    return next(n for n in range(min(extent, most), 0, -1) if extent % n == 0)


def blocked_conv2d(attrs: Any, inputs: Sequence[Expr], tinfos: Sequence[Any], out_type: Any) -> Call | None:
    """A convolution of NCHW with the channels in blocks: `NCHW16c`, the kernel `OIHW16i16o`. One of each channel by
    itself becomes contrib_depthwise_conv2d_NCHWc; one in other groups, or of channels that are not known, stays."""
    data, weight = tuple(tinfos[0].shape), static_shape(tinfos[1])
    if attrs.data_layout != "NCHW" or attrs.kernel_layout != "OIHW" or attrs.out_layout not in ("", "NCHW"):
        return None
    if weight is None or not isinstance(data[1], int) or 0 in (data[1], *weight):
        return None
    alone = attrs.groups > 1 and is_depthwise(attrs, data, weight)
    if (attrs.groups > 1 and not alone) or (alone and any(d != 1 for d in attrs.dilation)):
        return None
    out = _block(weight[0], LANES)
    of = _block(data[1], out)
    name = "nn.contrib_depthwise_conv2d_NCHWc" if alone else "nn.contrib_conv2d_NCHWc"
    layouts = {
        "channels": weight[0],
        "kernel_size": weight[2:],
        "data_layout": f"NCHW{of}c",
        "kernel_layout": f"OIHW{1 if alone else of}i{out}o",
        "out_layout": f"NCHW{out}c",
    }
    return Call(get(name), inputs, changed(attrs, **layouts))


#: What the operators become for which nothing is registered.
DEFAULTS: dict[str, Alter] = {"nn.conv2d": blocked_conv2d}


def alter_op_layout(mod: IRModule) -> IRModule:
    """A typed module with the operators in the layouts that the registered functions give them. Raises `RelayError` for a
    function that raises, or makes no call, or one that is wrong."""
    functions = {**DEFAULTS, **ALTER}

    def change(call: Call, attrs: Any, args: list[Expr]) -> Call | None:
        name = named(call)
        function = functions[name]
        if function is None:
            return None
        try:
            made = function(attrs, args, tensors(call), call.checked_type)
        except RelayError:
            raise
        except Exception as problem:
            raise RelayError(raised_in(f"FTVMAlterOpLayout of {name}", problem, "the function")) from problem
        return checked_call(made, call, f"the function FTVMAlterOpLayout of {name}")

    refuse = refusal("the function FTVMAlterOpLayout")
    return per_function(mod, lambda f: Rewriter(mod, functions.__contains__, change, refuse).rewrite(f))


@dataclass(frozen=True)
class AlterOpLayout(Pass):
    """Operators in the layouts that `register_alter_op_layout` gives them, and their neighbours with them; without it,
    2-D convolutions with their channels in blocks."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return alter_op_layout(mod)
