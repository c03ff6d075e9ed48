"""The operators of most programs, the commonest first, as editors offer them."""

from __future__ import annotations

COMMON = (
    "nn.conv2d", "nn.dense", "nn.bias_add", "nn.relu", "add", "nn.batch_norm", "nn.max_pool2d", "nn.softmax", "multiply",
    "nn.batch_flatten", "nn.global_avg_pool2d", "nn.avg_pool2d", "reshape", "concatenate", "cast", "transpose", "qnn.conv2d",
    "qnn.dense", "qnn.requantize", "qnn.quantize", "qnn.dequantize", "qnn.add", "subtract", "divide", "sigmoid", "tanh", "clip",
    "split", "squeeze", "expand_dims", "mean", "sum", "max", "nn.batch_matmul", "nn.pad", "nn.dropout", "nn.layer_norm",
    "nn.conv1d", "nn.conv3d", "nn.conv2d_transpose", "sqrt", "exp", "log", "power", "negative", "take", "strided_slice",
    "zeros", "ones", "full", "where", "equal", "less", "greater", "image.resize2d",
)  # fmt: skip

__all__ = ["COMMON"]
