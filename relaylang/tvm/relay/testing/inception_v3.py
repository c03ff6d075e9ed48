"""Inception v3 (Szegedy et al., 2015)."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Tuple, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import create_workload, function
from relaylang.tvm.relay.testing.layers import batch_norm_infer, conv2d

Shape = tuple[int, ...]


def _conv(net: Expr, name: str, channels: int, kernel: Shape = (1, 1), pad: Shape = (0, 0), stride: int = 1) -> Expr:
    net = conv2d(net, channels=channels, kernel_size=kernel, strides=(stride, stride), padding=pad, name=f"{name}_conv1")
    return op.nn.relu(batch_norm_infer(net, epsilon=2e-5, scale=False, name=f"{name}_bn"))


def _pool(net: Expr, kind: str, stride: int, pad: int, side: int = 3) -> Expr:
    sizes: dict[str, Any] = {"pool_size": (side, side), "strides": (stride, stride), "padding": (pad, pad)}
    if kind == "max":
        return op.nn.max_pool2d(net, **sizes)
    return op.nn.avg_pool2d(net, count_include_pad=True, **sizes)


def _tower(net: Expr, name: str, first: int, *rest: tuple[int, Shape, int]) -> Expr:
    """Pointwise channels, then convolutions of other windows; their padding keeps the image but where they stride."""
    net = _conv(net, f"{name}_conv", first)
    for number, (channels, kernel, stride) in enumerate(rest, 1):
        pad = (0, 0) if stride == 2 else (kernel[0] // 2, kernel[1] // 2)
        net = _conv(net, f"{name}_conv_{number}", channels, kernel, pad, stride)
    return net


def _a(net: Expr, projected: int, name: str) -> Expr:
    return op.concatenate(
        Tuple(
            [
                _conv(net, f"{name}_conv", 64),
                _tower(net, f"{name}_tower", 48, (64, (5, 5), 1)),
                _tower(net, f"{name}_tower_1", 64, (96, (3, 3), 1), (96, (3, 3), 1)),
                _conv(_pool(net, "avg", 1, 1), f"{name}_tower_2_conv", projected),
            ]
        ),
        axis=1,
    )


def _b(net: Expr, name: str) -> Expr:
    return op.concatenate(
        Tuple(
            [
                _conv(net, f"{name}_conv", 384, (3, 3), stride=2),
                _tower(net, f"{name}_tower", 64, (96, (3, 3), 1), (96, (3, 3), 2)),
                _pool(net, "max", 2, 0),
            ]
        ),
        axis=1,
    )


def _c(net: Expr, inner: int, name: str) -> Expr:
    row, column = (1, 7), (7, 1)
    return op.concatenate(
        Tuple(
            [
                _conv(net, f"{name}_conv", 192),
                _tower(net, f"{name}_tower", inner, (inner, row, 1), (192, column, 1)),
                _tower(net, f"{name}_tower_1", inner, (inner, column, 1), (inner, row, 1), (inner, column, 1), (192, row, 1)),
                _conv(_pool(net, "avg", 1, 1), f"{name}_tower_2_conv", 192),
            ]
        ),
        axis=1,
    )


def _d(net: Expr, name: str) -> Expr:
    return op.concatenate(
        Tuple(
            [
                _tower(net, f"{name}_tower", 192, (320, (3, 3), 2)),
                _tower(net, f"{name}_tower_1", 192, (192, (1, 7), 1), (192, (7, 1), 1), (192, (3, 3), 2)),
                _pool(net, "max", 2, 0),
            ]
        ),
        axis=1,
    )


def _e(net: Expr, pool: str, name: str) -> Expr:
    def split(tower: Expr, inside: str) -> list[Expr]:
        return [_conv(tower, f"{inside}_mixed_conv", 384, (1, 3), (0, 1)), _conv(tower, f"{inside}_mixed_conv_1", 384, (3, 1), (1, 0))]

    return op.concatenate(
        Tuple(
            [
                _conv(net, f"{name}_conv", 320),
                *split(_tower(net, f"{name}_tower", 384), f"{name}_tower"),
                *split(_tower(net, f"{name}_tower_1", 448, (384, (3, 3), 1)), f"{name}_tower_1"),
                _conv(_pool(net, pool, 1, 1), f"{name}_tower_2_conv", 192),
            ]
        ),
        axis=1,
    )


def get_net(batch_size: int, num_classes: int, image_shape: Shape, dtype: str) -> Function:
    """The network, without types of its weights."""
    net: Expr = Var("data", TensorType((batch_size, *image_shape), dtype))
    net = _conv(net, "conv", 32, (3, 3), stride=2)
    net = _conv(net, "conv_1", 32, (3, 3))
    net = _pool(_conv(net, "conv_2", 64, (3, 3), (1, 1)), "max", 2, 0)
    net = _conv(net, "conv_3", 80)
    net = _pool(_conv(net, "conv_4", 192, (3, 3)), "max", 2, 0)
    for name, projected in (("mixed", 32), ("mixed_1", 64), ("mixed_2", 64)):
        net = _a(net, projected, name)
    net = _b(net, "mixed_3")
    for name, inner in (("mixed_4", 128), ("mixed_5", 160), ("mixed_6", 160), ("mixed_7", 192)):
        net = _c(net, inner, name)
    net = _e(_e(_d(net, "mixed_8"), "avg", "mixed_9"), "max", "mixed_10")
    flat = op.nn.batch_flatten(_pool(net, "avg", 1, 0, 8))
    dense = op.nn.dense(flat, Var("fc1_weight"), units=num_classes)
    return function(op.nn.softmax(op.nn.bias_add(dense, Var("fc2_bias"), axis=-1)))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, image_shape: Shape = (3, 299, 299), dtype: str = "float32"
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))


__all__ = ["get_net", "get_workload"]
