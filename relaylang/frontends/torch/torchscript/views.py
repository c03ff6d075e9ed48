"""Views: tensors that share their elements with another, so that writing into one changes the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.torch.memory import KEPT, OTHERS, PERHAPS, SWAPS
from relaylang.frontends.torch.torchscript.values import Tensor
from relaylang.frontends.torch.updates import replace_row, replace_slice
from relaylang.ir import Expr

#: Operators that take a stretch of an axis.
_STRETCHES = frozenset("select slice narrow split split_with_sizes chunk tensor_split unbind".split())


def note_views(b: Builder, operator: str, base: Tensor, results: Any, args: dict[str, Any], make: Callable[[Expr], Any]) -> None:
    """Note which results of an operator are views of its first operand. `make` computes the results for another operand."""
    views = [r for r in (results if isinstance(results, list) else [results]) if isinstance(r, Tensor)]
    order = _order(b, operator, base, args)
    for index, tensor in enumerate(views):
        if tensor.base is not None or tensor is base:
            continue
        tensor.ordered = order
        if operator in PERHAPS and not base.ordered:
            if operator == "contiguous" and base.ordered is False:
                tensor.ordered = True
            else:
                tensor.view_of(base, None, None)
        elif operator in KEPT or operator in SWAPS or operator in OTHERS or operator in PERHAPS:
            again = partial(_result, make, index)
            tensor.view_of(base, again, partial(_back, b, operator, args, again))


def _result(make: Callable[[Expr], Any], index: int, x: Expr) -> Expr:
    results = make(x)
    result: Expr = results[index] if isinstance(results, (list, tuple)) else results
    return result


def _order(b: Builder, operator: str, base: Tensor, args: dict[str, Any]) -> bool | None:
    """Whether the elements of a result lie behind each other in memory; None where that is not known."""
    if operator in KEPT or operator in PERHAPS:
        return base.ordered
    if operator in _STRETCHES and args.get("dim", 0) == 0 and args.get("step", 1) == 1:
        return base.ordered
    return False if base.ordered else None


def _back(b: Builder, operator: str, args: dict[str, Any], again: Callable[[Expr], Expr], base: Expr, value: Expr) -> Expr:
    """The tensor below a view, once the view has a new value."""
    if operator in SWAPS:
        return again(value)
    if operator in KEPT or operator in PERHAPS:
        return value if b.shape(base) == b.shape(value) else b.reshape_to(value, b.shape_of(base))
    if operator == "permute":
        rank = b.rank(base)
        return b.transpose(value, np.argsort([int(d) % rank for d in args["dims"]]).tolist())
    if operator == "slice":
        return replace_slice(b, base, value, args.get("dim", 0), args.get("start"), args.get("end"), args.get("step", 1))
    if operator == "select":
        return replace_row(b, base, value, args["dim"], args["index"])
    return _by_position(b, again, base, value)


def _by_position(b: Builder, again: Callable[[Expr], Expr], base: Expr, value: Expr) -> Expr:
    """The elements of a view put to their positions, which the view itself shows."""
    shape = b.static_shape(base, "the tensor below a view that is written")
    numbers = b.arrays.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    positions = b.value(again(b.const(numbers)))
    if positions is None or np.unique(positions).size != positions.size:
        raise Unsupported("it writes into a view whose elements lie at computed places, or share a place")
    flat = b.reshape_exactly(base, [numbers.size])
    updated = b.op("scatter_elements", flat, b.const(positions.reshape(-1)), b.reshape_exactly(value, [positions.size]), axis=0)
    return b.reshape_exactly(updated, list(shape))


__all__ = ["note_views"]
