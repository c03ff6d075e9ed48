"""The extents of a call against the signature of its function: each name stands for one extent.

A name gets its extent from the first argument that has it. Computed extents, such as `2 * n`, must follow from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relaylang.interpreter.values import Value
from relaylang.ir import Dim, TensorType, TupleType, Type
from relaylang.ir.extents import names_in, solve, with_names
from relaylang.ir.types import ANY, TypeVar, dim_text

#: A value, its type, and its name in a message.
Typed = tuple[Value, Type | None, str]


def has_names(ty: Type | None) -> bool:
    """Whether a type has a named extent. Types in data types, functions and references are not looked into."""
    stack = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TensorType):
            if not all([isinstance(d, int) or d is ANY for d in item.shape]):
                return True
        elif isinstance(item, TupleType):
            stack.extend(item.fields)
    return False


def contradictions(values: Sequence[Typed]) -> Iterator[tuple[int, str]]:
    """What contradicts the signature: the place of each wrong value and the reason. The values have their types but for names."""
    extents = [(place, *found) for place, (value, ty, _) in enumerate(values) for found in _extents(value, ty)]
    # Names first: an argument may come before those that have the names of its computed extents.
    extents.sort(key=lambda found: len(names_in(found[2])) - (type(found[2]) is TypeVar))
    known: dict[int, tuple[int, str]] = {}
    for place, shape, dim, axis in extents:
        names = names_in(dim)
        unknown = [name for name in names if id(name) not in known]
        has = f"has the shape {shape}: axis {axis} is {shape[axis]}"
        if len(unknown) > 1:
            continue
        try:
            expected = with_names(dim, lambda name: known[id(name)][0] if id(name) in known else name)
            solution = solve(expected, shape[axis], unknown[0]) if unknown else expected
        except ZeroDivisionError:
            yield place, f"{has}, but `{dim_text(dim)}` divides by 0"
            continue
        if unknown and isinstance(solution, int):
            known[id(unknown[0])] = int(solution), values[place][2]
        elif unknown and solution is None:
            yield place, f"{has}, which is no `{dim_text(dim)}`{_reasons(names, known)}"
        elif isinstance(expected, int) and expected != shape[axis]:
            where = f" in {known[id(dim)][1]}" if id(dim) in known else _reasons(names, known)
            yield place, f"{has}, but `{dim_text(dim)}` is {int(expected)}{where}"


def _reasons(names: Sequence[TypeVar], known: dict[int, tuple[int, str]]) -> str:
    """Where the extents of names come from."""
    found = [f"`{name.name_hint}` is {known[id(name)][0]} in {known[id(name)][1]}" for name in names if id(name) in known]
    return f" ({', '.join(found)})" if found else ""


def _extents(value: Value, ty: Type | None) -> Iterator[tuple[tuple[int, ...], Dim, int]]:
    """The named extents of a value's type, with the value's shape and the axis."""
    stack: list[tuple[Value, Type | None]] = [(value, ty)]
    while stack:
        item, wanted = stack.pop()
        if isinstance(wanted, TensorType):
            yield from [(item.shape, d, axis) for axis, d in enumerate(wanted.shape) if isinstance(d, TypeVar)]
        elif isinstance(wanted, TupleType):
            stack.extend(reversed(list(zip(item, wanted.fields))))


__all__ = ["contradictions", "has_names"]
