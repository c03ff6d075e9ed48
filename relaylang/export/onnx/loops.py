"""Loops of a program in graph normal form: what a turn computes, and how many turns there are.

A loop is a function that calls itself last, in one branch of its `if`: a let's function, or one of the module. A turn is
seen with the values that no turn changes in place of their parameters, and with the bodies of the functions that it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from relaylang.export.attributes import slices
from relaylang.export.onnx.cells import called, extents
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    TensorType,
    Tuple,
    TupleGetItem,
    TypeVar,
    Var,
    children,
    rebuild,
)
from relaylang.ir.typed import retype
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.passes.needs import Needs

#: A turn with more nodes is no step of a layer.
_MOST = 2000
#: Functions in a turn call each other this deep.
_DEEPEST = 8
#: Operators that keep the extent of the first axis of their first operand.
_FRONT = ("reverse", "reverse_sequence", "nn.bias_add", "cast", "nn.dense")
#: The opposites of comparisons, and the comparisons of exchanged operands.
_OPPOSITE = {"less": "greater_equal", "greater_equal": "less", "greater": "less_equal", "less_equal": "greater", "equal": "not_equal"}
_OPPOSITE["not_equal"] = "equal"
_EXCHANGED = {
    "less": "greater",
    "greater": "less",
    "less_equal": "greater_equal",
    "greater_equal": "less_equal",
    "not_equal": "not_equal",
}
#: A sum of variables and extents (None: the number 1), each with its factor.
Affine = Mapping[Any, int]
#: The values of variables, and how many calls are around.
_Scope = tuple[Mapping[Var, Expr], int]


class NoLoop(Exception):
    """A call begins no loop that can be a layer."""


class Turn:
    """A turn of the loop that `call` begins. `end` is the value of the call in terms of the parameters.

    `first` and `after` have the value of each parameter that changes, before the first turn and behind a turn. `going` are
    the conditions of a turn, each with whether it holds.
    """

    def __init__(self, call: Call, function: Function, own: Expr, needs: Needs, callee: Callable[[Expr], Function | None]) -> None:
        assert isinstance(function.body, If)
        branches = [function.body.true_branch, function.body.false_branch]
        again = [b for b in branches if isinstance(b, Call) and _is_same(b.op, own) and len(b.args) == len(function.params)]
        if len(again) != 1 or len(call.args) != len(function.params) or function.type_params:
            raise NoLoop
        self.call = call
        self.end = branches[again[0] is branches[0]]
        self._fixed = {p: x for p, x, y in zip(function.params, call.args, again[0].args) if y is p}
        self.first = {p: x for p, x in zip(function.params, call.args) if p not in self._fixed}
        self._unfold = _Unfold(function, own, needs, callee)
        after = self._unfold(again[0].args, self._fixed)
        self.after = {p: x for p, x in zip(function.params, after) if p in self.first}
        (condition,) = self._unfold([function.body.cond], self._fixed)
        self.going = list(self._conditions(condition, again[0] is branches[0]))
        self._steps = {p: step for p in self.first if (step := self._step_of(p))}
        self._begin = {p: affine(self.first[p]) or {} for p in self._steps}

    def value(self, result: Expr, values: Mapping[Var, Expr]) -> Expr:
        """What the loop gives for `end` or a field of it, from the last value of each parameter that changes.

        Raises `NoLoop` where one is missing.
        """
        (value,) = self._unfold([result], {**self._fixed, **values})
        if self._mentions(value, {p for p in self.first if p not in values}):
            raise NoLoop
        return value

    def changes(self, expr: Expr) -> bool:
        """Whether a value of a turn may differ from turn to turn."""
        return self._unfold.is_own(expr) and self._mentions(expr, set(self.first))

    def only(self, expr: Expr, values: Sequence[Expr]) -> bool:
        """Whether a value depends on the turn by some of its values alone."""
        return not self._mentions(expr, set(self.first), {id(x) for x in values})

    def _mentions(self, expr: Expr, variables: set[Var], beyond: set[int] = frozenset()) -> bool:  # type: ignore[assignment]
        stack, seen = [expr], set[int]()
        while stack:
            node = stack.pop()
            if node in variables:
                return True
            if id(node) not in seen and id(node) not in beyond and self._unfold.is_own(node):
                seen.add(id(node))
                stack += children(node)
        return False

    def substituted(self, expr: Expr, values: Mapping[int, Expr]) -> Expr:
        """A value of a turn with others in the place of some nodes, by id."""
        done: dict[int, Expr] = dict(values)
        stack = [(expr, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                done[id(node)] = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
            elif id(node) not in done:
                if not self._unfold.is_own(node) or isinstance(node, Var):
                    done[id(node)] = node
                    continue
                stack.append((node, True))
                stack += [(c, False) for c in children(node)]
        return done[id(expr)]

    # ---- counting

    def _conditions(self, condition: Expr, holds: bool) -> Iterator[tuple[Expr, bool]]:
        """The parts of a condition that may end the loop, each with whether it holds until then."""
        stack = [(condition, holds)]
        while stack:
            term, holds = stack.pop()
            if parts := called(term, "logical_and" if holds else "logical_or"):
                stack += [(part, holds) for part in parts]
            elif parts := called(term, "logical_not"):
                stack.append((parts[0], not holds))
            elif not self._stays(term, holds):
                yield term, holds

    def _stays(self, term: Expr, holds: bool) -> bool:
        """Whether a condition is a variable that stays true."""
        values = [self.first.get(term), self.after.get(term)] if isinstance(term, Var) else [term]
        return holds and all(isinstance(x, Constant) and x.data.dtype == bool and bool(x.data.all()) for x in values)

    def _step_of(self, param: Var) -> int:
        """What a turn adds to a parameter: a whole number; 0 for others."""
        total = affine(self.after[param])
        return total.get(None, 0) if total is not None and {k: v for k, v in total.items() if k is not None} == {param: 1} else 0

    def _at_first(self, expr: Expr) -> tuple[Affine, int] | None:
        """A whole number in the first turn, and what a turn adds to it; None for others."""
        total = affine(expr)
        if total is None:
            return None
        start: dict[Any, int] = {}
        step = 0
        for key, factor in total.items():
            if isinstance(key, Expr) and key not in self._steps and self.changes(key):
                return None
            begin = self._begin[key] if key in self._steps else {key: 1}
            step += factor * self._steps.get(key, 0)
            start = _sum(start, begin, factor)
        return start, step

    def is_counted(self, sequence: Expr) -> bool:
        """Whether there are as many turns as steps in a sequence."""
        counts = [self._count(term, holds) for term, holds in self.going]
        steps = _front(sequence)
        known = [c for c in counts if c is not None]
        longer = [_sum(c, steps, -1) for c in known]
        return len(known) == len(counts) and {} in longer and all(not set(n) - {None} and n.get(None, 0) >= 0 for n in longer)

    def turns(self) -> int | None:
        """The known number of turns, which is not 0."""
        counts = [self._count(term, holds) for term, holds in self.going]
        numbers = [c.get(None, 0) for c in counts if c is not None and not set(c) - {None}]
        return min(numbers) if len(numbers) == len(counts) > 0 and min(numbers) > 0 else None

    def _count(self, term: Expr, holds: bool) -> Affine | None:
        """The number of turns before a condition ends the loop."""
        parts = called(term, *_OPPOSITE)
        if not parts:
            return None
        name = term.op.name if holds else _OPPOSITE[term.op.name]  # type: ignore[attr-defined]
        left, right = [self._at_first(x) for x in parts]
        if left is None or right is None or name == "equal":
            return None
        if left[1] == 0:
            left, right, name = right, left, _EXCHANGED[name]
        (start, step), (limit, moved) = left, right
        if moved or step not in (1, -1) or (name.startswith("less") and step < 0) or (name.startswith("greater") and step > 0):
            return None
        count = _sum(_sum({}, limit, step), start, -step)
        return _sum(count, {None: 1}, 1) if name.endswith("_equal") and name != "not_equal" else count

    def direction(self, turn: Expr, sequence: Expr) -> int:
        """1 where a number goes from the first step of a sequence to the last, -1 for the opposite way; 0 for others."""
        number = self._at_first(turn)
        if number is None:
            return 0
        if number == ({}, 1):
            return 1
        return -1 if number == (_sum(_front(sequence), {None: 1}, -1), -1) else 0

    def constant(self, param: Var) -> int | None:
        """The last value of a counter, where it is known."""
        turns = self.turns()
        begin = self._begin.get(param, {param: 1})
        return None if turns is None or set(begin) - {None} else begin.get(None, 0) + turns * self._steps[param]


class _Unfold:
    """Values of a turn with others in the place of parameters, and with the bodies of functions in the place of their calls."""

    def __init__(self, function: Function, own: Expr, needs: Needs, callee: Callable[[Expr], Function | None]) -> None:
        self._function = function
        self._own = own
        self._needs = needs
        self._callee = callee
        self._new: dict[int, Expr] = {}
        self._weights: dict[int, Expr] = {}

    def is_own(self, node: Expr) -> bool:
        """Whether a node is of the turn. Others are the same before the loop."""
        return id(node) in self._new or isinstance(node, Var)

    def __call__(self, roots: Sequence[Expr], values: Mapping[Var, Expr]) -> list[Expr]:
        done: dict[tuple[int, int], Expr] = {}
        scopes: list[_Scope] = [(values, 0)]
        entered: dict[tuple[int, int], tuple[int, int]] = {}
        stack: list[tuple[Expr, int, bool]] = [(x, 0, False) for x in reversed(roots)]
        while stack:
            node, scope, ready = stack.pop()
            key = scope, id(node)
            if key in done:
                continue
            if isinstance(node, Var):
                done[key] = scopes[scope][0].get(node, node)
            elif isinstance(node, (Constant, Op, GlobalVar)) or (scope == 0 and not self._needs(node, self._function)):
                done[key] = node
            elif key in entered:
                done[key] = done[entered[key]]
            elif not ready:
                if len(done) > _MOST or isinstance(node, (Let, Match, Function)):
                    raise NoLoop
                stack.append((node, scope, True))
                operands = node.args if isinstance(node, Call) and not isinstance(node.op, Op) else children(node)
                stack += [(c, scope, False) for c in reversed(operands)]
            elif isinstance(node, Call) and not isinstance(node.op, Op):
                function, inner = self._entered(node, scopes[scope], [done[scope, id(x)] for x in node.args])
                scopes.append(inner)
                entered[key] = len(scopes) - 1, id(function.body)
                stack += [(node, scope, True), (function.body, len(scopes) - 1, False)]
            else:
                done[key] = self._copy(node, tuple([done[scope, id(c)] for c in children(node)]))
        return [done[0, id(x)] for x in roots]

    def _entered(self, call: Call, scope: _Scope, arguments: Sequence[Expr]) -> tuple[Function, _Scope]:
        """The function of a call, and the values of variables in its body."""
        function = None if _is_same(call.op, self._own) else self._callee(call.op)
        outer, depth = scope
        if function is None or depth == _DEEPEST or len(function.params) != len(arguments):
            raise NoLoop
        return function, ({**(outer if isinstance(call.op, Function) else {}), **dict(zip(function.params, arguments))}, depth + 1)

    def _copy(self, node: Expr, inner: tuple[Expr, ...]) -> Expr:
        if isinstance(node, TupleGetItem) and isinstance(inner[0], Tuple):
            return inner[0].fields[node.index]
        new = retype(rebuild(node, inner), node)
        attrs: Any = node.attrs if called(new, "nn.matmul") else None  # type: ignore[attr-defined]
        if (
            attrs is not None
            and len(extents(inner[0])) == 2
            and not (id(inner[1]) in self._new or inner[1] in self._function.params or attrs.transpose_a or attrs.out_dtype)
        ):
            new = op_call("nn.dense", [inner[0], self._turned(inner[1], attrs.transpose_b)], node.checked_type, units=attrs.units)
        self._new[id(new)] = new
        return new

    def _turned(self, weights: Expr, is_turned: bool) -> Expr:
        """The weights of a product as `nn.dense` takes them."""
        if is_turned:
            return weights
        if id(weights) not in self._weights:
            columns, rows = extents(weights)
            ty = TensorType((rows, columns), weights.checked_type.dtype)  # type: ignore[union-attr]
            self._weights[id(weights)] = op_call("transpose", [weights], ty, axes=[1, 0])
        return self._weights[id(weights)]


def _is_same(op: Expr, own: Expr) -> bool:
    """Whether a call's function is a loop's own: the variable of a let, or the same name in the module."""
    return op is own or (isinstance(op, GlobalVar) and isinstance(own, GlobalVar) and op.name_hint == own.name_hint)


def _sum(a: Affine, b: Affine, factor: int) -> dict[Any, int]:
    """`a + factor * b`."""
    total = {key: a.get(key, 0) + factor * b.get(key, 0) for key in {**a, **b}}
    return {key: n for key, n in total.items() if n}


def affine(expr: Expr) -> Affine | None:
    """A whole number as a sum; None for a tensor of another type or rank."""
    ty = expr.checked_type
    if not isinstance(ty, TensorType) or ty.shape or "int" not in ty.dtype:
        return None
    total: dict[Any, int] = {}
    stack = [(expr, 1)]
    while stack:
        node, factor = stack.pop()
        parts = called(node, "add", "subtract")
        if isinstance(node, Constant):
            total = _sum(total, {None: int(node.data)}, factor)
        elif parts:
            sign = -1 if node.op.name == "subtract" else 1  # type: ignore[attr-defined]
            stack += [(parts[0], factor), (parts[1], sign * factor)]
        elif casted := called(node, "cast"):
            stack.append((casted[0], factor))
        else:
            total = _sum(total, _extent(node), factor)
        if len(stack) > _DEEPEST:
            return None
    return total


def _extent(expr: Expr) -> Affine:
    """The first extent of a tensor, where a number is computed as that; else the number itself."""
    node = expr
    while (parts := called(node, "reshape", "cast", "squeeze", "strided_slice", "take")) and len(extents(parts[0])) < 2:
        if called(node, "strided_slice") and slices(node, 1) != [(0, 0, 1, 1)]:  # type: ignore[arg-type]
            return {expr: 1}
        if called(node, "take") and not (isinstance(parts[1], Constant) and not parts[1].data.any()):
            return {expr: 1}
        node = parts[0]
    shaped = called(node, "shape_of")
    return _front(shaped[0]) if shaped else {expr: 1}


def _front(x: Expr) -> Affine:
    """The first extent of a tensor."""
    while True:
        extent = extents(x)[0] if extents(x) else None
        if isinstance(extent, int):
            return {None: extent}
        if isinstance(extent, TypeVar):
            return {extent: 1}
        if called(x, *_FRONT) or (called(x, "add") and len(extents(x.args[1])) < len(extents(x))):  # type: ignore[attr-defined]
            (x, *_) = x.args  # type: ignore[attr-defined]
        else:
            return {x: 1}


def row_of(after: Expr, param: Expr) -> tuple[Expr, bool] | None:
    """What a turn puts behind the rows of a parameter, or before them (True); None for other parameters."""
    (parts,) = called(after, "concatenate") or (None,)
    if not isinstance(parts, Tuple) or len(parts.fields) != 2 or after.attrs.axis != 0 or param not in parts.fields:  # type: ignore[attr-defined]
        return None
    front = parts.fields[1] is param
    row = parts.fields[not front]
    (single,) = called(row, "expand_dims") or (None,)
    return None if single is None or row.attrs.axis != 0 or row.attrs.num_newaxis != 1 else (single, front)  # type: ignore[attr-defined]


def overwritten(x: Expr) -> Expr:
    """The new elements of a tensor where all of its one row are new; else the tensor."""
    parts = called(x, "scatter_nd")
    if len(parts) != 3 or extents(parts[0])[:1] != (1,) or extents(parts[0]) != extents(parts[2]):
        return x
    return parts[2] if isinstance(parts[1], Constant) and parts[1].data.shape == (1, 1) and not parts[1].data.any() else x


def turns_of(nodes: Sequence[Expr], needs: Needs, callee: Callable[[Expr], Function | None]) -> Iterator[Turn]:
    """The loops that begin among the nodes of a function, which are in order of evaluation."""
    functions: dict[Expr, Function] = {n.variable: n.value for n in nodes if isinstance(n, Let) and isinstance(n.value, Function)}
    for node in nodes:
        if not isinstance(node, Call) or not isinstance(node.op, (Var, GlobalVar)):
            continue
        loop = functions.get(node.op) if isinstance(node.op, Var) else callee(node.op)
        if loop is None or not isinstance(loop.body, If) or node in (loop.body.true_branch, loop.body.false_branch):
            continue
        try:
            yield Turn(node, loop, node.op, needs, callee)
        except NoLoop:
            continue


__all__ = ["NoLoop", "Turn", "affine", "overwritten", "row_of", "turns_of"]
