"""Convolutions and pools for one, two or three spatial axes, in layouts with channels second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.nn import padding_of
from relaylang.ir import Expr

Pairs = Sequence[tuple[int, int]]


def spatial(b: Builder, x: Expr) -> int:
    """The number of spatial axes. Raises `Unsupported` where Relay has no window for so many."""
    count = b.rank(x) - 2
    if not 1 <= count <= 3:
        raise Unsupported(f"Relay has windows over 1, 2 or 3 spatial axes, not {count}")
    return count


def conv(
    b: Builder,
    x: Expr,
    weight: Expr,
    strides: Sequence[int],
    pads: Pairs,
    dilations: Sequence[int],
    groups: int = 1,
    **attrs: Any,
) -> Expr:
    """A convolution of (n, c, d...) with a weight (channels, c / groups, kernel...)."""
    rank = spatial(b, x)
    shape = b.shape(weight)
    if all(isinstance(d, int) for d in shape):
        attrs = {"channels": shape[0], "kernel_size": list(shape[2:]), **attrs}
    return b.op(
        f"nn.conv{rank}d", x, weight, strides=list(strides), padding=padding_of(pads), dilation=list(dilations), groups=groups, **attrs
    )


def conv_transpose(
    b: Builder,
    x: Expr,
    weight: Expr,
    strides: Sequence[int],
    pads: Pairs,
    dilations: Sequence[int],
    output_padding: Sequence[int],
    groups: int = 1,
) -> Expr:
    """A transposed convolution of (n, c, d...) with a weight (c, channels / groups, kernel...)."""
    rank = spatial(b, x)
    shape = b.static_shape(weight, "the weight of a transposed convolution")
    layout = {1: "IOW", 2: "IOHW", 3: "IODHW"}[rank]
    return b.op(
        f"nn.conv{rank}d_transpose",
        x,
        weight,
        channels=shape[1] * groups,
        kernel_size=list(shape[2:]),
        strides=list(strides),
        padding=padding_of(pads),
        dilation=list(dilations),
        groups=groups,
        output_padding=list(output_padding),
        kernel_layout=layout,
    )


def pool(
    b: Builder, kind: str, x: Expr, kernel: Sequence[int], strides: Sequence[int], pads: Pairs, dilations: Sequence[int], **attrs: Any
) -> Expr:
    """A pool of (n, c, d...); `kind` is "max" or "avg"."""
    return b.op(
        f"nn.{kind}_pool{spatial(b, x)}d",
        x,
        pool_size=list(kernel),
        strides=list(strides),
        padding=padding_of(pads),
        dilation=list(dilations),
        **attrs,
    )


def global_pool(b: Builder, kind: str, x: Expr) -> Expr:
    """The largest element or the mean over all spatial axes, which stay with extent 1; `kind` is "max" or "avg"."""
    if b.rank(x) == 4:
        return b.op(f"nn.global_{kind}_pool2d", x)
    return b.op({"max": "max", "avg": "mean"}[kind], x, axis=list(range(2, b.rank(x))), keepdims=True)


def fold(
    b: Builder, x: Expr, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pads: Pairs, dilations: Sequence[int]
) -> Expr:
    """The sum of overlapping blocks (n, c * block, places): a transposed convolution of each channel with an identity."""
    rank, count = len(sizes), math.prod(kernel)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    places = [(size + sum(p) - r) // s + 1 for size, p, r, s in zip(sizes, pads, reach, strides)]
    left = [size + sum(p) - r - (c - 1) * s for size, p, r, s, c in zip(sizes, pads, reach, strides, places)]
    columns = b.extent(x, 1, "the channels of blocks")
    if not 1 <= rank <= 3 or columns % count:
        raise Unsupported("Relay has transposed convolutions over 1, 2 or 3 axes")
    channels = columns // count
    weight = b.arrays.tile(b.arrays.eye(count), (channels, 1)).reshape(columns, 1, *kernel)
    data = b.op("reshape", x, newshape=[0, columns, *places])
    return conv_transpose(b, data, b.const(weight, b.dtype(x)), strides, pads, dilations, left, channels)


__all__ = ["conv", "conv_transpose", "fold", "global_pool", "pool", "spatial"]
