"""How ConvertLayout brings an operator into the layouts that are asked for: which words it takes, and the call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylang.diagnostics import Diagnostic, did_you_mean, error
from relaylang.ir import Call, Expr
from relaylang.ops import get
from relaylang.ops.extensions import find
from relaylang.ops.layouts import fitted, is_layout, places, whole
from relaylang.passes.layout.registry import CONVERT, LayoutConfig
from relaylang.rules.layout.rule import changed
from relaylang.syntax.choices import not_a_choice

_PACKED = re.compile(r"NCHW[1-9]\d*c")


@dataclass(frozen=True)
class Conversion:
    """An operator's layouts: `axes` of the data, the attributes that name its layout, the kernel's `axes` and attribute,
    and the kernel layouts that go with data layouts where none is asked for."""

    axes: str
    data: tuple[str, ...]
    kernel_axes: str = ""
    kernel: str = ""
    kernels: Mapping[str, str] = field(default_factory=dict)
    depthwise: Mapping[str, str] = field(default_factory=dict)
    rois: bool = False
    only: tuple[str, ...] = ()
    packed: bool = False
    skips: bool = False

    def words(self) -> int:
        return 2 if self.kernel or self.rois else 1


_CONV_2D = {"NCHW": "OIHW", "NHWC": "HWIO"}
_DEPTHWISE = {"NHWC": "HWOI"}


def _conv(axes: str, kernel_axes: str, kernels: Mapping[str, str], **more: Any) -> Conversion:
    return Conversion(axes, ("data_layout",), kernel_axes, "kernel_layout", kernels, **more)


def _pool(axes: str) -> Conversion:
    return Conversion(axes, ("layout", "out_layout"))


def _resize(axes: str) -> Conversion:
    return Conversion(axes, ("layout",))


_AXES = {1: "NCW", 2: "NCHW", 3: "NCDHW"}

CONVERSIONS: dict[str, Conversion] = {
    "nn.conv1d": _conv("NCW", "OIW", {"NCW": "OIW", "NWC": "WIO"}),
    "nn.conv2d": _conv("NCHW", "OIHW", {**_CONV_2D, "HWNC": "HWOI"}, depthwise=_DEPTHWISE, packed=True, skips=True),
    "nn.conv3d": _conv("NCDHW", "OIDHW", {"NCDHW": "OIDHW", "NDHWC": "DHWIO"}),
    "nn.conv1d_transpose": _conv("NCW", "IOW", {"NCW": "IOW", "NWC": "WIO"}),
    "nn.conv2d_transpose": _conv("NCHW", "IOHW", {"NCHW": "IOHW", "NHWC": "HWIO"}),
    "nn.conv3d_transpose": _conv("NCDHW", "IODHW", {"NCDHW": "IODHW", "NDHWC": "DHWOI"}),
    "nn.deformable_conv2d": _conv("NCHW", "OIHW", _CONV_2D, skips=True),
    "nn.conv2d_backward_weight": Conversion(
        "NCHW", ("data_layout", "kernel_layout"), "OIHW", "out_layout", {**_CONV_2D, "HWNC": "HWOI"}
    ),
    "qnn.conv2d": _conv("NCHW", "OIHW", _CONV_2D, depthwise=_DEPTHWISE),
    "qnn.conv2d_transpose": _conv("NCHW", "IOHW", {"NCHW": "IOHW", "NHWC": "HWIO"}),
    **{
        f"nn.{kind}_pool{n}d": _pool(axes)
        for n, axes in _AXES.items()
        for kind in ("max", "avg", "adaptive_max", "adaptive_avg")
    },
    "nn.global_max_pool2d": _pool("NCHW"),
    "nn.global_avg_pool2d": _pool("NCHW"),
    "qnn.avg_pool2d": Conversion("NCHW", ("layout", "out_layout"), only=("NCHW", "NHWC")),
    "nn.upsampling": _resize("NCHW"),
    "nn.upsampling3d": _resize("NCDHW"),
    **{f"image.resize{n}d": _resize(axes) for n, axes in _AXES.items()},
    "vision.roi_align": Conversion("NCHW", ("layout",), rois=True, only=("NCHW", "NHWC")),
    "vision.roi_pool": Conversion("NCHW", ("layout",), rois=True, only=("NCHW", "NHWC")),
}


def problem_with(name: str, layouts: Any) -> Diagnostic | None:
    """What is wrong with the layouts that are asked for of an operator."""
    if name in CONVERT:
        return None
    if not isinstance(name, str):
        return error("R0501", f"ConvertLayout: {name!r} is no name of an operator")
    title = f"ConvertLayout cannot bring {name} into {layouts!r}"
    known = CONVERSIONS.get(name)
    if known is None:
        if find(name) is not None:
            return None  # it takes the layout of what it is used on
        near = did_you_mean(name, list(CONVERSIONS))
        title = f"ConvertLayout: there is no operator {name}"
        notes = [f"did you mean {near}?"] if near else [f"it converts {', '.join(sorted(CONVERSIONS))}"]
        return error("R0501", title, notes=notes)
    if isinstance(layouts, str) or not isinstance(layouts, Sequence) or not all(isinstance(w, str) for w in layouts):
        return error("R0501", title, notes=['layouts are a list of texts, such as ["NHWC", "default"]'])
    if not 1 <= len(layouts) <= known.words():
        what = "of the data and of the kernel" if known.kernel else "of the data, and default" if known.rois else "of the data"
        return error("R0501", title, notes=[f"{name} takes the layout {what}"])
    data = layouts[0]
    kernel = layouts[1] if len(layouts) > 1 else "default"
    if not is_layout(data) or sorted(whole(data)) != sorted(known.axes):
        return error("R0501", title, notes=[f"{data!r} is no layout of the axes {known.axes}"])
    if known.only and data not in known.only:
        return error("R0501", title, notes=[f"its layouts are {' and '.join(known.only)}"])
    for attribute, word in ((known.data[0], data), (known.kernel, kernel)):
        said = not_a_choice(name, attribute, word) if word != "default" else None
        if said is not None:
            return error("R0501", title, notes=[f"{word!r} {said[0]}"])
    if known.rois and kernel != "default":
        return error("R0501", title, notes=["the layout of the regions is default"])
    if known.kernel and kernel != "default" and (not is_layout(kernel) or sorted(whole(kernel)) != sorted(known.kernel_axes)):
        return error("R0501", title, notes=[f"{kernel!r} is no layout of the axes {known.kernel_axes}"])
    if known.kernel and kernel == "default" and data not in known.kernels:
        have = ", ".join(known.kernels)
        return error("R0501", title, notes=[f"the kernel's layout must be given; there is a default beside {have}"])
    return None


def _shape(ty: Any) -> tuple[Any, ...]:
    return tuple(ty.shape)


def is_depthwise(attrs: Any, data: Sequence[Any], weight: Sequence[Any]) -> bool:
    """Whether every channel has one kernel of its own: as many come in as go out as there are groups."""
    channels, made = places(attrs.data_layout, "C"), places(attrs.kernel_layout, "O")
    if len(channels) != 1 or len(made) != 1:
        return False
    return bool(data[channels[0]] == weight[made[0]] == attrs.groups)


def converted(name: str, attrs: Any, inputs: Sequence[Expr], types: Sequence[Any], layouts: Sequence[str]) -> Call | None:
    """The call of an operator in the layouts that are asked for; None where it is to be left alone."""
    known = CONVERSIONS[name]
    if known.skips and LayoutConfig.current is not None and LayoutConfig.current.check_skip():
        return None
    data = layouts[0]
    kernel = layouts[1] if len(layouts) > 1 else "default"
    values = dict.fromkeys([f for f in known.data if f in type(attrs).schema], data)
    new_name = name
    if known.kernel:
        weight = types[2 if name == "nn.deformable_conv2d" else 1]
        alone = bool(known.depthwise) and is_depthwise(attrs, _shape(types[0]), _shape(weight))
        if kernel == "default":
            kernel = known.depthwise[data] if alone and data in known.depthwise else known.kernels[data]
        if known.packed and _PACKED.fullmatch(data):
            new_name = "nn.contrib_conv2d_NCHWc"
            if alone and attrs.groups > 1:
                new_name = "nn.contrib_depthwise_conv2d_NCHWc"
                kernel = fitted(kernel, attrs.kernel_layout, _shape(weight))
        values[known.kernel] = kernel
        if known.kernel != "out_layout":
            values["out_layout"] = ""
    return Call(get(new_name), inputs, changed(attrs, **values))
