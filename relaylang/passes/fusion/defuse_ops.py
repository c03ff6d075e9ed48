"""DefuseOps: replace calls of kernels by the operators inside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from relaylang.ir import Call, Expr, Function, IRModule, children, post_order, rebuild
from relaylang.ir.typed import retype
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import apply_function, is_opaque

_P = TypeVar("_P", IRModule, Expr)


def defuse_ops(program: _P) -> _P:
    """The inverse of FuseOps: calls of primitive functions where they stand become what they compute."""
    if isinstance(program, IRModule):
        functions = {gv: f if is_opaque(f) else defuse_ops(f) for gv, f in program.functions.items()}
        return program.with_functions(functions)  # type: ignore[return-value, arg-type]
    done: dict[int, Expr] = {}
    for node in post_order(program):
        new = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
        if isinstance(new, Call) and isinstance(new.op, Function) and "Primitive" in new.op.attrs:
            if "Compiler" not in new.op.attrs and new.op.body is not None:
                new = apply_function(new.op, new.args)
        done[id(node)] = new
    return done[id(program)]


@dataclass(frozen=True)
class DefuseOps(Pass):
    """Put the operators of kernels back in place: the inverse of FuseOps."""

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return defuse_ops(mod)
