"""A perceptron of three dense layers."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload, function
from relaylang.tvm.relay.testing.layers import dense_add_bias

Shape = tuple[int, ...]


def get_net(batch_size: int, num_classes: int = 10, image_shape: Shape = (1, 28, 28), dtype: str = "float32") -> Function:
    """The network, without types of its weights."""
    net: Expr = op.nn.batch_flatten(Var("data", TensorType((batch_size, *image_shape), dtype)))
    for number, units in enumerate((128, 64), 1):
        net = op.nn.relu(dense_add_bias(net, units=units, name=f"fc{number}"))
    return function(op.nn.softmax(dense_add_bias(net, units=num_classes, name="fc3")))


def get_workload(
    batch_size: int, num_classes: int = 10, image_shape: Shape = (1, 28, 28), dtype: str = "float32"
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))


__all__ = ["get_net", "get_workload"]
