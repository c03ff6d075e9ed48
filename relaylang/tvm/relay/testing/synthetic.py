"""A small network with the parts of large ones, for tests of passes."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import Constant, create_workload, function
from relaylang.tvm.relay.testing.layers import batch_norm_infer

Shape = tuple[int, ...]


def get_net(input_shape: Shape = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Function:
    """The network. `wtype` is the element type of its weights, `dtype` where it is None."""
    wtype = dtype if wtype is None else wtype
    channels, width = input_shape[1], input_shape[3]
    data = Var("data", TensorType(input_shape, dtype))

    def both(net: Expr, number: str) -> Expr:
        """The sum of a dense layer and a convolution."""
        flat = op.reshape(net, [-1, width])
        dense = op.nn.relu(op.nn.dense(flat, Var(f"dense{number}_weight", TensorType((width, width), wtype))))
        dense = op.reshape_like(dense, data)
        weight = Var(f"conv{number}_weight", TensorType((channels, channels, 3, 3), wtype))
        return op.add(dense, op.nn.softmax(op.nn.conv2d(net, weight, padding=1, kernel_size=3)))

    bias = Var("bias", None)
    return function(both(batch_norm_infer(op.nn.bias_add(both(data, ""), bias), name="batch_norm"), "2"))


def get_workload(
    input_shape: Shape = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and its parameters, the same ones at each call."""
    return create_workload(get_net(input_shape, dtype, wtype), Constant())


__all__ = ["get_net", "get_workload"]
