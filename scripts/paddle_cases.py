"""Operations of PaddlePaddle, each as a small program: what tests/frontends/paddle compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import paddle
from paddle.nn import functional as F

#: A case: its name, the function of its tensors, and their values.
Case = tuple[str, Callable[..., Any], list[np.ndarray]]
RNG = np.random.default_rng(5)


def reals(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


def shares(*shape: int) -> np.ndarray:
    return RNG.uniform(0.05, 0.95, shape).astype("float32")


def whole(*shape: int, low: int = 0, high: int = 4, dtype: str = "int64") -> np.ndarray:
    return RNG.integers(low, high, shape).astype(dtype)


def functions() -> Iterator[Case]:
    """Functions of one tensor."""
    for name in "abs ceil cos cosh erf exp expm1 floor round sign sin sinh square tan tanh atan asinh neg trunc".split():
        yield name, getattr(paddle, name), [reals(3, 5)]
    for name in "acos asin atanh log log10 log1p log2 reciprocal rsqrt sqrt digamma lgamma erfinv logit".split():
        yield name, getattr(paddle, name), [shares(3, 5)]
    for name in (
        "elu celu selu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid log_softmax mish relu relu6 sigmoid silu "
        "softmax softplus softshrink softsign swish tanhshrink thresholded_relu"
    ).split():
        yield name, getattr(F, name), [reals(3, 5) * 3]
    yield "acosh", paddle.acosh, [shares(3, 5) + 1]
    yield "gelu_tanh", lambda x: F.gelu(x, approximate=True), [reals(3, 5)]
    yield "maxout", lambda x: F.maxout(x, 2), [reals(2, 4, 3, 3)]
    yield "glu", F.glu, [reals(3, 6)]
    yield "stanh", paddle.stanh, [reals(3, 5)]
    yield "scale", lambda x: paddle.scale(x, 2.0, 3.0, False), [reals(3, 5)]
    yield "pow", lambda x: paddle.pow(x, 3), [reals(3, 5)]
    yield "clip", lambda x: paddle.clip(x, -0.5, 0.7), [reals(3, 5)]
    yield "clip_ints", lambda x: paddle.clip(x, 1, 2), [whole(3, 5)]
    yield "cast", lambda x: paddle.cast(x, "int32"), [reals(3, 5) * 5]
    yield "cast_bool", lambda x: paddle.cast(x, "bool"), [whole(3, 5, high=2)]
    yield "isfinite", lambda x: paddle.isfinite(1.0 / x), [np.array([[0.0, 1, -1]], "float32")]
    yield "isnan", lambda x: paddle.isnan(x * (1.0 / x)), [np.array([[0.0, 1, -1]], "float32")]
    yield "prelu", lambda x: F.prelu(x, paddle.full([4], 0.3)), [reals(2, 4, 3)]
    yield "dropout_infer", lambda x: F.dropout(x, 0.3, training=False, mode="downscale_in_infer"), [reals(3, 5)]
    yield "label_smooth", lambda x: F.label_smooth(x, epsilon=0.2), [shares(3, 5)]


def pairs() -> Iterator[Case]:
    """Functions of two tensors."""
    for name in "add subtract multiply divide maximum minimum fmax fmin pow atan2".split():
        yield f"two_{name}", getattr(paddle, name), [shares(2, 3, 4), shares(3, 1)]
    for name in "equal not_equal less_than less_equal greater_than greater_equal mod floor_divide add multiply".split():
        yield f"ints_{name}", getattr(paddle, name), [whole(2, 5, low=-5, high=6), whole(2, 5, low=1, high=4)]
    for name in "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor".split():
        yield name, getattr(paddle, name), [whole(2, 5, high=2).astype("bool"), whole(2, 5, high=2).astype("bool")]
    yield "logical_not", paddle.logical_not, [whole(2, 5, high=2).astype("bool")]
    yield "mod_reals", paddle.mod, [reals(2, 5), shares(2, 5)]
    yield "matmul", lambda x, y: paddle.matmul(x, y, transpose_y=True), [reals(2, 3, 4), reals(2, 5, 4)]
    yield "matmul_turned", lambda x, y: paddle.matmul(x, y, transpose_x=True), [reals(2, 1, 4, 3), reals(3, 4, 5)]
    yield "matmul_vector", paddle.matmul, [reals(2, 3, 4), reals(4)]
    yield "bmm", paddle.bmm, [reals(2, 3, 4), reals(2, 4, 5)]
    yield "mv", paddle.mv, [reals(3, 4), reals(4)]
    yield "dot", paddle.dot, [reals(3, 4), reals(3, 4)]
    yield "addmm", lambda x, y, z: paddle.addmm(x, y, z, beta=0.5, alpha=2.0), [reals(3, 5), reals(3, 4), reals(4, 5)]
    yield "einsum", lambda x, y: paddle.einsum("bij,bkj->bik", x, y), [reals(2, 3, 4), reals(2, 5, 4)]
    yield "dist", lambda x, y: paddle.dist(x, y, 3), [reals(3, 4), reals(3, 4)]
    yield "kron", paddle.kron, [reals(2, 3), reals(3, 2)]
    yield "lerp", lambda x, y: paddle.lerp(x, y, 0.3), [reals(3, 4), reals(3, 4)]
    yield "where", lambda x, y: paddle.where(x > y, x, y * 2), [reals(3, 4), reals(3, 4)]
    yield "heaviside", paddle.heaviside, [reals(3, 4).round(), reals(3, 4)]
    yield "equal_all", paddle.equal_all, [whole(2, 3), whole(2, 3)]
    yield "allclose", paddle.allclose, [reals(2, 3), reals(2, 3)]
    yield "cross_entropy", lambda x, y: F.cross_entropy(x, y, reduction="none"), [reals(4, 5), whole(4, 1)]
    yield "soft_labels", lambda x, y: F.softmax_with_cross_entropy(x, F.softmax(y), soft_label=True), [reals(4, 5), reals(4, 5)]
    yield "add_n", lambda x, y: paddle.add_n([x, y, x]), [reals(3, 4), reals(3, 4)]


def reductions() -> Iterator[Case]:
    for name in "sum mean max min prod amax amin logsumexp".split():
        yield f"{name}_all", getattr(paddle, name), [reals(2, 3, 4)]
        yield f"{name}_axis", lambda x, name=name: getattr(paddle, name)(x, axis=[-1, 0], keepdim=True), [reals(2, 3, 4)]
    for name in ("all", "any"):
        yield f"{name}_axis", lambda x, name=name: getattr(paddle, name)(x, axis=1), [whole(2, 3, high=2).astype("bool")]
    yield "var", lambda x: paddle.var(x, axis=1), [reals(3, 4)]
    yield "std", lambda x: paddle.std(x, axis=1, unbiased=False), [reals(3, 4)]
    yield "sum_ints", lambda x: paddle.sum(x, axis=0), [whole(3, 4, dtype="int32")]
    yield "norm_2", lambda x: paddle.linalg.norm(x, p=2, axis=1), [reals(3, 4)]
    yield "norm_3", lambda x: paddle.linalg.norm(x, p=3, axis=1, keepdim=True), [reals(3, 4)]
    yield "norm_fro", paddle.linalg.norm, [reals(3, 4)]
    yield "normalize", lambda x: F.normalize(x, axis=1), [reals(3, 4)]
    yield "argmax", lambda x: paddle.argmax(x, axis=1, keepdim=True), [reals(3, 4)]
    yield "argmin_flat", paddle.argmin, [reals(3, 4)]
    yield "topk", lambda x: paddle.topk(x, 2, axis=0), [reals(4, 3)]
    yield "topk_least", lambda x: paddle.topk(x, 2, largest=False), [reals(4, 3)]
    yield "argsort", lambda x: paddle.argsort(x, axis=0, descending=True), [reals(4, 3)]
    yield "sort", lambda x: paddle.sort(x, axis=1), [reals(4, 3)]
    yield "kthvalue", lambda x: paddle.kthvalue(x, 2, axis=1), [reals(4, 3)]
    yield "cumsum", lambda x: paddle.cumsum(x, axis=1), [reals(3, 4)]
    yield "cumsum_flat", paddle.cumsum, [reals(3, 4)]
    yield "cumprod", lambda x: paddle.cumprod(x, dim=1), [reals(3, 4)]
    yield "unique", lambda x: paddle.unique(x, return_index=True, return_inverse=True, return_counts=True), [whole(9)]


def shapes() -> Iterator[Case]:
    """Operations that move elements."""
    x = reals(2, 3, 4)
    yield "reshape", lambda x: paddle.reshape(x, [0, -1]), [x]
    yield "reshape_computed", lambda x: paddle.reshape(x, [paddle.shape(x)[0], -1, 2]), [x]
    yield "transpose", lambda x: paddle.transpose(x, [2, 0, 1]), [x]
    yield "flatten", lambda x: paddle.flatten(x, 1, 2), [x]
    yield "squeeze", lambda x: paddle.squeeze(x, [0, 2]), [reals(1, 3, 1)]
    yield "unsqueeze", lambda x: paddle.unsqueeze(x, [0, 2]), [x]
    yield "concat", lambda x, y: paddle.concat([x, y], axis=-1), [x, reals(2, 3, 2)]
    yield "stack", lambda x, y: paddle.stack([x, y], axis=1), [x, x + 1]
    yield "split", lambda x: paddle.split(x, 2, axis=2), [x]
    yield "split_sections", lambda x: paddle.split(x, [1, -1], axis=1), [x]
    yield "chunk", lambda x: paddle.chunk(x, 3, axis=1), [x]
    yield "unbind", lambda x: paddle.unbind(x, axis=1), [x]
    yield "unstack", lambda x: paddle.unstack(x, axis=0), [x]
    yield "tile", lambda x: paddle.tile(x, [2, 1, 3]), [x]
    yield "expand", lambda x: paddle.expand(x, [5, 2, -1]), [reals(2, 4)]
    yield "expand_as", paddle.expand_as, [reals(3, 1), reals(3, 4)]
    yield "broadcast_tensors", lambda x, y: paddle.broadcast_tensors([x, y]), [reals(3, 1), reals(1, 4)]
    yield "flip", lambda x: paddle.flip(x, [0, 2]), [x]
    yield "roll", lambda x: paddle.roll(x, [1, -2], axis=[0, 2]), [x]
    yield "roll_flat", lambda x: paddle.roll(x, 5), [x]
    yield "repeat_interleave", lambda x: paddle.repeat_interleave(x, 2, axis=1), [x]
    yield "meshgrid", lambda x, y: paddle.meshgrid(x, y), [reals(3), reals(2)]
    yield "shape", paddle.shape, [x]
    yield "numel", paddle.numel, [x]
    yield "tril", lambda x: paddle.tril(x, 1), [reals(4, 5)]
    yield "triu", lambda x: paddle.triu(x, -1), [reals(4, 5)]
    yield "diagonal", lambda x: paddle.diagonal(x, offset=1), [reals(4, 5)]
    yield "pad_1d", lambda x: F.pad(x, [1, 2], mode="reflect", data_format="NCL"), [reals(2, 3, 5)]
    yield "pad_2d", lambda x: F.pad(x, [1, 2, 3, 0], value=0.5), [reals(1, 2, 4, 5)]
    yield "pad_replicate", lambda x: F.pad(x, [1, 2, 1, 1], mode="replicate"), [reals(1, 2, 4, 5)]
    yield "pad_circular", lambda x: F.pad(x, [1, 2, 1, 1], mode="circular"), [reals(1, 2, 4, 5)]
    yield "pad_all", lambda x: F.pad(x, [1, 0, 2, 1]), [reals(3, 4)]
    yield "pad_last", lambda x: F.pad(x, [1, 2, 3, 0], data_format="NHWC"), [reals(1, 4, 5, 2)]
    yield "crop", lambda x: paddle.crop(x, [2, 2, -1], [0, 1, 1]), [x]
    yield "moveaxis", lambda x: paddle.moveaxis(x, 0, 2), [x]
    yield "rot90", lambda x: paddle.rot90(x, 1, [1, 2]), [x]


def creations() -> Iterator[Case]:
    x = reals(2, 3)
    yield "full", lambda x: x + paddle.full([2, 1], 1.5), [x]
    yield "full_like", lambda x: paddle.full_like(x, 2.5), [x]
    yield "zeros_like", lambda x: x + paddle.zeros_like(x) + paddle.ones_like(x), [x]
    yield "arange", lambda x: x + paddle.arange(1, 7, 2, dtype="float32"), [x]
    yield "linspace", lambda x: x + paddle.linspace(0, 1, 3), [x]
    yield "eye", lambda x: paddle.matmul(x, paddle.eye(3, 4)), [x]
    yield "assign_value", lambda x: x + paddle.assign(np.array([1, 2, 3], "float32")), [x]
    yield "one_hot", lambda x: F.one_hot(x, 5), [whole(2, 3)]
    yield (
        "embedding",
        lambda x: F.embedding(x, paddle.reshape(paddle.arange(20, dtype="float32"), [5, 4]), padding_idx=2),
        [whole(2, 3)],
    )
    yield "full_computed", lambda x: paddle.full([paddle.shape(x)[1], 2], 3.0), [x]
    yield "arange_computed", lambda x: paddle.arange(0, paddle.shape(x)[1], 1), [x]


def places() -> Iterator[Case]:
    """Parts and elements by their places."""
    x = reals(4, 5, 6)

    def assigned(x: Any) -> Any:
        y = x * 1.0
        y = paddle.static.setitem(y, (slice(1, 3), 2), 7.0)
        return paddle.static.setitem(y, (slice(None), slice(0, None, 2)), paddle.zeros([4, 3, 6]))

    yield "slice", lambda x: x[1:3, -2:, 2], [x]
    yield "slice_negative", lambda x: x[-1, :, ::-2], [x]
    yield "slice_steps", lambda x: x[::2, 1:5:3], [x]
    yield "slice_ellipsis", lambda x: x[..., None, 1], [x]
    yield "slice_function", lambda x: paddle.slice(x, [0, 2], [-3, 1], [3, 100]), [x]
    yield "strided_slice", lambda x: paddle.strided_slice(x, [1, 2], [4, 0], [0, 6], [-2, 3]), [x]
    yield "slice_computed", lambda x, i: x[i : i + 2], [x, np.array(1, "int64")]
    yield "set_value", assigned, [x]
    yield "gather", lambda x, i: paddle.gather(x, i, axis=1), [x, whole(3)]
    yield "gather_nd", paddle.gather_nd, [x, whole(3, 2)]
    yield "index_select", lambda x, i: paddle.index_select(x, i, axis=2), [x, whole(3)]
    yield "index_sample", paddle.index_sample, [reals(3, 5), whole(3, 2)]
    yield "take_along_axis", lambda x, i: paddle.take_along_axis(x, i, 1), [reals(3, 5), whole(3, 2)]
    yield "put_along_axis", lambda x, i: paddle.put_along_axis(x, i, 9.0, 1), [reals(3, 5), whole(3, 1)]
    yield "scatter", lambda x, u: paddle.scatter(x, paddle.assign(np.array([2, 0])), u), [reals(3, 4), reals(2, 4)]
    yield (
        "scatter_add",
        lambda x, u: paddle.scatter(x, paddle.assign(np.array([1, 1])), u, overwrite=False),
        [reals(3, 4), reals(2, 4)],
    )
    yield "scatter_nd_add", paddle.scatter_nd_add, [reals(3, 4), whole(5, 1, high=3), reals(5, 4)]
    yield "masked_select", lambda x: paddle.masked_select(x, x > 0), [reals(3, 4)]
    yield "nonzero", lambda x: paddle.nonzero(x > 0), [reals(3, 4)]
    yield "index_add", lambda x, i, v: paddle.index_add(x, i, 1, v), [reals(3, 5), np.array([0, 3]), reals(3, 2)]
    yield "index_put", lambda x, i, v: paddle.index_put(x, (i,), v), [reals(4, 3), np.array([0, 2]), reals(2, 3)]
    yield "take_rows", lambda x, i: x[i], [reals(4, 3), np.array([0, 2, 1])]


ALL = (functions, pairs, reductions, shapes, creations, places)
