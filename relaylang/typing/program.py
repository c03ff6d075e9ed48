"""The program around an inference, and the types found so far."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ir.expr import Expr, Function, TypeData
from relaylang.ir.module import IRModule
from relaylang.ir.types import GlobalTypeVar, Type


class Program:
    """The functions by name and the type definitions that an inference may refer to.

    `given` has the types of functions that are not looked at. A `partial` program is the readable part of a wrong text. The
    reader has reported the names that it lacks, and their types agree with every type.
    """

    __slots__ = ("definitions", "functions", "given", "partial")

    def __init__(
        self,
        functions: Mapping[str, Function] | None = None,
        definitions: Mapping[GlobalTypeVar, TypeData] | None = None,
        given: Mapping[str, Type] | None = None,
        partial: bool = False,
    ) -> None:
        self.partial = partial
        self.functions: Mapping[str, Function] = functions if functions is not None else {}
        self.definitions: Mapping[GlobalTypeVar, TypeData] = definitions if definitions is not None else {}
        self.given: Mapping[str, Type] = given if given is not None else {}

    @staticmethod
    def of(module: IRModule | None, partial: bool = False) -> Program:
        """The functions and definitions of a module as it is now; nothing where there is no module."""
        if module is None:
            return Program(partial=partial)
        functions = {v.name_hint: f for v, f in module.functions.items()}
        return Program(functions, dict(module.type_definitions), partial=partial)


class Found:
    """The types found so far, by node, and the nodes in the order in which they were found."""

    __slots__ = ("order", "types")

    def __init__(self) -> None:
        self.types: dict[Expr, Type] = {}
        self.order: list[Expr] = []

    def put(self, node: Expr, ty: Type) -> None:
        """Give a node its type."""
        self.types[node] = ty
        self.order.append(node)


__all__ = ["Found", "Program"]
