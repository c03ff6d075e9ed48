"""ResNet over images (He et al., 2016)."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Function, IRModule
from relaylang.tvm.relay.testing.init import create_workload
from relaylang.tvm.relay.testing.residual import choose, residual_unit, resnet

Shape = tuple[int, ...]


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: Shape = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> Function:
    """The network, without types of its weights. Raises `ValueError` for a number of layers that it does not come in."""
    units, channels, narrow = choose(num_layers, image_shape[0 if layout == "NHWC" else 1])
    return resnet(units, len(units), channels, num_classes, (batch_size, *image_shape), narrow, layout, dtype)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Shape = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> tuple[IRModule, dict[str, Any]]:
    """The network's module and random parameters."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))


__all__ = ["get_net", "get_workload", "residual_unit", "resnet"]
