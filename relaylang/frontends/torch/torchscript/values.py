"""The values of a TorchScript program: what its file holds, and what its code computes with."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from relaylang.frontends.common import Unsupported
from relaylang.ir import Expr
from relaylang.runtime.budget import Budget

#: ScalarType of PyTorch to element types. Quantised tensors have those of their whole numbers.
DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    9: "complex64",
    10: "complex128",
    11: "bool",
    12: "int8",
    13: "uint8",
    14: "int32",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
#: Element types to ScalarType.
NUMBERS = {name: number for number, name in reversed(DTYPES.items())}


@dataclass(frozen=True, eq=False)
class Quant:
    """How whole numbers stand for real ones: `(q - zero) * scale`; scalars, or vectors along `axis`."""

    scale: np.ndarray
    zero: np.ndarray
    axis: int = -1

    @staticmethod
    def of(scale: Any, zero: Any) -> Quant:
        """One scale and zero point."""
        return Quant(np.asarray(scale, np.float32), np.asarray(zero, np.int32))


@dataclass(eq=False)
class Stored:
    """A tensor of the file. `name` is the path of its attribute."""

    array: np.ndarray
    quant: Quant | None = None
    name: str = ""
    #: Whether it stands for a number in the code.
    number: bool = False
    #: The tensor that the program computes with, once it is used.
    made: Tensor | None = None


@dataclass(eq=False)
class Record:
    """An object of a class of the program, or of one of PyTorch's own. `state` is what the file restores it from."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    state: Any = None
    path: str = ""


@dataclass(eq=False)
class Packed:
    """Weights of a quantised layer with the numbers of its window. `name` is the path of the module that has them."""

    weight: Any
    bias: Any
    window: dict[str, Any] = field(default_factory=dict)
    name: str = ""


#: The numbers of tensors in the order of their making.
BIRTHS = count(1)


class Tensor:
    """A tensor that the code holds: an expression, or a complex number. Names of one tensor see each write into it.

    A view has its `base`, and `again`, which makes the view of the base's value. `back` puts a view's new value into the
    base's value; it is None where that is not possible. `ordered` says whether the elements lie behind each other
    in memory, None where that is not known. `number` is true for one that stands for a number: it has its kind only.
    `birth` grows from tensor to tensor, and tells a loop which tensors its body makes; a tensor of the file has 0.
    """

    __slots__ = ("again", "back", "base", "birth", "number", "ordered", "quant", "seen", "value", "version")

    def __init__(self, value: Any, quant: Quant | None = None) -> None:
        self.value = value
        self.quant = quant
        self.base: Tensor | None = None
        self.again: Callable[[Expr], Expr] | None = None
        self.back: Callable[[Expr, Expr], Expr] | None = None
        self.ordered: bool | None = True
        self.number = False
        self.version = 0
        self.seen = 0
        self.birth = next(BIRTHS)

    def view_of(self, base: Tensor, again: Callable[[Expr], Expr] | None, back: Callable[[Expr, Expr], Expr] | None) -> None:
        """Note that this is a view of another tensor."""
        self.base, self.again, self.back, self.seen = base, again, back, base.version

    def read(self) -> Expr:
        """The present value. Raises `Unsupported` where the base of a view was written, and the view cannot follow."""
        chain: list[Tensor] = [self]
        while chain[-1].base is not None:
            chain.append(chain[-1].base)
        for i in range(len(chain) - 2, -1, -1):
            view, base = chain[i], chain[i + 1]
            if view.seen != base.version:
                if view.again is None:
                    raise Unsupported("it reads a tensor that may be a copy or a view of another, which was written")
                view.value, view.seen = view.again(base.value), base.version
                view.version += 1
        return self.value

    def write(self, value: Expr) -> None:
        """Put a new value here and into the bases of views. Raises `Unsupported` where it cannot reach them."""
        self.read()
        self.value = value
        self.version += 1
        view = self
        while view.base is not None:
            if view.back is None:
                raise Unsupported("it writes into a tensor that may be a copy or a view")
            base = view.base
            base.value = view.back(base.value, view.value)
            base.version += 1
            view.seen = base.version
            view = base


@dataclass(frozen=True)
class Undefined:
    """A value that must not be used, and the reason."""

    reason: str


#: The value of a call that was not converted.
MISSING = Undefined("")


class Raised(Exception):
    """The program refuses its inputs: it raises an error itself."""


class Skipped(Exception):
    """The value is needed now, but its own call was not converted."""


def count_parts(budget: Budget, value: Any) -> None:
    """Take a node for each value inside lists, tuples and dicts, as often as it occurs there. Raises `Exhausted`."""
    stack = [value]
    while stack:
        at = stack.pop()
        if isinstance(at, (list, tuple, dict)) and at:
            budget.take_nodes(len(at), "building lists in lists")
            stack += at.values() if isinstance(at, dict) else at


#: Python's types of values by the names that the code has for them.
_TYPES: dict[str, Any] = {
    "Tensor": (Tensor, Stored),
    "list": list,
    "List": list,
    "tuple": tuple,
    "Tuple": tuple,
    "dict": dict,
    "Dict": dict,
    "str": str,
    "NoneType": type(None),
}


def is_of(value: Any, kind: ast.expr) -> bool:
    """Whether a value has a type that the code names. Of a list's elements, the first one tells.

    Raises `Unsupported` for types of other names, and for numbers that are not known.
    """
    match kind:
        case ast.Tuple(elts=kinds):
            return any(is_of(value, k) for k in kinds)
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return value is None or is_of(value, inner)
        case ast.Subscript(value=ast.Name(id="List"), slice=inner):
            return isinstance(value, list) and (not value or is_of(value[0], inner))
        case ast.Subscript(value=ast.Name(id=name)) | ast.Name(id=name) if name in _TYPES:
            return isinstance(value, _TYPES[name])
        case ast.Name(id="int" | "float" | "bool" as name) if not isinstance(value, Expr):
            return type(value).__name__ == name
    raise Unsupported(f"it asks whether a value is of the type {ast.unparse(kind)[:40]}")


__all__ = [
    "BIRTHS",
    "DTYPES",
    "MISSING",
    "NUMBERS",
    "Packed",
    "Quant",
    "Raised",
    "Record",
    "Skipped",
    "Stored",
    "Tensor",
    "Undefined",
    "is_of",
]
