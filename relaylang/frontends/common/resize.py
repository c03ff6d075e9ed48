"""Resampling along one axis: which elements each result is made of, and with which weights.

Source: the operator Resize of the ONNX specification, opset 19. All other formats are special cases of it. Where the
specification leaves the arithmetic open, places are computed with float32 in the order of onnxruntime. A place next to
the middle of two elements decides which of them is the nearest. Sizes that are known at import become constants, by folding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr

_KINDS = ("nearest", "linear", "cubic")
_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "round", "simple")


@dataclass(frozen=True)
class Method:
    """How to resample: the kernel, where a result's place lies in the input, and the rules at the borders.

    `kind` is "nearest", "linear" or "cubic". `coordinates` and `rounding` are ONNX's names; the rounding "simple" is that
    of opset 10: up where the axis shrinks, else down. `a` is the cubic kernel's coefficient. With `exclude_outside`,
    elements beyond the border have no weight; otherwise the border repeats. `outside` is the value of results beyond the
    border for "tf_crop_and_resize".
    """

    kind: str = "linear"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    outside: float = 0.0

    def __post_init__(self) -> None:
        for text, known in ((self.kind, _KINDS), (self.coordinates, _COORDINATES), (self.rounding, _ROUNDINGS)):
            if text not in known:
                raise Malformed(f"it resizes by {text[:40]!r}, which is none of {', '.join(known)}")


@dataclass(frozen=True)
class Stretch:
    """One axis to resample: its extent, that of the result (int64 scalars), their ratio (a float32 scalar), and the part
    of the axis that "tf_crop_and_resize" takes."""

    have: Expr
    size: Expr
    scale: Expr
    start: float = 0.0
    end: float = 1.0


def places(b: Builder, method: Method, axis: Stretch) -> Expr:
    """Where the results lie on the input's axis, in elements: float32 of shape (size,)."""
    if b.value(axis.size) == 0:
        return b.const(np.zeros(0, np.float32))
    x = b.cast(b.arange(b.const(0, "int64"), axis.size, b.const(1, "int64"), "int64"), "float32")
    have, size, scale = b.cast(axis.have, "float32"), b.cast(axis.size, "float32"), axis.scale
    last, steps = b.op("subtract", have, 1.0), b.op("maximum", b.op("subtract", size, 1.0), 1.0)
    several = b.op("greater", axis.size, b.const(1, "int64"))
    mode = method.coordinates
    if mode == "asymmetric":
        return b.op("divide", x, scale)
    if mode == "align_corners":
        return b.op("divide", b.op("multiply", x, last), steps)
    if mode == "tf_crop_and_resize":
        start, end = np.float32(axis.start), np.float32(axis.end)
        step = b.op("divide", b.op("multiply", b.op("multiply", x, float(end - start)), last), steps)
        middle = b.op("multiply", last, 0.5 * (float(start) + float(end)))
        return b.op("where", several, b.op("add", b.op("multiply", last, float(start)), step), middle)
    if mode == "half_pixel_symmetric":
        part = b.op("divide", size, b.op("multiply", scale, have))
        offset = b.op("multiply", b.op("divide", have, 2.0), b.op("subtract", b.const(1.0, "float32"), part))
        centre = b.op("divide", b.op("add", b.cast(x, "float64"), 0.5), b.cast(scale, "float64"))
        return b.cast(b.op("subtract", b.op("add", b.cast(offset, "float64"), centre), 0.5), "float32")
    centre = b.op("divide", b.op("add", x, 0.5), scale)
    if mode == "tf_half_pixel_for_nn":
        return centre
    at = b.op("subtract", centre, 0.5)
    if mode == "pytorch_half_pixel":
        return b.op("where", several, at, b.op("zeros_like", at))
    return at


def nearest(b: Builder, method: Method, at: Expr, axis: Stretch) -> Expr:
    """The index of the element that each result copies: int64 of shape (size,)."""
    at, rounding = b.cast(at, "float64"), method.rounding
    if rounding == "simple":
        shrinks = b.op("less", axis.scale, b.const(1.0, "float32"))
        return held(b, b.op("where", shrinks, b.op("ceil", at), b.op("floor", at)), axis.have)
    if rounding in ("floor", "ceil"):
        return held(b, b.op(rounding, at), axis.have)
    if rounding in ("round_prefer_floor", "round"):
        return held(b, b.op("ceil", b.op("subtract", at, 0.5)), axis.have)
    return held(b, b.op("floor", b.op("add", at, 0.5)), axis.have)


def held(b: Builder, index: Expr, have: Expr) -> Expr:
    """Whole float64 numbers as indices, int64, within an axis of `have` elements."""
    last = b.op("subtract", b.cast(have, "float64"), 1.0)
    return b.cast(b.op("maximum", b.op("minimum", index, last), b.const(0.0, "float64")), "int64")


def taps(b: Builder, method: Method, at: Expr, axis: Stretch) -> list[tuple[Expr, Expr]]:
    """The elements of each result and their weights: pairs of int64 and float64 of shape (size,).

    Raises `Unsupported` where `antialias` needs as many elements as a computed scale tells.
    """
    squeeze = 1.0
    if method.antialias:
        scale = b.value(axis.scale)
        if scale is None:
            raise Unsupported("it has antialias, and its scale is computed; --shape gives extents")
        squeeze = min(float(scale), 1.0)
    reach = 1 if method.kind == "linear" else 2
    first = math.floor(-reach / squeeze) + 1
    at = b.cast(at, "float64")
    low = b.op("floor", at)
    share, last = b.op("subtract", at, low), b.op("subtract", b.cast(axis.have, "float64"), 1.0)
    pairs: list[tuple[Expr, Expr]] = []
    for offset in range(first, 2 - first):
        place = b.op("add", low, float(offset))
        distance = b.op("multiply", b.op("abs", b.op("subtract", share, float(offset))), squeeze)
        if method.kind == "linear":
            weight = b.op("maximum", b.op("subtract", b.const(1.0, "float64"), distance), 0.0)
        else:
            weight = _cubic(b, distance, method.a)
        if method.exclude_outside:
            inside = b.op("logical_and", b.op("greater_equal", place, 0.0), b.op("less_equal", place, last))
            weight = b.op("where", inside, weight, b.const(0.0, "float64"))
        pairs.append((held(b, place, axis.have), weight))
    if method.exclude_outside or method.antialias:
        total = pairs[0][1]
        for _, weight in pairs[1:]:
            total = b.op("add", total, weight)
        total = b.op("where", b.op("equal", total, 0.0), b.const(1.0, "float64"), total)
        pairs = [(index, b.op("divide", weight, total)) for index, weight in pairs]
    used = [(i, w) for i, w in pairs if (known := b.value(w)) is None or known.any()]
    return used or pairs[:1]


def _cubic(b: Builder, d: Expr, a: float) -> Expr:
    def polynomial(*factors: float) -> Expr:
        total: Expr = b.const(factors[0], "float64")
        for factor in factors[1:]:
            total = b.op("add", b.op("multiply", total, d), factor)
        return total

    near, far = polynomial(a + 2, -(a + 3), 0.0, 1.0), polynomial(a, -5 * a, 8 * a, -4 * a)
    beyond = b.op("where", b.op("less", d, 2.0), far, b.const(0.0, "float64"))
    return b.op("where", b.op("less_equal", d, 1.0), near, beyond)


__all__ = ["Method", "Stretch", "nearest", "places", "taps"]
