"""A program of PaddlePaddle in one form, whichever file it comes from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from relaylang.diagnostics import Diagnostic

#: What names a value: a variable's name in a `.pdmodel`, a number in a `.json`.
Key = Hashable


@dataclass
class Operation:
    """An operation: `type` is the name that the table of conversions knows, `name` that of the file.

    An operand is a key, a list of keys, a constant that an attribute gave, or None. A result is a key or a list of keys.
    """

    type: str
    name: str
    operands: list[Any]
    results: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    #: The operand that the first result replaces, for an operation that works in place.
    changed: Key | None = None


@dataclass
class Block:
    """Operations in their order, and the keys of the block's own arguments."""

    operations: list[Operation] = field(default_factory=list)
    arguments: list[Key] = field(default_factory=list)


@dataclass
class Given:
    """A tensor that a program is given, with -1 for extents that it leaves open; None for no shape."""

    name: str
    key: Key
    shape: tuple[int, ...] | None
    dtype: str


@dataclass
class Program:
    """The main block, the inputs in their order, the weights, the keys of the results, and the number of operations.

    `warnings` are those of the file.
    `stated` gives the shape and the element type that the file states for a key, None for each that it does not.
    """

    block: Block
    inputs: list[Given]
    weights: list[Given]
    results: list[Key]
    size: int
    stated: Callable[[Key], tuple[tuple[int, ...] | None, str | None]]
    warnings: list[Diagnostic] = field(default_factory=list)


__all__ = ["Block", "Given", "Key", "Operation", "Program"]
