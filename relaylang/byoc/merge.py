"""MergeComposite, AnnotateTarget, MergeCompilerRegions and PartitionGraph: TVM's four steps to code for an accelerator.

    mod = Sequential([MergeComposite(pattern_table()), AnnotateTarget("my-npu"), MergeCompilerRegions(),
                      PartitionGraph()])(mod)

Composites are chosen row by row in the table's order, as TVM does. Annotations are `compiler_begin` and `compiler_end`
calls around what a target takes; what no target takes has none. A region never waits for itself: nodes get stages, by
how often the way to them changes between targets, and only nodes of one stage that are connected are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylang.byoc.composite import Entry, as_entries, composite_name
from relaylang.byoc.scope import dependencies, scope_nodes
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Let,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ops import get, make_attrs
from relaylang.ops.record import Op
from relaylang.passes.rewriting import is_opaque, per_function, retype
from relaylang.patterns import Graph, find_match
from relaylang.patterns.groups import Group, _inside_partitions, _make_group, replace_with
from relaylang.patterns.language import root_operators
from relaylang.patterns.matcher import Matcher
from relaylang.typing import check

#: Whether a target takes a call of an operator as it is: True, or a reason why not.
OpCheck = Callable[[Call], "bool | str | None"]
#: target -> operator -> check, as TVM's `target.<name>` attributes.
OP_SUPPORT: dict[str, dict[str, OpCheck]] = {}


@dataclass
class Refusal:
    """A row whose pattern matched, and whose check said no."""

    entry: Entry
    root: Expr
    reason: str


@dataclass
class Chosen:
    """What merging chose: groups with their rows, and what checks refused."""

    groups: list[tuple[Entry, Group]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def choose(func: Function, entries: Sequence[Entry]) -> Chosen:
    """The composites of a typed function: for each row, in order, what it matches and no earlier row has taken."""
    graph = Graph(func)
    closed = _inside_partitions(graph)
    calls: dict[str, list[Expr]] = {}
    for node in reversed(graph.order):
        if isinstance(node, Call) and isinstance(node.op, Op) and id(node) not in closed:
            calls.setdefault(node.op.name, []).append(node)
    place = {id(node): i for i, node in enumerate(graph.order)}
    chosen = Chosen()
    taken: set[int] = set()
    matcher = Matcher(graph)
    for entry in entries:
        names = root_operators(entry.pattern)
        if names is None:
            nodes = [n for n in reversed(graph.order) if id(n) not in closed]
        else:
            nodes = [n for name in names for n in calls.get(name, ())]
            if len(names) > 1:
                nodes.sort(key=lambda n: -place[id(n)])
        for node in nodes:
            if id(node) in taken or not matcher.match(entry.pattern, node):
                continue
            group = _make_group(entry.pattern, node, matcher, graph, taken)
            if group is None:
                continue
            reason = _refused(entry, node, graph)
            if reason is not None:
                chosen.refusals.append(Refusal(entry, node, reason))
                continue
            chosen.groups.append((entry, group))
            taken.update([id(n) for n in group.body if not isinstance(n, (Op, Constant))])
    return chosen


def _refused(entry: Entry, root: Expr, graph: Graph) -> str | None:
    if entry.check is None:
        return None
    found = find_match(entry.pattern, root, graph)
    assert found is not None
    verdict = entry.check(found)
    if verdict is None or verdict is True:
        return None
    return verdict if isinstance(verdict, str) else f"{getattr(entry.check, '__name__', 'its check')} does not take it"


def merge_function(func: Function, entries: Sequence[Entry]) -> tuple[Function, Chosen]:
    """A typed function with its composites made, and what was chosen."""
    with gc_paused():
        chosen = choose(func, entries)
        if not chosen.groups:
            return func, chosen
        made = {
            id(group.root): (group, {"PartitionedFromPattern": group.name, "Composite": entry.name})
            for entry, group in chosen.groups
        }
        new = replace_with(func, made)
    assert isinstance(new, Function)
    return new, chosen


def merge_composite(mod: IRModule, pattern_table: Iterable[Entry | tuple]) -> IRModule:
    """A typed module with what the table's patterns match as calls of functions with a `Composite` attribute."""
    entries = as_entries(pattern_table)
    return per_function(mod, lambda f: merge_function(f, entries)[0])


# ---- targets


def target_of(node: Expr, targets: Sequence[str]) -> str | None:
    """The first of the targets that takes a call, by its composite's name or by its operator."""
    name = composite_name(node)
    if name is not None:
        owner = name.partition(".")[0]
        return owner if owner in targets else None
    if isinstance(node, Call) and isinstance(node.op, Op) and node.args:
        for target in targets:
            test = OP_SUPPORT.get(target, {}).get(node.op.name)
            if test is not None and test(node) is True:
                return target
    return None


def _marked(expr: Expr, which: str, target: str) -> Expr:
    op = get(f"annotation.{which}")
    made = Call(op, [expr], make_attrs(op.attrs, {"compiler": target}) if op.attrs is not None else None)
    return retype(made, expr)


def _mark(node: Expr) -> tuple[str, str] | None:
    """("compiler_begin" or "compiler_end", target) of an annotation."""
    if isinstance(node, Call) and isinstance(node.op, Op):
        kind = node.op.name.rpartition(".")[2]
        if kind in ("compiler_begin", "compiler_end"):
            return kind, node.attrs.compiler
    return None


def annotate_target(mod: IRModule, targets: str | Sequence[str], include_non_call_ops: bool = True) -> IRModule:
    """A typed module in which each call that a target takes stands between `compiler_begin` and `compiler_end`.

    The first of several targets that takes a call has it. With `include_non_call_ops` a tuple or a field of one whose
    operands all belong to one target belongs to it, too. Constants are operands like others.
    """
    names = [targets] if isinstance(targets, str) else list(targets)

    def annotate(func: Function) -> Expr:
        done: dict[int, Expr] = {}
        owner: dict[int, str] = {}
        closed = _inside_partitions(Graph(func))
        for node in post_order(func):
            new = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
            if id(node) not in closed:
                new = _annotated(node, new, owner, names, include_non_call_ops)
            done[id(node)] = new
        return done[id(func)]

    return per_function(mod, annotate)


def _annotated(node: Expr, new: Expr, owner: dict[int, str], names: list[str], tuples: bool) -> Expr:
    target = target_of(node, names) if _mark(node) is None else None
    if target is None and tuples and isinstance(node, (Tuple, TupleGetItem)):
        owners = {owner.get(id(c)) for c in children(node)}
        target = owners.pop() if len(owners) == 1 else None
    if target is None:
        return new
    owner[id(node)] = target
    inner = [c if isinstance(c, (Op, Function)) and isinstance(node, Call) and c is children(new)[-1]
             else _marked(c, "compiler_begin", target) for c in children(new)]  # fmt: skip
    return _marked(retype(rebuild(new, tuple(inner)), node), "compiler_end", target)


# ---- regions


def _plain(expr: Expr) -> Expr:
    while _mark(expr) is not None:
        assert isinstance(expr, Call)
        expr = expr.args[0]
    return expr


@dataclass
class Regions:
    """A function's own dataflow without annotations: each owned node's target, and the region that it is in."""

    body: Expr
    order: list[Expr]
    target: dict[int, str]
    leader: dict[int, int]
    kept: dict[int, Expr] = field(default_factory=dict)  # nodes are told by their ids: they must stay alive

    def find(self, key: int) -> int:
        while self.leader[key] != key:
            self.leader[key] = self.leader[self.leader[key]]
            key = self.leader[key]
        return key


def _read_regions(body: Expr) -> Regions:
    """The regions that annotations draw: owned nodes connected without an annotation between them."""
    new: dict[int, Expr] = {}
    target: dict[int, str] = {}
    joined: list[tuple[int, int]] = []
    inside: dict[int, str] = {}
    order = list(post_order(body))
    for node in reversed(order):
        mark = _mark(node)
        if mark is not None and mark[0] == "compiler_end":
            assert isinstance(node, Call)
            inside[id(node.args[0])] = mark[1]
        elif id(node) in inside and mark is None and not isinstance(node, (Var, Constant, Op, GlobalVar)):
            for child in children(node):
                if _mark(child) is None and not isinstance(child, (Var, Constant, Op, GlobalVar, Function)):
                    inside.setdefault(id(child), inside[id(node)])
    for node in order:
        if _mark(node) is not None:
            assert isinstance(node, Call)
            new[id(node)] = new[id(node.args[0])]
            continue
        made = retype(rebuild(node, tuple([new[id(c)] for c in children(node)])), node)
        new[id(node)] = made
        owner = inside.get(id(node))
        if owner is not None and not isinstance(made, (Var, Constant, Op, GlobalVar)):
            target[id(made)] = owner
            joined += [
                (id(made), id(new[id(c)])) for c in children(node) if _mark(c) is None and inside.get(id(c)) == owner
            ]
    plain = new[id(body)]
    regions = Regions(plain, scope_nodes(plain), target, {key: key for key in target})
    for a, b in joined:
        if b in regions.leader:
            regions.leader[regions.find(b)] = regions.find(a)
    regions.kept = new
    return regions


def merge_compiler_regions(mod: IRModule) -> IRModule:
    """A typed, annotated module with neighbouring regions of one target merged, where that makes no circle."""
    return per_function(mod, _merge_regions)


def _merge_regions(func: Function) -> Expr:
    regions = _read_regions(func.body)
    if not regions.target:
        return func
    here = {id(n) for n in regions.order}
    stage = _stages(regions, here)
    lets = any(isinstance(n, Let) for n in regions.order)  # a variable's scope may not hold a whole region
    for node in regions.order:
        if id(node) not in regions.target or lets:
            continue
        for child in dependencies(node, here):
            if id(child) in regions.target and stage.get(id(child)) == stage[id(node)]:
                if regions.target[id(child)] == regions.target[id(node)]:
                    regions.leader[regions.find(id(child))] = regions.find(id(node))
    body = _annotate_regions(regions)
    return retype(Function(func.params, body, func.ret_type, func.type_params, func.attrs, func.span), func)


def _stages(regions: Regions, here: set[int]) -> dict[int, int]:
    """A stage for each node: never below that of what it waits for, and above it where the target changes. Nodes that
    could wait do so until a node of their own target needs them, so that more of them meet."""
    leaves = (Constant, Var, Op, GlobalVar)
    stage: dict[int, int] = {}
    users: dict[int, list[Expr]] = {}
    for node in regions.order:
        mine = regions.target.get(id(node))
        least = 0
        for child in dependencies(node, here):
            if isinstance(child, leaves) or id(child) not in here:
                continue
            users.setdefault(id(child), []).append(node)
            below = stage.get(id(child), 0)
            least = max(least, below if regions.target.get(id(child)) == mine else below + 1)
        if not isinstance(node, leaves):
            stage[id(node)] = least
    for node in reversed(regions.order):
        mine = regions.target.get(id(node))
        used = users.get(id(node))
        if mine is None or not used:
            continue
        latest = min(stage[id(u)] - (regions.target.get(id(u)) != mine) for u in used)
        meets = any(stage[id(u)] == latest and regions.target.get(id(u)) == mine for u in used)
        if meets and latest > stage[id(node)]:
            stage[id(node)] = latest
    return stage


def _annotate_regions(regions: Regions) -> Expr:
    """The body with annotations around each region."""
    done: dict[int, Expr] = {}
    ended: dict[int, Expr] = {}
    begun: dict[tuple[int, int], Expr] = {}
    for node in post_order(regions.body):
        mine = regions.target.get(id(node))
        inner = []
        for child in children(node):
            if mine is not None and isinstance(node, Call) and child is node.op:
                inner.append(child)
                continue
            same = mine is not None and id(child) in regions.target and (
                regions.find(id(child)) == regions.find(id(node))
            )
            if same:
                inner.append(done[id(child)])
                continue
            new = ended.get(id(child), done[id(child)])
            if mine is not None:
                key = (regions.find(id(node)), id(child))
                if key not in begun:
                    begun[key] = _marked(new, "compiler_begin", mine)
                new = begun[key]
            inner.append(new)
        made = retype(rebuild(node, tuple(inner)), node)
        done[id(node)] = made
        if mine is not None:
            ended[id(node)] = _marked(made, "compiler_end", mine)
    return ended.get(id(regions.body), done[id(regions.body)])


# ---- partitioning


def partition_graph(mod: IRModule, mod_name: str = "default", bind_constants: bool = True) -> IRModule:
    """A typed, annotated module with each region as a function `@tvmgen_<mod_name>_<target>_<function>_<n>`.

    Such a function has the attributes `Primitive`, `Compiler`, `Inline` and `global_symbol`; with several outputs it
    returns a tuple. With `bind_constants` constants go into it, else they are parameters. The new module is typed.
    """
    functions: dict[GlobalVar, Function] = {}
    new: dict[GlobalVar, Function] = {}
    taken = {gv.name_hint for gv in mod.functions}
    with gc_paused():
        for gv, func in mod.functions.items():
            made = func if is_opaque(func) else _partition(gv.name_hint, func, mod_name, bind_constants, functions, taken)
            new[gv] = made
    if not functions:
        return mod if all(new[gv] is f for gv, f in mod.functions.items()) else mod.with_functions(new)
    result = mod.with_functions({**new, **functions})
    check(result)
    return result


def _partition(
    entry: str, func: Function, mod_name: str, bind: bool, functions: dict[GlobalVar, Function], taken: set[str]
) -> Function:
    regions = _read_regions(func.body)
    if not regions.target:
        return func
    order = [n for n in post_order(regions.body)]
    members: dict[int, list[Expr]] = {}
    used_outside: set[int] = set()
    for node in order:
        if id(node) in regions.target:
            members.setdefault(regions.find(id(node)), []).append(node)
        own = regions.find(id(node)) if id(node) in regions.target else None
        for child in children(node):
            if id(child) in regions.target and regions.find(id(child)) != own:
                used_outside.add(id(child))
    used_outside.add(id(regions.body))
    inputs: dict[int, list[Expr]] = {}
    for key, nodes in members.items():
        inside = {id(n) for n in nodes}
        found: dict[int, Expr] = {}
        for node in nodes:
            for child in children(node):
                callee = isinstance(node, Call) and child is node.op
                if id(child) not in inside and not callee:
                    found[id(child)] = child
        inputs[key] = list(found.values())
    done: dict[int, Expr] = {}
    calls: dict[int, tuple[Call, list[Expr]]] = {}
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(regions.body, False)]
    numbers: dict[int, int] = {}
    while stack:
        node, ready = stack.pop()
        region = regions.find(id(node)) if id(node) in regions.target else None
        if not ready:
            if id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                waits = inputs[region] if region is not None else children(node)
                stack.extend([(c, False) for c in reversed(waits)])
            continue
        if region is None:
            done[id(node)] = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
            continue
        if region not in calls:
            numbers[region] = len(numbers)
            outputs = [n for n in members[region] if id(n) in used_outside]
            target = regions.target[id(node)]
            calls[region] = _region_call(
                members[region], inputs[region], outputs, target, entry, numbers[region], mod_name, bind, functions, taken, done
            )
        call, outputs = calls[region]
        if len(outputs) == 1:
            done[id(node)] = call
        else:
            index = next(i for i, o in enumerate(outputs) if o is node)
            done[id(node)] = retype(TupleGetItem(call, index, node.span), node)
    new = Function(func.params, done[id(regions.body)], func.ret_type, func.type_params, func.attrs, func.span)
    retype(new, func)
    return new


def _constant(expr: Expr) -> bool:
    return isinstance(expr, Constant) or (
        isinstance(expr, Tuple) and all(isinstance(f, Constant) for f in expr.fields)
    )


def _region_call(
    nodes: list[Expr],
    inputs: list[Expr],
    outputs: list[Expr],
    target: str,
    entry: str,
    number: int,
    mod_name: str,
    bind: bool,
    functions: dict[GlobalVar, Function],
    taken: set[str],
    done: dict[int, Expr],
) -> tuple[Call, list[Expr]]:
    new: dict[int, Expr] = {}
    params: list[Var] = []
    args: list[Expr] = []
    for i, node in enumerate(inputs):
        if bind and _constant(node):
            new[id(node)] = node
            continue
        param = Var(f"{target}_{number}_i{i}", node.checked_type, node.span)
        param.checked_type = node.checked_type
        params.append(param)
        args.append(done[id(node)])
        new[id(node)] = param
    for node in nodes:
        new[id(node)] = retype(rebuild(node, tuple([new.get(id(c), c) for c in children(node)])), node)
    if len(outputs) == 1:
        body = new[id(outputs[0])]
        ty = outputs[0].checked_type
    else:
        body = Tuple([new[id(n)] for n in outputs])
        ty = TupleType([n.checked_type for n in outputs])  # type: ignore[misc]
        body.checked_type = ty
    name = "tvmgen_" + "".join(c if c.isalnum() or c == "_" else "_" for c in f"{mod_name}_{target}_{entry}_{number}")
    while name in taken:
        name += "_"
    taken.add(name)
    attrs: dict[str, Any] = {"Primitive": 1, "Compiler": target, "Inline": 1, "global_symbol": name}
    func = Function(params, body, ty, (), attrs, outputs[-1].span)
    gv = GlobalVar(name)
    functions[gv] = func
    call = Call(gv, args, None, (), outputs[-1].span)
    call.checked_type = ty
    return call, outputs
