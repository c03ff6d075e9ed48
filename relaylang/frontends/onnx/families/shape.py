"""Operators on shapes: reshape, transpose, constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def constant(n: Node) -> Any:
    """A Constant has its value in one of six attributes."""
    b = n.b
    if n.has("value"):
        return b.weight(n.outputs[0], n.tensor("value"))
    if n.has("value_float"):
        return b.const(n.float("value_float"), "float32")
    if n.has("value_int"):
        return b.const(n.int("value_int"), "int64")
    if n.has("value_floats"):
        return b.const(np.array(n.floats("value_floats"), "float32"))
    if n.has("value_ints"):
        return b.const(np.array(n.ints("value_ints"), "int64"))
    raise Unsupported("Relay has no texts and no sparse tensors")


def reshape(n: Node, x: Expr, shape: Expr) -> Any:
    return n.b.reshape_to(x, shape, allow_zero=bool(n.int("allowzero", 0)))


def shape(n: Node, x: Expr) -> Any:
    b = n.b
    rank = b.rank(x)
    begin, end, _ = slice(n.int("start", 0), n.int("end", rank)).indices(rank)
    whole = b.shape_of(x)
    return whole if (begin, end) == (0, rank) else b.slice(whole, [begin], [max(begin, end)], [0])


def transpose(n: Node, x: Expr) -> Any:
    return n.b.transpose(x, n.ints("perm", list(range(n.b.rank(x)))[::-1]))


RULES = (
    Rule("Constant", constant),
    Rule("Reshape", reshape, since=5),
    Rule("Shape", shape),
    Rule("Transpose", transpose),
)
