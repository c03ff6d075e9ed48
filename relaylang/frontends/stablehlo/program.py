"""A program of StableHLO as its readers give it: functions of operations on numbered values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.diagnostics.source import Span


@dataclass(frozen=True)
class Quantised:
    """How integers stand for real numbers: `(q - zero) * scale`, one pair for all, or one for each place along `axis`."""

    dtype: str
    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int | None = None


@dataclass(frozen=True)
class Tensor:
    """The type of a tensor: extents (None for `?`) and the element type, of the parts where `is_complex`."""

    shape: tuple[int | None, ...]
    dtype: str
    is_complex: bool = False
    quantised: Quantised | None = None


@dataclass(frozen=True)
class Several:
    """The type of a tuple."""

    fields: tuple[Any, ...]


@dataclass(frozen=True)
class Other:
    """A type without a form in Relay, such as `!stablehlo.token`."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """The name of a function, `@NAME` in the text."""

    name: str


@dataclass(frozen=True)
class Resource:
    """A constant whose bytes stand under a name at the end of the file."""

    name: str
    type: Any


@dataclass(frozen=True)
class Splat:
    """A constant of one element, repeated in a shape."""

    element: np.generic
    shape: tuple[int, ...]


@dataclass(slots=True)
class Op:
    """An operation: its name ("stablehlo.add"), numbers of values, types of results, attributes, regions and place."""

    name: str
    operands: list[int]
    results: list[int]
    types: list[Any]
    attributes: dict[str, Any]
    regions: list[Region]
    span: Span


@dataclass(slots=True)
class Region:
    """Operations over parameters. The last operation gives its results."""

    parameters: list[int] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


@dataclass(slots=True)
class Function:
    """A function; `types` are those of its results, `names` those of its parameters.

    `extents` are the names of open extents that parameters hold, by their places.
    """

    name: str
    region: Region
    types: list[Any]
    names: list[str]
    span: Span
    extents: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Program:
    """All functions by name, with the names and types of all values, and the bytes of constants by name."""

    functions: dict[str, Function] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    types: list[Any] = field(default_factory=list)
    resources: dict[str, bytes] = field(default_factory=dict)

    def value(self, name: str, ty: Any) -> int:
        """The number of a new value."""
        self.names.append(name)
        self.types.append(ty)
        return len(self.names) - 1


__all__ = ["Function", "Op", "Other", "Program", "Quantised", "Region", "Resource", "Several", "Splat", "Symbol", "Tensor"]
