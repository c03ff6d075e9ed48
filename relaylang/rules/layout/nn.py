"""Layout rules of networks' operators: windows, padding, normalisation, products, and those of the qnn dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.ir.types import TensorType, Type
from relaylang.ops import Trait, forms, having
from relaylang.ops.layouts import has_blocks, is_split, parts, places, rank, whole
from relaylang.ops.nn_conv import own_layout
from relaylang.rules.layout.rule import (
    PLAIN,
    InferCorrectLayoutOutput,
    Layouts,
    Rule,
    changed,
    field_types,
    is_scalar,
    shape_at,
)
from relaylang.rules.layout.tensor import joined, moved_axis, two_layouts

Out = InferCorrectLayoutOutput
Types = Sequence["Type | None"]


def stated(*inputs: str, result: str = "data_layout") -> Rule:
    """The layouts that attributes name. Each of `inputs` is an attribute, or `PLAIN` for an operand that stays as it
    is.
    """

    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
        layouts = [PLAIN if name == PLAIN else getattr(attrs, name) for name in inputs]
        out_layout = getattr(attrs, "out_layout", "") or getattr(attrs, result)
        return Out(layouts, [out_layout], attrs)

    return rule


def blocks_stated(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    weight = types[1]
    full = own_layout(attrs, weight.shape) if isinstance(weight, TensorType) else attrs
    return Out([attrs.data_layout, full.kernel_layout], [attrs.out_layout or attrs.data_layout], attrs)


def _whole_space(layout: str, own: str) -> bool:
    """Whether a layout has an operator's axes, and at most the channels in blocks."""
    return sorted(whole(layout)) == sorted(whole(own)) and not any(is_split(layout, c) for c in whole(own) if c != "C")


def follows(others: int = 0, words: tuple[str, ...] = (), blocks: bool = True) -> Rule:
    """Pools and resizing: the operand's layout, if it leaves the spatial axes whole. Where there are `words`, it is one
    of them, or (with `blocks`) the first one with the channels in blocks."""

    def fits(layout: str, own: str) -> bool:
        if not _whole_space(layout, own) or (has_blocks(layout) and not blocks):
            return False
        return not words or layout in words or layout.startswith(words[0])

    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
        layout = attrs.layout
        out = getattr(attrs, "out_layout", "")
        if out and out != layout:
            return Out([layout, *[PLAIN] * others], [out], attrs)
        wanted = new[0] if new is not None else None
        if wanted is not None and wanted != layout and not out and old[0] == layout and fits(wanted, layout):
            layout = wanted
            attrs = changed(attrs, layout=layout)
        return Out([layout, *[PLAIN] * others], [layout], attrs)

    return rule


def pad(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    """A padded axis must not be in blocks."""
    before = old[0]
    rest = [PLAIN] * (len(old) - 1)
    if before is None or rank(before) != len(attrs.pad_width):
        return None
    wanted = new[0] if new is not None else None
    if wanted is None or wanted == before or has_blocks(before):
        return Out([before, *rest], [before], attrs)
    widths = {letter: tuple(width) for (letter, _), width in zip(parts(before), attrs.pad_width)}
    if any(is_split(wanted, letter) and any(width) for letter, width in widths.items()):
        return Out([before, *rest], [before], attrs)
    pad_width = [(0, 0) if size else widths.get(letter, (0, 0)) for letter, size in parts(wanted)]
    return Out([wanted, *rest], [wanted], changed(attrs, pad_width=pad_width))


def along_axis(others: int, results: int = 1, batch: bool = False, name: str = "axis") -> Rule:
    """One axis of the first operand is named, along which others lie; with `batch` the first axis stays the first."""

    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
        shape, before = shape_at(types, 0), old[0]
        if before is None or shape is None or rank(before) != len(shape) or not shape:
            return None
        layout = before
        moved = moved_axis(getattr(attrs, name), len(shape), before, new[0] if new else None)
        if moved is not None and (not batch or (parts(moved[0])[0] == parts(before)[0] and not has_blocks(moved[0]))):
            layout = moved[0]
            attrs = changed(attrs, **{name: moved[1]})
        return Out([layout, *[PLAIN] * others], [layout, *[PLAIN] * (results - 1)], attrs)

    return rule


def l2_normalize(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    shape, before = shape_at(types, 0), old[0]
    if before is None or shape is None or rank(before) != len(shape) or has_blocks(before):
        return None
    if new is None or new[0] is None or new[0] == before or not attrs.axis:
        return Out([before], [before], attrs)
    letters = [parts(before)[a % len(shape)][0] for a in attrs.axis]
    return Out([new[0]], [new[0]], changed(attrs, axis=[p for c in letters for p in places(new[0], c)]))


def dense(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    shape = shape_at(types, 0)
    if shape is None or len(shape) != 2:
        return None
    return Out(["NC", getattr(attrs, "weight_layout", "NC"), *[PLAIN] * (len(old) - 2)], ["NC"], attrs)


def bias_add(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    return along_axis(1)(attrs, new, old, types)


# The qnn dialect: scales and zero points stay as they are, and lie along an axis where they are vectors.


def quantised(scale: int, count: int) -> Rule:
    """quantize, dequantize, requantize: `scale` is the number of the operand that may lie along the axis."""

    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
        shape, before = shape_at(types, 0), old[0]
        rest = [PLAIN] * (count - 1)
        if before is None or shape is None or rank(before) != len(shape):
            return None
        wanted = new[0] if new is not None else None
        if wanted is None or wanted == before or not shape or has_blocks(before):
            return Out([before, *rest], [before], attrs)
        letter = parts(before)[attrs.axis % len(shape)][0]
        if not (is_scalar(types[scale]) and is_scalar(types[scale + 1])) and is_split(wanted, letter):
            wanted = whole(wanted)
        at = places(wanted, letter)
        return Out([wanted, *rest], [wanted], changed(attrs, axis=at[0])) if at else None

    return rule


def qnn_binary(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    if not all(is_scalar(types[i]) for i in (2, 3, 4, 5)):
        return None
    layouts = two_layouts(new, old, types)
    return None if layouts is None else Out([*layouts[0], *[PLAIN] * 6], [layouts[1]], attrs)


def qnn_concatenate(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    count = len(field_types(types, 0))
    layouts = joined(attrs, new and new[:count], old[:count], types)
    if layouts is None:
        return None
    return Out([*[layouts[0]] * count, *[PLAIN] * (len(old) - count)], [layouts[0]], layouts[1])


def qnn_unary(attrs: Any, new: Layouts | None, old: Layouts, types: Types) -> Out | None:
    layout = (new or old)[0]
    if layout is None:
        return None
    return Out([layout, *[PLAIN] * (len(old) - 1)], [layout], attrs)


_CONV = stated("data_layout", "kernel_layout")
_QNN_CONV = stated("data_layout", "kernel_layout", *[PLAIN] * 4)
_OTHER_FORMS = (Trait.QUANTISED, Trait.BLOCKED)
#: The layouts of operators that resize, by the number of their spatial axes.
_WORDS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}

RULES: dict[str, Rule] = {
    **dict.fromkeys(having(Trait.CONV, without=_OTHER_FORMS), _CONV),
    **dict.fromkeys(having(Trait.CONV_TRANSPOSE, without=_OTHER_FORMS), _CONV),
    **dict.fromkeys(
        [
            "nn.bitserial_conv2d",
            "image.dilation2d",
            "nn.contrib_conv2d_gemm_without_weight_transform",
            "nn.contrib_conv2d_winograd_without_weight_transform",
            "nn.contrib_conv3d_winograd_without_weight_transform",
        ],
        _CONV,
    ),
    **dict.fromkeys(having(Trait.CONV, Trait.BLOCKED), blocks_stated),
    "nn.conv2d_backward_weight": lambda attrs, new, old, types: Out(
        [attrs.data_layout, attrs.kernel_layout], [attrs.out_layout or attrs.data_layout], attrs
    ),
    "nn.deformable_conv2d": stated("data_layout", "data_layout", "kernel_layout"),
    "nn.correlation": stated("layout", "layout", result="layout"),
    "vision.roi_align": stated("layout", PLAIN, result="layout"),
    "vision.roi_pool": stated("layout", PLAIN, result="layout"),
    **dict.fromkeys(having(Trait.POOL, without=_OTHER_FORMS), follows()),
    **dict.fromkeys([*having(Trait.ADAPTIVE_POOL), *having(Trait.GLOBAL_POOL)], follows()),
    "nn.upsampling": follows(words=_WORDS[2]),
    "nn.upsampling3d": follows(words=_WORDS[3]),
    "dyn.nn.upsampling": follows(2, words=_WORDS[2]),
    "dyn.nn.upsampling3d": follows(3, words=_WORDS[3]),
    **{f"image.resize{n}d": follows(words=words, blocks=False) for n, words in _WORDS.items()},
    "nn.pad": pad,
    "nn.mirror_pad": pad,
    "nn.bias_add": bias_add,
    "nn.prelu": along_axis(1),
    "nn.batch_norm": along_axis(4, results=3),
    "nn.layer_norm": along_axis(2),
    "nn.instance_norm": along_axis(2, batch=True),
    "nn.l2_normalize": l2_normalize,
    "nn.dense": dense,
    "nn.contrib_dense_pack": dense,
    "qnn.dense": dense,
    "qnn.contrib_dense_pack": dense,
    **dict.fromkeys(having(Trait.CONV, Trait.QUANTISED), _QNN_CONV),
    **dict.fromkeys(having(Trait.CONV_TRANSPOSE, Trait.QUANTISED), _QNN_CONV),
    "qnn.avg_pool2d": follows(4),
    "qnn.quantize": quantised(1, 3),
    "qnn.dequantize": quantised(1, 3),
    "qnn.requantize": quantised(1, 5),
    **dict.fromkeys(forms(Trait.QUANTISED, Trait.BINARY), qnn_binary),
    "qnn.concatenate": qnn_concatenate,
    **dict.fromkeys(forms(Trait.QUANTISED, Trait.UNARY), qnn_unary),
    "qnn.hardswish": qnn_unary,
}
