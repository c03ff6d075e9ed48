"""Convolutions of one, two and three spatial axes, with channels last or second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.nn import check_window, padding_of, same_padding
from relaylang.frontends.keras.families.activation import activated
from relaylang.frontends.keras.node import Node
from relaylang.ir import Expr

#: The letters of spatial axes.
LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def layout(rank: int, first: bool) -> str:
    """The layout of data: NHWC, or NCHW."""
    return f"NC{LETTERS[rank]}" if first else f"N{LETTERS[rank]}C"


def spatial_of(n: Node, x: Expr, rank: int, first: bool) -> Sequence[Any]:
    """The spatial extents of data."""
    shape = n.b.shape(x, rank + 2)
    return shape[2:] if first else shape[1:-1]


def window(n: Node, x: Expr, rank: int, kernel: Sequence[int], first: bool, strides: Any = 1) -> dict[str, Any]:
    """The attributes strides, dilation and padding of a layer."""
    steps = n.ints("strides", rank, strides, 1)
    dilation = n.ints("dilation_rate", rank, 1, 1)
    kind = n.choice("padding", "valid", ("valid", "same", "causal"))
    check_window(kernel, steps, dilation)
    pairs = [(0, 0)] * rank
    if kind == "same":
        pairs = same_padding(spatial_of(n, x, rank, first), kernel, steps, dilation)
    elif kind == "causal":
        if rank != 1:
            raise Malformed("its padding is causal, which is for one spatial axis")
        pairs = [((kernel[0] - 1) * dilation[0], 0)]
    return {"strides": steps, "dilation": dilation, "padding": padding_of(pairs)}


def with_bias(n: Node, made: Expr, index: int, first: bool, key: str = "use_bias") -> Expr:
    """The result with the layer's bias, where it uses one."""
    return n.b.op("nn.bias_add", made, n.weight(index, "bias", rank=1), axis=1 if first else -1) if n.bool(key, True) else made


def _kernel_last(rank: int) -> tuple[int, ...]:
    """Kernels (spatial, in, out) as (out, in, spatial)."""
    return (rank + 1, rank, *range(rank))


def old_kernel(n: Node, rank: int) -> Callable[[np.ndarray], np.ndarray]:
    """A change of Keras 1's kernels, and of Theano's, to the form of Keras 2."""
    theano = n.spec.major == 1 and n.config.get("data_format") == "channels_first"

    def change(kernel: np.ndarray) -> np.ndarray:
        if theano and rank == 2:
            return kernel.transpose(2, 3, 1, 0)
        return kernel[:, 0] if n.spec.major == 1 and rank == 1 and kernel.ndim == 4 else kernel

    return change


def conv(rank: int) -> Callable[[Node, Expr], Any]:
    """Kernels are (spatial, channels / groups, filters)."""

    def convert(n: Node, x: Expr) -> Any:
        b, first, change = n.b, n.channels_first(), old_kernel(n, rank)
        x = n.real(x)
        shape = change(n.array(0)).shape
        if len(shape) != rank + 2:
            raise Malformed(f"its kernel has the shape {shape}, and it must have {rank + 2} axes")
        channels = b.extent(x, 1 if first else -1, "the channels")
        groups = n.int("groups", 1, 1)
        if shape[rank] * groups != channels or shape[-1] % groups:
            raise Malformed(f"its operand has {channels} channels, and its kernel has the shape {shape} with {groups} groups")
        attrs = window(n, x, rank, shape[:rank], first)
        attrs |= {"groups": groups, "channels": shape[-1], "kernel_size": list(shape[:rank]), "data_layout": layout(rank, first)}
        if first:
            order = _kernel_last(rank)
            kernel = n.weight(0, "kernel", lambda w: change(w).transpose(order), key="OI")
            out = b.op(f"nn.conv{rank}d", x, kernel, kernel_layout=f"OI{LETTERS[rank]}", **attrs)
        else:
            kernel = n.weight(0, "kernel", change)
            out = b.op(f"nn.conv{rank}d", x, kernel, kernel_layout=f"{LETTERS[rank]}IO", **attrs)
        return activated(n, with_bias(n, out, 1, first))

    return convert


def _depthwise(n: Node, x: Expr, rank: int, first: bool, strides: Any = 1) -> Expr:
    """A convolution of each channel by itself; kernels are (spatial, channels, multiplier)."""
    b = n.b
    shape = n.array(0, rank + 2).shape
    channels = b.extent(x, 1 if first else -1, "the channels")
    if shape[rank] != channels:
        raise Malformed(f"its operand has {channels} channels, and its kernel has the shape {shape}")
    attrs = window(n, x, rank, shape[:rank], first, strides)
    count = channels * shape[-1]
    attrs |= {"groups": channels, "channels": count, "kernel_size": list(shape[:rank])}
    if rank == 2 and not first:
        kernel = n.weight(0, "depthwise_kernel")
        return b.op("nn.conv2d", x, kernel, data_layout="NHWC", kernel_layout="HWOI", **attrs)
    if rank == 2:
        kernel = n.weight(0, "depthwise_kernel", lambda w: w.transpose(2, 3, 0, 1).reshape(count, 1, *shape[:2]), key="OI")
        return b.op("nn.conv2d", x, kernel, data_layout="NCHW", kernel_layout="OIHW", **attrs)
    kernel = n.weight(0, "depthwise_kernel", lambda w: w.transpose(1, 2, 0).reshape(count, 1, shape[0]), key="OI")
    data = x if first else b.transpose(x, [0, 2, 1])
    out = b.op("nn.conv1d", data, kernel, data_layout="NCW", kernel_layout="OIW", **attrs)
    return out if first else b.transpose(out, [0, 2, 1])


def depthwise(rank: int) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        first = n.channels_first()
        return activated(n, with_bias(n, _depthwise(n, n.real(x), rank, first), 1, first))

    return convert


def separable(rank: int) -> Callable[[Node, Expr], Any]:
    """A convolution of each channel, then one of kernels of extent 1."""

    def convert(n: Node, x: Expr) -> Any:
        b, first = n.b, n.channels_first()
        out = _depthwise(n, n.real(x), rank, first)
        shape = n.array(1, rank + 2).shape
        attrs: dict[str, Any] = {"channels": shape[-1], "kernel_size": list(shape[:rank]), "data_layout": layout(rank, first)}
        if first:
            order = _kernel_last(rank)
            kernel = n.weight(1, "pointwise_kernel", lambda w: w.transpose(order), key="OI")
            out = b.op(f"nn.conv{rank}d", out, kernel, kernel_layout=f"OI{LETTERS[rank]}", **attrs)
        else:
            kernel = n.weight(1, "pointwise_kernel")
            out = b.op(f"nn.conv{rank}d", out, kernel, kernel_layout=f"{LETTERS[rank]}IO", **attrs)
        return activated(n, with_bias(n, out, 2, first))

    return convert


def transposed(rank: int) -> Callable[[Node, Expr], Any]:
    """Kernels are (spatial, filters, channels). TensorFlow's padding of the convolution that it turns around."""

    def convert(n: Node, x: Expr) -> Any:
        b, first = n.b, n.channels_first()
        x = n.real(x)
        shape = n.array(0, rank + 2).shape
        channels = b.extent(x, 1 if first else -1, "the channels")
        if shape[-1] != channels:
            raise Malformed(f"its operand has {channels} channels, and its kernel has the shape {shape}")
        steps, dilation = n.ints("strides", rank, 1, 1), n.ints("dilation_rate", rank, 1, 1)
        same = n.choice("padding", "valid", ("valid", "same")) == "same"
        more = None if n.value("output_padding", None) is None else n.ints("output_padding", rank, least=0)
        check_window(shape[:rank], steps, dilation)
        begin, end, extra = [], [], []
        for axis, (k, step, dilated) in enumerate(zip(shape, steps, dilation)):
            reach = (k - 1) * dilated + 1
            # The full result has (size - 1) * step + reach places; these are its differences from what Keras keeps.
            if more is None:
                wanted = step - reach if same else max(step - reach, 0)
            else:
                wanted = more[axis] - (2 * (reach // 2) if same else 0)
            cut = max(-wanted, 0)
            begin.append(cut // 2)
            end.append(cut - cut // 2)
            extra.append(max(wanted, 0))
        if any(e >= s for e, s in zip(extra, steps)):
            raise Unsupported(f"its output_padding is {extra}, and its strides are {steps}")
        to_last = (0, *range(2, rank + 2), 1)
        data = x if first else b.transpose(x, (0, rank + 1, *range(1, rank + 1)))
        order = (rank + 1, rank, *range(rank))
        kernel = n.weight(0, "kernel", lambda w: w.transpose(order), key="IO")
        out = b.op(
            f"nn.conv{rank}d_transpose",
            data,
            kernel,
            channels=shape[-2],
            kernel_size=list(shape[:rank]),
            strides=steps,
            padding=[*begin, *end],
            output_padding=extra,
            dilation=dilation,
            data_layout=layout(rank, True),
            kernel_layout=f"IO{LETTERS[rank]}",
        )
        out = out if first else b.transpose(out, to_last)
        return activated(n, with_bias(n, out, 1, first))

    return convert


RULES = (
    *(Rule(f"Conv{rank}D", conv(rank)) for rank in (1, 2, 3)),
    *(Rule(f"Conv{rank}DTranspose", transposed(rank)) for rank in (1, 2, 3)),
    *(Rule(f"DepthwiseConv{rank}D", depthwise(rank)) for rank in (1, 2)),
    *(Rule(f"SeparableConv{rank}D", separable(rank)) for rank in (1, 2)),
)
