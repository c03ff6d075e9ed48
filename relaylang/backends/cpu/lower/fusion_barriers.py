"""What fusion keeps apart: values of bound parameters, values that are put together in memory, and narrow numbers.

All would cost more inside a kernel. A value of parameters alone (a normalisation's factor) is computed once, when the
program is loaded. A concatenation whose operands are results of kernels takes no time at all, if these write it. A sum widens
numbers while it reads them, so the kernel before it writes a quarter of the bytes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.lower import ASSEMBLIES, RESHAPES
from relaylang.backends.cpu.lower.fusion import pattern_of
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
    rewrite,
)
from relaylang.ir.typed import retype, typed, typed_var
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.sizes import usual
from relaylang.ops.build import op_call
from relaylang.ops.record import Op, OpPattern
from relaylang.passes.rewriting import is_primitive
from relaylang.rules.decompositions.common import dtype_of, shape_of

#: A value of parameters with so many times their elements is computed where it is used.
_GROWTH = 2


def held_apart(function: Function, bound: Collection[str]) -> Function:
    """Let no kernel compute what depends on the parameters named in `bound` alone, unless that is a single number."""
    held: set[int] = {id(p) for p in function.params if p.name_hint in bound}
    apart: set[int] = set()
    order = post_order(function.body)
    for node in order:
        parts = [c for c in children(node) if not isinstance(c, Op)]
        if isinstance(node, Constant):
            held.add(id(node))
        elif isinstance(node, (Call, Tuple, TupleGetItem)) and parts and all(id(c) in held for c in parts) and not _grows(node):
            held.add(id(node))
        else:
            apart.update(id(c) for c in parts if id(c) in held and isinstance(c, Call) and _size(c) > 1)

    return _separated(function, apart)


def narrow_apart(function: Function) -> Function:
    """Let the kernels of reductions, not those of products before them, widen numbers."""
    users: dict[int, list[Expr]] = {}
    products: set[int] = set()
    casts: list[Call] = []
    for node in post_order(function.body):
        for child in children(node):
            users.setdefault(id(child), []).append(node)
        if not isinstance(node, Call) or not isinstance(node.op, Op):
            continue
        pattern = pattern_of(node.op)
        behind = pattern <= OpPattern.BROADCAST and any(id(arg) in products for arg in node.args)
        if pattern == OpPattern.OUT_ELEMWISE_FUSABLE or behind:
            products.add(id(node))
        if node.op.name == "cast" and id(node.args[0]) in products:
            before, after = (SIZES.get(dtype_of(value), 0) for value in (node.args[0], node))
            if 0 < before < after:
                casts.append(node)
    apart = {
        id(cast.args[0])
        for cast in casts
        if all(
            isinstance(user, Call) and isinstance(user.op, Op) and pattern_of(user.op) == OpPattern.COMM_REDUCE
            for user in users.get(id(cast), [function])
        )
    }
    return _separated(function, apart)


def _separated(function: Function, apart: Collection[int]) -> Function:
    """A function in which no kernel reaches over the nodes of these ids."""

    def separate(old: Expr, new: Expr) -> Expr:
        new = retype(new, old)
        return typed(op_call("annotation.stop_fusion", [new]), old.checked_type) if id(old) in apart else new

    return _with_body(function, rewrite(function.body, separate)) if apart else function


def _with_body(function: Function, body: Expr) -> Function:
    return retype(Function(function.params, body, function.ret_type, (), function.attrs, function.span), function)


def _size(node: Expr) -> int:
    """The elements of a tensor; 0 where the node is none, or has an unknown extent."""
    shape = shape_of(node)
    return math.prod(shape) if shape is not None else 0


def _grows(node: Expr) -> bool:
    if not isinstance(node, Call):
        return False
    operands = [f for a in node.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
    return usual(_size(node)) > _GROWTH * max(1, usual(sum(_size(a) for a in operands)))


def assembled_apart(function: Function) -> Function:
    """Give concatenations and paddings inside kernels a kernel of their own, where other kernels make their operands.

    These write them in place (`views`); the kernel then reads one tensor, not one of several for each element.
    """

    def cut(old: Expr, new: Expr) -> Expr:
        new = retype(new, old)
        return retype(_cut(new), old) if isinstance(new, Call) and is_primitive(new.op) else new

    return _with_body(function, rewrite(function.body, cut))


def _cut(call: Call) -> Call:
    """The call of a kernel, with its assemblies as kernels of their own."""
    inner = call.op
    assert isinstance(inner, Function)
    values = dict(zip(inner.params, call.args))
    assemblies = {id(n) for n in post_order(inner.body) if n is not inner.body and _is_apart(n, values)}
    if not assemblies:
        return call
    params: list[Var] = []
    args: list[Expr] = []

    def replace(old: Expr, new: Expr) -> Expr:
        if id(old) not in assemblies:
            return retype(new, old)
        own = [n for n in post_order(old) if isinstance(n, Var)]
        kernel = _kernel(own, old, old.checked_type, {"Primitive": 1})
        params.append(typed_var(f"whole{len(params)}", old.checked_type))
        args.append(retype(Call(kernel, [values[p] for p in own]), old))
        return params[-1]

    body = rewrite(inner.body, replace)
    used = {n for n in post_order(body) if isinstance(n, Var)}
    kept = [p for p in inner.params if p in used]
    kernel = _kernel([*kept, *params], body, inner.ret_type, {k: v for k, v in inner.attrs.items() if k == "Primitive"})
    return Call(kernel, [*[values[p] for p in kept], *args])


def _kernel(params: Sequence[Var], body: Expr, result: Any, attrs: Mapping[str, Any]) -> Function:
    """A typed function of typed parameters."""
    types = [p.checked_type or p.type_annotation for p in params]
    return typed(Function(params, body, result, (), attrs), FuncType(types, result))  # type: ignore[arg-type]


def _is_apart(node: Expr, definitions: dict[Var, Expr]) -> bool:
    """Whether a node inside a kernel puts together what other kernels make."""
    if not (isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in ASSEMBLIES):
        return False
    first, *others = node.args
    operands: Sequence[Expr] = first.fields if isinstance(first, Tuple) else (first,)
    operands = [_reshaped(v) for v in operands]
    return all(isinstance(v, Var) and _is_made(definitions[v]) for v in operands) and all(
        isinstance(o, Constant) or (isinstance(o, Var) and isinstance(definitions[o], Constant)) for o in others
    )


def _reshaped(value: Expr) -> Expr:
    """What a value has the elements of, in another shape."""
    while isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in RESHAPES:
        value = value.args[0]
    return value


def _is_made(value: Expr) -> bool:
    value = value.tuple_value if isinstance(value, TupleGetItem) else value
    return isinstance(value, Call)
