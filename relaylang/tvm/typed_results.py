"""What passes return to a script: typed modules, whose variables and results say their types."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from relaylang.diagnostics import RelayError
from relaylang.ir import Expr, Function, FuncType, IRModule, Let, Type, Var, is_incomplete, post_order
from relaylang.ir.typed import forget_stale_types
from relaylang.ir.typed import typed as with_type
from relaylang.ir.visit import rewrite
from relaylang.passes.manager import Pass
from relaylang.tvm.ir import diagnostics
from relaylang.typing import infer

_OUTER = threading.local()


def with_types(original: Callable[[Pass, IRModule], IRModule]) -> Callable[[Pass, IRModule], IRModule]:
    """A pass of ours that a script calls finds the types of its result. A script's own passes, and what a pass calls, do not."""

    def call(self: Pass, mod: IRModule) -> IRModule:
        if getattr(_OUTER, "busy", False):
            return original(self, mod)
        _OUTER.busy = True
        try:
            transformed = original(self, mod)
            if self.info.name == "ToANormalForm":
                return _without_types_of_lets(transformed, mod)
            return typed(transformed) if self.info.builtin or self.info.sequence else transformed
        except RelayError as wrong:
            diagnostics.show(wrong)
            raise
        finally:
            _OUTER.busy = False

    return call


def typed(mod: IRModule) -> IRModule:
    """A well-typed module with types at its nodes and its variables, and results of functions. Another module stays as it is."""
    if any(d.severity == "error" for d in infer(mod)):
        return mod
    new = {gv: annotated(f) for gv, f in mod.functions.items()}
    if all(new[gv] is f for gv, f in mod.functions.items()):
        return mod
    typed_mod = mod.with_functions(new)
    typed_mod.library = mod.library
    infer(typed_mod)
    return typed_mod


def annotated(func: Function) -> Function:
    """A function whose parameters, let variables and results say their types, where these are known."""
    lacking = [v for v in _variables(func) if _lacks(v.type_annotation, v)]
    variables = {v: with_type(Var(v.name_hint, v.checked_type, v.span, v.virtual_device), v.checked_type) for v in lacking}

    def say(old: Expr, new: Expr) -> Expr:
        match new:
            case Var():
                return variables.get(new, new)
            case Let() if new.variable in variables:
                return Let(variables[new.variable], new.value, new.body, new.span)
            case Function() if new.body is not None:
                lacks = _lacks(new.ret_type, old)
                if not lacks and variables.keys().isdisjoint(new.params):
                    return new
                ty = old.checked_type
                result = ty.ret_type if lacks and isinstance(ty, FuncType) else new.ret_type
                params = [variables.get(p, p) for p in new.params]
                return with_type(Function(params, new.body, result, new.type_params, new.attrs, new.span), ty)
        return new

    rewritten = rewrite(func, say)
    assert isinstance(rewritten, Function)
    return rewritten if rewritten is func else forget_stale_types(rewritten)  # type: ignore[return-value]


def _variables(func: Function) -> Iterator[Var]:
    """The parameters and the let variables of a function, and of those in it."""
    for node in post_order(func):
        if isinstance(node, Function):
            yield from node.params
        elif isinstance(node, Let):
            yield node.variable


def _lacks(annotation: Type | None, node: Expr) -> bool:
    """Whether a known type is not written."""
    return (annotation is None or is_incomplete(annotation)) and node.checked_type is not None and not is_incomplete(node.checked_type)


def _without_types_of_lets(new: IRModule, old: IRModule) -> IRModule:
    """A module whose let variables that another one lacks have no types, as TVM's ToANormalForm leaves them."""
    kept = {v for f in old.functions.values() for v in _variables(f)}

    def bare(func: Function) -> Function:
        lets = [node.variable for node in post_order(func) if isinstance(node, Let) and node.variable not in kept]
        variables = {v: Var(v.name_hint, None, v.span, v.virtual_device) for v in lets}

        def untyped(_: Expr, node: Expr) -> Expr:
            if isinstance(node, Let) and node.variable in variables:
                return Let(variables[node.variable], node.value, node.body, node.span)
            return variables.get(node, node) if isinstance(node, Var) else node

        rewritten = rewrite(func, untyped)
        assert isinstance(rewritten, Function)
        return rewritten

    return new.with_functions({gv: bare(f) for gv, f in new.functions.items()})
