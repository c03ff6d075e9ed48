"""Layers of neural networks as coremltools' builder writes them, with their results by numpy or PyTorch.

scripts/coreml_results.py records them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder
from torch.nn import functional as f

#: A layer: its name, the shapes of its operands, what adds it to a builder, and its results.
Row = tuple[str, Sequence[tuple[int, ...]], Callable[[Any], Any], Callable[..., Any]]
RNG = np.random.default_rng(5)


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def t(x: Any) -> Any:
    return torch.from_numpy(np.asarray(x, np.float32))


def _lstm(x: np.ndarray, w: Sequence[np.ndarray], r: Sequence[np.ndarray], b: Sequence[np.ndarray], back: bool = False) -> np.ndarray:
    """Hidden states of gates i, f, o, z over (steps, elements)."""

    def sigmoid(v: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-v))

    h = c = np.zeros(r[0].shape[0])
    rows = []
    for row in x[::-1] if back else x:
        i, f_, o, z = (wi @ row + ri @ h + bi for wi, ri, bi in zip(w, r, b))
        c = sigmoid(f_) * c + sigmoid(i) * np.tanh(z)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.array(rows[::-1] if back else rows)


def _gru(x: np.ndarray, w: Sequence[np.ndarray], r: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> np.ndarray:
    """Hidden states of gates z, r, o; the reset gate is applied to the state."""

    def sigmoid(v: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-v))

    h, rows = np.zeros(r[0].shape[0]), []
    for row in x:
        z = sigmoid(w[0] @ row + r[0] @ h + b[0])
        reset = sigmoid(w[1] @ row + r[1] @ h + b[1])
        o = np.tanh(w[2] @ row + r[2] @ (h * reset) + b[2])
        h = (1 - z) * o + z * h
        rows.append(h)
    return np.array(rows)


W, R, B = [drawn(3, 4) for _ in range(8)], [drawn(3, 3) for _ in range(8)], [drawn(3) for _ in range(8)]
KERNEL, BIAS = drawn(4, 3, 3, 3), drawn(4)
MATRIX, SHIFT = drawn(5, 12), drawn(5)
VECTOR, POSITIVE = drawn(3), np.abs(drawn(3)) + 0.5
TABLE = drawn(4, 6)


def conv(b: Any, **how: Any) -> None:
    stride = how.pop("stride", 1)
    b.add_convolution(
        "l",
        3,
        4,
        3,
        3,
        stride,
        stride,
        how.pop("mode", "valid"),
        1,
        KERNEL.transpose(2, 3, 1, 0),
        BIAS,
        True,
        input_name="x0",
        output_name="y0",
        **how,
    )


def _norm(x: Any, axes: Sequence[int], e: float = 1e-6) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + e)


PICTURE = [(3, 6, 7)]
#: Layers of the older rule, whose arrays are (channels, rows, columns) without the axis of the batch.
OLD: list[Row] = [
    ("conv", PICTURE, lambda b: conv(b), lambda x: f.conv2d(t(x), t(KERNEL), t(BIAS))),
    (
        "conv_same",
        PICTURE,
        lambda b: conv(b, mode="same", stride=2),
        lambda x: f.conv2d(f.pad(t(x), (1, 1, 0, 1)), t(KERNEL), t(BIAS), 2),
    ),
    (
        "inner",
        [(3, 2, 2)],
        lambda b: b.add_inner_product("l", MATRIX, SHIFT, 12, 5, True, "x0", "y0"),
        lambda x: x.reshape(1, -1) @ MATRIX.T + SHIFT,
    ),
    (
        "pool_last",
        PICTURE,
        lambda b: b.add_pooling(
            "l", 3, 3, 2, 2, "MAX", "INCLUDE_LAST_PIXEL", "x0", "y0", padding_top=1, padding_bottom=1, padding_left=1, padding_right=1
        ),
        lambda x: f.max_pool2d(t(x), 3, 2, 1, ceil_mode=True),
    ),
    (
        "pool_mean",
        PICTURE,
        lambda b: b.add_pooling(
            "l",
            3,
            3,
            2,
            2,
            "AVERAGE",
            "VALID",
            "x0",
            "y0",
            exclude_pad_area=True,
            padding_top=1,
            padding_bottom=1,
            padding_left=1,
            padding_right=1,
        ),
        lambda x: f.avg_pool2d(t(x), 3, 2, 1, count_include_pad=False),
    ),
    (
        "pool_l2",
        PICTURE,
        lambda b: b.add_pooling("l", 2, 2, 2, 2, "L2", "VALID", "x0", "y0"),
        lambda x: (f.avg_pool2d(t(x) ** 2, 2) * 4).sqrt(),
    ),
    (
        "pool_global",
        PICTURE,
        lambda b: b.add_pooling("l", 1, 1, 1, 1, "AVERAGE", "VALID", "x0", "y0", is_global=True),
        lambda x: x.mean((2, 3)),
    ),
    (
        "norm",
        PICTURE,
        lambda b: b.add_batchnorm("l", 3, VECTOR, VECTOR * 2, VECTOR * 0.5, POSITIVE, "x0", "y0", epsilon=1e-3),
        lambda x: f.batch_norm(t(x), t(VECTOR * 0.5), t(POSITIVE), t(VECTOR), t(VECTOR * 2), eps=1e-3),
    ),
    (
        "norm_instance",
        PICTURE,
        lambda b: b.add_batchnorm(
            "l", 3, VECTOR, VECTOR * 2, None, None, "x0", "y0", compute_mean_var=True, instance_normalization=True, epsilon=1e-3
        ),
        lambda x: f.instance_norm(t(x), None, None, t(VECTOR), t(VECTOR * 2), eps=1e-3),
    ),
    (
        "mvn",
        PICTURE,
        lambda b: b.add_mvn("l", "x0", "y0", across_channels=True, normalize_variance=True, epsilon=1e-3),
        lambda x: _norm(x, (1, 2, 3), 1e-3),
    ),
    ("l2", PICTURE, lambda b: b.add_l2_normalize("l", "x0", "y0", 1e-4), lambda x: x / np.sqrt((x * x).sum() + 1e-4)),
    (
        "lrn",
        PICTURE,
        lambda b: b.add_lrn("l", "x0", "y0", 0.2, 0.75, 3, 2.0),
        lambda x: f.local_response_norm(t(x), 3, 0.2, 0.75, 2.0),
    ),
    ("softmax", PICTURE, lambda b: b.add_softmax("l", "x0", "y0"), lambda x: f.softmax(t(x), 1)),
    ("crop", PICTURE, lambda b: b.add_crop("l", 1, 2, 0, 1, None, ["x0"], "y0"), lambda x: x[:, :, 0:5, 1:5]),
    (
        "padding",
        PICTURE,
        lambda b: b.add_padding("l", 1, 2, 0, 1, 0, "x0", "y0", "reflection"),
        lambda x: f.pad(t(x), (1, 2, 0, 1), "reflect"),
    ),
    (
        "upsample",
        PICTURE,
        lambda b: b.add_upsample("l", 2, 3, "x0", "y0", "BILINEAR", "ALIGN_CORNERS_FALSE"),
        lambda x: f.interpolate(t(x), size=(12, 21), mode="bilinear"),
    ),
    ("upsample_near", PICTURE, lambda b: b.add_upsample("l", 2, 3, "x0", "y0", "NN"), lambda x: x.repeat(2, 2).repeat(3, 3)),
    (
        "resize",
        PICTURE,
        lambda b: b.add_resize_bilinear("l", "x0", "y0", 9, 5, "STRICT_ALIGN_ENDPOINTS_MODE"),
        lambda x: f.interpolate(t(x), size=(9, 5), mode="bilinear", align_corners=True),
    ),
    ("unary", PICTURE, lambda b: b.add_unary("l", "x0", "y0", "power", 3.0, 0.5, 2.0), lambda x: (2.0 * x + 0.5) ** 3),
    ("unary_inverse", PICTURE, lambda b: b.add_unary("l", "x0", "y0", "inverse", 1.0, 4.0, 0.1, 0.5), lambda x: 1 / (0.1 * x + 4.5)),
    (
        "scale",
        PICTURE,
        lambda b: b.add_scale("l", VECTOR, VECTOR * 3, True, "x0", "y0", [3], [3]),
        lambda x: x * VECTOR[:, None, None] + 3 * VECTOR[:, None, None],
    ),
    ("bias", PICTURE, lambda b: b.add_bias("l", VECTOR, "x0", "y0", [3]), lambda x: x + VECTOR[:, None, None]),
    (
        "constant",
        PICTURE,
        lambda b: (b.add_load_constant("c", "c", VECTOR, [3, 1, 1]), b.add_elementwise("l", ["x0", "c"], "y0", "MULTIPLY")),
        lambda x: x * VECTOR[:, None, None],
    ),
    ("average", [(3, 4, 5), (3, 4, 5)], lambda b: b.add_elementwise("l", ["x0", "x1"], "y0", "AVE"), lambda x, y: (x + y) / 2),
    (
        "dot",
        [(3, 4, 5), (3, 4, 5)],
        lambda b: b.add_elementwise("l", ["x0", "x1"], "y0", "COS"),
        lambda x, y: f.cosine_similarity(t(x), t(y))[:, None],
    ),
    (
        "concat",
        [(3, 4, 5), (2, 4, 5)],
        lambda b: b.add_elementwise("l", ["x0", "x1"], "y0", "CONCAT"),
        lambda x, y: np.concatenate([x, y], 1),
    ),
    ("permute", PICTURE, lambda b: b.add_permute("l", (0, 3, 1, 2), "x0", "y0"), lambda x: x.transpose(0, 3, 1, 2)),
    ("reshape", PICTURE, lambda b: b.add_reshape("l", "x0", "y0", (7, 9, 2), 0), lambda x: x.reshape(1, 7, 9, 2)),
    (
        "reshape_last",
        PICTURE,
        lambda b: b.add_reshape("l", "x0", "y0", (7, 9, 2), 1),
        lambda x: x.transpose(0, 2, 3, 1).reshape(1, 9, 2, 7).transpose(0, 3, 1, 2),
    ),
    ("flatten", PICTURE, lambda b: b.add_flatten("l", 1, "x0", "y0"), lambda x: x.transpose(0, 2, 3, 1).reshape(1, -1)),
    ("slice", PICTURE, lambda b: b.add_slice("l", "x0", "y0", "width", 1, -1, 2), lambda x: x[..., 1:-1:2]),
    ("split", [(4, 3, 5)], lambda b: b.add_split("l", "x0", ["y0", "y1"]), lambda x: (x[:, :2], x[:, 2:])),
    ("reduce", PICTURE, lambda b: b.add_reduce("l", "x0", "y0", "HW", "L2"), lambda x: np.sqrt((x * x).sum((2, 3)))),
    (
        "reduce_log",
        PICTURE,
        lambda b: (b.add_unary("u", "x0", "u", "abs"), b.add_reduce("l", "u", "y0", "C", "logsum", 1e-3)),
        lambda x: np.log(np.abs(x) + 1e-3).sum(1, keepdims=True),
    ),
    (
        "reduce_place",
        PICTURE,
        lambda b: b.add_reduce("l", "x0", "y0", "C", "argmax"),
        lambda x: x.argmax(1)[:, None].astype(np.float32),
    ),
    (
        "depth",
        [(8, 2, 3)],
        lambda b: b.add_reorganize_data("l", "x0", "y0", "DEPTH_TO_SPACE", 2),
        lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6),
    ),
    ("shuffle", [(8, 2, 3)], lambda b: b.add_reorganize_data("l", "x0", "y0", "PIXEL_SHUFFLE", 2), lambda x: f.pixel_shuffle(t(x), 2)),
    ("embedding", [(1,)], lambda b: b.add_embedding("l", TABLE, None, 6, 4, False, "x0", "y0"), lambda x: TABLE[:, 2][None]),
    ("prelu", PICTURE, lambda b: b.add_activation("l", "PRELU", "x0", "y0", VECTOR), lambda x: f.prelu(t(x), t(VECTOR))),
    ("tanh_scaled", PICTURE, lambda b: b.add_activation("l", "SCALED_TANH", "x0", "y0", [1.7, 0.6]), lambda x: 1.7 * np.tanh(0.6 * x)),
    (
        "softplus",
        PICTURE,
        lambda b: b.add_activation("l", "PARAMETRICSOFTPLUS", "x0", "y0", [VECTOR, POSITIVE]),
        lambda x: VECTOR[:, None, None] * np.log1p(np.exp(POSITIVE[:, None, None] * x)),
    ),
    ("threshold", PICTURE, lambda b: b.add_activation("l", "THRESHOLDEDRELU", "x0", "y0", 0.4), lambda x: np.where(x >= 0.4, x, 0)),
    ("hard", PICTURE, lambda b: b.add_activation("l", "SIGMOID_HARD", "x0", "y0", [0.3, 0.4]), lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
]


SEQUENCE = [(5, 1, 4, 1, 1)]
#: Recurrent layers of the older rule, over five steps.
OLD += [
    (
        "lstm",
        SEQUENCE,
        lambda b: b.add_unilstm("l", R[:4], W[:4], B[:4], 3, 4, ["x0"], ["y0"], output_all=True),
        lambda x: _lstm(x.reshape(5, 4), W[:4], R[:4], B[:4]),
    ),
    (
        "lstm_last",
        SEQUENCE,
        lambda b: b.add_unilstm("l", R[:4], W[:4], B[:4], 3, 4, ["x0"], ["y0"], reverse_input=True),
        lambda x: _lstm(x.reshape(5, 4), W[:4], R[:4], B[:4], True)[:1],
    ),
    (
        "lstm_both",
        SEQUENCE,
        lambda b: b.add_bidirlstm("l", R[:4], W[:4], B[:4], R[4:], W[4:], B[4:], 3, 4, ["x0"], ["y0"], output_all=True),
        lambda x: np.concatenate([_lstm(x.reshape(5, 4), W[:4], R[:4], B[:4]), _lstm(x.reshape(5, 4), W[4:], R[4:], B[4:], True)], 1),
    ),
    (
        "gru",
        SEQUENCE,
        lambda b: b.add_gru("l", R[:3], W[:3], B[:3], 3, 4, ["x0"], ["y0"], inner_activation="SIGMOID", output_all=True),
        lambda x: _gru(x.reshape(5, 4), W[:3], R[:3], B[:3]),
    ),
    (
        "simple",
        SEQUENCE,
        lambda b: b.add_simple_rnn("l", R[0], W[0], B[0], 3, 4, "TANH", ["x0"], ["y0"], output_all=True),
        lambda x: _simple(x.reshape(5, 4)),
    ),
]


def _simple(x: np.ndarray) -> np.ndarray:
    h, rows = np.zeros(3), []
    for row in x:
        h = np.tanh(W[0] @ row + R[0] @ h + B[0])
        rows.append(h)
    return np.array(rows)


def _branches(b: Any) -> None:
    b.add_reduce_sum("s", "x0", "s", axes=[0, 1], keepdims=False)
    b.add_greater_than("g", ["s"], "g", alpha=0.0)
    layer = b.add_branch("l", "g")
    for net, alpha in ((layer.branch.ifBranch, 2.0), (layer.branch.elseBranch, -3.0)):
        inner = NeuralNetworkBuilder(input_features=None, output_features=None, nn_spec=net, disable_rank5_shape_mapping=True)
        inner.add_activation("a", "LINEAR", "x0", "y0", [alpha, 1.0])


def _looped(b: Any) -> None:
    b.add_copy("c", "x0", "y0")
    layer = b.add_loop("l", max_iterations=4)
    inner = NeuralNetworkBuilder(
        input_features=None, output_features=None, nn_spec=layer.loop.bodyNetwork, disable_rank5_shape_mapping=True
    )
    inner.add_activation("a", "LINEAR", "y0", "t", [1.5, 1.0])
    inner.add_copy("b", "t", "y0")


#: Layers of the newer rule, whose arrays have the axes that they state.
NEW: list[Row] = [
    ("matmul", [(2, 3, 4), (2, 4, 5)], lambda b: b.add_batched_mat_mul("l", ["x0", "x1"], "y0"), lambda x, y: x @ y),
    (
        "matmul_weight",
        [(2, 3, 4)],
        lambda b: b.add_batched_mat_mul("l", ["x0"], "y0", weight_matrix_rows=4, weight_matrix_columns=6, W=TABLE, bias=TABLE[0]),
        lambda x: x @ TABLE + TABLE[0],
    ),
    (
        "embedding_nd",
        [(2, 3, 1)],
        lambda b: (
            b.add_rank_preserving_reshape("r", "x0", "r", [2, 3, 1]),
            b.add_floor("f", "r", "f"),
            b.add_clip("k", "f", "k", 0.0, 5.0),
            b.add_embedding_nd("l", "k", "y0", 6, 4, TABLE),
        ),
        lambda x: TABLE.T[np.clip(np.floor(x), 0, 5).astype(int)[..., 0]],
    ),
    ("softmax_nd", [(2, 3, 4)], lambda b: b.add_softmax_nd("l", "x0", "y0", 1), lambda x: f.softmax(t(x), 1)),
    (
        "slice_static",
        [(4, 5, 6)],
        lambda b: b.add_slice_static(
            "l", "x0", "y0", [1, 0, -1], [3, 9, 0], [1, 2, -2], [False, True, False], [False, True, False], [False, False, False]
        ),
        lambda x: x[1:3, ::2, -1:0:-2],
    ),
    (
        "gather",
        [(4, 5)],
        lambda b: (b.add_load_constant_nd("i", "i", np.array([2.0, 0.0, 1.0]), (3,)), b.add_gather("l", ["x0", "i"], "y0", 1)),
        lambda x: x[:, [2, 0, 1]],
    ),
    (
        "scatter",
        [(4, 5), (4, 2)],
        lambda b: (
            b.add_load_constant_nd("i", "i", np.array([3.0, 1.0]), (2,)),
            b.add_scatter("l", ["x0", "i", "x1"], "y0", 1, "ADD"),
        ),
        lambda x, y: x + np.stack([0 * x[:, 0], y[:, 1], 0 * x[:, 0], y[:, 0], 0 * x[:, 0]], 1),
    ),
    (
        "layer_norm",
        [(2, 3, 4)],
        lambda b: b.add_layer_normalization("l", "x0", "y0", [4], TABLE[:, 0], TABLE[:, 1], 1e-3),
        lambda x: _norm(x, (2,), 1e-3) * TABLE[:, 0] + TABLE[:, 1],
    ),
    ("reshape_like", [(2, 6), (3, 4)], lambda b: b.add_reshape_like("l", ["x0", "x1"], "y0"), lambda x, y: x.reshape(3, 4)),
    ("tile", [(2, 3)], lambda b: b.add_tile("l", "x0", "y0", [2, 3]), lambda x: np.tile(x, (2, 3))),
    (
        "topk",
        [(3, 5)],
        lambda b: b.add_topk("l", ["x0"], ["y0", "y1"], 2, 1, True),
        lambda x: (np.sort(x, 1)[:, :2], np.argsort(x, 1)[:, :2].astype(np.float32)),
    ),
    (
        "where",
        [(2, 3), (2, 3)],
        lambda b: (b.add_less_than("c", ["x0", "x1"], "c"), b.add_where_broadcastable("l", ["c", "x0", "x1"], "y0")),
        lambda x, y: np.minimum(x, y),
    ),
    ("cumsum", [(3, 4)], lambda b: b.add_cumsum("l", ["x0"], "y0", 1, True, True), lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1] - x),
    (
        "one_hot",
        [(3,)],
        lambda b: (
            b.add_range_static("r", "r", None, end=3, start=0, step=1),
            b.add_one_hot("o", ["r"], "o", 4, -1, 2.0, -1.0),
            b.add_expand_dims("e", "x0", "e", [1]),
            b.add_multiply_broadcastable("l", ["e", "o"], "y0"),
        ),
        lambda x: x[:, None] * np.where(np.eye(3, 4) > 0, 2.0, -1.0),
    ),
    (
        "windows",
        [(2, 7)],
        lambda b: b.add_sliding_windows("l", "x0", "y0", 1, 3, 2),
        lambda x: np.stack([x[:, i : i + 3] for i in (0, 2, 4)], 1),
    ),
    ("triangle", [(4, 5)], lambda b: b.add_upper_triangular("l", "x0", "y0", 1), lambda x: np.triu(x, 1)),
    (
        "pad",
        [(2, 3)],
        lambda b: b.add_constant_pad("l", ["x0"], "y0", 0.5, False, [1, 0, 0, 2]),
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=0.5),
    ),
    ("log_sum_exp", [(3, 4)], lambda b: b.add_reduce_logsumexp("l", "x0", "y0", [1], True), lambda x: torch.logsumexp(t(x), 1, True)),
    ("flatten_2d", [(2, 3, 4)], lambda b: b.add_flatten_to_2d("l", "x0", "y0", 2), lambda x: x.reshape(6, 4)),
    (
        "conv3d",
        [(1, 2, 4, 5, 6)],
        lambda b: b.add_convolution3d("l", 2, 3, 2, 2, 2, CUBE, None, False, input_name="x0", output_name="y0"),
        lambda x: f.conv3d(t(x), t(CUBE)),
    ),
    ("branch", [(2, 3)], _branches, lambda x: x * 2 + 1 if x.sum() > 0 else x * -3 + 1),
    ("loop", [(2, 3)], _looped, lambda x: _turns(x)),
]
CUBE = drawn(3, 2, 2, 2, 2)


def _turns(x: np.ndarray) -> np.ndarray:
    for _ in range(4):
        x = x * 1.5 + 1
    return x


def built() -> list[tuple[str, bytes, list[np.ndarray], list[np.ndarray]]]:
    """Each network: its name, its file, its operands, and its results."""
    found = []
    for rows, old in ((OLD, True), (NEW, False)):
        for name, shapes, add, truth in rows:
            values = [np.full(s, 2, np.float32) if name == "embedding" else drawn(*s) for s in shapes]
            inputs = [(f"x{i}", datatypes.Array(*s)) for i, s in enumerate(shapes)]
            whole = truth(*[v[None] if old and v.ndim == 3 else v for v in values])
            results = [np.asarray(v, np.float32) for v in (whole if isinstance(whole, tuple) else [whole])]
            outputs = [(f"y{i}", None) for i in range(len(results))]
            builder = NeuralNetworkBuilder(inputs, outputs, disable_rank5_shape_mapping=not old)
            add(builder)
            found.append((f"{'old' if old else 'new'}_{name}", builder.spec.SerializeToString(), values, results))
    return found
