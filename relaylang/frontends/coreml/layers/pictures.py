"""Layers over rows and columns: convolutions, pools, padding, other sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, windows
from relaylang.frontends.common.slices import pad as padded
from relaylang.frontends.coreml.families import resize as sizes
from relaylang.frontends.coreml.families import shape as shapes
from relaylang.frontends.coreml.families import windows as ops
from relaylang.frontends.coreml.layer import LayerNode
from relaylang.frontends.coreml.values import packed
from relaylang.ir import Expr


def _amounts(n: LayerNode, layer: Any) -> list[int]:
    """The numbers before and behind rows and columns."""
    amounts = [int(v) for edge in layer.borderAmounts for v in (edge.startEdgeSize, edge.endEdgeSize)]
    if len(amounts) not in (0, 4) or any(v >= 1 << 31 for v in amounts):
        raise Malformed(f"its amounts are {amounts[:8]}")
    return amounts or [0] * 4


def _padding(n: LayerNode, p: Any, kind: str) -> tuple[str, list[int]]:
    """The padding of a window as the operators of programs name it."""
    which = p.WhichOneof(kind)
    if which == "same":
        return ("same_lower" if p.same.asymmetryMode == 1 else "same"), []
    return "custom", _amounts(n, p.valid.paddingAmounts)


def convolution(n: LayerNode, x: Expr, weight: Expr | None = None) -> Any:
    """Weights are (filters, channels of a group, kernel...), of a transposed one (channels, filters of a group, kernel...).

    Scales of quantised ones are those of filters.
    """
    p, (data, back) = n.p, n.four(n.real(x))
    kernel, groups = [int(v) for v in p.kernelSize] or [3, 3], int(p.nGroups) or 1
    strides, dilations = (
        n.per_axis([int(v) for v in v], 2, what) for v, what in ((p.stride, "stride"), (p.dilationFactor, "dilation"))
    )
    kind, pad = _padding(n, p, "ConvolutionPaddingType")
    bias = n.param(p.bias, (p.outputChannels,), "bias") if p.hasBias else None
    n.per_axis(kernel, 2, "kernel")
    if p.outputChannels % groups:
        raise Malformed(f"its {p.outputChannels} filters do not form {groups} groups")
    if not p.isDeconvolution:
        shape = (p.outputChannels, p.kernelChannels, *kernel)
        filters = n.real(weight) if weight is not None else n.param(p.weights, shape, "weight")
        return back(ops.conv(n, data, filters, bias, strides, kind, pad, dilations, groups))
    if weight is not None:
        raise Malformed("it is transposed, and its weight is an operand")
    filters = n.param(p.weights, (p.kernelChannels, p.outputChannels // groups, *kernel), "weight", 1)
    wanted = [int(v) for v in p.outputShape]
    if len(wanted) not in (0, 2):
        raise Malformed(f"its result has the extents {wanted[:4]}")
    kind, pad = ("same", []) if wanted else (kind, pad)
    return back(ops.conv_transpose(n, data, filters, bias, pad, wanted, kind, strides, dilations, groups))


def _three(p: Any, name: str) -> list[int]:
    return [int(getattr(p, f"{name}{side}")) for side in ("Depth", "Height", "Width")]


def _padding_3d(p: Any) -> tuple[str, list[int]]:
    if p.paddingType not in (0, 1, 2):
        raise Malformed(f"its padding has the number {p.paddingType}")
    sides = ("Front", "Back", "Top", "Bottom", "Left", "Right")
    return ("custom", "valid", "same")[p.paddingType], [int(getattr(p, f"customPadding{side}")) for side in sides]


def convolution_3d(n: LayerNode, x: Expr) -> Any:
    p, data = n.p, n.real(x)
    kernel, groups = _three(p, "kernel"), p.nGroups or 1
    strides, dilations = ([v or 1 for v in _three(p, name)] for name in ("stride", "dilation"))
    kind, pad = _padding_3d(p)
    bias = n.param(p.bias, (p.outputChannels,), "bias") if p.hasBias else None
    if groups < 1 or p.inputChannels % groups or p.outputChannels % groups:
        raise Malformed(f"its {p.inputChannels} channels and {p.outputChannels} filters do not form {groups} groups")
    if not p.isDeconvolution:
        weight = n.param(p.weights, (p.outputChannels, p.inputChannels // groups, *kernel), "weight")
        return ops.conv(n, data, weight, bias, strides, kind, pad, dilations, groups)
    weight = n.param(p.weights, (p.inputChannels, p.outputChannels // groups, *kernel), "weight", 1)
    wanted = [int(v) for v in p.outputShape]
    if len(wanted) not in (0, 3):
        raise Malformed(f"its result has the extents {wanted[:4]}")
    return ops.conv_transpose(n, data, weight, bias, pad, wanted, "same" if wanted else kind, strides, dilations, groups)


_POOLS: tuple[Callable[..., Any], ...] = (ops.max_pool, ops.avg_pool, ops.l2_pool)


def pooling(n: LayerNode, x: Expr) -> Any:
    b, p, (data, back) = n.b, n.p, n.four(n.real(x))
    if not 0 <= p.type < 3:
        raise Malformed(f"its kind has the number {p.type}")
    if p.globalPooling:
        if p.type == 2:
            return back(b.op("sqrt", b.op("sum", b.op("multiply", data, data), axis=[2, 3], keepdims=True)))
        return back(windows.global_pool(b, ("max", "avg")[p.type], data))
    kernel = n.per_axis([int(v) for v in p.kernelSize] or [3, 3], 2, "kernel")
    strides = n.per_axis([int(v) for v in p.stride], 2, "stride")
    exclude = {"exclude_padding_from_average": bool(p.avgPoolExcludePadding)} if p.type == 1 else {}
    if p.WhichOneof("PoolingPaddingType") == "includeLastPixel":
        first = [int(v) for v in p.includeLastPixel.paddingAmounts] or [0, 0]
        if len(first) != 2 or max(first) >= 1 << 31:
            raise Malformed(f"its padding is {first[:4]}")
        pad = [v for amount in first for v in (amount, amount)]
        return back(_POOLS[p.type](n, data, kernel, strides, "custom", pad, ceil_mode=True, **exclude))
    kind, pad = _padding(n, p, "PoolingPaddingType")
    return back(_POOLS[p.type](n, data, kernel, strides, kind, pad, **exclude))


def pooling_3d(n: LayerNode, x: Expr) -> Any:
    p = n.p
    if p.type not in (0, 1):
        raise Malformed(f"its kind has the number {p.type}")
    kind, pad = _padding_3d(p)
    exclude = {"exclude_padding_from_average": bool(p.countExcludePadding)} if p.type == 1 else {}
    strides = [v or 1 for v in _three(p, "stride")]
    return _POOLS[p.type](n, n.b.of_rank(n.real(x), 5), _three(p, "kernel"), strides, kind, pad, **exclude)


def global_pooling_3d(n: LayerNode, x: Expr) -> Any:
    if n.p.type not in (0, 1):
        raise Malformed(f"its kind has the number {n.p.type}")
    return windows.global_pool(n.b, ("max", "avg")[n.p.type], n.b.of_rank(n.real(x), 5))


def padding(n: LayerNode, x: Expr) -> Any:
    """Rows and columns around a picture."""
    p, data = n.p, n.real(x)
    data = n.four(data)[0] if n.old else data
    kind = p.WhichOneof("PaddingType") or "constant"
    mode = {"constant": "constant", "reflection": "reflect", "replication": "replicate"}[kind]
    amounts = n.b.const(np.array(_amounts(n, p.paddingAmounts)))
    return shapes.pad(n, data, amounts, mode, float(p.constant.value) if kind == "constant" else 0.0)


def constant_padding(n: LayerNode, x: Expr, amounts: Expr | None = None) -> Any:
    """Each axis with a number before and behind it, or in extents that are stated."""
    b, p, rank = n.b, n.p, n.b.rank(x)
    n.axis(x, -1)
    known = b.need_ints(amounts, "its padding") if amounts is not None else [int(v) for v in p.padAmounts]
    if len(known) != 2 * rank or any(not 0 <= v < 1 << 31 for v in known):
        raise Malformed(f"its padding is {known[:12]}, and its operand has {int(rank)} axes")
    pairs = list(zip(known[::2], known[1::2]))
    if p.padToGivenOutputSizeMode:
        more = [max(max(pair) - d, 0) for pair, d in zip(pairs, b.static_shape(x))]
        pairs = [(extra, 0) if pair[0] else (0, extra) for pair, extra in zip(pairs, more)]
    return padded(b, n.real(x), pairs, "constant", n.float("value"))


def crop(n: LayerNode, x: Expr, like: Expr | None = None) -> Any:
    """A picture without its borders, or the part of it that has the extents of another one."""
    b, data = n.b, n.four(x)[0] if n.old else x
    if like is None:
        amounts = _amounts(n, n.p.cropAmounts)
        return sizes.crop(n, data, amounts[:2], amounts[2:])
    first = [int(v) for v in n.p.offset] or [0, 0]
    wanted = b.static_shape(n.four(like)[0] if n.old else like)[-2:]
    have = b.static_shape(data)[-2:]
    if len(first) != 2 or len(have) != 2:
        raise Malformed(f"its offsets are {first[:4]}")
    edges = [[f, h - w - f] for f, w, h in zip(first, wanted, have)]
    return sizes.crop(n, data, *edges)


def upsample(n: LayerNode, x: Expr) -> Any:
    p = n.p
    data = n.four(n.real(x))[0] if n.old else n.real(x)
    factors: Sequence[float] = [float(v) for v in p.scalingFactor]
    if not factors and p.fractionalScalingFactor:
        factors = packed(p.fractionalScalingFactor, "<f4").tolist()
    factors = factors or [1.0, 1.0]
    if len(factors) != 2:
        raise Malformed(f"its factors are {factors[:4]}")
    if p.mode == 0:
        return sizes.upsample_nearest(n, data, factors[0], factors[1])
    if p.linearUpsampleMode not in (0, 1, 2):
        raise Malformed(f"its grid has the number {p.linearUpsampleMode}")
    align, half = p.linearUpsampleMode == 1, p.linearUpsampleMode == 2
    return sizes.upsample_bilinear(n, data, factors[0], factors[1], align, half)


#: The grids of SamplingMode, by their numbers.
_GRIDS = ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS")
_BOXES = ("CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST", "CENTER_SIZE_WIDTH_FIRST")


def _target(n: LayerNode) -> list[int]:
    target = [int(v) for v in n.p.targetSize] or [1, 1]
    if len(target) != 2 or n.p.mode.samplingMethod not in range(4):
        raise Malformed(f"its result has {target[:4]} places, on the grid with the number {n.p.mode.samplingMethod}")
    return target


def resize_bilinear(n: LayerNode, x: Expr) -> Any:
    data = n.four(n.real(x))[0] if n.old else n.real(x)
    high, wide = _target(n)
    return sizes.resize_bilinear(n, data, high, wide, _GRIDS[n.p.mode.samplingMethod])


def crop_resize(n: LayerNode, x: Expr, boxes: Expr) -> Any:
    """Parts of one picture in one size. Boxes are (count, 1, 4, 1, 1), or have the number of their picture before them."""
    b, p = n.b, n.p
    data, own = n.four(n.real(x))[0], n.real(boxes)
    if n.old:
        shape = b.static_shape(own)
        own = b.reshape_exactly(own, [shape[0], 1, int(np.prod(shape[1:])), 1, 1])
    if p.boxIndicesMode.boxMode not in range(4):
        raise Malformed(f"its boxes are of the form {p.boxIndicesMode.boxMode}")
    (high, wide), form, grid = _target(n), _BOXES[p.boxIndicesMode.boxMode], _GRIDS[p.mode.samplingMethod]
    scale, normal = n.float("spatialScale", 1.0), bool(p.normalizedCoordinates)
    cropped = sizes.crop_resize(n, data, None, None, high, wide, normal, scale, form, grid, roi=own)
    return b.squeeze(cropped, [1]) if n.old else cropped


def reorganize(n: LayerNode, x: Expr) -> Any:
    """Blocks of elements between channels and pictures."""
    data, back = n.four(n.real(x))
    if not 0 <= n.p.mode < 3:
        raise Malformed(f"its mode has the number {n.p.mode}")
    convert = (shapes.space_to_depth, shapes.depth_to_space, shapes.pixel_shuffle)[n.p.mode]
    return back(convert(n, data, int(n.p.blockSize)))


RULES = (
    Rule("constantPad", constant_padding),
    Rule("convolution", convolution),
    Rule("convolution3d", convolution_3d),
    Rule("crop", crop),
    Rule("cropResize", crop_resize),
    Rule("globalPooling3d", global_pooling_3d),
    Rule("padding", padding),
    Rule("pooling", pooling),
    Rule("pooling3d", pooling_3d),
    Rule("reorganizeData", reorganize),
    Rule("resizeBilinear", resize_bilinear),
    Rule("upsample", upsample),
)
