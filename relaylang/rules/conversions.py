"""ConvertLayout: the layouts that a caller may ask for of each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Conversion:
    """An operator's layouts.

    `axes` are those of the data, and `data` the attributes that name its layout. `kernel_axes` and `kernel` are the
    same for the operand `weight`. `kernels` has a kernel's layout by the data's, for callers that ask for none.
    `depthwise` has it for convolutions with a kernel per channel. `only` lists the data's layouts where not all
    permutations do.

    With `rois` a second operand holds regions, whose layout is always "default". `packed` names the form that takes
    data in blocks (NCHW8c); `packed_depthwise` names that for depthwise convolutions. With `skips` a `LayoutConfig` may
    exclude calls.
    """

    axes: str
    data: tuple[str, ...]
    kernel_axes: str = ""
    kernel: str = ""
    kernels: Mapping[str, str] = field(default_factory=dict)
    depthwise: Mapping[str, str] = field(default_factory=dict)
    rois: bool = False
    only: tuple[str, ...] = ()
    packed: str = ""
    packed_depthwise: str = ""
    skips: bool = False
    weight: int = 1

    def words(self) -> int:
        """The number of layouts that a caller may ask for."""
        return 2 if self.kernel or self.rois else 1


_CONV_2D = {"NCHW": "OIHW", "NHWC": "HWIO"}
_DEPTHWISE = {"NHWC": "HWOI"}
_BLOCKS = {"packed": "nn.contrib_conv2d_NCHWc", "packed_depthwise": "nn.contrib_depthwise_conv2d_NCHWc"}


def _conv(axes: str, kernel_axes: str, kernels: Mapping[str, str], **more: Any) -> Conversion:
    return Conversion(axes, ("data_layout",), kernel_axes, "kernel_layout", kernels, **more)


def _pool(axes: str) -> Conversion:
    return Conversion(axes, ("layout", "out_layout"))


def _resize(axes: str) -> Conversion:
    return Conversion(axes, ("layout",))


_AXES = {1: "NCW", 2: "NCHW", 3: "NCDHW"}

RULES: Mapping[str, Conversion] = {
    "nn.conv1d": _conv("NCW", "OIW", {"NCW": "OIW", "NWC": "WIO"}),
    "nn.conv2d": _conv("NCHW", "OIHW", {**_CONV_2D, "HWNC": "HWOI"}, depthwise=_DEPTHWISE, **_BLOCKS, skips=True),
    "nn.conv3d": _conv("NCDHW", "OIDHW", {"NCDHW": "OIDHW", "NDHWC": "DHWIO"}),
    "nn.conv1d_transpose": _conv("NCW", "IOW", {"NCW": "IOW", "NWC": "WIO"}),
    "nn.conv2d_transpose": _conv("NCHW", "IOHW", {"NCHW": "IOHW", "NHWC": "HWIO"}),
    "nn.conv3d_transpose": _conv("NCDHW", "IODHW", {"NCDHW": "IODHW", "NDHWC": "DHWOI"}),
    "nn.deformable_conv2d": _conv("NCHW", "OIHW", _CONV_2D, skips=True, weight=2),
    "nn.conv2d_backward_weight": Conversion(
        "NCHW", ("data_layout", "kernel_layout"), "OIHW", "out_layout", {**_CONV_2D, "HWNC": "HWOI"}
    ),
    "qnn.conv2d": _conv("NCHW", "OIHW", _CONV_2D, depthwise=_DEPTHWISE),
    "qnn.conv2d_transpose": _conv("NCHW", "IOHW", {"NCHW": "IOHW", "NHWC": "HWIO"}),
    **{f"nn.{kind}_pool{n}d": _pool(axes) for n, axes in _AXES.items() for kind in ("max", "avg", "adaptive_max", "adaptive_avg")},
    "nn.global_max_pool2d": _pool("NCHW"),
    "nn.global_avg_pool2d": _pool("NCHW"),
    "qnn.avg_pool2d": Conversion("NCHW", ("layout", "out_layout"), only=("NCHW", "NHWC")),
    "nn.upsampling": _resize("NCHW"),
    "nn.upsampling3d": _resize("NCDHW"),
    **{f"image.resize{n}d": _resize(axes) for n, axes in _AXES.items()},
    "vision.roi_align": Conversion("NCHW", ("layout",), rois=True, only=("NCHW", "NHWC")),
    "vision.roi_pool": Conversion("NCHW", ("layout",), rois=True, only=("NCHW", "NHWC")),
}
