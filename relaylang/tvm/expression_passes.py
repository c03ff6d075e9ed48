"""TVM's functions beside its passes: each takes one expression, where a pass takes a module."""

from __future__ import annotations

from typing import overload

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr, Function, GlobalVar, IRModule, Type
from relaylang.passes.functions import defunctionalization
from relaylang.passes.gradient import first_order_gradient, higher_order_gradient
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.passes.normal_forms.to_cps import function_to_cps
from relaylang.passes.simplify.fold_constant import fold_typed
from relaylang.typing import type_of


def ToANormalFormExpr(e: Expr) -> Expr:
    """An expression with every value bound by a let, where it is computed."""
    return to_anf(e)


def InferTypeLocal(expr: Expr) -> Type:
    """The type of an expression, found in place with the types of its operands. Raises `RelayError`."""
    return type_of(expr)


def FoldConstantExpr(expr: Expr, mod: IRModule | None = None, fold_qnn: bool = False) -> Expr:
    """An expression with constants folded. Raises `RelayError` where it is not well-typed."""
    return fold_typed(expr, mod, fold_qnn)


@overload
def Defunctionalization() -> Pass: ...
@overload
def Defunctionalization(func: Function, mod: IRModule) -> Function: ...
def Defunctionalization(func: Function | None = None, mod: IRModule | None = None) -> Pass | Function:
    """The pass, or, for a function and its module, the function without function values.

    The module takes the types and functions that the function then needs.
    """
    if func is None or mod is None:
        return defunctionalization.Defunctionalization()
    return defunctionalization.defunctionalize_function(func, mod)


def gradient(expr: Function | GlobalVar, mod: IRModule | None = None, mode: str = "higher_order") -> Function:
    """A function of the same parameters that returns `(result, (gradient, ...))`.

    The mode "first_order" takes data flow and returns data flow. "higher_order" also differentiates branches, references,
    functions and data, and its results have gradients again. It adds called functions to `mod` as `<name>_grad`. A global
    variable stands for its function in `mod`. Raises `RelayError` (R0511) for a call without a gradient.
    """
    if mode not in ("first_order", "higher_order"):
        raise RelayError(error("R0501", f"gradient has the modes first_order and higher_order, not {mode}"))
    if isinstance(expr, GlobalVar):
        if mod is None or expr not in mod:
            raise RelayError(error("R0501", f"the module has no function @{expr.name_hint}", expr.span))
        return gradient(mod.functions[expr], mod, mode)
    chosen = first_order_gradient if mode == "first_order" else higher_order_gradient
    return chosen.gradient(expr, mod)


def to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """One function in continuation passing style. The functions that it calls are added to `mod` as `<name>_cps`."""
    return function_to_cps(func, mod)
