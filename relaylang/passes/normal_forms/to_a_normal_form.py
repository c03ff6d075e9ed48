"""ToANormalForm: bind every compound expression by a `let`, in dataflow order, so that operands are atoms.

A node that several places share is bound in the innermost scope that holds all its uses. The order is that of
evaluation, also where lets stand inside operands, so that effects stay in their order. Constants are bound. Primitive
functions are values and are not looked into. See `bindings.py` for how.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from relaylang.ir import Expr, Function, If, IRModule, Let, Match, Var, children
from relaylang.ir.bulk import gc_paused
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.bindings import ATOMS, Binder, inner_scopes, placed_by
from relaylang.passes.rewriting import is_primitive

_P = TypeVar("_P", IRModule, Expr)


def is_anf(expr: Expr, enter_primitive: bool = False, devices: bool = False) -> bool:
    """Whether an expression (or a function's body) is in A-normal form, with no node shared. `devices`: what `on_device`
    places counts for what it places."""
    seen: set[int] = set()
    work = [expr.body if isinstance(expr, Function) and expr.body is not None else expr]
    while work:
        scope = work.pop()
        while isinstance(scope, Let):
            value = scope.value
            if devices and (said := placed_by(value)) is not None:
                value = said.body
            if type(value) not in ATOMS:
                if id(value) in seen or id(scope) in seen or isinstance(value, Let):
                    return False
                seen.add(id(value))
                seen.add(id(scope))
                if isinstance(value, Function):
                    operands: tuple[Expr, ...] = ()
                    if not enter_primitive and is_primitive(value):
                        scope = scope.body
                        continue
                elif isinstance(value, If):
                    operands = (value.cond,)
                elif isinstance(value, Match):
                    operands = (value.data,)
                else:
                    operands = children(value)
                if not all([type(o) in ATOMS for o in operands]):
                    return False
                work.extend(inner_scopes(value))
            scope = scope.body
        if type(scope) not in ATOMS:
            return False
    return True


def convert(expr: Expr, *, let_results: bool = True, enter_primitive: bool = False, devices: bool = False) -> Expr:
    """One expression in A-normal form; a function stays one, with its body converted.

    `let_results` gives the result of each let of the input a name of its own, as in TVM. There `let %x_1 = %x;` stands
    behind the let's own bindings. `enter_primitive` also converts the bodies of primitive functions. `devices` says of
    each binding where its value lies, where a function's `virtual_device` or an `on_device` around it does. An input in
    A-normal form is returned as it is.
    """
    if type(expr) in ATOMS or is_anf(expr, enter_primitive, devices):
        return expr
    if isinstance(expr, Function) and (expr.body is None or (is_primitive(expr) and not enter_primitive)):
        return expr
    with gc_paused():
        binder = Binder(expr, let_results=let_results, enter_primitive=enter_primitive, devices=devices)
        binder.find_scopes()
        return binder.run()


def to_anf(program: _P, *, let_results: bool = True, devices: bool = True) -> _P:
    """A-normal form of an expression, or of every function of a module; functions of other compilers stay as they are.

    The same program comes back where nothing changes. Types that the checker has filled are kept. With `devices` a value
    that an `on_device` holds is bound with its own (PlanDevices writes such).
    """
    if not isinstance(program, IRModule):
        return convert(program, let_results=let_results, devices=devices)
    functions = {
        name: f if "Compiler" in f.attrs else convert(f, let_results=let_results, devices=devices)
        for name, f in program.functions.items()
    }
    if all(functions[name] is f for name, f in program.functions.items()):
        return program
    return program.with_functions(functions)  # type: ignore[arg-type, return-value]


def let_bindings(expr: Expr) -> Iterable[tuple[Var, Expr]]:
    """The bindings of a chain of lets, in order."""
    while isinstance(expr, Let):
        yield expr.variable, expr.value
        expr = expr.body


@dataclass(frozen=True)
class ToANormalForm(Pass):
    """Bind every value by a let, in the order of evaluation."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return to_anf(mod)
