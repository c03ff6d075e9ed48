"""Normalisation, activation, padding and the other small layers of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, TupleType, Type, scalar_type
from relaylang.ops.record import Ints, Op, OpPattern, Relation, RelationContext, attrs_class, tensor
from relaylang.ops.relations import identity
from relaylang.ops.shapes import distinct_axes, divided, is_float_dtype, need_rank, norm_axis, product, same_dim
from relaylang.ops.traits import Trait

E, B, I, F = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE, OpPattern.OUT_ELEMWISE_FUSABLE
OPAQUE = OpPattern.OPAQUE


@attrs_class("relay.attrs.BiasAddAttrs")
class BiasAddAttrs:
    axis: int = 1


@attrs_class("relay.attrs.SoftmaxAttrs")
class SoftmaxAttrs:
    axis: int = -1


@attrs_class("relay.attrs.BatchNormAttrs")
class BatchNormAttrs:
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attrs_class("relay.attrs.InstanceNormAttrs")
class InstanceNormAttrs(BatchNormAttrs):
    pass


@attrs_class("relay.attrs.LayerNormAttrs")
class LayerNormAttrs:
    axis: int = -1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attrs_class("relay.attrs.GroupNormAttrs")
class GroupNormAttrs:
    num_groups: int = 0
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@attrs_class("relay.attrs.LRNAttrs")
class LRNAttrs:
    size: int = 5
    axis: int = 1
    bias: float = 2.0
    alpha: float = 0.0001
    beta: float = 0.75


@attrs_class("relay.attrs.L2NormalizeAttrs")
class L2NormalizeAttrs:
    eps: float
    axis: Ints | None


@attrs_class("relay.attrs.DropoutAttrs")
class DropoutAttrs:
    rate: float = 0.5


@attrs_class("relay.attrs.LeakyReluAttrs")
class LeakyReluAttrs:
    alpha: float = 0.25


@attrs_class("relay.attrs.PReluAttrs")
class PReluAttrs:
    axis: int = 1


@attrs_class("relay.attrs.NLLLossAttrs")
class NLLLossAttrs:
    reduction: str = "mean"
    ignore_index: int


@attrs_class("relay.attrs.FIFOBufferAttrs")
class FIFOBufferAttrs:
    axis: int = 0


def bias_add(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, bias a vector of its element type and the extent along axis. The result has the data's
    type.
    """
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    ctx.unify(1, TensorType((data.shape[axis],), data.dtype))
    return data


def prelu(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, alpha a vector of its element type and the extent along axis. The result has the data's
    type.
    """
    data = tensor(types, 0, ctx)
    axis = norm_axis(attrs.axis, len(data.shape), ctx)
    ctx.unify(1, TensorType((data.shape[axis],), data.dtype))
    return data


def along_axis(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; axis is one of its axes. The result has the data's type."""
    data = tensor(types, 0, ctx)
    norm_axis(attrs.axis, len(data.shape), ctx)
    return data


def batch_flatten(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, d...); the result is (n, product of d) of its element type."""
    data = tensor(types, 0, ctx)
    if not data.shape:
        ctx.fail("must have at least one dimension", 0)
    return TensorType((data.shape[0], product(data.shape[1:])), data.dtype)


def dropout(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any type; the result is a tuple (output, mask) of two of that type."""
    data = tensor(types, 0, ctx)
    return TupleType((data, data))


def batch_norm(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape. The vectors gamma, beta, moving_mean and moving_var have its element type and the extent
    along axis. The result is a tuple (output, mean, variance) of the data's type and two such vectors.
    """
    data = tensor(types, 0, ctx)
    vector = TensorType((data.shape[norm_axis(attrs.axis, len(data.shape), ctx)],), data.dtype)
    for i in range(1, 5):
        ctx.unify(i, vector)
    return TupleType((data, vector, vector))


def norm(min_rank: int) -> Relation:
    """The data's type; gamma and beta are vectors along `axis`."""

    def rel(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
        """Takes data of any shape (instance_norm, group_norm: with a batch and channels). The vectors gamma and beta
        have its element type and the extent along axis. The result has the data's type.
        """
        data = tensor(types, 0, ctx)
        if len(data.shape) < min_rank:
            ctx.fail(f"must have at least {min_rank} dimensions, not `{data!r}`", 0)
        channels = data.shape[norm_axis(attrs.axis, len(data.shape), ctx)]
        groups = getattr(attrs, "num_groups", 1)
        divided(channels, groups, f"num_groups={groups}", ctx)
        vector = TensorType((channels,), data.dtype)
        ctx.unify(1, vector)
        ctx.unify(2, vector)
        return data

    return rel


def cross_entropy(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes predictions and targets (n, classes); the result is a scalar of the predictions' element type."""
    x, y = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_rank(x, 2, 0, ctx)
    need_rank(y, 2, 1, ctx)
    for axis, (a, b) in enumerate(zip(x.shape, y.shape)):
        if not same_dim(a, b):
            ctx.fail(f"has the extent {b} along axis {axis}, but the first argument `{x!r}` has {a}", 1)
    return scalar_type(x.dtype)


def nll_loss(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes predictions (n, classes, d...) and weights (classes,) of one floating-point type, targets (n, d...) of
    signed whole numbers. The result has the predictions' element type and is a scalar, or has the targets' shape where
    reduction is "none".
    """
    predictions, targets, weights = tensor(types, 0, ctx), tensor(types, 1, ctx), tensor(types, 2, ctx)
    if len(predictions.shape) != len(targets.shape) + 1:
        ctx.fail(f"must have one dimension less than the predictions `{predictions!r}`, not `{targets!r}`", 1)
    need_rank(weights, 1, 2, ctx)
    if len(predictions.shape) < 2:
        ctx.fail(f"must have at least 2 dimensions, not `{predictions!r}`", 0)
    if not same_dim(predictions.shape[1], weights.shape[0]):
        ctx.fail(f"must have a weight for each of {predictions.shape[1]} classes, not `{weights!r}`", 2)
    if predictions.dtype != weights.dtype or not is_float_dtype(predictions.dtype):
        ctx.fail(f"must be of the predictions' floating-point type {predictions.dtype}, not {weights.dtype}", 2)
    for i, (a, b) in enumerate(zip((*predictions.shape[:1], *predictions.shape[2:]), targets.shape)):
        if not same_dim(a, b):
            ctx.fail(f"has the extent {b} along axis {i}, but the predictions `{predictions!r}` have {a}", 1)
    if not targets.dtype.startswith("int"):
        ctx.fail(f"must be of signed whole numbers, not of {targets.dtype}", 1)
    return TensorType(targets.shape if attrs.reduction == "none" else (), predictions.dtype)


def fifo_buffer(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes input and buffer of one rank and the same extents, except along axis. Along axis the buffer is not shorter.
    The result has the buffer's type.
    """
    data, buffer = tensor(types, 0, ctx), tensor(types, 1, ctx)
    need_rank(buffer, len(data.shape), 1, ctx)
    axis = norm_axis(attrs.axis, len(buffer.shape), ctx)
    for i, (a, b) in enumerate(zip(data.shape, buffer.shape)):
        if i != axis and not same_dim(a, b):
            ctx.fail(f"has the extent {b} along axis {i}, but the data `{data!r}` has {a}", 1)
        if i == axis and isinstance(a, int) and isinstance(b, int) and a > b:
            ctx.fail(f"must not be shorter than the data along axis {axis}, but {b} is less than {a}", 1)
    return buffer


def lrn(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, axis one of its axes, size a positive number; the result has the data's type."""
    if attrs.size < 1:
        ctx.fail(f"size={attrs.size} must be positive")
    if isinstance(types[0], TensorType):
        norm_axis(attrs.axis, len(types[0].shape), ctx)
    return types[0]


def l2_normalize(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, axis different ones of its axes; the result has the data's type."""
    if isinstance(types[0], TensorType) and attrs.axis:
        distinct_axes(attrs.axis, len(types[0].shape), ctx)
    return types[0]


def leaky_relu(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape; alpha is not negative. The result has the data's type."""
    if attrs.alpha < 0:
        ctx.fail(f"alpha={attrs.alpha} must not be negative")
    return types[0]


DATA = ("data",)
NORM_ARGS = ("data", "gamma", "beta")

OPS = (
    Op(
        "nn.bias_add",
        ("data", "bias"),
        BiasAddAttrs,
        bias_add,
        B,
        1,
        needs=(0,),
        doc="A vector added along an axis.",
        takes="tensor same",
        traits={Trait.VECTOR},
    ),
    Op(
        "nn.relu",
        DATA,
        None,
        identity,
        E,
        1,
        needs=(),
        doc="The larger of x and 0.",
        traits={Trait.UNARY, Trait.MONOTONE, Trait.IDEMPOTENT},
    ),
    Op(
        "nn.leaky_relu",
        DATA,
        LeakyReluAttrs,
        leaky_relu,
        E,
        3,
        needs=(),
        doc="x where it is positive, else alpha * x.",
        traits={Trait.UNARY},
        python="(..., alpha=0.01)",
    ),
    Op(
        "nn.prelu",
        ("data", "alpha"),
        PReluAttrs,
        prelu,
        B,
        3,
        needs=(0,),
        doc="x where it is positive, else alpha * x with an alpha for each channel.",
        takes="tensor same",
        traits={Trait.VECTOR},
    ),
    Op(
        "nn.softmax",
        DATA,
        SoftmaxAttrs,
        along_axis,
        F,
        1,
        doc="exp(x) divided by its sum along an axis.",
        takes="float",
    ),
    Op(
        "nn.log_softmax",
        DATA,
        SoftmaxAttrs,
        along_axis,
        F,
        1,
        doc="The logarithm of softmax along an axis.",
        takes="float",
    ),
    Op(
        "nn.fast_softmax",
        DATA,
        SoftmaxAttrs,
        along_axis,
        F,
        1,
        doc="softmax by a faster exponential function.",
        takes="float",
        traits={Trait.FAST},
        of="nn.softmax",
    ),
    Op(
        "nn.batch_flatten",
        DATA,
        None,
        batch_flatten,
        I,
        2,
        doc="All axes but the first as one.",
        traits={Trait.RESHAPE},
    ),
    Op(
        "nn.dropout",
        DATA,
        DropoutAttrs,
        dropout,
        OPAQUE,
        1,
        doc="The data as it is, as at inference.",
        traits={Trait.IDENTITY, Trait.BARRIER},
        results=2,
    ),
    Op(
        "nn.batch_norm",
        ("data", "gamma", "beta", "moving_mean", "moving_var"),
        BatchNormAttrs,
        batch_norm,
        F,
        1,
        needs=(0,),
        doc="Normalised by moving mean and variance, scaled by gamma, moved by beta.",
        takes="float same[_] same[_] same[_] same[_]",
        results=3,
        example="fn (%x: Tensor[(1, 3, 8, 8), float32], %gamma: Tensor[(3), float32], %beta: Tensor[(3), float32], "
        "%mean: Tensor[(3), float32], %var: Tensor[(3), float32]) { nn.batch_norm(%x, %gamma, %beta, %mean, "
        "%var) }",
    ),
    Op(
        "nn.instance_norm",
        NORM_ARGS,
        InstanceNormAttrs,
        norm(3),
        OPAQUE,
        1,
        needs=(0,),
        doc="Normalised over the spatial axes, scaled by gamma, moved by beta.",
        takes="float same[c] same[c]",
        example="fn (%x: Tensor[(1, 3, 8, 8), float32], %gamma: Tensor[(3), float32], %beta: Tensor[(3), float32]) { "
        "nn.instance_norm(%x, %gamma, %beta) }",
    ),
    Op(
        "nn.layer_norm",
        NORM_ARGS,
        LayerNormAttrs,
        norm(1),
        OPAQUE,
        1,
        needs=(0,),
        doc="Normalised along an axis, scaled by gamma, moved by beta.",
        takes="float same[c] same[c]",
    ),
    Op(
        "nn.group_norm",
        NORM_ARGS,
        GroupNormAttrs,
        norm(1),
        OPAQUE,
        1,
        needs=(0,),
        doc="Normalised over groups of channels, scaled by gamma, moved by beta.",
        takes="float same[c] same[c]",
        python="(..., num_groups)",
        example="fn (%x: Tensor[(1, 4, 8, 8), float32], %gamma: Tensor[(4), float32], %beta: Tensor[(4), float32]) { "
        "nn.group_norm(%x, %gamma, %beta, num_groups=2) }",
    ),
    Op(
        "nn.lrn",
        DATA,
        LRNAttrs,
        lrn,
        OPAQUE,
        2,
        needs=(),
        doc="Divided by a power of the sum of squares of neighbours along an axis.",
        takes="float",
        python="(..., bias=2, alpha=1e-05)",
    ),
    Op(
        "nn.l2_normalize",
        DATA,
        L2NormalizeAttrs,
        l2_normalize,
        OPAQUE,
        2,
        needs=(),
        doc="Divided by the root of the sum of squares along axes.",
        takes="float",
        python="(..., axis=None)",
    ),
    Op(
        "nn.cross_entropy",
        ("x", "y"),
        None,
        cross_entropy,
        OPAQUE,
        10,
        doc="-sum(targets * log(predictions)) / batch.",
        takes="float[n,c] same[n,c]",
        python="(predictions, targets)",
    ),
    Op(
        "nn.cross_entropy_with_logits",
        ("x", "y"),
        None,
        cross_entropy,
        OPAQUE,
        10,
        doc="-sum(targets * predictions) / batch, for predictions that are logarithms.",
        takes="float[n,c] same[n,c]",
        python="(predictions, targets)",
    ),
    Op(
        "nn.nll_loss",
        ("predictions", "targets", "weights"),
        NLLLossAttrs,
        nll_loss,
        F,
        10,
        doc="The negative log-likelihood of the targets, weighted by class.",
        takes="float integer same[_]",
        python="(..., ignore_index=-100)",
        example="fn (%x: Tensor[(2, 3), float32], %targets: Tensor[(2), int32], %weights: Tensor[(3), float32]) { "
        'nn.nll_loss(%x, %targets, %weights, reduction="mean", ignore_index=-100) }',
    ),
    Op(
        "nn.fifo_buffer",
        ("data", "buffer"),
        FIFOBufferAttrs,
        fifo_buffer,
        OPAQUE,
        3,
        doc="A buffer with the data pushed in at the end of an axis.",
        takes="tensor same",
        python="(..., axis)",
    ),
)
