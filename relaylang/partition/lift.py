"""PartitionGraph: each annotated region becomes a function of the module, and the host calls it."""

from __future__ import annotations

from typing import Any

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
    Type,
    Var,
    children,
    rebuild,
    rebuilt,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype, typed, typed_tuple, typed_var
from relaylang.partition.annotated import Regions, read_regions, waits_for_itself
from relaylang.partition.lets import Effects, effects_of
from relaylang.passes.rewriting import is_opaque
from relaylang.typing import check


def partition_graph(mod: IRModule, mod_name: str = "default", bind_constants: bool = True) -> IRModule:
    """A typed, annotated module with each region as a function `@tvmgen_<mod_name>_<target>_<function>_<n>`.

    What is annotated for "default" stays where it is.
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
    for node in order:
        if id(node) in regions.target:
            members.setdefault(regions.find(id(node)), []).append(node)
    used_outside = _uses_outside(regions)
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
            _give_out(call, outputs, done)
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


def _uses_outside(regions: Regions) -> list[Expr]:
    """The regions' nodes that are used outside of their region, in the order in which an evaluation comes to the uses."""
    found: dict[int, Expr] = {}
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(regions.func.body, True), (regions.func.body, False)]
    while stack:
        node, used = stack.pop()
        if used:
            if id(node) in regions.target:
                found.setdefault(id(node), node)
        elif id(node) not in seen:
            seen.add(id(node))
            own = regions.find(id(node)) if id(node) in regions.target else None
            for child in reversed(children(node)):
                if id(child) in regions.target and regions.find(id(child)) != own:
                    stack.append((child, True))
                stack.append((child, False))
    return list(found.values())


def _outputs(nodes: list[Expr], used_outside: list[Expr]) -> list[Expr]:
    """What a region returns: its nodes that are used outside, in that order. Of a tuple it returns the fields, as in TVM."""
    inside = {id(n) for n in nodes}
    found: dict[int, Expr] = {}
    wanted = [n for n in reversed(used_outside) if id(n) in inside]
    while wanted:
        node = wanted.pop()
        if isinstance(node, Tuple):
            wanted += [f for f in reversed(node.fields) if id(f) in inside]
        else:
            found.setdefault(id(node), node)
    return list(found.values())


def _fields_of(node: Expr, value: Expr) -> list[Expr]:
    """The fields of an output that is a tuple, else the output: a region with several outputs returns one flat tuple."""
    if not isinstance(node.checked_type, TupleType):
        return [value]
    return [typed(TupleGetItem(value, i, node.span), ty) for i, ty in enumerate(node.checked_type.fields)]


def _give_out(call: Call, outputs: list[Expr], done: dict[int, Expr]) -> None:
    """The region's outputs as parts of what its call returns."""
    if len(outputs) == 1:
        done[id(outputs[0])] = call
        return
    types: list[Type] = call.checked_type.fields  # type: ignore[union-attr]
    number = 0
    for out in outputs:
        width = len(out.checked_type.fields) if isinstance(out.checked_type, TupleType) else 1
        parts: list[Expr] = []
        for i in range(number, number + width):
            parts.append(typed(TupleGetItem(call, i, out.span), types[i]))
        done[id(out)] = retype(Tuple(parts, out.span), out) if isinstance(out.checked_type, TupleType) else parts[0]
        number += width


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
        param = typed_var(f"{target}_{number}_i{i}", node.checked_type, node.span)
        params.append(param)
        args.append(done[id(node)])
        new[id(node)] = param
    for node in nodes:
        new[id(node)] = retype(rebuild(node, tuple([new.get(id(c), c) for c in children(node)])), node)
    if len(outputs) == 1:
        body = new[id(outputs[0])]
        ty = outputs[0].checked_type
    else:
        body = typed_tuple([part for n in outputs for part in _fields_of(n, new[id(n)])])
        ty = body.checked_type
    name = "tvmgen_" + "".join(c if c.isalnum() or c == "_" else "_" for c in f"{mod_name}_{target}_{entry}_{number}")
    while name in taken:
        name += "_"
    taken.add(name)
    attrs: dict[str, Any] = {"Primitive": 1, "Compiler": target, "Inline": 1, "global_symbol": name}
    func = Function(params, body, ty, (), attrs, outputs[-1].span)
    gv = GlobalVar(name)
    functions[gv] = func
    return typed(Call(gv, args, None, (), outputs[-1].span), ty)
