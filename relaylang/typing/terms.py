"""The types of an inference: those of the program, and unknowns.

An `Unknown` is a node of a union-find forest: once bound, it links to its type. Nothing here recurses on a type's depth.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

from relaylang.ir.expr import Expr
from relaylang.ir.extents import agree, names_in, solve, with_names
from relaylang.ir.typemaps import parts, with_parts
from relaylang.ir.types import (
    ANY,
    POISON,
    ComputedDim,
    Dim,
    ErrorType,
    GlobalTypeVar,
    IncompleteType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)


class Unknown(IncompleteType):
    """A type to be found. `origin` is the node that brought it in; a `derived` one follows from others.

    A `free` one stands for a type parameter where something polymorphic is used, and may stay open: `Nil` alone.
    """

    __slots__ = ("derived", "free", "link", "origin", "waiters")

    def __init__(self, origin: Expr | None = None, derived: bool = False, free: bool = False) -> None:
        super().__init__()
        self.free = free
        self.link: Type | None = None
        self.waiters: list[object] | None = None
        self.origin = origin
        self.derived = derived


class DimUnknown(TypeVar):
    """An extent to be found. It stands for a shape variable where a polymorphic function is used."""

    __slots__ = ("link",)

    def __init__(self, name_hint: str) -> None:
        super().__init__(name_hint, "ShapeVar")
        self.link: Dim | None = None


class OpenTensor(TensorType):
    """A tensor type with extents to be found."""

    __slots__ = ()


#: The kinds of types that have no parts and are not tensors.
LEAVES = frozenset((TypeVar, GlobalTypeVar, Unknown, ErrorType, IncompleteType))


def find(ty: Type) -> Type:
    """The type that a type is bound to so far: itself, where it is no unknown or an open one."""
    while type(ty) is Unknown:
        link = ty.link
        if link is None:
            return ty
        if type(link) is Unknown and link.link is not None:
            ty.link = link.link
        ty = link
    return ty


def find_dim(dim: Dim) -> Dim:
    """The extent that an extent is bound to so far."""
    while type(dim) is DimUnknown and dim.link is not None:
        dim = dim.link
    return with_names(dim, find_dim) if type(dim) is ComputedDim else dim


def open_names(dim: Dim) -> list[DimUnknown]:
    """The extents to be found that an extent is computed of."""
    if type(dim) is DimUnknown:
        return [dim]
    return [name for name in names_in(dim) if type(name) is DimUnknown] if type(dim) is ComputedDim else []


def unify_computed(left: Dim, right: Dim) -> bool | None:
    """Make two extents the same, one of which is computed: find what one name must be. None where it is not known whether they are."""
    same = agree(left, right)
    unknown = [*open_names(left), *open_names(right)]
    if same is not False or not unknown:
        return same
    if any(u is not unknown[0] for u in unknown):
        return None
    solution = solve(left, right, unknown[0])
    if solution is None or solution is ANY:
        return False if solution is None else None
    unknown[0].link = solution
    return True


def map_type(ty: Type, leaf: Callable[[Type], Type]) -> Type:
    """The type with `leaf` applied to every tensor type, variable and unknown inside it."""
    done: dict[int, Type] = {}
    stack = [ty]
    while stack:
        node = stack[-1]
        if id(node) in done:
            stack.pop()
            continue
        children = parts(node)
        if not children and not isinstance(node, (TupleType, TypeCall)):
            done[id(node)] = leaf(node)
            stack.pop()
            continue
        missing = [part for part in children if id(part) not in done]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        new = [done[id(part)] for part in children]
        done[id(node)] = node if all(a is b for a, b in zip(children, new)) else with_parts(node, new)
    return done[id(ty)]


def substitute(ty: Type, mapping: dict[int, Type]) -> Type:
    """The type with variables replaced. The mapping's keys are the ids of the variables."""
    dims = {key: new for key, new in mapping.items() if isinstance(new, TypeVar)}

    def leaf(node: Type) -> Type:
        if isinstance(node, TensorType):
            shape = [with_names(d, lambda name: dims.get(id(name), name)) for d in node.shape] if dims else node.shape  # type: ignore[arg-type, return-value]
            return node if all(map(operator.is_, shape, node.shape)) else OpenTensor(shape, node.dtype, node.span)
        if type(node) is Unknown:
            term = find(node)
            return term if term is node else substitute(term, mapping)
        return mapping.get(id(node), node)

    return map_type(ty, leaf)


def fresh_for(params: Iterable[TypeVar], origin: Expr | None) -> dict[int, Type]:
    """An unknown for each type parameter, by the parameter's id."""
    return {id(p): DimUnknown(p.name_hint) if p.kind == "ShapeVar" else Unknown(origin, free=True) for p in params}


__all__ = [
    "LEAVES",
    "POISON",
    "DimUnknown",
    "OpenTensor",
    "Unknown",
    "find",
    "find_dim",
    "fresh_for",
    "map_type",
    "open_names",
    "substitute",
    "unify_computed",
]
