"""Layers: convolutions, products of matrices, pools, normalisations, attention, embeddings, resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, nn
from relaylang.frontends.common.einsum import einsum as einsum_of
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.torch.node import Node, on_axes
from relaylang.ir import Expr


def _of_rank(values: Sequence[int], count: int) -> list[int]:
    return list(values) * count if len(values) == 1 else list(values)


def convolution(n: Node) -> Any:
    """conv1d, conv2d, conv3d, and the general form with `transposed`."""
    b = n.b
    x, weight = n.x("input"), n.x("weight")
    count = b.rank(weight) - 2
    single = b.rank(x) == count + 1
    if single:
        x = b.unsqueeze(x, [0])
    if n.get("transposed"):
        conv = _transposed(n, x, weight, count)
    else:
        kernel = b.static_shape(weight, "the weights")
        strides, dilation = _of_rank(n.ints("stride", [1]), count), _of_rank(n.ints("dilation", [1]), count)
        padding = n.get("padding", [0])
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(dilation, kernel[2:])]
            pads = [t // 2 for t in totals] + [t - t // 2 for t in totals]
        else:
            pads = _of_rank([0] if padding == "valid" else n.ints("padding", [0]), count) * 2
        conv = b.op(
            f"nn.conv{count}d",
            x,
            weight,
            strides=strides,
            padding=pads,
            dilation=dilation,
            groups=n.int("groups", 1),
            channels=kernel[0],
            kernel_size=kernel[2:],
        )
    if n.has("bias"):
        conv = b.op("nn.bias_add", conv, n.x("bias"), axis=1)
    return b.squeeze(conv, [0]) if single else conv


def _transposed(n: Node, x: Expr, weight: Expr, count: int) -> Any:
    b = n.b
    kernel = b.static_shape(weight, "the weights")
    groups = n.int("groups", 1)
    return b.op(
        f"nn.conv{count}d_transpose",
        x,
        weight,
        strides=_of_rank(n.ints("stride", [1]), count),
        padding=_of_rank(n.ints("padding", [0]), count) * 2,
        output_padding=_of_rank(n.ints("output_padding", [0]), count),
        dilation=_of_rank(n.ints("dilation", [1]), count),
        groups=groups,
        channels=kernel[1] * groups,
        kernel_size=kernel[2:],
        kernel_layout={1: "IOW", 2: "IOHW", 3: "IODHW"}[count],
    )


def conv_transpose(n: Node) -> Any:
    b, x, weight = n.b, n.x("input"), n.x("weight")
    single = b.rank(x) == b.rank(weight) - 1
    conv = _transposed(n, b.unsqueeze(x, [0]) if single else x, weight, b.rank(weight) - 2)
    conv = b.op("nn.bias_add", conv, n.x("bias"), axis=1) if n.has("bias") else conv
    return b.squeeze(conv, [0]) if single else conv


def linear(n: Node) -> Any:
    """Weights are (units, inputs), as Relay's; axes in front are kept."""
    b, x, weight = n.b, n.x("input"), n.x("weight")
    if b.rank(x) == 2 and b.rank(weight) == 2:
        dense = b.op("nn.dense", x, weight, units=b.extent(weight, 0))
    elif b.rank(weight) == 2 and b.rank(x) > 2:
        flat = nn.flatten_front(b, x, b.rank(x) - 1)
        dense = b.op("nn.dense", flat, weight, units=b.extent(weight, 0))
        dense = nn.unflatten_front(b, dense, x, b.rank(x) - 1)
    else:
        dense = matmul(b, x, b.transpose(weight, list(range(b.rank(weight)))[::-1]))
    return b.op("add", dense, n.x("bias")) if n.has("bias") else dense


def product(n: Node) -> Any:
    return matmul(n.b, n.x(), n.x("other") if "other" in n.call.args else n.x("mat2"))


def addmm(n: Node) -> Any:
    b = n.b
    names = ("mat1", "mat2") if "mat1" in n.call.args else ("batch1", "batch2")
    matrix, bias = matmul(b, n.x(names[0]), n.x(names[1])), n.x()
    alpha, beta = n.get("alpha", 1), n.get("beta", 1)
    matrix = matrix if alpha == 1 else b.op("multiply", matrix, b.const(alpha, b.dtype(matrix)))
    bias = bias if beta == 1 else b.op("multiply", bias, b.const(beta, b.dtype(bias)))
    return b.op("add", matrix, bias)


def einsum(n: Node) -> Any:
    return einsum_of(n.b, n.get("equation"), n.get("tensors"))


def layer_norm(n: Node) -> Any:
    """The native form gives the mean and the factor of each row, too."""
    b, x = n.b, n.x("input")
    axis = b.rank(x) - len(n.get("normalized_shape"))
    parts, eps = [n.get(name) for name in ("weight", "bias")], float(n.get("eps", 1e-5))
    normalised = nn.layer_norm(b, x, axis, eps, *parts)
    return (
        [normalised, *_statistics(n, x, list(range(axis, b.rank(x))), eps)] if n.call.target.startswith("aten.native") else normalised
    )


def _statistics(n: Node, x: Expr, axes: list[int], eps: float) -> list[Expr]:
    """The mean and the factor along axes, where the program uses them."""
    if not n.used(1) and not n.used(2):
        return []
    b = n.b
    _, variance = nn.moments(b, x, axes)
    return [b.op("mean", x, axis=axes, keepdims=True), b.op("rsqrt", b.op("add", variance, eps))]


def rms_norm(n: Node) -> Any:
    b, x = n.b, n.x("input")
    axes = list(range(b.rank(x) - len(n.get("normalized_shape")), b.rank(x)))
    eps = n.get("eps")
    eps = float(np.finfo(b.dtype(x)).eps) if eps is None else float(eps)
    normalised = nn.rms_norm(b, x, axes, eps, n.get("weight"))
    if not n.call.target.startswith("aten._fused"):
        return normalised
    square = b.op("mean", b.op("multiply", x, x), axis=axes, keepdims=True)
    return [normalised, b.op("rsqrt", b.op("add", square, eps))]


def group_norm(n: Node) -> Any:
    b, x = n.b, n.x("input")
    groups = n.int("num_groups") if "num_groups" in n.call.args else n.int("group")
    channels = b.extent(x, 1)
    parts = b.op("reshape", x, newshape=(0, groups, -1))
    eps = float(n.get("eps", 1e-5))
    normalised = nn.normalise(b, parts, [2], eps)
    normalised = b.reshape_to(normalised, b.shape_of(x))
    shape = [1, channels] + [1] * (b.rank(x) - 2)
    scale, shift = (b.reshape(n.x(name), shape) if n.has(name) else None for name in ("weight", "bias"))
    normalised = nn.scale_and_shift(b, normalised, scale, shift)
    if not n.call.target.startswith("aten.native"):
        return normalised
    return [normalised, *[b.op("reshape", v, newshape=[0, 0]) for v in _statistics(n, parts, [2], eps)]]


def softmax(op: str) -> Any:
    def convert(n: Node) -> Any:
        x = n.x()
        dtype = n.dtype()
        return n.b.op(op, n.b.cast(x, dtype) if dtype else x, axis=n.int("dim"))

    return convert


def embedding(n: Node) -> Any:
    return n.b.op("take", n.x("weight"), n.x("indices"), axis=0)


def glu(n: Node) -> Any:
    b, x = n.b, n.x()
    axis = n.int("dim", -1) % b.rank(x)
    half = b.extent(x, axis) // 2
    return b.op("multiply", b.slice(x, [0], [half], [axis]), b.op("sigmoid", b.slice(x, [half], [2 * half], [axis])))


_CONVS = ("conv1d", "conv2d", "conv3d", "convolution", "_convolution", "_convolution_mode")
RULES = (
    *(Rule(f"aten.{name}", convolution) for name in _CONVS),
    *(Rule(f"aten.conv_transpose{d}", conv_transpose) for d in ("1d", "2d", "3d")),
    *(Rule(f"aten.{name}", product) for name in ("matmul", "mm", "bmm")),
    *(Rule(f"aten.{name}", addmm) for name in ("addmm", "baddbmm")),
    *(Rule(f"aten.{name}", on_axes(softmax("nn.softmax"))) for name in ("softmax", "_softmax")),
    *(Rule(f"aten.{name}", on_axes(softmax("nn.log_softmax"))) for name in ("log_softmax", "_log_softmax")),
    Rule("aten.einsum", einsum),
    Rule("aten.embedding", embedding),
    Rule("aten.glu", glu),
    Rule("aten.group_norm", group_norm),
    Rule("aten.layer_norm", layer_norm),
    Rule("aten.linear", linear),
    Rule("aten.mv", lambda n: matmul(n.b, n.x(), n.x("vec"))),
    Rule("aten.native_group_norm", group_norm),
    Rule("aten.native_layer_norm", layer_norm),
    Rule("aten.pixel_shuffle", lambda n: n.b.op("nn.depth_to_space", n.x(), block_size=n.int("upscale_factor"), mode="CRD")),
    Rule("aten._fused_rms_norm", rms_norm),
    Rule("aten.rms_norm", rms_norm),
)
