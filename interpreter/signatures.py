"""The extents of a call against the signature of its function: each name stands for one extent.

A name gets its extent from the first argument that has it. Computed extents, such as `2 * n`, must follow from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from relaylang.interpreter.errors import Trap
from relaylang.interpreter.values import Value, mismatch
from relaylang.ir import Call, Dim, TensorType, TupleType, Type, Var
from relaylang.ir.extents import names_in, solve, with_names
from relaylang.ir.types import ANY, ComputedDim, TypeVar, dim_text

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


def may_contradict(have: Type | None, wanted: Type | None) -> bool:
    """Whether values of one type may lack the extents of another: the checker takes `?` and computed extents for any."""
    stack = [(have, wanted)]
    while stack:
        a, b = stack.pop()
        if isinstance(a, TensorType) and isinstance(b, TensorType):
            if any([e is not ANY and (d is ANY or isinstance(d, ComputedDim)) for d, e in zip(a.shape, b.shape)]):
                return True
        elif isinstance(a, TupleType) and isinstance(b, TupleType):
            stack += zip(a.fields, b.fields)
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


def checked(fetch: Callable[[list[Value]], list[Value]], call: Call, params: Sequence[Var], name: str) -> Callable[..., list[Value]]:
    """The fetching of a call's arguments, which looks at their extents where the checker left some open. It raises `Trap` (R0402)."""
    types = [p.checked_type or p.type_annotation for p in params]
    if not any([may_contradict(a.checked_type, ty) for a, ty in zip(call.args, types)]):
        return fetch

    def fetched(slots: list[Value]) -> list[Value]:
        values = fetch(slots)
        typed = [(value, ty, f"%{p.name_hint}") for value, ty, p in zip(values, types, params)]
        wrong = next(((place, why) for place, (value, ty, _) in enumerate(typed) if (why := mismatch(value, ty))), None)
        wrong = wrong or next(contradictions(typed), None)
        if wrong is not None:
            raise Trap("R0402", f"{name}: the argument for {typed[wrong[0]][2]} {wrong[1]}", call)
        return values

    return fetched


__all__ = ["checked", "contradictions", "has_names", "may_contradict"]
