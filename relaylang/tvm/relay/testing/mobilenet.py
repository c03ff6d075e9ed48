"""MobileNet (Howard et al., 2017)."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload, function
from relaylang.tvm.relay.testing.layers import batch_norm_infer, conv2d, conv_kernel_layout

Shape = tuple[int, ...]

#: The separable blocks: channels at each end, and whether the image is halved. The shallow net has fewer.
_BEGIN = ((32, 64, False), (64, 128, True), (128, 128, False), (128, 256, True), (256, 256, False), (256, 512, True))
_DEEP = (*[(512, 512, False)] * 5, (512, 1024, True), (1024, 1024, False))
_SHALLOW = ((512, 1024, True), (1024, 1024, True))


def conv_block(
    data: Expr,
    name: str,
    channels: int,
    kernel_size: Shape = (3, 3),
    strides: Shape = (1, 1),
    padding: Shape = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
) -> Expr:
    """A convolution, normalised and rectified."""
    conv = conv2d(
        data,
        channels=channels,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_layout=layout,
        kernel_layout=conv_kernel_layout(layout),
        name=f"{name}_conv",
    )
    return op.nn.relu(batch_norm_infer(conv, epsilon=epsilon, name=f"{name}_bn"))


def separable_conv_block(
    data: Expr,
    name: str,
    depthwise_channels: int,
    pointwise_channels: int,
    kernel_size: Shape = (3, 3),
    downsample: bool = False,
    padding: Shape = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Expr:
    """A depthwise and a pointwise convolution, each normalised and rectified."""
    axis = layout.index("C")
    shape = (depthwise_channels, 1, *kernel_size) if layout == "NCHW" else (*kernel_size, depthwise_channels, 1)
    steps = (2, 2) if downsample else (1, 1)
    net = conv2d(
        data,
        Var(f"{name}_weight", TensorType(shape, dtype)),
        channels=depthwise_channels,
        groups=depthwise_channels,
        kernel_size=kernel_size,
        strides=steps,
        padding=padding,
        data_layout=layout,
        kernel_layout=conv_kernel_layout(layout, True),
        name=f"{name}_depthwise_conv1",
    )
    net = op.nn.relu(batch_norm_infer(net, epsilon=epsilon, axis=axis, name=f"{name}_bn1"))
    net = conv2d(
        net,
        channels=pointwise_channels,
        kernel_size=(1, 1),
        strides=(1, 1),
        padding=(0, 0),
        data_layout=layout,
        kernel_layout=conv_kernel_layout(layout),
        name=f"{name}_conv2",
    )
    return op.nn.relu(batch_norm_infer(net, epsilon=epsilon, axis=axis, name=f"{name}_bn2"))


def mobile_net(
    num_classes: int = 1000,
    data_shape: Shape = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> Function:
    """The network, without types of its weights. `alpha` is a factor of all channels."""
    net: Expr = Var("data", TensorType(data_shape, dtype))
    net = conv_block(net, "conv_block_1", int(32 * alpha), strides=(2, 2), layout=layout)
    for number, (ins, outs, halve) in enumerate(_BEGIN + (_SHALLOW if is_shallow else _DEEP), 1):
        net = separable_conv_block(
            net, f"separable_conv_block_{number}", int(ins * alpha), int(outs * alpha), downsample=halve, layout=layout, dtype=dtype
        )
    flat = op.nn.batch_flatten(op.nn.global_avg_pool2d(net, layout=layout))
    dense = op.nn.dense(flat, Var("fc_weight"), units=num_classes)
    return function(op.nn.softmax(op.nn.bias_add(dense, Var("fc_bias"))))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, image_shape: Shape = (3, 224, 224), dtype: str = "float32", layout: str = "NCHW"
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, layout=layout))


__all__ = ["conv_block", "get_workload", "mobile_net", "separable_conv_block"]
