"""Partitioning: regions become global functions for a compiler, and the host's function calls them."""
from __future__ import annotations

from collections.abc import Sequence

from relaylang.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    children,
    rebuild,
)
from relaylang.ir.typed import retype, typed
from relaylang.partition.regions import Region


def partition_graph(
    mod: IRModule, entry: str, regions: Sequence[Region], compiler: str, prefix: str = ""
) -> IRModule:
    """The module with each region of `entry` as a function `@<prefix><compiler>_<entry>_<n>` of its own.

    Such a function has the attributes `Compiler`, `global_symbol`, `Primitive` and `Inline`, as TVM's have; with more
    than one output it returns a tuple. Constants go into the region. Types of new nodes are left for the checker.
    """
    func: Function = mod[entry]
    owner: dict[int, Region] = {id(node): region for region in regions for node in region.nodes}
    calls: dict[int, Call] = {}
    functions: dict[GlobalVar, Function] = {}
    taken = {gv.name_hint for gv in mod}
    done: dict[int, Expr] = {}
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(func.body, False)]
    while stack:
        node, ready = stack.pop()
        region = owner.get(id(node))
        if not ready:
            if id(node) in seen:
                continue
            seen.add(id(node))
            stack.append((node, True))
            waits_for = region.inputs if region is not None else children(node)
            stack.extend((child, False) for child in reversed(waits_for))
            continue
        if region is None:
            done[id(node)] = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
            continue
        if id(region) not in calls:
            name = _fresh(taken, f"{prefix}{compiler.replace('-', '_')}_{entry}_{len(calls)}")
            taken.add(name)
            gv = GlobalVar(name)
            functions[gv] = region_function(region, compiler, name)
            args = [done[id(i)] for i in region.inputs]
            made = Call(gv, args, None, (), region.outputs[-1].span)
            calls[id(region)] = typed(made, functions[gv].ret_type)
        call = calls[id(region)]
        if len(region.outputs) == 1:
            done[id(node)] = call
        else:
            index = next(i for i, out in enumerate(region.outputs) if out is node)
            done[id(node)] = retype(TupleGetItem(call, index, node.span), node)
    main = Function(func.params, done[id(func.body)], func.ret_type, func.type_params, func.attrs, func.span)
    everything = dict(mod.functions)
    everything[mod.get_global_var(entry)] = main
    everything.update(functions)
    return mod.with_functions(everything)


def region_function(region: Region, compiler: str, name: str) -> Function:
    """A region as a function of its inputs."""
    new: dict[int, Expr] = {}
    params = []
    for i, node in enumerate(region.inputs):
        hint = node.name_hint if isinstance(node, Var) else f"in{i}"
        param = retype(Var(hint, node.checked_type, node.span), node)
        params.append(param)
        new[id(node)] = param
    for node in region.nodes:
        kept = [new.get(id(c), c) for c in children(node)]
        new[id(node)] = retype(rebuild(node, tuple(kept)), node)
    outputs = [new[id(node)] for node in region.outputs]
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    types = [node.checked_type for node in region.outputs]
    ret_type = types[0] if len(types) == 1 else TupleType([t for t in types if t is not None])
    attrs = {"Inline": 1, "Compiler": compiler, "global_symbol": name, "Primitive": 1}
    return Function(params, body, ret_type, (), attrs, region.outputs[-1].span)


def _fresh(taken: set[str], name: str) -> str:
    candidate, n = name, 1
    while candidate in taken:
        candidate, n = f"{name}_{n}", n + 1
    return candidate


def regions_of(mod: IRModule, compiler: str) -> list[tuple[GlobalVar, Function]]:
    """The functions of a partitioned module that belong to a compiler, in the module's order."""
    return [(gv, f) for gv, f in mod.functions.items() if f.attrs.get("Compiler") == compiler]
