"""Tensors of texts: the bytes of each text in UTF-8 on a last axis of uint8, with zeros behind them.

Conversions pass a `Texts` on, so that no operator takes the bytes for numbers. What only moves elements moves their places
instead: its conversion runs on numbers of texts, and the texts are taken by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Unsupported
from relaylang.ir import Expr

#: Operators that move elements, texts as well.
_MOVERS = frozenset(
    "ArrayFeatureExtractor Compress Concat Expand Flatten Gather GatherElements GatherND Reshape Slice Split Squeeze Tile "
    "Transpose Unsqueeze Where".split()
)
#: Operators whose conversions take texts.
_TAKEN = frozenset(
    "Cast CategoryMapper Equal Identity LabelEncoder Loop OneHotEncoder Scan StringConcat StringNormalizer TfIdfVectorizer".split()
)


@dataclass(frozen=True, eq=False)
class Texts:
    """A tensor of texts. `codes` has one axis more, which has the bytes of each text."""

    codes: Expr


def encoded(texts: Any, width: int = 0) -> np.ndarray:
    """Texts as uint8, with a last axis of `width` bytes, or of as many as the longest text has.

    Raises `ValueError` for a longer text, and for one with the character 0.
    """
    array = np.asarray(texts, dtype=object)
    codes = [t if isinstance(t, bytes) else str(t).encode("utf-8", "surrogateescape") for t in array.reshape(-1)]
    most = max((len(c) for c in codes), default=0)
    if any(b"\0" in c for c in codes):
        raise ValueError("a text has the character 0, which ends a text")
    if width and most > width:
        raise ValueError(f"a text has {most} bytes, more than {width}")
    made = np.array(codes, dtype=f"S{width or max(most, 1)}")
    return made.reshape((*array.shape, 1)).view(np.uint8)


def decoded(codes: np.ndarray) -> np.ndarray:
    """The texts of `encoded` as an array of objects."""
    rows = np.ascontiguousarray(codes, np.uint8)
    flat = [bytes(row).rstrip(b"\0").decode("utf-8", "replace") for row in rows.reshape(-1, rows.shape[-1])]
    return np.array(flat, dtype=object).reshape(rows.shape[:-1])


def constant(b: Builder, texts: Sequence[Any], shape: Sequence[int] | None = None) -> Texts:
    """Texts of the model. Raises `Malformed` for one with the character 0, or where they do not fill the shape."""
    extents = tuple(shape) if shape is not None else (len(texts),)
    if math.prod(extents) != len(texts) or any(d < 0 for d in extents):
        raise Malformed(f"{len(texts)} texts do not fill the shape {extents}")
    b.arrays.reserve((len(texts), max((4 * len(t) for t in texts), default=1)), size=1)
    try:
        codes = encoded(list(texts))
    except ValueError as wrong:
        raise Malformed(str(wrong)) from None
    return Texts(b.const(codes.reshape(*extents, codes.shape[-1])))


def room(b: Builder, x: Texts) -> int:
    """The bytes that each text has room for."""
    return b.extent(x.codes, -1, "the last axis of texts, their bytes,")


def fitted(b: Builder, xs: Sequence[Texts]) -> list[Expr]:
    """The codes of all with the same room."""
    most = max(room(b, x) for x in xs)
    return [widened(b, x, most) for x in xs]


def widened(b: Builder, x: Texts, most: int) -> Expr:
    """The codes of texts with room for `most` bytes."""
    rest = most - room(b, x)
    pads = [(0, 0)] * (b.rank(x.codes) - 1) + [(0, rest)]
    return b.op("nn.pad", x.codes, 0.0, pad_width=pads) if rest else x.codes


def equal(b: Builder, left: Texts, right: Texts) -> Expr:
    """Where texts are equal; shapes broadcast."""
    return b.op("all", b.op("equal", *fitted(b, [left, right])), axis=[-1])


def taken(b: Builder, table: Texts, places: Expr) -> Texts:
    """The texts of a vector at some places."""
    return Texts(b.op("take", table.codes, places, axis=0, mode="clip"))


def rows(b: Builder, codes: Expr) -> Expr:
    """The codes of all texts below each other."""
    return codes if b.rank(codes) == 2 else b.reshape(codes, [-1, b.extent(codes, -1)])


def converted(b: Builder, operator: str, convert: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """The results of an operator, some of whose operands are texts. Raises `Unsupported` for one that takes none."""
    if operator in ("Shape", "Size"):
        return convert(*[b.op("take", x.codes, 0, axis=-1) for x in inputs if isinstance(x, Texts)])
    if operator in _MOVERS:
        return moved(b, convert, inputs)
    if operator not in _TAKEN:
        raise Unsupported("its operands are texts")
    return convert(*inputs)


def moved(b: Builder, convert: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """The results of a conversion that moves elements, called with places in a table of the texts."""
    texts = [x for x in inputs if isinstance(x, Texts)]
    codes = fitted(b, texts)
    table = Texts(b.concat([rows(b, c) for c in codes], 0))
    places, start = iter([*codes]), b.const(np.int64(0))
    operands: list[Any] = []
    for x in inputs:
        if isinstance(x, Texts):
            shape = b.slice(b.shape_of(next(places)), [0], [b.rank(x.codes) - 1], [0])
            end = b.op("add", start, b.op("prod", shape, axis=[0]))
            operands.append(b.reshape_to(b.arange(start, end, b.const(np.int64(1)), "int64"), shape, allow_zero=True))
            start = end
        else:
            operands.append(x)
    made = convert(*operands)
    results = [made] if isinstance(made, Expr) else list(made)
    return [taken(b, table, r) for r in results]


__all__ = ["Texts", "constant", "converted", "decoded", "encoded", "equal", "fitted", "moved", "room", "rows", "taken", "widened"]
