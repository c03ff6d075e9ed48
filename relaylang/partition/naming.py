"""Names that partitioning makes: region functions, composites, and the parameters of both."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from relaylang.ir import Call, Expr, Function, Var, children
from relaylang.ops.record import Op
from relaylang.patterns.groups import Group


class Naming:
    """TVM's names."""

    def numbers(self, order: Iterable[Expr], owner: Mapping[int, Any]) -> dict[int, int]:
        """A number for each region, by its id: the values that nodes of regions got from outside before it did.

        `order` has the function's nodes, producers first, and `owner` the regions of nodes by their ids.
        """
        numbers: dict[int, int] = {}
        count = 0
        for node in order:
            region = owner.get(id(node))
            for part in children(node) if region is not None else ():
                if owner.get(id(part)) is not region and not isinstance(part, (Function, Op)):
                    numbers.setdefault(id(region), count)
                    count += 1
        return numbers

    def region(self, prefix: str, target: str, entry: str, number: int, taken: Container[str]) -> str:
        """The name of a region's function, `<prefix><target>_<entry>_<number>`, which no other function has."""
        name = "".join([c if c.isalnum() or c == "_" else "_" for c in f"{prefix}{target}_{entry}_{number}"])
        while name in taken:
            name += "_"
        return name

    def region_attrs(self, target: str, symbol: str) -> dict[str, Any]:
        """The attributes of a region's function."""
        return {"Primitive": 1, "Compiler": target, "Inline": 1, "global_symbol": symbol}

    def region_param(self, target: str, number: int, index: int, node: Expr) -> str:
        """The name of a region's parameter for a value from outside."""
        return f"{target}_{number}_i{index}"

    def composite_param(self, number: int, index: int) -> str:
        """The name of a composite's parameter."""
        return f"FunctionVar_{number}_{index}"

    def composite_label(self, group: Group) -> str:
        """A composite's `PartitionedFromPattern`."""
        return group.name


class PlainNaming(Naming):
    """Short names: a region's parameter keeps the name of the variable that it stands for."""

    def numbers(self, order: Iterable[Expr], owner: Mapping[int, Any]) -> dict[int, int]:
        return {}

    def region(self, prefix: str, target: str, entry: str, number: int, taken: Container[str]) -> str:
        name = f"{prefix}{target.replace('-', '_')}_{entry}_{number}"
        candidate, count = name, 1
        while candidate in taken:
            candidate, count = f"{name}_{count}", count + 1
        return candidate

    def region_attrs(self, target: str, symbol: str) -> dict[str, Any]:
        return {"Inline": 1, "Compiler": target, "global_symbol": symbol, "Primitive": 1}

    def region_param(self, target: str, number: int, index: int, node: Expr) -> str:
        return node.name_hint if isinstance(node, Var) else f"in{index}"

    def composite_param(self, number: int, index: int) -> str:
        return f"in{index}"

    def composite_label(self, group: Group) -> str:
        """The composite's operators, tuples left out."""
        return "".join([f"{n.op.name}_" for n in group.body if isinstance(n, Call) and isinstance(n.op, Op)])


TVM_NAMES = Naming()
PLAIN_NAMES = PlainNaming()

__all__ = ["PLAIN_NAMES", "TVM_NAMES", "Naming", "PlainNaming"]
