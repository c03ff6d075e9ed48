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


def matrices() -> Iterator[Case]:
    """Operations on matrices and their diagonals, and others along an axis."""
    x, y = reals(2, 3, 4), reals(2, 3, 4)
    yield "cross", lambda x, y: paddle.cross(x, y, axis=1), [x, y]
    yield "cross_default", paddle.cross, [x, y]
    yield "diag_vector", lambda x: paddle.diag(x, 1, 7.0), [reals(3)]
    yield "diag_matrix", lambda x: paddle.diag(x, -1), [reals(4, 3)]
    yield "diag_embed", lambda x: paddle.diag_embed(x, 1, 0, 2), [x]
    yield "trace", lambda x: paddle.trace(x, 1, 0, 2), [x]
    yield "multi_dot", lambda x, y, z: paddle.linalg.multi_dot([x, y, z]), [reals(3, 4), reals(4, 2), reals(2, 5)]
    yield "logcumsumexp", lambda x: paddle.logcumsumexp(x, 1), [x]
    yield "cummax", lambda x: paddle.cummax(x, 2), [x]
    yield "cummin", lambda x: paddle.cummin(x, 1), [x]
    yield "masked_fill", lambda x: paddle.masked_fill(x, x > 0, 3.0), [x]
    yield "tril_indices", lambda x: x[0, 0, 0] * paddle.cast(paddle.tril_indices(3, 4, 1), "float32"), [x]
    yield "triu_indices", lambda x: x[0, 0, 0] * paddle.cast(paddle.triu_indices(3, 4, 1), "float32"), [x]
    yield "searchsorted", paddle.searchsorted, [np.sort(reals(6)), x]
    yield "searchsorted_right", lambda s, x: paddle.searchsorted(s, x, right=True), [np.sort(whole(6)), whole(2, 3)]
    yield "bucketize", lambda x, s: paddle.bucketize(x, s), [x, np.sort(reals(6))]
    yield "copysign", lambda x, y: paddle.copysign(x, y), [x, y]
    yield "logspace", lambda x: x[0, 0, 0] * paddle.logspace(0, 2, 5), [x]
    yield "median", lambda x: paddle.median(x, 1), [x]
    yield "multiplex", lambda i, x, y: paddle.multiplex([x, y], i), [whole(3, 1, high=2, dtype="int32"), reals(3, 4), reals(3, 4)]
    yield "sequence_mask", lambda x: F.sequence_mask(x, 5, "int32"), [whole(4)]
    yield "renorm", lambda x: paddle.renorm(x, 2.0, 1, 1.5), [x]
    yield "bitwise_left_shift", lambda x, y: paddle.bitwise_left_shift(x, y), [whole(3), whole(3)]
    yield "bilinear", lambda x, y, w: F.bilinear(x, y, w), [reals(3, 4), reals(3, 5), reals(2, 4, 5)]
    yield "cdist", paddle.cdist, [reals(3, 4), reals(5, 4)]
    yield "cov", paddle.linalg.cov, [reals(3, 6)]
    yield "attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [reals(2, 4, 2, 8) for _ in range(3)]
    yield "cosine_similarity", lambda x, y: F.cosine_similarity(x, y, axis=1), [x, y]
    yield "pairwise_distance", lambda x, y: F.pairwise_distance(x, y), [reals(3, 4), reals(3, 4)]
    yield "pad1d", lambda x: F.pad(x, [1, 2], data_format="NCL"), [x]
    yield "pad1d_reflect", lambda x: F.pad(x, [1, 2], "reflect", data_format="NCL"), [x]
    yield "pad1d_edge", lambda x: F.pad(x, [1, 2], "replicate", data_format="NLC"), [x]
    yield "pad1d_circular", lambda x: F.pad(x, [1, 2], "circular", data_format="NCL"), [x]
    places = np.array([0, 3, 7, 13, 17, 22]).reshape(1, 1, 2, 3).repeat(2, 1)
    yield (
        "max_unpool2d",
        lambda x: F.max_unpool2d(x, paddle.assign(places.astype("int32")), 2, output_size=[4, 6]),
        [reals(1, 2, 2, 3)],
    )


def boxes() -> Iterator[Case]:
    """Operations of detectors."""
    from paddle.vision import ops

    high, wide, count = 5, 6, 3
    corners = RNG.uniform(0, 60, (high, wide, count, 2))
    anchors = np.concatenate([corners, corners + RNG.uniform(4, 40, (high, wide, count, 2))], 3).astype("float32")
    scores, moves = shares(2, count, high, wide), reals(2, 4 * count, high, wide) * 0.3
    sizes, spread = np.array([[70, 80], [64, 50]], "float32"), shares(high, wide, count, 4)
    for offset in (False, True):

        def proposals(s: Any, m: Any, i: Any, a: Any, v: Any, offset: bool = offset) -> Any:
            found = ops.generate_proposals(s, m, i, a, v, 40, 12, 0.5, 3.0, 1.0, offset, True)
            return found

        yield f"generate_proposals{int(offset)}", proposals, [scores, moves, sizes, anchors, spread]
    yield (
        "generate_proposals_none",
        lambda s, m, i, a, v: ops.generate_proposals(s, m, i, a, v, 40, 12, 0.5, 1000.0, 1.0, False, True),
        [scores[:1], moves[:1], sizes[:1], anchors, spread],
    )
    few = RNG.uniform(0, 300, (9, 2))
    rois = np.concatenate([few, few + RNG.uniform(8, 500, (9, 2))], 1).astype("float32")
    for offset in (False, True):
        yield (
            f"distribute_fpn_proposals{int(offset)}",
            lambda r, c, offset=offset: ops.distribute_fpn_proposals(r, 2, 5, 4, 224, offset, c),
            [rois, np.array([4, 5], "int32")],
        )

    def regions(x: Any, s: Any, m: Any, i: Any, a: Any, v: Any) -> Any:
        found, _, numbers = ops.generate_proposals(s, m, i, a, v, 40, 12, 0.5, 3.0, 1.0, False, True)
        parts, back, counts = ops.distribute_fpn_proposals(found, 2, 3, 3, 30, rois_num=numbers)
        made = [ops.roi_align(x, p, c, 2, 0.25, 2) for p, c in zip(parts, counts)]
        return paddle.gather(paddle.concat(made, 0), paddle.squeeze(back, 1))

    yield "proposals_roi_align", regions, [reals(2, 3, 20, 20), scores, moves, sizes, anchors, spread]
    x, places = reals(2, 8, 12, 12), np.array([[0, 1, 6, 9], [2, 2, 11, 8], [1, 0, 9, 4]], "float32")
    numbers = np.array([2, 1], "int32")
    yield "roi_pool", lambda x, r: ops.roi_pool(x, r, paddle.assign(numbers), (3, 2), 1.0), [x, places]
    apart = RNG.uniform(0, 60, (1, 20, 2))
    given = np.concatenate([apart, apart + RNG.uniform(4, 40, (1, 20, 2))], 2).astype("float32")
    for gauss in (False, True):
        yield (
            f"matrix_nms{int(gauss)}",
            lambda b, s, gauss=gauss: ops.matrix_nms(b, s, 0.3, 0.2, 12, 9, gauss, 2.0, 0, True, True, True),
            [given, shares(1, 4, 20)],
        )
    yield "nms", lambda b, s: ops.nms(b, 0.4, s), [given[0], shares(20)]
    yield (
        "box_coder_list",
        lambda p, t: ops.box_coder(p, [0.1, 0.1, 0.2, 0.2], t, "decode_center_size", True, axis=0),
        [given[0], reals(3, 20, 4) * 0.3],
    )


def arrays() -> Iterator[Case]:
    """Arrays of tensors, and loops that write them or change tensors in place."""

    def grown(x: Any) -> Any:
        count, at = paddle.shape(x)[0:1], paddle.full([1], 0, "int32")
        array = paddle.tensor.create_array("float32")
        array = paddle.tensor.array_write(x[0:1] * 0.0, paddle.full([1], 0, "int64"), array)

        def turn(i: Any, a: Any) -> Any:
            last = paddle.tensor.array_read(a, paddle.cast(i, "int64"))
            a = paddle.tensor.array_write(last + paddle.gather(x, i), paddle.cast(i + 1, "int64"), a)
            return [i + 1, a]

        _, array = paddle.static.nn.while_loop(lambda i, a: paddle.less_than(i, paddle.cast(count, "int32")), turn, [at, array])
        return paddle.tensor.array_read(array, paddle.full([1], 2, "int64")), paddle.tensor.array_length(array)

    yield "array_in_a_loop", grown, [reals(4, 3)]

    def in_place(x: Any) -> Any:
        total, at = paddle.zeros([3]), paddle.full([1], 0, "int64")

        def turn(i: Any) -> Any:
            paddle.assign(total + paddle.gather(x, i)[0], total)
            return [i + 1]

        (at,) = paddle.static.nn.while_loop(lambda i: paddle.less_than(i, paddle.full([1], 4, "int64")), turn, [at])
        return total, at

    yield "in_place_in_a_loop", in_place, [reals(4, 3)]


def selections() -> Iterator[Case]:
    """Runs of equal elements, counts, linear algebra, and pools whose cells have channels of their own."""
    from paddle.vision import ops

    yield "mode", lambda x: paddle.mode(x, axis=1), [whole(4, 12, 3).astype("float32")]
    yield "mode_kept", lambda x: paddle.mode(x, axis=-1, keepdim=True), [whole(3, 9)]
    yield "unique_consecutive", lambda x: paddle.unique_consecutive(x, True, True), [whole(3, 9, high=2)]
    yield "unique_consecutive_rows", lambda x: paddle.unique_consecutive(x, True, True, axis=0), [whole(12, 1, high=2)]
    yield "histogram", lambda x: paddle.histogram(x, 6), [reals(5, 7)]
    yield "histogram_between", lambda x: paddle.histogram(x, 5, -1, 1), [reals(5, 7)]
    yield "histogram_whole", lambda x: paddle.histogram(x, 4, 0, 4), [whole(5, 7)]
    square, eye = reals(2, 5, 5), np.eye(5, dtype="float32")
    yield "inverse", paddle.inverse, [square + 3 * eye]
    yield "det", paddle.linalg.det, [square]
    yield "slogdet", paddle.linalg.slogdet, [square]
    yield "solve", paddle.linalg.solve, [square + 3 * eye, reals(2, 5, 2)]
    yield "triangular_solve", lambda x, y: paddle.linalg.triangular_solve(x, y, upper=False), [square + 3 * eye, reals(2, 5, 2)]
    yield "cholesky", lambda x: paddle.linalg.cholesky(paddle.matmul(x, x, transpose_y=True)), [square + 3 * eye]
    yield "qr", paddle.linalg.qr, [reals(2, 5, 3)]
    yield "lu", lambda x: paddle.linalg.lu(x, get_infos=True), [reals(2, 4, 4)]
    boxes, numbers = np.array([[0, 0, 10, 12], [3, 2, 9, 15], [5, 5, 5, 5]], "float32"), np.array([1, 2], "int32")
    yield "psroi_pool", lambda x, r: ops.psroi_pool(x, r, paddle.assign(numbers), (2, 3), 0.5), [reals(2, 12, 9, 8), boxes]


ALL = (functions, pairs, reductions, shapes, creations, places, matrices, boxes, arrays, selections)
