"""SimplifyInference: normalisation and dropout of a trained network in plain operators.

`batch_norm(x)` with fixed statistics is `x * scale + shift`, with one factor and one summand a channel. Dropout is the
identity. Layer, group, instance and L2 normalisation are written out as means and variances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relaylang.ir import Call, Expr, TensorType
from relaylang.ops.build import op_call, scalar


@dataclass(frozen=True)
class Rule:
    """`make(call, type of the data)` gives the plain expression, or None where the call stays.

    The expression is the call's value, or with `first_field` the first field of it.
    """

    make: Callable[[Call, TensorType], Expr | None]
    first_field: bool = False


def _per_axis(vector: Expr, ndim: int, axis: int) -> Expr:
    """A vector along `axis`, with trailing axes of extent 1 so that it broadcasts to `ndim` dimensions."""
    behind = ndim - axis - 1
    if behind == 0:
        return vector
    assert isinstance(vector.checked_type, TensorType)
    ty = TensorType((*vector.checked_type.shape, *[1] * behind), vector.checked_type.dtype)
    return op_call("expand_dims", [vector], ty, axis=1, num_newaxis=behind)


def _batch_norm(call: Call, ty: TensorType) -> Expr:
    data, gamma, beta, mean, var = call.args
    attrs = call.attrs
    axis = attrs.axis % len(ty.shape)
    vector = TensorType((ty.shape[axis],), ty.dtype)
    scale: Expr = op_call("sqrt", [op_call("add", [var, scalar(attrs.epsilon, ty.dtype)], vector)], vector)
    scale = op_call("divide", [scalar(1.0, ty.dtype), scale], vector)
    if attrs.scale:
        scale = op_call("multiply", [scale, gamma], vector)
    shift: Expr = op_call("multiply", [op_call("negative", [mean], vector), scale], vector)
    if attrs.center:
        shift = op_call("add", [shift, beta], vector)
    scaled = op_call("multiply", [data, _per_axis(scale, len(ty.shape), axis)], ty)
    return op_call("add", [scaled, _per_axis(shift, len(ty.shape), axis)], ty)


def _normalised(data: Expr, ty: TensorType, axes: Sequence[int], epsilon: float) -> Expr:
    """`(data - mean) / sqrt(variance + epsilon)` over some axes."""
    kept = TensorType([1 if i in axes or i - len(ty.shape) in axes else d for i, d in enumerate(ty.shape)], ty.dtype)
    mean = op_call("mean", [data], kept, axis=list(axes), keepdims=True)
    var = op_call("variance", [data, mean], kept, axis=list(axes), keepdims=True)
    root = op_call("sqrt", [op_call("add", [var, scalar(epsilon, ty.dtype)], kept)], kept)
    return op_call("divide", [op_call("subtract", [data, mean], ty), root], ty)


def _affine(out: Expr, call: Call, ty: TensorType, axis: int) -> Expr:
    """The learnt factor and summand applied to a normalised tensor, where the call has them."""
    gamma, beta = call.args[1:3]
    ndim = len(ty.shape)
    if call.attrs.scale:
        out = op_call("multiply", [out, _per_axis(gamma, ndim, axis)], ty)
    if call.attrs.center:
        out = op_call("add", [out, _per_axis(beta, ndim, axis)], ty)
    return out


def _layer_norm(call: Call, ty: TensorType) -> Expr:
    axis = call.attrs.axis
    out = _normalised(call.args[0], ty, [axis], call.attrs.epsilon)  # the axis stays as it is written
    return _affine(out, call, ty, axis % len(ty.shape))


def _instance_norm(call: Call, ty: TensorType) -> Expr:
    axis = call.attrs.axis % len(ty.shape)
    axes = [i for i in range(1, len(ty.shape)) if i != axis]
    return _affine(_normalised(call.args[0], ty, axes, call.attrs.epsilon), call, ty, axis)


def _group_norm(call: Call, ty: TensorType) -> Expr | None:
    axis = call.attrs.axis % len(ty.shape)
    if not all(isinstance(d, int) for d in ty.shape):
        return None
    groups = call.attrs.num_groups
    shape = (*ty.shape[:axis], groups, ty.shape[axis] // groups, *ty.shape[axis + 1 :])  # type: ignore[operator]
    split = TensorType(shape, ty.dtype)
    data = op_call("reshape", [call.args[0]], split, newshape=list(shape))
    out = _normalised(data, split, range(axis + 1, len(shape)), call.attrs.epsilon)
    return _affine(op_call("reshape", [out], ty, newshape=list(ty.shape)), call, ty, axis)


def _l2_normalize(call: Call, ty: TensorType) -> Expr:
    data = call.args[0]
    axes = call.attrs.axis
    over_all = axes is None or len(axes) == 0
    norm = {i for i in range(len(ty.shape))} if over_all else {a % len(ty.shape) for a in axes}
    kept = TensorType([1 if i in norm else d for i, d in enumerate(ty.shape)], ty.dtype)
    total = op_call("sum", [op_call("multiply", [data, data], ty)], kept, axis=sorted(norm), keepdims=True)
    total = op_call("maximum", [total, scalar(call.attrs.eps, ty.dtype)], kept)
    return op_call("divide", [data, op_call("sqrt", [total], kept)], ty)


RULES: Mapping[str, Rule] = {
    "nn.batch_norm": Rule(_batch_norm, first_field=True),
    "nn.dropout": Rule(lambda call, ty: call.args[0], first_field=True),
    "nn.layer_norm": Rule(_layer_norm),
    "nn.group_norm": Rule(_group_norm),
    "nn.instance_norm": Rule(_instance_norm),
    "nn.l2_normalize": Rule(_l2_normalize),
}
