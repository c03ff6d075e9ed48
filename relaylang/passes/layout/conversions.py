"""Conversion of one call to the layouts that ConvertLayout wants: the words it takes, and the new call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from relaylang.diagnostics import Diagnostic, did_you_mean, error
from relaylang.ir import Call, Expr
from relaylang.ops import get
from relaylang.ops.extensions import find
from relaylang.ops.layouts import fitted, is_layout, whole
from relaylang.passes.layout.registry import CONVERT, LayoutConfig
from relaylang.rules.alter_layout import is_depthwise
from relaylang.rules.conversions import RULES
from relaylang.rules.layout.rule import changed
from relaylang.syntax.attribute_strings import not_a_choice

_PACKED = re.compile(r"NCHW[1-9]\d*c")


def problem_with(name: str, layouts: Any) -> Diagnostic | None:
    """The error in the layouts that a caller asks for of an operator."""
    if name in CONVERT:
        return None
    if not isinstance(name, str):
        return error("R0501", f"ConvertLayout: {name!r} is no name of an operator")
    title = f"ConvertLayout cannot bring {name} into {layouts!r}"
    known = RULES.get(name)
    if known is None:
        if find(name) is not None:
            return None  # it takes the layout of what it is used on
        near = did_you_mean(name, list(RULES))
        title = f"ConvertLayout: there is no operator {name}"
        notes = [f"did you mean {near}?"] if near else [f"it converts {', '.join(sorted(RULES))}"]
        return error("R0501", title, notes=notes)
    if isinstance(layouts, str) or not isinstance(layouts, Sequence) or not all(isinstance(w, str) for w in layouts):
        return error("R0501", title, notes=['layouts are a list of texts, such as ["NHWC", "default"]'])
    if not 1 <= len(layouts) <= known.words():
        what = "of the data and of the kernel" if known.kernel else "of the data, and default" if known.rois else "of the data"
        return error("R0501", title, notes=[f"{name} takes the layout {what}"])
    said = _problem_of_words(name, known, layouts[0], layouts[1] if len(layouts) > 1 else "default")
    return error("R0501", title, notes=[said]) if said is not None else None


def _problem_of_words(name: str, known: Any, data: str, kernel: str) -> str | None:
    """The fault in the layouts of an operator's data and kernel, in words."""
    if not _has_axes(data, known.axes):
        return f"{data!r} is no layout of the axes {known.axes}"
    if known.only and data not in known.only:
        return f"its layouts are {' and '.join(known.only)}"
    for attribute, word in ((known.data[0], data), (known.kernel, kernel)):
        said = not_a_choice(name, attribute, word) if word != "default" else None
        if said is not None:
            return f"{word!r} {said[0]}"
    if known.rois and kernel != "default":
        return "the layout of the regions is default"
    if known.kernel and kernel != "default" and not _has_axes(kernel, known.kernel_axes):
        return f"{kernel!r} is no layout of the axes {known.kernel_axes}"
    if known.kernel and kernel == "default" and data not in known.kernels:
        return f"the kernel's layout must be given; only beside {', '.join(known.kernels)} it has a default"
    return None


def _has_axes(layout: str, axes: str) -> bool:
    return is_layout(layout) and sorted(whole(layout)) == sorted(axes)


def _shape(ty: Any) -> tuple[Any, ...]:
    return tuple(ty.shape)


def converted(name: str, attrs: Any, inputs: Sequence[Expr], types: Sequence[Any], layouts: Sequence[str]) -> Call | None:
    """The call of an operator in the layouts that a caller asks for; None to leave it alone."""
    known = RULES[name]
    if known.skips and LayoutConfig.current is not None and LayoutConfig.current.check_skip():
        return None
    data = layouts[0]
    kernel = layouts[1] if len(layouts) > 1 else "default"
    values = dict.fromkeys([f for f in known.data if f in type(attrs).schema], data)
    new_name = name
    if known.kernel:
        weight = types[known.weight]
        alone = bool(known.depthwise) and is_depthwise(attrs, _shape(types[0]), _shape(weight))
        if kernel == "default":
            kernel = known.depthwise[data] if alone and data in known.depthwise else known.kernels[data]
        if known.packed and _PACKED.fullmatch(data):
            new_name = known.packed
            if alone and attrs.groups > 1:
                new_name = known.packed_depthwise
                kernel = fitted(kernel, attrs.kernel_layout, _shape(weight))
        values[known.kernel] = kernel
        if known.kernel != "out_layout":
            values["out_layout"] = ""
    return Call(get(new_name), inputs, changed(attrs, **values))
