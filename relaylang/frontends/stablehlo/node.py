"""One operation as a conversion sees it."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.complexes import Complex
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.stablehlo.program import Op, Region, Splat, Symbol, Tensor
from relaylang.ir import Expr

if TYPE_CHECKING:
    from relaylang.frontends.stablehlo.importer import Importer


#: The value of a result whose operation was not converted.
MISSING = object()


class Skipped(Exception):
    """The operation uses a value whose own operation was not converted."""


class Node:
    """An operation: operands (`x`), attributes, regions, and the builder `b`.

    With `part`, complex operands are one of their parts. With `real`, quantised operands are real numbers.
    """

    def __init__(self, importer: Importer, op: Op, part: str = "", real: bool = False) -> None:
        self.importer = importer
        self.op = op
        self.part = part
        self.real = real
        self.attributes = op.attributes
        self.b: Builder = importer.builder

    def __len__(self) -> int:
        return len(self.op.operands)

    def any(self, index: int) -> Any:
        """An operand of any kind: a tensor, a complex tensor, or a list for a tuple."""
        if index >= len(self.op.operands):
            raise Malformed(f"the operand {index} is missing: it has {len(self.op.operands)}")
        value = self.importer.values[self.op.operands[index]]
        if self.part and isinstance(value, Complex):
            return getattr(value, self.part)
        if self.real and isinstance(value, Expr):
            ty = self.type(index)
            if isinstance(ty, Tensor) and ty.quantised is not None:
                return self.importer.dequantised(value, ty.quantised)
        return value

    def x(self, index: int) -> Expr:
        """An operand, a tensor."""
        value = self.any(index)
        if not isinstance(value, Expr):
            raise Unsupported("it has no form for complex numbers" if isinstance(value, Complex) else "an operand is no tensor")
        return value

    def xs(self, first: int = 0, end: int | None = None) -> list[Expr]:
        """Some operands."""
        return [self.x(i) for i in range(first, len(self) if end is None else end)]

    def of(self, count: int) -> list[Expr]:
        """All operands, which must be so many tensors."""
        if len(self) != count:
            raise Malformed(f"it has {len(self)} operands, and must have {count}")
        return self.xs()

    def type(self, index: int) -> Any:
        """The stated type of an operand."""
        return self.importer.program.types[self.op.operands[index]]

    def out(self, index: int = 0) -> Tensor:
        """The stated type of a result, a tensor's."""
        if index >= len(self.op.types) or not isinstance(self.op.types[index], Tensor):
            raise Malformed(f"the result {index} must be a tensor")
        stated: Tensor = self.op.types[index]
        return stated

    def out_shape(self, index: int = 0) -> list[int]:
        """The extents of a result, which must be known."""
        shape = self.out(index).shape
        if None in shape:
            raise Unsupported("its result must have a known shape; --shape gives those of the inputs")
        return [d for d in shape if d is not None]

    # ---- attributes

    def ints(self, name: str, count: int | None = None, default: Sequence[int] | int | None = None) -> list[int]:
        """A list of whole numbers: a list, an array or a constant. A number as default stands `count` times."""
        value = self.attributes.get(name)
        if value is None:
            if isinstance(default, int):
                default = [default] * (count or 0)
            if default is None:
                raise Malformed(f"its attribute {name} is missing")
            value = list(default)
        if isinstance(value, Splat):
            value = self.b.arrays.full(value.shape, value.element)
        if isinstance(value, np.ndarray):
            value = value.reshape(-1).tolist()
        if not isinstance(value, list) or any(not isinstance(v, int) for v in value):
            raise Malformed(f"its attribute {name} must be whole numbers")
        if any(abs(v) >= 1 << 62 for v in value):
            raise Malformed(f"its attribute {name} has a number that is too large")
        if count is not None and len(value) != count:
            raise Malformed(f"its attribute {name} has {len(value)} numbers; it must have {count}")
        return [int(v) for v in value]

    def pairs(self, name: str, count: int) -> list[tuple[int, int]]:
        """The padding of each axis."""
        value = self.attributes.get(name)
        if isinstance(value, list) and value and all(isinstance(v, list) and len(v) == 2 for v in value):
            self.attributes[name] = value = [v for pair in value for v in pair]
        flat = self.ints(name, 2 * count, 0)
        return list(zip(flat[::2], flat[1::2]))

    def int(self, name: str, default: builtins.int | None = None) -> builtins.int:
        """A whole number."""
        value = self.attributes.get(name, default)
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.item()
        if not isinstance(value, int) or abs(value) >= 1 << 62:
            raise Malformed(f"its attribute {name} must be a whole number")
        return int(value)

    def float(self, name: str) -> builtins.float:
        """A real number."""
        value = self.attributes.get(name)
        if not isinstance(value, (int, float)):
            raise Malformed(f"its attribute {name} must be a number")
        return float(value)

    def word(self, name: str, default: str = "") -> str:
        """A word: of an enumeration, or a text."""
        value = self.attributes.get(name, default)
        value = value.name if isinstance(value, Symbol) else value
        if not isinstance(value, str):
            raise Malformed(f"its attribute {name} must be a word")
        return value

    # ---- regions

    def region(self, index: builtins.int) -> Region:
        if index >= len(self.op.regions):
            raise Malformed(f"it has {len(self.op.regions)} regions, and needs {index + 1}")
        return self.op.regions[index]

    def apply(self, region: Region, values: Sequence[Any], lifted: bool = False) -> list[Any]:
        """The results of a region for these values. With `lifted`, a region of scalars is applied to each element."""
        return self.importer.run_region(region, values, lifted)


__all__ = ["MISSING", "Node", "Skipped"]
