"""One operation as a conversion sees it."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.paddle.program import Operation
from relaylang.frontends.paddle.schema import DTYPES
from relaylang.ir import Expr

if TYPE_CHECKING:
    from relaylang.frontends.paddle.importer import Importer, Scope

#: An operand that is a tensor or a list of tensors, and cannot be left out.
Tensors = Any
#: Whole numbers of a file's attributes are at most so large.
LARGEST = 1 << 31


class Node:
    """An operation: its attributes and the builder `b`. `scope` has the values that its blocks may use."""

    def __init__(self, importer: Importer, operation: Operation, scope: Scope) -> None:
        self.importer = importer
        self.operation = operation
        self.scope = scope
        self.b: Builder = importer.builder

    def has(self, name: str) -> bool:
        """Whether the operation has an attribute."""
        return self.operation.attributes.get(name) is not None

    def _attribute(self, name: str, default: Any, kinds: tuple[type, ...]) -> Any:
        value = self.operation.attributes.get(name)
        if value is None:
            if default is None:
                raise Malformed(f"its attribute {name} is missing")
            return default
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise Malformed(f"its attribute {name} is {str(value)[:40]!r}")
        return value

    def int(self, name: str, default: builtins.int | None = None) -> builtins.int:
        """A whole number. Raises `Malformed`."""
        value = builtins.int(self._attribute(name, default, (builtins.int,)))
        if not -LARGEST <= value <= LARGEST:
            raise Malformed(f"its attribute {name} is {value}")
        return value

    def bool(self, name: str, default: builtins.bool | None = None) -> builtins.bool:
        """A truth value. Raises `Malformed`."""
        return builtins.bool(self._attribute(name, default, (bool, builtins.int)))

    def float(self, name: str, default: builtins.float | None = None) -> builtins.float:
        """A finite number. Raises `Malformed`."""
        value = builtins.float(self._attribute(name, default, (builtins.float, builtins.int)))
        if not math.isfinite(value):
            raise Malformed(f"its attribute {name} is {value}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A text. Raises `Malformed`."""
        return str(self._attribute(name, default, (str,)))

    def ints(self, name: str, default: Sequence[builtins.int] | None = None) -> list[builtins.int]:
        """Whole numbers; a single one is a list of one. Raises `Malformed`."""
        value = self._attribute(name, default, (list, tuple, builtins.int))
        numbers = [value] if isinstance(value, builtins.int) else list(value)
        if not all(type(v) is builtins.int and -LARGEST <= v <= LARGEST for v in numbers):
            raise Malformed(f"its attribute {name} is {str(value)[:40]}")
        return numbers

    def floats(self, name: str, default: Sequence[builtins.float] | None = None) -> list[builtins.float]:
        """Finite numbers; a single one is a list of one. Raises `Malformed`."""
        value = self._attribute(name, default, (list, tuple, builtins.int, builtins.float))
        numbers = [value] if isinstance(value, (builtins.int, builtins.float)) else list(value)
        if not all(isinstance(v, (builtins.int, builtins.float)) and math.isfinite(v) for v in numbers):
            raise Malformed(f"its attribute {name} is {str(value)[:40]}")
        return [builtins.float(v) for v in numbers]

    def values(self, name: str, dtype: str) -> np.ndarray:
        """A vector of numbers that may be infinite. Raises `Malformed`."""
        value = self._attribute(name, None, (list, tuple, builtins.int, builtins.float, bool))
        numbers = list(value) if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(v, (builtins.int, builtins.float)) for v in numbers):
            raise Malformed(f"its attribute {name} is {str(value)[:40]}")
        try:
            return np.array(numbers).astype(np.dtype(dtype))
        except (OverflowError, ValueError):
            raise Malformed(f"its attribute {name} is {str(value)[:40]}, and its elements are {dtype}") from None

    def dtype(self, name: str = "dtype", default: str = "") -> str:
        """An element type; the default where it is not stated. Raises `Malformed`."""
        value = self.operation.attributes.get(name)
        if value is None or value == -1 or (isinstance(value, str) and value.lower().startswith("undefined")):
            return default
        if isinstance(value, builtins.int) and value in DTYPES:
            return DTYPES[value]
        if isinstance(value, str) and value in DTYPES.values():
            return value
        raise Malformed(f"its element type is {str(value)[:40]!r}")

    def axis(self, x: Expr, name: str = "axis", default: builtins.int | None = None) -> builtins.int:
        """An axis of an operand, counted from its end where it is negative."""
        return builtins.int(self.int(name, default) % self.b.rank(x))

    # ---- operands

    def vector(self, value: Any, dtype: str = "int64") -> Expr:
        """Whole numbers of an operand as a vector: one tensor, or a list of tensors of one element."""
        b = self.b
        if isinstance(value, list):
            parts = [b.reshape_exactly(b.cast(v, dtype), [1]) for v in value]
            return b.concat(parts, 0) if parts else b.const(np.zeros(0, dtype))
        if isinstance(value, Expr) and b.rank(value) != 1:
            value = b.op("reshape", value, newshape=[-1])
        return b.cast(value, dtype)

    def numbers(self, value: Any, what: str) -> list[builtins.int]:
        """The whole numbers of an operand that is known. Raises `Unsupported`."""
        return self.b.need_ints(self.vector(value), what)

    def number(self, value: Any, what: str, default: builtins.int = 0) -> builtins.int:
        """The whole number of an operand that is known; the default for none. Raises `Unsupported`."""
        if value is None:
            return default
        numbers = self.numbers(value, what)
        if len(numbers) != 1:
            raise Malformed(f"{what} has {len(numbers)} elements")
        return numbers[0]

    def list(self, value: Any) -> list[Expr]:
        """The tensors of an operand that is a list; one tensor alone is a list of one."""
        tensors = value if isinstance(value, list) else [value]
        if not tensors or not all(isinstance(v, Expr) for v in tensors):
            raise Malformed("an operand is no list of tensors")
        return list(tensors)

    def channels_first(self, x: Expr, convert: Callable[[Expr], Expr], name: str = "data_format") -> Expr:
        """A conversion of (n, c, d...) for an operand whose channels may be last."""
        b, rank = self.b, self.b.rank(x)
        if not self.text(name, "NCHW").endswith("C") or rank < 3:
            return convert(x)
        converted = convert(b.transpose(x, [0, rank - 1, *range(1, rank - 1)]))
        return b.transpose(converted, [0, *range(2, rank), 1])


__all__ = ["LARGEST", "Node", "Tensors"]
