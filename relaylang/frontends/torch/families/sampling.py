"""Resizing, sampling at points, and blocks of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, resample, slices, windows
from relaylang.frontends.common.attention import extent_of
from relaylang.frontends.common.resize import Method
from relaylang.frontends.torch.families.pools import of_rank
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def _sizes(n: Node, x: Expr) -> tuple[list[int] | None, list[float | None]]:
    """The sizes of the spatial axes, None where they depend on unknown extents, and the factors that are given."""
    b, count = n.b, n.b.rank(x) - 2
    names = ("scales",) if count == 1 else ("scales_d", "scales_h", "scales_w")[3 - count :]
    factors = n.get("scale_factors") or [n.get(name) for name in names]
    scales = [None if f is None else float(f) for f in factors]
    sizes = n.get("output_size")
    if sizes is not None:
        known = [b.value(v) if isinstance(v, Expr) else v for v in sizes]
        return (None if any(v is None for v in known) else [int(v) for v in known if v is not None]), scales
    extents = b.shape(x)[2:]
    if not all(isinstance(d, int) for d in extents):
        return None, scales
    return [math.floor(int(d) * float(s or 1)) for d, s in zip(extents, scales) if isinstance(d, int)], scales


def nearest(exact: bool) -> Any:
    """Copies; the places are computed with float32, as PyTorch does."""

    def convert(n: Node) -> Any:
        b, x = n.b, n.x("self" if "self" in n.call.args else "input")
        sizes, scales = _sizes(n, x)
        known = all(isinstance(d, int) for d in b.shape(x)[2:])
        if sizes is None or not known:
            if all(s is not None and s == int(s) for s in scales):
                for i, s in enumerate(scales):
                    x = b.op("repeat", x, repeats=int(s or 1), axis=2 + i)
                return x
            return _computed(n, x, Method("nearest", "half_pixel" if exact else "asymmetric", "floor"), scales)
        if not exact and b.dtype(x) == "float32" and all(s % b.extent(x, 2 + i) == 0 for i, s in enumerate(sizes)):
            return _multiplied(b, x, sizes)
        for i, (size, scale) in enumerate(zip(sizes, scales)):
            extent = b.extent(x, 2 + i)
            kept = size == extent and not exact
            ratio = np.float32(1 / scale if scale and not kept else extent / size)
            at = (b.arrays.arange(size, dtype=np.float32) + np.float32(0.5 * exact)) * ratio
            x = b.op("take", x, b.const(np.minimum(np.floor(at), extent - 1).astype(np.int64)), axis=2 + i)
        return x

    return convert


def _multiplied(b: Builder, x: Expr, sizes: Sequence[int]) -> Expr:
    """An image whose extents become multiples of themselves."""
    return b.op(
        f"image.resize{len(sizes)}d",
        x,
        size=sizes,
        roi=[0.0] * (2 * len(sizes)),
        layout="NC" + "DHW"[3 - len(sizes) :],
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
        cubic_alpha=-0.75,
    )


def smooth(kind: str, antialias: bool = False) -> Any:
    """Linear and cubic resizing."""

    def convert(n: Node) -> Any:
        b, x = n.b, n.x("self" if "self" in n.call.args else "input")
        corners = bool(n.get("align_corners", False))
        mode = "align_corners" if corners and not antialias else "half_pixel"
        method = Method(kind, mode, a=-0.5 if antialias else -0.75, antialias=antialias, exclude_outside=antialias)
        sizes, scales = _sizes(n, x)
        if sizes is None or not all(isinstance(d, int) for d in b.shape(x)[2:]):
            return _computed(n, x, method, scales)
        wanted = {2 + i: size for i, size in enumerate(sizes)}
        factors = {a: size / b.extent(x, a) for a, size in wanted.items()}
        if corners and antialias:  # only the distance between the places is that of aligned corners
            factors = {a: max(size - 1, 1) / max(b.extent(x, a) - 1, 1) for a, size in wanted.items()}
        if not corners:
            factors = {a: factors[a] if _keeps(method) and factors[a] == 1 else s or factors[a] for a, s in zip(wanted, scales)}
        return resample.resample(b, x, {a: resample.stretch(b, x, a, size, factors[a]) for a, size in wanted.items()}, method)

    return convert


def _keeps(method: Method) -> bool:
    """Whether PyTorch leaves an axis as it is whose extent stays, though the scale is not 1."""
    return method.kind == "linear" or method.antialias or (method.kind, method.coordinates) == ("nearest", "asymmetric")


def _computed(n: Node, x: Expr, method: Method, scales: list[float | None]) -> Any:
    """A resize whose size is computed by the program."""
    b = n.b
    sizes = n.get("output_size")
    if sizes is None and b.rank(x) == 4 and method.kind != "nearest" and all(s is not None and s == int(s) for s in scales):
        return resample.dynamic_scales(b, x, {2 + i: float(s or 1) for i, s in enumerate(scales)}, method)
    for i, scale in enumerate(scales):
        have = extent_of(b, x, 2 + i)
        if sizes is not None:
            size = b.cast(sizes[i], "int64") if isinstance(sizes[i], Expr) else b.const(sizes[i], "int64")
        else:
            size = b.cast(b.op("floor", b.op("multiply", b.cast(have, "float64"), float(scale or 1))), "int64")
        x = _along(b, x, 2 + i, have, size, scale, method)
    return x


def _along(b: Builder, x: Expr, axis: int, have: Expr, size: Expr, scale: float | None, method: Method) -> Expr:
    """One axis resampled to a computed size."""
    places = b.cast(b.arange(b.const(0, "int64"), size, b.const(1, "int64"), "int64"), "float32")
    real_have, real_size = b.cast(have, "float32"), b.cast(size, "float32")
    if method.coordinates == "align_corners":
        steps = b.op("maximum", b.op("subtract", real_size, 1.0), 1.0)
        at = b.op("multiply", places, b.op("divide", b.op("subtract", real_have, 1.0), steps))
    else:
        ratio = b.op("divide", real_have, real_size)
        if scale:
            inverse = b.const(1 / scale, "float32")
            kept = _keeps(method) and 1 < scale < 2
            ratio = b.op("where", b.op("equal", have, size), ratio, inverse) if kept else inverse
        half = 0.5 if method.coordinates == "half_pixel" else 0.0
        at = b.op("multiply", b.op("add", places, half) if half else places, ratio)
        at = b.op("subtract", at, half) if half and method.kind != "nearest" else at
    low = b.op("floor", at)
    last = b.op("subtract", have, 1)

    def element(offset: int) -> Expr:
        index = b.op("add", b.cast(low, "int64"), offset)
        return b.op("take", x, b.op("maximum", b.op("minimum", index, last), 0), axis=axis)

    if method.kind == "nearest":
        return element(0)
    rest = b.op("subtract", at, low)
    offsets = (0, 1) if method.kind == "linear" else (-1, 0, 1, 2)
    total = None
    for offset in offsets:
        away = b.op("abs", b.op("subtract", rest, float(offset)))
        if method.kind == "linear":
            weight = b.op("subtract", b.const(1.0, "float32"), away)
        else:
            weight = _cubic(b, away, method.a, offset in (0, 1))
        shaped = b.unsqueeze(b.cast(weight, b.dtype(x)), list(range(1, b.rank(x) - axis)))
        part = b.op("multiply", element(offset), shaped)
        total = part if total is None else b.op("add", total, part)
    assert total is not None
    return total


def _cubic(b: Builder, away: Expr, a: float, near: bool) -> Expr:
    """The cubic kernel's weight at a distance below 1, or from 1 to 2."""
    factors = (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a)
    weight: Expr = b.op("multiply", away, factors[0])
    for factor in factors[1:3]:
        weight = b.op("multiply", b.op("add", weight, factor), away)
    return b.op("add", weight, factors[3])


def grid_sample(n: Node) -> Any:
    """The grid's last axis holds x, y (and z); Relay wants it in front of the spatial axes."""
    b, x, grid = n.b, n.x("input"), n.x("grid")
    rank = b.rank(x)
    return b.op(
        "image.grid_sample",
        x,
        b.transpose(grid, [0, rank - 1, *range(1, rank - 1)]),
        method=n.choice("interpolation_mode", 0, {0: "bilinear", 1: "nearest", 2: "bicubic"}),
        align_corners=bool(n.get("align_corners")),
        padding_mode=n.choice("padding_mode", 0, {0: "zeros", 1: "border", 2: "reflection"}),
        layout="NCHW" if rank == 4 else "NCDHW",
    )


def affine_grid(n: Node) -> Any:
    return resample.affine_grid(n.b, n.x("theta"), n.ints("size")[2:], bool(n.get("align_corners")))


def pixel_unshuffle(n: Node) -> Any:
    b, block = n.b, n.int("downscale_factor")
    apart = b.op("reshape", n.x(), newshape=[0, 0, -4, -1, block, -4, -1, block])
    moved = b.transpose(apart, [0, 1, 3, 5, 2, 4])
    return b.op("reshape", b.op("reshape", moved, newshape=[0, -3, -2]), newshape=[0, -3, -2])


def channel_shuffle(n: Node) -> Any:
    b, x, groups = n.b, n.x(), n.int("groups")
    apart = b.op("reshape", x, newshape=[0, -4, groups, -1, -2])
    turned = b.transpose(apart, [0, 2, 1, *range(3, b.rank(x) + 1)])
    return b.op("reshape", turned, newshape=[0, -3, -2])


def im2col(n: Node) -> Any:
    """Blocks of an image as columns: (n, c * block, places)."""
    b, x = n.b, n.x()
    single = b.rank(x) == 3
    x = b.unsqueeze(x, [0]) if single else x
    kernel, dilation, padding, stride = (of_rank(n.ints(k), 2) for k in ("kernel_size", "dilation", "padding", "stride"))
    x = slices.pad(b, x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    counts = [(b.extent(x, 2 + i) - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1)]
    parts = []
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            begin = [row * dilation[0], column * dilation[1]]
            end = [first + (c - 1) * s + 1 for first, c, s in zip(begin, counts, stride)]
            parts.append(b.slice(x, begin, end, [2, 3], stride))
    stacked = b.op("stack", b.tuple(parts), axis=2)
    columns = b.op("reshape", stacked, newshape=[0, -3, counts[0] * counts[1]])
    return b.squeeze(columns, [0]) if single else columns


def col2im(n: Node) -> Any:
    b, x = n.b, n.x()
    single = b.rank(x) == 2
    x = b.unsqueeze(x, [0]) if single else x
    kernel, dilation, padding, stride = (of_rank(n.ints(k), 2) for k in ("kernel_size", "dilation", "padding", "stride"))
    image = windows.fold(b, x, n.ints("output_size"), kernel, stride, [(p, p) for p in padding], dilation)
    return b.squeeze(image, [0]) if single else image


RULES = (
    *(Rule(f"aten.upsample_nearest{d}d", nearest(False)) for d in (1, 2, 3)),
    *(Rule(f"aten._upsample_nearest_exact{d}d", nearest(True)) for d in (1, 2, 3)),
    Rule("aten._upsample_bicubic2d_aa", smooth("cubic", True)),
    Rule("aten._upsample_bilinear2d_aa", smooth("linear", True)),
    Rule("aten.affine_grid_generator", affine_grid),
    Rule("aten.channel_shuffle", channel_shuffle),
    Rule("aten.col2im", col2im),
    Rule("aten.grid_sampler", grid_sample),
    Rule("aten.grid_sampler_2d", grid_sample),
    Rule("aten.grid_sampler_3d", grid_sample),
    Rule("aten.im2col", im2col),
    Rule("aten.native_channel_shuffle", channel_shuffle),
    Rule("aten.pixel_unshuffle", pixel_unshuffle),
    Rule("aten.upsample_bicubic2d", smooth("cubic")),
    Rule("aten.upsample_bilinear2d", smooth("linear")),
    Rule("aten.upsample_linear1d", smooth("linear")),
    Rule("aten.upsample_trilinear3d", smooth("linear")),
)
