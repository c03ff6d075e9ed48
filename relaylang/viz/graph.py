"""A program as a data-flow graph: nodes, their inputs, and groups for functions, branches and clauses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
    pattern_vars,
    post_order,
    type_text,
)
from relaylang.ir.types import READABLE, dim_text
from relaylang.ir.visit import children
from relaylang.ops.record import Op
from relaylang.syntax import astext
from relaylang.syntax.placement import LEAVES, place
from relaylang.viz.families import family

#: The label of constants with more numbers than one.
NAMELESS = "constant"
#: How much of a constant's value and of an attribute is kept.
_MOST = 200

#: Functions and branches inside more groups than these have no group of their own.
_DEEPEST = 24


#: The name of the note that says why an accelerator does not take a call.
REASON = "stays because"


@dataclass
class Node:
    """One value. `inputs` are its operands, in the order of the arguments; `operands` are the arguments' names.

    `kind` is "op", "call" (of a function), "var", "const", "fn", "tuple", "item", "if", "match", "ref", "repeat" or
    "callee". A "callee" is a function whose only uses are calls; the graph shows the calls instead. A "repeat" stands for
    equal parts of the program. `group` is the group around the node. `inner` are the groups inside it: the called
    function's, the function's own, or one for each branch or clause. `family` is a class of operators. `rank` counts a
    tensor's dimensions, and is -1 for other types.

    A difference sets `change` ("added", "removed", "changed"), `fresh` and `lost`. A profile sets `seconds`. A kernel's
    time stands at one of its calls. The others have that call's label as `leader`, and the time as `shared`. A report of
    a partition sets `target`. `notes` has more about each, in words.
    """

    id: int
    kind: str
    label: str
    type: str = ""
    shape: str = ""
    rank: int = -1
    inputs: list[int] = field(default_factory=list)
    attrs: list[tuple[str, str]] = field(default_factory=list)
    hidden: int = 0  # how many of `attrs`, at the end, have their default value
    operands: tuple[str, ...] = ()
    name: str = ""
    place: str = ""
    line: str = ""
    group: int = 0
    inner: list[int] = field(default_factory=list)
    family: str = ""
    value: np.ndarray | None = None
    change: str = ""
    fresh: frozenset[int] = frozenset()  # the places in `inputs` of values that the node took from elsewhere before
    lost: int = 0  # how many of `inputs`, at the end, the node took before and takes no more
    seconds: float = 0.0
    leader: str = ""
    shared: float = 0.0
    target: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)

    @property
    def taken(self) -> list[int]:
        """The inputs without those that the node takes no more."""
        return self.inputs[: len(self.inputs) - self.lost]


@dataclass
class Group:
    """A function, a branch or a clause: its label, the group around it (-1 for none), parameters' and result's nodes.

    `kind` is "function", "branch", "clause" or "repeat". `target` is the compiler that takes the function, "" for none.
    `change` is like a node's.
    """

    id: int
    label: str
    parent: int
    kind: str = "function"
    attrs: list[tuple[str, str]] = field(default_factory=list)
    params: list[int] = field(default_factory=list)
    result: int = -1
    depth: int = 0
    target: str = ""
    change: str = ""


@dataclass
class Graph:
    """Nodes in an order in which inputs come first, and the groups of functions, with those inside them."""

    nodes: list[Node] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    compared: bool = False  # whether it shows the difference of two programs
    partitioned: bool = False  # whether a report gave the nodes their targets

    def roots(self) -> list[Group]:
        """The groups of the global functions."""
        return [g for g in self.groups if g.parent < 0]

    def members(self) -> list[list[Node]]:
        """The nodes of each group, but for callees."""
        members: list[list[Node]] = [[] for _ in self.groups]
        for node in self.nodes:
            if node.kind != "callee":
                members[node.group].append(node)
        return members


def graph_of(program: IRModule | Expr) -> Graph:
    """The graph of a module's functions, or of an expression. Types are there where the checker found them."""
    graph = Graph()
    if isinstance(program, IRModule):
        functions = {f"@{v.name_hint}": f for v, f in program.functions.items()}
        named = {v: f for v, f in functions.items() if isinstance(f, Function) and f.body is not None}
    elif isinstance(program, Function) and program.body is not None:
        named = {"fn": program}
    else:
        named = {"expression": Function((), program)}
    opened = {label: _open(graph, label, function, -1) for label, function in named.items()}
    for label, function in named.items():
        _Builder(graph, opened).function(graph.groups[opened[label]], function)
    return graph


def _open(graph: Graph, label: str, function: Function | None, parent: int, kind: str = "function") -> int:
    group = Group(len(graph.groups), label, parent, kind)
    if function is not None:
        group.attrs = [(k, _short(v)) for k, v in function.attrs.items()]
        group.target = str(function.attrs.get("Compiler", ""))
    if parent >= 0:
        group.depth = graph.groups[parent].depth + 1
        group.target = group.target or graph.groups[parent].target
    graph.groups.append(group)
    return group.id


class _Builder:
    """Builds the groups of one global function. `whole` has the groups of all global functions, by label."""

    def __init__(self, graph: Graph, whole: dict[str, int]) -> None:
        self.graph = graph
        self.whole = whole
        self.ids: dict[int, int] = {}
        self.let_names: dict[int, str] = {}
        #: let-bound variables and what they are bound to
        self.values: dict[Var, Expr] = {}
        #: the group of each node
        self.within: dict[int, int] = {}
        #: the groups inside functions, conditions and matches
        self.inner: dict[int, list[int]] = {}

    def function(self, group: Group, function: Function) -> None:
        order = list(post_order(function))
        self._open_groups(order, function, group)
        start = len(self.graph.nodes)
        for expr in order:
            if type(expr) not in LEAVES and expr is not function:
                self._add(expr, self.within[id(expr)])
        for opened in (group.id, *(i for ids in self.inner.values() for i in ids)):
            group = self.graph.groups[opened]
            group.result = self._id(self.bodies[opened], opened)
        mine = self.graph.nodes[start:]
        used = {i for n in mine for i in n.inputs} | {g.result for g in self.graph.groups}
        for node in mine:
            if node.kind == "fn" and node.inner and node.id not in used:
                node.kind = "callee"

    def _open_groups(self, order: list[Expr], function: Function, group: Group) -> None:
        """Find the group of each node, users first: a value that several groups use stands around all of them."""
        scopes = place(function)
        #: the groups of scopes
        opened: dict[tuple[int, ...], int] = {(): group.id, (id(function), 0): group.id}
        self.bodies = {group.id: function.body}
        self._params(function.params, group.id)
        for expr in reversed(order):
            if type(expr) in LEAVES or expr is function:
                continue
            here = self.within[id(expr)] = opened[scopes[id(expr)]]
            parts: list[tuple[str, Expr, Iterable[Var]]] = []
            match expr:
                case Let():
                    opened[id(expr), 0] = here
                    self.values[expr.variable] = expr.value
                    self.let_names[id(expr.value)] = expr.variable.name_hint
                    continue
                case Function():
                    parts = [(_function_name(expr), expr.body, expr.params)] if expr.body is not None else []
                case If():
                    parts = [("then", expr.true_branch, ()), ("else", expr.false_branch, ())]
                case Match():
                    parts = [(_pattern(c.lhs), c.rhs, pattern_vars(c.lhs)) for c in expr.clauses]
            deep = self.graph.groups[here].depth >= _DEEPEST
            for number, (label, body, params) in enumerate(parts):
                inside = here
                if not deep:
                    kind = "function" if isinstance(expr, Function) else "branch" if isinstance(expr, If) else "clause"
                    inside = _open(self.graph, label, expr if isinstance(expr, Function) else None, here, kind)
                    self.inner.setdefault(id(expr), []).append(inside)
                    self.bodies[inside] = body
                opened[id(expr), number] = inside
                self._params(params, inside)

    def _params(self, params: Iterable[Var], group: int) -> None:
        self.graph.groups[group].params += [self._var(p, group) for p in params]

    def _new(self, expr: Expr, group: int, kind: str, label: str, **more: Any) -> int:
        ty: Type | None = expr.checked_type
        if ty is None and isinstance(expr, Var):
            ty = expr.type_annotation
        node = Node(len(self.graph.nodes), kind, label, type_text(ty, READABLE) if ty is not None else "", group=group, **more)
        node.shape = shape_text(ty)
        node.rank = len(ty.shape) if isinstance(ty, TensorType) else -1
        span = expr.span
        if span is not None:
            node.place = f"{span} {span.label}".rstrip()
            source = getattr(span, "source", None)
            node.line = _cut(source.line(span.line).strip()) if source is not None else ""
        node.name = self.let_names.get(id(expr), "")
        self.ids[id(expr)] = node.id
        self.graph.nodes.append(node)
        return node.id

    def _var(self, var: Var, group: int) -> int:
        return self._new(var, group, "var", f"%{var.name_hint}")

    def _id(self, expr: Expr | None, group: int) -> int:
        """The node of a value, -1 for none; leaves get theirs where they are first used."""
        names: list[Expr] = []
        while expr is not None and id(expr) not in self.ids:
            value = self.values.get(expr) if isinstance(expr, Var) else None
            if value is None:
                return self._leaf(expr, group)
            if len(names) > len(self.values):
                return -1
            names.append(expr)
            expr = value
        number = -1 if expr is None else self.ids[id(expr)]
        for name in names:
            self.ids[id(name)] = number
        return number

    def _leaf(self, expr: Expr, group: int) -> int:
        match expr:
            case Constant():
                shown = _values(expr.data)
                label = shown if expr.data.ndim == 0 else NAMELESS
                return self._new(expr, group, "const", label, attrs=[("value", shown)], value=expr.data)
            case MetaRef():
                return self._new(expr, group, "const", f"meta[{expr.type_key}][{expr.index}]")
            case Var():
                return self._var(expr, group)
            case GlobalVar():
                label = f"@{expr.name_hint}"
                return self._new(expr, group, "fn", label)
            case Op():
                return self._new(expr, group, "fn", expr.name)
            case Constructor():
                return self._new(expr, group, "fn", expr.name_hint)
        return -1

    def _add_function(self, expr: Function, group: int, inner: list[int]) -> None:
        label = self.graph.groups[inner[0]].label if inner else "fn"
        body = -1 if inner or expr.body is None else self._id(expr.body, group)
        self._new(expr, group, "fn", label, inner=inner, inputs=[body] if body >= 0 else [])

    def _add(self, expr: Expr, group: int) -> None:
        def inputs(*exprs: Expr) -> list[int]:
            return [i for i in (self._id(e, group) for e in exprs) if i >= 0]

        new, inner = self._new, self.inner.get(id(expr), [])
        match expr:
            case Let():
                self.ids[id(expr)] = self._id(expr.body, group)
            case Call(op=Op() as op):
                attrs, hidden = _attributes(expr.attrs)
                more = {"operands": () if op.variadic else op.args, "family": family(op)}
                new(expr, group, "op", op.name, inputs=inputs(*expr.args), attrs=attrs, hidden=hidden, **more)
            case Call(op=GlobalVar() as callee):
                label = f"@{callee.name_hint}"
                called = [self.whole[label]] if label in self.whole else []
                new(expr, group, "call", label, inputs=inputs(*expr.args), inner=called)
            case Call(op=Constructor() as constructor):
                new(expr, group, "call", constructor.name_hint, inputs=inputs(*expr.args), family="data")
            case Call(op=callee):
                self._add_call(expr, callee, group, inputs(*expr.args))
            case Function():
                self._add_function(expr, group, inner)
            case Tuple():
                new(expr, group, "tuple", "tuple", inputs=inputs(*expr.fields))
            case TupleGetItem():
                new(expr, group, "item", f".{expr.index}", inputs=inputs(expr.tuple_value))
            case If():
                new(expr, group, "if", "if", inputs=inputs(*((expr.cond,) if inner else children(expr))), inner=inner)
            case Match():
                new(expr, group, "match", "match", inputs=inputs(*((expr.data,) if inner else children(expr))), inner=inner)
            case RefCreate() | RefRead() | RefWrite():
                names = {RefCreate: "ref", RefRead: "ref_read", RefWrite: "ref_write"}
                new(expr, group, "ref", names[type(expr)], inputs=inputs(*children(expr)))
            case _:
                new(expr, group, "fn", type(expr).__name__)

    def _add_call(self, expr: Call, callee: Expr, group: int, inputs: list[int]) -> None:
        """A call of a function that is no global one: the graph shows its inside, but inside itself."""
        if isinstance(callee, Var) and isinstance(self.values.get(callee), Function) and id(self.values[callee]) not in self.ids:
            self._new(expr, group, "call", f"%{callee.name_hint}", inputs=inputs)
            return
        callee_id = self._id(callee, group)
        node = self.graph.nodes[callee_id] if callee_id >= 0 else None
        if node is None or node.kind != "fn" or not node.inner:
            self._new(expr, group, "call", "call", inputs=inputs + [callee_id] * (callee_id >= 0))
            return
        inner = self.graph.groups[node.inner[0]]
        label = f"%{node.name}" if node.name and inner.label == "fn" else inner.label
        self._new(expr, group, "call", label, inputs=inputs, attrs=list(inner.attrs), inner=list(node.inner))


def _pattern(pattern: Any) -> str:
    return _cut(astext(pattern, show_types=False).strip())


#: Longer tuples are not named by their fields' shapes.
_MOST_FIELDS = 4
#: Element types in short.
_SHORT = (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"))


def shape_text(ty: Type | None, depth: int = 2) -> str:
    """A tensor's shape and element type in short, such as "1×3×224×224" (float32) or "4×4 i8", and a tuple's fields.

    Tuples in more than `depth` others have no text.
    """
    if isinstance(ty, TupleType) and depth and len(ty.fields) <= _MOST_FIELDS:
        fields = [shape_text(f, depth - 1) for f in ty.fields]
        return f"({', '.join(fields)})" if all(fields) else ""
    if not isinstance(ty, TensorType):
        return ""
    dims = "×".join(dim_text(d) for d in ty.shape)
    dtype = str(ty.dtype)
    for long, short in _SHORT:
        if dtype.startswith(long):
            dtype = short + dtype[len(long) :]
            break
    return dims if dims and dtype == "f32" else f"{dims} {dtype}".strip()


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
        text = f'"{value}"'
    else:
        text = str(value)
    return _cut(text)


def _values(data: np.ndarray) -> str:
    """A few numbers as their element type writes them."""
    if data.size > 16:
        return f"{data.size} values"
    return _cut(str(data[()]) if data.ndim == 0 else np.array2string(data, separator=", ").replace("\n", ""))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 3] + "..."
