"""The network of deep Q-learning (Mnih et al., 2015)."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload, function
from relaylang.tvm.relay.testing.layers import conv2d, conv_kernel_layout, dense_add_bias

Shape = tuple[int, ...]

#: Channels, side of the windows, and stride of each convolution.
_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))


def get_net(
    batch_size: int, num_actions: int = 18, image_shape: Shape = (4, 84, 84), dtype: str = "float32", layout: str = "NCHW"
) -> Function:
    """The network, without types of its weights."""
    net: Expr = Var("data", TensorType((batch_size, *image_shape), dtype))
    for number, (channels, side, stride) in enumerate(_CONVOLUTIONS, 1):
        net = conv2d(
            net,
            kernel_size=(side, side),
            strides=(stride, stride),
            padding=(0, 0),
            channels=channels,
            data_layout=layout,
            kernel_layout=conv_kernel_layout(layout),
            name=f"conv{number}",
        )
        net = op.nn.relu(op.nn.bias_add(net, Var(f"conv{number}_bias"), layout.index("C")))
    net = op.nn.relu(dense_add_bias(op.nn.batch_flatten(net), units=512, name="dense1"))
    return function(dense_add_bias(net, units=num_actions, name="dense2"))


def get_workload(
    batch_size: int, num_actions: int = 18, image_shape: Shape = (4, 84, 84), dtype: str = "float32", layout: str = "NCHW"
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))


__all__ = ["get_net", "get_workload"]
