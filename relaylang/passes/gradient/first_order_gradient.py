"""FirstOrderGradient: return a function's result with the gradients of its parameters.

The program is walked backwards once; each node's gradient is the sum of what its users say. It takes data flow: lets
are dissolved first, branches and function values are not taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    post_order,
)
from relaylang.ir.typed import typed_field
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.blocks import MOST_FIELDS, is_wide, type_of
from relaylang.passes.normal_forms.to_graph_normal_form import to_gnf
from relaylang.passes.rewriting import is_opaque
from relaylang.rules.gradient import RULES, NoGradient
from relaylang.rules.gradient.common import holds_float, ones, plus, zeros
from relaylang.typing import check


def gradient(func: Function, mod: IRModule | None = None) -> Function:
    """A typed function of the same parameters that returns `(result, (gradient of each parameter, ...))`.

    The result's own gradient is 1 everywhere. Raises `RelayError` (R0511) for an expression without a gradient.
    """
    flat = to_gnf(func)
    if not isinstance(flat, Function):
        flat = func
    check(flat, module=mod, fragment=True)
    for of in (flat.body, *flat.params):
        if is_wide(type_of(of)):
            title = f"there is no gradient of a tuple of more than {MOST_FIELDS} parts"
            raise RelayError(error("R0511", title, of.span))
    order = list(post_order(flat.body))
    grads: dict[int, object] = {}
    _add(grads, flat.body, _ones(flat.body))
    active = _active(flat, order)
    for node in reversed(order):
        if id(node) not in grads or id(node) not in active or isinstance(node, Var):
            continue
        grad = grads[id(node)]
        if isinstance(node, Tuple):
            for item, part in zip(node.fields, _parts(grad, node)):
                _add(grads, item, part)
        elif isinstance(node, TupleGetItem):
            _add_field(grads, node.tuple_value, node.index, grad)
        elif isinstance(node, Call) and isinstance(node.op, Op):
            _through(node, grad, grads, active)
        elif not isinstance(node, (Constant, Op)):
            what = type(node).__name__
            raise RelayError(
                error(
                    "R0511",
                    f"there is no first-order gradient through {what}",
                    node.span,
                    notes=["the program must be data flow: calls of operators and tuples"],
                )
            )
    gradients = [_whole(grads.get(id(p)), p) for p in flat.params]
    body = Tuple([flat.body, Tuple(gradients)])
    return Function(flat.params, body, None, flat.type_params, flat.attrs, flat.span)


def _active(func: Function, order: list[Expr]) -> set[int]:
    """The nodes that depend on a parameter: nothing flows back through others."""
    params = {id(p) for p in func.params}
    active: set[int] = set()
    for node in order:
        if id(node) in params:
            active.add(id(node))
            continue
        inner: tuple[Expr, ...] = ()
        if isinstance(node, Call):
            inner = (*node.args, node.op)
        elif isinstance(node, Tuple):
            inner = node.fields
        elif isinstance(node, TupleGetItem):
            inner = (node.tuple_value,)
        elif not isinstance(node, (Constant, Op, Var)):
            active.add(id(node))
        if any(id(c) in active for c in inner):
            active.add(id(node))
    return active


def _through(node: Call, grad: object, grads: dict[int, object], active: set[int]) -> None:
    assert isinstance(node.op, Op)
    rule = RULES.get(node.op.name)
    if rule is None and not holds_float(node.checked_type):
        return
    if rule is None:
        raise RelayError(error("R0511", f"{node.op.name} has no gradient", node.span))
    if isinstance(node.checked_type, TupleType):
        grad = _parts(grad, node)
    try:
        parts = rule(node, grad)
    except NoGradient as problem:
        raise RelayError(error("R0511", f"there is no gradient of {problem}", node.span)) from None
    for arg, part in zip(node.args, parts):
        if part is None or id(arg) not in active:
            continue
        if isinstance(part, list):
            for i, item in enumerate(part):
                _add_field(grads, arg, i, item)
        else:
            _add(grads, arg, part)


def _ones(expr: Expr) -> object:
    ty = expr.checked_type
    if isinstance(ty, TupleType):
        return [_ones(typed_field(expr, i)) for i in range(len(ty.fields))]
    return ones(expr)


def _add(grads: dict[int, object], node: Expr, grad: object) -> None:
    known = grads.get(id(node))
    grads[id(node)] = grad if known is None else _sum(known, grad)


def _sum(a: object, b: object) -> object:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, list) and isinstance(b, list):
        return [_sum(x, y) for x, y in zip(a, b)]
    assert isinstance(a, Expr) and isinstance(b, Expr)
    return plus(a, b)


def _add_field(grads: dict[int, object], node: Expr, index: int, grad: object) -> None:
    ty = node.checked_type
    assert isinstance(ty, TupleType)
    known = grads.setdefault(id(node), [None] * len(ty.fields))
    assert isinstance(known, list)
    known[index] = _sum(known[index], grad)


def _parts(grad: object, node: Expr) -> list:
    """A tuple's gradients, zeros where nothing says one."""
    assert isinstance(grad, list)
    ty = node.checked_type
    assert isinstance(ty, TupleType)
    parts = []
    for i, (part, t) in enumerate(zip(grad, ty.fields)):
        if part is None and isinstance(t, TensorType):
            part = zeros(typed_field(node, i))
        parts.append(part)
    return parts


def _whole(grad: object, node: Expr) -> Expr:
    """A gradient as an expression of the node's type."""
    ty: Type | None = node.checked_type
    if isinstance(ty, TupleType):
        parts = grad if isinstance(grad, list) else [None] * len(ty.fields)
        return Tuple([_whole(part, typed_field(node, i)) for i, part in enumerate(parts)])
    return grad if isinstance(grad, Expr) else zeros(node)


def first_order_gradient(mod: IRModule) -> IRModule:
    """Every function of a typed module returns its result and the gradients of its parameters."""
    new = {gv: f if is_opaque(f) else gradient(f, mod) for gv, f in mod.functions.items()}
    return mod.with_functions(new)


@dataclass(frozen=True)
class FirstOrderGradient(Pass):
    """Return results with the gradients of all parameters: `(result, (gradient, ...))`."""

    def run(self, mod: IRModule) -> IRModule:
        return first_order_gradient(mod)
