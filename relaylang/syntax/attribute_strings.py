"""Attributes whose strings are one of a few words, or the name of an element type."""

from __future__ import annotations

from relaylang.diagnostics.suggest import did_you_mean
from relaylang.ops.domains import CHOICES as CHOICES
from relaylang.ops.domains import TWO_LAYOUTS, listed
from relaylang.syntax.literals import is_dtype
from relaylang.syntax.synonyms import OTHER_DTYPES

_SPATIAL = "DHW"
_DTYPES = (
    "float32",
    "float16",
    "float64",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)


def not_a_choice(op: str, name: str, value: object) -> tuple[str, str | None] | None:
    """For a wrong string: the rule that it breaks, and the likely word, if any. None for a string that is allowed."""
    if value.__class__ is not str:
        return None
    words = CHOICES.get((op, name))
    text = str(value)
    if words is not None and text not in words and (text or not name.endswith("dtype")):
        meant = words[0] if len(words) == 1 else OTHER_DTYPES.get(text.lower()) or did_you_mean(text, words)
        return f"must be {listed(words)}", meant if meant in words else None
    if name.endswith("layout"):
        return _not_a_layout(op, name, text)
    if name.endswith("dtype") and text and not is_dtype(text):
        return "must be an element type", OTHER_DTYPES.get(text.lower()) or did_you_mean(text, _DTYPES)
    return None


def _not_a_layout(op: str, name: str, layout: str) -> tuple[str, str | None] | None:
    """The rule that a layout breaks. Convolutions take height before width only: TVM compiles no other order."""
    two = TWO_LAYOUTS.get(op)
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
