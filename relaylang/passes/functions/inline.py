"""Inline: replace calls of functions marked `Inline` by their bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from relaylang.ir import Call, Expr, Function, GlobalVar, IRModule, children, post_order, rebuild
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype
from relaylang.passes.analysis import call_graph, recursive_functions
from relaylang.passes.effects import has_references
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import apply_function, copy_with, is_opaque

_P = TypeVar("_P", IRModule, Expr)


def inline(mod: IRModule) -> IRModule:
    """A typed module without the functions marked `Inline`, whose calls have their bodies in place.

    Recursive ones and those that nobody names stay. A function of another compiler is inserted unchanged and called
    there. A name that is used as a value becomes the function.
    """
    marked = _marked(mod)
    if not marked:
        return mod
    by_name = {gv.name_hint: gv for gv in marked}
    graph = call_graph(mod)
    done: dict[GlobalVar, Function] = {}
    with gc_paused():
        for gv in _callees_first(mod, graph):
            func = mod.functions[gv]
            opaque = is_opaque(func) and gv not in marked
            done[gv] = func if opaque else _inlined(func, by_name, done)
    called = {callee.name_hint for calls in graph.values() for callee in calls}
    kept = {gv: done[gv] for gv in mod.functions if gv not in marked or gv.name_hint not in called}
    used = {n.name_hint for f in kept.values() if f.body is not None for n in post_order(f) if isinstance(n, GlobalVar)}
    kept.update({gv: done[gv] for gv in marked if gv.name_hint in used})
    return mod.with_functions({gv: kept[gv] for gv in mod.functions if gv in kept})


def _marked(mod: IRModule) -> set[GlobalVar]:
    """The functions that are replaced where they are called."""
    recursive = recursive_functions(mod)
    wanted = {gv for gv, f in mod.functions.items() if f.attrs.get("Inline") and not f.attrs.get("SkipOptimization")}
    return {gv for gv in wanted if mod.functions[gv].body is not None and gv not in recursive}


def _callees_first(mod: IRModule, graph: dict[GlobalVar, dict[GlobalVar, int]]) -> list[GlobalVar]:
    order: list[GlobalVar] = []
    seen: set[GlobalVar] = set()
    by_name = {gv.name_hint: gv for gv in mod.functions}
    for start in mod.functions:
        stack = [(start, False)]
        while stack:
            gv, ready = stack.pop()
            if ready:
                order.append(gv)
            elif gv not in seen:
                seen.add(gv)
                stack.append((gv, True))
                stack.extend([(by_name[c.name_hint], False) for c in graph[gv] if c.name_hint in by_name])
    return order


def _inlined(func: Function, marked: dict[str, GlobalVar], bodies: dict[GlobalVar, Function]) -> Function:
    order = list(post_order(func))
    values = {
        id(child)
        for node in order
        for child in (node.args if isinstance(node, Call) else children(node))
        if isinstance(child, GlobalVar)
    }
    done: dict[int, Expr] = {}
    for node in order:
        if isinstance(node, GlobalVar) and node.name_hint in marked:
            # A call below takes the body; who else has this for a child uses the name as a value.
            value = copy_with(bodies[marked[node.name_hint]]) if id(node) in values else node
            done[id(node)] = retype(value, node)
            continue
        new = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
        if isinstance(node, Call) and isinstance(node.op, GlobalVar) and node.op.name_hint in marked:
            callee = bodies[marked[node.op.name_hint]]
            assert isinstance(new, Call)
            if "Compiler" in callee.attrs:
                copy = copy_with(callee)
                new = retype(Call(copy, new.args, None, (), node.span), node)
            else:
                new = apply_function(callee, new.args, effects=has_references(callee))
        done[id(node)] = new
    result = done[id(func)]
    assert isinstance(result, Function)
    return result


@dataclass(frozen=True)
class Inline(Pass):
    """Replace calls of functions marked `Inline` by their bodies."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return inline(mod)
