"""The partitioning engine: find composites, mark calls, merge regions, lift them into functions, prune.

A recipe chooses how each step works; no step asks for the accelerator's name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from relaylang.ir import Call, Function, GlobalVar, IRModule, post_order
from relaylang.ir.bulk import gc_paused
from relaylang.partition.annotations import mark_of, read_regions, target_of
from relaylang.partition.composites import composite_name, make_composites
from relaylang.partition.entries import Entry
from relaylang.partition.inline import calls_one_of, inline_regions
from relaylang.partition.lets import Effects, effects_of, place_lets
from relaylang.partition.lift import Lifting, lift
from relaylang.partition.merging import merge_neighbours
from relaylang.partition.recipe import Recipe
from relaylang.partition.regions import HOST, Region, Regions, list_regions, mark
from relaylang.passes.rewriting import is_opaque
from relaylang.typing import check

#: Refuses a call that the table takes: the reason, or None.
Refuse = Callable[[Call], "str | None"]
#: Names a call that has to leave a region, and the reason; None where the region is fine.
Judge = Callable[[Region], "tuple[Call, str] | None"]


@dataclass
class Trace:
    """The choices for one function: its form with all composites, the nodes in regions by id, and reasons for others.

    `reasons` has the first reason for a node, by id. `unworthy` are the calls of regions that went back to the host.
    """

    func: Function
    inside: set[int] = field(default_factory=set)
    reasons: dict[int, str] = field(default_factory=dict)
    unworthy: list[Call] = field(default_factory=list)


@dataclass
class Outcome:
    """A partitioned module, and a trace for each of its functions that was looked at."""

    module: IRModule
    traces: dict[GlobalVar, Trace]


def run(
    mod: IRModule,
    rows: Sequence[Entry],
    recipe: Recipe,
    *,
    entry: str = "main",
    prefix: str = "tvmgen_default_",
    prune: bool = True,
    refuse: Refuse | None = None,
    judge: Judge | None = None,
) -> Outcome:
    """Partition a typed module, whose parameters are bound and whose constants are folded.

    `refuse` may refuse a call for a further reason, such as a failure of the compiler behind. `judge` looks at whole
    regions. Without `prune` regions stay that `recipe.worth` and `recipe.keep` refuse. The new module is typed.
    """
    effects = effects_of(mod)
    traces: dict[GlobalVar, Trace] = {}
    new: dict[GlobalVar, Function | Regions] = {}
    with gc_paused():
        for gv, func in mod.functions.items():
            if is_opaque(func) or (recipe.search == "calls" and gv.name_hint != entry):
                continue
            regions, trace = _regions(func, effects, rows, recipe, refuse, judge)
            traces[gv] = trace
            if regions is not None:
                new[gv] = regions
        done = lift(mod, new, Lifting(prefix, recipe.bind_constants, recipe))
    if prune and recipe.worth and sum(f.attrs.get("Compiler") == recipe.name for f in done.functions.values()) > 1:
        done = inline_regions(done, recipe.name, lambda func: not calls_one_of(func, recipe.worth))
        check(done)
    keep = recipe.keep
    if prune and keep is not None:
        done = inline_regions(done, recipe.name, lambda func: not keep(func))
        check(done)
    return Outcome(done, traces)


def _given_up(judge: Judge | None, kept: Sequence[Region], fine: set[tuple[int, ...]], trace: Trace) -> bool:
    """Whether a region is not worth its call by `judge`: its reason is noted. `fine` are regions that are."""
    given_up = False
    for region in kept if judge is not None else ():
        key = tuple(id(node) for node in region.nodes)
        refusal = judge(region) if judge is not None and key not in fine else None
        if refusal is None:
            fine.add(key)
        else:
            trace.reasons[id(refusal[0])], given_up = refusal[1], True
    return given_up


def _regions(
    func: Function,
    effects: Effects,
    rows: Sequence[Entry],
    recipe: Recipe,
    refuse: Refuse | None,
    judge: Judge | None,
) -> tuple[Regions | None, Trace]:
    """The regions of one function; None where it stays as it is, lets included."""
    merged, chosen = make_composites(place_lets(func, effects), rows, recipe=recipe)
    drawn = read_regions(merged, effects)
    trace = Trace(drawn.func)

    def takes(call: Call) -> str | None:
        if id(call) in trace.reasons or not _taken(call, recipe):
            return None
        reason = refuse(call) if refuse is not None else None
        if reason is not None:
            trace.reasons[id(call)] = reason
        return recipe.name if reason is None else None

    fine: set[tuple[int, ...]] = set()
    while True:
        regions = replace(drawn, target=dict(drawn.target), leader=dict(drawn.leader))
        mark(regions, takes, recipe.tuples)
        if recipe.merge != "none":
            merge_neighbours(regions, recipe.merge)
        regions.give_back([node for node in regions.order if regions.target.get(id(node)) == HOST])
        kept = _without_movers(regions, {row.name for row in rows if row.mover}, recipe, trace)
        if not _given_up(judge, kept, fine, trace):
            break
    refused: dict[int, str] = {}
    for refusal in chosen.refusals:
        refused.setdefault(id(refusal.root), refusal.reason)
    trace.reasons = {**refused, **trace.reasons}
    trace.inside = set(regions.target)
    untouched = not regions.target and not chosen.groups and recipe.search == "rows"
    return None if untouched and not any([mark_of(node) for node in post_order(func)]) else regions, trace


def _taken(call: Call, recipe: Recipe) -> bool:
    """Whether the accelerator takes a call as it is; composites with constants inside may have no operands."""
    if recipe.constants_inside:
        return (composite_name(call) or "").partition(".")[0] == recipe.name
    return target_of(call, [recipe.name]) is not None


def _without_movers(regions: Regions, movers: Collection[str], recipe: Recipe, trace: Trace) -> list[Region]:
    """The regions that are worth it; others go back to the host."""
    kept = []
    for region in list_regions(regions, recipe.outputs):
        if not movers or any([composite_name(node) not in (None, *movers) for node in region.nodes]):
            kept.append(region)
            continue
        regions.give_back(region.nodes)
        trace.reasons.update({id(node): recipe.not_worth for node in region.nodes})
        trace.unworthy += [node for node in region.nodes if isinstance(node, Call)]
    return kept


__all__ = ["Judge", "Outcome", "Refuse", "Trace", "run"]
