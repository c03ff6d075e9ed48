"""Why we answer otherwise than TVM: rules, tried in order. A difference that none of them names fails the tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

#: (operators as a regular expression, whether a difference is of this kind: theirs, ours, attributes -> bool, the reason)
Rule = tuple[str, Callable[[str, str, dict[str, Any]], bool], str]


def _accepted(theirs: str, ours: str, attrs: dict[str, Any]) -> bool:
    return theirs.startswith("= ") and ours.startswith("refused")


def _refused(theirs: str, ours: str, attrs: dict[str, Any]) -> bool:
    return theirs.startswith("refused") and ours.startswith("= ")


def _negative(theirs: str, ours: str, attrs: dict[str, Any]) -> bool:
    return _accepted(theirs, ours, attrs) and re.search(r"[\[,]-\d", theirs) is not None


def _void(theirs: str, ours: str, attrs: dict[str, Any]) -> bool:
    return _accepted(theirs, ours, attrs) and re.search(r"(^= |[(,])\[", theirs) is not None


def _tuple(theirs: str, ours: str, attrs: dict[str, Any]) -> bool:
    return _accepted(theirs, ours, attrs) and "must be a tensor, not `(" in ours


def _long(theirs: str, ours: str, attrs: dict[str, Any]) -> bool:
    return _accepted(theirs, ours, attrs) and re.search(r"must have \d(, \d or \d)?( positive)? numbers", ours) is not None


def _said(words: str) -> Callable[[str, str, dict[str, Any]], bool]:
    return lambda theirs, ours, attrs: _accepted(theirs, ours, attrs) and words in ours


#: Our checker refuses attributes that no kernel can compute with; it says this of them.
_OF_NO_USE = re.compile(
    r'must be ("|positive|a number of)|must not be negative|is more than|is out of range|must have \d+ numbers'
    r"|does not divide|is the batch_axis|anchors, which want|is not a column"
)
NO_KERNEL = "TVM's relation does not look at the attribute; no kernel computes with this value"


def _matches(pattern: str) -> Callable[[str, str, dict[str, Any]], bool]:
    return lambda theirs, ours, attrs: _accepted(theirs, ours, attrs) and re.search(pattern, ours) is not None


_EXTENTS = (
    r"(has|have) the (batch )?extent|which does not divide by|elements are not|dimensions, but the layout|"
    r"must have (a row|a value|\d+ channels) for each|must have \d+ entries|has \d+ channels, but|numbers for each|"
    r"has a batch of|must be `Tensor|must have scores of|takes \d+ inputs|which k=|no pixels|"
    r"no images|no entries (to choose|along)|(zero points|scales) for|"
    r"differ along axis|cannot be mirrored|must have at least \d+ numbers|must have \d+ dimensions, but|"
    r"must have the extents|names? \d+ dimensions|must have blocks|must have a class|must have cells"
)
_NUMBERS = (
    r"must (not )?be (positive|negative|two axes|an odd number)|is out of range for a tensor|must be divided by a positive|"
    r"is not a layout|must have an axis"
)
#: Why calls are refused that TVM accepts though no kernel could compute them: `relaylang.ops.takes` has the rules.
ELEMENTS = "TVM does not look at the element type; its compiler refuses it, or no value could be meant"
MIXED = "TVM does not compare the element types; its compiler refuses to mix them, or reads one as the other"
RANK = "TVM does not look at the rank; its kernels read the first numbers, or fail"
TUPLE = "TVM does not look whether the argument is a tensor; nothing can compute it of a tuple"
EXTENTS = "TVM does not compare the extents; its kernels read beside the data"
WIDTHS = "TVM's compiler refuses elements of another width"
STRICTER = frozenset({ELEMENTS, MIXED, RANK, TUPLE, EXTENTS, WIDTHS, NO_KERNEL})

RULES: tuple[Rule, ...] = (
    (".*", _negative, "TVM lets extents go below zero; a window or a size that makes them so is refused here"),
    (".*", _void, "TVM makes a tensor type without an element type where dtype is not given"),
    (".*", _tuple, TUPLE),
    (".*", _matches(r"must be a tensor of (whole|real)\b"), ELEMENTS),
    (".*", _matches(r"must be of \w+, as the first argument"), MIXED),
    (".*", _matches(r"must be a (scalar|tensor of \d dimensions?), not|must have the first argument's"), RANK),
    (".*", lambda t, o, a: _accepted(t, o, a) and _OF_NO_USE.search(o) is not None, NO_KERNEL),
    (".*", _matches(r"must have an extent of \d+ at axis"), EXTENTS),
    (".*", _long, "TVM reads the first numbers of an attribute and does not look whether there are more"),
    (".*", _said("names a dimension twice"), "TVM takes two dimensions away where one is named twice, or dies of it"),
    (
        "broadcast_to|collapse_sum_to",
        _said("does not broadcast"),
        "TVM believes the shape attribute; the shapes do not broadcast, and its kernels fail",
    ),
    (
        "matrix_set_diag",
        _said("argument 2 (diagonal)"),
        "TVM's relation has the checks of the diagonal's shape and drops their results; its kernel reads beside the data",
    ),
    ("nn.matmul", _said("sums over"), "TVM compares the summed extents of two matrices only where units is given"),
    ("nn.fifo_buffer", _said("argument 2 (buffer)"), "TVM does not compare buffer and data; its kernel asserts it"),
    ("scatter_nd", _said("argument 3 (updates)"), "TVM does not compare the updates' shape with what they replace"),
    (
        "sliding_window",
        _said("window_shape and strides"),
        "TVM drops the axes behind a window that is too short, and reads beyond one that is too long",
    ),
    (".*", _matches(_EXTENTS), EXTENTS),
    ("reinterpret", _matches(r"which has \d+ bits"), WIDTHS),
    ("pack_type|nn.bitpack", _matches("must be an unsigned integer type"), ELEMENTS),
    (r"unravel_index|.*sparse_to_dense|qnn\..*", _matches("must be a scalar or a vector|must have at most"), RANK),
    ("strided_slice", _refused, "TVM takes an unknown slice_mode for one without ends counted from behind"),
    ("auto_scheduler_layout_transform", _said("is not a layout"), "TVM takes any text for a layout, one without axes"),
    ("stft", _accepted, "TVM counts frames with a window of no or negative length, or of a tensor of any rank"),
    ("nn.correlation", _said("must have 4 dimensions"), "TVM's formula reads four dimensions and does not look for more"),
    (
        "nn.contrib_conv3d_winograd_without_weight_transform",
        lambda t, o, a: t.startswith("= ") and o.startswith("= "),
        "where the depth is not known TVM leaves the height as it is and takes the depth's sum for it",
    ),
    ("qnn.dequantize", _refused, "TVM fails to compare an unknown extent of the zero points with 1"),
    ("dyn.image.resize2d", _refused, "a whole number in a list of real ones is a real number here"),
    ("cumsum|cumprod", _said("exclusive must be True or False"), "TVM takes None for a truth value"),
    ("nn.contrib_dense_pack", _said("units must be a whole number"), "TVM takes 1.5 units and does not use them"),
    ("nn.contrib_dense_pack", _refused, "TVM wants units to be given, and does not use it"),
    (".*", _matches(_NUMBERS), NO_KERNEL),
    ("arg.*|mean|prod", lambda t, o, a: "axis" in a, "TVM takes two dimensions away where one is named twice"),
)


def agree(theirs: str, ours: str) -> bool:
    """Whether two answers say the same. Where TVM dies, a refusal is the right answer."""
    if theirs.startswith("= "):
        return theirs == ours
    return not ours.startswith("= ")


def reason(op: str, attrs: dict[str, Any], theirs: str, ours: str) -> str | None:
    """Why we answer otherwise, or None where there is no reason."""
    for operators, fits, why in RULES:
        if re.fullmatch(operators, op) and fits(theirs, ours, attrs):
            return why
    return None
