"""Which values an attribute may have beyond its kind: words, bounds of numbers, lengths of lists, axes of an argument.

The checker asks `problem_of` before it runs an operator's relation, so that no relation repeats these. The reader asks
`CHOICES`, too, and suggests the word that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any as AnyValue

from relaylang.ir.types import TensorType, Type
from relaylang.ops.layouts import usual
from relaylang.ops.record import AttrField, Op
from relaylang.ops.scales import CONV_RESULTS, DENSE_RESULTS, MATMUL_RESULTS, QUANTIZED, REALS, REQUANTIZED
from relaylang.ops.shapes import out_of_range

#: TVM holds these numbers in 32 bits.
_MOST = 2**31 - 1
#: The most dimensions of an array in numpy 1.
MOST_DIMENSIONS = 32

_RESIZE = ("nearest_neighbor", "linear", "cubic")
_COORDINATES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
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
    ("nn.depth_to_space", "mode"): ("DCR", "CDR", "CRD"),
    ("nn.nll_loss", "reduction"): ("mean", "sum", "none"),
    ("qnn.requantize", "rounding"): ("None", "UPWARD", "TONEAREST"),
    ("scatter_elements", "reduction"): ("update", "add", "mul", "mean", "min", "max"),
    ("scatter_nd", "mode"): ("update", "add", "mul", "min", "max"),
    ("vision.all_class_non_max_suppression", "output_format"): ("onnx", "tensorflow"),
    ("vision.roi_align", "mode"): ("avg", "max"),
    **{(op, "layout"): ("NCHW", "NHWC") for op in ("nn.depth_to_space", "nn.space_to_depth")},
}

#: Words that the checker alone asks for: TVM's reader takes others.
_CHECKED: dict[tuple[str, str], tuple[str, ...]] = {
    **{(op, "layout"): ("NCHW", "NHWC") for op in ("vision.roi_align", "vision.roi_pool")},
    ("nn.correlation", "layout"): ("NCHW",),
    ("nn.sparse_conv2d", "layout"): ("NHWC", "NCHW"),
    ("qnn.quantize", "out_dtype"): QUANTIZED,
    ("qnn.dequantize", "out_dtype"): REALS,
    ("qnn.requantize", "out_dtype"): REQUANTIZED,
    ("qnn.conv2d", "out_dtype"): CONV_RESULTS,
    ("qnn.conv2d_transpose", "out_dtype"): CONV_RESULTS,
    ("qnn.dense", "out_dtype"): DENSE_RESULTS,
    ("qnn.batch_matmul", "out_dtype"): MATMUL_RESULTS,
    **{(f"random.{op}", "out_dtype"): ("float32", "float64") for op in ("uniform", "normal")},
}

#: Operators of a tensor in one of two layouts; the channels of the first one may be split (`NCHW16c`).
TWO_LAYOUTS: dict[str, tuple[str, str]] = {
    "image.resize1d": ("NCW", "NWC"),
    **{f"{dyn}image.resize2d": ("NCHW", "NHWC") for dyn in _DYN},
    "image.resize3d": ("NCDHW", "NDHWC"),
    "image.crop_and_resize": ("NCHW", "NHWC"),
    **{f"{dyn}nn.upsampling": ("NCHW", "NHWC") for dyn in _DYN},
    **{f"{dyn}nn.upsampling3d": ("NCDHW", "NDHWC") for dyn in _DYN},
}

#: The element types of most programs, the commonest first.
ELEMENT_TYPES = (
    "float32",
    "int32",
    "int8",
    "uint8",
    "bool",
    "int64",
    "float16",
    "float64",
    "int16",
    "uint16",
    "uint32",
    "uint64",
    "bfloat16",
)


#: Usual values of attributes that take others, too.
_USUAL: dict[tuple[str, str], tuple[str, ...]] = {
    ("qnn.requantize", "compute_dtype"): ("None", "float32", "float64", "int64"),
    ("nn.bitpack", "pack_type"): ("uint32", "uint8", "uint16", "uint64"),
    **{(f"{qnn}nn.contrib_dense_pack", "weight_layout"): ("NC", "NC8n", "NC16n") for qnn in ("", "q")},
    ("nn.conv2d_backward_weight", "kernel_layout"): ("NCHW", "NHWC"),
    ("nn.conv2d_backward_weight", "out_layout"): ("OIHW", "HWIO"),
    ("relay.op.annotation.simulated_quantize", "rounding"): ("round",),
}
#: Attributes whose element type counts or numbers things.
_COUNTING = frozenset({"argsort", "topk", "dyn.topk", "shape_of", "vm.shape_of", "ndarray_size", "searchsorted"})


def offered(op: Op, field: AttrField) -> tuple[AnyValue, ...]:
    """The values of an attribute that editors offer: all of an enumeration, the usual element types and layouts."""
    key = op.name, field.name
    words = CHOICES.get(key) or _CHECKED.get(key) or _USUAL.get(key)
    if words is not None:
        return tuple(word for word in words if word)
    if field.kind == "bool":
        return True, False
    if field.kind != "str":
        return ()
    if field.name.endswith("dtype"):
        usually = re.search(rf"\b{field.name}='(\w+)'", op.python or "")
        first = usually[1] if usually is not None else "int32" if op.name in _COUNTING else "float32"
        return tuple(dict.fromkeys([first, *(("int64",) if op.name in _COUNTING else ()), *ELEMENT_TYPES]))
    if not field.name.endswith("layout"):
        return ()
    if field.name == "layout" and op.name in TWO_LAYOUTS:
        return TWO_LAYOUTS[op.name]
    data = op.schema.get("data_layout") or op.schema.get("layout")
    return usual(str(field.default or (data.default if data is not None else "NCHW")))


_POSITIVE, _COUNT = (1, _MOST), (0, _MOST)
#: The least and the greatest number, by attribute; the elements of lists are numbers of this kind.
_BOUNDS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        ("strides", "dilation", "dilations", "pool_size", "groups", "deformable_groups", "block_shape", "block_size",
         "num_groups", "tile_size", "tile_N", "tile_K", "n_fft", "hop_length", "win_length", "stride", "stride1", "stride2",
         "pooled_size", "feature_stride", "num_classes", "output_size"),
        _POSITIVE,
    ),
    **dict.fromkeys(
        ("padding", "paddings", "crops", "output_padding", "kernel_size", "num_samples", "max_displacement", "units",
         "channels", "max_detections", "target_shape", "crop_size", "batch_dims"),
        _COUNT,
    ),
    "num_newaxis": (0, MOST_DIMENSIONS),
    **dict.fromkeys(("reps", "repeats"), (0, 1 << 62)),
    **dict.fromkeys(("activation_bits", "weight_bits", "data_bits", "bits"), (1, 32)),
}  # fmt: skip
#: Operators for which an attribute of that name has other bounds, or none.
_OWN_BOUNDS: dict[tuple[str, str], tuple[int, int] | None] = {
    ("strided_slice", "strides"): None,
    ("dyn.strided_slice", "strides"): None,
    ("take", "batch_dims"): (-_MOST, _MOST),
    ("nn.lrn", "size"): (1, 1 << 16),
    **{(f"image.resize{n}d", "size"): _COUNT for n in (1, 2, 3)},
    ("nn.correlation", "kernel_size"): _POSITIVE,
    ("vision.roi_align", "sample_ratio"): (-_MOST, 1 << 16),
}

#: Attributes that name axes of an argument, where the operator's relation does not look at them.
_AXES: dict[tuple[str, str], int] = {
    **{
        (op, "axis"): 0
        for op in ("argsort", "sort", "cumsum", "cumprod", "nn.lrn", "qnn.softmax", "scatter_elements", "nn.l2_normalize")
    },
    ("dyn.strided_slice", "axes"): 0,
    ("fixed_point_multiply_per_axis", "axes"): 0,
    ("nn.bitpack", "pack_axis"): 0,
}

#: Attributes that are real numbers of a limited size.
_REALS = ("scale_h", "scale_w", "scale_d", "spatial_scale")
#: Attributes of one operator that are real numbers of a limited size.
_OWN_REALS = {("qnn.leaky_relu", "alpha")}

#: Operators whose real numbers are factors of extents.
_SCALED = ("nn.upsampling", "nn.upsampling3d")

#: How many numbers a list has.
_LENGTHS: dict[tuple[str, str], int] = {
    ("vision.multibox_prior", "steps"): 2,
    ("vision.multibox_prior", "offsets"): 2,
    ("vision.multibox_transform_loc", "variances"): 4,
}


@cache
def _plan(name: str, fields: tuple[tuple[str, str], ...]) -> tuple[tuple[AnyValue, ...], ...]:
    """The checks of each attribute: its name, words, bounds, the axes' argument, length, and whether it is real."""
    plan = []
    for field, kind in fields:
        key = name, field
        words = CHOICES.get(key) or _CHECKED.get(key)
        bounds = _OWN_BOUNDS[key] if key in _OWN_BOUNDS else _BOUNDS.get(field)
        if kind not in ("int", "Ints", "NestedInts"):
            bounds = None
        axes, length = _AXES.get(key), _LENGTHS.get(key)
        real = kind == "float" and (field in _REALS or key in _OWN_REALS)
        if words or bounds or axes is not None or length is not None or real:
            plan.append((field, words, bounds, axes, length, real))
    return tuple(plan)


_PLANS: dict[int, tuple[tuple[AnyValue, ...], ...]] = {}


def problem_of(op: Op, attrs: AnyValue, types: Sequence[Type]) -> tuple[str, int | None] | None:
    """The error of a call's attributes, in a relation's words, and the number of the argument that it concerns."""
    plan = _PLANS.get(id(op))
    if plan is None:
        plan = _PLANS[id(op)] = _plan(op.name, tuple((f.name, f.kind) for f in op.schema.values()))
    for name, words, bounds, axes, length, real in plan:
        value = getattr(attrs, name, None)
        if value is None:
            continue
        if bounds is not None:
            wrong = _outside(value, *bounds)
            if wrong is not None:
                return f"{name}={shown(value)}: {wrong}", None
        if words is not None and value.__class__ is str and value not in words:
            return f'{name}="{value[:60]}" must be {listed(words)}', None
        if axes is not None and axes < len(types) and isinstance(types[axes], TensorType):
            wrong = _no_axes(value, len(types[axes].shape))  # type: ignore[attr-defined]
            if wrong is not None:
                return f"{name}={shown(value)} {wrong}", axes
        if length is not None and len(value) != length:
            return f"{name}={shown(value)} must have {length} numbers", None
        if real:
            if not abs(value) <= _MOST:
                return f"{name}={value} must be a number of at most {_MOST}", None
            if not value and op.name in _SCALED:
                return f"{name}={value} must be positive", None
    return None


def listed(words: Sequence[str]) -> str:
    """Words of a choice in a message: `"a", "b" or "c"`."""
    *others, last = [f'"{word}"' for word in words if word]
    return f"{', '.join(others)} or {last}" if others else last


def shown(value: AnyValue) -> str:
    """An attribute's value in a message."""
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(shown, value[:8])) + (", ..." if len(value) > 8 else "")
        return f"[{inner}]"
    return str(value)


def _outside(value: AnyValue, low: int, high: int) -> str | None:
    if value.__class__ is tuple or value.__class__ is list:
        for part in value:
            wrong = _outside(part, low, high)
            if wrong is not None:
                return wrong
        return None
    if not isinstance(value, int) or low <= value <= high:
        return None
    if value < low:
        return f"{value} must be positive" if low == 1 else f"{value} must not be negative"
    return f"{value} is more than {high}"


def _no_axes(value: AnyValue, rank: int) -> str | None:
    axes = value if isinstance(value, (tuple, list)) else (value,)
    numbers = [a for a in axes if isinstance(a, int)]
    if any(not -rank <= a < rank for a in numbers):
        return out_of_range(rank)
    if len({a % rank for a in numbers if rank}) != len(numbers):
        return "names a dimension twice"
    return None
