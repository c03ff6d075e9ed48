"""Residual networks with identity mappings (He et al., 2016), over two or three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.ir import Expr, Function, TensorType, Var
from relaylang.tvm import op
from relaylang.tvm.relay.testing.init import function
from relaylang.tvm.relay.testing.layers import batch_norm_infer, conv2d, conv3d, dense_add_bias

Shape = tuple[int, ...]

#: Layers -> the units of each stage, for large images.
_UNITS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}
#: The names of weights' layouts for those of data.
_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


class _Layers:
    """Layers for a layout. Over three axes, TVM's networks always normalise along axis 1."""

    def __init__(self, layout: str) -> None:
        self.layout = layout
        self.rank = len(layout) - 2
        self.axis = layout.index("C") if self.rank == 2 else 1

    def norm(self, data: Expr, name: str, **more: Any) -> Expr:
        return batch_norm_infer(data, epsilon=2e-5, axis=self.axis, name=name, **more)

    def active(self, data: Expr, name: str) -> Expr:
        return op.nn.relu(self.norm(data, name))

    def conv(self, data: Expr, channels: int, side: int | Shape, strides: Shape, name: str) -> Expr:
        sides = (side,) * self.rank if isinstance(side, int) else side
        make = conv2d if self.rank == 2 else conv3d
        return make(
            data,
            channels=channels,
            kernel_size=sides,
            strides=strides,
            padding=tuple([s // 2 for s in sides]),
            name=name,
            data_layout=self.layout,
            kernel_layout=_KERNELS[self.layout],
        )

    def unit(self, data: Expr, channels: int, stride: Shape, same: bool, name: str, narrow: bool) -> Expr:
        """A residual unit: two convolutions, or three of which two have a quarter of the channels (`narrow`)."""
        one = (1,) * self.rank
        first = self.active(data, f"{name}_bn1")
        if narrow:
            net = self.conv(first, channels // 4, 1, stride, f"{name}_conv1")
            net = self.conv(self.active(net, f"{name}_bn2"), channels // 4, 3, one, f"{name}_conv2")
            net = self.conv(self.active(net, f"{name}_bn3"), channels, 1, one, f"{name}_conv3")
        else:
            net = self.conv(first, channels, 3, stride, f"{name}_conv1")
            net = self.conv(self.active(net, f"{name}_bn2"), channels, 3, one, f"{name}_conv2")
        return op.add(net, data if same else self.conv(first, channels, 1, stride, f"{name}_sc"))


def residual_unit(
    data: Expr,
    num_filter: int,
    stride: Shape,
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
) -> Expr:
    """A residual unit; with `dim_match` the data itself is added."""
    return _Layers(data_layout).unit(data, num_filter, stride, dim_match, name, bottle_neck)


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Shape,
    bottle_neck: bool = True,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """The network of some stages of units, without types of its weights."""
    make = _Layers(layout)
    flat = make.rank == 2
    one, two = (1,) * make.rank, (2,) * make.rank
    data = make.norm(Var("data", TensorType(data_shape, dtype)), "bn_data", scale=False)
    height = data_shape[layout.index("H")] if flat or layout == "NCDHW" else data_shape[2]
    if height <= 32:
        net = make.conv(data, filter_list[0], 3, one, "conv0")
    else:
        net = make.conv(data, filter_list[0], 7 if flat else (3, 7, 7), two if flat else (1, 2, 2), "conv0")
        net = make.active(net, "bn0")
        if flat:
            net = op.nn.max_pool2d(net, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), layout=layout)
    for stage in range(num_stages):
        for number in range(1, units[stage] + 1):
            stride = two if stage and number == 1 else one
            net = make.unit(net, filter_list[stage + 1], stride, number > 1, f"stage{stage + 1}_unit{number}", bottle_neck)
    net = make.active(net, "bn1")
    pool = op.nn.global_avg_pool2d if flat else op.nn.global_avg_pool3d
    net = dense_add_bias(op.nn.batch_flatten(pool(net, layout=layout)), units=num_classes, name="fc1")
    return function(op.nn.softmax(net))


def choose(num_layers: int, height: int) -> tuple[list[int], list[int], bool]:
    """The units of each stage, the channels, and whether units are narrow. Raises `ValueError`."""
    if height <= 28:
        narrow = num_layers >= 164
        each, rest = divmod(num_layers - 2, 9 if narrow else 6)
        if rest == 0:
            return [each] * 3, [16, 64, 128, 256] if narrow else [16, 16, 32, 64], narrow
    elif num_layers in _UNITS:
        narrow = num_layers >= 50
        return list(_UNITS[num_layers]), [64, 256, 512, 1024, 2048] if narrow else [64, 64, 128, 256, 512], narrow
    raise ValueError(f"there is no residual network of {num_layers} layers for images of this size")
