"""The selection of boxes by their scores and overlaps, for formats whose rules Relay's own operators do not have."""

from __future__ import annotations

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.loops import while_loop
from relaylang.ir import Expr


def overlaps(b: Builder, boxes: Expr) -> Expr:
    """The overlap of each pair of boxes: the common area by that of both, 0 for boxes without area."""
    ends = [b.slice(boxes, [i], [i + 1], [1]) for i in range(4)]
    low = [b.op("minimum", ends[i], ends[i + 2]) for i in (0, 1)]
    high = [b.op("maximum", ends[i], ends[i + 2]) for i in (0, 1)]
    area = b.op("multiply", *[b.op("subtract", h, l) for l, h in zip(low, high)])
    sides = []
    for first, last in zip(low, high):
        end = b.op("minimum", last, b.transpose(last, (1, 0)))
        sides.append(b.op("maximum", b.op("subtract", end, b.op("maximum", first, b.transpose(first, (1, 0)))), 0.0))
    common = b.op("multiply", *sides)
    other = b.transpose(area, (1, 0))
    both = b.op("subtract", b.op("add", area, other), common)
    fine = b.op("greater", b.op("minimum", area, other), 0.0)
    zero, one = b.const(0.0, "float32"), b.const(1.0, "float32")
    return b.op("where", fine, b.op("divide", common, b.op("where", fine, both, one)), zero)


def choose(
    b: Builder, boxes: Expr, scores: Expr, most: int, overlap: Expr, least: Expr, sigma: float, at: bool = False
) -> tuple[Expr, Expr, Expr]:
    """The rows of boxes, at most `most`, their scores, and their number; zeros behind them.

    Each choice drops the boxes (count, 4) that it overlaps by more than `overlap`, or by as much where `at`. It lowers the
    scores of the others by their overlap where `sigma` is above 0. Boxes without a score above `least` are left out.
    """
    shared = overlaps(b, boxes)
    places = b.const(b.arrays.arange(b.extent(scores, 0, "the number of boxes")), "int32")
    slots, none = b.const(b.arrays.arange(most), "int32"), b.const(-np.inf, "float32")
    beyond = "greater_equal" if at else "greater"

    def more(v: list[Expr]) -> Expr:
        best = b.op("max", v[1], axis=(0,))
        return b.op("logical_and", b.op("less", v[0], b.const(most, "int32")), b.op("greater", best, least))

    def turn(v: list[Expr]) -> list[Expr]:
        number, left, rows, values = v
        best = b.cast(b.op("argmax", left, axis=(0,)), "int32")
        row = b.op("take", shared, best, axis=0)
        here = b.op("equal", slots, number)
        gone = b.op("logical_or", b.op(beyond, row, overlap), b.op("equal", places, best))
        lower = left
        if sigma > 0:
            factor = b.op("exp", b.op("multiply", b.op("multiply", row, row), -0.5 / sigma))
            lower = b.op("where", b.op("equal", left, none), none, b.op("multiply", left, factor))
        return [
            b.op("add", number, 1),
            b.op("where", gone, none, lower),
            b.op("where", here, best, rows),
            b.op("where", here, b.op("max", left, axis=(0,)), values),
        ]

    start = [b.const(0, "int32"), scores, *[b.op("zeros", shape=(most,), dtype=d) for d in ("int32", "float32")]]
    count, _, rows, values = while_loop(b, more, turn, start, ["number", "left", "rows", "values"], "choose")
    return rows, values, count


__all__ = ["choose", "overlaps"]
