"""Convolutions over three axes, and windows and gaps along any number of axes."""

from __future__ import annotations

from functools import reduce
from typing import Any

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.common.hlo_windows import windows
from relaylang.frontends.common.nn import padding_of, same_padding
from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr

#: The functions of REDUCE_WINDOW, from 1.
_JOINED = ("", "add", "multiply", "minimum", "maximum", "logical_and", "logical_or")


def _bias(n: Node, conv: Expr, index: int, axis: int) -> Expr:
    return n.b.op("nn.bias_add", conv, n.real(index), axis=axis) if n.has(index) else conv


def _steps(n: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Strides and dilation, of depth, height and width."""
    o = n.options
    return tuple([o[f"stride_{a}"] for a in "dhw"]), tuple([o[f"dilation_{a}factor"] for a in "dhw"])


def conv_3d(n: Node) -> Any:
    """Weights are stored as DHWIO."""
    b = n.b
    shape = b.static_shape(n.x(1), "the weights")
    strides, dilation = _steps(n)
    pads = [(0, 0)] * 3
    if n.options["padding"] == 0:
        pads = same_padding(b.shape(n.x(0))[1:4], shape[:3], strides, dilation)
    conv = b.op(
        "nn.conv3d",
        n.real(0),
        n.real(1),
        strides=strides,
        dilation=dilation,
        padding=padding_of(pads),
        channels=shape[4],
        kernel_size=shape[:3],
        data_layout="NDHWC",
        kernel_layout="DHWIO",
        groups=b.extent(n.x(0), 4) // shape[3],
    )
    return n.result(_bias(n, conv, 2, 4))


def conv_3d_transpose(n: Node) -> Any:
    """Operands: the result's shape, weights (DHWOI), data, bias."""
    b = n.b
    wanted, shape = n.ints(0, "the shape of the result"), b.static_shape(n.x(1), "the weights")
    strides, dilation = _steps(n)
    if dilation != (1, 1, 1):
        raise Unsupported("it is dilated")
    begin, end, extra = [], [], []
    for axis, (kernel, stride) in enumerate(zip(shape, strides)):
        full = (b.extent(n.x(2), axis + 1) - 1) * stride + kernel
        total = max(full - wanted[axis + 1], 0)
        begin.append(total // 2 if n.options["padding"] == 0 else 0)
        end.append(total - begin[-1])
        extra.append(max(wanted[axis + 1] - full, 0))
    conv = b.op(
        "nn.conv3d_transpose",
        b.transpose(n.real(2), (0, 4, 1, 2, 3)),
        b.transpose(n.real(1), (4, 3, 0, 1, 2)),
        strides=strides,
        padding=[*begin, *end],
        output_padding=extra,
        channels=shape[3],
        kernel_size=shape[:3],
        data_layout="NCDHW",
        kernel_layout="IODHW",
    )
    return n.result(_bias(n, b.transpose(conv, (0, 2, 3, 4, 1)), 3, 4))


def dilate(n: Node) -> Any:
    """Gaps between the elements, filled with a value."""
    b = n.b
    gaps, value = n.ints(1, "the gaps"), b.need(n.x(2), "the value of gaps")
    return b.op("nn.dilate", n.x(0), strides=gaps, dilation_value=float(value.reshape(-1)[0]))


def reduce_window(n: Node) -> Any:
    """Operands: data, the first value, and the windows' shape, strides and dilation."""
    b = n.b
    number = n.options.get("reduce_function", 0)
    if not 0 < number < len(_JOINED):
        raise Unsupported(f"its function {number} is unknown")
    size, strides, dilation = (n.ints(i, "the window") for i in (2, 3, 4))
    start = b.scalar(n.x(1))
    return reduce(lambda total, part: b.op(_JOINED[number], total, part), windows(n.b, n.x(0), size, strides, dilation), start)


RULES = (
    Rule("CONV_3D", conv_3d),
    Rule("CONV_3D_TRANSPOSE", conv_3d_transpose),
    Rule("DILATE", dilate),
    Rule("REDUCE_WINDOW", reduce_window),
)
