"""Convolutions, pools, and layers that are made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.caffe.node import Node
from relaylang.frontends.common import Malformed, Rule, Unsupported, windows
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.nn import check_window
from relaylang.ir import Expr

#: A window over a picture writes at most so many places of one out.
_PLACES = 1 << 10


def _convolved(turned: bool) -> Callable[..., Any]:
    def convert(n: Node, *operands: Expr) -> Any:
        """Weights are (filters, channels of a group, kernel...), of a transposed one (channels, filters of a group, kernel...).

        Each operand gives a result, with the same weights.
        """
        if not operands:
            raise Malformed("it has no operand")
        return [_convolution(n, x, turned) for x in operands]

    return convert


def _convolution(n: Node, x: Expr, turned: bool) -> Expr:
    b, p = n.b, n.params("convolution_param")
    count = windows.spatial(b, x)
    if n.axis(p, x) != 1:
        raise Unsupported(f"its channels are the axis {p.axis}")
    channels, filters, groups = b.extent(x, 1), p.num_output, p.group
    kernel = n.spatial(p, "kernel_size", count, None, "kernel")
    strides, pads = n.spatial(p, "stride", count, 1), n.spatial(p, "pad", count, 0)
    dilations = [int(d) for d in p.dilation] * (count if len(p.dilation) == 1 else 1) or [1] * count
    if len(dilations) != count:
        raise Malformed(f"its dilation is {dilations[:8]}, and its operand has {count} spatial axes")
    check_window(kernel, strides, dilations)
    if not filters or not groups or channels % groups or filters % groups:
        raise Malformed(f"its {channels} channels and {filters} filters do not form {groups} groups")
    shape = (channels, filters // groups, *kernel) if turned else (filters, channels // groups, *kernel)
    weight = n.weight(n.array(0, shape, "weight"), "weight")
    pairs = [(pad, pad) for pad in pads]
    if turned:
        conv = windows.conv_transpose(b, x, weight, strides, pairs, dilations, [0] * count, groups)
    else:
        conv = windows.conv(b, x, weight, strides, pairs, dilations, groups)
    return b.op("nn.bias_add", conv, n.weight(n.array(1, (filters,), "bias"), "bias"), axis=1) if p.bias_term else conv


@dataclass
class Window:
    """A pool's window along one axis: where it begins and ends beyond its picture, and the places of the results."""

    size: int
    kernel: int
    stride: int
    before: int
    after: int
    count: int

    def elements(self, b: Builder) -> np.ndarray:
        """How many places each window has, of the picture and of the padding that the layer states."""
        begins = b.arrays.arange(self.count) * self.stride - self.before
        return np.minimum(begins + self.kernel, self.size + self.before) - begins


def _window(size: int, kernel: int, stride: int, pad: int, up: bool, padded: bool) -> Window:
    """Caffe rounds the number of places up by default. With padding, the last window begins inside of picture and first padding."""
    steps = size + 2 * pad - kernel
    if steps < 0 or (pad and pad >= kernel):
        raise Malformed(f"its kernel of {kernel} with a padding of {pad} does not fit {size} places")
    count = (-(-steps // stride) if up else steps // stride) + 1
    if padded and (count - 1) * stride >= size + pad:
        count -= 1
    if (count - 1) * stride >= size + pad:
        raise Unsupported("its last window lies outside of its operand")
    return Window(size, kernel, stride, pad, max((count - 1) * stride + kernel - size - pad, 0), count)


def pooled(
    b: Builder, kind: str, x: Expr, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], up: bool = True
) -> tuple[Expr, list[Window]]:
    """A pool of (n, c, h, w) as Caffe defines it, and its windows; `kind` is "max" or "avg". Means count padding that is stated."""
    check_window(kernel, strides, [1])
    sizes = [b.extent(b.of_rank(x, 4), axis) for axis in (2, 3)]
    spans = [_window(*how, up, any(pads)) for how in zip(sizes, kernel, strides, pads)]
    pairs = [(w.before, w.after) for w in spans]
    ones = [1, 1]
    if kind == "max":
        return windows.pool(b, kind, x, kernel, strides, pairs, ones), spans
    pool = windows.pool(b, kind, x, kernel, strides, pairs, ones, count_include_pad=any(pads))
    if any(pads) and any(w.after > w.before for w in spans):  # the means of windows that reach beyond count fewer places
        share = math.prod(kernel) / b.arrays.outer(*[w.elements(b) for w in spans])
        pool = b.op("multiply", pool, b.const(share[None, None], b.dtype(x)))
    return pool, spans


def pooling(n: Node, x: Expr) -> Any:
    b, p = n.b, n.params("pooling_param")
    if p.pool not in (0, 1):
        raise Unsupported("it draws random places")
    kind = "avg" if p.pool == 1 else "max"
    if p.global_pooling:
        pool = windows.global_pool(b, kind, b.of_rank(x, 4))
        kernel = [b.extent(x, 2), b.extent(x, 3)] if n.results > 1 else []
        spans = [Window(k, k, 1, 0, 0, 1) for k in kernel]
    else:
        kernel, strides = n.spatial(p, "kernel_size", 2, None, "kernel"), n.spatial(p, "stride", 2, 1)
        up = p.round_mode == 0 and p.ceil_mode
        pool, spans = pooled(b, kind, x, kernel, strides, n.spatial(p, "pad", 2, 0), up)
    if n.results < 2:
        return pool
    if kind != "max":
        raise Malformed("it has two results, and a mean has one")
    return [pool, _places(b, x, spans)]


def _places(b: Builder, x: Expr, spans: list[Window]) -> Expr:
    """The number of each window's first largest element in its picture, as a real number."""
    high, wide = spans
    if high.kernel * wide.kernel > _PLACES:
        raise Unsupported(f"the places of largest elements in windows of {high.kernel} x {wide.kernel}")
    padding = [[0, 0], [0, 0], *[[w.before, w.after] for w in spans]]
    data = b.op("nn.pad", x, b.const(np.finfo(b.dtype(x)).min, b.dtype(x)), pad_width=padding)
    parts = []
    for row in range(high.kernel):
        for column in range(wide.kernel):
            ends = [first + (w.count - 1) * w.stride + 1 for first, w in zip((row, column), spans)]
            parts.append(b.slice(data, [row, column], ends, [2, 3], [w.stride for w in spans]))
    place = b.cast(b.op("argmax", b.op("stack", b.tuple(parts), axis=0), axis=[0]), "int32")
    rows, columns = (b.arrays.arange(w.count, dtype=np.int32) * w.stride - w.before for w in spans)
    width = b.const(wide.kernel, "int32")
    row = b.op("add", b.op("floor_divide", place, width), b.const(rows.reshape(1, 1, -1, 1), "int32"))
    column = b.op("add", b.op("floor_mod", place, width), b.const(columns.reshape(1, 1, 1, -1), "int32"))
    return b.cast(b.op("add", b.op("multiply", row, b.const(wide.size, "int32")), column), b.dtype(x))


def pyramid(n: Node, x: Expr) -> Any:
    """Pools over 1, 4, 16 ... parts of a picture, behind each other."""
    b, p = n.b, n.params("spp_param")
    if p.pool not in (0, 1):
        raise Unsupported("it draws random places")
    sizes = [b.extent(b.of_rank(x, 4), axis) for axis in (2, 3)]
    if not 0 < p.pyramid_height < 16:
        raise Malformed(f"its pyramid has {p.pyramid_height} levels")
    parts = []
    for level in range(p.pyramid_height):
        kernel = [-(-size // (1 << level)) for size in sizes]
        pads = [((k << level) - size + 1) // 2 for k, size in zip(kernel, sizes)]
        pyramid_level, _ = pooled(b, "avg" if p.pool == 1 else "max", x, kernel, kernel, pads)
        parts.append(pyramid_level if p.pyramid_height == 1 else b.op("nn.batch_flatten", pyramid_level))
    return b.concat(parts, 1)


def local_response(n: Node, x: Expr) -> Any:
    """Each element by a power of the squares around it, of its place in all channels or of its picture."""
    b, p = n.b, n.params("lrn_param")
    size, alpha, beta = p.local_size, n.float(p, "alpha"), n.float(p, "beta")
    if size % 2 == 0:
        raise Malformed(f"its size is {size}, and it must be odd")
    b.of_rank(x, 4)
    if p.norm_region == 0:
        return b.op("nn.lrn", x, size=size, axis=1, alpha=alpha, beta=beta, bias=n.float(p, "k"))
    mean, _ = pooled(b, "avg", b.op("multiply", x, x), [size] * 2, [1, 1], [size // 2] * 2)
    return b.op("multiply", x, b.op("power", b.op("add", b.op("multiply", mean, alpha), 1.0), -beta))


def upsample(n: Node, x: Expr) -> Any:
    """Each element several times in both directions."""
    b, p = n.b, n.params("upsample_param")
    scales = [p.scale_h or p.scale, p.scale_w or p.scale]
    sizes = b.static_shape(x, rank=4)[2:]
    check_window([1], scales, [1])
    b.arrays.reserve([size * scale for size, scale in zip(sizes, scales)], "resizing its operand", 1)
    how = {"layout": "NCHW", "method": "nearest_neighbor"}
    return b.op("nn.upsampling", x, scale_h=float(scales[0]), scale_w=float(scales[1]), **how)


def interp(n: Node, x: Expr) -> Any:
    """Pictures of another size, with corners that stay. Padding below zero cuts their borders off."""
    b, p = n.b, n.params("interp_param")
    low, high = p.pad_beg, p.pad_end
    sizes = [b.extent(b.of_rank(x, 4), axis) for axis in (2, 3)]
    inner = [size + low + high for size in sizes]
    if low > 0 or high > 0 or min(inner) < 1 or p.shrink_factor < 1 or p.zoom_factor < 1:
        raise Malformed(f"its padding is {low} and {high}, its factors are {p.zoom_factor} and {p.shrink_factor}")
    data = b.slice(x, [-low, -low], [size + high for size in sizes], [2, 3]) if low or high else x
    if p.height or p.width:
        wanted = [p.height, p.width]
    else:
        less = [(size - 1) // p.shrink_factor + 1 for size in inner]
        wanted = [size + (size - 1) * (p.zoom_factor - 1) for size in less]
    if min(wanted) < 1:
        raise Malformed(f"its result has {wanted[0]} x {wanted[1]} places")
    b.arrays.reserve(wanted, "resizing its operand", 1)
    how = {"layout": "NCHW", "method": "linear", "coordinate_transformation_mode": "align_corners", "roi": [0.0] * 4}
    return b.op("image.resize2d", data, size=wanted, **how)


RULES = (
    Rule("Convolution", _convolved(False)),
    Rule("ConvolutionDepthwise", _convolved(False)),
    Rule("Deconvolution", _convolved(True)),
    Rule("DepthwiseConvolution", _convolved(False)),
    Rule("Interp", interp),
    Rule("LRN", local_response),
    Rule("Pooling", pooling),
    Rule("SPP", pyramid),
    Rule("Upsample", upsample),
)
