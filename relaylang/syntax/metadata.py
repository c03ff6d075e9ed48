"""The metadata section of a text: what has no other form in it, as TVM's JSON."""

from __future__ import annotations

from typing import Any as AnyValue


class MetaNode:
    """A node of a type that we do not know, kept as it came: its type key and its attributes by name."""

    __slots__ = ("attrs", "type_key")
    __match_args__ = ("type_key", "attrs")

    def __init__(self, type_key: str, attrs: dict[str, AnyValue] | None = None) -> None:
        self.type_key = type_key
        self.attrs = attrs or {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetaNode):
            return NotImplemented
        return self.type_key == other.type_key and self.attrs == other.attrs

    def __hash__(self) -> int:
        return hash((self.type_key, len(self.attrs)))

    def __repr__(self) -> str:
        return f"MetaNode({self.type_key!r})"


def save_metadata(meta: dict[str, list[AnyValue]]) -> str:
    """The JSON text of a metadata section."""
    return ""
