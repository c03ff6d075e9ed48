"""The one place outside the checker that sets a node's type: for the nodes that a rewriter makes.

The contract:

- The checker fills `checked_type`. A rewriter gives a type to nodes that it has just built, and only through this module.
- The type is one that the checker would find. It is that of the replaced node, or follows from the operands' types.
  Where a rewriter does not know it, it leaves the node without a type.
- A node that has a type keeps it. Nothing here overwrites a type, and an operator's record takes none.
- The checker takes a typed node as done, with all that it is made of. Where a typed node may stand above one without a
  type, the rewriter calls `forget_stale_types`. A copy for other types calls `forget_types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Constant, Expr, Tuple, TupleGetItem, Var
from relaylang.ir.types import TensorType, TupleType, Type
from relaylang.ir.visit import children, post_order

_E = TypeVar("_E", bound=Expr)


def typed(node: _E, ty: Type | None) -> _E:
    """Give a new node its type, unless `ty` is None. Returns the node."""
    if ty is not None and node.checked_type is None and not node.is_record:
        node.checked_type = ty
    return node


def retype(new: _E, old: Expr) -> _E:
    """A new node with the type and the place of the node that it replaces, where it has none. Returns the new node."""
    if new is not old and not new.is_record:
        if new.checked_type is None:
            new.checked_type = old.checked_type
        if new.span is None:
            new.span = old.span
    return new


def typed_var(name: str, ty: Type | None, span: Span | None = None) -> Var:
    """A new variable that is annotated with its type."""
    return typed(Var(name, ty, span), ty)


def fresh_var(var: Var, name: str | None = None) -> Var:
    """Another variable of the same type and annotation, and of the same name where no other is given."""
    return typed(Var(var.name_hint if name is None else name, var.type_annotation, var.span, var.virtual_device), var.checked_type)


def typed_constant(data: np.ndarray, dtype: str | None = None, span: Span | None = None) -> Constant:
    """A new constant with its type: the array's shape, and `dtype` or else the array's element type."""
    constant = Constant(data, span, dtype)
    return typed(constant, TensorType(constant.data.shape, constant.dtype))


def typed_tuple(fields: Sequence[Expr], span: Span | None = None) -> Tuple:
    """A new tuple of typed fields, with its type. It has none where the type of a field is not known."""
    types = [field.checked_type for field in fields]
    known = [ty for ty in types if ty is not None]
    return typed(Tuple(fields, span), TupleType(known) if len(known) == len(types) else None)


def typed_field(value: Expr, index: int, span: Span | None = None) -> TupleGetItem:
    """A new access to a field of a typed tuple, with its type. It has none where the tuple's type is not known."""
    tuple_type = value.checked_type
    return typed(TupleGetItem(value, index, span), tuple_type.fields[index] if isinstance(tuple_type, TupleType) else None)


def forget_stale_types(expr: Expr) -> Expr:
    """Take the type from each typed node above one without a type, so that the checker looks at it.

    Returns the expression. Variables keep their types. Only nodes that a rewriter made can stand above one without a type.
    """
    for node in post_order(expr):
        if node.checked_type is not None and not node.is_record and not isinstance(node, Var):
            for child in children(node):
                if child.checked_type is None and not child.is_record:
                    node.checked_type = None
                    break
    return expr


def forget_types(nodes: Iterable[Expr]) -> None:
    """Take the types from new nodes, so that the checker finds them."""
    for node in nodes:
        if not node.is_record:
            node.checked_type = None


__all__ = [
    "forget_stale_types",
    "forget_types",
    "fresh_var",
    "retype",
    "typed",
    "typed_constant",
    "typed_field",
    "typed_tuple",
    "typed_var",
]
