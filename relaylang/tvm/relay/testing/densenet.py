"""DenseNet as TVM 0.16 has it: a layer takes the one before it. A block joins the results of its layers."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, IRModule, TensorType, Tuple, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload, function
from relaylang.tvm.relay.testing.layers import batch_norm_infer, conv2d, dense_add_bias

Shape = tuple[int, ...]

#: Size -> channels at first, channels that a layer adds, and the layers of each block.
_SIZES = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (69, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}
#: A layer's inner channels are so many times those that it adds.
_WIDER = 4


def _active(net: Expr, name: str) -> Expr:
    return op.nn.relu(batch_norm_infer(net, name=name))


def get_workload(
    densenet_size: int = 121, classes: int = 1000, batch_size: int = 4, image_shape: Shape = (3, 224, 224), dtype: str = "float32"
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters. Raises `KeyError` for a size that is not 121, 161, 169 or 201."""
    channels, growth, blocks = _SIZES[densenet_size]
    net: Expr = Var("data", TensorType((batch_size, *image_shape), dtype))
    net = conv2d(net, channels=channels, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3), name="conv1")
    net = op.nn.max_pool2d(_active(net, "batch1"), pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for block, count in enumerate(blocks):
        features = []
        for layer in range(count):
            name = f"{block}_{layer}"
            net = conv2d(_active(net, f"batch_1_{name}"), channels=_WIDER * growth, kernel_size=(1, 1), name=f"conv2d_1_{name}")
            net = _active(net, f"batch_2_{name}")
            net = conv2d(net, channels=growth, kernel_size=(3, 3), padding=(1, 1), name=f"conv2d_2_{name}")
            features.append(net)
        net = op.concatenate(Tuple(features), 1)
        channels += count * growth
        if block < len(blocks) - 1:
            channels //= 2
            net = conv2d(_active(net, f"batch_t_{block}"), channels=channels, kernel_size=(1, 1), name=f"conv_t_{block}")
            net = op.nn.avg_pool2d(net, pool_size=(2, 2), strides=(2, 2))
    net = op.nn.avg_pool2d(_active(net, "batch2"), pool_size=(7, 7))
    return create_workload(function(dense_add_bias(op.nn.batch_flatten(net), units=classes, name="dense")))


__all__ = ["get_workload"]
