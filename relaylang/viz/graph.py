"""A program as a data-flow graph: nodes, their inputs, and groups for functions and fused operators."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

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
    Tuple,
    TupleGetItem,
    Type,
    Var,
    pattern_vars,
    post_order,
    type_text,
)
from relaylang.ir.types import READABLE
from relaylang.ir.visit import children
from relaylang.ops.record import Op

#: How much of a constant's value and of an attribute is kept.
_MOST = 200


@dataclass
class Node:
    """One value. `inputs` are its operands, in the order of the arguments.

    `kind` is "op", "call" (of a function), "var", "const", "fn", "tuple", "item", "if", "match", "ref" or "callee".
    A "callee" is a function whose only uses are calls; the graph shows the calls instead. `group` is the group around
    the node. `inner` is the group of the called function, or of the function itself, -1 for none.
    """

    id: int
    kind: str
    label: str
    type: str = ""
    inputs: list[int] = field(default_factory=list)
    attrs: list[tuple[str, str]] = field(default_factory=list)
    hidden: int = 0  # how many of `attrs`, at the end, have their default value
    name: str = ""
    place: str = ""
    group: int = 0
    inner: int = -1


@dataclass
class Group:
    """A function: its name, the group around it (-1 for none), its parameters' nodes and its result's."""

    id: int
    label: str
    parent: int
    attrs: list[tuple[str, str]] = field(default_factory=list)
    params: list[int] = field(default_factory=list)
    result: int = -1


@dataclass
class Graph:
    """Nodes in an order in which inputs come first; `groups[i]` for each global function, and those inside them."""

    nodes: list[Node] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    def roots(self) -> list[Group]:
        """The groups of the global functions."""
        return [g for g in self.groups if g.parent < 0]


def graph_of(program: IRModule | Expr) -> Graph:
    """The graph of a module's functions, or of an expression. Types are there where the checker found them."""
    graph = Graph()
    if isinstance(program, IRModule):
        for var, function in program.functions.items():
            if isinstance(function, Function) and function.body is not None:
                _Builder(graph).function(f"@{var.name_hint}", function)
    elif isinstance(program, Function) and program.body is not None:
        _Builder(graph).function("fn", program)
    else:
        _Builder(graph).function("expression", Function((), program))
    return graph


class _Builder:
    """Builds the groups of one global function."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ids: dict[int, int] = {}
        self.let_names: dict[int, str] = {}
        #: let-bound variables and what they are bound to
        self.values: dict[Var, Expr] = {}
        self.kept: list[Expr] = []
        #: nested functions and their groups
        self.functions: dict[int, int] = {}

    def function(self, label: str, function: Function) -> None:
        for node in post_order(function):
            if isinstance(node, Let):
                self.values[node.variable] = node.value
                self.let_names.setdefault(id(node.value), node.variable.name_hint)
        group = self._open(label, function, -1)
        self._walk(function.body, group.id)
        group.result = self._id(function.body)
        used = {i for n in self.graph.nodes for i in n.inputs} | {g.result for g in self.graph.groups}
        for made in self.graph.nodes:
            if made.kind == "fn" and made.inner >= 0 and made.id not in used:
                made.kind = "callee"

    def _open(self, label: str, function: Function, parent: int) -> Group:
        attrs = [(k, _short(v)) for k, v in function.attrs.items()]
        group = Group(len(self.graph.groups), label, parent, attrs)
        self.graph.groups.append(group)
        for param in function.params:
            group.params.append(self._var(param, group.id))
        return group

    def _new(self, expr: Expr | None, group: int, kind: str, label: str, **more: Any) -> int:
        ty: Type | None = getattr(expr, "checked_type", None)
        node = Node(len(self.graph.nodes), kind, label, type_text(ty, READABLE) if ty is not None else "", group=group, **more)
        span = getattr(expr, "span", None)
        if span is not None:
            node.place = f"{span} {span.label}".rstrip()
        if expr is not None:
            node.name = self.let_names.get(id(expr), "")
            self.ids[id(expr)] = node.id
            self.kept.append(expr)
        self.graph.nodes.append(node)
        return node.id

    def _var(self, var: Var, group: int) -> int:
        made = self._new(var, group, "var", f"%{var.name_hint}")
        if not self.graph.nodes[made].type and var.type_annotation is not None:
            self.graph.nodes[made].type = type_text(var.type_annotation, READABLE)
        return made

    def _alias(self, expr: Expr) -> Expr:
        """The value of a variable or of a chain of lets."""
        seen = 0
        while True:
            if isinstance(expr, Let):
                expr = expr.body
            elif isinstance(expr, Var) and expr in self.values and id(expr) not in self.ids:
                expr = self.values[expr]
                seen += 1
                if seen > len(self.values):
                    return expr
            else:
                return expr

    def _id(self, expr: Expr) -> int:
        expr = self._alias(expr)
        return self.ids.get(id(expr), -1)

    def _walk(self, root: Expr, group: int) -> None:
        """Add what an expression is made of, inputs first."""
        stack: list[tuple[Expr, int, int]] = [(root, group, 0)]
        open_now: set[int] = set()
        while stack:
            expr, within, step = stack.pop()
            if isinstance(expr, Var) and expr in self.values and id(expr) not in self.ids:
                value = self.values[expr]
                if id(value) in open_now:  # a function that calls itself
                    self._var(expr, within)
                elif id(value) not in self.ids:
                    stack.append((value, within, 0))
                continue
            if id(expr) in self.ids:
                continue
            if step == 0:
                if id(expr) in open_now:
                    continue
                if isinstance(expr, Let):
                    stack += [(expr.body, within, 0), (expr.value, within, 0)]
                    continue
                open_now.add(id(expr))
                self.kept.append(expr)
                stack.append((expr, within, 1))
                if isinstance(expr, Function):
                    inner = self._open(_function_name(expr), expr, within)
                    stack.append((expr.body, inner.id, 0))
                    self.functions[id(expr)] = inner.id
                    continue
                if isinstance(expr, Match):
                    for clause in expr.clauses:
                        for var in pattern_vars(clause.lhs):
                            self._var(var, within)
                callee = expr.op if isinstance(expr, Call) else None
                for child in reversed(children(expr)):
                    if child is callee and isinstance(child, (Op, GlobalVar, Constructor)):
                        continue
                    stack.append((child, within, 0))
                continue
            self._add(expr, within)
            if isinstance(expr, Function):
                self._close(expr)

    def _close(self, function: Expr) -> None:
        group = self.graph.groups[self.functions[id(function)]]
        assert isinstance(function, Function)
        group.result = self._id(function.body)

    def _add(self, expr: Expr, group: int) -> None:
        new = self._new
        match expr:
            case Call(op=Op() as op):
                attrs, hidden = _attributes(expr.attrs)
                new(expr, group, "op", op.name, inputs=self._inputs(expr.args), attrs=attrs, hidden=hidden)
            case Call(op=GlobalVar() as callee):
                new(expr, group, "call", f"@{callee.name_hint}", inputs=self._inputs(expr.args))
            case Call(op=Constructor() as made):
                new(expr, group, "call", made.name_hint, inputs=self._inputs(expr.args))
            case Call(op=callee):
                function = self.values.get(callee, callee) if isinstance(callee, Var) else callee
                function = self._alias(function)
                inner = self.functions.get(id(function), -1)
                inputs = self._inputs(expr.args)
                if inner < 0:
                    inputs.append(self._id(callee))
                    new(expr, group, "call", "call", inputs=[i for i in inputs if i >= 0])
                else:
                    label = self.graph.groups[inner].label
                    attrs = list(self.graph.groups[inner].attrs)
                    new(expr, group, "call", label, inputs=inputs, attrs=attrs, inner=inner)
            case Constant():
                shown = _short(expr.data.tolist() if expr.data.size <= 16 else f"{expr.data.size} values")
                label = shown if expr.data.ndim == 0 else "constant"
                new(expr, group, "const", label, attrs=[("value", shown)])
            case MetaRef():
                new(expr, group, "const", f"meta[{expr.type_key}][{expr.index}]")
            case Function():
                inner = self.functions[id(expr)]
                new(expr, group, "fn", self.graph.groups[inner].label, inner=inner)
            case Tuple():
                new(expr, group, "tuple", "tuple", inputs=self._inputs(expr.fields))
            case TupleGetItem():
                new(expr, group, "item", f".{expr.index}", inputs=self._inputs([expr.tuple_value]))
            case If():
                new(expr, group, "if", "if", inputs=self._inputs(children(expr)))
            case Match():
                new(expr, group, "match", "match", inputs=self._inputs(children(expr)))
            case RefCreate() | RefRead() | RefWrite():
                names = {RefCreate: "ref", RefRead: "ref_read", RefWrite: "ref_write"}
                new(expr, group, "ref", names[type(expr)], inputs=self._inputs(children(expr)))
            case Var():
                self._var(expr, group)
            case GlobalVar():
                new(expr, group, "fn", f"@{expr.name_hint}")
            case Op():
                new(expr, group, "fn", expr.name)
            case Constructor():
                new(expr, group, "fn", expr.name_hint)
            case _:
                new(expr, group, "fn", type(expr).__name__)

    def _inputs(self, exprs: Any) -> list[int]:
        return [i for i in (self._id(e) for e in exprs) if i >= 0]


def _function_name(function: Function) -> str:
    """The name of a nested function: its composite's name, or the operators in it."""
    named = function.attrs.get("Composite") or function.attrs.get("global_symbol")
    if named:
        return str(named)
    ops = [n.op.name for n in post_order(function.body) if isinstance(n, Call) and isinstance(n.op, Op)]
    if "Primitive" in function.attrs or "Compiler" in function.attrs:
        return " + ".join(ops[:4]) + (" + ..." if len(ops) > 4 else "") if ops else "fused"
    return "fn"


def _attributes(attrs: Any) -> tuple[list[tuple[str, str]], int]:
    """A call's attributes as texts, those that differ from their defaults first, and how many do not."""
    if attrs is None:
        return [], 0
    if dataclasses.is_dataclass(attrs):
        schema = getattr(attrs, "schema", {})
        set_ones: list[tuple[str, str]] = []
        defaults: list[tuple[str, str]] = []
        for f in dataclasses.fields(attrs):
            value = getattr(attrs, f.name)
            known = schema.get(f.name)
            row = (f.name, _short(value))
            (defaults if known is not None and not known.required and known.default == value else set_ones).append(row)
        return set_ones + defaults, len(defaults)
    if isinstance(attrs, dict):
        return [(str(k), _short(v)) for k, v in attrs.items()], 0
    return [("attributes", _short(attrs))], 0


def _short(value: Any) -> str:
    """A value as Relay text has it, cut where it is long."""
    if isinstance(value, (list, tuple)):
        text = "[" + ", ".join(_short(v) for v in value[:32]) + (", ...]" if len(value) > 32 else "]")
    elif isinstance(value, str):
        text = f'"{value}"' if not value.endswith(" values") else value
    else:
        text = str(value)
    return text if len(text) <= _MOST else text[: _MOST - 3] + "..."
