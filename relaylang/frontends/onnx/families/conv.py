"""Convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, windows
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.windows import Pairs, ones, padding, pairs_of
from relaylang.ir import Expr


def kernel_of(n: Node, weight: Expr) -> list[int]:
    """The kernel's extents, from the weight's shape or from the attribute."""
    own = n.b.shape(weight)[2:]
    if all(isinstance(d, int) for d in own):
        return [int(d) for d in own if isinstance(d, int)]
    return n.ints("kernel_shape")


def with_bias(b: Builder, x: Expr, bias: Expr | None) -> Expr:
    return x if bias is None else b.op("nn.bias_add", x, bias, axis=1)


def conv(n: Node, x: Expr, w: Expr, bias: Expr | None = None) -> Any:
    b, kernel = n.b, kernel_of(n, w)
    strides, dilations = ones(n, "strides", len(kernel)), ones(n, "dilations", len(kernel))
    pads = padding(n, b.shape(x)[2:], kernel, strides, dilations)
    return with_bias(b, windows.conv(b, x, w, strides, pads, dilations, n.int("group", 1)), bias)


def conv_transpose(n: Node, x: Expr, w: Expr, bias: Expr | None = None) -> Any:
    b, kernel = n.b, kernel_of(n, w)
    count = len(kernel)
    strides, dilations = ones(n, "strides", count), ones(n, "dilations", count)
    extra = n.ints("output_padding", [0] * count)
    pads, extra = _transposed_padding(n, x, kernel, strides, dilations, extra)
    out = windows.conv_transpose(b, x, w, strides, pads, dilations, extra, n.int("group", 1))
    return with_bias(b, out, bias)


def _transposed_padding(
    n: Node, x: Expr, kernel: list[int], strides: list[int], dilations: list[int], extra: list[int]
) -> tuple[Pairs, list[int]]:
    """Padding and output padding; those that a wanted output shape asks for, where the layer states one."""
    auto, count = n.string("auto_pad", "NOTSET"), len(kernel)
    wanted = n.ints("output_shape", [])[-count:]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    if wanted:
        sizes = [n.b.extent(x, 2 + i) for i in range(count)]
        totals = [s * (size - 1) + e + r - w for s, size, e, r, w in zip(strides, sizes, extra, reach, wanted)]
    elif auto.startswith("SAME"):
        totals = [r + e - s for s, e, r in zip(strides, extra, reach)]
    else:
        pads = n.ints("pads", [0] * (2 * count)) if auto != "VALID" else [0] * (2 * count)
        return pairs_of(pads), extra
    # What the padding cannot take away stands behind as output padding.
    extra = [e + max(-t, 0) for e, t in zip(extra, totals)]
    totals = [max(t, 0) for t in totals]
    halves = [(t // 2, t - t // 2) for t in totals]
    return ([h if auto == "SAME_UPPER" else (h[1], h[0]) for h in halves]), extra


def deform_conv(n: Node, x: Expr, w: Expr, offset: Expr, bias: Expr | None = None, mask: Expr | None = None) -> Any:
    """Each place of the kernel samples the data at its own offset; a convolution of 1 x 1 joins the samples."""
    b = n.b
    if b.rank(x) != 4:
        raise Unsupported("Relay samples two spatial axes only")
    batch, channels, high, wide = b.static_shape(x)
    kernel, groups = kernel_of(n, w), n.int("offset_group", 1)
    strides, dilations = ones(n, "strides", 2), ones(n, "dilations", 2)
    pads = padding(n, (high, wide), kernel, strides, dilations)
    if mask is None and pads[0][0] == pads[0][1] and pads[1][0] == pads[1][1] and _plain(b, x):
        out = _deformed(
            n,
            x,
            offset,
            w,
            {
                "strides": strides,
                "padding": [pads[0][0], pads[1][0]],
                "dilation": dilations,
                "deformable_groups": groups,
                "groups": n.int("group", 1),
                "channels": b.extent(w, 0),
                "kernel_size": kernel,
            },
        )
        return with_bias(b, out, bias)
    out_high, out_wide = b.static_shape(offset, "the offset")[2:]
    count = kernel[0] * kernel[1]
    samples = []
    for group in range(groups):
        part = b.slice(x, [channels // groups * group], [channels // groups * (group + 1)], [1])
        for at in range(count):
            place = group * count + at
            starts = [at // kernel[1] * dilations[0] - pads[0][0], at % kernel[1] * dilations[1] - pads[1][0]]
            rows = b.arrays.arange(out_high)[:, None] * strides[0] + starts[0]
            columns = b.arrays.arange(out_wide)[None, :] * strides[1] + starts[1]
            moved = b.slice(offset, [2 * place], [2 * place + 2], [1])
            b.arrays.reserve((2, out_high, out_wide))
            grid = b.op("add", moved, b.const(np.stack(np.broadcast_arrays(rows, columns))[None], b.dtype(x)))
            # The sampler counts places from -1 to 1, columns first.
            scale = b.const(np.array([2 / wide, 2 / high]).reshape(1, 2, 1, 1), b.dtype(x))
            shift = b.const(np.array([1 / wide - 1, 1 / high - 1]).reshape(1, 2, 1, 1), b.dtype(x))
            grid = b.op("add", b.op("multiply", b.op("reverse", grid, axis=1), scale), shift)
            sample = b.op("image.grid_sample", part, grid, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=False)
            if mask is not None:
                sample = b.op("multiply", sample, b.slice(mask, [place], [place + 1], [1]))
            samples.append(sample)
    columns_first = b.op(
        "stack", b.tuple([b.concat([samples[g * count + at] for g in range(groups)], 1) for at in range(count)]), axis=2
    )
    data = b.reshape_exactly(columns_first, [batch, channels * count, out_high, out_wide])
    flat = b.reshape_exactly(w, [b.extent(w, 0), b.extent(w, 1) * count, 1, 1])
    out = windows.conv(b, data, flat, [1, 1], [(0, 0), (0, 0)], [1, 1], n.int("group", 1))
    return with_bias(b, out, bias)


def _deformed(n: Node, x: Expr, offset: Expr, w: Expr, attrs: dict[str, Any]) -> Expr:
    """Relay takes nothing beyond the data's edge, ONNX a part of the pixels there: a border of zeros makes them equal.

    The border moves all places by one, and makes the result larger; the excess is cut off.
    """
    b = n.b
    shape = b.static_shape(offset, "the offset")
    wide = b.op("nn.pad", x, b.const(0, b.dtype(x)), pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])
    more = []
    for extent, out, k, s, p, d in zip(b.static_shape(x)[2:], shape[2:], *[attrs[name] for name in _WINDOW]):
        more.append((extent + 2 + 2 * p - ((k - 1) * d + 1)) // s + 1 - out)
    moved = b.op("add", offset, b.const(1, b.dtype(offset)))
    moved = b.op("nn.pad", moved, b.const(0, b.dtype(offset)), pad_width=[[0, 0], [0, 0], [0, more[0]], [0, more[1]]])
    return b.slice(b.op("nn.deformable_conv2d", wide, moved, w, **attrs), [0, 0], list(shape[2:]), [2, 3])


_WINDOW = ("kernel_size", "strides", "padding", "dilation")


def _plain(b: Builder, x: Expr) -> bool:
    return b.dtype(x) == "float32"


RULES = (
    Rule("Conv", conv),
    Rule("ConvTranspose", conv_transpose),
    Rule("DeformConv", deform_conv),
)
