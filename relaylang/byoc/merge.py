"""MergeComposite, AnnotateTarget, MergeCompilerRegions and PartitionGraph: TVM's four steps to code for an accelerator.

    mod = Sequential([MergeComposite(pattern_table()), AnnotateTarget("my-npu"), MergeCompilerRegions(),
                      PartitionGraph()])(mod)

Composites are chosen row by row in the table's order, as TVM does. Annotations are `compiler_begin` and `compiler_end`
calls around what a target takes; what no target takes has none. Lets without effects are put in place first, so that a
program in A-normal form comes out as its graph form does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylang.byoc.annotated import Regions, mark_of, marked, merge_regions, read_regions, waits_for_itself
from relaylang.byoc.composite import Entry, as_entries, asked_about, composite_name, refusal
from relaylang.byoc.lets import Effects, effects_of, inside_closed, place_lets
from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    children,
    post_order,
    rebuild,
    rebuilt,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ops.record import Op
from relaylang.passes.manager import raised_in
from relaylang.passes.rewriting import is_opaque, per_function, retype
from relaylang.patterns import Graph, find_match
from relaylang.patterns.groups import Group, _inside_partitions, _make_group, replace_with
from relaylang.patterns.language import LetPattern, all_parts, root_operators
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
    """A typed module in which each call that a target takes stands between `compiler_begin` and `compiler_end`.

    The first of several targets that takes a call has it; what another run has annotated stays so. With
    `include_non_call_ops` a tuple or a field of one whose operands all belong to one target belongs to it, too.
    Constants are operands like others. Lets without effects are put in place, where anything is annotated.
    """
    names = [targets] if isinstance(targets, str) else list(targets)
    effects = effects_of(mod)

    def annotate(func: Function) -> Expr:
        order = list(post_order(func))
        placed = place_lets(func, effects, order)
        if placed is not func:
            order = list(post_order(placed))
        done: dict[int, Expr] = {}
        owner: dict[int, str] = {}
        closed = inside_closed(order)
        for node in order:
            new = retype(rebuilt(node, done), node)
            if id(node) not in closed:
                new = _annotated(node, new, owner, names, include_non_call_ops)
            done[id(node)] = new
        return done[id(placed)] if owner else func

    return per_function(mod, annotate)


def _annotated(node: Expr, new: Expr, owner: dict[int, str], names: list[str], tuples: bool) -> Expr:
    inner = children(node)
    if mark_of(node) is not None or (inner and mark_of(inner[0]) is not None and not _free(inner[0])):
        return new  # an annotation, or what another run has annotated
    target = target_of(node, names)
    if target is None and tuples and isinstance(node, (Tuple, TupleGetItem)):
        owners = {owner.get(id(c)) for c in inner}
        target = owners.pop() if len(owners) == 1 else None
    if target is None:
        return new
    owner[id(node)] = target
    begun = [c if isinstance(c, (Op, Function)) and isinstance(node, Call) and c is children(new)[-1]
             else marked(c, "compiler_begin", target) for c in children(new)]  # fmt: skip
    return marked(retype(rebuild(new, tuple(begun)), node), "compiler_end", target)


def _free(mark: Expr) -> bool:
    """Whether what stands behind an annotation may still be annotated: it is another region's result."""
    found = mark_of(mark)
    return found is not None and found[0] == "compiler_end"


# ---- regions


def merge_compiler_regions(mod: IRModule) -> IRModule:
    """A typed, annotated module with neighbouring regions of one target merged, where that makes no circle."""
    effects = effects_of(mod)
    return per_function(mod, lambda func: merge_regions(func, effects))


# ---- partitioning


def partition_graph(mod: IRModule, mod_name: str = "default", bind_constants: bool = True) -> IRModule:
    """A typed, annotated module with each region as a function `@tvmgen_<mod_name>_<target>_<function>_<n>`.

    What is annotated for "default", as TVM's AnnotateTarget does with the rest, stays where it is.
    Such a function has the attributes `Primitive`, `Compiler`, `Inline` and `global_symbol`; with several outputs it
    returns a tuple. With `bind_constants` constants go into it, else they are parameters. The new module is typed.
    """
    functions: dict[GlobalVar, Function] = {}
    new: dict[GlobalVar, Function] = {}
    taken = {gv.name_hint for gv in mod.functions}
    effects = effects_of(mod)
    with gc_paused():
        for gv, func in mod.functions.items():
            new[gv] = func
            if not is_opaque(func):
                new[gv] = _partition(gv.name_hint, func, mod_name, bind_constants, functions, taken, effects)
    if not functions:
        return mod if all(new[gv] is f for gv, f in mod.functions.items()) else mod.with_functions(new)
    result = mod.with_functions({**new, **functions})
    check(result)
    return result


def _partition(
    entry: str,
    func: Function,
    mod_name: str,
    bind: bool,
    functions: dict[GlobalVar, Function],
    taken: set[str],
    effects: Effects,
) -> Function:
    regions = read_regions(func, effects)
    if not regions.target:
        return regions.func if regions.marks else func
    order = regions.order
    body = regions.func.body
    _tuples_outside(regions)
    members: dict[int, list[Expr]] = {}
    used_outside: set[int] = set()
    for node in order:
        if id(node) in regions.target:
            members.setdefault(regions.find(id(node)), []).append(node)
        own = regions.find(id(node)) if id(node) in regions.target else None
        for child in children(node):
            if id(child) in regions.target and regions.find(id(child)) != own:
                used_outside.add(id(child))
    used_outside.add(id(body))
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
    calls: dict[int, Call] = {}
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(body, False)]
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
            done[id(node)] = retype(rebuilt(node, done), node)
            continue
        if region not in calls:
            late = next((n for n in inputs[region] if id(n) not in done), None)
            if late is not None:
                raise RelayError(waits_for_itself(regions, [node, late]))
            numbers[region] = len(numbers)
            outputs = _outputs(members[region], used_outside)
            target = regions.target[id(node)]
            call = _region_call(
                members[region], inputs[region], outputs, target, entry, numbers[region], mod_name, bind, functions, taken, done
            )
            calls[region] = call
            for i, out in enumerate(outputs):
                done[id(out)] = call if len(outputs) == 1 else retype(TupleGetItem(call, i, out.span), out)
        if id(node) not in done:  # a tuple that leaves the region is put together outside
            done[id(node)] = retype(rebuilt(node, done), node)
    new = Function(func.params, done[id(body)], func.ret_type, func.type_params, func.attrs, func.span)
    retype(new, func)
    return new


def _tuples_outside(regions: Regions) -> None:
    """Tuples that nothing in their region uses are put together outside, as TVM does: no function returns one for them."""
    used: set[int] = set()
    for node in reversed(regions.order):
        mine = regions.target.get(id(node))
        if mine is None:
            continue
        if isinstance(node, Tuple) and id(node) not in used:
            del regions.target[id(node)]
            continue
        region = regions.find(id(node))
        used.update([id(c) for c in children(node) if id(c) in regions.target and regions.find(id(c)) == region])


def _outputs(nodes: list[Expr], used_outside: set[int]) -> list[Expr]:
    """What a region returns: its nodes that are used outside. Of a tuple it returns the fields, as TVM does."""
    inside = {id(n) for n in nodes}
    found: dict[int, Expr] = {}
    wanted = [n for n in nodes if id(n) in used_outside]
    while wanted:
        node = wanted.pop()
        if isinstance(node, Tuple):
            wanted += [f for f in node.fields if id(f) in inside]
        else:
            found[id(node)] = node
    return [n for n in nodes if id(n) in found]


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
) -> Call:
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
    return call
