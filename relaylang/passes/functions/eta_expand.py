"""EtaExpand: wrap constructors and global functions that are values in functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relaylang.ir import (
    Call,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Type,
    TypeCall,
    TypeVar,
    Var,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.typemaps import replacing
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_opaque


def eta_expand(mod: IRModule, expand_constructor: bool = True, expand_global_var: bool = False, polymorphic: bool = True) -> IRModule:
    """A typed module in which constructors that are used as values are functions that call them. If asked for, this
    holds for global functions, too. Without `polymorphic` these have the types of the place where they stand.
    """

    def expand(node: Expr, ty: Type | None) -> Expr:
        wanted = expand_constructor if isinstance(node, Constructor) else expand_global_var
        if not isinstance(ty, FuncType) or not wanted or any(v.kind != "Type" for v in ty.type_params):
            return node
        if isinstance(node, Constructor) and node.belong_to not in mod.type_definitions:
            return node
        if not polymorphic and ty.type_params:
            names = [Var(f"eta{i}") for i in range(len(ty.arg_types))]
            return Function(names, Call(node, names), span=node.span)
        fresh = {v: TypeVar(v.name_hint, v.kind) for v in ty.type_params}
        own = replacing(lambda t: fresh.get(t) if isinstance(t, TypeVar) else None)
        params = [Var(f"eta{i}", own(t)) for i, t in enumerate(ty.arg_types)]
        return Function(params, Call(node, params), own(ty.ret_type), list(fresh.values()), span=node.span)

    def converted(func: Function) -> Function:
        return func if is_opaque(func) else _converted(func, lambda node: expand(node, _type_of(node, mod) or node.checked_type))

    return mod.with_functions({gv: converted(f) for gv, f in mod.functions.items()})


def _converted(func: Function, expand: Callable[[Expr], Expr]) -> Function:
    """A function with its constructors and names of functions expanded where they are values."""
    done: dict[int, Expr] = {}
    changed = False
    for node in post_order(func):
        inner = []
        for i, child in enumerate(children(node)):
            new = done[id(child)]
            callee = isinstance(node, Call) and i == len(node.args)
            if isinstance(child, (Constructor, GlobalVar)) and not callee:
                expanded = expand(child)
                changed = changed or expanded is not new
                new = expanded
            inner.append(new)
        done[id(node)] = rebuild(node, tuple(inner))
    result = done[id(func)]
    assert isinstance(result, Function)
    return result if changed else func


def _type_of(node: Expr, mod: IRModule) -> Type | None:
    """The type of a global function or a constructor, with the type parameters of its definition."""
    if isinstance(node, GlobalVar) and node.name_hint in mod:
        ty: Type | None = mod[node.name_hint].checked_type
        return ty
    if isinstance(node, Constructor):
        known = mod.type_definitions.get(node.belong_to)
        if known is not None:
            return FuncType(node.inputs, TypeCall(node.belong_to, known.type_vars), known.type_vars)
    return None


@dataclass(frozen=True)
class EtaExpand(Pass):
    """Wrap constructors and global functions that are values in functions."""

    expand_constructor: bool = False
    expand_global_var: bool = False

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return eta_expand(mod, self.expand_constructor, self.expand_global_var)
