"""One node as a conversion sees it."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder, Rank
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.tensorflow.tensors import array_of, dtype_of, shape_of
from relaylang.ir import Expr
from relaylang.ir.types import Dim

if TYPE_CHECKING:
    from relaylang.frontends.tensorflow.importer import Importer, Scope

_Int = builtins.int
_Float = builtins.float
_Bool = builtins.bool
#: The name of an attribute's value in AttrValue -> what it is.
_KINDS = {"s": "a text", "i": "a whole number", "f": "a number", "b": "true or false", "type": "an element type", "shape": "a shape"}


#: An operand of a node that takes more than tensors: a tensor, a list, a handle, a variable or a text.
Value = Any


class Numbers(list[Any]):
    """The elements of an operand or an attribute. A conversion that asks for one beyond them shows a wrong node."""

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError:
            raise Malformed(f"an operand or attribute has {len(self)} elements, and the operator needs the element {index}") from None


class Text:
    """A tensor of texts, which Relay has no form for."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values


class Variable:
    """A handle of a variable: the name of the node that makes it."""

    def __init__(self, name: str, shared: str) -> None:
        self.name = name
        self.shared = shared


class Node:
    """A node: its attributes, which have TensorFlow's defaults where the file leaves them out, and the builder `b`."""

    def __init__(self, importer: Importer, scope: Scope, proto: Any) -> None:
        self.importer = importer
        self.scope = scope
        self.proto = proto
        self.b: Builder = importer.builder

    @property
    def op(self) -> str:
        return str(self.proto.op)

    @property
    def name(self) -> str:
        return str(self.proto.name)

    def has(self, name: str) -> _Bool:
        """Whether the node states an attribute."""
        return self._attr(name) is not None

    def _attr(self, name: str) -> Any:
        if name not in self.proto.attr:
            return None
        value = self.proto.attr[name]
        if value.WhichOneof("value") == "placeholder":
            return self.scope.given.get(value.placeholder)
        return value

    def _get(self, name: str, kind: str, default: Any) -> Any:
        value = self._attr(name)
        if value is None:
            if default is None:
                raise Malformed(f"the attribute {name} is missing")
            return default
        if value.WhichOneof("value") != kind:
            raise Malformed(f"the attribute {name} is not {_KINDS.get(kind, kind)}")
        return getattr(value, kind)

    def _list(self, name: str, kind: str, default: Any) -> Any:
        if self._attr(name) is None and default is not None:
            return default
        return getattr(self._get(name, "list", None), kind)

    def int(self, name: str, default: _Int | None = None) -> _Int:
        """A whole number. Raises `Malformed` where it is missing and has no default."""
        return int(self._get(name, "i", default))

    def float(self, name: str, default: _Float | None = None) -> _Float:
        """A number."""
        return float(self._get(name, "f", default))

    def bool(self, name: str, default: _Bool = False) -> _Bool:
        """True or false."""
        return bool(self._get(name, "b", default))

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        value = self._get(name, "s", default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    def choice(self, name: str, default: str, values: Collection[str]) -> str:
        """A text that is one of some. Raises `Malformed` for another."""
        text = self.text(name, default)
        if text not in values:
            raise Malformed(f"the attribute {name} is {text[:40]!r}; it must be one of {', '.join(values)}")
        return text

    def ints(self, name: str, default: Sequence[_Int] | None = None) -> list[_Int]:
        """A list of whole numbers."""
        return Numbers([int(v) for v in self._list(name, "i", default)])

    def floats(self, name: str, default: Sequence[_Float] | None = None) -> list[_Float]:
        """A list of numbers."""
        return [float(v) for v in self._list(name, "f", default)]

    def dtype(self, name: str, default: str = "") -> str:
        """An element type."""
        if default and not self.has(name):
            return default
        return dtype_of(int(self._get(name, "type", None)), f"the attribute {name}")

    def shape(self, name: str) -> tuple[Dim, ...] | None:
        """A shape, `ANY` for unknown extents; None where the rank is unknown or nothing states the shape."""
        if not self.has(name):
            return None
        return shape_of(self._get(name, "shape", None))

    def tensor(self, name: str) -> np.ndarray:
        """A tensor's array."""
        return array_of(self._get(name, "tensor", None), self.b.budget, f"the attribute {name}")

    def function(self, name: str) -> Any:
        """A function by its name and its attributes."""
        return self._get(name, "func", None)

    def functions(self, name: str) -> list[Any]:
        """A list of functions."""
        return list(self._list(name, "func", None))

    def ints_of(self, x: Any, what: str) -> list[_Int]:
        """The elements of a constant operand as whole numbers. Raises `Unsupported` where it is computed."""
        if not isinstance(x, Expr):
            raise Malformed(f"{what} is no tensor of numbers")
        return Numbers(self.b.need_ints(x, what))

    def axis_of(self, x: Expr, rank: _Int, what: str = "the axis") -> _Int:
        """An axis, a constant operand of one element, counted from the front. Raises `Malformed` where there is none."""
        numbers = self.ints_of(x, what)
        if len(numbers) != 1:
            raise Malformed(f"{what} has {len(numbers)} elements, not one")
        return numbers[0] % Rank(rank)

    def axes_of(self, x: Expr, rank: _Int, what: str = "the axes") -> list[_Int]:
        """Axes, a constant operand, counted from the front and each once."""
        return list(dict.fromkeys(a % Rank(rank) for a in self.ints_of(x, what)))

    def real(self, x: Expr, y: Any) -> Any:
        """A constant of the element type of an operand."""
        return self.b.const(y, self.b.dtype(x))


def need_tensor(x: Any) -> Expr:
    """An operand that is one tensor. Raises `Unsupported` for texts, lists and handles."""
    if isinstance(x, Text):
        raise Unsupported("it takes texts, which have no form in Relay")
    if not isinstance(x, Expr):
        raise Unsupported("an operand is a list, an array or a variable, not a tensor")
    return x


__all__ = ["Node", "Numbers", "Text", "Value", "Variable", "need_tensor"]
