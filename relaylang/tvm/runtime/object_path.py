"""`tvm.runtime.ObjectPath`: the way from a root to a part of it, over attributes, elements and values of maps."""

from __future__ import annotations

from typing import Any


class ObjectPath:
    """A path; `root()` begins one. Paths of equal steps are equal."""

    __slots__ = ("_key", "parent")

    def __init__(self, parent: ObjectPath | None = None, key: Any = None) -> None:
        if type(self) is ObjectPath:
            raise ValueError("ObjectPath.root() begins a path")
        self.parent = parent
        self._key = key

    @staticmethod
    def root(root_name: str | None = None) -> ObjectPath:
        """The path without steps; `root_name` stands for the root in texts."""
        return RootPath(None, root_name)

    def _steps(self) -> list[ObjectPath]:
        """The paths from the root to this one."""
        paths: list[ObjectPath] = []
        path: ObjectPath | None = self
        while path is not None:
            paths.append(path)
            path = path.parent
        return paths[::-1]

    def _shown(self) -> str:
        raise AssertionError("a path has a class of its own")

    def get_prefix(self, length: int) -> ObjectPath:
        """The path of the first `length` steps; the root counts. Raises `IndexError`."""
        if length < 1:
            raise IndexError("Prefix length must be at least 1")
        if length > len(self):
            raise IndexError("Attempted to get a prefix longer than the path itself")
        return self._steps()[length - 1]

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether another path begins with this one."""
        return len(self) <= len(other) and other.get_prefix(len(self)) == self

    def attr(self, attr_key: str | None) -> ObjectPath:
        """The path to an attribute; None for one whose name is not known."""
        return UnknownAttributeAccessPath(self) if attr_key is None else AttributeAccessPath(self, attr_key)

    def array_index(self, index: int) -> ObjectPath:
        """The path to an element."""
        return ArrayIndexPath(self, int(index))

    def missing_array_element(self, index: int) -> ObjectPath:
        """The path to the place where an element is missing."""
        return MissingArrayElementPath(self, int(index))

    def map_value(self, key: Any) -> ObjectPath:
        """The path to a map's value."""
        return MapValuePath(self, key)

    def missing_map_entry(self) -> ObjectPath:
        """The path to the place where a map lacks an entry."""
        return MissingMapEntryPath(self)

    def __len__(self) -> int:
        return len(self._steps())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectPath):
            return NotImplemented
        mine, theirs = self._steps(), other._steps()
        return [(type(p), p._key) for p in mine] == [(type(p), p._key) for p in theirs]

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return "".join([path._shown() for path in self._steps()])

    __repr__ = __str__


class RootPath(ObjectPath):
    """The root itself."""

    __slots__ = ()

    def _shown(self) -> str:
        return "<root>" if self._key is None else str(self._key)


class AttributeAccessPath(ObjectPath):
    """To an attribute."""

    __slots__ = ()

    def _shown(self) -> str:
        return f".{self._key}"


class UnknownAttributeAccessPath(ObjectPath):
    """To an attribute whose name is not known."""

    __slots__ = ()

    def _shown(self) -> str:
        return ".<unknown attribute>"


class ArrayIndexPath(ObjectPath):
    """To an element."""

    __slots__ = ()

    def _shown(self) -> str:
        return f"[{self._key}]"


class MissingArrayElementPath(ObjectPath):
    """To the place where an element is missing."""

    __slots__ = ()

    def _shown(self) -> str:
        return f"[<missing element #{self._key}>]"


class MapValuePath(ObjectPath):
    """To a map's value."""

    __slots__ = ()

    def _shown(self) -> str:
        return f'["{self._key}"]' if isinstance(self._key, str) else f"[{self._key}]"


class MissingMapEntryPath(ObjectPath):
    """To the place where a map lacks an entry."""

    __slots__ = ()

    def _shown(self) -> str:
        return "[<missing entry>]"


__all__ = [
    "ArrayIndexPath",
    "AttributeAccessPath",
    "MapValuePath",
    "MissingArrayElementPath",
    "MissingMapEntryPath",
    "ObjectPath",
    "RootPath",
    "UnknownAttributeAccessPath",
]
