"""One layer as a conversion sees it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.mxnet.params import DTYPES
from relaylang.frontends.mxnet.reader import Layer, Symbol

#: The methods `int` and `float` hide these names inside the class.
_Int = int
_Float = float
_REQUIRED: Any = object()


def listed(text: str) -> list[str]:
    """The entries of a tuple's text: `(1, None)` or `[1,2]`; of one number, that number."""
    return [part.strip() for part in text.strip().strip("()[]").split(",") if part.strip()]


class Graph:
    """A graph that is being converted: its nodes, and the results of each by its number."""

    def __init__(self, symbol: Symbol, depth: int) -> None:
        self.symbol = symbol
        self.depth = depth
        self.values: list[list[Any]] = [[] for _ in symbol.nodes]


class Conversions(Protocol):
    """What a conversion needs of the importer."""

    builder: Builder

    def convert_body(self, node: Node, symbol: Symbol, inputs: Sequence[Any]) -> list[Any]:
        """The results of a graph inside a layer for these inputs, converted in place."""


class Node:
    """A layer: its attributes, which are texts, by kind, and the builder `b`.

    `inputs` are all operands. An attribute that is "None" counts as absent.
    """

    def __init__(self, importer: Conversions, graph: Graph, layer: Layer) -> None:
        self.importer = importer
        self.graph = graph
        self.layer = layer
        self.b: Builder = importer.builder
        self.inputs: list[Any] = []

    @property
    def graphs(self) -> list[Symbol]:
        """The graphs inside the layer."""
        return self.layer.graphs

    def has(self, name: str) -> bool:
        """Whether the layer states the attribute, and it is not "None"."""
        return self.layer.attributes.get(name, "None").strip() != "None"

    def string(self, name: str, default: str = _REQUIRED) -> str:
        """A text. Raises `Malformed` where it is missing and has no default, as the other methods do."""
        if self.has(name):
            return self.layer.attributes[name].strip().strip("'\"")
        if default is _REQUIRED:
            raise Malformed(f"the attribute {name} is missing")
        return default

    def choice(self, name: str, default: str, allowed: Collection[str]) -> str:
        """A text of a few."""
        value = self.string(name, default)
        if value not in allowed:
            raise Malformed(f"the attribute {name} is {value[:40]!r}; it must be one of {', '.join(sorted(allowed))}")
        return value

    def int(self, name: str, default: _Int | None = None) -> _Int:
        """A whole number."""
        return _whole(name, self.string(name)) if default is None or self.has(name) else default

    def float(self, name: str, default: _Float | None = None) -> _Float:
        """A number."""
        return _real(name, self.string(name)) if default is None or self.has(name) else default

    def bool(self, name: str, default: bool = False) -> bool:
        """`True`, `1`, `False` or `0`."""
        if not self.has(name):
            return default
        value = self.string(name).lower()
        if value not in ("true", "false", "1", "0"):
            raise Malformed(f"the attribute {name} is {value[:40]!r}; it must be True or False")
        return value in ("true", "1")

    def ints(self, name: str, default: Sequence[_Int] | None = None, count: _Int | None = None) -> list[_Int]:
        """Whole numbers; `count` of them where it is given."""
        if default is not None and (not self.has(name) or not listed(self.string(name))):
            return list(default)
        values = [_whole(name, part) for part in listed(self.string(name))]
        if count is not None and len(values) != count:
            raise Malformed(f"the attribute {name} has {len(values)} numbers; it must have {count}")
        return values

    def bounds(self, name: str) -> list[_Int | None]:
        """Whole numbers, of which some may be "None"."""
        parts = listed(self.string(name)) if self.layer.attributes.get(name, "None") != "None" else []
        return [None if part == "None" else _whole(name, part) for part in parts]

    def floats(self, name: str, default: Sequence[_Float] | None = None) -> list[_Float]:
        """Numbers."""
        if default is not None and not self.has(name):
            return list(default)
        return [_real(name, part) for part in listed(self.string(name))]

    def dtype(self, name: str, default: str | None = None) -> str:
        """An element type, by its name or MXNet's number."""
        value = self.string(name, "" if default is None else default)
        if value == "":
            raise Malformed(f"the attribute {name} is missing")
        return dtype_of(value, f"the attribute {name}")

    def axis(self, name: str, rank: _Int, default: _Int | None = None) -> _Int:
        """An axis of so many, counted from the first."""
        value = self.int(name, default)
        if not -rank <= value < rank:
            raise Malformed(f"the attribute {name} is the axis {value} of {rank}")
        return value % rank

    def axes(self, name: str, rank: _Int) -> list[_Int] | None:
        """Different axes of so many; None where the attribute is absent or empty."""
        values = self.ints(name, [])
        if any(not -rank <= v < rank for v in values) or len({v % rank for v in values}) != len(values):
            raise Malformed(f"the attribute {name} is {values}; it must have different axes of {rank}")
        return [v % rank for v in values] or None


def dtype_of(value: str, what: str) -> str:
    """The element type of its name or of MXNet's number. Raises `Malformed`."""
    if value.lstrip("-").isdecimal() and int(value) in DTYPES:
        return np.dtype(DTYPES[int(value)]).name
    if value not in {np.dtype(dtype).name for dtype in DTYPES.values()}:
        raise Malformed(f"{what} is {value[:40]!r}, which is no element type of MXNet")
    return value


def _whole(name: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        number = _real(name, text)
        if number != number // 1 or abs(number) > 1 << 62:
            raise Malformed(f"the attribute {name} is {text[:40]!r}, which is no whole number") from None
        value = int(number)
    if abs(value) > 1 << 62:
        raise Malformed(f"the attribute {name} is {text[:40]!r}, which is beyond 64 bits")
    return value


def _real(name: str, text: str) -> float:
    try:
        return float({"True": "1", "False": "0"}.get(text, text).rstrip("f"))
    except ValueError:
        raise Malformed(f"the attribute {name} has {text[:40]!r}, which is no number") from None


__all__ = ["Graph", "Node", "dtype_of", "listed"]
