"""Types with parts replaced, and predicates of their parts. Each shared part is visited once, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylang.ir.types import FuncType, RefType, TupleType, Type, TypeCall, type_children

Make = Callable[[Type, Sequence[Type]], Type]


def parts(ty: Type) -> tuple[Type, ...]:
    """The types that a composite type is made of, without the name of a definition."""
    if isinstance(ty, TupleType):
        return ty.fields
    if isinstance(ty, FuncType):
        return (*ty.arg_types, ty.ret_type)
    if isinstance(ty, RefType):
        return (ty.value,)
    if isinstance(ty, TypeCall):
        return ty.args
    return ()


def with_parts(ty: Type, new: Sequence[Type]) -> Type:
    """The composite type with other parts."""
    if isinstance(ty, TupleType):
        return TupleType(new, ty.span)
    if isinstance(ty, FuncType):
        return FuncType(new[:-1], new[-1], ty.type_params, ty.type_constraints, ty.span)
    if isinstance(ty, RefType):
        return RefType(new[0], ty.span)
    assert isinstance(ty, TypeCall)
    return TypeCall(ty.func, new, ty.span)


class TypeMap:
    """A map of types, parts first: `make(type, mapped parts)` gives the type's replacement.

    `inside(type)` gives the parts to visit. Each type is mapped once.
    """

    def __init__(self, make: Make, inside: Callable[[Type], Sequence[Type]] = parts) -> None:
        self._make = make
        self._inside = inside
        self._done: dict[int, tuple[Type, Type]] = {}  # with the type itself, so that its id stays its own

    def __call__(self, ty: Type) -> Type:
        done = self._done
        stack = [ty]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            inner = self._inside(node)
            missing = [part for part in inner if id(part) not in done]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            done[id(node)] = (node, self._make(node, [done[id(part)][1] for part in inner]))
        return done[id(ty)][1]


def replacing(f: Callable[[Type], Type | None]) -> TypeMap:
    """A map that replaces parts, outermost first: `f` gives a part's replacement, or None to look into it."""

    def make(ty: Type, new: Sequence[Type]) -> Type:
        replacement = f(ty)
        if replacement is not None:
            return replacement
        return ty if all(a is b for a, b in zip(parts(ty), new)) else with_parts(ty, new)

    return TypeMap(make, lambda ty: () if f(ty) is not None else parts(ty))


def map_type(ty: Type, f: Callable[[Type], Type | None]) -> Type:
    """A type with parts replaced, as `replacing`."""
    return replacing(f)(ty)


class HasPart:
    """Whether `test` holds for a type or a part of it. Each type is tested once."""

    def __init__(self, test: Callable[[Type], bool]) -> None:
        self._test = test
        self._without: dict[int, Type] = {}
        self._with: dict[int, Type] = {}

    def __call__(self, ty: Type) -> bool:
        stack = [ty]
        new: dict[int, Type] = {}
        while stack:
            node = stack.pop()
            if id(node) in self._without or id(node) in new:
                continue
            if id(node) in self._with or self._test(node):
                self._with[id(ty)] = ty
                return True
            new[id(node)] = node
            stack.extend(type_children(node))
        self._without.update(new)
        return False


__all__ = ["HasPart", "TypeMap", "map_type", "parts", "replacing", "with_parts"]
