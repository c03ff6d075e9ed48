"""Gradients of layers, which are operators of core ATen IR of their own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, slices, windows
from relaylang.frontends.common.nn import broadcast_to, matmul
from relaylang.frontends.torch.families.pools import of_rank
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def _asked(n: Node, results: Sequence[Any]) -> list[Any]:
    """The results that the mask asks for; others have no value."""
    return [result() if wanted else None for result, wanted in zip(results, n.get("output_mask"))]


def convolution(n: Node) -> Any:
    """The gradients of the input, the weights and the bias."""
    b, grad, x, weight = n.b, n.x("grad_output"), n.x("input"), n.x("weight")
    count, groups = b.rank(weight) - 2, n.int("groups")
    stride, padding, dilation = (of_rank(n.ints(k), count) for k in ("stride", "padding", "dilation"))
    kernel = list(b.static_shape(weight, "the weights")[2:])
    pads = [(p, p) for p in padding]

    def of_input() -> Expr:
        if n.get("transposed"):
            return windows.conv(b, grad, weight, stride, pads, dilation, groups)
        extents = zip(b.static_shape(x)[2:], b.static_shape(grad)[2:], stride, padding, dilation, kernel)
        left = [i - ((o - 1) * s - 2 * p + d * (k - 1) + 1) for i, o, s, p, d, k in extents]
        return windows.conv_transpose(b, grad, weight, stride, pads, dilation, left, groups)

    def of_weight() -> Expr:
        wide, small = (grad, x) if n.get("transposed") else (x, grad)
        return _weight_gradient(b, wide, small, kernel, stride, pads, dilation, groups)

    def of_bias() -> Expr:
        return b.op("sum", grad, axis=[0, *range(2, count + 2)])

    return _asked(n, [of_input, of_weight, of_bias])


def _weight_gradient(
    b: Builder, wide: Expr, small: Expr, kernel: list[int], stride: list[int], pads: Any, dilation: list[int], groups: int
) -> Expr:
    """For each place of the kernel, the product of what it saw with what came of it."""
    count = len(kernel)
    wide = slices.pad(b, wide, [(0, 0), (0, 0), *pads])
    batch, channels, *out = b.static_shape(small)
    inner = b.extent(wide, 1) // groups
    length = batch * math.prod(out)
    rows = b.transpose(b.reshape_exactly(small, [batch, groups, channels // groups, math.prod(out)]), [1, 2, 0, 3])
    rows = b.reshape_exactly(rows, [groups, channels // groups, length])
    parts = []
    for place in itertools.product(*[range(k) for k in kernel]):
        begin = [p * d for p, d in zip(place, dilation)]
        end = [first + (o - 1) * s + 1 for first, o, s in zip(begin, out, stride)]
        seen = b.slice(wide, begin, end, list(range(2, count + 2)), stride)
        seen = b.transpose(b.reshape_exactly(seen, [batch, groups, inner, math.prod(out)]), [1, 0, 3, 2])
        parts.append(matmul(b, rows, b.reshape_exactly(seen, [groups, length, inner])))
    return b.reshape_exactly(b.op("stack", b.tuple(parts), axis=3), [channels, inner, *kernel])


def _normal(b: Builder, grad: Expr, hat: Expr, factor: Expr, axes: list[int]) -> Expr:
    """The gradient of a normalisation along axes."""
    mean = b.op("mean", grad, axis=axes, keepdims=True)
    along = b.op("mean", b.op("multiply", grad, hat), axis=axes, keepdims=True)
    rest = b.op("subtract", b.op("subtract", grad, mean), b.op("multiply", hat, along))
    return b.op("multiply", rest, factor)


def layer_norm(n: Node) -> Any:
    b, grad, x, mean, factor = n.b, n.x("grad_out"), n.x("input"), n.x("mean"), n.x("rstd")
    rank = b.rank(x)
    first = rank - len(n.get("normalized_shape"))
    hat = b.op("multiply", b.op("subtract", x, mean), factor)
    outer = list(range(first))
    scaled = b.op("multiply", grad, n.x("weight")) if n.has("weight") else grad

    def over(value: Expr) -> Expr:
        return b.op("sum", value, axis=outer) if outer else value

    return _asked(
        n,
        [
            lambda: _normal(b, scaled, hat, factor, list(range(first, rank))),
            lambda: over(b.op("multiply", grad, hat)),
            lambda: over(grad),
        ],
    )


def group_norm(n: Node) -> Any:
    b, grad, x = n.b, n.x("grad_out"), n.x("input")
    shape, groups = list(b.static_shape(x)), n.int("group")
    channels = shape[1]
    parts = [shape[0], groups, math.prod(shape[1:]) // groups]
    mean, factor = (b.reshape_exactly(n.x(name), [shape[0], groups, 1]) for name in ("mean", "rstd"))
    hat = b.op("multiply", b.op("subtract", b.reshape_exactly(x, parts), mean), factor)
    whole_hat = b.reshape_exactly(hat, shape)
    scaled = grad
    if n.has("weight"):
        scaled = b.op("multiply", grad, b.reshape_exactly(n.x("weight"), [1, channels, *[1] * (len(shape) - 2)]))
    axes = [0, *range(2, len(shape))]
    return _asked(
        n,
        [
            lambda: b.reshape_exactly(_normal(b, b.reshape_exactly(scaled, parts), hat, factor, [2]), shape),
            lambda: b.op("sum", b.op("multiply", grad, whole_hat), axis=axes),
            lambda: b.op("sum", grad, axis=axes),
        ],
    )


def _spread(b: Builder, grad: Expr, rows: np.ndarray, columns: np.ndarray) -> Expr:
    """Each element of the last two axes given to its window: matrices say which elements are in one, and their share."""
    dtype = b.dtype(grad)
    return matmul(b, matmul(b, b.const(rows.T.copy(), dtype), grad), b.const(columns, dtype))


def avg_pool(n: Node) -> Any:
    b, grad, x = n.b, n.x("grad_output"), n.x()
    size = of_rank(n.ints("kernel_size"), 2)
    stride, padding = of_rank(n.ints("stride", size) or size, 2), of_rank(n.ints("padding", [0]), 2)
    divisor = n.get("divisor_override")
    shares = []
    for i in (0, 1):
        extent, out = b.extent(x, i - 2), b.extent(grad, i - 2)
        b.budget.take_nodes(out, "computing the shares of its windows")
        share = b.arrays.zeros((out, extent))
        for o in range(out):
            first = o * stride[i] - padding[i]
            last = min(first + size[i], extent + padding[i])
            low, high = max(first, 0), min(last, extent)
            share[o, low:high] = 1 if divisor else 1 / (last - first if n.get("count_include_pad") else high - low)
        shares.append(share)
    spread = _spread(b, grad, *shares)
    return b.op("divide", spread, float(divisor)) if divisor else spread


def adaptive_avg_pool(n: Node) -> Any:
    b, grad, x = n.b, n.x("grad_output"), n.x()
    shares = []
    for axis in (-2, -1):
        extent, out = b.extent(x, axis), b.extent(grad, axis)
        b.budget.take_nodes(out, "computing the shares of its windows")
        share = b.arrays.zeros((out, extent))
        for o in range(out):
            low, high = o * extent // out, -(-(o + 1) * extent // out)
            share[o, low:high] = 1 / (high - low)
        shares.append(share)
    return _spread(b, grad, *shares)


def max_pool(n: Node) -> Any:
    """Each element of the gradient goes to the place that the pool found."""
    b, grad, x = n.b, n.x("grad_output"), n.x()
    shape = list(b.static_shape(x))
    front = math.prod(shape[:-2])
    zeros = b.const(b.arrays.zeros((front, math.prod(shape[-2:]))), b.dtype(grad))
    rows, places = (b.reshape_exactly(t, [front, -1]) for t in (grad, n.x("indices")))
    return b.reshape_exactly(b.op("scatter_elements", zeros, places, rows, axis=1, reduction="add"), shape)


def embedding(n: Node) -> Any:
    b, grad, indices = n.b, n.x("grad_output"), n.x("indices")
    if n.get("scale_grad_by_freq"):
        raise Unsupported("gradients are scaled by how often a row is used")
    count, width = n.int("num_weights"), b.extent(grad, -1)
    flat = b.op("reshape", indices, newshape=[-1])
    rows = b.op("reshape", grad, newshape=[-1, width])
    padding = b.op("equal", flat, b.const(n.int("padding_idx", -1), b.dtype(flat)))
    rows = b.op("where", b.unsqueeze(padding, [1]), b.const(0, b.dtype(rows)), rows)
    places = broadcast_to(b, b.unsqueeze(flat, [1]), b.shape_of(rows))
    return b.op("scatter_elements", b.const(b.arrays.zeros((count, width)), b.dtype(grad)), places, rows, axis=0, reduction="add")


RULES = (
    Rule("aten._adaptive_avg_pool2d_backward", adaptive_avg_pool),
    Rule("aten.avg_pool2d_backward", avg_pool),
    Rule("aten.convolution_backward", convolution),
    Rule("aten.embedding_dense_backward", embedding),
    Rule("aten.max_pool2d_with_indices_backward", max_pool),
    Rule("aten.native_group_norm_backward", group_norm),
    Rule("aten.native_layer_norm_backward", layer_norm),
)
