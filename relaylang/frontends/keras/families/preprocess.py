"""Layers that prepare data: scales, moments, sizes of pictures, categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.keras.families.reshape import KINDS, resized
from relaylang.frontends.keras.node import Node
from relaylang.ir import Expr


def _numbers(n: Node, key: str, default: float) -> np.ndarray:
    """A number or a list of them."""
    numbers = n.value(key, default)
    if isinstance(numbers, dict):
        numbers = numbers.get("value", numbers.get("config"))
        numbers = numbers.get("value") if isinstance(numbers, dict) else numbers
    try:
        array = np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        raise Malformed(f"its {key} is {repr(numbers)[:60]}, and it must be numbers") from None
    if not np.isfinite(array).all():
        raise Malformed(f"its {key} has numbers that are not finite")
    return array


def rescaling(n: Node, x: Expr) -> Any:
    """`x * scale + offset`, with numbers or lists of them along the channels."""
    b = n.b
    x = b.cast(x, n.dtype)
    constants = []
    for key, default in (("scale", 1.0), ("offset", 0.0)):
        array = _numbers(n, key, default)
        if array.ndim and n.channels_first():
            array = array.reshape(-1, 1, 1)
        constants.append(b.const(array.astype(np.dtype(n.dtype))))
    return b.op("add", b.op("multiply", x, constants[0]), constants[1])


def normalization(n: Node, x: Expr) -> Any:
    """The mean and the variance of the data that the layer has seen, or those of the configuration."""
    b = n.b
    x = b.cast(x, n.dtype)
    rank = b.rank(x)
    is_stated = n.value("mean", None) is not None
    mean, variance = (_numbers(n, "mean", 0.0), _numbers(n, "variance", 1.0)) if is_stated else (n.array(0), n.array(1))
    axes = [] if n.value("axis", -1) is None else sorted(n.axes("axis", rank, -1))
    shape = [1] * rank
    if axes:
        sizes = [b.extent(x, a, "the extents of its operand") for a in axes]
        for axis, size in zip(axes, sizes):
            shape[axis] = size
        if mean.size not in (1, int(np.prod(sizes))) or variance.size != mean.size:
            raise Malformed(f"it has {mean.size} means for {int(np.prod(sizes))} places")
    if mean.size == 1:
        shape = [1] * rank
    if mean.size != int(np.prod(shape)) or variance.size != mean.size:
        raise Malformed(f"it has {mean.size} means and {variance.size} variances")
    means = b.const(mean.astype(np.dtype(n.dtype)).reshape(shape))
    spread = np.maximum(np.sqrt(variance.astype(np.dtype(n.dtype))), np.asarray(1e-7, np.dtype(n.dtype))).reshape(shape)
    if n.bool("invert", False):
        return b.op("add", means, b.op("multiply", x, b.const(spread)))
    return b.op("divide", b.op("subtract", x, means), b.const(spread))


def _spatial(n: Node, x: Expr) -> list[int]:
    rank = n.b.rank(x)
    if rank not in (3, 4):
        raise Malformed(f"its operand has {int(rank)} axes, and it must be a picture or a batch of them")
    return [rank - 2, rank - 1] if n.channels_first() else [rank - 3, rank - 2]


def resizing(n: Node, x: Expr) -> Any:
    """Pictures of another size; with `crop_to_aspect_ratio`, the middle of them."""
    b = n.b
    how = n.choice(
        "interpolation", "bilinear", ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5", "area", "gaussian", "mitchellcubic")
    )
    if how not in KINDS:
        raise Unsupported(f"its interpolation is {how}")
    if n.bool("pad_to_aspect_ratio", False):
        raise Unsupported("it pads to the aspect ratio")
    x = x if how == "nearest" else b.cast(x, n.dtype)
    axes, size = _spatial(n, x), [n.int("height", least=1), n.int("width", least=1)]
    if n.bool("crop_to_aspect_ratio", False):
        have = [b.extent(x, a, "the extents of its operand") for a in axes]
        kept = [min(have[0], int(have[1] * size[0] / size[1])), min(have[1], int(have[0] * size[1] / size[0]))]
        x = _middle(n, x, axes, have, kept)
    return b.cast(resized(n, x, axes, size, how, n.bool("antialias", False)), n.dtype)


def _middle(n: Node, x: Expr, axes: list[int], have: list[int], size: list[int]) -> Expr:
    begin = [(h - s) // 2 for h, s in zip(have, size)]
    return n.b.slice(x, begin, [s + t for s, t in zip(begin, size)], axes)


def center_crop(n: Node, x: Expr) -> Any:
    """The middle of pictures; smaller ones are resized."""
    b = n.b
    x = b.cast(x, n.dtype)
    axes, size = _spatial(n, x), [n.int("height", least=1), n.int("width", least=1)]
    have = [b.extent(x, a, "the extents of its operand") for a in axes]
    if all(h >= s for h, s in zip(have, size)):
        return _middle(n, x, axes, have, size)
    kept = [min(have[0], int(float(have[1] * size[0]) / size[1])), min(have[1], int(float(have[0] * size[1]) / size[0]))]
    return resized(n, _middle(n, x, axes, have, kept), axes, size, "bilinear")


def category_encoding(n: Node, x: Expr) -> Any:
    """Whole numbers as rows of 0 and 1."""
    b = n.b
    mode = n.choice("output_mode", "multi_hot", ("one_hot", "multi_hot", "count"))
    depth = n.int("num_tokens", least=1)
    ids = b.cast(x, "int32")
    one, zero = b.const(1.0, n.dtype), b.const(0.0, n.dtype)
    hot = b.op("one_hot", ids, one, zero, depth=depth, axis=-1, dtype=n.dtype)
    if mode == "one_hot":
        rank = b.rank(ids)
        return b.squeeze(hot, [rank - 1]) if rank > 1 and b.shape(ids)[-1] == 1 else hot
    if b.rank(ids) < 2:
        return hot
    return b.op("max" if mode == "multi_hot" else "sum", hot, axis=[-2])


def discretization(n: Node, x: Expr) -> Any:
    """The number of the bin that an element lies in."""
    b = n.b
    bounds = _numbers(n, "bin_boundaries", 0.0)
    if (
        n.value("bin_boundaries", None) is None
        or bounds.ndim != 1
        or n.choice("output_mode", "int", ("int", "one_hot", "multi_hot", "count")) != "int"
    ):
        raise Unsupported("its bins are not listed, or it gives no numbers of bins")
    wide = b.unsqueeze(b.cast(x, "float32"), [b.rank(x)])
    above = b.op("greater_equal", wide, b.const(bounds.astype(np.float32)))
    return b.op("sum", b.cast(above, "int64" if n.spec.major < 3 else "int32"), axis=[-1])


RULES = (
    Rule("CategoryEncoding", category_encoding),
    Rule("CenterCrop", center_crop),
    Rule("Discretization", discretization),
    Rule("Normalization", normalization),
    Rule("Rescaling", rescaling),
    Rule("Resizing", resizing),
)
