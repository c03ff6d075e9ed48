"""Attributes whose strings are one of a few words, or the name of an element type."""

from __future__ import annotations

from relaylang.suggest import did_you_mean
from relaylang.syntax.othernames import OTHER_DTYPES
from relaylang.syntax.values import is_dtype

_RESIZE = ("nearest_neighbor", "linear", "cubic")
_COORDINATES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip
_ROUNDING = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
_DYN = ("", "dyn.")
#: The words by operator and attribute.
CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("nn.pad", "pad_mode"): ("constant", "edge", "reflect"),
    ("nn.mirror_pad", "mode"): ("SYMMETRIC", "REFLECT"),
    ("take", "mode"): ("clip", "wrap", "fast"),
    **{(f"image.resize{n}d", "method"): _RESIZE for n in (1, 2, 3)},
    **{(f"image.resize{n}d", "coordinate_transformation_mode"): _COORDINATES for n in (1, 2, 3)},
    **{(f"image.resize{n}d", "rounding_method"): _ROUNDING for n in (1, 2, 3)},
    ("dyn.nn.pad", "pad_mode"): ("constant", "edge", "reflect"),
    ("dyn.image.resize2d", "method"): _RESIZE,
    ("dyn.image.resize2d", "coordinate_transformation_mode"): _COORDINATES,
    ("dyn.image.resize2d", "rounding_method"): _ROUNDING,
    **{(f"{dyn}nn.upsampling", "method"): ("nearest_neighbor", "bilinear", "bicubic", *_RESIZE[1:]) for dyn in _DYN},
    **{(f"{dyn}nn.upsampling3d", "method"): ("nearest_neighbor", "trilinear", *_RESIZE[1:]) for dyn in _DYN},
    **{(f"{dyn}nn.upsampling3d", "coordinate_transformation_mode"): _COORDINATES for dyn in _DYN},
    **{(f"{dyn}strided_slice", "slice_mode"): ("end", "size") for dyn in _DYN},
    **{(f"{dyn}topk", "ret_type"): ("both", "values", "indices") for dyn in _DYN},
    ("image.crop_and_resize", "method"): ("bilinear", *_RESIZE),
    ("image.grid_sample", "method"): ("bilinear", "nearest", "bicubic"),
    ("image.grid_sample", "padding_mode"): ("zeros", "border", "reflection"),
    ("image.grid_sample", "layout"): ("NCHW", "NCDHW"),
    ("meshgrid", "indexing"): ("ij", "xy"),
    ("nn.depth_to_space", "mode"): ("DCR", "CDR"),
    ("nn.nll_loss", "reduction"): ("mean", "sum", "none"),
    ("qnn.requantize", "rounding"): ("None", "UPWARD", "TONEAREST"),
    ("scatter_elements", "reduction"): ("update", "add", "mul", "mean", "min", "max"),
    ("scatter_nd", "mode"): ("update", "add", "mul", "min", "max"),
    ("vision.all_class_non_max_suppression", "output_format"): ("onnx", "tensorflow"),
    ("vision.roi_align", "mode"): ("avg", "max"),
    **{(op, "layout"): ("NCHW", "NHWC") for op in ("nn.depth_to_space", "nn.space_to_depth")},
}
#: Operators of a tensor that is in one of two layouts; the channels of the first one may be split (`NCHW16c`).
_TWO_LAYOUTS = {
    "image.resize1d": ("NCW", "NWC"),
    "image.resize2d": ("NCHW", "NHWC"),
    "dyn.image.resize2d": ("NCHW", "NHWC"),
    "image.crop_and_resize": ("NCHW", "NHWC"),
    "nn.upsampling": ("NCHW", "NHWC"),
    "dyn.nn.upsampling": ("NCHW", "NHWC"),
    "image.resize3d": ("NCDHW", "NDHWC"),
    "nn.upsampling3d": ("NCDHW", "NDHWC"),
    "dyn.nn.upsampling3d": ("NCDHW", "NDHWC"),
}
_SPATIAL = "DHW"
_DTYPES = (
    "float32", "float16", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip


def not_a_choice(op: str, name: str, value: object) -> tuple[str, str | None] | None:
    """What a string must be instead, and the one that was meant; None where it may be what it is."""
    if value.__class__ is not str:
        return None
    words = CHOICES.get((op, name))
    if words is not None and value not in words:
        shown = [f'"{word}"' for word in words if word]
        return f"must be {', '.join(shown[:-1])} or {shown[-1]}", did_you_mean(str(value), words)
    text = str(value)
    if name.endswith("layout"):
        return _not_a_layout(op, name, text)
    if name.endswith("dtype") and text and not is_dtype(text):
        return "must be an element type", OTHER_DTYPES.get(text.lower()) or did_you_mean(text, _DTYPES)
    return None


def _not_a_layout(op: str, name: str, layout: str) -> tuple[str, str | None] | None:
    """What a layout must be instead. Convolutions take height before width only: TVM compiles none of the others."""
    two = _TWO_LAYOUTS.get(op)
    if two is not None and name == "layout":
        if layout in two or layout.startswith(two[0]):
            return None
        meant = _in_order(layout)
        return f'must be "{two[0]}" or "{two[1]}"', meant if meant in two else did_you_mean(layout, two)
    if name not in ("data_layout", "kernel_layout", "out_layout") or ("conv" not in op and "dilation" not in op):
        return None
    spatial = [letter for letter in layout if letter in _SPATIAL]
    if len(set(spatial)) != len(spatial) or spatial == sorted(spatial):
        return None
    meant = _in_order(layout)
    return f"must have {' before '.join(sorted(spatial))}", meant


def _in_order(layout: str) -> str:
    """A layout with its spatial axes in order."""
    ordered = iter(sorted([letter for letter in layout if letter in _SPATIAL]))
    return "".join([next(ordered) if letter in _SPATIAL else letter for letter in layout])
