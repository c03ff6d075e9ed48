"""Defunctionalization: convert function values to data (Reynolds, "Definitional interpreters for higher-order programming
languages").

Each type of function that values have becomes a type definition. It has a constructor for every function that may be
such a value. The constructor carries the variables that the function uses of its surroundings. Calling a value becomes
calling `apply<n>`, which looks at the constructor. First, polymorphic functions of the module are copied for the types
of their uses, so that every type is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternVar,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
    all_vars,
    bound_vars,
    children,
    free_vars,
    post_order,
    rebuild,
)
from relaylang.ir.typemaps import HasPart, parts, replacing
from relaylang.ir.types import written
from relaylang.passes.functions.eta_expand import eta_expand
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.blocks import free_name, map_pattern, type_of
from relaylang.passes.normal_forms.to_a_normal_form import convert
from relaylang.passes.rewriting import copy_with, is_kernel, is_opaque, is_primitive
from relaylang.typing import check

_MOST_COPIES = 10_000


def _refuse(what: str, node: Expr) -> RelayError:
    return RelayError(error("R0515", what, node.span))


def _function_test() -> HasPart:
    """Whether values of a type are or hold functions."""
    return HasPart(lambda part: isinstance(part, FuncType))


def _match(formal: Type, actual: Type, bindings: dict[TypeVar, Type]) -> None:
    """Which types stand for the type variables of `formal`."""
    stack = [(formal, actual)]
    seen: set[tuple[int, int]] = set()
    while stack:
        f, a = stack.pop()
        if (id(f), id(a)) in seen:
            continue
        seen.add((id(f), id(a)))
        many = isinstance(a, FuncType) and bool(a.type_params)
        if isinstance(f, TypeVar):
            if f in bindings and not many:
                bindings[f] = a
        elif type(f) is type(a) and not many:
            stack.extend(reversed(list(zip(parts(f), parts(a)))))


class _Copies:
    """Copies of polymorphic functions for the types that they are used at."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.taken = {gv.name_hint for gv in mod.functions}
        self.names: dict[tuple[GlobalVar, tuple[Type, ...]], GlobalVar] = {}
        self.wanted: list[tuple[GlobalVar, tuple[Type, ...], GlobalVar]] = []

    def run(self) -> IRModule:
        new: dict[GlobalVar, Function] = {}
        for gv, func in self.mod.functions.items():
            if not func.type_params:
                new[gv] = func if is_opaque(func) else self.copy(func, {})
        while self.wanted:
            gv, types, name = self.wanted.pop()
            func = self.mod.functions[gv]
            new[name] = self.copy(func, dict(zip(func.type_params, types)))
        copied = IRModule(new, self.mod.type_definitions, self.mod.attrs)
        check(copied)
        return copied

    def polymorphic(self, expr: Expr) -> bool:
        """Whether a function has type parameters that its uses fix."""
        if isinstance(expr, GlobalVar):
            known = self.mod.functions.get(expr)
            return known is not None and bool(known.type_params)
        return isinstance(expr, Function) and bool(expr.type_params)

    def used(self, gv: Expr, ty: Type) -> Expr:
        """The name of a function at the type that a place has it."""
        func = self.mod.functions.get(gv) if isinstance(gv, GlobalVar) else None
        if func is None or not func.type_params:
            return gv
        assert isinstance(gv, GlobalVar)
        formal = func.checked_type
        assert isinstance(formal, FuncType)
        bindings: dict[TypeVar, Type] = {p: p for p in formal.type_params}
        _match(FuncType(formal.arg_types, formal.ret_type), ty, bindings)
        key = (gv, tuple(bindings.values()))
        if key not in self.names:
            if len(self.names) > _MOST_COPIES:
                raise _refuse(f"@{gv.name_hint} is used at types without end", func)
            self.names[key] = GlobalVar(free_name(f"{gv.name_hint}_at", self.taken))
            self.wanted.append((gv, key[1], self.names[key]))
        return self.names[key]

    def own_nodes(self, func: Function) -> set[int]:
        """Expressions outside polymorphic inner functions; those functions are copied once for each use."""
        seen: set[int] = {id(func)}
        stack: list[Expr] = [func]
        while stack:
            node = stack.pop()
            if node is not func and self.polymorphic(node):
                continue
            for child in children(node):
                if id(child) not in seen:
                    seen.add(id(child))
                    stack.append(child)
        return seen

    def at(self, value: Expr, ty: Type, types: Mapping[TypeVar, Type], fresh: Mapping[Var, Var]) -> Expr:
        """A polymorphic function that is an argument, at the type that the callee takes it at."""
        if isinstance(value, GlobalVar):
            return self.used(value, ty)
        assert isinstance(value, Function) and isinstance(value.checked_type, FuncType)
        formal = value.checked_type
        bindings: dict[TypeVar, Type] = {p: p for p in formal.type_params}
        _match(FuncType(formal.arg_types, formal.ret_type), ty, bindings)
        return self.copy(value, {**types, **bindings}, fresh)

    def taken_types(self, call: Call, closed: Callable[[Type], Type]) -> tuple[Type, ...]:
        """The types at which a call's operands are taken."""
        formal = call.op.checked_type
        if isinstance(call.op, Constructor) or not isinstance(formal, FuncType):
            raise _refuse("a polymorphic function is an operand of a call that takes any type", call)
        bindings: dict[TypeVar, Type] = {p: p for p in formal.type_params}
        actual = FuncType([closed(type_of(a)) for a in call.args], closed(type_of(call)))
        _match(FuncType(formal.arg_types, formal.ret_type), actual, bindings)
        known = {p: t for p, t in bindings.items() if p is not t}
        own = replacing(lambda v: known.get(v) if isinstance(v, TypeVar) else None)
        return tuple([closed(own(t)) for t in formal.arg_types])

    def copy(self, func: Function, types: Mapping[TypeVar, Type], outer: Mapping[Var, Var] | None = None) -> Function:
        closed = replacing(lambda t: types.get(t) if isinstance(t, TypeVar) else None)
        fresh = {**(outer or {}), **{v: Var(v.name_hint, written(closed(type_of(v))), v.span) for v in bound_vars(func)}}
        done: dict[int, Expr] = {}
        own = self.own_nodes(func)
        for node in post_order(func):
            if id(node) not in own or (node is not func and isinstance(node, Function) and node.type_params):
                done[id(node)] = node
                continue
            if isinstance(node, Var):
                done[id(node)] = fresh.get(node, node)
                continue
            operands = [done[id(c)] for c in children(node)]
            places = [i for i, c in enumerate(children(node)) if self.polymorphic(c)]
            if places and isinstance(node, Call):
                taken = self.taken_types(node, closed) if places[0] < len(node.args) else ()
                for i in places:
                    if i < len(node.args):
                        operands[i] = self.at(node.args[i], taken[i], types, fresh)
                    elif not isinstance(node.op, GlobalVar):
                        raise _refuse("a polymorphic function stands inside another one", node.op)
            elif places:
                raise _refuse("a polymorphic function is a value", node)
            inner = tuple(operands)
            copied: Expr
            if isinstance(node, GlobalVar):
                copied = node
            elif isinstance(node, Call) and isinstance(node.op, GlobalVar):
                wanted = FuncType([closed(type_of(a)) for a in node.args], closed(type_of(node)))
                copied = Call(self.used(node.op, wanted), inner[:-1], node.attrs, (), node.span)
            elif isinstance(node, Function):
                ret_type = written(closed(node.checked_type.ret_type)) if isinstance(node.checked_type, FuncType) else None
                copied = Function([fresh[p] for p in node.params], inner[0], ret_type, (), node.attrs, node.span)
            elif isinstance(node, Let):
                copied = Let(fresh[node.variable], inner[0], inner[1], node.span)
            elif isinstance(node, Match):
                clauses = [Clause(map_pattern(c.lhs, fresh), r, c.span) for c, r in zip(node.clauses, inner[1:])]
                copied = Match(inner[0], clauses, node.complete, node.span)
            elif isinstance(node, Call):
                copied = Call(inner[-1], inner[:-1], node.attrs, (), node.span)
            else:
                copied = rebuild(node, inner)
            done[id(node)] = copied
        result = done[id(func)]
        assert isinstance(result, Function)
        return result


class _FirstOrder:
    """Functions without function values. `kinds` has the definition and the `apply` of each type of function."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.taken = {gv.name_hint for gv in mod.functions}
        self.types_taken = {gtv.name_hint for gtv in mod.type_definitions}
        self.kinds: dict[Type, tuple[GlobalTypeVar, GlobalVar, list[Constructor], list[GlobalVar]]] = {}
        self.of_global: dict[GlobalVar, Constructor] = {}
        self.lifted: dict[GlobalVar, Function] = {}
        self.encoded = replacing(lambda t: TypeCall(self.kind(t)[0], []) if isinstance(t, FuncType) else None)
        self.has_function = _function_test()

    def kind(self, ty: Type) -> tuple[GlobalTypeVar, GlobalVar, list[Constructor], list[GlobalVar]]:
        if ty not in self.kinds:
            number = len(self.kinds)
            gtv = GlobalTypeVar(free_name(f"Defunc{number}", self.types_taken))
            self.kinds[ty] = (gtv, GlobalVar(free_name(f"apply{number}", self.taken)), [], [])
        return self.kinds[ty]

    def constructor(self, ty: Type, inputs: list[Type], target: GlobalVar) -> Constructor:
        gtv, _, constructors, targets = self.kind(ty)
        constructor = Constructor(f"{gtv.name_hint}_{len(constructors)}", inputs, gtv, len(constructors))
        constructors.append(constructor)
        targets.append(target)
        return constructor

    def function(self, func: Function) -> Function:
        normal = convert(func, let_results=False)
        assert isinstance(normal, Function)
        fresh: dict[Var, Var] = {}
        kernels: set[Var] = set()
        own: dict[int, Var] = {}
        closed: set[int] = set()
        for node in post_order(normal):
            if isinstance(node, Let) and isinstance(node.value, Function):
                own[id(node.value)] = node.variable
                if is_kernel(node.value):
                    kernels.add(node.variable)
                    closed.update(map(id, post_order(node.value)))
        for var in all_vars(normal):
            if var not in kernels and self.has_function(type_of(var)):
                fresh[var] = Var(var.name_hint, written(self.encoded(type_of(var))), var.span)
        done: dict[int, Expr] = {}
        for node in post_order(normal):
            if id(node) in closed:
                done[id(node)] = node
            elif isinstance(node, Var):
                done[id(node)] = fresh.get(node, node)
            elif isinstance(node, Call):
                args = [self.value(a, done) for a in node.args]
                op = done[id(node.op)]
                if isinstance(node.op, Var) and node.op not in kernels:
                    args, op = [op, *args], self.kind(type_of(node.op))[1]
                done[id(node)] = Call(op, args, node.attrs, (), node.span)
            elif isinstance(node, Function):
                params = [fresh.get(p, p) for p in node.params]
                ty = node.checked_type
                assert isinstance(ty, FuncType)
                function = Function(params, self.value(node.body, done), written(self.encoded(ty.ret_type)), (), node.attrs, node.span)
                done[id(node)] = function if node is normal else self.lift(function, ty, fresh.get(own[id(node)]))
            elif isinstance(node, Let):
                done[id(node)] = Let(
                    fresh.get(node.variable, node.variable), self.value(node.value, done), self.value(node.body, done), node.span
                )
            elif isinstance(node, Match):
                all_fresh = {v: fresh.get(v, v) for v in bound_vars(node)}
                clauses = [Clause(map_pattern(c.lhs, all_fresh), self.value(c.rhs, done), c.span) for c in node.clauses]
                done[id(node)] = Match(self.value(node.data, done), clauses, node.complete, node.span)
            else:
                done[id(node)] = rebuild(node, tuple([self.value(c, done) for c in children(node)]))
        result = done[id(normal)]
        assert isinstance(result, Function)
        return result

    def value(self, node: Expr, done: dict[int, Expr]) -> Expr:
        """The replacement of a node that is used as a value."""
        if not isinstance(node, GlobalVar):
            return done[id(node)]
        if node not in self.of_global:
            self.of_global[node] = self.constructor(type_of(node), [], node)
        return Call(self.of_global[node], [])

    def lift(self, func: Function, ty: Type, own: Var | None) -> Expr:
        """A function as a value: a function of the module, and the constructor that carries what it uses."""
        used = [v for v in free_vars(func) if v is not own]
        target = GlobalVar(free_name("lifted", self.taken))
        constructor = self.constructor(ty, [self.encoded(type_of(v)) for v in used], target)
        inside = {v: Var(v.name_hint, self.encoded(type_of(v)), v.span) for v in used}
        body = copy_with(func, dict(inside))
        assert isinstance(body, Function)
        inner = body.body
        if own is not None:
            itself = Var(own.name_hint, own.type_annotation, own.span)
            inner = Let(itself, Call(constructor, list(inside.values())), copy_with(inner, {own: itself}))
        self.lifted[target] = Function([*inside.values(), *body.params], inner, func.ret_type, (), func.attrs, func.span)
        return Call(constructor, used, span=func.span)

    def applies(self) -> tuple[dict[GlobalVar, Function], dict[GlobalTypeVar, TypeData]]:
        functions: dict[GlobalVar, Function] = {}
        types: dict[GlobalTypeVar, TypeData] = {}
        for ty, (gtv, name, constructors, targets) in list(self.kinds.items()):
            assert isinstance(ty, FuncType)
            types[gtv] = TypeData(gtv, (), constructors)
            value = Var("f", TypeCall(gtv, []))
            params = [Var(f"p{i}", self.encoded(t)) for i, t in enumerate(ty.arg_types)]
            if not constructors:  # no function is of this type: what would call one has no value to do it with
                functions[name] = Function([value, *params], Call(name, [value, *params]), self.encoded(ty.ret_type))
                continue
            clauses = []
            for constructor, target in zip(constructors, targets):
                held = [Var(f"x{i}") for i in range(len(constructor.inputs))]
                pattern = PatternConstructor(constructor, [PatternVar(v) for v in held])
                clauses.append(Clause(pattern, Call(target, [*held, *params])))
            functions[name] = Function([value, *params], Match(value, clauses), self.encoded(ty.ret_type))
        return functions, types


def defunctionalize(mod: IRModule, entries: tuple[str, ...] = ("main",)) -> IRModule:
    """A typed module without function values. Raises `RelayError` (R0515) where an entry takes or returns functions, or
    a type definition holds them. It also raises where a function inside another one is polymorphic.
    """
    has_function = _function_test()
    for name in entries:
        func = mod[name] if name in mod else None
        if func is not None and isinstance(func.checked_type, FuncType):
            if func.type_params or any(map(has_function, (*func.checked_type.arg_types, func.checked_type.ret_type))):
                raise _refuse(f"@{name} takes or returns functions, or is polymorphic", func)
    if not any(_uses_functions(f, has_function) for f in mod.functions.values()):
        return mod
    expanded = eta_expand(mod, True, polymorphic=False)
    check(expanded)
    known = _Copies(expanded).run()
    for data in known.type_definitions.values():
        for constructor in data.constructors:
            if any(map(has_function, constructor.inputs)):
                raise RelayError(error("R0515", f"the type {data.header.name_hint} holds functions", data.span))
    first = _FirstOrder(known)
    new = {gv: f if is_opaque(f) else first.function(f) for gv, f in known.functions.items()}
    functions, types = first.applies()
    return IRModule({**new, **first.lifted, **functions}, {**known.type_definitions, **types}, mod.attrs)


def defunctionalize_function(func: Function, mod: IRModule) -> Function:
    """A function without function values; the module takes the types and functions that it needs.

    `func` is one of the module's, else it stands for `@main`. Raises `RelayError` as `defunctionalize`.
    """
    name = next((gv.name_hint for gv, f in mod.functions.items() if f is func), "main")
    copied = IRModule(mod.functions, mod.type_definitions, mod.attrs)
    copied[name] = func
    check(copied)
    first_order = defunctionalize(copied, (name,))
    result: Function = first_order[name]
    mod.update(first_order)
    return result


def _uses_functions(func: Function, has_function: HasPart) -> bool:
    return func.body is not None and any(
        (isinstance(n, Function) and n is not func and not is_primitive(n))
        or (isinstance(n, Var) and has_function(type_of(n)))
        or (not isinstance(n, Call) and any(isinstance(c, GlobalVar) for c in children(n)))
        or (isinstance(n, Call) and any(isinstance(a, (GlobalVar, Constructor)) for a in n.args))
        for n in post_order(func)
    )


@dataclass(frozen=True)
class Defunctionalization(Pass):
    """Convert function values to data, and their calls to calls of functions that match on it."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return defunctionalize(mod)
