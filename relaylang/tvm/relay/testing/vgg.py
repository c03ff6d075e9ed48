"""VGG (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload, function
from relaylang.tvm.relay.testing.layers import batch_norm_infer, conv2d, dense_add_bias

Shape = tuple[int, ...]

#: Layers -> convolutions of each stage; the channels of the stages.
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_CHANNELS = (64, 128, 256, 512, 512)


def get_net(
    batch_size: int, image_shape: Shape, num_classes: int, dtype: str, num_layers: int = 11, batch_norm: bool = False
) -> Function:
    """The network, without types of its weights. Raises `ValueError` for a number of layers that it does not come in."""
    if num_layers not in _STAGES:
        raise ValueError(f"VGG has {', '.join(map(str, _STAGES))} layers, not {num_layers}")
    net: Expr = Var("data", TensorType((batch_size, *image_shape), dtype))
    for stage, (count, channels) in enumerate(zip(_STAGES[num_layers], _CHANNELS), 1):
        for number in range(1, count + 1):
            name = f"{stage}_{number}"
            net = conv2d(net, kernel_size=(3, 3), padding=(1, 1), channels=channels, name=f"conv{name}")
            net = op.nn.bias_add(net, Var(f"conv{name}_bias"))
            net = op.nn.relu(batch_norm_infer(net, name=f"bn{name}") if batch_norm else net)
        net = op.nn.max_pool2d(net, pool_size=(2, 2), strides=(2, 2))
    net = op.nn.batch_flatten(net)
    for layer in ("fc6", "fc7"):
        net = op.nn.dropout(op.nn.relu(dense_add_bias(net, units=4096, name=layer)), rate=0.5)
    return function(op.nn.softmax(dense_add_bias(net, units=num_classes, name="fc8")))


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: Shape = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))


__all__ = ["get_net", "get_workload"]
