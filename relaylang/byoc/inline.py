"""Regions taken back: functions of a compiler whose calls become plain calls of operators again."""

from __future__ import annotations

from collections.abc import Callable

from relaylang.ir import Call, Expr, Function, GlobalVar, IRModule, Tuple, TupleGetItem, post_order
from relaylang.ops.record import Op
from relaylang.passes.rewriting import copy_with, per_function, rewrite_typed


def inline_regions(mod: IRModule, compiler: str, unworthy: Callable[[Function], bool]) -> IRModule:
    """A partitioned, typed module without those functions of a compiler that are not worth it; their composites become
    plain calls, too."""
    dropped = {
        gv: func for gv, func in mod.functions.items() if func.attrs.get("Compiler") == compiler and unworthy(func)
    }
    if not dropped:
        return mod
    plain = {gv: rewrite_typed(func.body, _without_composites) for gv, func in dropped.items()}

    def call(old: Expr, new: Expr) -> Expr:
        if isinstance(new, Call) and isinstance(new.op, GlobalVar) and new.op in dropped:
            return copy_with(plain[new.op], dict(zip(dropped[new.op].params, new.args)))
        if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
            return new.tuple_value.fields[new.index]
        return new

    new = per_function(mod, lambda func: rewrite_typed(func, call))
    return new.with_functions({gv: f for gv, f in new.functions.items() if gv not in dropped})


def _without_composites(old: Expr, new: Expr) -> Expr:
    if isinstance(new, Call) and isinstance(new.op, Function) and "Composite" in new.op.attrs:
        return copy_with(new.op.body, dict(zip(new.op.params, new.args)))
    return new


def calls_one_of(func: Function, names: frozenset[str]) -> bool:
    """Whether a function calls one of these operators, in a composite or outside of one."""
    return any(isinstance(n, Call) and isinstance(n.op, Op) and n.op.name in names for n in post_order(func))


__all__ = ["calls_one_of", "inline_regions"]
