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
#: The words by operator and attribute.
CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("nn.pad", "pad_mode"): ("constant", "edge", "reflect"),
    ("nn.mirror_pad", "mode"): ("SYMMETRIC", "REFLECT"),
    ("take", "mode"): ("clip", "wrap", "fast"),
    **{(f"image.resize{n}d", "method"): _RESIZE for n in (1, 2, 3)},
    **{(f"image.resize{n}d", "coordinate_transformation_mode"): _COORDINATES for n in (1, 2, 3)},
    **{(f"image.resize{n}d", "rounding_method"): _ROUNDING for n in (1, 2, 3)},
}
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
    if name.endswith("dtype") and text and not is_dtype(text):
        return "must be an element type", OTHER_DTYPES.get(text.lower()) or did_you_mean(text, _DTYPES)
    return None
