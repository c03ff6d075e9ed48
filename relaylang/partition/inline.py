"""Pruning: regions go back to the host, as plain calls of operators."""

from __future__ import annotations

from collections.abc import Callable, Set

from relaylang.ir import Call, Expr, Function, GlobalVar, IRModule, Tuple, TupleGetItem, post_order
from relaylang.ops.record import Op
from relaylang.passes.rewriting import apply_function, per_function, rewrite_typed


def inline_regions(mod: IRModule, compiler: str, unworthy: Callable[[Function], bool]) -> IRModule:
    """A partitioned, typed module without the `unworthy` functions of a compiler. Their composites become plain calls."""
    return inline_named(mod, {gv for gv, func in mod.functions.items() if func.attrs.get("Compiler") == compiler and unworthy(func)})


def inline_named(mod: IRModule, dropped: Set[GlobalVar]) -> IRModule:
    """A partitioned, typed module without these functions: their bodies replace their calls.

    Composites of these bodies become plain calls, too.
    """
    if not dropped:
        return mod

    def plain(old: Expr, new: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(new.op, Function) and "Composite" in new.op.attrs:
            return apply_function(new.op, new.args)
        return new

    bodies = {gv: rewrite_typed(mod.functions[gv], plain) for gv in dropped}

    def call(old: Expr, new: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(new.op, GlobalVar) and new.op in dropped:
            return apply_function(bodies[new.op], new.args)  # type: ignore[arg-type]
        if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
            return new.tuple_value.fields[new.index]
        return new

    new = per_function(mod, lambda func: rewrite_typed(func, call))
    return new.with_functions({gv: f for gv, f in new.functions.items() if gv not in dropped})


def calls_one_of(func: Function, names: frozenset[str]) -> bool:
    """Whether a function calls one of these operators, in a composite or outside of one."""
    return any(isinstance(n, Call) and isinstance(n.op, Op) and n.op.name in names for n in post_order(func))


__all__ = ["calls_one_of", "inline_named", "inline_regions"]
