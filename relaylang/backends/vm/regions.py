"""Regions: tensor operators between two places of control flow, which become one kernel each.

A region grows while calls of operators come. It ends before the first instruction that needs one of its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.lower import lowered
from relaylang.backends.vm.elements import DYNAMIC
from relaylang.backends.vm.slices import works_on_slices
from relaylang.ir import (
    ANY,
    Call,
    Constant,
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
from relaylang.kernels.dtypes import SIZES
from relaylang.ops.record import Op
from relaylang.runtime.vm.program import UNKNOWN, Spec

__all__ = ["BROADCASTING", "SIZED", "SLICES", "STATIC", "Region", "is_static", "tensors_of", "ways_of"]

#: The ways to compile a region: for its extents, for each slice of a batch, for sizes that it reads. Without a way, the
#: interpreter computes it.
STATIC, SLICES, SIZED = "static", "slices", "sized"
#: The way to compile it once more, for sizes of which those that broadcast may be 1.
BROADCASTING = "broadcasting"


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


def ways_of(call: Call) -> frozenset[str]:
    """The ways in which an operator's call may be compiled."""
    assert isinstance(call.op, Op)
    types = [tensors_of(x.checked_type) for x in (call, *call.args)]
    name = call.op.of if call.op.name in DYNAMIC else call.op.name
    if name not in lowered() or any(t is None or any(t.dtype not in SIZES for t in t) for t in types):
        return frozenset()
    if all(is_static(x.checked_type) for x in (call, *call.args)):
        return frozenset({STATIC, SIZED})
    return frozenset({SLICES, SIZED}) if works_on_slices(call) else frozenset({SIZED})


class Region:
    """Calls that become one kernel. `inputs` are the values that it reads, by the number that a caller gives them.

    `ways` are those in which all of the calls may be compiled. `followed` has the ids of calls whose elements are known
    where extents are.
    """

    def __init__(self, ways: frozenset[str]) -> None:
        self.ways = ways
        self.followed: set[int] = set()
        #: why it has no kernel
        self.why = ""
        self.members: dict[Var, Expr] = {}
        self.inputs: dict[int, Var] = {}
        #: what members stand for once the kernel is emitted
        self.results: dict[Var, Any] | None = None

    def input(self, number: int, ty: Type | None) -> Var:
        """The region's parameter for a value."""
        parameter = self.inputs.get(number)
        if parameter is None:
            parameter = self.inputs[number] = typed_var(f"x{len(self.inputs)}", _opened(ty))
        return parameter

    def takes(self, ways: frozenset[str]) -> bool:
        """Whether a call that may be compiled in some ways can join the others.

        Known extents stay known, but those of shapes, and slices stay slices.
        """
        if STATIC in self.ways and STATIC not in ways and len(self.followed) < len(self.members):
            return False
        if SLICES in self.ways and STATIC in ways:
            return False
        return bool(self.ways & ways) or not (self.ways or ways)

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


def field_of(node: Expr, index: int) -> Expr:
    """A field of a call's result."""
    ty = node.checked_type
    return typed(TupleGetItem(node, index, node.span), ty.fields[index] if isinstance(ty, TupleType) else None)


def fields_of(node: Expr) -> list[Expr]:
    """The tensors of a call's result: its fields, or itself."""
    ty = node.checked_type
    return [field_of(node, n) for n in range(len(ty.fields))] if isinstance(ty, TupleType) else [node]


def alone(call: Call) -> IRModule:
    """A call as a region of its own."""
    region = Region(frozenset())

    def operand(node: Expr) -> Expr:
        if isinstance(node, Constant):
            return node
        if isinstance(node, Tuple):
            return typed_tuple([operand(f) for f in node.fields])
        if isinstance(node.checked_type, TupleType):
            return typed_tuple([region.input(len(region.inputs), ty) for ty in node.checked_type.fields])
        return region.input(id(node), node.checked_type)

    node = typed(Call(call.op, [operand(a) for a in call.args], call.attrs, call.type_args, call.span), call.checked_type)
    return region.module(fields_of(node))


def specs_of(results: Sequence[Expr]) -> tuple[Spec, ...]:
    """The types of a kernel's results."""
    return tuple(
        (ty.dtype, tuple(int(d) if isinstance(d, int) else UNKNOWN for d in ty.shape))
        for node in results
        for ty in tensors_of(node.checked_type) or ()
    )
