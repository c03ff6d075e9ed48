"""AlterOpLayout: which call an operator becomes where no function is registered for it.

A rule takes the attributes, the operands, their types and the result's type. It gives a call, or None to keep the old
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylang.ir import Call, Expr
from relaylang.ir.tensors import static_shape
from relaylang.ops import get
from relaylang.ops.layouts import places
from relaylang.rules.layout.rule import changed

Alter = Callable[[Any, Sequence[Expr], Sequence[Any], Any], "Expr | None"]
#: The most channels in a block: the 32-bit numbers of the widest vectors.
LANES = 16


def is_depthwise(attrs: Any, data: Sequence[Any], weight: Sequence[Any]) -> bool:
    """Whether every channel has one kernel of its own: inputs, outputs and groups are of one number."""
    channels, outputs = places(attrs.data_layout, "C"), places(attrs.kernel_layout, "O")
    if len(channels) != 1 or len(outputs) != 1:
        return False
    return bool(data[channels[0]] == weight[outputs[0]] == attrs.groups)


def _block(extent: int, most: int) -> int:
    """The size of the largest block that divides an extent, up to a limit."""
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


RULES: Mapping[str, Alter] = {"nn.conv2d": blocked_conv2d}
