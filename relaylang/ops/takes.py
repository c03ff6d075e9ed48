"""Which arguments an operator takes: for each a word, the element types, and where it matters the shape.

The checker compares calls with it, beside the operator's relation. Thus it refuses calls that no kernel could compute,
at the argument's place. Most of these calls TVM accepts and fails to compile; its conformance table lists them.

| word | the argument |
|---|---|
| `tensor` | a tensor of any element type |
| `number` | a tensor of whole or real numbers, not of bool |
| `whole` | a tensor of whole numbers or bool |
| `integer` | a tensor of whole numbers |
| `float` | a tensor of real numbers |
| `same` | a tensor of the first argument's element type |
| `any` | anything: the operator looks at no element, or its relation says what it must be |

`float[]` is a scalar, `integer[n]` a vector. In `float[b,n,4] integer[b]` the extents `b` are the same, and the last
one is 4. The extent `_` is any, and `same[=]` has the first argument's shape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from relaylang.ir.types import Dim


class Word(NamedTuple):
    """The demand on one argument: its elements, and the extents of its shape (None: any shape)."""

    elements: str
    shape: tuple[str, ...] | None = None


_KINDS = {"number": "iuf", "whole": "iub", "integer": "iu", "float": "f"}
_SAID = {
    "number": "whole or real numbers",
    "whole": "whole numbers or bool",
    "integer": "whole numbers",
    "float": "real numbers",
}
TENSOR = Word("tensor")
_WORD = re.compile(r"(\w+)(?:\[([^\]]*)\])?")


@cache
def words(text: str) -> tuple[Word, ...]:
    """A text such as `tensor integer[n]` as words."""
    matches = [_WORD.fullmatch(part) for part in text.split()]
    return tuple([Word(m[1], None if m[2] is None else tuple(m[2].split(",") if m[2] else ())) for m in matches if m])


def kind_of(dtype: str) -> str:
    """`i`, `u`, `f` or `b`; empty for types without numbers (handles, custom types)."""
    if dtype in ("bool", "uint1"):
        return "b"
    if dtype.startswith(("float", "bfloat")):
        return "f"
    return dtype[0] if dtype.startswith(("int", "uint")) else ""


def refused_elements(word: Word, dtype: str, first: str) -> str | None:
    """The reason why elements do not fit a word, or None. `first` is the first argument's element type."""
    if word.elements == "same":
        return None if dtype == first else f"must be of {first}, as the first argument, not of {dtype}"
    kinds, kind = _KINDS.get(word.elements), kind_of(dtype)
    if kinds is None or kind in kinds or not kind:
        return None
    return f"must be a tensor of {_SAID[word.elements]}, not of {dtype}"


def refused_shape(word: Word, shape: Sequence[Dim], first: Sequence[Dim], bound: dict[str, int]) -> str | None:
    """The reason why a shape does not fit a word, or None. `bound` holds the extents of names met before."""
    pattern = word.shape
    if pattern is None:
        return None
    if pattern == ("=",):
        if len(first) != len(shape):
            return f"must have the first argument's {len(first)} dimensions, not {len(shape)}"
        pattern = tuple([str(d) if isinstance(d, int) else "_" for d in first])
    if len(shape) != len(pattern):
        count = len(pattern)
        what = f"a tensor of {count} dimension{'s' * (count != 1)}" if count else "a scalar"
        return f"must be {what}, not one of {len(shape)}" if shape else f"must be {what}, not a scalar"
    for axis, (want, have) in enumerate(zip(pattern, shape)):
        if want == "_" or not isinstance(have, int):
            continue
        known = int(want) if want.isdigit() else bound.setdefault(want, have)
        if known != have:
            return f"must have an extent of {known} at axis {axis}, not {have}"
    return None


__all__ = ["TENSOR", "Word", "kind_of", "refused_elements", "refused_shape", "words"]
