"""Convolutions, pools and products with weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, nn, windows
from relaylang.frontends.common.einsum import einsum as einstein
from relaylang.frontends.common.nn import check_window, same_padding
from relaylang.frontends.coreml.node import Exprs, Ints, Node
from relaylang.ir import Expr


def padding(pad_type: str, pad: Ints, sizes: Sequence[Any], kernel: Ints, strides: Ints, dilations: Ints) -> list[tuple[int, int]]:
    """The padding before and behind each spatial axis. Raises `Malformed`."""
    kind = pad_type.lower()
    check_window(kernel, strides, dilations)
    if kind in ("same", "same_lower"):
        return same_padding(sizes, kernel, strides, dilations, lower=kind == "same_lower")
    if kind == "valid":
        return [(0, 0)] * len(kernel)
    if kind != "custom":
        raise Malformed(f"its padding is {pad_type[:40]!r}")
    if len(pad) != 2 * len(kernel) or any(v < 0 for v in pad):
        raise Malformed(f"its padding is {list(pad)[:12]}, and its operand has {len(kernel)} spatial axes")
    return [(int(pad[2 * i]), int(pad[2 * i + 1])) for i in range(len(kernel))]


def biased(n: Node, made: Expr, bias: Expr | None) -> Expr:
    """The channels with a number added to each; not where all are 0."""
    known = n.b.value(bias)
    if bias is None or (known is not None and not known.any()):
        return made
    return n.b.op("nn.bias_add", made, bias, axis=1)


def conv(
    n: Node,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    strides: Ints = (),
    pad_type: str = "valid",
    pad: Ints = (),
    dilations: Ints = (),
    groups: int = 1,
) -> Any:
    """Weights are (filters, channels of a group, kernel...)."""
    b, count = n.b, windows.spatial(n.b, x)
    shape = b.static_shape(weight, "its weight", count + 2)
    strides, dilations = n.per_axis(strides, count, "strides"), n.per_axis(dilations, count, "dilations")
    channels = b.extent(x, 1)
    if groups < 1 or channels != shape[1] * groups or shape[0] % groups:
        raise Malformed(f"its weight of the shape {tuple(shape)} does not fit {channels} channels in {groups} groups")
    pairs = padding(pad_type, pad, b.shape(x)[2:], shape[2:], strides, dilations)
    return biased(n, windows.conv(b, x, weight, strides, pairs, dilations, groups), bias)


def conv_transpose(
    n: Node,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    pad: Ints = (),
    output_shape: Ints = (),
    pad_type: str = "valid",
    strides: Ints = (),
    dilations: Ints = (),
    groups: int = 1,
) -> Any:
    """Weights are (channels, filters of a group, kernel...). The padding cuts the result, or makes it of a shape."""
    b, count = n.b, windows.spatial(n.b, x)
    shape = b.static_shape(weight, "its weight", count + 2)
    strides, dilations = n.per_axis(strides, count, "strides"), n.per_axis(dilations, count, "dilations")
    if groups < 1 or b.extent(x, 1) != shape[0] or shape[0] % groups:
        raise Malformed(f"its weight of the shape {tuple(shape)} does not fit {b.extent(x, 1)} channels in {groups} groups")
    check_window(shape[2:], strides, dilations)
    kind, sizes = pad_type.lower(), list(output_shape)[-count:]
    if kind == "same" or sizes:
        reach = [(k - 1) * d + 1 for k, d in zip(shape[2:], dilations)]
        have = [b.extent(x, i + 2) for i in range(count)]
        sizes = sizes or [size * stride for size, stride in zip(have, strides)]
        total = [(size - 1) * s + r - out for size, s, r, out in zip(have, strides, reach, sizes)]
        first = [int(v) for v in pad[::2]] if kind == "custom" and pad else [max(t, 0) // 2 for t in total]
        pairs = [(f, t - f) for f, t in zip(first, total)]
    else:
        pairs = padding(pad_type, pad, b.shape(x)[2:], shape[2:], strides, dilations)
    more = [max(-behind, 0) for _, behind in pairs]
    if any(m >= max(s, d) for m, s, d in zip(more, strides, dilations)):
        raise Malformed("its result is larger than its windows reach")
    pairs = [(before, max(behind, 0)) for before, behind in pairs]
    return biased(n, windows.conv_transpose(b, x, weight, strides, pairs, dilations, more, groups), bias)


def _pooled(
    n: Node, kind: str, x: Expr, kernel: Ints, strides: Ints, pad_type: str, pad: Ints, ceil: bool, exclude: bool = True
) -> Expr:
    """A pool whose last window may reach beyond the padding where `ceil`. Means leave padding out where `exclude`."""
    b, count = n.b, windows.spatial(n.b, x)
    kernel, strides = n.per_axis(kernel, count, "kernel"), n.per_axis(strides, count, "strides")
    ones = [1] * count
    pairs = padding(pad_type, pad, b.shape(x)[2:], kernel, strides, ones)
    if ceil:
        return ceiled(b, kind, x, kernel, strides, pairs, exclude)
    attrs = {} if kind == "max" else {"count_include_pad": not exclude}
    return windows.pool(b, kind, x, kernel, strides, pairs, ones, **attrs)


def ceiled(
    b: Builder, kind: str, x: Expr, kernel: Ints, strides: Ints, pairs: Sequence[tuple[int, int]], exclude: bool, every: bool = False
) -> Expr:
    """A pool whose number of places is rounded up. The last window begins in the operand or in the padding before it.

    With `every`, that holds where there is no padding, too.
    """
    longer, shares = [], []
    for axis, (k, s, (before, behind)) in enumerate(zip(kernel, strides, pairs)):
        size = b.extent(x, axis + 2, "a pooled axis")
        steps = size + before + behind - k
        if steps < 0:
            raise Malformed(f"its window of {k} does not fit {size} places")
        places = -(-steps // s) + 1
        if (before or behind or every) and (places - 1) * s >= size + before:
            places -= 1
        end = max((places - 1) * s + k - size - before, behind)
        longer.append((before, end))
        begins = b.arrays.arange(places) * s
        shares.append(np.minimum(begins + k, size + before + behind) - begins)
    ones = [1] * len(kernel)
    if kind == "max":
        return windows.pool(b, kind, x, kernel, strides, longer, ones)
    pooled = windows.pool(b, kind, x, kernel, strides, longer, ones, count_include_pad=not exclude)
    if exclude or all(end == behind for (_, end), (_, behind) in zip(longer, pairs)):
        return pooled
    factor: Any = 1.0
    for axis, share in enumerate(shares):  # windows that reach beyond the padding have fewer elements
        factor = factor * (kernel[axis] / share).reshape([-1 if i == axis else 1 for i in range(len(shares))])
    b.arrays.reserve([len(share) for share in shares])
    return b.op("multiply", pooled, b.const(factor[None, None], b.dtype(x)))


def max_pool(
    n: Node, x: Expr, kernel_sizes: Ints, strides: Ints = (), pad_type: str = "valid", pad: Ints = (), ceil_mode: bool = False
) -> Any:
    return _pooled(n, "max", x, kernel_sizes, strides, pad_type, pad, ceil_mode)


def avg_pool(
    n: Node,
    x: Expr,
    kernel_sizes: Ints,
    strides: Ints = (),
    pad_type: str = "valid",
    pad: Ints = (),
    exclude_padding_from_average: bool = False,
    ceil_mode: bool = False,
) -> Any:
    return _pooled(n, "avg", x, kernel_sizes, strides, pad_type, pad, ceil_mode, exclude_padding_from_average)


def l2_pool(
    n: Node, x: Expr, kernel_sizes: Ints, strides: Ints = (), pad_type: str = "valid", pad: Ints = (), ceil_mode: bool = False
) -> Any:
    """The root of the sum of squares in each window."""
    b = n.b
    mean = _pooled(n, "avg", b.op("multiply", x, x), kernel_sizes, strides, pad_type, pad, ceil_mode, exclude=False)
    return b.op("sqrt", b.op("multiply", mean, float(math.prod(kernel_sizes))))


def linear(n: Node, x: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    """`x @ weight.T + bias`; weights are (results, elements)."""
    b, known = n.b, n.b.value(bias)
    data = b.unsqueeze(x, [0]) if b.rank(x) == 1 else x
    product = b.op("nn.dense", data, weight, units=b.extent(b.of_rank(weight, 2), 0))
    if bias is not None and (known is None or known.any()):
        product = b.op("nn.bias_add", product, bias, axis=-1) if b.rank(bias) == 1 else b.op("add", product, bias)
    return b.squeeze(product, [0]) if b.rank(x) == 1 else product


def matmul(n: Node, x: Expr, y: Expr, transpose_x: bool = False, transpose_y: bool = False) -> Any:
    b = n.b
    left, right = (_turned(b, v) if turn and b.rank(v) > 1 else v for v, turn in ((x, transpose_x), (y, transpose_y)))
    return nn.matmul(b, left, right)


def _turned(b: Builder, x: Expr) -> Expr:
    rank = b.rank(x)
    return b.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def einsum(n: Node, values: Exprs, equation: str) -> Any:
    return einstein(n.b, equation, values)


def attention(n: Node, query: Expr, key: Expr, value: Expr, attn_mask: Expr | None = None) -> Any:
    """`softmax(query key^T / sqrt(size) + mask) value`. A mask of bool is -inf where it is False."""
    b = n.b
    size = b.extent(query, -1, "the size of heads")
    scores = b.op("multiply", nn.matmul(b, query, _turned(b, key)), 1 / math.sqrt(max(size, 1)))
    if attn_mask is not None:
        bias = attn_mask
        if b.dtype(attn_mask) == "bool":
            kind = b.dtype(query)
            bias = b.op("where", attn_mask, b.const(0.0, kind), b.const(-math.inf, kind))
        scores = b.op("add", *n.alike(scores, bias))
    return nn.matmul(b, b.op("nn.softmax", scores, axis=-1), value)


RULES = (
    Rule("avg_pool", avg_pool),
    Rule("conv", conv),
    Rule("conv_transpose", conv_transpose),
    Rule("einsum", einsum),
    Rule("l2_pool", l2_pool),
    Rule("linear", linear),
    Rule("matmul", matmul),
    Rule("max_pool", max_pool),
    Rule("scaled_dot_product_attention", attention),
)
