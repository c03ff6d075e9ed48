"""Normalisation, activation, bias and padding."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from relaylang.interpreter.kernels import image
from relaylang.interpreter.kernels.common import (
    Kernel,
    KernelError,
    along,
    convert,
    from_plain,
    is_float,
    norm_axis,
    plus,
    to_plain,
    wide,
    windows,
)


def bias_add(attrs: Any, x: Any, bias: Any) -> Any:
    return plus(x, along(bias, attrs.axis, x.ndim))


def relu(attrs: Any, x: Any) -> Any:
    """nan becomes zero, as with a comparison."""
    return np.fmax(x, x.dtype.type(0))


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
    return (carrier / np.sqrt(np.maximum(squares, carrier.dtype.type(attrs.eps)))).astype(x.dtype)


def dropout(attrs: Any, x: Any) -> Any:
    """At inference: the data as it is, and a mask of ones."""
    return x, np.ones(x.shape, x.dtype)


def batch_flatten(attrs: Any, x: Any) -> Any:
    return x.reshape(x.shape[0], -1 if x.size else int(np.prod(x.shape[1:])))


def pad_value(value: Any, dtype: np.dtype) -> Any:
    """The padding value in the data's element type; an integer type takes it only where it can hold it."""
    value = np.asarray(value)
    if not is_float(dtype) and dtype.kind != "b":
        info = np.iinfo(dtype)
        number = float(value)
        if not info.min <= number <= info.max:
            raise KernelError(f"{dtype.name} cannot hold the padding value {number:g}")
    return convert(value, dtype)


def pad(attrs: Any, x: Any, value: Any) -> Any:
    """Negative widths cut. A border is of the data's own ends, whether they are cut or not."""
    widths = [(int(a), int(b)) for a, b in attrs.pad_width]
    shape = [n + a + b for n, (a, b) in zip(x.shape, widths)]
    if min(shape, default=0) < 0:
        raise KernelError(f"pad_width={[list(w) for w in widths]} takes more away from {x.shape} than there is")
    if attrs.pad_mode == "constant":
        out = np.full(shape, pad_value(value, x.dtype))
        kept = [(max(-a, 0), min(n, n + b)) for n, (a, b) in zip(x.shape, widths)]
        if all(first < end for first, end in kept):
            into = tuple(slice(first + a, end + a) for (first, end), (a, _) in zip(kept, widths))
            out[into] = x[tuple(slice(first, end) for first, end in kept)]
        return out
    for axis, (wanted, n, (before, _)) in enumerate(zip(shape, x.shape, widths)):
        if wanted and not n:
            raise KernelError(f"axis {axis} has no entries to repeat at its ends")
        places = np.arange(wanted) - before
        places = np.clip(places, 0, n - 1) if attrs.pad_mode == "edge" else _mirrored(places, n)
        x = np.take(x, places, axis=axis)
    return x


def _mirrored(places: Any, extent: int) -> Any:
    """Places beyond the ends, folded back at the first and last entries as often as it takes."""
    if extent < 2:
        return np.zeros_like(places)
    around = 2 * extent - 2
    places = places % around
    return np.where(places < extent, places, around - places)


def mirror_pad(attrs: Any, x: Any) -> Any:
    mode: Literal["symmetric", "reflect"] = "symmetric" if attrs.mode.upper() == "SYMMETRIC" else "reflect"
    return np.pad(x, [(int(a), int(b)) for a, b in attrs.pad_width], mode=mode)


def depth_to_space(attrs: Any, x: Any) -> Any:
    plain, b = to_plain(x, attrs.layout, "NCHW"), attrs.block_size
    n, c, h, w = plain.shape
    if attrs.mode == "DCR":
        parts = plain.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = plain.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return from_plain(parts.reshape(n, c // (b * b), h * b, w * b), "NCHW", attrs.layout)


def space_to_depth(attrs: Any, x: Any) -> Any:
    plain, b = to_plain(x, attrs.layout, "NCHW"), attrs.block_size
    n, c, h, w = plain.shape
    parts = plain.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return from_plain(parts.reshape(n, c * b * b, h // b, w // b), "NCHW", attrs.layout)


def space_to_batch_nd(attrs: Any, x: Any) -> Any:
    """Each spatial axis is cut into blocks, whose places go to the front of the batch."""
    blocks = tuple(attrs.block_shape)
    pads = [(0, 0), *[(int(a), int(b)) for a, b in attrs.paddings]]
    pads += [(0, 0)] * (x.ndim - len(pads))
    padded = np.pad(x, pads, constant_values=x.dtype.type(attrs.pad_value))
    batch, space, rest = x.shape[0], padded.shape[1 : 1 + len(blocks)], padded.shape[1 + len(blocks) :]
    cut = padded.reshape(batch, *[m for n, b in zip(space, blocks) for m in (n // b, b)], *rest)
    count = len(blocks)
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, cut.ndim)]
    return cut.transpose(order).reshape(batch * int(np.prod(blocks)), *[n // b for n, b in zip(space, blocks)], *rest)


def batch_to_space_nd(attrs: Any, x: Any) -> Any:
    blocks = tuple(attrs.block_shape)
    count = len(blocks)
    batch, space, rest = x.shape[0] // int(np.prod(blocks)), x.shape[1 : 1 + count], x.shape[1 + count :]
    cut = x.reshape(*blocks, batch, *space, *rest)
    order = [count, *[axis for i in range(count) for axis in (count + 1 + i, i)], *range(2 * count + 1, cut.ndim)]
    joined = cut.transpose(order).reshape(batch, *[n * b for n, b in zip(space, blocks)], *rest)
    cuts = [slice(int(a), joined.shape[i] - int(b)) for i, (a, b) in enumerate(attrs.crops, 1)]
    places = (slice(None), *cuts)
    return np.ascontiguousarray(joined[places])


def cross_entropy(attrs: Any, x: Any, y: Any) -> Any:
    return (-np.sum(wide(np.log(wide(x)) * y)) / x.shape[0]).astype(x.dtype) if len(x) else x.dtype.type(0)


def cross_entropy_with_logits(attrs: Any, x: Any, y: Any) -> Any:
    return (-np.sum(wide(x) * wide(y)) / x.shape[0]).astype(x.dtype) if len(x) else x.dtype.type(0)


def nll_loss(attrs: Any, predictions: Any, targets: Any, weights: Any) -> Any:
    """Minus each target's prediction times its class's weight; the mean is over the weights."""
    used = targets != attrs.ignore_index
    classes = np.where(used, targets, 0)
    if ((classes < 0) | (classes >= weights.shape[0])).any():
        raise KernelError(f"a target is none of the {weights.shape[0]} classes")
    weight = np.where(used, weights[classes], weights.dtype.type(0))
    found = np.take_along_axis(predictions, classes[:, None], axis=1)[:, 0]
    loss = np.where(used, -found * weight, found.dtype.type(0))
    if attrs.reduction == "none":
        return loss
    return loss.sum(dtype=loss.dtype) / (
        weight.sum(dtype=loss.dtype) if attrs.reduction == "mean" else loss.dtype.type(1)
    )


def fifo_buffer(attrs: Any, data: Any, buffer: Any) -> Any:
    """The newest of what the buffer and the data behind it hold."""
    both = np.concatenate([buffer, data], axis=attrs.axis)
    count = buffer.shape[attrs.axis]
    return np.take(both, np.arange(both.shape[attrs.axis] - count, both.shape[attrs.axis]), axis=attrs.axis)


KERNELS: dict[str, Kernel] = {
    "nn.upsampling": image.upsampling,
    "nn.upsampling3d": image.upsampling3d,
    "nn.space_to_batch_nd": space_to_batch_nd,
    "nn.batch_to_space_nd": batch_to_space_nd,
    "nn.cross_entropy": cross_entropy,
    "nn.cross_entropy_with_logits": cross_entropy_with_logits,
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
    "nn.pad": pad,
    "nn.mirror_pad": mirror_pad,
    "nn.depth_to_space": depth_to_space,
    "nn.space_to_depth": space_to_depth,
}
