"""Normalisation, activation, bias and padding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    along,
    is_float,
    norm_axis,
    plus,
    wide,
    windows,
)


def bias_add(attrs: Any, x: Any, bias: Any) -> Any:
    return plus(x, along(bias, attrs.axis, x.ndim))


def relu(attrs: Any, x: Any) -> Any:
    """Elements that are not greater than zero become zero. These include -0 and nan."""
    zero = x.dtype.type(0)
    positive = np.fmax(x, zero)
    return positive + zero if is_float(x.dtype) else positive


def leaky_relu(attrs: Any, x: Any) -> Any:
    return np.where(x > x.dtype.type(0), x, x * x.dtype.type(attrs.alpha))


def prelu(attrs: Any, x: Any, alpha: Any) -> Any:
    return np.where(x > x.dtype.type(0), x, x * along(alpha, attrs.axis, x.ndim))


def softmax(attrs: Any, x: Any) -> Any:
    carrier = wide(x)
    powers = np.exp(carrier - carrier.max(axis=attrs.axis, keepdims=True, initial=-np.inf))
    return (powers / powers.sum(axis=attrs.axis, keepdims=True)).astype(x.dtype)


def log_softmax(attrs: Any, x: Any) -> Any:
    carrier = wide(x)
    apart = carrier - carrier.max(axis=attrs.axis, keepdims=True, initial=-np.inf)
    return (apart - np.log(np.exp(apart).sum(axis=attrs.axis, keepdims=True))).astype(x.dtype)


def batch_norm(attrs: Any, x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
    """At inference: the data scaled and shifted by channel, and the two statistics as they came."""
    one = x.dtype.type(1)
    scale = one / np.sqrt(var + x.dtype.type(attrs.epsilon))
    scale = scale * gamma if attrs.scale else scale
    shift = -mean * scale
    shift = shift + beta if attrs.center else shift
    return x * along(scale, attrs.axis, x.ndim) + along(shift, attrs.axis, x.ndim), mean, var


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The mean along the axes, which stay; without numpy's warning where they have no entries."""
    total = x.sum(axis=axes, keepdims=True, dtype=x.dtype)
    return total / x.dtype.type(math.prod([x.shape[a] for a in axes]))


def _normalise(attrs: Any, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Mean 0 and variance 1 along the axes."""
    apart = x - _mean(x, axes)
    return apart / np.sqrt(_mean(apart * apart, axes) + x.dtype.type(attrs.epsilon))


def _scale_and_centre(attrs: Any, x: np.ndarray, gamma: Any, beta: Any, axis: int, dtype: np.dtype) -> np.ndarray:
    x = x * wide(along(gamma, axis, x.ndim)) if attrs.scale else x
    x = x + wide(along(beta, axis, x.ndim)) if attrs.center else x
    return x.astype(dtype, copy=False)


def layer_norm(attrs: Any, x: Any, gamma: Any, beta: Any) -> Any:
    axis = norm_axis(attrs.axis, x.ndim)
    return _scale_and_centre(attrs, _normalise(attrs, wide(x), (axis,)), gamma, beta, axis, x.dtype)


def instance_norm(attrs: Any, x: Any, gamma: Any, beta: Any) -> Any:
    axis = norm_axis(attrs.axis, x.ndim)
    axes = tuple(i for i in range(1, x.ndim) if i != axis)
    return _scale_and_centre(attrs, _normalise(attrs, wide(x), axes), gamma, beta, axis, x.dtype)


def group_norm(attrs: Any, x: Any, gamma: Any, beta: Any) -> Any:
    axis, groups = norm_axis(attrs.axis, x.ndim), attrs.num_groups
    grouped = wide(x).reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])
    axes = tuple(i for i in range(1, grouped.ndim) if i != axis)
    flat = _normalise(attrs, grouped, axes).reshape(x.shape)
    return _scale_and_centre(attrs, flat, gamma, beta, axis, x.dtype)


def lrn(attrs: Any, x: Any) -> Any:
    """Each element over a power of the mean square of its `size` neighbours along the axis."""
    axis, half = norm_axis(attrs.axis, x.ndim), attrs.size // 2
    moved = np.moveaxis(wide(x), axis, -1)
    padded = np.pad(moved * moved, [(0, 0)] * (x.ndim - 1) + [(half, attrs.size - 1 - half)])
    squares = windows(padded, (attrs.size,), (1,), (1,)).sum(axis=-2)
    kind = moved.dtype.type
    base = kind(attrs.bias) + kind(attrs.alpha) / kind(attrs.size) * squares
    return np.moveaxis(moved / np.power(base, kind(attrs.beta)), -1, axis).astype(x.dtype)


def l2_normalize(attrs: Any, x: Any) -> Any:
    axes = tuple({norm_axis(a, x.ndim) for a in attrs.axis}) if attrs.axis else tuple(range(x.ndim))
    carrier = wide(x)
    squares = (carrier * carrier).sum(axis=axes, keepdims=True)
    least = carrier.dtype.type(attrs.eps)
    return (carrier / np.sqrt(np.where(squares > least, squares, least))).astype(x.dtype)


def dropout(attrs: Any, x: Any) -> Any:
    """At inference: the data as it is, and a mask of ones."""
    return x, np.ones(x.shape, x.dtype)


def batch_flatten(attrs: Any, x: Any) -> Any:
    return x.reshape(x.shape[0], -1 if x.size else int(np.prod(x.shape[1:])))


def _mean_loss(x: Any, products: Any) -> Any:
    return (-np.sum(products) / x.shape[0]).astype(x.dtype) if len(x) else x.dtype.type(0)


def nll_loss(attrs: Any, predictions: Any, targets: Any, weights: Any) -> Any:
    """Minus each target's prediction times its class's weight; the mean is over the weights."""
    used = targets != attrs.ignore_index
    classes = np.where(used, targets, 0)
    if ((classes < 0) | (classes >= weights.shape[0])).any():
        raise KernelError(f"a target is none of the {weights.shape[0]} classes")
    weight = np.where(used, weights[classes], weights.dtype.type(0))
    picked = np.take_along_axis(predictions, classes[:, None], axis=1)[:, 0]
    loss = np.where(used, -picked * weight, picked.dtype.type(0))
    if attrs.reduction == "none":
        return loss
    return loss.sum(dtype=loss.dtype) / (weight.sum(dtype=loss.dtype) if attrs.reduction == "mean" else loss.dtype.type(1))


def fifo_buffer(attrs: Any, data: Any, buffer: Any) -> Any:
    """The newest of what the buffer and the data behind it hold."""
    both = np.concatenate([buffer, data], axis=attrs.axis)
    count = buffer.shape[attrs.axis]
    return np.take(both, np.arange(both.shape[attrs.axis] - count, both.shape[attrs.axis]), axis=attrs.axis)


KERNELS: dict[str, Kernel] = {
    "nn.cross_entropy": lambda attrs, x, y: _mean_loss(x, wide(np.log(wide(x)) * y)),
    "nn.cross_entropy_with_logits": lambda attrs, x, y: _mean_loss(x, wide(x) * wide(y)),
    "nn.nll_loss": nll_loss,
    "nn.fifo_buffer": fifo_buffer,
    "nn.bias_add": bias_add,
    "nn.relu": relu,
    "nn.leaky_relu": leaky_relu,
    "nn.prelu": prelu,
    "nn.softmax": softmax,
    "nn.fast_softmax": softmax,
    "nn.log_softmax": log_softmax,
    "nn.batch_norm": batch_norm,
    "nn.layer_norm": layer_norm,
    "nn.instance_norm": instance_norm,
    "nn.group_norm": group_norm,
    "nn.lrn": lrn,
    "nn.l2_normalize": l2_normalize,
    "nn.dropout": dropout,
    "nn.batch_flatten": batch_flatten,
}
