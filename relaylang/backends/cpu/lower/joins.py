"""Concatenations of concatenations, as a loop makes that collects its results: one of all their operands.

Operands without elements, with which such a loop begins, are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from relaylang.ir import Call, Expr, TensorType, Tuple, children, post_order, rewrite
from relaylang.ir.typed import retype, typed_tuple
from relaylang.ops.record import Op


def joined(expr: Expr) -> Expr:
    """A typed expression without such concatenations: those that are the operand of one other one along the same axis."""
    order = list(post_order(expr))
    inner = _inner(order)
    if not inner and not any(_is_empty(part) for node in order for part in _parts(node) or ()):
        return expr
    created: set[int] = set()

    def merge(old: Expr, new: Expr) -> Expr:
        new = retype(new, old)
        if _parts(new) is None:
            return new
        if id(old) in inner:
            created.add(id(new))
            return new
        leaves: list[Expr] = []
        stack: list[Expr] = [new]
        while stack:
            node = stack.pop()
            if node is new or id(node) in created:
                stack.extend(reversed(_parts(node) or ()))
            else:
                leaves.append(node)
        assert isinstance(new, Call)
        if not _is_empty(new):
            leaves = [leaf for leaf in leaves if not _is_empty(leaf)]
        return retype(Call(new.op, [typed_tuple(leaves, new.args[0].span)], new.attrs, (), new.span), old)

    return rewrite(expr, merge)


def _inner(order: Sequence[Expr]) -> set[int]:
    """The concatenations that are the operand of one other one along the same axis, by id."""
    users = Counter(id(child) for node in order for child in children(node))
    inner: set[int] = set()
    for node in order:
        parts = _parts(node)
        if parts is not None and users[id(node.args[0])] == 1:  # type: ignore[attr-defined]
            same = (p for p in parts if _parts(p) is not None and users[id(p)] == 1 and _axis(p) == _axis(node))
            inner.update(id(p) for p in same)
    return inner


def _parts(node: Expr) -> tuple[Expr, ...] | None:
    """The operands of a concatenation; None for other nodes."""
    if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "concatenate" and isinstance(node.args[0], Tuple):
        return tuple(node.args[0].fields)
    return None


def _is_empty(node: Expr) -> bool:
    """Whether a tensor has no elements."""
    return isinstance(node.checked_type, TensorType) and any(isinstance(n, int) and n == 0 for n in node.checked_type.shape)


def _axis(node: Expr) -> int:
    assert isinstance(node, Call) and isinstance(node.checked_type, TensorType)
    return int(node.attrs.axis) % len(node.checked_type.shape)
