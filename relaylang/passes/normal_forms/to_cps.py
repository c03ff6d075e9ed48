"""ToCPS: continuation passing style. A function takes one parameter more, and calls it with its result.

    fn (x: A) -> B { body }   becomes   fn <answer>(x: A', k: fn (B') -> answer) -> answer { ... k(result) }

where A' and B' have the functions inside them changed alike. The rest of the program behind a call becomes the function
that the call is given. The rest behind an `if` or `match` is bound to a name that all branches call. So no code is
copied. Operators, constructors and kernels (primitive functions) are called as before. UnCPS puts a function of the
first form around one of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylang.ir import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    Type,
    TypeVar,
    Var,
    bound_vars,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.typemaps import TypeMap, with_parts
from relaylang.ir.types import written
from relaylang.ir.visit import Walk, walk
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.blocks import free_name, map_pattern, type_of
from relaylang.passes.normal_forms.to_a_normal_form import convert
from relaylang.passes.rewriting import is_kernel
from relaylang.typing import check


def cps_types(answer: TypeVar) -> TypeMap:
    """Types with their functions taking continuations that give `answer`."""

    def make(ty: Type, new: Sequence[Type]) -> Type:
        if isinstance(ty, FuncType):
            return FuncType([*new[:-1], FuncType([new[-1]], answer)], answer, ty.type_params)
        return with_parts(ty, new) if new else ty

    return TypeMap(make)


class _Converter:
    """One function of the module. `called(gv)` gives the name of a global function's other form, None if it has none."""

    def __init__(self, func: Function, called: Callable[[GlobalVar], GlobalVar | None]) -> None:
        self.answer = TypeVar("answer")
        self.called = called
        self.cps_type = cps_types(self.answer)
        self.new: dict[Var, Var] = {}
        self.plain: set[Var] = set()
        for var in bound_vars(func):
            self.new[var] = Var(var.name_hint, written(self.cps_type(type_of(var))), var.span)
        for node in post_order(func):
            if isinstance(node, Let) and is_kernel(node.value):
                self.plain.add(node.variable)
                self.new[node.variable] = Var(node.variable.name_hint, written(type_of(node.variable)), node.variable.span)

    def function(self, func: Function) -> Walk:
        k = Var("k", written(FuncType([self.cps_type(_result(func))], self.answer)))
        body = yield self.block(func.body, k)
        params = [*(self.new[p] for p in func.params), k]
        return Function(params, body, self.answer, func.type_params, func.attrs, func.span)

    def atom(self, expr: Expr) -> Expr:
        if isinstance(expr, Var):
            return self.new.get(expr, expr)
        if isinstance(expr, GlobalVar):
            return self.value_of(expr)
        return expr

    def value_of(self, gv: GlobalVar) -> Expr:
        """A global function as a value: it is polymorphic in the answer, and a value is not."""
        ty = gv.checked_type
        name = self.called(gv)
        if name is None or not isinstance(ty, FuncType) or ty.type_params:
            return name or gv
        changed = self.cps_type(ty)
        assert isinstance(changed, FuncType)
        params = [Var(f"p{i}", t) for i, t in enumerate(changed.arg_types)]
        return Function(params, Call(name, params), self.answer)

    def block(self, expr: Expr, k: Expr) -> Walk:
        """A chain of lets that hands its result to the continuation `k`."""
        around: list[Callable[[Expr], Expr]] = []
        while isinstance(expr, Let):
            variable, value, expr = expr.variable, expr.value, expr.body
            last = expr is variable
            if isinstance(value, (If, Match)):
                after = k if last else Var("k")
                branches: list[Expr] = []
                for branch in children(value)[1:]:
                    branches.append((yield self.block(branch, after)))
                chosen = self.choice(value, branches)
                if last:
                    return _wrapped(chosen, around)
                around.append(_joined(after, self.new[variable], chosen, self.answer))
            elif isinstance(value, Call) and not self.direct(value.op):
                args = [self.atom(a) for a in value.args]
                op = self.called(value.op) or value.op if isinstance(value.op, GlobalVar) else self.atom(value.op)
                if last:
                    return _wrapped(Call(op, [*args, k], value.attrs, (), value.span), around)
                around.append(_called(op, args, value, self.new[variable], self.answer))
            else:
                if isinstance(value, Function) and not is_kernel(value):
                    converted = yield self.function(value)
                elif isinstance(value, (Var, GlobalVar)):
                    converted = self.atom(value)
                elif isinstance(value, Function):
                    converted = value
                else:
                    converted = rebuild(value, tuple([self.atom(c) for c in children(value)]))
                around.append(_bound(self.new[variable], converted))
        return _wrapped(Call(k, [self.atom(expr)]), around)

    def choice(self, node: If | Match, branches: list[Expr]) -> Expr:
        if isinstance(node, If):
            return If(self.atom(node.cond), branches[0], branches[1], node.span)
        clauses = [Clause(map_pattern(c.lhs, self.new), b, c.span) for c, b in zip(node.clauses, branches)]
        return Match(self.atom(node.data), clauses, node.complete, node.span)

    def direct(self, op: Expr) -> bool:
        if isinstance(op, GlobalVar):
            return self.called(op) is None
        return isinstance(op, (Op, Constructor)) or op in self.plain or is_kernel(op)


def _result(func: Function) -> Type:
    ty = func.checked_type
    assert isinstance(ty, FuncType)
    return ty.ret_type


def _wrapped(expr: Expr, around: list[Callable[[Expr], Expr]]) -> Expr:
    for put in reversed(around):
        expr = put(expr)
    return expr


def _bound(variable: Var, value: Expr) -> Callable[[Expr], Expr]:
    return lambda rest: Let(variable, value, rest, value.span)


def _joined(k: Expr, variable: Var, chosen: Expr, answer: Type) -> Callable[[Expr], Expr]:
    assert isinstance(k, Var)
    return lambda rest: Let(k, Function([variable], rest, answer), chosen)


def _called(op: Expr, args: list[Expr], call: Call, variable: Var, answer: Type) -> Callable[[Expr], Expr]:
    return lambda rest: Call(op, [*args, Function([variable], rest, answer)], call.attrs, (), call.span)


def to_cps(mod: IRModule) -> IRModule:
    """A typed module with each function in continuation passing style. Functions that others call have that form under
    the name `<name>_cps`, as in TVM. Their own name has it too.
    """
    taken = {gv.name_hint for gv in mod.functions}
    names: dict[GlobalVar, GlobalVar] = {}
    wanted: list[GlobalVar] = []

    def called(gv: GlobalVar) -> GlobalVar | None:
        if gv not in mod.functions or is_kernel(mod.functions[gv]):
            return None
        if gv not in names:
            names[gv] = GlobalVar(free_name(f"{gv.name_hint}_cps", taken))
            wanted.append(gv)
        return names[gv]

    new = {gv: f if is_kernel(f) else _converted(f, called) for gv, f in mod.functions.items()}
    more: dict[GlobalVar, Function] = {}
    while wanted:
        gv = wanted.pop()
        more[names[gv]] = _converted(mod.functions[gv], called)
    return mod.with_functions({**new, **more})


def _converted(func: Function, called: Callable[[GlobalVar], GlobalVar | None]) -> Function:
    normal = convert(func, let_results=False)
    assert isinstance(normal, Function)
    converter = _Converter(normal, called)
    function: Function = walk(converter.function(normal))
    return Function(
        function.params, function.body, function.ret_type, [*function.type_params, converter.answer], function.attrs, function.span
    )


def function_to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """One function in continuation passing style; what it calls of the module is added to the module in that form."""
    check(func, module=mod, fragment=True)
    home = mod if mod is not None else IRModule()
    taken = {gv.name_hint for gv in home.functions}
    names: dict[GlobalVar, GlobalVar] = {}
    wanted: list[GlobalVar] = []

    def called(gv: GlobalVar) -> GlobalVar | None:
        if gv not in home.functions or is_kernel(home.functions[gv]):
            return None
        if gv not in names:
            names[gv] = GlobalVar(free_name(f"{gv.name_hint}_cps", taken))
            wanted.append(gv)
        return names[gv]

    converted = _converted(func, called)
    while wanted:
        gv = wanted.pop()
        home[names[gv]] = _converted(home.functions[gv], called)
    return converted


@dataclass(frozen=True)
class ToCPS(Pass):
    """Convert functions to continuation passing style: each takes a function, and calls it with its result."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return to_cps(mod)
