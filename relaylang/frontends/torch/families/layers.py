"""Layers: convolutions, products of matrices, pools, normalisations, attention, embeddings, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported, nn
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.torch.node import Node
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
        made = _transposed(n, x, weight, count)
    else:
        kernel = b.static_shape(weight, "the weights")
        strides, dilation = _of_rank(n.ints("stride", [1]), count), _of_rank(n.ints("dilation", [1]), count)
        padding = n.get("padding", [0])
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(dilation, kernel[2:])]
            pads = [t // 2 for t in totals] + [t - t // 2 for t in totals]
        else:
            pads = _of_rank([0] if padding == "valid" else n.ints("padding", [0]), count) * 2
        made = b.op(
            f"nn.conv{count}d", x, weight, strides=strides, padding=pads, dilation=dilation, groups=n.int("groups", 1),
            channels=kernel[0], kernel_size=kernel[2:],
        )  # fmt: skip
    if n.has("bias"):
        made = b.op("nn.bias_add", made, n.x("bias"), axis=1)
    return b.squeeze(made, [0]) if single else made


def _transposed(n: Node, x: Expr, weight: Expr, count: int) -> Any:
    b = n.b
    kernel = b.static_shape(weight, "the weights")
    groups = n.int("groups", 1)
    return b.op(
        f"nn.conv{count}d_transpose", x, weight, strides=_of_rank(n.ints("stride", [1]), count),
        padding=_of_rank(n.ints("padding", [0]), count) * 2, output_padding=_of_rank(n.ints("output_padding", [0]), count),
        dilation=_of_rank(n.ints("dilation", [1]), count), groups=groups, channels=kernel[1] * groups, kernel_size=kernel[2:],
    )  # fmt: skip


def conv_transpose(n: Node) -> Any:
    b, weight = n.b, n.x("weight")
    made = _transposed(n, n.x("input"), weight, b.rank(weight) - 2)
    return b.op("nn.bias_add", made, n.x("bias"), axis=1) if n.has("bias") else made


def linear(n: Node) -> Any:
    """Weights are (units, inputs), as Relay's; axes in front are kept."""
    b, x, weight = n.b, n.x("input"), n.x("weight")
    if b.rank(x) == 2 and b.rank(weight) == 2:
        made = b.op("nn.dense", x, weight, units=b.extent(weight, 0))
    elif b.rank(weight) == 2 and b.rank(x) > 2:
        flat = nn.flatten_front(b, x, b.rank(x) - 1)
        made = b.op("nn.dense", flat, weight, units=b.extent(weight, 0))
        made = nn.unflatten_front(b, made, x, b.rank(x) - 1)
    else:
        made = matmul(b, x, b.transpose(weight, list(range(b.rank(weight)))[::-1]))
    return b.op("add", made, n.x("bias")) if n.has("bias") else made


def product(n: Node) -> Any:
    return matmul(n.b, n.x(), n.x("other") if "other" in n.call.args else n.x("mat2"))


def mv(n: Node) -> Any:
    return matmul(n.b, n.x(), n.x("vec"))


def addmm(n: Node) -> Any:
    b = n.b
    names = ("mat1", "mat2") if "mat1" in n.call.args else ("batch1", "batch2")
    made, bias = matmul(b, n.x(names[0]), n.x(names[1])), n.x()
    alpha, beta = n.get("alpha", 1), n.get("beta", 1)
    made = made if alpha == 1 else b.op("multiply", made, b.const(alpha, b.dtype(made)))
    bias = bias if beta == 1 else b.op("multiply", bias, b.const(beta, b.dtype(bias)))
    return b.op("add", made, bias)


def einsum(n: Node) -> Any:
    return n.b.op("einsum", n.b.tuple(n.get("tensors")), equation=n.get("equation").replace(" ", ""))


def layer_norm(n: Node) -> Any:
    b, x = n.b, n.x("input")
    axis = b.rank(x) - len(n.get("normalized_shape"))
    parts = [n.get(name) for name in ("weight", "bias")]
    made = nn.layer_norm(b, x, axis, float(n.get("eps", 1e-5)), *parts)
    return [made, made, made] if n.call.target.startswith("aten.native") else made


def rms_norm(n: Node) -> Any:
    b, x = n.b, n.x("input")
    axes = list(range(b.rank(x) - len(n.get("normalized_shape")), b.rank(x)))
    eps = n.get("eps")
    return nn.rms_norm(b, x, axes, float(np.finfo(b.dtype(x)).eps) if eps is None else float(eps), n.get("weight"))


def group_norm(n: Node) -> Any:
    b, x = n.b, n.x("input")
    groups = n.int("num_groups") if "num_groups" in n.call.args else n.int("group")
    channels = b.extent(x, 1)
    parts = b.op("reshape", x, newshape=(0, groups, -1))
    eps = float(n.get("eps", 1e-5))
    made = nn.normalise(b, parts, [2], eps)
    made = b.reshape_to(made, b.shape_of(x))
    shape = [1, channels] + [1] * (b.rank(x) - 2)
    scale, shift = (b.reshape(n.x(name), shape) if n.has(name) else None for name in ("weight", "bias"))
    made = nn.scale_and_shift(b, made, scale, shift)
    return [made, made, made] if n.call.target.startswith("aten.native") else made


def _single(n: Node, x: Expr, count: int) -> tuple[Expr, bool]:
    """Data with a batch, and whether it had none."""
    single = n.b.rank(x) == count + 1
    return (n.b.unsqueeze(x, [0]) if single else x), single


def pool(kind: str, count: int) -> Any:
    def convert(n: Node) -> Any:
        b = n.b
        x, single = _single(n, n.x(), count)
        size = _of_rank(n.ints("kernel_size"), count)
        attrs: dict[str, Any] = {
            "pool_size": size, "strides": _of_rank(n.ints("stride", size) or size, count),
            "padding": _of_rank(n.ints("padding", [0]), count) * 2, "ceil_mode": bool(n.get("ceil_mode", False)),
        }  # fmt: skip
        if kind == "max":
            attrs["dilation"] = _of_rank(n.ints("dilation", [1]), count)
        else:
            attrs["count_include_pad"] = bool(n.get("count_include_pad", True))
            if n.has("divisor_override"):
                raise Unsupported("its divisor is overridden")
        made = b.op(f"nn.{kind}_pool{count}d", x, **attrs)
        return b.squeeze(made, [0]) if single else made

    return convert


def max_pool_with_indices(n: Node) -> Any:
    """The indices are not computed: a program that uses them cannot be converted."""
    return [pool("max", n.b.rank(n.x("self")) - 2)(n)]


def adaptive_pool(kind: str, count: int) -> Any:
    def convert(n: Node) -> Any:
        b = n.b
        x, single = _single(n, n.x(), count)
        sizes = _of_rank(n.ints("output_size"), count)
        if kind == "avg" and all(s == 1 for s in sizes):
            made = b.op("mean", x, axis=tuple(range(2, 2 + count)), keepdims=True)
        else:
            made = b.op(f"nn.adaptive_{kind}_pool{count}d", x, output_size=sizes)
        return b.squeeze(made, [0]) if single else made

    return convert


def softmax(op: str) -> Any:
    def convert(n: Node) -> Any:
        x = n.x()
        dtype = n.dtype()
        return n.b.op(op, n.b.cast(x, dtype) if dtype else x, axis=n.int("dim"))

    return convert


def embedding(n: Node) -> Any:
    return n.b.op("take", n.x("weight"), n.x("indices"), axis=0)


def attention(n: Node) -> Any:
    """softmax(q k^T scale + mask) v; key heads are repeated where there are fewer."""
    b = n.b
    q, k, v = (n.x(name) for name in ("query", "key", "value"))
    if n.get("dropout_p"):
        raise Unsupported("dropout in training gives random numbers")
    if n.get("enable_gqa"):
        heads = b.extent(q, -3) // b.extent(k, -3)
        k, v = (b.op("repeat", t, repeats=heads, axis=b.rank(t) - 3) for t in (k, v))
    depth = b.extent(q, -1)
    scale = n.get("scale")
    factor = 1 / math.sqrt(depth) if scale is None else float(scale)
    rank = b.rank(k)
    scores = matmul(b, b.op("multiply", q, factor), b.transpose(k, [*range(rank - 2), rank - 1, rank - 2]))
    if n.get("is_causal"):
        rows, columns = b.extent(q, -2), b.extent(k, -2)
        allowed = np.tril(np.ones((rows, columns), bool))
        scores = b.op("add", scores, b.const(np.where(allowed, 0.0, -np.inf).astype(b.dtype(scores))))
    if n.has("attn_mask"):
        mask = n.x("attn_mask")
        if b.dtype(mask) == "bool":
            mask = b.op("where", mask, b.const(0.0, b.dtype(scores)), b.const(-np.inf, b.dtype(scores)))
        scores = b.op("add", scores, mask)
    made = matmul(b, b.op("nn.softmax", scores, axis=-1), v)
    return made if n.call.target.startswith("aten.scaled_dot_product_attention") else [made]


def upsample(method: str, mode: str) -> Any:
    """A resize of the spatial axes to a size, or by factors."""

    def convert(n: Node) -> Any:
        b, x = n.b, n.x("self" if "self" in n.call.args else "input")
        count = b.rank(x) - 2
        align = bool(n.get("align_corners", False))
        if n.get("output_size") is not None:
            sizes = n.ints("output_size")
        else:
            factors = n.get("scale_factors") or [n.get(f"scales_{a}") for a in ("d", "h", "w")[3 - count :]]
            sizes = [math.floor(b.extent(x, 2 + i) * float(f)) for i, f in enumerate(factors)]
        return b.op(
            f"image.resize{count}d", x, size=sizes, roi=[0.0] * (2 * count), layout="NC" + "DHW"[3 - count :], method=method,
            coordinate_transformation_mode="align_corners" if align else mode, rounding_method="floor" if "near" in method else "",
            cubic_alpha=-0.75,
        )  # fmt: skip

    return convert


def pixel_shuffle(n: Node) -> Any:
    return n.b.op("nn.depth_to_space", n.x(), block_size=n.int("upscale_factor"), mode="CRD")


def glu(n: Node) -> Any:
    b, x = n.b, n.x()
    axis = n.int("dim", -1) % b.rank(x)
    half = b.extent(x, axis) // 2
    return b.op("multiply", b.slice(x, [0], [half], [axis]), b.op("sigmoid", b.slice(x, [half], [2 * half], [axis])))


_CONVS = ("conv1d", "conv2d", "conv3d", "convolution")
RULES = (
    *(Rule(f"aten.{name}", convolution) for name in _CONVS),
    *(Rule(f"aten.conv_transpose{d}", conv_transpose) for d in ("1d", "2d", "3d")),
    *(Rule(f"aten.{kind}_pool{d}d", pool(kind, d)) for kind in ("max", "avg") for d in (1, 2, 3)),
    *(Rule(f"aten.adaptive_{kind}_pool{d}d", adaptive_pool(kind, d)) for kind in ("max", "avg") for d in (1, 2, 3)),
    *(Rule(f"aten._adaptive_avg_pool{d}d", adaptive_pool("avg", d)) for d in (2, 3)),
    *(Rule(f"aten.{name}", product) for name in ("matmul", "mm", "bmm")),
    *(Rule(f"aten.{name}", addmm) for name in ("addmm", "baddbmm")),
    *(Rule(f"aten.{name}", softmax("nn.softmax")) for name in ("softmax", "_softmax")),
    *(Rule(f"aten.{name}", softmax("nn.log_softmax")) for name in ("log_softmax", "_log_softmax")),
    *(Rule(f"aten.upsample_nearest{d}d", upsample("nearest_neighbor", "asymmetric")) for d in (1, 2, 3)),
    Rule("aten._scaled_dot_product_flash_attention_for_cpu", attention),
    Rule("aten.einsum", einsum),
    Rule("aten.embedding", embedding),
    Rule("aten.glu", glu),
    Rule("aten.group_norm", group_norm),
    Rule("aten.layer_norm", layer_norm),
    Rule("aten.linear", linear),
    Rule("aten.max_pool2d_with_indices", max_pool_with_indices),
    Rule("aten.max_pool3d_with_indices", max_pool_with_indices),
    Rule("aten.mv", mv),
    Rule("aten.native_group_norm", group_norm),
    Rule("aten.native_layer_norm", layer_norm),
    Rule("aten.pixel_shuffle", pixel_shuffle),
    Rule("aten.rms_norm", rms_norm),
    Rule("aten.scaled_dot_product_attention", attention),
    Rule("aten.upsample_bicubic2d", upsample("cubic", "half_pixel")),
    Rule("aten.upsample_bilinear2d", upsample("linear", "half_pixel")),
    Rule("aten.upsample_linear1d", upsample("linear", "half_pixel")),
    Rule("aten.upsample_trilinear3d", upsample("linear", "half_pixel")),
)
