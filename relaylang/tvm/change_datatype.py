"""`relay.frontend.ChangeDatatype`: a program in another element type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    IRModule,
    Let,
    TensorType,
    TupleType,
    Type,
    Var,
    post_order,
)
from relaylang.ir.visit import rewrite
from relaylang.ops.record import make_attrs
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function
from relaylang.tvm.arrays import from_python


@dataclass(frozen=True)
class ChangeDatatype(Pass):
    """Gives tensors of the element type `src` the type `dst`: parameters, constants, annotations, and attributes of calls.

    Annotations that nobody wrote are found again by inference.
    """

    src: str
    dst: str

    def run(self, mod: IRModule) -> IRModule:
        return per_function(mod, self._changed)

    def _type(self, ty: Type | None) -> Any:
        match ty:
            case TensorType() if ty.dtype == self.src:
                return TensorType(ty.shape, self.dst)
            case TupleType(fields):
                return TupleType([self._type(field) for field in fields])
            case FuncType():
                arguments = [self._type(argument) for argument in ty.arg_types]
                return FuncType(arguments, self._type(ty.ret_type), ty.type_params, ty.type_constraints)
        return ty

    def _changed(self, func: Function) -> Expr:
        variables: dict[int, Var] = {}
        for node in post_order(func):
            bound = node.params if isinstance(node, Function) else [node.variable] if isinstance(node, Let) else []
            for variable in bound:
                ty = variable.type_annotation
                if self._type(ty) != ty:
                    variables[id(variable)] = Var(variable.name_hint, self._type(ty), variable.span)

        def change(old: Expr, new: Expr) -> Expr:
            match new:
                case Var():
                    return variables.get(id(new), new)
                case Constant() if new.dtype == self.src:
                    return Constant(from_python(new.data).astype(self.dst), new.span)
                case Call() if new.attrs is not None and hasattr(new.attrs, "schema"):
                    values = {name: getattr(new.attrs, name) for name in new.attrs.schema}
                    if self.src in [v for v in values.values() if isinstance(v, str)]:
                        values = {n: self.dst if isinstance(v, str) and v == self.src else v for n, v in values.items()}
                        return Call(new.op, new.args, make_attrs(type(new.attrs), values), new.type_args, new.span)
                case Function():
                    params = [variables.get(id(p), p) for p in new.params]
                    return Function(params, new.body, self._type(new.ret_type), new.type_params, new.attrs, new.span)
                case Let():
                    return Let(variables.get(id(new.variable), new.variable), new.value, new.body, new.span)
            return new

        return rewrite(func, change)


__all__ = ["ChangeDatatype"]
