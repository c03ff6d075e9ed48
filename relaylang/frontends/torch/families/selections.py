"""Runs of equal elements, modes, and counts in bins."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Rule
from relaylang.frontends.common.runs import bincount, first_of_runs, histogram, mode
from relaylang.frontends.torch.node import Node, on_axes


def most_frequent(n: Node) -> Any:
    """The most frequent element along an axis, and its last place."""
    b, x = n.b, n.x()
    axis = n.int("dim", -1) % b.rank(x)
    most = mode(b, x, axis)
    return list(most) if n.get("keepdim", False) else [b.squeeze(v, [axis]) for v in most]


def unique_consecutive(n: Node) -> Any:
    """The first of each run; the runs of the elements, and their lengths, which are computed on demand."""
    b, x = n.b, n.x()
    axis = n.int("dim") % b.rank(x) if n.has("dim") else None
    values, runs, lengths = first_of_runs(b, x, axis)
    return [values, b.reshape_to(runs, b.shape_of(x)) if axis is None else runs, lengths]


def counts(n: Node) -> Any:
    """Counts in bins, in the element type of the tensor."""
    b, x = n.b, n.x()
    return b.cast(histogram(b, x, n.int("bins", 100), float(n.get("min", 0)), float(n.get("max", 0))), b.dtype(x))


def bins(n: Node) -> Any:
    """The counts of whole numbers; weights other than float32 are summed in float64."""
    b, weights = n.b, n.get("weights")
    if weights is not None and b.dtype(weights) != "float32":
        weights = b.cast(weights, "float64")
    return bincount(b, n.x(), weights, n.int("minlength", 0))


RULES = (
    Rule("aten.bincount", bins),
    Rule("aten.histc", counts),
    Rule("aten.mode", on_axes(most_frequent, -1)),
    Rule("aten.unique_consecutive", unique_consecutive),
    Rule("aten.unique_dim_consecutive", unique_consecutive),
)
