"""Convolutions at moved places, with zeros around the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.ir import Expr


def deformable_conv(
    b: Builder,
    x: Expr,
    moves: Expr,
    weight: Expr,
    mask: Expr | None,
    strides: Sequence[int],
    pads: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    offset_groups: int,
) -> Expr:
    """A convolution of (n, c, rows, columns) whose windows take their places from `moves`, and factors of these from `mask`.

    Relay's repeats the border's elements beyond them, so zeros surround the data.
    """
    outputs, depth, *kernel = b.static_shape(weight, "the weight", 4)
    taps = kernel[0] * kernel[1]
    x = b.op("nn.pad", x, 0.0, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])
    extents = [b.extent(moves, 2), b.extent(moves, 3)]
    # Without padding, the places move by the zeros in front, and there are results beyond the last ones.
    shift = [float(p == 0) for p in pads]
    if any(shift):
        moves = b.op("add", moves, b.const(np.array(shift * taps * offset_groups)[:, None, None], b.dtype(moves)))
        more = [
            (b.extent(x, 2 + i) + 2 * max(pads[i] - 1, 0) - dilation[i] * (kernel[i] - 1) - 1) // strides[i] + 1 - extents[i]
            for i in (0, 1)
        ]
        moves = b.op("nn.pad", moves, 0.0, pad_width=[[0, 0], [0, 0], *[[0, m] for m in more]])

    def moved(weight: Expr, outputs: int, groups: int) -> Expr:
        conv = b.op(
            "nn.deformable_conv2d",
            x,
            moves,
            weight,
            strides=list(strides),
            padding=[max(p - 1, 0) for p in pads],
            dilation=list(dilation),
            deformable_groups=offset_groups,
            groups=groups,
            channels=outputs,
            kernel_size=kernel,
        )
        return b.slice(conv, [0, 0], extents, [2, 3]) if any(shift) else conv

    if mask is None:
        return moved(weight, outputs, groups)
    channels = depth * groups
    one = b.arrays.tile(b.arrays.eye(taps).reshape(taps, 1, *kernel), (channels, 1, 1, 1))
    columns = moved(b.const(one, b.dtype(x)), channels * taps, channels)
    columns = b.reshape(columns, [-1, offset_groups, channels // offset_groups, taps, *extents])
    columns = b.op("multiply", columns, b.unsqueeze(b.reshape(mask, [-1, offset_groups, taps, *extents]), [2]))
    columns = b.reshape(columns, [-1, channels * taps, *extents])
    flat = b.reshape(weight, [outputs, depth * taps, 1, 1])
    return b.op("nn.conv2d", columns, flat, groups=groups, channels=outputs, kernel_size=[1, 1])


__all__ = ["deformable_conv"]
