"""The walk over a program that all exports share: its bindings in order, its branches and loops as blocks.

A program is brought into A-normal form, so that every call is one binding. `Walk` goes through the bindings of a block and
asks the format's table for each operator. Tuples stay lists of values, and functions that are called are written in
place. What the format does not have is collected, and reported at once (R0806).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.diagnostics.unsupported import Report, Unsupported
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
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    type_text,
)
from relaylang.ir.missing import refuse_missing
from relaylang.ops.extensions import EXTENSIONS
from relaylang.ops.record import Op
from relaylang.passes.decompose import decompose
from relaylang.passes.lower_extensions import lower_extensions
from relaylang.passes.normal_forms.to_a_normal_form import convert
from relaylang.typing import infer

#: The first name that a line gives a value to: a layer's in a listing, a binding's in Relay text.
_NAMED = re.compile(r"\s*(?:let )?%?([^\s,:(){}]+)(?:, [^=]*|: [^=]*)? = [^=]")
#: Blocks inside blocks, and functions that call functions, go this deep.
_DEEPEST = 64
#: So many bindings are written at most; functions that call others twice each would double the text again and again.
_MOST = 4_000_000
#: Why a function cannot be written.
_NO_LOOP = "it is recursive, and no loop: only one call of itself, as the last of a branch, becomes one"


@dataclass(eq=False)
class Value:
    """A tensor of the export: its name there, its type, its elements where it is a constant, and the integers of 8 bits
    that it was cast from."""

    name: str
    type: TensorType
    data: np.ndarray | None = None
    narrow: Value | None = None

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def rank(self) -> int:
        return len(self.type.shape)

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.type.shape)

    def static(self, what: str = "its operand") -> tuple[int, ...]:
        """The shape. Raises `Unsupported` where an extent is not known."""
        if not all(isinstance(n, int) for n in self.type.shape):
            raise Unsupported(f"{what} has an open shape")
        return tuple(int(n) for n in self.type.shape)  # type: ignore[arg-type]

    def extent(self, axis: int) -> int:
        """The extent of an axis. Raises `Unsupported` where it is not known."""
        extent = self.type.shape[axis]
        if not isinstance(extent, int):
            raise Unsupported(f"the extent of its axis {axis} is open")
        return extent


@dataclass
class Closure:
    """A local or global function, with the values that its body uses."""

    function: Function
    scope: Mapping[Var, Any]
    own: Var | GlobalVar | None = None

    def calls_itself(self, node: Expr) -> bool:
        """Whether a node is a call of this very function."""
        if not isinstance(node, Call) or self.own is None:
            return False
        return self.names_itself(node.op)

    def names_itself(self, node: Expr) -> bool:
        """Whether a node is the name of this very function."""
        if isinstance(self.own, GlobalVar):
            return isinstance(node, GlobalVar) and node.name_hint == self.own.name_hint
        return self.own is not None and node is self.own


@dataclass
class Loop:
    """`while test(*state): state = body(*state); return rest(*state)`, each written where it is called."""

    initial: list[Any]
    types: list[Type]
    test: Callable[[list[Any]], Any]
    body: Callable[[list[Any]], list[Any]]
    rest: Callable[[list[Any]], Any]


Rule = Callable[..., Any]


def leaves(value: Any) -> list[Value]:
    """The tensors of a value, nested lists left to right."""
    tensors: list[Value] = []
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, list):
            stack.extend(reversed(top))
        else:
            tensors.append(top)
    return tensors


def tensor_types(ty: Type) -> list[TensorType]:
    """The types of a value's tensors. Raises `Unsupported` for values other than tensors and tuples of tensors."""
    types: list[TensorType] = []
    stack: list[Type] = [ty]
    while stack:
        top = stack.pop()
        if isinstance(top, TupleType):
            stack.extend(reversed(top.fields))
        elif isinstance(top, TensorType):
            types.append(top)
        else:
            raise Unsupported(f"a value has the type `{type_text(top)}`")
    return types


def shaped(ty: Type, flat: Sequence[Any]) -> Any:
    """Tensors as lists that are nested as the type is."""
    rest = list(flat)

    def build(ty: Type, depth: int) -> Any:
        if depth > _DEEPEST:
            raise Unsupported("tuples are nested too deeply")
        return [build(f, depth + 1) for f in ty.fields] if isinstance(ty, TupleType) else rest.pop(0)

    return build(ty, 0)


def grouped(flat: Sequence[Value], types: Sequence[Type]) -> list[Any]:
    """Tensors as values of these types, one after the other."""
    rest, values = list(flat), []
    for ty in types:
        count = len(tensor_types(ty))
        values.append(shaped(ty, rest[:count]))
        rest = rest[count:]
    return values


class Walk(ABC):
    """One export. A format derives from it: `rules` is its table, and the methods at the end write its text."""

    format = ""
    #: Whether extents may be open.
    dynamic = False
    rules: Mapping[str, Rule] = {}

    def __init__(self, mod: IRModule, file: str) -> None:
        self.mod = mod
        self.file = file
        self.report = Report(file, self.rules, code="R0806", absent=f"{self.format} has no operator for it", advice="")
        self.depth = 0
        self.calls: list[Function] = []
        self.count = 0
        self.taken: set[str] = set()
        self.definitions: dict[Var, tuple[Expr, Mapping[Var, Any]]] = {}
        self.bodies: dict[int, Function] = {}
        self.span: Span | None = None
        self.wish = "v"

    # ---- programs

    def entry(self, name: str = "main") -> tuple[list[Value], Any, Type]:
        """Write the body of a function: its parameters, its result, the result's type."""
        refuse_missing(self.mod)
        function = self.normal(self.mod[name])
        assert isinstance(function, Function) and function.body is not None
        scope: dict[Var, Any] = {}
        parameters: list[Value] = []
        for p in function.params:
            try:
                types = tensor_types(_type(p))
            except Unsupported as why:
                raise RelayError(error("R0806", f"the parameter %{p.name_hint}: {why.reason}", p.span)) from None
            if isinstance(p.checked_type, TensorType):
                values = [Value(self.unique(p.name_hint), types[0])]
                scope[p] = values[0]
            else:
                values = [Value(self.unique(f"{p.name_hint}_{i}"), t) for i, t in enumerate(types)]
                scope[p] = shaped(_type(p), values)
            parameters += values
            if not self.dynamic and any(not isinstance(n, int) for t in types for n in t.shape):
                said = f"{self.format} text needs known shapes; the parameter %{p.name_hint} is `{type_text(_type(p))}`"
                notes = [f"--shape {p.name_hint}=1x3x224x224 fixes the shape of a network's input"]
                raise RelayError(error("R0806", said, p.span, notes=notes))
        result = self.block(function.body, scope)
        self.report.raise_if_any()
        return parameters, result, _type(function.body)

    def normal(self, function: Any) -> Function:
        """A function in A-normal form, with operators that the format lacks written with others."""
        done = self.bodies.get(id(function))
        if done is None:
            added = lower_extensions(self.prepared(function), keep=self._exported())
            lowered = decompose(added, keep=self.rules)
            done = convert(lowered, let_results=False, enter_primitive=True)  # type: ignore[assignment]
            assert isinstance(done, Function)
            infer(done, module=self.mod)
            self.bodies[id(function)] = done
            self.bodies[id(done)] = done
        return done

    def _exported(self) -> list[str]:
        """The added operators that have a rule of this format."""
        return [name for name, operator in EXTENSIONS.items() if self.format.lower() in operator.export]

    def unique(self, wish: str) -> str:
        """A name that nothing else has."""
        base = self.legal(wish) or "v"
        name, number = base, 0
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    # ---- blocks

    def block(self, expr: Expr, scope: dict[Var, Any]) -> Any:
        """Write the bindings of a block; gives the value of its result."""
        while isinstance(expr, Let):
            scope[expr.var] = self.bound(expr.var, expr.value, scope)
            expr = expr.body
        return self.bound(None, expr, scope)

    def bound(self, var: Var | None, node: Expr, scope: dict[Var, Any]) -> Any:
        """The value of a binding. What cannot be written is noted, and some value stands for it."""
        self.count += 1
        if self.count > _MOST:
            raise RelayError(error("R0806", f"the functions of the program, written in place, have more than {_MOST} calls"))
        if node.span is not None:
            self.span = node.span
        try:
            value = self.value(var, node, scope)
        except Unsupported as why:
            called = isinstance(node, Call) and isinstance(node.op, Op)
            what = node.op.name if called else _KINDS.get(type(node), "call")  # type: ignore[attr-defined]
            self.report.unsupported(what, self._place(var, node), node.span or self._start(), why.reason)
            return self.stand_in(_type(node))
        if var is not None and isinstance(node, Call):
            self.definitions[var] = (node, scope)
        return value

    def value(self, var: Var | None, node: Expr, scope: dict[Var, Any]) -> Any:
        if isinstance(node, Var):
            return scope[node]
        if isinstance(node, Constant):
            return self.constant(np.asarray(node.data), _tensor(_type(node)), self.hint(var, node))
        if isinstance(node, Tuple):
            return [scope[f] if isinstance(f, Var) else self.value(None, f, scope) for f in node.fields]
        if isinstance(node, TupleGetItem):
            return self.value(None, node.tuple_value, scope)[node.index]
        if isinstance(node, Function):
            return Closure(node, scope, var)
        if isinstance(node, GlobalVar):
            held = self.mod[node]
            if not isinstance(held, Function) or held.body is None:
                raise Unsupported(f"the external function @{node.name_hint} has no body")
            return Closure(self.normal(held), {}, node)
        if isinstance(node, If):
            return self._if(node, scope)
        if isinstance(node, Call):
            if isinstance(node.op, Op):
                return self._operator(var, node, scope)
            function = self.value(None, node.op, scope)
            arguments = [self.value(None, a, scope) for a in node.args]
            return self._call(function, arguments)
        raise Unsupported(f"{self.format} has no {_KINDS.get(type(node), type(node).__name__)}")

    def _operator(self, var: Var | None, node: Call, scope: dict[Var, Any]) -> Any:
        name = node.op.name  # type: ignore[attr-defined]
        rule = self.rules.get(name) or (EXTENSIONS[name].export.get(self.format.lower()) if name in EXTENSIONS else None)
        if rule is None and name in EXTENSIONS:
            ways = f"`lower=` of its registration says it in other operators, `export={{'{self.format.lower()}': rule}}` writes it"
            raise Unsupported(f"it is an operator of yours: {ways}")
        if rule is None:
            raise Unsupported()
        arguments = [self.value(None, a, scope) for a in node.args]
        self.wish = self.hint(var, node)
        results = self.named(rule(self, node, *arguments))
        types = tensor_types(_type(node))
        for value, ty in zip(leaves(results), types):
            value.type = ty
        return results

    def _call(self, function: Any, arguments: list[Any]) -> Any:
        if not isinstance(function, Closure):
            raise Unsupported("it calls a function that is computed")
        target = function.function
        body = target.body
        if body is None:
            raise Unsupported("the external function has no body")
        self._descend()
        tail = self._tail(function)
        if tail is not None:
            return self._loop(function, tail, arguments)
        self.depth += 1
        self.calls.append(target)
        try:
            scope = {**function.scope, **dict(zip(target.params, arguments))}
            return self.block(body, scope)
        finally:
            self.calls.pop()
            self.depth -= 1

    def _descend(self) -> None:
        """Raise `Unsupported` where functions and branches stand too deep in each other."""
        if self.depth > _DEEPEST:
            again = len({id(f) for f in self.calls}) < len(self.calls) / 2
            raise Unsupported(_NO_LOOP if again else f"branches and calls are nested deeper than {_DEEPEST}")

    # ---- branches and loops

    def _if(self, node: If, scope: dict[Var, Any]) -> Any:
        condition = self.value(None, node.cond, scope)
        ty = _type(node)
        types = tensor_types(ty)
        if not types:
            return shaped(ty, [])
        branches = [self._branch(e, dict(scope)) for e in (node.true_branch, node.false_branch)]
        return shaped(ty, self.if_(condition, branches, types))

    def _branch(self, expr: Expr, scope: dict[Var, Any]) -> Callable[[], list[Value]]:
        def write() -> list[Value]:
            self._descend()
            self.depth += 1
            try:
                return leaves(self.block(expr, scope))
            finally:
                self.depth -= 1

        return write

    def _tail(self, function: Closure) -> tuple[list[tuple[Var, Expr]], If | None, bool] | None:
        """A function that calls itself last in one branch of its `if`: the bindings before, the `if`, and whether the
        call is in the branch of true. None for a function that does not call itself."""
        body: Expr = function.function.body  # type: ignore[assignment]
        bindings: list[tuple[Var, Expr]] = []
        while isinstance(body, Let):
            bindings.append((body.var, body.value))
            body = body.body
        while bindings and isinstance(body, Var) and bindings[-1][0] is body:
            body = bindings.pop()[1]
        uses = _uses(function)
        if uses == 1 and isinstance(body, If):
            for branch, which in ((body.true_branch, True), (body.false_branch, False)):
                if function.calls_itself(_last(branch)):
                    return bindings, body, which
        return (bindings, None, False) if uses else None

    def _loop(self, function: Closure, tail: tuple[list[tuple[Var, Expr]], If | None, bool], arguments: list[Any]) -> Any:
        bindings, choice, which = tail
        if choice is None:
            raise Unsupported(_NO_LOOP)
        params = function.function.params
        again, leave = (choice.true_branch, choice.false_branch) if which else (choice.false_branch, choice.true_branch)

        def begin(state: list[Any]) -> dict[Var, Any]:
            scope = {**function.scope, **dict(zip(params, state))}
            for var, node in bindings:
                scope[var] = self.bound(var, node, scope)
            return scope

        def test(state: list[Any]) -> Any:
            condition = self.value(None, choice.cond, begin(state))
            return condition if which else self.not_(condition)

        def body(state: list[Any]) -> list[Any]:
            scope, expr = begin(state), again
            while isinstance(expr, Let):
                if function.calls_itself(expr.value):
                    break
                scope[expr.var] = self.bound(expr.var, expr.value, scope)
                expr = expr.body
            call = expr.value if isinstance(expr, Let) else expr
            assert isinstance(call, Call)
            return [self.value(None, a, scope) for a in call.args]

        def rest(state: list[Any]) -> Any:
            return self.block(leave, begin(state))

        return self.loop(Loop(arguments, [_type(p) for p in params], test, body, rest))

    # ---- helpers for rules

    def defined(self, node: Expr) -> tuple[Call, Mapping[Var, Any]] | None:
        """The call that a variable is bound to, with its scope."""
        definition = self.definitions.get(node) if isinstance(node, Var) else None
        return definition  # type: ignore[return-value]

    def hint(self, var: Var | None, node: Expr) -> str:
        """A name for a node's result: that of the layer's output for an imported network, else the variable's."""
        if node.span is not None and (match := _NAMED.match(_line(node.span))):
            return match[1]
        return var.name_hint if var is not None else "v"

    def _place(self, var: Var | None, node: Expr) -> str:
        if node.span is not None:
            return node.span.label or f"line {node.span.line}"
        return f"%{var.name_hint}" if var is not None else "the result"

    def _start(self) -> Span:
        return self.span or Span(SourceFile(self.file, ""), 0, 0)

    # ---- what a format writes

    def named(self, made: Any) -> Any:
        """What a rule made, under the name that the call wishes for."""
        return made

    def prepared(self, function: Function) -> Expr:
        """A function with the calls that the format has for several of Relay's."""
        return function

    def legal(self, name: str) -> str:
        """A name as the format allows it."""
        return name

    @abstractmethod
    def constant(self, data: np.ndarray, ty: TensorType, name: str) -> Value:
        """A constant."""

    def stand_in(self, ty: Type) -> Any:
        """A value in the place of one that could not be written."""
        try:
            return shaped(ty, [Value(self.unique("absent"), t) for t in tensor_types(ty)])
        except Unsupported:
            return Value(self.unique("absent"), TensorType((), "float32"))

    def if_(self, condition: Value, branches: Sequence[Callable[[], list[Value]]], types: list[TensorType]) -> list[Value]:
        raise Unsupported(f"{self.format} text has no branches")

    @abstractmethod
    def not_(self, condition: Value) -> Value:
        """The opposite of a truth value."""

    def loop(self, loop: Loop) -> Any:
        raise Unsupported(f"{self.format} text has no loops")


_KINDS: dict[type, str] = {
    If: "if",
    Function: "function",
    Tuple: "tuple",
    TupleGetItem: "tuple field",
    Constant: "constant",
    Match: "match",
    RefCreate: "reference",
    RefRead: "reference",
    RefWrite: "reference",
    Constructor: "algebraic data type",
}


def _line(span: Span) -> str:
    return span.source.line(span.line)


def _type(node: Expr) -> Type:
    assert node.checked_type is not None
    return node.checked_type


def _tensor(ty: Type) -> TensorType:
    assert isinstance(ty, TensorType)
    return ty


def _last(expr: Expr) -> Expr:
    """The result of a block; where that is a variable of the block, the expression that it stands for."""
    bound: dict[Var, Expr] = {}
    while isinstance(expr, Let):
        bound[expr.var] = expr.value
        expr = expr.body
    while isinstance(expr, Var) and expr in bound:
        expr = bound[expr]
    return expr


def _uses(function: Closure) -> int:
    """How often a function's body names the function."""
    if function.own is None:
        return 0
    count = 0
    stack: list[Expr] = [function.function.body] if function.function.body is not None else []
    while stack:
        node = stack.pop()
        count += function.names_itself(node)
        stack.extend(children(node))
    return count
