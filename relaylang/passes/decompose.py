"""Replaces operators by those that compute the same, as `relaylang.rules.decompositions` has them.

Backends and exporters run it before fusion, so that values of bound weights alone are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType, Tuple, TupleType, children, post_order, rebuild
from relaylang.ir.typed import retype, typed
from relaylang.ir.types import Extent
from relaylang.ops.domains import ELEMENT_TYPES
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.rules.decompositions import RULES, Decomposition
from relaylang.rules.decompositions.common import shape_of

#: Sums of products of their first two operands.
PRODUCTS = frozenset({Trait.CONV, Trait.CONV_TRANSPOSE, Trait.MATMUL})


def decompose(expr: Expr, keep: Container[str] = (), rules: Mapping[str, Decomposition] = RULES) -> Expr:
    """A typed expression without the operators of `rules`, where their shapes and layouts allow it.

    The operators that `keep` names stay as they are.
    """
    done: dict[int, Expr] = {}
    for old in post_order(expr):
        new = retype(rebuild(old, tuple([done[id(c)] for c in children(old)])), old)
        if isinstance(new, Call) and isinstance(new.op, Op):
            rule = None if new.op.name in keep else rules.get(new.op.name)
            if (nothing := _nothing(new)) is not None:
                new = nothing
            elif rule is not None and all(_static(a.checked_type) for a in (*new.args, new)):
                decomposed = rule(new, list(new.args))
                if decomposed is not None:
                    new = _placed(decomposed, old)
        done[id(old)] = new
    return done[id(expr)]


def _nothing(call: Call) -> Expr | None:
    """The result of a call that has no elements, or whose elements are sums of no products; else None."""
    ty = call.checked_type
    fields = ty.fields if isinstance(ty, TupleType) else [ty]
    if not all(_static(f) and f.dtype in ELEMENT_TYPES for f in fields):  # type: ignore[union-attr]
        return None
    shapes = [f.shape for f in fields]  # type: ignore[union-attr]
    empty = all(0 in shape for shape in shapes)
    product = isinstance(call.op, Op) and not PRODUCTS.isdisjoint(call.op.traits)
    if not (empty and fields) and not (product and any(0 in (shape_of(a) or ()) for a in call.args[:2])):
        return None
    if not all(_fits_constant(shape) for shape in shapes):
        return None
    zeros = [typed(Constant(np.zeros(f.shape, np.dtype(f.dtype))), f) for f in fields]  # type: ignore[union-attr, arg-type]
    return typed(Tuple(zeros), ty) if isinstance(ty, TupleType) else zeros[0]


def _fits_constant(shape: Sequence[Any]) -> bool:
    """Whether a constant has this shape: no extents that a kernel finds when it runs.

    Without elements it may have some; numpy takes them up to a product.
    """
    known = all(type(extent) in (int, Extent) for extent in shape)
    return known or (0 in shape and math.prod(filter(None, shape)) < 2**59)


def _placed(new: Expr, old: Expr) -> Expr:
    """Give the new expression the span of the expression that it replaces."""
    stack = [new] if old.span is not None else []
    while stack:
        node = stack.pop()
        if node.span is None and isinstance(node, (Call, Tuple)) and node is not old:
            node.span = old.span
            stack.extend(children(node))
    return new


def _static(ty: Any) -> bool:
    fields = ty.fields if isinstance(ty, TupleType) else [ty]
    return all(isinstance(f, TensorType) and all(isinstance(d, int) for d in f.shape) for f in fields)


__all__ = ["PRODUCTS", "decompose"]
