"""A partitioned function as a list of steps: host functions and regions, each of which waits for earlier ones only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    rebuild,
)
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.partition.lets import is_closed
from relaylang.partition.scope import dependencies, scope_nodes, user_map


@dataclass(frozen=True)
class Step:
    """A call: `function` applied to the values named `inputs` gives those named `outputs`.

    A region's step has the region's name; a host step is called `host_<n>`. A function with several outputs returns a
    tuple of them, one with a single output returns it bare.
    """

    name: str
    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    is_region: bool


@dataclass(frozen=True)
class Schedule:
    """The steps of a program.

    `params` are the names of the entry's arguments, in order. `result` is the name of the value that it returns, or a
    list of names, nested as the tuple is.
    """

    params: tuple[str, ...]
    steps: tuple[Step, ...]
    result: Any


@dataclass
class _Names:
    known: dict[int, str] = field(default_factory=dict)

    def of(self, node: Expr) -> str:
        return self.known.setdefault(id(node), f":{len(self.known)}")


def make_schedule(func: Function, regions: dict[GlobalVar, Function]) -> Schedule:
    """The steps of a partitioned entry function; types must be there."""
    order = scope_nodes(func.body)
    here = {id(node) for node in order}

    def region_of(node: Expr) -> GlobalVar | None:
        return node.op if isinstance(node, Call) and isinstance(node.op, GlobalVar) and node.op in regions else None

    def is_field(node: Expr) -> bool:
        return isinstance(node, TupleGetItem) and region_of(node.tuple_value) is not None

    stage = _stages(order, lambda node: region_of(node) is not None or is_field(node))
    users = user_map(func.body)
    result_nodes = _result_leaves(func.body)
    wanted = {id(node) for node in result_nodes}
    wrapping = _wrapping(func.body)
    names = _Names({id(p): p.name_hint for p in func.params})
    if len(set(names.known.values())) < len(func.params):
        names = _Names({id(p): f"{p.name_hint}.{i}" for i, p in enumerate(func.params)})
    for node in result_nodes:
        if id(node) not in stage and not isinstance(node, Var):
            stage[id(node)] = 0
    by_stage: dict[int, list[Expr]] = {}
    for node in order:
        if id(node) in stage and id(node) not in wrapping:
            by_stage.setdefault(stage[id(node)], []).append(node)
    steps: list[Step] = []
    hosts = 0
    for number in sorted(by_stage):
        nodes = by_stage[number]
        if number % 2:
            for node in nodes:
                gv = region_of(node)
                if gv is not None:
                    assert isinstance(node, Call)
                    steps.append(_region_step(node, gv, regions[gv], nodes, names))
            continue
        inside = {id(node) for node in nodes}
        outputs = [
            node
            for node in nodes
            if id(node) in wanted
            or any(id(u) not in inside and id(u) not in wrapping for u in _outer_users(node, users, here, inside))
        ]
        if outputs:
            steps.append(_host_step(f"host_{hosts}", outputs, nodes, here, names))
            hosts += 1
    params = tuple(names.of(p) for p in func.params)
    return Schedule(params, tuple(steps), _result(func.body, names))


def _stages(order: list[Expr], supported: Callable[[Expr], bool]) -> dict[int, int]:
    """The stage of each node by id: even on the host, odd on the accelerator. Leaves have none."""
    stage: dict[int, int] = {}
    here = {id(node) for node in order}
    for node in order:
        if isinstance(node, (Constant, Var, Op, GlobalVar)) or is_closed(node):
            continue
        least = max((stage.get(id(c), 0) for c in dependencies(node, here)), default=0)
        odd = supported(node)
        stage[id(node)] = least + 1 if (least % 2 == 1) != odd else least
    return stage


def _outer_users(node: Expr, users: dict[int, list[Expr]], here: set[int], inside: set[int]) -> list[Expr]:
    """The nodes of the outermost scope that use a node, also from within a branch or function that they hold."""
    outer: list[Expr] = []
    stack = list(users.get(id(node), ()))
    seen: set[int] = set()
    while stack:
        user = stack.pop()
        if id(user) in seen:
            continue
        seen.add(id(user))
        if id(user) in here:
            outer.append(user)
        else:
            stack.extend(users.get(id(user), ()))
    return outer


def _wrapping(body: Expr) -> set[int]:
    """The tuples that only give the result its shape."""
    tuples: set[int] = set()
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Tuple) and id(node) not in tuples:
            tuples.add(id(node))
            stack.extend(node.fields)
    return tuples


def _result_leaves(body: Expr) -> list[Expr]:
    leaves: list[Expr] = []
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Tuple):
            stack.extend(reversed(node.fields))
        else:
            leaves.append(node)
    return leaves


def _result(body: Expr, names: _Names) -> Any:
    done: dict[int, Any] = {}
    stack: list[tuple[Expr, bool]] = [(body, False)]
    while stack:
        node, ready = stack.pop()
        if not isinstance(node, Tuple):
            done[id(node)] = names.of(node)
        elif ready:
            done[id(node)] = [done[id(f)] for f in node.fields]
        else:
            stack.append((node, True))
            stack.extend((f, False) for f in node.fields)
    return done[id(body)]


def _region_step(call: Call, gv: GlobalVar, function: Function, nodes: list[Expr], names: _Names) -> Step:
    inputs = tuple(names.of(arg) for arg in call.args)
    if not isinstance(function.body, Tuple):
        return Step(gv.name_hint, function, inputs, (names.of(call),), True)
    outputs = [f"{names.of(call)}.{i}" for i in range(len(function.body.fields))]
    for node in nodes:
        if isinstance(node, TupleGetItem) and node.tuple_value is call:
            names.known[id(node)] = outputs[node.index]
    return Step(gv.name_hint, function, inputs, tuple(outputs), True)


def _inputs(nodes: Sequence[Expr], here: set[int]) -> dict[int, Expr]:
    """The values from outside of some nodes that these need, by their ids."""
    inside = {id(node) for node in nodes}
    inputs: dict[int, Expr] = {}
    for node in nodes:
        for need in (node,) if isinstance(node, Var) else dependencies(node, here):
            if id(need) not in inside and not isinstance(need, (Constant, Op, GlobalVar)):
                inputs[id(need)] = need
    return inputs


def _host_step(name: str, outputs: list[Expr], nodes: list[Expr], here: set[int], names: _Names) -> Step:
    inputs = _inputs(nodes, here)
    params: list[Var] = []
    new: dict[int, Expr] = {}
    for node in inputs.values():
        if isinstance(node, Var):
            param = node
        else:
            hint = "v" + names.of(node).replace(":", "").replace(".", "_")
            param = Var(hint, node.checked_type)
            retype(param, node)
        params.append(param)
        new[id(node)] = param
    stack: list[tuple[Expr, bool]] = [(node, False) for node in outputs]
    while stack:
        node, ready = stack.pop()
        if id(node) in new:
            continue
        if ready:
            new[id(node)] = retype(rebuild(node, tuple([new[id(c)] for c in children(node)])), node)
            continue
        stack.append((node, True))
        stack.extend((c, False) for c in children(node))
    results = [new[id(node)] for node in outputs]
    types: list[Type] = [node.checked_type for node in outputs if node.checked_type is not None]
    ret_type: Type | None = None
    if len(types) == len(outputs):
        ret_type = types[0] if len(types) == 1 else TupleType(types)
    body = results[0] if len(results) == 1 else Tuple(results)
    function = Function(params, body, ret_type)
    return Step(name, function, tuple(names.of(n) for n in inputs.values()), tuple(names.of(n) for n in outputs), False)
