"""Embedding bags: sums, means or largest elements of rows of a table, bag by bag."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


class Bags:
    """Which bag each of some rows belongs to. `offsets` (bags) are the places where bags start; they may be computed.

    `ends` says that the last offset is the end of the last bag.
    """

    def __init__(self, b: Builder, indices: Expr, offsets: Expr, ends: bool) -> None:
        self.b = b
        offsets = b.cast(b.of_rank(offsets, 1), "int64")
        self.count = b.extent(offsets, 0, "the offsets of the bags") - bool(ends)
        offsets = b.slice(offsets, [0], [self.count], [0]) if ends else offsets
        rows, starts = b.shape(indices)[0], b.value(offsets)
        #: The rows of each bag, where all have the same number.
        self.each = 0
        if isinstance(rows, int) and self.count and starts is not None and rows % self.count == 0:
            each = int(rows) // self.count
            self.each = each if (starts == b.arrays.arange(self.count) * each).all() else 0
        places = b.const(b.arrays.arange(rows)) if isinstance(rows, int) else _count(b, indices)
        self.numbers: Expr = b.op("subtract", b.op("searchsorted", offsets, places, right=True, dtype="int64"), 1)

    def reduced(self, rows: Expr, op: str, neutral: float) -> Expr:
        """The sums ("sum") or largest elements ("max") of each bag's rows, `neutral` for a bag without rows."""
        b, rest = self.b, list(self.b.shape(rows))[1:]
        if self.each:
            reduced: Expr = b.op(op, b.reshape(rows, [self.count, self.each, *rest]), axis=[1])
            return reduced
        base = b.const(b.arrays.full([self.count, *rest], neutral), b.dtype(rows))
        reduced = b.op("scatter_nd", base, b.unsqueeze(self.numbers, [0]), rows, mode={"sum": "add", "max": "max"}[op])
        return reduced


def _count(b: Builder, x: Expr) -> Expr:
    """0, 1, ... for each element of a vector of unknown extent."""
    return b.arange(b.const(0, "int64"), b.scalar(b.shape_of(x)), b.const(1, "int64"), "int64")


def bagged(b: Builder, rows: Expr, bags: Bags, mode: str, mask: Expr | None) -> Expr:
    """The sum, mean or max of the rows (n, d) of each bag, without those where `mask` (n) is false; 0 for none."""
    dtype = b.dtype(rows)
    neutral = -np.inf if mode == "max" else 0.0
    if mask is not None:
        rows = b.op("where", b.unsqueeze(mask, [1]), rows, b.const(neutral, dtype))
    joined = bags.reduced(rows, "max" if mode == "max" else "sum", neutral)
    if mode == "sum" or (bags.each and mask is None and mode == "max"):
        return joined
    ones = b.cast(mask, dtype) if mask is not None else b.op("ones_like", b.cast(bags.numbers, dtype))
    counts = b.unsqueeze(bags.reduced(ones, "sum", 0.0), [1])
    if mode == "mean":
        return b.op("divide", joined, b.op("maximum", counts, 1.0))
    return b.op("where", b.op("greater", counts, 0.0), joined, b.const(0, dtype))


def embedding_bag(n: Node) -> Any:
    b = n.b
    weight, indices = n.x("weight"), b.of_rank(n.x("indices"), 1)
    bags = Bags(b, indices, n.x("offsets"), bool(n.get("include_last_offset")))
    rows = b.op("take", weight, indices, axis=0)
    if n.has("per_sample_weights"):
        rows = b.op("multiply", rows, b.unsqueeze(n.x("per_sample_weights"), [1]))
    # The public operator counts a negative row from the end; in the inner ones, -1 stands for none.
    ignored = n.int("padding_idx") if n.has("padding_idx") else None
    if ignored is not None and ignored < 0:
        ignored = ignored + b.extent(weight, 0) if n.call.target.startswith("aten.embedding_bag") else None
    mask = None if ignored is None else b.op("not_equal", indices, b.const(ignored, b.dtype(indices)))
    return [bagged(b, rows, bags, n.choice("mode", 0, {0: "sum", 1: "mean", 2: "max"}), mask)]


RULES = tuple(Rule(f"aten.{name}", embedding_bag) for name in ("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"))

__all__ = ["RULES", "Bags", "bagged"]
