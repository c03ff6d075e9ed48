"""What JSON must be: parsers for the parts of manifests, put together as data.

A parser takes the place of a value in its document, such as `functions[3].entry`, and the value. It returns the value, or
what it stands for, and raises `ValueError` with the place and what must be there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Parser = Callable[[str, Any], Any]


def shown(value: Any) -> str:
    """A value in a message, cut to some 60 characters."""
    try:
        rendered = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        rendered = type(value).__name__
    return rendered if len(rendered) <= 60 else rendered[:57] + "..."


def wrong(place: str, wanted: str, found: Any) -> ValueError:
    """The error of a value that must be something else."""
    what = f"its manifest's field `{place}`" if place else "its manifest"
    return ValueError(f"{what} must be {wanted}, not {shown(found)}")


def text(place: str, value: Any) -> str:
    """A text, which every file and every message can hold."""
    if not isinstance(value, str):
        raise wrong(place, "a text", value)
    return value


def whole(low: int, high: int) -> Parser:
    """A whole number of a range, both ends included."""

    def parse(place: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise wrong(place, f"a whole number from {low} to {high}", value)
        return value

    return parse


def flag(place: str, value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise wrong(place, "true or false", value)
    return value


def one_of(*values: str) -> Parser:
    """One of some texts."""

    def parse(place: str, value: Any) -> str:
        if not isinstance(value, str) or value not in values:
            raise wrong(place, f"one of {', '.join(values)}" if len(values) > 1 else json.dumps(values[0]), value)
        return value

    return parse


def maybe(parser: Parser) -> Parser:
    """null, or what a parser takes."""
    return lambda place, value: None if value is None else parser(place, value)


def items(place: str, value: Any, length: int | None = None) -> list[Any]:
    """A list, of a length where one is given."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise wrong(place, "a list" if length is None else f"a list of {length}", value)
    return value


def several(parser: Parser) -> Parser:
    """A list of what a parser takes, as a list."""
    return lambda place, value: [parser(f"{place}[{n}]", item) for n, item in enumerate(items(place, value))]


def row(*parsers: Parser) -> Parser:
    """A list with a parser for each of its items, as a tuple."""

    def parse(place: str, value: Any) -> tuple[Any, ...]:
        fields = items(place, value, len(parsers))
        return tuple([parser(f"{place}[{n}]", item) for n, (parser, item) in enumerate(zip(parsers, fields))])

    return parse


def table(parser: Parser) -> Parser:
    """An object with any names, whose values a parser takes."""

    def parse(place: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise wrong(place, "an object", value)
        return {name: parser(_field(place, name), item) for name, item in value.items()}

    return parse


def record(fields: Mapping[str, Parser], optional: Mapping[str, Parser] | None = None) -> Parser:
    """An object with these fields, some of them optional, and no others."""
    every = {**fields, **(optional or {})}

    def parse(place: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise wrong(place, "an object", value)
        missing = next((name for name in fields if name not in value), None)
        if missing is not None:
            raise ValueError(f"its manifest has no field `{_field(place, missing)}`")
        unknown = next((name for name in value if name not in every), None)
        if unknown is not None:
            raise ValueError(f"its manifest has an unknown field, {shown(_field(place, unknown))}")
        return {name: every[name](_field(place, name), item) for name, item in value.items()}

    return parse


def _field(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def document(content: bytes | str, what: str = "its manifest") -> dict[str, Any]:
    """The object of a JSON text. Raises `ValueError` with the reason."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as e:
        where = f" at line {e.lineno}, column {e.colno}" if isinstance(e, json.JSONDecodeError) else ""
        raise ValueError(f"{what} is no JSON{where}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be an object, not {shown(value)}")
    return value


__all__ = [
    "Parser",
    "document",
    "flag",
    "items",
    "maybe",
    "one_of",
    "record",
    "row",
    "several",
    "shown",
    "table",
    "text",
    "whole",
    "wrong",
]
