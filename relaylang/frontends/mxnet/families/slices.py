"""Parts of tensors."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.slices import FAR, slice_axes
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr


def slice_(n: Node, x: Expr) -> Any:
    """`slice`: bounds for the first axes, of which each may be absent; steps may be negative."""
    begin, end, steps = (n.bounds(name) for name in ("begin", "end", "step"))
    if len(begin) != len(end) or len(begin) > n.b.rank(x) or (steps and len(steps) != len(begin)):
        raise Malformed(f"it has {len(begin)} begins, {len(end)} ends and {len(steps)} steps for {n.b.rank(x)} axes")
    strides = [1 if s is None else s for s in steps] or [1] * len(begin)
    firsts = [(FAR if s < 0 else 0) if first is None else first for first, s in zip(begin, strides)]
    lasts = [(-FAR if s < 0 else FAR) if last is None else last for last, s in zip(end, strides)]
    return slice_axes(n.b, x, firsts, lasts, list(range(len(begin))), strides)


def slice_like(n: Node, x: Expr, like: Expr) -> Any:
    b = n.b
    axes = n.axes("axes", b.rank(x)) or list(range(b.rank(x)))
    if any(axis >= b.rank(like) for axis in axes):
        raise Malformed(f"its axes {axes} are not those of both operands")
    sizes = [b.extent(like, axis) for axis in axes]
    return slice_axes(b, x, [0] * len(axes), sizes, axes, [1] * len(axes))


def crop(n: Node, x: Expr, like: Expr | None = None) -> Any:
    """Rows and columns from an offset on: as many as another image has, or `h_w`."""
    b = n.b
    have = b.static_shape(x, "the image", 4)[2:]
    sizes = b.static_shape(like, "the image", 4)[2:] if like is not None else n.ints("h_w", [0, 0], 2)
    first = n.ints("offset", [0, 0], 2)
    if n.bool("center_crop"):
        first = [(h - s) // 2 for h, s in zip(have, sizes)]
    ends = [f + s for f, s in zip(first, sizes)]
    if any(f < 0 or s < 1 or e > h for f, s, e, h in zip(first, sizes, ends, have)):
        raise Malformed(f"it crops {list(sizes)} from {first} on out of {list(have)}")
    return b.slice(x, first, ends, [2, 3])


def size_array(n: Node, x: Expr) -> Any:
    if not all(isinstance(d, int) for d in n.b.shape(x)):
        raise Unsupported("the number of elements is not known; --shape gives it")
    return n.b.reshape(n.b.op("prod", n.b.shape_of(x)), [1])


RULES = (
    Rule("slice", slice_),
    Rule("slice_axis", lambda n, x: slice_axes(n.b, x, [n.int("begin", 0)], [n.int("end", FAR)], [n.axis("axis", n.b.rank(x))], [1])),
    Rule("slice_like", slice_like),
    Rule("Crop", crop),
    Rule("shape_array", lambda n, x: n.b.shape_of(x)),
    Rule("size_array", size_array),
)
