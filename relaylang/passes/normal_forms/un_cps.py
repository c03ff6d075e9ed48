"""UnCPS: wrap a function in continuation passing style in one of the plain form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeVar,
    Var,
    post_order,
)
from relaylang.ir.typemaps import HasPart, TypeMap, parts, with_parts
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.blocks import is_wide, type_of
from relaylang.passes.rewriting import is_opaque


def un_cps(func: Function) -> Function:
    """A function of the plain form that calls one in continuation passing style. Raises `RelayError` (R0515)."""
    last = func.params[-1] if func.params else None
    k = (last.checked_type or last.type_annotation) if last is not None else None
    if not isinstance(k, FuncType) or len(k.arg_types) != 1 or not func.type_params or k.ret_type is not func.type_params[-1]:
        raise RelayError(
            error(
                "R0515",
                "the function is not in continuation passing style",
                func.span,
                notes=["its last parameter would be a function to its last type parameter"],
            )
        )
    answer, result = func.type_params[-1], k.arg_types[0]
    if _names(result, answer):
        raise _beyond("returns", func)
    params, args = [], []
    for param in func.params[:-1]:
        plain_param = Var(param.name_hint, _plain(type_of(param), answer), param.span)
        params.append(plain_param)
        args.append(_continued(plain_param, type_of(param), answer, result, func))
    x = Var("x", result)
    body = Call(func, [*args, Function([x], x, result)], None, (*func.type_params[:-1], result))
    return Function(params, body, result, func.type_params[:-1], func.attrs, func.span)


def _beyond(does: str, func: Function) -> RelayError:
    title = f"the function {does} values that UnCPS cannot convert"
    return RelayError(error("R0515", title, func.span, notes=["UnCPS takes functions of plain values for parameters"]))


def _names(ty: Type, answer: TypeVar) -> bool:
    """Whether a type holds a function in continuation passing style."""
    return HasPart(lambda part: part is answer)(ty)


def _plain(ty: Type, answer: TypeVar) -> Type:
    """The type that a type was before functions took continuations."""

    def continued(part: Type) -> FuncType | None:
        if not isinstance(part, FuncType) or part.ret_type is not answer or not part.arg_types:
            return None
        k = part.arg_types[-1]
        return k if isinstance(k, FuncType) and len(k.arg_types) == 1 else None

    def inside(part: Type) -> Sequence[Type]:
        k = continued(part)
        if k is None or not isinstance(part, FuncType):
            return parts(part)
        return (*part.arg_types[:-1], k.arg_types[0])

    def make(part: Type, new: Sequence[Type]) -> Type:
        if continued(part) is not None and isinstance(part, FuncType):
            return FuncType(new[:-1], new[-1], part.type_params)
        return with_parts(part, new) if new else part

    return TypeMap(make, inside)(ty)


def _continued(value: Expr, ty: Type, answer: TypeVar, result: Type, func: Function) -> Expr:
    """A plain value as one of the type `ty` with `result` for the answer: functions call their continuations."""
    if not _names(ty, answer):
        return value
    if is_wide(ty):
        raise _beyond("takes", func)
    if isinstance(ty, TupleType):
        return Tuple([_continued(TupleGetItem(value, i), t, answer, result, func) for i, t in enumerate(ty.fields)])
    last = ty.arg_types[-1] if isinstance(ty, FuncType) and ty.arg_types else None
    if not isinstance(ty, FuncType) or not isinstance(last, FuncType) or ty.type_params:
        raise _beyond("takes", func)
    if any(_names(t, answer) for t in (*ty.arg_types[:-1], *last.arg_types)):
        raise _beyond("takes", func)
    params = [Var(f"p{i}", t) for i, t in enumerate(ty.arg_types[:-1])]
    k = Var("k", FuncType(last.arg_types, result))
    return Function([*params, k], Call(k, [Call(value, params)]), result)


def un_cps_module(mod: IRModule) -> IRModule:
    """Every function that is in continuation passing style, and that no other one calls, in the plain form."""
    used = {n for f in mod.functions.values() if f.body is not None for n in post_order(f) if isinstance(n, GlobalVar)}
    new = {gv: f if gv in used or is_opaque(f) or not _is_cps(f) else un_cps(f) for gv, f in mod.functions.items()}
    return mod.with_functions(new)


def _is_cps(func: Function) -> bool:
    last = (func.params[-1].checked_type or func.params[-1].type_annotation) if func.params else None
    return bool(func.type_params) and isinstance(last, FuncType) and last.ret_type is func.type_params[-1]


@dataclass(frozen=True)
class UnCPS(Pass):
    """Give functions in continuation passing style their plain form back. Callees of other functions stay."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return un_cps_module(mod)
