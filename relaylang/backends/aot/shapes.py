"""Shapes of values: their tensors, how tuples hold them, and the function for functions.

A shape is a flat tuple of tokens, a whole before its parts. So shapes of any depth are compared and hashed without recursion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.ir import TensorType, TupleType, Type


@dataclass(frozen=True)
class Leaf:
    """A tensor of known shape. One without dimensions is a number in a C variable."""

    dtype: str
    dims: tuple[int, ...]

    parts = 0

    @property
    def is_scalar(self) -> bool:
        return not self.dims


@dataclass(frozen=True)
class Fields:
    """A tuple of so many parts, which follow."""

    parts: int


@dataclass(frozen=True)
class Known:
    """A function by its number in the program; so many captured values follow."""

    function: int
    parts: int


Token = Leaf | Fields | Known
Shape = tuple[Token, ...]


def leaves(shape: Iterable[Token]) -> list[Leaf]:
    """The tensors of a shape, from left to right."""
    return [token for token in shape if isinstance(token, Leaf)]


def parts(shape: Sequence[Token]) -> Iterator[Shape]:
    """The shapes directly inside a tuple or function."""
    at = 1
    for _ in range(shape[0].parts):
        start, waiting = at, 1
        while waiting:
            waiting += shape[at].parts - 1
            at += 1
        yield tuple(shape[start:at])


def shape_of(ty: Type | None) -> Shape | None:
    """The shape of a type of tensors and tuples; None for other types, and where an extent is not known."""
    out: list[Token] = []
    stack = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TupleType):
            out.append(Fields(len(item.fields)))
            stack.extend(reversed(item.fields))
        elif isinstance(item, TensorType) and all(isinstance(d, int) for d in item.shape):
            out.append(Leaf(item.dtype, tuple(int(d) for d in item.shape)))  # type: ignore[arg-type]
        else:
            return None
    return tuple(out)


def paths(shape: Shape) -> list[tuple[tuple[int, ...], Leaf]]:
    """The tensors of a shape, each with its place in the tuples."""
    out: list[tuple[tuple[int, ...], Leaf]] = []
    stack: list[tuple[tuple[int, ...], Shape]] = [((), shape)]
    while stack:
        path, item = stack.pop()
        if isinstance(item[0], Leaf):
            out.append((path, item[0]))
        else:
            stack += reversed([((*path, n), part) for n, part in enumerate(parts(item))])
    return out


def structure(shape: Shape) -> Any:
    """The number of an output, or a list of structures."""
    count = 0
    top: list[Any] = []
    stack = [(top, 1)]
    for token in shape:
        while stack[-1][1] == 0:
            stack.pop()
        into, left = stack.pop()
        stack.append((into, left - 1))
        if isinstance(token, Leaf):
            into.append(count)
            count += 1
        else:
            into.append([])
            stack.append((into[-1], token.parts))
    return top[0]
