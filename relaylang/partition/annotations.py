"""Annotated programs: `compiler_begin` and `compiler_end` calls around what a target takes, as TVM writes them.

    mod = Sequential([MergeComposite(pattern_table()), AnnotateTarget("my-npu"), MergeCompilerRegions(),
                      PartitionGraph()])(mod)

AnnotateTarget and MergeCompilerRegions read regions from such calls, do a step of the engine, and write them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.ir import Call, Expr, Function, GlobalVar, IRModule, children, post_order, rebuild, rebuilt
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype
from relaylang.ops import get, make_attrs
from relaylang.ops.record import Op
from relaylang.partition.composites import composite_name
from relaylang.partition.lets import Effects, effects_of, place_lets
from relaylang.partition.lift import Lifting, lift
from relaylang.partition.merging import merge_neighbours
from relaylang.partition.regions import HOST, LEAVES, Regions, mark, regions_in
from relaylang.partition.support import op_verdict
from relaylang.passes.rewriting import is_opaque, per_function

_MARKS = {f"annotation.{kind}": kind for kind in ("compiler_begin", "compiler_end")}


def marked(expr: Expr, which: str, target: str) -> Expr:
    """The expression behind a `compiler_begin` or in front of a `compiler_end`."""
    op = get(f"annotation.{which}")
    annotation = Call(op, [expr], make_attrs(op.attrs, {"compiler": target}) if op.attrs is not None else None)
    return retype(annotation, expr)


def mark_of(node: Expr) -> tuple[str, str] | None:
    """("compiler_begin" or "compiler_end", target) of an annotation."""
    if type(node) is Call and type(node.op) is Op:
        kind = _MARKS.get(node.op.name)
        if kind is not None:
            return kind, node.attrs.compiler
    return None


def read_regions(func: Function, effects: Effects, host: bool = False, place: bool = True) -> Regions:
    """The regions that annotations draw: owned nodes connected without an annotation between them. Annotations of the
    host draw some with `host` only.

    With `place` lets without effects are put in place, where an accelerator has a region.
    """
    order = list(post_order(func))
    drawn = any([(mark := mark_of(node)) is not None and mark[1] != HOST for node in order])
    placed = place_lets(func, effects, order) if drawn and place else func
    if placed is not func:
        order = list(post_order(placed))
    marks = {id(node): mark for node in order if (mark := mark_of(node)) is not None}
    inside = _owners(order, marks, host)
    new: dict[int, Expr] = {}
    target: dict[int, str] = {}
    joined: list[tuple[Expr, Expr]] = []
    for node in order:
        if id(node) in marks:
            assert isinstance(node, Call)
            new[id(node)] = new[id(node.args[0])]
            continue
        rewritten = retype(rebuilt(node, new), node)
        new[id(node)] = rewritten
        owner = inside.get(id(node))
        if owner is not None and not isinstance(rewritten, LEAVES):
            target[id(rewritten)] = owner
            joined += [
                (rewritten, new[id(c)])
                for c in children(node)
                if id(c) not in marks and inside.get(id(c)) == owner and not isinstance(c, (*LEAVES, Function))
            ]
    plain = new[id(placed)]
    assert isinstance(plain, Function)
    regions = regions_in(plain, effects)
    regions.marks, regions.kept = len(marks), new
    regions.target, regions.leader = target, {key: key for key in target}
    for a, b in joined:
        regions.join(a, b)
    return regions


def _owners(order: Sequence[Expr], marks: Mapping[int, tuple[str, str]], host: bool) -> dict[int, str]:
    """The accelerator of each node between annotations, by its identity."""
    inside: dict[int, str] = {}
    for node in reversed(order):
        mark = marks.get(id(node))
        if mark is not None and mark[0] == "compiler_end" and (host or mark[1] != HOST):
            assert isinstance(node, Call)
            inside[id(node.args[0])] = mark[1]
        elif mark is None and id(node) in inside and not isinstance(node, LEAVES):
            for child in children(node):
                if id(child) not in marks and not isinstance(child, (*LEAVES, Function)):
                    inside.setdefault(id(child), inside[id(node)])
    return inside


def annotated(regions: Regions) -> Function:
    """The function with annotations around each region, of their own for each use."""
    target = regions.target
    done: dict[int, Expr] = {}
    for node in regions.order:
        mine = target.get(id(node))
        inner = []
        for child in children(node):
            new = done[id(child)]
            same = mine is not None and id(child) in target and regions.find(id(child)) == regions.find(id(node))
            if not same and id(child) in target:
                new = marked(new, "compiler_end", target[id(child)])
            if not same and mine is not None and not (isinstance(node, Call) and child is node.op):
                new = marked(new, "compiler_begin", mine)
            inner.append(new)
        done[id(node)] = retype(rebuild(node, tuple(inner)), node)
    result = done[id(regions.func)]
    assert isinstance(result, Function)
    return result


def target_of(node: Call, targets: Sequence[str]) -> str | None:
    """The first of the targets that takes a call, by its composite's name or by its operator."""
    name = composite_name(node)
    if name is not None and node.args:
        owner = name.partition(".")[0]
        return owner if owner in targets else None
    if isinstance(node.op, Op) and node.args:
        for target in targets:
            if op_verdict(target, node) is True:
                return target
    return None


def annotate_target(mod: IRModule, targets: str | Sequence[str], include_non_call_ops: bool = True) -> IRModule:
    """A typed module in which each call stands between `compiler_begin` and `compiler_end` of the target that takes it.

    The first of several targets that takes a call has it. Annotations of an earlier run stay. A call that no target
    takes is annotated for "default". With `include_non_call_ops`, tuples, fields and references belong to the target of
    all their operands, or to "default". Without it they have no annotation. Branches and arms end what they give.
    Constants are operands like others. Lets without effects are put in place, where a target takes anything.
    """
    names = [targets] if isinstance(targets, str) else list(targets)
    effects = effects_of(mod)

    def marked_in(func: Function) -> tuple[Regions, set[str]]:
        regions = read_regions(func, effects, place=False)
        return regions, mark(regions, lambda call: target_of(call, names), "operands" if include_non_call_ops else "never")

    def annotate(func: Function) -> Expr:
        placed = place_lets(func, effects)
        regions, owners = marked_in(placed)
        if placed is not func and not owners - {HOST}:
            regions, owners = marked_in(func)
        return annotated(regions) if owners else func

    return per_function(mod, annotate)


def merge_compiler_regions(mod: IRModule) -> IRModule:
    """A typed, annotated module with neighbouring regions of one target merged, where that makes no circle."""
    effects = effects_of(mod)

    def merged(func: Function) -> Expr:
        regions = read_regions(func, effects, host=True)
        if not regions.target:
            return func
        merge_neighbours(regions)
        return annotated(regions)

    return per_function(mod, merged)


def partition_graph(mod: IRModule, mod_name: str = "default", bind_constants: bool = True) -> IRModule:
    """A typed, annotated module with each region as a function `@tvmgen_<mod_name>_<target>_<function>_<n>`.

    Calls annotated for "default" stay where they are. With `bind_constants` constants go into a region, else they are
    parameters. The new module is typed.
    """
    effects = effects_of(mod)
    new: dict[GlobalVar, Function | Regions] = {}
    with gc_paused():
        for gv, func in mod.functions.items():
            if not is_opaque(func):
                regions = read_regions(func, effects)
                if regions.target:
                    new[gv] = regions
                elif regions.marks:
                    new[gv] = regions.func
        return lift(mod, new, Lifting(f"tvmgen_{mod_name}_", bind_constants))


__all__ = [
    "annotate_target",
    "annotated",
    "mark_of",
    "marked",
    "merge_compiler_regions",
    "partition_graph",
    "read_regions",
    "target_of",
]
