"""Float operators of com.microsoft: fused activations, normalisations, embeddings, and some of ai.onnx's future ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.quantized import dequantize, less_zero
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr

DOMAIN = "com.microsoft"


def _plus(b: Builder, x: Expr, *others: Expr | None) -> Expr:
    for other in others:
        x = x if other is None else b.op("add", x, other)
    return x


# ---- activations


def gelu(n: Node, x: Expr, bias: Expr | None = None) -> Any:
    return nn.gelu(n.b, _plus(n.b, x, bias))


def fast_gelu(n: Node, x: Expr, bias: Expr | None = None) -> Any:
    return nn.gelu(n.b, _plus(n.b, x, bias), approximate=True)


def bias_split_gelu(n: Node, x: Expr, bias: Expr) -> Any:
    b = n.b
    left, right = b.fields(b.op("split", b.op("add", x, bias), indices_or_sections=2, axis=-1))
    return b.op("multiply", left, nn.gelu(b, right))


def bias_add(n: Node, x: Expr, bias: Expr, skip: Expr | None = None) -> Any:
    return _plus(n.b, x, bias, skip)


def bias_softmax(n: Node, x: Expr, bias: Expr) -> Any:
    """Over all axes from `axis` on. The bias lacks some axes of the data: those before, or those in the middle."""
    b, rank = n.b, n.b.rank(x)
    axis = n.int("axis", 1) % rank
    if b.rank(bias) != rank:
        raise Unsupported("a bias of another rank is not converted")
    biased = b.op("add", x, bias)
    if axis == rank - 1:
        return b.op("nn.softmax", biased, axis=-1)
    shape = b.static_shape(biased)
    flat = b.reshape(biased, [int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))])
    return b.reshape(b.op("nn.softmax", flat, axis=-1), shape)


def swiglu(n: Node, gate: Expr, up: Expr | None = None) -> Any:
    b, limit = n.b, n.float("limit", 0.0)
    if up is None:
        gate, up = b.fields(b.op("split", gate, indices_or_sections=2, axis=-1))
    if limit > 0:
        gate, up = b.op("minimum", gate, limit), b.op("clip", up, a_min=-limit, a_max=limit)
    shift = n.float("activation_beta", 0.0)
    return b.op("multiply", nn.swish(b, gate, n.float("activation_alpha", 1.0)), b.op("add", up, shift) if shift else up)


def gated_add(n: Node, x: Expr, y: Expr, gate: Expr, weight: Expr | None = None) -> Any:
    b = n.b
    factor = gate if weight is None else b.op("sigmoid", nn.matmul(b, gate, weight))
    return b.op("add", x, b.op("multiply", y, factor))


# ---- normalisation


def skip_layer_norm(n: Node, x: Expr, skip: Expr, gamma: Expr, beta: Expr | None = None, bias: Expr | None = None) -> Any:
    b = n.b
    total = _plus(b, x, skip, bias)
    normalised = nn.layer_norm(b, total, -1, n.float("epsilon", 1e-12), gamma, beta)
    return [normalised, *_statistics(n, total), total]


def _statistics(n: Node, x: Expr) -> list[Expr | None]:
    """The mean and the inverse deviation, where somebody names them."""
    b = n.b
    if not n.has_output(1) and not n.has_output(2):
        return [None, None]
    mean = b.op("mean", x, axis=[-1], keepdims=True)
    variance = nn.moments(b, x, [-1])[1]
    return [mean, b.op("rsqrt", b.op("add", variance, n.float("epsilon", 1e-12)))]


def mul_integer(n: Node, x: Expr, x_zero: Expr | None, y: Expr, y_zero: Expr | None = None) -> Any:
    return n.b.op("multiply", less_zero(n.b, x, x_zero), less_zero(n.b, y, y_zero))


def skip_rms_norm(n: Node, x: Expr, skip: Expr, gamma: Expr, bias: Expr | None = None) -> Any:
    b = n.b
    total = _plus(b, x, skip, bias)
    return [nn.rms_norm(b, total, [-1], n.float("epsilon", 1e-12), gamma), None, None, total]


def rms_norm(n: Node, x: Expr, scale: Expr) -> Any:
    """SimplifiedLayerNormalization, which onnxruntime writes without a domain."""
    b = n.b
    axes = list(range(n.int("axis", -1) % b.rank(x), b.rank(x)))
    epsilon = n.float("epsilon", 1e-5)
    wide = b.cast(x, "float32") if b.dtype(x) in ("float16", "bfloat16") else x
    normalised = b.cast(nn.rms_norm(b, wide, axes, epsilon), b.dtype(scale))
    square = b.op("mean", b.op("multiply", wide, wide), axis=axes, keepdims=True)
    return [b.op("multiply", normalised, scale), b.op("rsqrt", b.op("add", square, epsilon))]


def gated_rms_norm(n: Node, x: Expr, scale: Expr, gate: Expr) -> Any:
    b = n.b
    width, rank = b.extent(scale, 0), b.rank(x)
    wide = b.cast(x, "float32")
    groups = b.op("reshape", wide, newshape=[*[0] * (rank - 1), -1, width])
    normalised = nn.rms_norm(b, groups, [-1], n.float("epsilon", 1e-5), b.cast(scale, "float32"))
    normalised = b.op("reshape", normalised, newshape=[*[0] * (rank - 1), -3])
    open_ = b.op("sigmoid", b.cast(gate, "float32"))
    if n.string("activation", "silu") != "sigmoid":
        open_ = b.op("multiply", open_, b.cast(gate, "float32"))
    return b.cast(b.op("multiply", normalised, open_), b.dtype(x))


def group_norm(n: Node, x: Expr, gamma: Expr, beta: Expr) -> Any:
    """Groups of channels, which are last by default; SiLU behind it where the layer asks for it."""
    b, last = n.b, bool(n.int("channels_last", 1))
    dtype, rank = b.dtype(x), b.rank(x)
    data = b.cast(b.transpose(x, [0, rank - 1, *range(1, rank - 1)]) if last else x, "float32")
    normalised = b.op(
        "nn.group_norm",
        data,
        *[b.cast(v, "float32") for v in (gamma, beta)],
        num_groups=n.int("groups"),
        axis=1,
        epsilon=n.float("epsilon", 1e-5),
    )
    normalised = nn.swish(b, normalised) if n.int("activation") else normalised
    return b.cast(b.transpose(normalised, [0, *range(2, rank), 1]) if last else normalised, dtype)


def skip_group_norm(n: Node, x: Expr, gamma: Expr, beta: Expr, skip: Expr, bias: Expr | None = None) -> Any:
    b, last = n.b, bool(n.int("channels_last", 1))
    behind = [1, 2] if last else [2, 3]
    skip = b.unsqueeze(skip, behind) if b.rank(skip) == 2 else skip
    if bias is not None:
        bias = bias if last else b.unsqueeze(bias, [1, 2])
    total = _plus(b, x, skip, bias)
    return [group_norm(n, total, gamma, beta), total]


# ---- embeddings


def embed_layer_norm(
    n: Node,
    ids: Expr,
    segments: Expr | None,
    words: Expr,
    places: Expr,
    kinds: Expr | None,
    gamma: Expr,
    beta: Expr,
    mask: Expr | None = None,
    positions: Expr | None = None,
) -> Any:
    b = n.b
    total = b.op("take", words, ids, axis=0, mode="clip")
    if positions is not None:
        total = b.op("add", total, b.op("take", places, positions, axis=0, mode="clip"))
    else:
        total = b.op("add", total, b.slice(places, [0], [b.extent(ids, 1, "the number of steps")], [0]))
    if segments is not None and kinds is not None:
        total = b.op("add", total, b.op("take", kinds, segments, axis=0, mode="clip"))
    normalised = nn.layer_norm(b, total, -1, n.float("epsilon", 1e-12), gamma, beta)
    if mask is None:
        index = b.const(b.arrays.zeros(b.extent(ids, 0), "int32")) if n.has_output(1) else None
    else:
        index = b.op("sum", b.cast(mask, "int32"), axis=[1])
    return [normalised, index, total]


def quantised_embed_layer_norm(
    n: Node,
    ids: Expr,
    segments: Expr | None,
    words: Expr,
    places: Expr,
    kinds: Expr | None,
    gamma: Expr,
    beta: Expr,
    mask: Expr | None,
    *scales: Expr | None,
) -> Any:
    """The tables are whole numbers with scales and zero points, in the same order."""
    b = n.b
    tables = [
        None if t is None or s is None else dequantize(b, t, s, z)
        for t, s, z in zip((words, places, kinds, gamma, beta), scales[:5], scales[5:])
    ]
    w, p, k, g, s = tables
    assert w is not None and p is not None and g is not None and s is not None
    return embed_layer_norm(n, ids, segments, w, p, k, g, s, mask)[:2]


# ---- others


def cdist(n: Node, x: Expr, y: Expr) -> Any:
    b, metric = n.b, n.string("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        raise Unsupported(f"the metric {metric} is not converted")
    apart = b.op("subtract", b.unsqueeze(x, [1]), b.unsqueeze(y, [0]))
    squares = b.op("sum", b.op("multiply", apart, apart), axis=[2])
    return b.op("sqrt", squares) if metric == "euclidean" else squares


def _complex(n: Node, x: Expr, y: Expr, sign: int) -> Expr:
    """Real and imaginary parts lie along the last axis."""
    b = n.b
    (p, q), (r, s) = ([b.slice(v, [i], [i + 1], [b.rank(v) - 1]) for i in (0, 1)] for v in (x, y))
    s = s if sign > 0 else b.op("negative", s)
    real = b.op("subtract", b.op("multiply", p, r), b.op("multiply", q, s))
    imaginary = b.op("add", b.op("multiply", p, s), b.op("multiply", q, r))
    return b.concat([real, imaginary], b.rank(real) - 1)


def inverse(n: Node, x: Expr) -> Any:
    """Elimination without recursion: each column is cleared with the row whose element there is largest."""
    b, rank = n.b, n.b.rank(x)
    size = b.extent(x, -1, "a matrix")
    if size > 16:
        raise Unsupported(f"inverses of matrices with more than 16 rows, here {size}, are not converted")
    dtype = b.dtype(x)
    unit = b.const(b.arrays.eye(size), dtype)
    right = b.op("add", b.op("zeros_like", x), unit)
    system = b.concat([x, right], rank - 1)
    left = b.const(b.arrays.ones((size, 1)), dtype)  # the rows that have cleared no column
    determinant = b.const(b.arrays.zeros((size, size)), dtype)  # which row has cleared which column
    for i in range(size):
        column = b.slice(system, [i], [i + 1], [rank - 1])
        # Rows that are used up are below every other one.
        weights = b.op("subtract", b.op("multiply", b.op("add", b.op("abs", column), 1.0), left), 1.0)
        best = b.op("argmax", weights, axis=[rank - 2], keepdims=True)
        chosen = b.op("one_hot", b.squeeze(best, [-2, -1]), 1.0, 0.0, depth=size, axis=-1, dtype=dtype)
        chosen = b.unsqueeze(chosen, [-1])
        row = b.op("sum", b.op("multiply", system, chosen), axis=[rank - 2], keepdims=True)
        row = b.op("divide", row, b.slice(row, [i], [i + 1], [rank - 1]))
        others = b.op("multiply", column, b.op("subtract", 1.0, chosen))
        system = b.op(
            "add",
            b.op("multiply", b.op("subtract", system, b.op("multiply", others, row)), b.op("subtract", 1.0, chosen)),
            b.op("multiply", chosen, row),
        )
        left = b.op("multiply", left, b.op("subtract", 1.0, chosen))
        place = b.const(b.arrays.eye(size)[i : i + 1], dtype)
        determinant = b.op("add", determinant, b.op("multiply", chosen, place))
    rows = b.slice(system, [size], [2 * size], [rank - 1])
    order = b.transpose(determinant, [*range(rank - 2), rank - 1, rank - 2])
    return nn.matmul(b, order, rows)


def is_all_finite(n: Node, *xs: Expr) -> Any:
    b = n.b
    wrong = [b.op("isnan" if n.int("isnan_only", 0) else "isinf", x) for x in xs]
    if not n.int("isnan_only", 0) and not n.int("isinf_only", 0):
        wrong = [b.op("logical_not", b.op("isfinite", x)) for x in xs]
    flags = [b.op("any", w) for w in wrong]
    is_wrong = flags[0]
    for other in flags[1:]:
        is_wrong = b.op("logical_or", is_wrong, other)
    return b.op("logical_not", is_wrong)


def expand_dims(n: Node, x: Expr, axis: Expr) -> Any:
    return n.b.unsqueeze(x, n.b.need_ints(axis, "the axis"))


def unfold(n: Node, x: Expr) -> Any:
    """All slices of a size along an axis, each as a new last axis."""
    b = n.b
    axis, size = n.int("dim", -1) % b.rank(x), n.int("size")
    step = n.int("step", 1)
    if step < 1 or size < 1:
        raise Malformed(f"its slices have {size} elements and lie {step} apart")
    starts = b.arrays.arange(-(-(b.extent(x, axis) - size + 1) // step)) * step
    b.arrays.reserve((starts.size, size))
    slices = b.op("take", x, b.const((starts[:, None] + b.arrays.arange(size)).astype("int32")), axis=axis, mode="clip")
    rank = b.rank(slices)
    return b.transpose(slices, [*[i for i in range(rank) if i != axis + 1], axis + 1])


_ROWS = (
    ("BiasAdd", bias_add),
    ("BiasGelu", gelu),
    ("BiasSoftmax", bias_softmax),
    ("BiasSplitGelu", bias_split_gelu),
    ("CDist", cdist),
    ("ComplexMul", lambda n, x, y: _complex(n, x, y, 1)),
    ("ComplexMulConj", lambda n, x, y: _complex(n, x, y, -1)),
    ("EmbedLayerNormalization", embed_layer_norm),
    ("ExpandDims", expand_dims),
    ("FastGelu", fast_gelu),
    ("GatedAdd", gated_add),
    ("GatedRMSNorm", gated_rms_norm),
    ("Gelu", gelu),
    ("GemmFastGelu", lambda n, x, w, bias=None: fast_gelu(n, nn.matmul(n.b, x, w), bias)),
    ("GroupNorm", group_norm),
    ("Inverse", inverse),
    ("IsAllFinite", is_all_finite),
    ("MatMulInteger16", lambda n, x, y: nn.matmul(n.b, n.b.cast(x, "int32"), n.b.cast(y, "int32"))),
    ("MulInteger", mul_integer),
    ("QEmbedLayerNormalization", quantised_embed_layer_norm),
    ("QuickGelu", lambda n, x: nn.swish(n.b, x, n.float("alpha", 1.702))),
    ("ReduceSumInteger", lambda n, x: n.b.op("sum", n.b.cast(x, "int32"), axis=n.ints("axes"), keepdims=bool(n.int("keepdims", 1)))),
    ("ScaledSiLU", lambda n, x, scale=None: nn.swish(n.b, n.b.op("multiply", x, n.float("alpha", 1.0) if scale is None else scale))),
    ("SkipGroupNorm", skip_group_norm),
    ("SkipLayerNormalization", skip_layer_norm),
    ("SkipSimplifiedLayerNormalization", skip_rms_norm),
    ("SwiGLU", swiglu),
    ("TorchEmbedding", lambda n, weight, indices, *_: n.b.op("take", weight, indices, axis=0, mode="clip")),
    ("UnfoldTensor", unfold),
)
RULES = (
    Rule("SimplifiedLayerNormalization", rms_norm),
    *(Rule(name, convert, domain=DOMAIN) for name, convert in _ROWS),
)
