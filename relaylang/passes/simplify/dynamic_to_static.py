"""DynamicToStatic: operators that take shapes as operands become those that have them as attributes, where the operands
are known. What this makes known is used further on: shapes of results, sums of shapes, and so on."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Tuple,
    Var,
    children,
    post_order,
    rebuild,
    rewrite,
)
from relaylang.ir.typed import typed
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function
from relaylang.passes.simplify.fold_constant import Compute, evaluator, fold_node
from relaylang.rules.dynamic_to_static import RULES, static_call
from relaylang.typing import infer


def dynamic_to_static(mod: IRModule, compute: Compute) -> IRModule:
    """A module in which operators of the dyn dialect with known operands are static.

    As in TVM, the module may have expressions that get a type only afterwards. Examples are branches of different types
    on a known condition, and a shape whose length follows from another. Raises `RelayError` for expressions without a
    type even then.
    """
    decided = per_function(mod, _decided)
    wrong = [d for d in infer(decided) if d.severity == "error"]
    static_mod = per_function(decided, lambda f: _convert(f, compute, decided, untyped=bool(wrong)))
    if wrong and any(d.severity == "error" for d in infer(static_mod)):
        raise RelayError(wrong)
    return static_mod


def _decided(func: Function) -> Expr:
    """Known conditions, be they bool or whole numbers, replaced by their branches."""
    if not any(isinstance(n, If) and isinstance(n.cond, Constant) for n in post_order(func)):
        return func
    return rewrite(func, lambda old, new: _branch(new))


def _branch(expr: Expr) -> Expr:
    if isinstance(expr, If) and isinstance(expr.cond, Constant) and expr.cond.data.ndim == 0:
        return expr.true_branch if bool(expr.cond.data) else expr.false_branch
    return expr


def _convert(func: Function, compute: Compute, mod: IRModule, untyped: bool) -> Expr:
    order = list(post_order(func))
    if not any(isinstance(n, Op) and n.name.startswith("dyn.") for n in order):
        return func
    done: dict[int, Expr] = {}
    loose: set[int] = set()  # nodes with another type than before
    exact: dict[Var, Var] = {}  # variables of such values
    # A function's own body may name it, with the type that it had.
    bound = {id(n.value): n.variable for n in order if isinstance(n, Let) and not isinstance(n.value, Function)}
    for node in order:
        inner = children(node)
        if not inner or isinstance(node, (Var, Op)):
            if untyped and node.checked_type is None and isinstance(node, (Var, Constant)):
                infer(node, fragment=True, module=mod)
            done.setdefault(id(node), node)
            continue
        new = rebuild(node, tuple([done[id(c)] for c in inner]))
        if isinstance(node, Let) and node.variable in exact:
            new = Let(exact[node.variable], done[id(node.value)], done[id(node.body)], node.span)
        if isinstance(new, Call) and isinstance(new.op, Op) and new.op.name in RULES:
            new = static_call(new) or new
        touched = new is not node or (untyped and isinstance(node, (Call, Tuple)))
        if (
            touched
            and isinstance(new, (Call, Tuple))
            and all(done[id(c)].checked_type is not None or isinstance(c, Op) for c in inner)
        ):
            infer(new, fragment=True, module=mod)
            new = fold_node(node, new, compute, False)
        elif not touched and isinstance(new, Call):
            new = fold_node(node, new, compute, False)
        elif touched and not any([id(c) in loose for c in inner]):
            typed(new, node.checked_type)
        if new.checked_type != node.checked_type:
            loose.add(id(node))
        done[id(node)] = new
        variable = bound.get(id(node))
        if variable is not None and id(node) in loose and new.checked_type is not None:
            exact[variable] = done[id(variable)] = typed(Var(variable.name_hint, None, variable.span), new.checked_type)
            loose.add(id(variable))
    result = done[id(func)]
    if isinstance(result, Function) and result is not func and result.ret_type is not None:
        # The result may be known more exactly than its annotation said.
        result = Function(result.params, result.body, None, result.type_params, result.attrs, result.span)
    return result


@dataclass(frozen=True)
class DynamicToStatic(Pass):
    """Replace dynamic operators by static ones where their shapes are known."""

    opt_level = 2
    required = ()

    def run(self, mod: IRModule) -> IRModule:
        return dynamic_to_static(mod, evaluator())
