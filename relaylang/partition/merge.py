"""MergeComposite, AnnotateTarget and MergeCompilerRegions: with PartitionGraph TVM's four steps to code for an accelerator.

    mod = Sequential([MergeComposite(pattern_table()), AnnotateTarget("my-npu"), MergeCompilerRegions(),
                      PartitionGraph()])(mod)

Composites are chosen row by row in the table's order, as TVM does. Annotations are `compiler_begin` and `compiler_end`
calls around what a target takes, and those of "default" around the rest. Lets without effects are put in place first, so
that a program in A-normal form comes out as its graph form does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
    rebuild,
    rebuilt,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype
from relaylang.ops.record import Op
from relaylang.partition.annotated import HOST, mark_of, marked, merge_regions
from relaylang.partition.composite import Entry, as_entries, asked_about, composite_name, refusal
from relaylang.partition.lets import effects_of, inside_closed, place_lets
from relaylang.passes.manager import raised_in
from relaylang.passes.rewriting import per_function
from relaylang.patterns import Graph, find_match
from relaylang.patterns.groups import Group, _inside_partitions, _make_group, replace_with
from relaylang.patterns.language import LetPattern, all_parts, root_operators
from relaylang.patterns.matcher import Matcher

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


def choose(func: Function, entries: Sequence[Entry], order: list[Expr] | None = None) -> Chosen:
    """The composites of a typed function: for each row, in order, what it matches and no earlier row has taken.

    `order` is its post-order, where it is known.
    """
    graph = Graph(func, order)
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
    return refusal(entry, found)


def merge_function(
    func: Function, entries: Sequence[Entry], order: list[Expr] | None = None
) -> tuple[Function, Chosen]:
    """A typed function with its composites made, and what was chosen."""
    with gc_paused():
        chosen = choose(func, entries, order)
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
        new, _ = merge_function(placed, entries, order if placed is func else None)
        return func if new is placed else new

    return per_function(mod, merged)


# ---- targets


def target_of(node: Expr, targets: Sequence[str]) -> str | None:
    """The first of the targets that takes a call, by its composite's name or by its operator."""
    name = composite_name(node)
    if name is not None:
        owner = name.partition(".")[0]
        return owner if owner in targets else None
    if isinstance(node, Call) and isinstance(node.op, Op) and node.args:
        for target in targets:
            if op_verdict(target, node) is True:
                return target
    return None


def op_verdict(target: str, call: Call) -> bool | str:
    """Whether a target takes a call of an operator as it is: True, False, or why not. Raises `RelayError` where its check
    raises."""
    assert isinstance(call.op, Op)
    test = OP_SUPPORT.get(target, {}).get(call.op.name)
    if test is None:
        return False
    try:
        verdict = test(call)
        return verdict if isinstance(verdict, str) else bool(verdict)
    except (RelayError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as problem:
        said = asked_about(raised_in(f"target.{target} of {call.op.name}", problem, "the check"), call)
        raise RelayError(said) from problem


def annotate_target(mod: IRModule, targets: str | Sequence[str], include_non_call_ops: bool = True) -> IRModule:
    """A typed module in which each call stands between `compiler_begin` and `compiler_end` of the target that takes it.

    The first of several targets that takes a call has it; what another run has annotated for a target stays so. What no
    target takes is annotated for "default". With `include_non_call_ops` tuples, fields and references belong to the target
    of all their operands, or to "default"; without it they have no annotation. Branches and arms end what they give.
    Constants are operands like others. Lets without effects are put in place, where a target takes anything.
    """
    names = [targets] if isinstance(targets, str) else list(targets)
    effects = effects_of(mod)

    def written(func: Function, order: list[Expr]) -> tuple[Expr, set[str]]:
        done: dict[int, Expr] = {}
        annotator = _Annotator(names, include_non_call_ops)
        closed = inside_closed(order)
        for node in order:
            mark = mark_of(node)
            if mark is not None and mark[1] == HOST:  # of another run: it is written anew
                assert isinstance(node, Call)
                done[id(node)] = done[id(node.args[0])]
                continue
            new = retype(rebuilt(node, done), node)
            done[id(node)] = new if id(node) in closed else annotator.annotated(node, new)
        return done[id(func)], set(annotator.owner.values())

    def annotate(func: Function) -> Expr:
        order = list(post_order(func))
        placed = place_lets(func, effects, order)
        made, owners = written(placed, order if placed is func else list(post_order(placed)))
        if placed is not func and not owners - {HOST}:
            made, owners = written(func, order)
        return made if owners else func

    return per_function(mod, annotate)


@dataclass
class _Annotator:
    """Writes annotations around nodes, operands first. Each use of a value has annotations of its own, as in TVM."""

    targets: list[str]
    include_non_call_ops: bool
    owner: dict[int, str] = field(default_factory=dict)  # of what was written, and is not yet ended

    def annotated(self, node: Expr, new: Expr) -> Expr:
        """A node between its annotations, but for the last: whoever uses it ends it."""
        inner = children(new)
        mark = mark_of(node)
        if mark is not None:
            return self.with_ends(node, new) if mark[0] == "compiler_begin" else new
        if inner and (first := mark_of(inner[0])) is not None and first[0] == "compiler_begin":
            return new  # annotated by another run
        target = self.target_of(node, inner)
        if target is None:
            return self.with_ends(node, new)
        callee = inner[-1] if isinstance(node, Call) else None
        begun = [self.ended(c) if c is callee else marked(self.ended(c), "compiler_begin", target) for c in inner]
        made = retype(rebuild(new, tuple(begun)), node)
        self.owner[id(made)] = target
        return made

    def target_of(self, node: Expr, inner: Sequence[Expr]) -> str | None:
        """Whose a node is; None where it is not annotated."""
        if isinstance(node, Call):
            if not node.args:
                return None
            free = self.include_non_call_ops or not isinstance(node.op, Var)
            return target_of(node, self.targets) or (HOST if free else None)
        if self.include_non_call_ops and inner and isinstance(node, (Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)):
            owners = {self.owner.get(id(c), HOST) for c in inner}
            return owners.pop() if len(owners) == 1 else HOST
        return None

    def with_ends(self, node: Expr, new: Expr) -> Expr:
        inner = children(new)
        if not any([id(c) in self.owner for c in inner]):
            return new
        return retype(rebuild(new, tuple([self.ended(c) for c in inner])), node)

    def ended(self, new: Expr) -> Expr:
        target = self.owner.get(id(new))
        return new if target is None else marked(new, "compiler_end", target)


# ---- regions


def merge_compiler_regions(mod: IRModule) -> IRModule:
    """A typed, annotated module with neighbouring regions of one target merged, where that makes no circle."""
    effects = effects_of(mod)
    return per_function(mod, lambda func: merge_regions(func, effects))
