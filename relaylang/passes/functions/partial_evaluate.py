"""PartialEvaluate: compute the known parts of a program, and keep a program for the rest.

After Jones, Gomard and Sestoft, "Partial Evaluation and Automatic Program Generation", online. Each value has an atom
that stands for it in the residual program, a static part, or both. A static part is a known tensor, tuple, function,
reference or datum. Calls of known functions are unfolded. Branches and matches on known values are decided, and
operators on known tensors are computed. References are followed where nothing unknown may have written them.

A static value has a place among the bindings, where it was made. It gets a binding there when the residual program
first needs it. Thus a variable never stands in front of its binding, and no unneeded value is built.

Unfolding ends. Inside itself, a function is unfolded only on a whole number that falls towards zero, or a datum
that shrinks. All unfolding together has a bound that is linear in the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.ir import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    Type,
    TypeVar,
    Var,
    children,
    pattern_vars,
    post_order,
    rebuild,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ir.expr import Pattern
from relaylang.ir.extents import names_in
from relaylang.ir.typemaps import HasPart
from relaylang.ir.types import written
from relaylang.ir.visit import Walk, walk
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.blocks import map_pattern
from relaylang.passes.normal_forms.to_a_normal_form import convert
from relaylang.passes.normal_forms.to_graph_normal_form import recursive_variables
from relaylang.passes.rewriting import is_kernel, is_opaque
from relaylang.passes.simplify.dead_code_elimination import eliminate_dead_code
from relaylang.passes.simplify.fold_constant import Compute, evaluator
from relaylang.typing import check

_BOUND, _LEAST_BOUND, _MOST = 16, 20_000, 1 << 40


class Value:
    """The known part of a value. `place` is where it gets its binding, if it has no atom yet."""

    __slots__ = ("atom", "place", "static")

    def __init__(self, static: Any = None, atom: Expr | None = None, place: list | None = None) -> None:
        self.static = static
        self.atom = atom
        self.place = place


class Closure:
    """A function and what its variables are; `name` is what it may call itself by."""

    __slots__ = ("env", "func", "name")

    def __init__(self, func: Function, env: Env, name: GlobalVar | Var | None = None) -> None:
        self.func = func
        self.env = env
        self.name = name


class Datum:
    """A constructor with its fields. `size`: how many constructors it is known to have inside."""

    __slots__ = ("constructor", "fields", "size")
    size: int

    def __init__(self, constructor: Constructor, fields: Sequence[Value]) -> None:
        self.constructor = constructor
        self.fields = fields
        self.size = 1 + sum(f.static.size for f in fields if isinstance(f.static, Datum))


class Cell:
    """A reference of which the place is known."""

    __slots__ = ()


class Env:
    """Variables of one activation of a function, inside those around it."""

    __slots__ = ("outer", "values")

    def __init__(self, outer: Env | None) -> None:
        self.outer = outer
        self.values: dict[Var, Value] = {}

    def find(self, var: Var) -> Value:
        env: Env | None = self
        while env is not None:
            value = env.values.get(var)
            if value is not None:
                self.values[var] = value  # functions in this one, which will ask for it here, may be many deep
                return value
            env = env.outer
        return Value(atom=var)


class Scope:
    """Bindings of one block of the residual program, in order: places that hold `(variable, value)` or are empty."""

    __slots__ = ("places",)

    def __init__(self) -> None:
        self.places: list[list] = []

    def place(self) -> list:
        place: list = []
        self.places.append(place)
        return place

    def push(self, value: Expr, name: str = "x") -> Var:
        var = Var(name)
        self.places.append([var, value])
        return var

    def around(self, body: Expr) -> Expr:
        for place in reversed(self.places):
            if place:
                body = Let(place[0], place[1], body)
        return body


class _Evaluator:
    def __init__(self, mod: IRModule, compute: Compute) -> None:
        self.compute = compute
        self.functions = {gv: convert(f, let_results=False) for gv, f in mod.functions.items() if not is_opaque(f)}
        self.sizes: dict[int, int] = {}
        #: The names of functions that call themselves.
        self.loops: set[Expr | None] = set()
        for gv, f in self.functions.items():
            self.measure(gv, f)
        total = sum(self.size(f) for f in self.functions.values() if isinstance(f, Function))
        self.left = _LEAST_BOUND + _BOUND * total
        #: The functions that are being unfolded, or whose bodies are being made, with what they were called with.
        self.active: dict[int, list[list[Value]]] = {}
        #: What references hold, as far as is known, and what each write replaced: a block's writes are undone behind it.
        self.store: dict[Cell, Value] = {}
        self.replaced: list[tuple[dict[Cell, Value], Cell, Value | None]] = []
        self.forgotten = 0
        self.type_params: set[TypeVar] = set()

    def measure(self, gv: GlobalVar, func: Expr) -> None:
        """Find the sizes of a function and of those inside it, and which of them call themselves, all in one."""
        counts: dict[int, int] = {}
        for node in post_order(func):
            count = 1 + sum([counts[id(c)] for c in children(node)])
            counts[id(node)] = min(count, _MOST)  # a kernel's nodes may be shared
            if isinstance(node, Function):
                self.sizes[id(node)] = count
            elif node is gv:
                self.loops.add(gv)
        self.loops |= recursive_variables(func)

    def size(self, func: Function) -> int:
        return self.sizes.get(id(func), _MOST)

    def whole(self, gv: GlobalVar) -> Function:
        """A function of the module, with nothing known of its parameters."""
        func = self.functions[gv]
        assert isinstance(func, Function)
        self.type_params = set(func.type_params)
        self.forget()
        function: Function = walk(self.residual(Closure(func, Env(None), gv)))
        return function

    def residual(self, closure: Closure) -> Walk:
        """A function of the residual program."""
        func = closure.func
        scope, env = Scope(), Env(closure.env)
        params = []
        for old in func.params:
            new = Var(old.name_hint, self.annotation(old.checked_type or old.type_annotation), old.span)
            params.append(new)
            env.values[old] = Value(atom=new)
        held, self.store = self.store, {}
        self.active.setdefault(id(func), []).append(list(env.values.values()))
        result = yield self.block(func.body, env, scope)
        body = yield self.atom(result)
        self.active[id(func)].pop()
        self.store = held
        ret_type = func.checked_type.ret_type if isinstance(func.checked_type, FuncType) else None
        return Function(params, scope.around(body), self.annotation(ret_type), func.type_params, func.attrs, func.span)

    def annotation(self, ty: Type | None) -> Type | None:
        """A type, if it means the same here: a function that was unfolded has left its type parameters behind."""
        if ty is None or written(ty) is None or HasPart(self.left_behind)(ty):
            return None
        return ty

    def left_behind(self, ty: Type) -> bool:
        if isinstance(ty, TensorType):
            return any(
                n.kind == "ShapeVar" and n not in self.type_params for d in ty.shape if isinstance(d, TypeVar) for n in names_in(d)
            )
        return isinstance(ty, TypeVar) and ty not in self.type_params

    def atom(self, value: Value) -> Walk:
        """The atom of a value in the residual program."""
        if value.atom is not None:
            return value.atom
        place, static = value.place, value.static
        assert place is not None
        var = value.atom = Var("x")
        expr: Expr
        if isinstance(static, Constant):
            expr = static
        elif isinstance(static, tuple):
            fields = []
            for field in static:
                fields.append((yield self.atom(field)))
            expr = Tuple(fields)
        elif isinstance(static, Datum):
            fields = []
            for field in static.fields:
                fields.append((yield self.atom(field)))
            expr = Call(static.constructor, fields)
        else:
            assert isinstance(static, Closure)
            expr = yield self.residual(static)
        place.extend((var, expr))
        return var

    def atoms(self, values: Sequence[Value]) -> Walk:
        atoms = []
        for value in values:
            atoms.append((yield self.atom(value)))
        return atoms

    def forget(self) -> None:
        """Something unknown may have written any reference."""
        self.store = {}
        self.forgotten += 1

    def write(self, cell: Cell, value: Value) -> None:
        """What a reference holds from here on."""
        self.replaced.append((self.store, cell, self.store.get(cell)))
        self.store[cell] = value

    def undo(self, length: int) -> None:
        """The references hold what they did when there were so many writes."""
        while len(self.replaced) > length:
            store, cell, value = self.replaced.pop()
            if value is None:
                del store[cell]
            else:
                store[cell] = value

    def block(self, expr: Expr, env: Env, scope: Scope) -> Walk:
        while isinstance(expr, Let):
            if isinstance(expr.value, Function) and not is_kernel(expr.value):
                # The function may call itself by this name.
                env.values[expr.variable] = Value(Closure(expr.value, env, expr.variable), None, scope.place())
            else:
                env.values[expr.variable] = yield self.value(expr.value, env, scope)
            expr = expr.body
        return (yield self.value(expr, env, scope))

    def value(self, node: Expr, env: Env, scope: Scope) -> Walk:
        if isinstance(node, Var):
            return env.find(node)
        if isinstance(node, GlobalVar):
            func = self.functions.get(node)
            return Value(Closure(func, Env(None), node) if isinstance(func, Function) else None, node)
        if isinstance(node, Constant):
            return Value(node, None, scope.place())
        if isinstance(node, Tuple):
            fields = []
            for field in node.fields:
                fields.append((yield self.value(field, env, scope)))
            return Value(tuple(fields), None, scope.place())
        if isinstance(node, TupleGetItem):
            source = yield self.value(node.tuple_value, env, scope)
            if isinstance(source.static, tuple):
                return source.static[node.index]
            return Value(atom=scope.push(TupleGetItem((yield self.atom(source)), node.index, node.span)))
        if isinstance(node, Function) and not is_kernel(node):
            return Value(Closure(node, env), None, scope.place())
        if isinstance(node, Call):
            return (yield self.call(node, env, scope))
        if isinstance(node, If):
            return (yield self.branch(node, env, scope))
        if isinstance(node, Match):
            return (yield self.match(node, env, scope))
        if isinstance(node, (RefCreate, RefRead, RefWrite)):
            return (yield self.reference(node, env, scope))
        if isinstance(node, (Op, Constructor)):
            return Value(atom=node)
        expr = node if isinstance(node, Function) else rebuild(node, (yield self.inner(node, env, scope)))
        return Value(atom=scope.push(expr))

    def inner(self, node: Expr, env: Env, scope: Scope) -> Walk:
        atoms = []
        for child in children(node):
            atoms.append((yield self.atom((yield self.value(child, env, scope)))))
        return tuple(atoms)

    def call(self, node: Call, env: Env, scope: Scope) -> Walk:
        args = []
        for arg in node.args:
            args.append((yield self.value(arg, env, scope)))
        op = node.op
        if isinstance(op, Constructor):
            return Value(Datum(op, args), None, scope.place())
        if isinstance(op, Op):
            known = self.computed(node, op, args)
            if known is not None:
                return _placed(known, node.checked_type, scope)
            return Value(atom=scope.push(Call(op, (yield self.atoms(args)), node.attrs, (), node.span)))
        callee = yield self.value(op, env, scope)
        closure = callee.static
        if isinstance(closure, Closure) and self.unfolds(closure, args):
            func = closure.func
            inside = Env(closure.env)
            inside.values.update(zip(func.params, args))
            self.left -= self.size(func)
            self.active.setdefault(id(func), []).append(args)
            result = yield self.block(func.body, inside, scope)
            self.active[id(func)].pop()
            return result
        call = Call((yield self.atom(callee)), (yield self.atoms(args)), node.attrs, (), node.span)
        self.forget()
        return Value(atom=scope.push(call))

    def computed(self, node: Call, op: Op, args: list[Value]) -> Any:
        if op.stateful or Trait.BARRIER in op.traits or not args:
            return None
        arrays = [_array(a) for a in args]
        return None if any(a is None for a in arrays) else self.compute(node, arrays)

    def unfolds(self, closure: Closure, args: list[Value]) -> bool:
        """Whether a call is unfolded: it ends, and there is room for it."""
        func = closure.func
        if self.size(func) > self.left:
            return False
        if func.type_params and (not isinstance(closure.name, GlobalVar) or func.type_params[0] in self.type_params):
            return False
        active = self.active.get(id(func))
        if active:
            return any(_smaller(a, b) for a, b in zip(args, active[-1]))
        # A loop of which nothing says how long it is stays one.
        return closure.name not in self.loops or any(_measure(a) is not None for a in args)

    def branch(self, node: If, env: Env, scope: Scope) -> Walk:
        cond = yield self.value(node.cond, env, scope)
        if isinstance(cond.static, Constant):
            chosen = node.true_branch if bool(cond.static.data) else node.false_branch
            return (yield self.block(chosen, env, scope))
        atom = yield self.atom(cond)
        yes, no = yield self.blocks([(node.true_branch, env), (node.false_branch, env)])
        return Value(atom=scope.push(If(atom, yes, no, node.span)))

    def blocks(self, parts: list[tuple[Expr, Env]]) -> Walk:
        """Blocks of which one will run. Each knows the facts in front of them, none sees the writes of another one."""
        held, before, blocks = self.store, self.forgotten, []
        for part, env in parts:
            length = len(self.replaced)
            inside = Scope()
            result = yield self.block(part, env, inside)
            blocks.append(inside.around((yield self.atom(result))))
            self.undo(length)
            self.store = held
        if self.forgotten != before:
            self.forget()
        return blocks

    def match(self, node: Match, env: Env, scope: Scope) -> Walk:
        data = yield self.value(node.data, env, scope)
        for clause in node.clauses:
            bindings: dict[Var, Value] = {}
            fits = _fits(clause.lhs, data, bindings)
            if fits:
                env.values.update(bindings)
                return (yield self.block(clause.rhs, env, scope))
            if fits is None:
                break
        atom = yield self.atom(data)
        patterns, parts = [], []
        for clause in node.clauses:
            new = {v: Var(v.name_hint, None, v.span) for v in pattern_vars(clause.lhs)}
            inside = Env(env)
            inside.values.update({v: Value(atom=n) for v, n in new.items()})
            patterns.append(map_pattern(clause.lhs, new))
            parts.append((clause.rhs, inside))
        bodies = yield self.blocks(parts)
        clauses = [Clause(p, b, c.span) for p, b, c in zip(patterns, bodies, node.clauses)]
        return Value(atom=scope.push(Match(atom, clauses, node.complete, node.span)))

    def reference(self, node: RefCreate | RefRead | RefWrite, env: Env, scope: Scope) -> Walk:
        if isinstance(node, RefCreate):
            held = yield self.value(node.value, env, scope)
            cell = Cell()
            self.write(cell, held)
            return Value(cell, scope.push(RefCreate((yield self.atom(held)), node.span)))
        ref = yield self.value(node.ref, env, scope)
        if isinstance(node, RefRead):
            known = self.store.get(ref.static) if isinstance(ref.static, Cell) else None
            return known or Value(atom=scope.push(RefRead((yield self.atom(ref)), node.span)))
        held = yield self.value(node.value, env, scope)
        scope.push(RefWrite((yield self.atom(ref)), (yield self.atom(held)), node.span))
        self.forgotten += 1
        if isinstance(ref.static, Cell):
            self.write(ref.static, held)
        else:
            self.forget()
        return Value((), None, scope.place())


def _array(value: Value) -> Any:
    if isinstance(value.static, Constant):
        return value.static.data
    if isinstance(value.static, tuple):
        fields = [_array(f) for f in value.static]
        return None if any(f is None for f in fields) else tuple(fields)
    return None


def _placed(array: Any, ty: Type | None, scope: Scope) -> Value:
    """What an operator computed."""
    if isinstance(array, tuple):
        types = getattr(ty, "fields", None) or [None] * len(array)
        return Value(tuple([_placed(a, t, scope) for a, t in zip(array, types)]), None, scope.place())
    computed = np.asarray(array)
    constant = Constant(computed, dtype=ty.dtype if isinstance(ty, TensorType) else computed.dtype.name)
    return Value(constant, None, scope.place())


def _measure(value: Value) -> int | None:
    """How far a whole number is from zero, or how much a datum has inside."""
    static = value.static
    if isinstance(static, Datum):
        return static.size
    if isinstance(static, Constant) and static.data.ndim == 0 and static.data.dtype.kind in "iu":
        return int(static.data)
    return None


def _smaller(new: Value, old: Value) -> bool:
    """Whether an argument comes nearer to an end than the one of the call around this one."""
    a, b = _measure(new), _measure(old)
    return a is not None and b is not None and -1 <= a < b and type(new.static) is type(old.static)


def _fits(pattern: Pattern, value: Value, bindings: dict[Var, Value]) -> bool | None:
    """Whether a value fits a pattern, None where that is not known; what its variables then are."""
    if isinstance(pattern, PatternWildcard):
        return True
    if isinstance(pattern, PatternVar):
        bindings[pattern.var] = value
        return True
    fields: Sequence[Value]
    if isinstance(pattern, PatternConstructor) and isinstance(value.static, Datum):
        if value.static.constructor is not pattern.constructor:
            return False
        fields = value.static.fields
    elif isinstance(pattern, PatternTuple) and isinstance(value.static, tuple):
        fields = value.static
    else:
        return None
    answers = [_fits(p, v, bindings) for p, v in zip(pattern.patterns, fields)]
    return False if False in answers else None if None in answers else True


def partial_evaluate(mod: IRModule, compute: Compute) -> IRModule:
    """A typed module whose functions do only the work that depends on their calls."""
    evaluator = _Evaluator(mod, compute)
    with gc_paused():
        new = {gv: evaluator.whole(gv) if gv in evaluator.functions else f for gv, f in mod.functions.items()}
    evaluated = mod.with_functions(new)
    check(evaluated)
    return eliminate_dead_code(evaluated)


@dataclass(frozen=True)
class PartialEvaluate(Pass):
    """Unfold known calls, decide known branches, and follow known references."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return partial_evaluate(mod, evaluator())
