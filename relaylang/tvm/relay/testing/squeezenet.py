"""SqueezeNet 1.0 and 1.1 (Iandola et al., 2016)."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Tuple, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload, function
from relaylang.tvm.relay.testing.layers import conv2d

Shape = tuple[int, ...]

#: Version -> channels, side and padding of the first convolution, and the channels of each fire module; None pools.
_VERSIONS: dict[str, tuple[int, int, int, tuple[int | None, ...]]] = {
    "1.0": (96, 7, 3, (None, 64, 64, 128, None, 128, 192, 192, 256, None, 256)),
    "1.1": (64, 3, 1, (None, 64, 64, None, 128, 128, None, 192, 192, 256, 256)),
}


def _conv(net: Expr, channels: int, side: int, pad: int, name: str) -> Expr:
    net = conv2d(net, channels=channels, kernel_size=(side, side), padding=(pad, pad), name=f"{name}_conv")
    return op.nn.relu(op.nn.bias_add(net, Var(f"{name}_conv_bias")))


def _fire(net: Expr, channels: int, name: str) -> Expr:
    """A quarter of the channels, from which windows of two sizes make all of them."""
    net = _conv(net, channels // 4, 1, 0, f"{name}_input")
    sides = [_conv(net, channels, 1, 0, f"{name}_left"), _conv(net, channels, 3, 1, f"{name}_right")]
    return op.concatenate(Tuple(sides), axis=1)


def get_net(batch_size: int, image_shape: Shape, num_classes: int, version: str, dtype: str) -> Function:
    """The network, without types of its weights. Raises `ValueError` for a version that is not "1.0" or "1.1"."""
    if version not in _VERSIONS:
        raise ValueError(f"SqueezeNet has the versions {', '.join(_VERSIONS)}, not {version}")
    channels, side, pad, rest = _VERSIONS[version]
    net: Expr = Var("data", TensorType((batch_size, *image_shape), dtype))
    net = conv2d(net, channels=channels, kernel_size=(side, side), strides=(2, 2), padding=(pad, pad), name="conv1")
    net = op.nn.relu(op.nn.bias_add(net, Var("conv1_bias")))
    number = 0
    for size in rest:
        if size is None:
            net = op.nn.max_pool2d(net, pool_size=(3, 3), strides=(2, 2))
        else:
            number += 1
            net = _fire(net, size, f"fire{number}")
    net = conv2d(op.nn.dropout(net, rate=0.5), channels=num_classes, kernel_size=(1, 1), name="conv_final")
    net = op.nn.relu(op.nn.bias_add(net, Var("conv_final_bias")))
    return function(op.nn.softmax(op.nn.batch_flatten(op.nn.global_avg_pool2d(net))))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, version: str = "1.0", image_shape: Shape = (3, 224, 224), dtype: str = "float32"
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))


__all__ = ["get_net", "get_workload"]
