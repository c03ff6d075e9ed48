"""Loop invariants: what the turns of a recursive function do not change is computed before its first call, and handed on.

A parameter that each inner call hands on is static. Products and reductions of static parameters and of variables outside
become further parameters of the function; calls from outside compute them. So do those in a function of the module that
the recursive one alone calls, once. A value that may not be needed is computed, too; none of these can fail.

The idea is that of fully lazy lambda lifting (Peyton Jones and Lester, "A modular fully lazy lambda lifter in Haskell",
1991), for calls of functions with names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
    rebuild,
    rewrite,
)
from relaylang.ir.typed import retype, typed, typed_var
from relaylang.ir.visit import binders
from relaylang.ops.record import Op, OpPattern
from relaylang.passes.rewriting import is_kernel

_WORTH = (OpPattern.OUT_ELEMWISE_FUSABLE, OpPattern.COMM_REDUCE)
#: Rounds: values of a callee become the function's own, and leave it in the next.
_ROUNDS = 4


def hoist_invariants(mod: IRModule, entries: Collection[str]) -> IRModule:
    """A typed module whose recursive functions take what their turns do not change. `entries` keep their parameters."""
    for _ in range(_ROUNDS):
        plans = _Plans(mod, entries).plans
        if not plans:
            break
        mod = _rewritten(mod, plans)
    return mod


@dataclass
class _Plan:
    """New parameters of a function.

    They stand in place of `nodes` of its body, which have `values` outside, a tuple. The calls in `again` hand them on.
    Nothing needs the lets in `unused` then.
    """

    function: Function
    nodes: Sequence[Expr]
    values: Expr
    again: frozenset[int]
    unused: frozenset[int]
    params: list[Var] = field(init=False)

    def __post_init__(self) -> None:
        self.params = [typed_var("invariant", node.checked_type) for node in self.nodes]

    @property
    def type(self) -> FuncType:
        ty = self.function.checked_type
        assert isinstance(ty, FuncType)
        return FuncType([*ty.arg_types, *[n.checked_type for n in self.nodes if n.checked_type is not None]], ty.ret_type)

    def name(self, ref: Var | str) -> Var | GlobalVar:
        """What the function is called with its new type."""
        return typed(GlobalVar(ref), self.type) if isinstance(ref, str) else typed_var(ref.name_hint, self.type, ref.span)

    def begin(self, args: Sequence[Expr]) -> Sequence[Expr]:
        """The values for a call from outside."""
        known = dict(zip(self.function.params, args))
        values = rewrite(self.values, lambda old, new: known.get(old, new) if isinstance(old, Var) else retype(new, old))
        assert isinstance(values, Tuple)
        return values.fields


class _Plans:
    """What each function of a module may take: those of the module first, else those of lets.

    `plans` has them by the let's variable or the name in the module.
    """

    def __init__(self, mod: IRModule, entries: Collection[str]) -> None:
        self.plans: dict[Var | str, _Plan] = {}
        self._calls: dict[Var | str, list[Call]] = {}
        self._escaped: set[Var | str] = set(entries)
        functions: dict[Var | str, Function] = {gv.name_hint: f for gv, f in mod.functions.items() if not is_kernel(f)}
        for f in [*functions.values()]:
            self._uses(f, functions)
        self._free = {ref: f for ref, f in functions.items() if self._is_free(ref, f)}
        turns = {ref: turn for ref, f in self._free.items() if (turn := self._turn(ref, f)) is not None}
        self._plan_callees(turns)
        for refs in ([ref for ref in turns if isinstance(ref, str)], list(turns)):
            if not self.plans:
                for ref in refs:
                    self._plan(ref, turns[ref])

    def _plan_callees(self, recursive: Mapping[Var | str, _Turn]) -> None:
        """Plans for what recursive functions alone call, once."""
        turns = list(recursive.values())
        while turns:
            turn = turns.pop()
            for call in turn.calls:
                name = _ref(call.op)
                if isinstance(name, str) and name in self._free and name not in recursive and self._calls[name] == [call]:
                    callee = self._free[name]
                    static = [p for p, x in zip(callee.params, call.args) if turn.is_invariant(x)]
                    turns.append(_Turn(callee, static))
                    self._plan(name, turns[-1])

    def _uses(self, function: Function, functions: dict[Var | str, Function]) -> None:
        """Note what a function calls, what it uses otherwise, and its lets of functions without others inside."""
        outer: set[int] = set()
        for node in post_order(function):
            for child in children(node):
                if ref := _ref(child):
                    if isinstance(node, Call) and child is node.op and child not in node.args:
                        self._calls.setdefault(ref, []).append(node)
                    elif not (isinstance(node, Let) and child is node.variable):
                        self._escaped.add(ref)
                elif id(child) in outer:
                    outer.add(id(node))
            if isinstance(node, Let) and isinstance(node.value, Function):
                if id(node.value) not in outer:
                    functions[node.variable] = node.value
                outer.add(id(node))

    def _is_free(self, ref: Var | str, function: Function) -> bool:
        """Whether a function's parameters may change: all its uses are calls, and it has no more than parameters."""
        plain = not function.type_params and not function.attrs and isinstance(function.checked_type, FuncType)
        return plain and ref in self._calls and ref not in self._escaped

    def _turn(self, ref: Var | str, function: Function) -> _Turn | None:
        """The turn of a recursive function; None for others, and where an inner call may be one from outside."""
        nodes = {id(node) for node in post_order(function.body)}
        again = [call for call in self._calls[ref] if id(call) in nodes]
        params = function.params
        if not again or len(again) == len(self._calls[ref]) or any(len(c.args) != len(params) for c in self._calls[ref]):
            return None
        static = [p for n, p in enumerate(params) if all(call.args[n] is p for call in again)]
        return _Turn(function, static, again) if static or isinstance(ref, Var) else None

    def _plan(self, ref: Var | str, turn: _Turn) -> None:
        nodes, unused = turn.largest()
        if nodes:
            self.plans[ref] = _Plan(turn.function, nodes, turn.outside(Tuple(nodes)), frozenset(map(id, turn.again)), unused)


class _Turn:
    """Which values of a function's body the function's static parameters and what lies outside give."""

    def __init__(self, function: Function, static: Sequence[Var], again: Sequence[Call] = ()) -> None:
        self.again = again
        self.function = function
        self._order = list(post_order(function.body))
        self._lets: dict[Expr, Expr] = {n.variable: n.value for n in self._order if isinstance(n, Let)}
        self._bound = {v for node in (function, *self._order) for v in binders(node)} - {*static} - {*self._lets}
        self._invariant: dict[int, bool] = {}
        self._worth: dict[int, bool] = {}
        self._outside: dict[int, Expr] = {}
        self.calls = [n for n in self._order if isinstance(n, Call)]

    def _parts(self, node: Expr) -> Sequence[Expr] | None:
        """What a value is computed of; None where it is no value that may be computed early."""
        if not _is_plain(node.checked_type):
            return None
        if isinstance(node, Var):
            if node in self._lets:
                return (self._lets[node],)
            return None if node in self._bound else ()
        if isinstance(node, Call):
            op = node.op
            return node.args if isinstance(op, Op) and not op.stateful and op.pattern != OpPattern.OPAQUE else None
        return {Tuple: children(node), TupleGetItem: children(node), Constant: ()}.get(type(node))  # type: ignore[call-overload]

    def is_invariant(self, value: Expr) -> bool:
        stack = [value]
        while stack:
            node = stack[-1]
            parts = self._parts(node)
            waiting = [part for part in parts or () if id(part) not in self._invariant]
            if waiting and id(node) not in self._invariant:
                stack += waiting
                continue
            stack.pop()
            self._invariant[id(node)] = parts is not None and all([self._invariant[id(part)] for part in parts])
            worth = isinstance(node, Call) and isinstance(node.op, Op) and node.op.pattern in _WORTH
            self._worth[id(node)] = worth or any([self._worth[id(part)] for part in parts or ()])
        return self._invariant[id(value)]

    def largest(self) -> tuple[list[Expr], frozenset[int]]:
        """The largest values that are worth a parameter, and the lets that nothing needs when these have left."""
        chosen: dict[int, Expr] = {}
        seen: set[int] = set()
        stack = [self.function.body]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, (Call, TupleGetItem)) and self.is_invariant(node) and self._worth[id(node)]:
                chosen[id(node)] = node
            elif isinstance(node, Let):
                stack += [node.body] if self.is_invariant(node.value) else [node.body, node.value]
            elif isinstance(node, Var):
                stack += [self._lets[node]] if node in self._lets else []
            else:
                stack += children(node)
        lets = [n for n in self._order if isinstance(n, Let) and self.is_invariant(n.value)]
        return list(chosen.values()), frozenset([id(n) for n in lets if id(n.value) not in seen])

    def outside(self, values: Tuple) -> Expr:
        """Values without the variables of the body's lets."""
        stack: list[Expr] = [values]
        while stack:
            node = stack[-1]
            inner = [self._lets[node]] if node in self._lets else children(node)
            waiting = [x for x in inner if id(x) not in self._outside]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if node in self._lets:
                self._outside[id(node)] = self._outside[id(inner[0])]
            else:
                self._outside[id(node)] = retype(rebuild(node, tuple([self._outside[id(x)] for x in inner])), node)
        return self._outside[id(values)]


def _ref(node: Expr) -> Var | str:
    """How plans know a variable or a name of the module; "" for other nodes."""
    return node if isinstance(node, Var) else node.name_hint if isinstance(node, GlobalVar) else ""


def _is_plain(ty: Type | None) -> bool:
    """Whether a value's type is that of real numbers of known extents: computing such a value early cannot fail."""
    fields = ty.fields if isinstance(ty, TupleType) else (ty,)
    return all([isinstance(t, TensorType) and "float" in t.dtype and all([isinstance(d, int) for d in t.shape]) for t in fields])


def _rewritten(mod: IRModule, plans: Mapping[Var | str, _Plan]) -> IRModule:
    places: dict[int, Expr] = {id(node): param for plan in plans.values() for node, param in zip(plan.nodes, plan.params)}
    functions = {id(plan.function): plan for plan in plans.values()}
    unused = frozenset().union(*[plan.unused for plan in plans.values()])
    names = {ref: plan.name(ref) for ref, plan in plans.items()}

    def changed(old: Expr, new: Expr) -> Expr:
        if id(old) in places:
            return places[id(old)]
        if isinstance(old, Let) and isinstance(new, Let):
            if id(old) in unused:
                return new.body
            variable = names.get(old.variable, old.variable)
            assert isinstance(variable, Var)
            new = Let(variable, new.value, new.body, old.span) if variable is not old.variable else new
        elif isinstance(old, Call) and isinstance(new, Call) and (plan := plans.get(_ref(old.op))):
            more = plan.params if id(old) in plan.again else plan.begin(new.args)
            new = Call(new.op, [*new.args, *more], old.attrs, old.type_args, old.span)
        elif isinstance(new, Function) and (plan := functions.get(id(old))):
            new = typed(Function([*new.params, *plan.params], new.body, new.ret_type, (), new.attrs, old.span), plan.type)
        return names.get(_ref(old), retype(new, old))

    new = {names.get(gv.name_hint, gv): f if is_kernel(f) else rewrite(f, changed) for gv, f in mod.functions.items()}
    return mod.with_functions(new)  # type: ignore[arg-type]
