"""How values are shown: tensors as numpy prints them, everything else as Relay text, with the type behind a colon."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from relaylang.interpreter.values import value_text, value_type
from relaylang.ir.types import TupleType, Type, type_text
from relaylang.syntax.name_text import global_text, local_text

_WIDTH = 100
#: How many fields of a tuple are shown.
_MOST = 1000


def spelled(sign: str, name: str) -> str:
    """The name of a variable (`%`) or function (`@`) in input syntax. Names of letters, digits and dots need no quotes."""
    if re.fullmatch(r"\w+", name):
        return sign + name
    return local_text(name) if sign == "%" else global_text(name)


def show(value: Any, ty: Type | None, width: int = _WIDTH) -> str:
    """A value and its type: `11 : int32`, `[1. 2.] : Tensor[(2), float32]`.

    Where the checker knows no type it is the value's own. A tensor of more than 1000 elements is summarised as numpy
    does. A tuple that is too long for one line has a line (or more) for each field. Lines have `width` columns.
    """
    says = type_text(ty) if ty is not None else value_type(value)
    if isinstance(value, np.ndarray):
        return f"{np.array2string(value, max_line_width=width) if value.ndim else str(value[()])} : {says}"
    text = value_text(value)
    if isinstance(value, tuple) and (len(text) > width or "\n" in text):
        fields = ty.fields if isinstance(ty, TupleType) else [None] * len(value)
        lines = ["  " + _field(v, t, width - 3).replace("\n", "\n  ") + "," for v, t in zip(value[:_MOST], fields)]
        return "\n".join(["(", *lines, *(["  ..."] if len(value) > _MOST else []), ")"])
    return f"{text} : {says}"


def _field(value: Any, ty: Type | None, width: int) -> str:
    if isinstance(value, tuple):
        return f"{value_text(value)} : {type_text(ty) if ty is not None else value_type(value)}"
    return show(value, ty, width)
