"""Modules: named functions and type definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any as AnyValue
from typing import overload

from relaylang.ir.expr import Constructor, Expr, Function, GlobalVar, TypeData
from relaylang.ir.flat import Flat
from relaylang.ir.shown import Shown
from relaylang.ir.types import GlobalTypeVar
from relaylang.ir.visit import free_vars
from relaylang.services import service


def function_of(value: AnyValue) -> Function:
    """The function itself, or a function of the free variables of another expression.

    Raises `TypeError` for a value that is not an expression.
    """
    if isinstance(value, Expr) and not isinstance(value, Function):
        return Function(free_vars(value), value, span=value.span)
    if not isinstance(value, Function):
        raise TypeError(f"a module's function is a Function or another expression, not a value of type {type(value).__name__}")
    return value


class IRModule(Shown, Flat):
    """A program: functions by `GlobalVar`, type definitions by `GlobalTypeVar`, and module attributes.

    Indexing takes a name or a variable: `mod["main"]`. For a missing definition, the module asks its `library`, if it has
    one, and otherwise raises `KeyError`.
    """

    def __init__(
        self,
        functions: Mapping[GlobalVar, Function] | Mapping[str, Expr] | None = None,
        type_definitions: Mapping[GlobalTypeVar, TypeData] | Mapping[str, TypeData] | None = None,
        attrs: Mapping[str, AnyValue] | None = None,
    ) -> None:
        self.functions: dict[GlobalVar, Function] = {}
        for name, function in (functions or {}).items():
            self.functions[name if isinstance(name, GlobalVar) else GlobalVar(name)] = function_of(function)
        self.type_definitions: dict[GlobalTypeVar, TypeData] = {}
        for ty, data in (type_definitions or {}).items():
            self.type_definitions[ty if isinstance(ty, GlobalTypeVar) else GlobalTypeVar(ty)] = data
        self.attrs: dict[str, AnyValue] = dict(attrs or {})
        self._globals = {gv.name_hint: gv for gv in self.functions}
        self._types = {gtv.name_hint: gtv for gtv in self.type_definitions}
        self.library: Callable[[IRModule, str | int], bool] | None = None

    @classmethod
    def from_expr(
        cls,
        expr: Expr,
        functions: Mapping[GlobalVar, Function] | None = None,
        type_defs: Mapping[GlobalTypeVar, TypeData] | None = None,
    ) -> IRModule:
        """A module whose `@main` is `expr`, wrapped into a function of its free variables if it is not one already."""
        mod = cls(functions, type_defs)
        mod["main"] = expr
        return mod

    def __str__(self) -> str:
        return self.astext(show_meta_data=False)

    def get_global_var(self, name: str) -> GlobalVar:
        """The function's variable. Raises `KeyError`."""
        if name not in self._globals and self.library is not None:
            self.library(self, name)
        return self._globals[name]

    def get_global_vars(self) -> list[GlobalVar]:
        return list(self.functions)

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        return list(self.type_definitions)

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The type definition's variable. Raises `KeyError`."""
        if name not in self._types and self.library is not None:
            self.library(self, name)
        return self._types[name]

    def get_type(self, name: str) -> tuple[GlobalTypeVar | Constructor, ...]:
        """The type definition's variable and its constructors: `List, Cons, Nil = mod.get_type("List")`."""
        var = self.get_global_type_var(name)
        return (var, *self.type_definitions[var].constructors)

    def get_constructor(self, tag: int | str, name: str | None = None) -> Constructor:
        """The constructor of a tag, or the constructor `name` of a type: `get_constructor("List", "Cons")`.

        Raises `KeyError`.
        """
        if isinstance(tag, str):
            for constructor in self.type_definitions[self.get_global_type_var(tag)].constructors:
                if constructor.name_hint == name:
                    return constructor
            raise KeyError(f"{tag} has no constructor {name}")
        while True:
            for data in self.type_definitions.values():
                for constructor in data.constructors:
                    if constructor.tag == tag:
                        return constructor
            if self.library is None or not self.library(self, tag):
                raise KeyError(f"no constructor has the tag {tag}")

    def same_as(self, other: object) -> bool:
        """Whether this is the same module, not one that is equal to it."""
        return self is other

    def __contains__(self, key: object) -> bool:
        return key in self._globals if isinstance(key, str) else key in self.functions

    @overload
    def __getitem__(self, key: str | GlobalVar) -> Function: ...

    @overload
    def __getitem__(self, key: GlobalTypeVar) -> TypeData: ...

    def __getitem__(self, key: str | GlobalVar | GlobalTypeVar) -> Function | TypeData:
        """The function of a name or `GlobalVar`, or the definition of a type."""
        if isinstance(key, str):
            key = self.get_global_var(key)
        if isinstance(key, GlobalTypeVar):
            return self.type_definitions[key]
        return self.functions[key]

    def __setitem__(self, key: str | GlobalVar | GlobalTypeVar, value: AnyValue) -> None:
        """Define a function or a type. Another expression becomes a function of its free variables."""
        if isinstance(key, str) and isinstance(value, TypeData):
            key = self._types.get(key) or GlobalTypeVar(key)
        elif isinstance(key, str):
            key = self._globals.get(key) or GlobalVar(key)
        if isinstance(key, GlobalTypeVar):
            self.type_definitions[key] = value
            self._types[key.name_hint] = key
        else:
            self.functions[key] = function_of(value)
            self._globals[key.name_hint] = key

    def __delitem__(self, key: str | GlobalVar) -> None:
        gv = self._globals[key] if isinstance(key, str) else key
        del self.functions[gv]
        del self._globals[gv.name_hint]

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def get_attr(self, attr_key: str) -> AnyValue:
        """A module attribute, None where there is none."""
        return self.attrs.get(attr_key)

    def with_attr(self, attr_key: str, attr_value: AnyValue) -> IRModule:
        """A module with one attribute set, and the same functions and types."""
        return self.with_attrs({attr_key: attr_value})

    def with_attrs(self, attr_map: Mapping[str, AnyValue]) -> IRModule:
        """A module with attributes set, and the same functions and types."""
        return IRModule(self.functions, self.type_definitions, {**self.attrs, **attr_map})

    def without_attr(self, attr_key: str) -> IRModule:
        """A module without an attribute, and with the same functions and types."""
        left = {key: value for key, value in self.attrs.items() if key != attr_key}
        return IRModule(self.functions, self.type_definitions, left)

    def update(self, other: IRModule | Mapping[GlobalVar, Function]) -> None:
        """Take the functions and types of another module, in place of those of the same names."""
        if isinstance(other, IRModule):
            for gtv, data in other.type_definitions.items():
                self[self._types.get(gtv.name_hint, gtv)] = data
            other = other.functions
        for gv, function in other.items():
            self.update_func(self._globals.get(gv.name_hint, gv), function)

    def update_func(self, var: GlobalVar, func: Function) -> None:
        """`mod[var] = func`"""
        self[var] = func

    def import_from_std(self, file_to_import: str) -> None:
        """Take a file of the standard library: `mod.import_from_std("prelude.rly")`. Raises `RelayError`."""
        service("standard library")(self, file_to_import)

    def with_functions(self, functions: Mapping[GlobalVar, Function]) -> IRModule:
        """A module with other functions and the same types and attributes."""
        return IRModule(functions, self.type_definitions, self.attrs)
