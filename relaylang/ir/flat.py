"""Programs as flat lists of their objects, for pickling and copying: Python's own way recurses on a program's depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

#: The class of each object and its attributes. Other objects of the list stand in them by number.
Table = list[tuple[type, dict[str, Any]]]


class _Number(int):
    """An object's number in the list."""


class Flat:
    """The base of a program's nodes. `pickle` and `copy` keep types, places and shared nodes."""

    __slots__ = ()
    #: Whether all programs share one object, which has a name.
    is_record: ClassVar[bool] = False

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (flattened(self),)

    def __copy__(self) -> Any:
        new = object.__new__(type(self))
        for name, value in _attributes(self):
            setattr(new, name, value)
        return new


def _attributes(node: Any) -> Iterator[tuple[str, Any]]:
    for cls in type(node).__mro__:
        for name in vars(cls).get("__slots__", ()):
            if name != "__weakref__" and hasattr(node, name):
                yield name, getattr(node, name)
    yield from getattr(node, "__dict__", {}).items()


def flattened(root: Flat) -> Table:
    """The objects of a graph, the root first. Lists and maps nest as attributes do, not with the graph's size."""
    objects = [root]
    numbers = {id(root): 0}

    def encoded(value: Any) -> Any:
        if isinstance(value, Flat) and not value.is_record:
            if id(value) not in numbers:
                numbers[id(value)] = len(objects)
                objects.append(value)
            return _Number(numbers[id(value)])
        if type(value) in (tuple, list):
            return type(value)([encoded(v) for v in value])
        if isinstance(value, dict):
            return {encoded(k): encoded(v) for k, v in value.items()}
        return value

    table: Table = []
    while len(table) < len(objects):
        node = objects[len(table)]
        table.append((type(node), {name: encoded(value) for name, value in _attributes(node)}))
    return table


def rebuilt(table: Table) -> Any:
    """The root of the graph that a list holds."""
    objects: list[Any] = [object.__new__(cls) for cls, _ in table]

    def decoded(value: Any) -> Any:
        if type(value) is _Number:
            return objects[value]
        if type(value) in (tuple, list):
            return type(value)([decoded(v) for v in value])
        if type(value) is dict:
            return {decoded(k): decoded(v) for k, v in value.items()}
        return value

    for node, (_, attributes) in zip(objects, table):
        for name, value in attributes.items():
            setattr(node, name, decoded(value))
    return objects[0]
