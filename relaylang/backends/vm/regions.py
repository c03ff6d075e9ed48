"""Regions: tensor operators between two places of control flow, which become one kernel each.

A region grows while calls of operators come. It ends before the first instruction that needs one of its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.dtypes import SIZES
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.lower import lowered
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.schedule import Program
from relaylang.diagnostics import RelayError
from relaylang.ir import (
    ANY,
    Call,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
)
from relaylang.ir.typed import typed, typed_tuple, typed_var
from relaylang.ops.record import Op

__all__ = ["Region", "is_static", "lower_region", "tensors_of"]


def tensors_of(ty: Type | None) -> list[TensorType] | None:
    """The tensors of a type of tensors and tuples, from left to right; None for other types."""
    out: list[TensorType] = []
    stack = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TensorType):
            out.append(item)
        elif isinstance(item, TupleType):
            stack.extend(reversed(item.fields))
        else:
            return None
    return out


def is_static(ty: Type | None) -> bool:
    """Whether a type is of tensors whose shapes are known, with elements that compiled code has."""
    tensors = tensors_of(ty)
    return tensors is not None and all(t.dtype in SIZES and all(isinstance(d, int) for d in t.shape) for t in tensors)


def is_native(call: Call) -> bool:
    """Whether the CPU backend has code for an operator's call."""
    assert isinstance(call.op, Op)
    return call.op.name in lowered() and is_static(call.checked_type) and all(is_static(a.checked_type) for a in call.args)


class Region:
    """Calls that become one kernel. `inputs` are the values that it reads, by the number that a caller gives them."""

    def __init__(self, native: bool) -> None:
        self.native = native
        self.members: dict[Var, Expr] = {}
        self.inputs: dict[int, Var] = {}
        #: what members stand for once the kernel is emitted
        self.results: dict[Var, Any] | None = None

    def input(self, number: int, ty: Type | None) -> Var:
        """The region's parameter for a value."""
        found = self.inputs.get(number)
        if found is None:
            found = self.inputs[number] = typed_var(f"x{len(self.inputs)}", _opened(ty))
        return found

    def add(self, variable: Var, node: Expr) -> None:
        self.members[variable] = node

    def escapes(self, variable: Var, users: Mapping[Var, Sequence[Var | None]], values: Mapping[Var, Expr]) -> bool:
        """Whether anything outside needs a member's value. Tuples hand it on."""
        stack: list[Var | None] = list(users.get(variable, ()))
        seen: set[Var] = set()
        while stack:
            user = stack.pop()
            if user is None:
                return True
            if user in self.members or user in seen:
                continue
            seen.add(user)
            if not isinstance(values[user], (Tuple, TupleGetItem, Var)):
                return True
            stack += users.get(user, ())
        return False

    def module(self, results: Sequence[Expr]) -> IRModule:
        """The region as a module. Its function gives a tuple of the results."""
        return IRModule.from_expr(Function(list(self.inputs.values()), typed_tuple(results)))


def _opened(ty: Type | None) -> Type | None:
    """A type with `?` for extents that a function's caller chooses."""
    if isinstance(ty, TensorType) and not all(isinstance(d, int) for d in ty.shape):
        return TensorType([d if isinstance(d, int) else ANY for d in ty.shape], ty.dtype)
    return ty


def lower_region(module: IRModule, isa: Isa) -> Program | None:
    """The kernels of a region; None where the backend has no code for it."""
    try:
        return lower_module(module, "main", [], isa)
    except RelayError as refused:
        if refused.diagnostics[0].code in ("R0632", "R0633", "R0634"):
            return None
        raise


def field_of(node: Expr, index: int) -> Expr:
    """A field of a call's result."""
    ty = node.checked_type
    return typed(TupleGetItem(node, index, node.span), ty.fields[index] if isinstance(ty, TupleType) else None)


