"""A whole program as one data-flow graph: lets, tuples, closures and calls are worked out when it is compiled.

The program is evaluated with its tensors left unknown, but for small constants of whole numbers. A call of a known
function becomes that function's body, a let its value, a projection the field. The result is one expression over
operators, with `if` where the condition is not known. A recursion whose end constants decide becomes all its calls.
Evaluation runs on a stack of its own, whatever the program's depth.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from relaylang.backends.cpu.external import Externals, constants_of
from relaylang.backends.cpu.kernel import ELSEWHERE, unsupported
from relaylang.backends.cpu.turns import LEAST, MOST, Fixed, Form, begins, form_of, is_static, loop_call, whole_number
from relaylang.backends.placement import check_on_cpu
from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.compute import compute
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    MetaRef,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    parameter_names,
)
from relaylang.ir.typed import fresh_var, retype, typed, typed_constant, typed_var
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.passes.needs import Needs
from relaylang.typing import check

_E = TypeVar("_E", bound=Expr)
#: Loops inside each other; further ones are functions in C.
_DEEPEST = 16
#: A recursion of more calls than this is refused.
MAX_CALLS = 4096
#: Constants of up to so many elements are computed with.
_SMALL = 16
#: More nodes than this, after calls have been replaced by their bodies, are taken for a mistake.
MAX_NODES = 2_000_000


class Env:
    """What variables stand for inside one call of a function, and which of its nodes are done."""

    __slots__ = ("values", "done", "outer", "function", "turn")

    def __init__(self, outer: Env | None, function: Function, turn: Turn | None) -> None:
        self.function = function
        self.turn = turn
        self.values: dict[Var, Value] = {}
        self.done: dict[int, Value] = {}
        self.outer = outer

    def value(self, var: Var) -> Value:
        """What a variable is bound to, here or outside."""
        scope: Env | None = self
        while scope is not None:
            if var in scope.values:
                return scope.values[var]
            scope = scope.outer
        raise unsupported(f"the variable %{var.name_hint} has no value", var)


class Turn:
    """A loop's turn that is evaluated, inside another one perhaps: its new nodes by id, and how deep it lies."""

    __slots__ = ("outer", "depth", "fresh")

    def __init__(self, outer: Turn | None) -> None:
        self.outer = outer
        self.depth: int = 1 if outer is None else outer.depth + 1
        self.fresh: set[int] = set()


class Closure:
    """A function with the environment that it was written in."""

    __slots__ = ("function", "env")

    def __init__(self, function: Function, env: Env | None) -> None:
        self.function = function
        self.env = env


Value = Expr | list[Any] | Closure
#: Expressions that have no code.
_REFUSED = {
    **dict.fromkeys((RefCreate, RefRead, RefWrite), "references"),
    **dict.fromkeys((Match, Constructor), "values of a type definition"),
}
Step = Generator[tuple[Expr, Env], "Value", "Value"]


class Recursion(RelayError):
    """A recursion is not written out as its calls."""


@dataclass(frozen=True)
class Calls:
    """What becomes of calls: the code of other compilers, and whether a recursion is written out."""

    externals: Externals = field(default_factory=Externals)
    unroll: bool = True


def flatten(mod: IRModule, entry: str, calls: Calls | None = None, bound: frozenset[str] = frozenset()) -> Function:
    """The entry function as one expression over its parameters, of which `bound` are known.

    Raises `RelayError` for what cannot be compiled.
    """
    function = mod[entry]
    if function.body is None:
        raise unsupported(f"@{entry} has no body", function)
    return _Flattener(mod, calls or Calls(), bound).run(function)


def _distinct(params: Sequence[Var]) -> list[Var]:
    """The parameters with a name each."""
    out = []
    for param, name in zip(params, parameter_names(params)):
        out.append(param if name == param.name_hint else fresh_var(param, name))
    return out


class _Flattener:
    def __init__(self, mod: IRModule, rules: Calls, bound: frozenset[str]) -> None:
        self.fixed = Fixed(bound)
        #: The innermost turn of a loop in which the node under way is evaluated.
        self.turn: Turn | None = None
        self.needs = Needs()
        self.forms: dict[int, Form | None] = {}
        self.loops = 0
        self.mod = mod
        self.rules = rules
        #: For each call that runs of a function, the undecided conditions around it.
        self.active: dict[int, list[int]] = {}
        self.undecided = 0
        self.unrolled = False
        self.count = 0
        #: Calls of operators by their place in the program and their operands. A loop's constant parts are computed once.
        self.calls: dict[tuple[int, ...], Call] = {}
        self.holes: dict[str, Var] = {}
        self.fields: dict[tuple[int, int], Expr] = {}
        self.kept: list[Expr] = []

    def run(self, function: Function) -> Function:
        env = Env(None, function, None)
        params = _distinct(function.params)
        for param, new in zip(function.params, params):
            env.values[param] = self._unpack(new, new.checked_type)
        self.active[id(function)] = [0]
        body = self._expr(self._evaluate(function.body, env), function.body)
        flattened = Function([*params, *self.holes.values()], body, None, (), {}, function.span)
        if self.unrolled:  # each turn of a loop has types of its own
            check(flattened, module=self.mod, fresh=True)
        return flattened

    def _evaluate(self, expr: Expr, env: Env) -> Value:
        """Run the steps on a stack of generators."""
        stack: list[tuple[Step, Expr, Env]] = [(self._step(expr, env), expr, env)]
        send: Value | None = None
        while stack:
            step, node, where = stack[-1]
            self.turn = where.turn
            try:
                inner, inner_env = step.send(send)  # type: ignore[arg-type]
            except StopIteration as stop:
                stack.pop()
                send = stop.value
                where.done[id(node)] = send  # type: ignore[assignment]
                continue
            inner_env = self._home(inner, inner_env)
            known = _known(inner, inner_env)
            if known is not None:
                send = known
                continue
            self.count += 1
            if self.count > MAX_NODES:
                raise unsupported("the program is too large to compile once its calls are replaced by their bodies", inner)
            stack.append((self._step(inner, inner_env), inner, inner_env))
            send = None
        assert send is not None
        return send

    def _home(self, expr: Expr, env: Env) -> Env:
        """Where an expression is evaluated. What a call of a function does not change belongs where the function was written."""
        while env.outer is not None and not self.needs(expr, env.function):
            env = env.outer
        return env

    def _bind(self, variable: Var, value: Expr, env: Env) -> Generator[tuple[Expr, Env], Value, None]:
        """Bind a let's variable where its value is evaluated, because what uses it may be evaluated there, too."""
        home = self._home(value, env)
        home.values[variable] = Closure(value, home) if isinstance(value, Function) else (yield (value, home))

    def _step(self, expr: Expr, env: Env) -> Step:
        match expr:
            case Call():
                return (yield from self._call(expr, env))
            case Constant():
                return typed(expr, TensorType(expr.data.shape, expr.dtype))
            case Var():
                return env.value(expr)
            case Tuple(fields):
                values = []
                for item in fields:
                    values.append((yield (item, env)))
                return values
            case TupleGetItem(tuple_value, index):
                field_values = yield (tuple_value, env)
                if isinstance(field_values, list):
                    return field_values[index]  # type: ignore[no-any-return]
                return self._field(self._expr(field_values, expr), index, expr.checked_type)
            case Let():
                node: Expr = expr
                while isinstance(node, Let):
                    yield from self._bind(node.variable, node.value, env)
                    node = node.body
                return (yield (node, env))
            case If():
                return (yield from self._if(expr, env))
            case Function():
                return Closure(expr, env)
            case Op(name):
                raise unsupported(f"the operator {name} as a value cannot be compiled", expr)
            case GlobalVar(name):
                if name not in self.mod:
                    raise unsupported(f"the function @{name} is not in the module", expr)
                return Closure(self.mod[name], None)
            case MetaRef():
                hole = self.holes.get(expr.name_hint)
                if hole is None:
                    hole = Var(expr.name_hint, expr.checked_type, expr.span)
                    typed(hole, expr.checked_type or expr.type_annotation)
                    self.holes[expr.name_hint] = hole
                return hole
        raise unsupported(f"{_REFUSED.get(type(expr), type(expr).__name__)} cannot be compiled", expr)

    def _call(self, expr: Call, env: Env) -> Step:
        values: list[Value] = []
        for arg in expr.args:
            values.append((yield (arg, env)))
        if isinstance(expr.op, Op):
            check_on_cpu(expr)
            if Trait.PLACEMENT in expr.op.traits:  # there is one device
                return values[0]
            args = [self._expr(v, a) for v, a in zip(values, expr.args)]
            key = (id(expr), *map(id, args))
            call = self.calls.get(key)
            if call is None or expr.op.stateful:
                call = self.calls[key] = self._new(retype(Call(expr.op, args, expr.attrs, expr.type_args, expr.span), expr))
            return _number(call) or self._unpack(call, call.checked_type)
        if isinstance(expr.op, Constructor):
            raise unsupported("values of a type definition cannot be compiled", expr)
        callee = yield (expr.op, env)
        if not isinstance(callee, Closure):
            raise unsupported("a function that is not known when the program is compiled cannot be called", expr)
        function = callee.function
        if function.body is None:
            raise unsupported("a function of another module cannot be compiled here", expr)
        if function.attrs.get("Compiler"):
            return self._external(expr, function, values)
        running = self.active.setdefault(id(function), [])
        if not running:
            looped = yield from self._counted(callee, values, env)
            if looped is not None:
                return looped
        if running:
            self._check_recursion(expr, function, running)
        inner = Env(callee.env, function, env.turn)
        inner.values.update(zip(function.params, values))
        running.append(self.undecided)
        result = yield (function.body, inner)
        running.pop()
        return result

    def _external(self, expr: Call, function: Function, values: Sequence[Value]) -> Value:
        """A call of another compiler's function: its tensors, and its constants, go to one operator."""
        op = self.rules.externals.operator(expr, function)
        args: list[Expr] = []
        stack = list(reversed(list(zip(values, expr.args))))
        while stack:
            value, place = stack.pop()
            if isinstance(value, list):
                stack.extend((v, place) for v in reversed(value))
            else:
                args.append(self._expr(value, place))
        call = self._new(Call(op, [*args, *(typed_constant(c.data) for c in constants_of(op))], None, (), expr.span or function.span))
        return self._unpack(typed(call, function.body.checked_type), function.body.checked_type)

    def _check_recursion(self, call: Call, function: Function, running: list[int]) -> None:
        """Raise `Recursion` for one that cannot be written out as its calls."""
        self.unrolled = True
        if not self.rules.unroll:
            title, note = "a recursive function has calls without a number", "its calls are not written out here"
        elif self.undecided > running[-1]:
            title, note = "a recursive function cannot be compiled", "no constants decide where the recursion ends"
        elif len(running) >= MAX_CALLS:
            title, note = f"a recursion of more than {MAX_CALLS} calls cannot be compiled", "the compiler writes out all calls"
        else:
            return
        raise Recursion(
            error(
                "R0632",
                title,
                call.span,
                "calls a function that is running",
                also=[(function.span, "the function")],
                notes=[note, ELSEWHERE],
            )
        )

    def _if(self, expr: If, env: Env) -> Step:
        cond = yield (expr.cond, env)
        if isinstance(cond, Constant):
            return (yield (expr.true_branch if bool(cond.data) else expr.false_branch, env))
        # Each branch has its own values; both share the values computed before.
        branches = []
        self.undecided += 1
        for branch in (expr.true_branch, expr.false_branch):
            value = yield (branch, env)
            branches.append(self._expr(value, branch))
        self.undecided -= 1
        new = self._new(typed(If(self._expr(cond, expr.cond), branches[0], branches[1], expr.span), branches[0].checked_type))
        return self._unpack(new, new.checked_type)

    def _new(self, node: _E) -> _E:
        """A new node, which belongs to the turn that is evaluated."""
        if self.turn is not None:
            self.turn.fresh.add(id(node))
            self.kept.append(node)
        return node

    def _counted(self, callee: Closure, values: Sequence[Value], env: Env) -> Generator[tuple[Expr, Env], Value, Value | None]:
        """The value of a loop with a known number of turns, as one operator; None for other calls."""
        function = callee.function
        if id(function) not in self.forms:
            self.forms[id(function)] = form_of(function)
        form = self.forms[id(function)]
        if form is None or (env.turn is not None and env.turn.depth >= _DEEPEST) or not begins(form, values):
            return None
        first_values = Env(callee.env, function, env.turn)
        first_values.values.update(zip(function.params, values))
        first, limit = whole_number(values[form.turn]), whole_number((yield (form.limit, first_values)))
        state_values = [value for n in form.states if isinstance(value := values[n], Expr)]
        if (
            first is None
            or limit is None
            or not LEAST <= limit - first <= MOST
            or not all(is_static(x.checked_type) for x in state_values)
        ):
            return None
        params, start = function.params, values[form.turn]
        assert isinstance(start, Constant)
        turn = typed_var("(turn)", start.checked_type)
        states = {typed_var(f"(state{n})", v.checked_type): v for n, v in enumerate(state_values)}
        own = Turn(env.turn)
        inner = Env(callee.env, function, own)
        inner.values.update((p, v) for n, (p, v) in enumerate(zip(params, values)) if n not in form.rows)
        inner.values.update(zip([params[n] for n in (form.turn, *form.states)], [turn, *states]))
        again = yield (form.again.op, inner)
        if not isinstance(again, Closure) or again.function is not function:
            return None
        for variable, value in form.lets:
            yield from self._bind(variable, value, inner)
        results = []
        for node in (*(form.again.args[n] for n in form.states), *form.rows.values()):
            result = yield (node, inner)
            self.turn = own
            results.append(self._expr(result, node))
        self.turn = env.turn
        if own.outer is not None:
            own.outer.fresh |= own.fresh
        if [x.checked_type for x in results[: len(states)]] != [x.checked_type for x in states]:
            return None
        call = loop_call(turn, start, limit - first, states, results, own.fresh, self.fixed, self.loops)
        if call is None:
            return None
        self.loops += 1
        self.unrolled = True
        fields = self._unpack(self._new(call), call.checked_type)
        assert isinstance(fields, list)
        outer = Env(callee.env, function, env.turn)
        outer.values.update(zip(params, values))
        outer.values[params[form.turn]] = typed_constant(np.asarray(limit, start.dtype))
        outer.values.update(zip([params[n] for n in (*form.states, *form.rows)], fields))
        return (yield (form.end, outer))

    def _field(self, source: Expr, index: int, ty: Type | None) -> Value:
        key = (id(source), index)
        access = self.fields.get(key)
        if access is None:
            access = self.fields[key] = self._new(typed(TupleGetItem(source, index, source.span), ty))
            self.kept.append(source)
        return self._unpack(access, ty)

    def _unpack(self, expr: Expr, ty: Type | None) -> Value:
        """A value of a tuple type as its fields."""
        if isinstance(ty, TupleType):
            return [self._field(expr, n, field) for n, field in enumerate(ty.fields)]
        return expr

    def _expr(self, value: Value, place: Expr) -> Expr:
        """A value as one expression."""
        if isinstance(value, Closure):
            raise unsupported("a function as a value cannot be compiled", place)
        if isinstance(value, list):
            fields = [self._expr(v, place) for v in value]
            source = _same_tuple(fields)
            if source is not None:
                return source
            return self._new(typed(Tuple(fields, place.span), TupleType([_type(f) for f in fields])))
        return value


def _number(call: Call) -> Constant | None:
    """The value of a call on small constants of whole numbers, or None."""
    op, ty = call.op, call.checked_type
    assert isinstance(op, Op)
    if not isinstance(ty, TensorType) or not call.args or op.stateful or Trait.BARRIER in op.traits:
        return None
    if not all(isinstance(a, Constant) and a.data.size <= _SMALL and a.data.dtype.kind in "iub" for a in call.args):
        return None
    value = compute(call, [a.data for a in call.args])  # type: ignore[attr-defined]
    if value is None or np.size(value) > _SMALL or np.asarray(value).dtype != ty.dtype:
        return None
    return typed_constant(np.asarray(value), span=call.span)


def _type(expr: Expr) -> Type:
    if expr.checked_type is None:
        raise unsupported("a value whose type is not known cannot be compiled", expr)
    return expr.checked_type


def _same_tuple(fields: list[Expr]) -> Expr | None:
    """The tuple whose fields these are, all and in order."""
    if not fields or not isinstance(fields[0], TupleGetItem):
        return None
    source = fields[0].tuple_value
    ty = source.checked_type
    if not isinstance(ty, TupleType) or len(ty.fields) != len(fields):
        return None
    same = all(isinstance(f, TupleGetItem) and f.tuple_value is source and f.index == n for n, f in enumerate(fields))
    return source if same else None


def _known(expr: Expr, env: Env) -> Value | None:
    scope: Env | None = env
    while scope is not None:
        value = scope.done.get(id(expr))
        if value is not None:
            return value
        scope = scope.outer
    return None
