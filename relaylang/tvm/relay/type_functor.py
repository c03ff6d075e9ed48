"""Visitors and mutators of types under TVM's names: override `visit_tensor_type` and its kin.

They visit a type as often as it occurs, and recurse on its depth.
"""

from __future__ import annotations

from typing import Any

from relaylang.ir import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
)

#: The visiting method of each class of types.
_METHODS: dict[type, str] = {
    TypeVar: "visit_type_var",
    IncompleteType: "visit_incomplete_type",
    TensorType: "visit_tensor_type",
    FuncType: "visit_func_type",
    TupleType: "visit_tuple_type",
    RefType: "visit_ref_type",
    GlobalTypeVar: "visit_global_type_var",
    TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
}


class MissingMethod(NotImplementedError):
    """A functor has no method for a class of types."""


class TypeFunctor:
    """Calls the method for a type's class."""

    def visit(self, typ: Type | TypeData) -> Any:
        """The result of the method for the type's class. Raises `MissingMethod` for a class without one."""
        for kind, method in _METHODS.items():
            if isinstance(typ, kind):
                visitor = getattr(self, method, None)
                if visitor is None:
                    raise MissingMethod(f"{type(self).__name__} has no {method}")
                return visitor(typ)
        raise TypeError(f"{typ!r:.60} is no type")


class TypeVisitor(TypeFunctor):
    """Visits every part of a type."""

    def visit_type_var(self, tv: TypeVar) -> Any:
        """A variable."""

    def visit_incomplete_type(self, it: IncompleteType) -> Any:
        """A type that is not known."""

    def visit_tensor_type(self, tt: TensorType) -> Any:
        """A tensor's type."""

    def visit_func_type(self, ft: FuncType) -> Any:
        """A function's type: its parameters', its result's, then its variables."""
        for part in (*ft.arg_types, ft.ret_type, *ft.type_params):
            self.visit(part)

    def visit_tuple_type(self, tt: TupleType) -> Any:
        """A tuple's type."""
        for part in tt.fields:
            self.visit(part)

    def visit_ref_type(self, rt: RefType) -> Any:
        """A reference's type."""
        self.visit(rt.value)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Any:
        """The name of a type definition."""

    def visit_type_call(self, tc: TypeCall) -> Any:
        """A type definition with its arguments."""
        for part in (tc.func, *tc.args):
            self.visit(part)

    def visit_type_data(self, td: TypeData) -> Any:
        """A type definition: its name and its variables."""
        for part in (td.header, *td.type_vars):
            self.visit(part)


class TypeMutator(TypeFunctor):
    """Makes a type anew from the results for its parts."""

    def visit_type_var(self, tv: TypeVar) -> Any:
        """A new variable of the same name."""
        return TypeVar(tv.name_hint, tv.kind)

    def visit_incomplete_type(self, it: IncompleteType) -> Any:
        """A type that is not known."""
        return IncompleteType(it.kind)

    def visit_tensor_type(self, tt: TensorType) -> Any:
        """A tensor's type."""
        return TensorType(tt.shape, tt.dtype)

    def visit_func_type(self, ft: FuncType) -> Any:
        """A function's type."""
        arguments = [self.visit(a) for a in ft.arg_types]
        return FuncType(arguments, self.visit(ft.ret_type), [self.visit(p) for p in ft.type_params])

    def visit_tuple_type(self, tt: TupleType) -> Any:
        """A tuple's type."""
        return TupleType([self.visit(f) for f in tt.fields])

    def visit_ref_type(self, rt: RefType) -> Any:
        """A reference's type."""
        return RefType(self.visit(rt.value))

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Any:
        """A new name of a type definition."""
        return GlobalTypeVar(gtv.name_hint, gtv.kind)

    def visit_type_call(self, tc: TypeCall) -> Any:
        """A type definition with its arguments."""
        return TypeCall(self.visit(tc.func), [self.visit(a) for a in tc.args])

    def visit_type_data(self, td: TypeData) -> Any:
        """A type definition with the same constructors."""
        return TypeData(self.visit(td.header), [self.visit(v) for v in td.type_vars], td.constructors)


__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]
