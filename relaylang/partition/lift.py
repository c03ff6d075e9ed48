"""Lifting: each region becomes a function of the module, and the host calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    rebuild,
    rebuilt,
)
from relaylang.ir.typed import retype, typed, typed_tuple, typed_var
from relaylang.partition.composites import composite_name
from relaylang.partition.merging import waits_for_itself
from relaylang.partition.recipe import TVM_STEPS, Recipe
from relaylang.partition.regions import Region, Regions, list_regions, tuples_outside
from relaylang.passes.rewriting import apply_function
from relaylang.typing import check


@dataclass(frozen=True)
class Lifting:
    """How regions become functions.

    `prefix` stands before their names. With `bind_constants` constants go into a region, else they are parameters. The
    recipe has the names, the order of a region's outputs, and what becomes of composites on the host.
    """

    prefix: str = "tvmgen_default_"
    bind_constants: bool = True
    recipe: Recipe = TVM_STEPS


def lift(mod: IRModule, new: Mapping[GlobalVar, Function | Regions], how: Lifting) -> IRModule:
    """A typed module with new functions, those with regions in parts: each region is a function of its own.

    Such a function has the attributes `Primitive`, `Compiler`, `Inline` and `global_symbol`; with several outputs it
    returns a tuple. Raises `RelayError` for a region that waits for itself.
    """
    if not new:
        return mod
    lifter = _Lifter(how, {gv.name_hint for gv in mod.functions})
    changed = {gv: lifter.host(gv.name_hint, value) if isinstance(value, Regions) else value for gv, value in new.items()}
    result = mod.with_functions({**mod.functions, **changed, **lifter.functions})
    check(result)
    return result


class _Lifter:
    """Makes the functions of regions; `functions` has them."""

    def __init__(self, how: Lifting, taken: set[str]) -> None:
        self.how = how
        self.taken = taken
        self.functions: dict[GlobalVar, Function] = {}

    def host(self, entry: str, regions: Regions) -> Function:
        """A function that calls its regions."""
        tuples_outside(regions)
        func = regions.func
        owner = {id(node): region for region in list_regions(regions, self.how.recipe.outputs) for node in region.nodes}
        numbers = self.how.recipe.naming.numbers(regions.order, owner)
        done: dict[int, Expr] = {}
        called: set[int] = set()
        seen: set[int] = set()
        stack: list[tuple[Expr, bool]] = [(func.body, False)]
        while stack:
            node, ready = stack.pop()
            region = owner.get(id(node))
            if not ready:
                if id(node) not in seen:
                    seen.add(id(node))
                    stack.append((node, True))
                    waits = region.inputs if region is not None else children(node)
                    stack.extend([(c, False) for c in reversed(waits)])
                continue
            if region is not None and id(region) not in called:
                late = next((n for n in region.inputs if id(n) not in done), None)
                if late is not None:
                    raise RelayError(waits_for_itself(regions, [node, late]))
                _give_out(self.call(region, entry, numbers.get(id(region), len(called)), done), region.outputs, done, self.how.recipe)
                called.add(id(region))
            if region is None or id(node) not in done:  # a tuple that leaves the region is put together outside
                done[id(node)] = retype(self.unfolded(rebuilt(node, done)), node)
        new = Function(func.params, done[id(func.body)], func.ret_type, func.type_params, func.attrs, func.span)
        return retype(new, func)

    def unfolded(self, node: Expr) -> Expr:
        if self.how.recipe.unfold and composite_name(node) is not None:
            assert isinstance(node, Call) and isinstance(node.op, Function)
            return apply_function(node.op, node.args)
        return node

    def call(self, region: Region, entry: str, number: int, done: dict[int, Expr]) -> Call:
        name = self.how.recipe.naming.region(self.how.prefix, region.target, entry, number, self.taken)
        self.taken.add(name)
        func, inputs = region_function(region, name, number, self.how)
        gv = GlobalVar(name)
        self.functions[gv] = func
        args = [done[id(node)] for node in inputs]
        return typed(Call(gv, args, None, (), func.span), func.ret_type)


def region_function(region: Region, name: str, number: int, how: Lifting) -> tuple[Function, list[Expr]]:
    """A region as a function, and the values that its parameters stand for."""
    new: dict[int, Expr] = {}
    params: list[Var] = []
    inputs: list[Expr] = []
    for i, node in enumerate(region.inputs):
        if how.bind_constants and _constant(node):
            new[id(node)] = node
            continue
        param = typed_var(how.recipe.naming.region_param(region.target, number, i, node), node.checked_type, node.span)
        params.append(param)
        inputs.append(node)
        new[id(node)] = param
    for node in region.nodes:
        new[id(node)] = retype(rebuild(node, tuple([new.get(id(c), c) for c in children(node)])), node)
    outputs = region.outputs
    if _one_value(outputs, how.recipe):
        body = new[id(outputs[0])]
        ty = outputs[0].checked_type
    else:
        body = typed_tuple([part for n in outputs for part in _fields_of(n, new[id(n)])])
        ty = body.checked_type
    attrs = how.recipe.naming.region_attrs(region.target, name)
    return Function(params, body, ty, (), attrs, outputs[-1].span), inputs


def regions_of(mod: IRModule, compiler: str) -> list[tuple[GlobalVar, Function]]:
    """The functions of a partitioned module that belong to a compiler, in the module's order."""
    return [(gv, f) for gv, f in mod.functions.items() if f.attrs.get("Compiler") == compiler]


def _fields_of(node: Expr, value: Expr) -> list[Expr]:
    """The fields of an output that is a tuple, else the output. A region with several outputs returns one flat
    tuple."""
    if not isinstance(node.checked_type, TupleType):
        return [value]
    return [typed(TupleGetItem(value, i, node.span), ty) for i, ty in enumerate(node.checked_type.fields)]


def _one_value(outputs: list[Expr], recipe: Recipe) -> bool:
    """Whether a region returns its output as it is. A tuple that its fields belong to is put together outside."""
    return len(outputs) == 1 and not (recipe.tuples == "users" and isinstance(outputs[0].checked_type, TupleType))


def _give_out(call: Call, outputs: list[Expr], done: dict[int, Expr], recipe: Recipe) -> None:
    """The region's outputs as parts of what its call returns."""
    if _one_value(outputs, recipe):
        done[id(outputs[0])] = call
        return
    types = call.checked_type.fields  # type: ignore[union-attr]
    number = 0
    for out in outputs:
        width = len(out.checked_type.fields) if isinstance(out.checked_type, TupleType) else 1
        parts: list[Expr] = []
        for i in range(number, number + width):
            parts.append(typed(TupleGetItem(call, i, out.span), types[i]))
        done[id(out)] = retype(Tuple(parts, out.span), out) if isinstance(out.checked_type, TupleType) else parts[0]
        number += width


def _constant(expr: Expr) -> bool:
    return isinstance(expr, Constant) or (isinstance(expr, Tuple) and all(isinstance(f, Constant) for f in expr.fields))


__all__ = ["Lifting", "lift", "region_function", "regions_of"]
