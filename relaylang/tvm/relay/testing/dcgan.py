"""The generator of a deep convolutional adversarial network (Radford et al., 2015)."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload, function
from relaylang.tvm.relay.testing.layers import batch_norm_infer, conv2d_transpose

Shape = tuple[int, ...]


def deconv2d(data: Expr, ishape: Shape, oshape: Shape, kshape: Shape, layout: str, name: str, stride: Shape = (2, 2)) -> Expr:
    """A transposed convolution to an image of the shape `oshape` (channels, height, width)."""
    pads = tuple([(k - 1) // 2 for k in kshape])
    more = tuple([(size + 2 * p - k) % s for size, p, k, s in zip(oshape[-2:], pads, kshape, stride)])
    kernel = {"NCHW": "IOHW", "NHWC": "HWOI"}[layout]
    return conv2d_transpose(
        data,
        kernel_size=kshape,
        strides=stride,
        channels=oshape[0],
        padding=pads,
        output_padding=more,
        data_layout=layout,
        kernel_layout=kernel,
        name=name,
    )


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: Shape = (3, 64, 64),
    ngf: int = 128,
    code: Expr | None = None,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """The network, without types of its weights."""
    if oshape[-2:] != (64, 64):
        raise ValueError(f"the image has 64 x 64 points, not {oshape[-2]} x {oshape[-1]}")
    data = code if code is not None else Var("data", TensorType((batch_size, random_len), dtype))
    net: Expr = op.nn.relu(op.nn.dense(data, Var("dense_weight"), units=4 * 4 * ngf * 8))
    channels = ngf * 8
    net = op.reshape(net, newshape=(-1, channels, 4, 4) if layout == "NCHW" else (-1, 4, 4, channels))
    for number, side in ((2, 8), (3, 16), (4, 32)):
        before, channels = channels, channels // 2
        net = deconv2d(net, (before, side // 2, side // 2), (channels, side, side), (4, 4), layout, f"g{number}_deconv")
        axis = layout.index("C")
        net = batch_norm_infer(net, epsilon=1e-5, scale=False, axis=axis, name=f"g{number}_batch_norm")
        net = op.nn.relu(net)
    return function(op.tanh(deconv2d(net, (channels, 32, 32), oshape[-3:], (4, 4), layout, "g5_deconv")))


def get_workload(
    batch_size: int, oshape: Shape = (3, 64, 64), ngf: int = 128, random_len: int = 100, layout: str = "NCHW", dtype: str = "float32"
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(get_net(batch_size, random_len, oshape=oshape, ngf=ngf, layout=layout, dtype=dtype))


__all__ = ["deconv2d", "get_net", "get_workload"]
