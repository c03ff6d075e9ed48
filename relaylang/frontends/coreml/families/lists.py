"""Lists of tensors of one shape, as tensors with an axis more."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.coreml.families.elementwise import cast
from relaylang.frontends.coreml.node import Exprs, Node
from relaylang.ir import Expr


def make_list(n: Node, elem_shape: Exprs, init_length: Expr | None = None, dynamic_length: bool = True, dtype: str = "fp32") -> Any:
    """Zeros. A list that grows has its first length, which its program has to state."""
    b = n.b
    length = 1 if init_length is None else b.need_ints(init_length, "its length")[0]
    shape = [length, *[v for part in elem_shape for v in b.need_ints(part, "the shape of its elements")]]
    if min(shape) < 0:
        raise Unsupported("the shape of its elements is not known")
    return cast(n, b.const(b.arrays.zeros(shape, np.float32)), dtype)


def list_length(n: Node, ls: Expr) -> Any:
    return n.b.const(n.b.extent(ls, 0), "int32")


def list_read(n: Node, ls: Expr, index: Expr) -> Any:
    return n.b.op("take", ls, n.b.scalar(index), axis=0)


def list_gather(n: Node, ls: Expr, indices: Expr) -> Any:
    return n.b.op("take", ls, indices, axis=0)


def list_write(n: Node, ls: Expr, index: Expr, value: Expr) -> Any:
    b = n.b
    known = b.value(index)
    if known is not None and not 0 <= int(known.reshape(-1)[0]) < b.extent(ls, 0):
        raise Malformed(f"it writes the element {int(known.reshape(-1)[0])} of a list of {b.extent(ls, 0)}")
    place = b.reshape_exactly(b.scalar(index), [1, 1])
    return b.op("scatter_nd", ls, place, b.unsqueeze(n.b.cast(value, b.dtype(ls)), [0]), mode="update")


def list_scatter(n: Node, ls: Expr, indices: Expr, value: Expr) -> Any:
    return n.b.op("scatter_nd", ls, n.b.unsqueeze(indices, [0]), n.b.cast(value, n.b.dtype(ls)), mode="update")


RULES = (
    Rule("list_gather", list_gather),
    Rule("list_length", list_length),
    Rule("list_read", list_read),
    Rule("list_scatter", list_scatter),
    Rule("list_write", list_write),
    Rule("make_list", make_list),
)
