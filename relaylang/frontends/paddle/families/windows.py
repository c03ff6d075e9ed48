"""Convolutions, pools, and operations on the channels of pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported, windows
from relaylang.frontends.common.deformable import deformable_conv as deformed
from relaylang.frontends.common.nn import check_window, same_padding
from relaylang.frontends.paddle.node import Node
from relaylang.ir import Expr

Pairs = list[tuple[int, int]]


def _pads(n: Node, x: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Pairs:
    """Pairs of padding: as many numbers as spatial axes, twice as many, or two for each axis of the operand."""
    count, sizes = len(kernel), n.b.shape(x)[2:]
    algorithm = n.text("padding_algorithm", "EXPLICIT")
    if algorithm == "SAME":
        return same_padding(sizes, kernel, strides, [1] * count)
    amounts = n.ints("paddings", [0] * count) if algorithm != "VALID" else [0] * count
    if len(amounts) == count:
        return [(p, p) for p in amounts]
    if len(amounts) == 2 * count + 4:
        amounts = amounts[2:-2] if n.text("data_format", "NCHW").endswith("C") else amounts[4:]
    if len(amounts) != 2 * count:
        raise Malformed(f"its paddings are {amounts[:8]}, and its operand has {count} spatial axes")
    return list(zip(amounts[::2], amounts[1::2]))


def _each(n: Node, name: str, count: int) -> list[int]:
    """A number for each spatial axis."""
    numbers = n.ints(name, [1] * count)
    if len(numbers) != count:
        raise Malformed(f"its {name} are {numbers[:8]}, and its operand has {count} spatial axes")
    return numbers


def _shifted(n: Node, out: Expr, bias: Expr | None) -> Expr:
    return out if bias is None else n.b.op("nn.bias_add", out, n.b.reshape(bias, [-1]), axis=1)


def conv(n: Node, x: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    """Weights are (filters, channels of a group, kernel...)."""

    def convert(x: Expr) -> Expr:
        b = n.b
        count = windows.spatial(b, x)
        kernel = list(b.static_shape(weight, "the weight", count + 2)[2:])
        strides, dilations = _each(n, "strides", count), _each(n, "dilations", count)
        check_window(kernel, strides, dilations)
        if n.text("padding_algorithm", "EXPLICIT") == "SAME":
            dilations = [1] * count
        out = windows.conv(b, x, weight, strides, _pads(n, x, kernel, strides, dilations), dilations, _groups(n, x, weight))
        return _shifted(n, out, bias)

    return n.channels_first(x, convert)


def _groups(n: Node, x: Expr, weight: Expr, turned: bool = False) -> int:
    b, groups = n.b, n.int("groups", 1)
    channels, (first, second, *_) = b.extent(x, 1, "the channels"), b.static_shape(weight)
    if groups < 1 or (channels != first if turned else channels != second * groups) or first % groups:
        raise Malformed(f"its {channels} channels and a weight of ({first}, {second}, ...) do not form {groups} groups")
    return groups


def conv_transpose(n: Node, x: Expr, weight: Expr, size: Any = None, bias: Expr | None = None) -> Any:
    """Weights are (channels, filters of a group, kernel...). The result has the extents `output_size`, where it is stated."""

    def convert(x: Expr) -> Expr:
        b = n.b
        count = windows.spatial(b, x)
        kernel = list(b.static_shape(weight, "the weight", count + 2)[2:])
        strides, dilations = _each(n, "strides", count), _each(n, "dilations", count)
        check_window(kernel, strides, dilations)
        pads = _pads(n, x, kernel, strides, dilations)
        more = n.ints("output_padding", []) or [0] * count
        wanted = n.numbers(size, "the size of its result") if size is not None else []
        if wanted:
            wanted = wanted * count if len(wanted) == 1 else wanted
            least = [
                (b.extent(x, 2 + i) - 1) * strides[i] - sum(pads[i]) + (kernel[i] - 1) * dilations[i] + 1 for i in range(len(wanted))
            ]
            more = [w - l for w, l in zip(wanted, least)]
        if len(more) != count or any(not 0 <= m < max(s, d) for m, s, d in zip(more, strides, dilations)):
            raise Malformed(f"its result is to be {more[:8]} larger than its windows, which move by {strides}")
        groups = _groups(n, x, weight, turned=True)
        return _shifted(n, windows.conv_transpose(b, x, weight, strides, pads, dilations, more, groups), bias)

    return n.channels_first(x, convert)


def _pool(kind: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, size: Any = None) -> Any:
        own = kind or n.text("pooling_type", "max")
        if own not in ("max", "avg"):
            raise Unsupported(f"it pools by {own[:40]!r}")
        return n.channels_first(x, lambda x: _pooled(n, x, size, own))

    return convert


def _pooled(n: Node, x: Expr, size: Any, kind: str) -> Expr:
    b = n.b
    count = windows.spatial(b, x)
    if n.bool("global_pooling", False):
        return windows.global_pool(b, kind, x)
    kernel = n.numbers(size, "the kernel") if size is not None else n.ints("kernel_size")
    kernel = kernel * count if len(kernel) == 1 else kernel
    if len(kernel) != count:
        raise Malformed(f"its kernel is {kernel[:8]}, and its operand has {count} spatial axes")
    if n.bool("adaptive", False):
        if kernel == [1] * count:
            return windows.global_pool(b, kind, x)
        if any(k < 1 for k in kernel):
            raise Malformed(f"its result is to have the extents {kernel}")
        b.arrays.reserve(kernel)
        return b.op(f"nn.adaptive_{kind}_pool{count}d", x, output_size=kernel)
    strides, ones = _each(n, "strides", count), [1] * count
    check_window(kernel, strides, ones)
    pads = _pads(n, x, kernel, strides, ones)
    if any(p < 0 or p >= k for pair, k in zip(pads, kernel) for p in pair):
        raise Malformed(f"its kernel {kernel} is not larger than its padding {pads}")
    attrs = {"count_include_pad": not n.bool("exclusive", True)} if kind == "avg" else {}
    return windows.pool(b, kind, x, kernel, strides, pads, ones, ceil_mode=n.bool("ceil_mode", False), **attrs)


def deformable_conv(n: Node, x: Expr, moves: Expr, weight: Expr, mask: Expr | None = None) -> Any:
    strides, pads, dilations = _each(n, "strides", 2), n.ints("paddings", [0, 0]), _each(n, "dilations", 2)
    if len(pads) != 2:
        raise Malformed(f"its paddings are {pads[:8]}")
    groups, offset_groups = _groups(n, x, weight), n.int("deformable_groups", 1)
    check_window([1, 1], strides, dilations)
    return deformed(n.b, x, moves, weight, mask, strides, pads, dilations, groups, offset_groups)


def unfold(n: Node, x: Expr) -> Any:
    """Blocks of (n, c, h, w) as columns: (n, c * block, places)."""
    b = n.b
    kernel, strides, dilations = n.ints("kernel_sizes"), n.ints("strides"), n.ints("dilations")
    pairs = _corners(n)
    channels = b.extent(b.of_rank(x, 4), 1)
    if len(kernel) != 2 or len(strides) != 2 or len(dilations) != 2:
        raise Malformed("it has a kernel, strides and dilations for two axes")
    check_window(kernel, strides, dilations)
    taps = math.prod(kernel)
    eye = b.arrays.tile(b.arrays.eye(taps), (channels, 1)).reshape(channels * taps, 1, *kernel)
    columns = windows.conv(b, x, b.const(eye, b.dtype(x)), strides, pairs, dilations, channels)
    return b.op("reshape", columns, newshape=[0, channels * taps, -1])


def _corners(n: Node) -> Pairs:
    """The padding of blocks: top, left, bottom, right; two numbers hold for both sides."""
    amounts = n.ints("paddings")
    amounts = amounts * 2 if len(amounts) == 2 else amounts
    if len(amounts) != 4:
        raise Malformed(f"its paddings are {amounts[:8]}")
    return [(amounts[0], amounts[2]), (amounts[1], amounts[3])]


def fold(n: Node, x: Expr) -> Any:
    kernel, strides, dilations, sizes = (n.ints(name) for name in ("kernel_sizes", "strides", "dilations", "output_sizes"))
    if not len(kernel) == len(strides) == len(dilations) == len(sizes) == 2:
        raise Malformed("it has a kernel, strides and dilations for two axes")
    check_window(kernel, strides, dilations)
    return windows.fold(n.b, n.b.of_rank(x, 3), sizes, kernel, strides, _corners(n), dilations)


def pixel_shuffle(n: Node, x: Expr) -> Any:
    """Channels become rows and columns of a picture."""
    b, factor = n.b, n.int("upscale_factor", 1)

    def convert(x: Expr) -> Expr:
        _, channels, rows, columns = b.static_shape(x, "the operand", 4)
        if factor < 1 or channels % (factor * factor):
            raise Malformed(f"its {channels} channels are no {factor} x {factor} parts")
        kept = channels // factor**2
        parts = b.op("reshape", x, newshape=[-1, kept, factor, factor, rows, columns])
        turned = b.transpose(parts, [0, 1, 4, 2, 5, 3])
        return b.op("reshape", turned, newshape=[-1, kept, rows * factor, columns * factor])

    return n.channels_first(x, convert)


def pixel_unshuffle(n: Node, x: Expr) -> Any:
    """Rows and columns of a picture become channels."""
    b, factor = n.b, n.int("downscale_factor", 1)

    def convert(x: Expr) -> Expr:
        _, channels, rows, columns = b.static_shape(x, "the operand", 4)
        if factor < 1 or rows % factor or columns % factor:
            raise Malformed(f"its {rows} x {columns} places are no blocks of {factor} x {factor}")
        parts = b.op("reshape", x, newshape=[-1, channels, rows // factor, factor, columns // factor, factor])
        turned = b.transpose(parts, [0, 1, 3, 5, 2, 4])
        return b.op("reshape", turned, newshape=[-1, channels * factor**2, rows // factor, columns // factor])

    return n.channels_first(x, convert)


def channel_shuffle(n: Node, x: Expr) -> Any:
    b, groups = n.b, n.int("groups", n.int("group", 1))

    def convert(x: Expr) -> Expr:
        _, channels, rows, columns = b.static_shape(x, "the operand", 4)
        if groups < 1 or channels % groups:
            raise Malformed(f"its {channels} channels do not form {groups} groups")
        parts = b.op("reshape", x, newshape=[-1, groups, channels // groups, rows, columns])
        return b.op("reshape", b.transpose(parts, [0, 2, 1, 3, 4]), newshape=[-1, channels, rows, columns])

    return n.channels_first(x, convert)


def affine_channel(n: Node, x: Expr, scale: Expr, shift: Expr) -> Any:
    def convert(x: Expr) -> Expr:
        b = n.b
        ends = [-1, *[1] * (b.rank(x) - 2)]
        factors = [b.op("reshape", v, newshape=ends) for v in (scale, shift)]
        return b.op("add", b.op("multiply", x, factors[0]), factors[1])

    return n.channels_first(x, convert, "data_layout")


def temporal_shift(n: Node, x: Expr) -> Any:
    """Some channels come from the picture before, some from the one behind; zeros stand at the ends."""
    b, steps, share = n.b, n.int("seg_num"), n.float("shift_ratio", 0.25)

    def convert(x: Expr) -> Expr:
        count, channels, rows, columns = b.static_shape(x, "the operand", 4)
        first, second = int(channels * share), int(channels * 2 * share)
        if steps < 1 or count % steps or not 0 <= first <= second <= channels:
            raise Malformed(f"its {count} pictures do not form sequences of {steps}")
        parts = b.reshape_exactly(x, [count // steps, steps, channels, rows, columns])
        zero = b.const(0.0, b.dtype(x))
        pad = [[0, 0], [1, 1], [0, 0], [0, 0], [0, 0]]
        padded = b.op("nn.pad", parts, zero, pad_width=pad, pad_mode="constant")
        cuts = ((0, first, 0), (first, second, 2), (second, channels, 1))
        moved = [b.slice(padded, [at, low], [at + steps, high], [1, 2]) for low, high, at in cuts if low < high]
        return b.reshape_exactly(b.concat(moved, 2), [count, channels, rows, columns])

    return n.channels_first(x, convert)


RULES = (
    *[Rule(name, conv) for name in ("conv2d", "conv3d", "depthwise_conv2d", "depthwise_conv2d_bias", "conv2d_bias")],
    *[Rule(name, conv_transpose) for name in ("conv2d_transpose", "conv3d_transpose", "depthwise_conv2d_transpose")],
    Rule("affine_channel", affine_channel),
    Rule("channel_shuffle", channel_shuffle),
    Rule("conv2d_transpose_bias", lambda n, x, weight, bias, size=None: conv_transpose(n, x, weight, size, bias)),
    Rule("deformable_conv", deformable_conv),
    Rule("fold", fold),
    Rule("max_pool2d_with_index", lambda n, x: [_pooled(n, x, None, "max")]),  # without the places of the largest elements
    Rule("pixel_shuffle", pixel_shuffle),
    Rule("pixel_unshuffle", pixel_unshuffle),
    Rule("pool2d", _pool("")),
    Rule("pool3d", _pool("")),
    Rule("shuffle_channel", channel_shuffle),
    Rule("temporal_shift", temporal_shift),
    Rule("unfold", unfold),
)
