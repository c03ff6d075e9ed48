"""Composites: subgraphs that a pattern table's rows match become calls of functions with a `Composite` attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from relaylang.ir import Call, Constant, Expr, Function, IRModule, Tuple, TupleGetItem, post_order
from relaylang.ir.bulk import gc_paused
from relaylang.ops.record import Op
from relaylang.partition.entries import Entry, as_entries, refusal
from relaylang.partition.lets import effects_of, place_lets
from relaylang.partition.recipe import TVM_STEPS, Recipe
from relaylang.partition.scope import scope_nodes
from relaylang.passes.rewriting import per_function
from relaylang.patterns import Graph, find_match
from relaylang.patterns.groups import Group, inside_partitions, make_group, replace_with
from relaylang.patterns.language import LetPattern, all_parts, root_operators
from relaylang.patterns.matcher import Matcher


@dataclass
class Refusal:
    """A row whose pattern matched, and whose check said no."""

    entry: Entry
    root: Expr
    reason: str


@dataclass
class Chosen:
    """The composites that were found, and what checks refused."""

    groups: list[tuple[Entry, Group]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def choose(func: Function, entries: Sequence[Entry], order: list[Expr] | None = None, recipe: Recipe = TVM_STEPS) -> Chosen:
    """The composites of a typed function; no two of them overlap. `order` is the function's post-order, if known."""
    graph = Graph(func, order)
    by_calls = recipe.search == "calls"
    chosen = Chosen()
    taken: set[int] = set()
    matcher = Matcher(graph)
    for entry, node in _by_calls(func, entries) if by_calls else _by_rows(graph, entries):
        if id(node) in taken or not matcher.match(entry.pattern, node):
            continue
        group = make_group(entry.pattern, node, matcher, graph, taken)
        if group is not None and entry.joins is not None:
            _grow(group, entry.joins, graph, taken)
        if group is None or (by_calls and not _closed_inside(group, graph)):
            continue
        reason = _refused(entry, group, graph)
        if reason is not None:
            chosen.refusals.append(Refusal(entry, node, reason))
            continue
        if recipe.constants_inside:
            group.inputs = [n for n in group.inputs if not isinstance(n, (Constant, Op))]
        chosen.groups.append((entry, group))
        taken.update([id(n) for n in group.body if not isinstance(n, (Op, Constant))])
    return chosen


def _by_rows(graph: Graph, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Expr]]:
    """Each row with the nodes that its pattern may match, those next to the result first."""
    closed = inside_partitions(graph)
    calls: dict[str, list[Expr]] = {}
    for node in reversed(graph.order):
        if isinstance(node, Call) and isinstance(node.op, Op) and id(node) not in closed:
            calls.setdefault(node.op.name, []).append(node)
    for entry in entries:
        names = root_operators(entry.pattern)
        if names is None:
            nodes = [n for n in reversed(graph.order) if id(n) not in closed]
        else:
            nodes = [n for name in names for n in calls.get(name, ())]
            if len(names) > 1:
                nodes.sort(key=lambda n: -graph.place[id(n)])
        for node in nodes:
            yield entry, node


def _by_calls(func: Function, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Expr]]:
    """Each node of the outermost scope, the result first, with the rows in the table's order that may match it."""
    rows = [(entry, root_operators(entry.pattern)) for entry in entries]
    for node in reversed(scope_nodes(func.body)):
        if isinstance(node, (Call, TupleGetItem)):
            name = node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else None
            for entry, names in rows:
                if names is None or name in names:
                    yield entry, node


def _closed_inside(group: Group, graph: Graph) -> bool:
    """Whether only the group itself uses its inner values."""
    inside = {id(node) for node in group.body}
    free = {id(node) for node in group.inputs}
    for node in group.body:
        if node is group.root or id(node) in free or isinstance(node, (Op, Constant)):
            continue
        if any([id(user) not in inside for user in graph.users.get(id(node), ())]):
            return False
    return True


def _grow(group: Group, joins: Callable[[Call], bool], graph: Graph, taken: set[int]) -> None:
    """Take in the calls above a group for which `joins` holds and that nothing else uses, users before operands."""
    inside = {id(node) for node in group.body}
    waiting = [(-graph.place[id(node)], node) for node in group.inputs]
    heapify(waiting)
    group.inputs = []
    seen = set(inside)
    while waiting:
        _, node = heappop(waiting)
        if id(node) in seen:
            continue
        seen.add(id(node))
        free = id(node) not in taken and all([id(user) in inside for user in graph.users[id(node)]])
        if not (isinstance(node, Call) and free and joins(node)):
            group.inputs.append(node)
            continue
        inside.add(id(node))
        group.body.append(node)
        for arg in node.args:
            heappush(waiting, (-graph.place[id(arg)], arg))
    group.body.sort(key=lambda node: graph.place[id(node)])


def _refused(entry: Entry, group: Group, graph: Graph) -> str | None:
    if entry.check is None:
        return None
    match = find_match(entry.pattern, group.root, graph)
    assert match is not None
    if entry.joins is not None:
        match = replace(match, nodes=tuple([node for node in group.body if isinstance(node, Call)]))
    return refusal(entry, match)


def make_composites(
    func: Function, entries: Sequence[Entry], order: list[Expr] | None = None, recipe: Recipe = TVM_STEPS
) -> tuple[Function, Chosen]:
    """A typed function with its composites made, and the choice. Refused roots that change are those of the result."""
    naming = recipe.naming
    with gc_paused():
        chosen = choose(func, entries, order, recipe)
        if not chosen.groups:
            return func, chosen
        composites = {}
        for number, (entry, group) in enumerate(chosen.groups):
            attrs = {"PartitionedFromPattern": naming.composite_label(group), "Composite": entry.name}
            names = [naming.composite_param(number, i) for i in range(len(group.inputs))]
            composites[id(group.root)] = (group, group.function(names, attrs))
        new, done = replace_with(func, composites)
    for refused in chosen.refusals:
        refused.root = done[id(refused.root)]
    assert isinstance(new, Function)
    return new, chosen


def merge_composite(mod: IRModule, pattern_table: Iterable[Entry | tuple]) -> IRModule:
    """A typed module with what the table's patterns match as calls of functions with a `Composite` attribute."""
    entries = as_entries(pattern_table)
    effects = effects_of(mod)

    names = [root_operators(entry.pattern) for entry in entries]
    roots = None if None in names else frozenset[str]().union(*names)  # type: ignore[arg-type]
    of_lets = any([isinstance(p, LetPattern) for entry in entries for p in all_parts(entry.pattern)])

    def merged(func: Function) -> Expr:
        order: list[Expr] | None = list(post_order(func))
        assert order is not None
        if roots is not None and not any([type(n) is Op and n.name in roots for n in order]):
            return func
        placed = func if of_lets else place_lets(func, effects, order)
        new, _ = make_composites(placed, entries, order if placed is func else None)
        return func if new is placed else new

    return per_function(mod, merged)


def composite_name(node: Expr) -> str | None:
    """The name of the composite that a call calls, or None."""
    if isinstance(node, Call) and isinstance(node.op, Function):
        return node.op.attrs.get("Composite")
    return None


def composite_nodes(func: Function) -> list[Expr]:
    """A composite's calls, tuples and projections, producers first."""
    return [node for node in post_order(func.body) if isinstance(node, (Call, Tuple, TupleGetItem))]


__all__ = ["Chosen", "Refusal", "choose", "composite_name", "composite_nodes", "make_composites", "merge_composite"]
