"""ToBasicBlockNormalForm: bind the nodes that several blocks use by a `let` in front of them; the rest stays a graph.

A block is a function's body, a branch, a match arm, or the body of a let with its value. The block where a node is
first needed may not be the innermost one around all its uses. Such a node must be computed before that block: it is
bound there. A program in which this happens to no node is returned as it is. See `bindings.py` for how.

In a program with references, nodes that may read or write one are bound as well where anything is. So nothing moves
across an effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from relaylang.ir import Expr, Function, IRModule
from relaylang.ir.bulk import gc_paused
from relaylang.passes.effects import has_references, may_have_effects
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.bindings import ATOMS, Binder
from relaylang.passes.rewriting import is_primitive

_P = TypeVar("_P", IRModule, Expr)


def convert(expr: Expr, *, references: bool | None = None) -> Expr:
    """One expression in basic block normal form. `references` says whether the program around it has any."""
    if type(expr) in ATOMS or (isinstance(expr, Function) and (expr.body is None or is_primitive(expr))):
        return expr
    with gc_paused():
        binder = Binder(expr, flat=False)
        binder.chosen = binder.find_scopes()
        if not binder.chosen:
            return expr
        if references if references is not None else has_references(expr):
            flat = Binder(expr, let_results=False)
            flat.find_scopes()
            flat.chosen = flat.spread | may_have_effects(expr)
            return flat.run()
        return binder.run()


def is_bbnf(expr: Expr) -> bool:
    """Whether no node is first needed in another block than its own."""
    return not Binder(expr, flat=False).find_scopes()


def to_bbnf(program: _P) -> _P:
    """Basic block normal form of an expression, or of every function of a module. Functions of other compilers stay as
    they are. The same program comes back where nothing changes.
    """
    if not isinstance(program, IRModule):
        return convert(program)
    references = any(has_references(f) for f in program.functions.values())
    functions = {name: f if "Compiler" in f.attrs else convert(f, references=references) for name, f in program.functions.items()}
    if all(functions[name] is f for name, f in program.functions.items()):
        return program
    return program.with_functions(functions)  # type: ignore[arg-type, return-value]


@dataclass(frozen=True)
class ToBasicBlockNormalForm(Pass):
    """Bind each value that several blocks use by a let in front of them."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return to_bbnf(mod)
