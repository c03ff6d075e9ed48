"""FoldConstant: compute constant expressions.

The evaluator that the caller gives computes calls of operators on constants. Fields of known tuples, branches on known
conditions and lets of constants are resolved. So are shapes and sizes of tensors with known shapes. Operators with
hidden state, fused kernels and dropout (SimplifyInference removes it) stay as they are. So do calls without arguments
(`zeros`), whose constant would only be larger. A constant in `on_device` is one; it takes the annotation along to where
it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np

from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
    rebuilt,
)
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import typed, typed_constant, typed_tuple
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_primitive, per_function
from relaylang.rules.dynamic_to_static import RULES as DYNAMIC
from relaylang.rules.dynamic_to_static import static_call
from relaylang.rules.work import elements, work
from relaylang.services import service
from relaylang.typing import check, infer

_P = TypeVar("_P", IRModule, Expr)
#: `(call, arrays)` to an array or a tuple of arrays; None where it cannot be computed.
Compute = Callable[[Call, list[Any]], Any]
#: The steps that one run may compute. A step takes a few nanoseconds.
STEPS = 1 << 34
#: Results with more elements are computed only where they are no larger than their operands.
_LARGE = 1 << 24


def fold_constant(program: _P, compute: Compute, fold_qnn: bool = False) -> _P:
    """A typed module or expression with constants folded. `fold_qnn`: also operators of the qnn dialect."""
    if isinstance(program, IRModule):
        return per_function(program, lambda f: fold_expr(f, compute, fold_qnn))  # type: ignore[return-value]
    return fold_expr(program, compute, fold_qnn)


def _placed(expr: Expr) -> Expr:
    """What `on_device` says the place of, at whatever depth."""
    while isinstance(expr, Call) and isinstance(expr.op, Op) and Trait.PLACEMENT in expr.op.traits:
        expr = expr.args[0]
    return expr


def _value(expr: Expr) -> Any:
    """An array, or a tuple of such, that an expression of constants stands for; None for another expression."""
    expr = _placed(expr)
    if isinstance(expr, Constant):
        return expr.data
    if isinstance(expr, Tuple):
        fields = [_value(f) for f in expr.fields]
        return None if any(f is None for f in fields) else tuple(fields)
    return None


def _expression(value: Any, ty: Type | None) -> Expr:
    """Constants for a value, with the most exact type."""
    if isinstance(value, tuple):
        types = ty.fields if isinstance(ty, TupleType) and len(ty.fields) == len(value) else [None] * len(value)
        return typed_tuple([_expression(v, t) for v, t in zip(value, types)])
    array = np.asarray(value)
    return typed_constant(array, ty.dtype if isinstance(ty, TensorType) else array.dtype.name)


def _folded(node: Expr, new: Expr, constants: Mapping[Var, Expr], compute: Compute, fold_qnn: bool) -> Expr:
    """The folded node, with the place of the node; a let of a constant is its body."""
    if isinstance(node, Let) and isinstance(new, Let):
        folded = new.body if node.variable in constants else new
    else:
        folded = fold_node(node, new, compute, fold_qnn)
    if folded.span is None and folded is not new and not isinstance(folded, Op):
        folded.span = node.span
    return folded


def fold_expr(expr: Expr, compute: Compute, fold_qnn: bool = False) -> Expr:
    """One typed expression with constants folded."""
    done: dict[int, Expr] = {}
    looser: set[int] = set()  # nodes whose type is more exact than before: what uses them is typed anew
    bound_to: dict[int, list[Var]] = {}  # a let's value stands before its body in post-order
    order = list(post_order(expr))
    lets = [node for node in order if isinstance(node, Let)]
    for let in lets:
        bound_to.setdefault(id(let.value), []).append(let.variable)
    constants: dict[Var, Expr] = {let.variable: let.value for let in lets if isinstance(_placed(let.value), Constant)}
    closed = _closed(order, expr)
    for node in order:
        if isinstance(node, Var):
            done[id(node)] = constants.get(node, node)
            if id(constants.get(node)) in looser:
                looser.add(id(node))
            continue
        old = children(node)
        if not old:
            done[id(node)] = node
            continue
        new = rebuilt(node, done)
        if new is not node and not any([id(c) in looser for c in old]):
            typed(new, node.checked_type)
        if id(node) in closed:
            done[id(node)] = new
            continue
        folded = _folded(node, new, constants, compute, fold_qnn)
        if folded.checked_type is None or folded.checked_type != node.checked_type:
            looser.add(id(node))
        done[id(node)] = folded
        for var in bound_to.get(id(node), ()):
            if isinstance(_placed(folded), Constant):
                constants[var] = folded
                if id(node) in looser:
                    looser.add(id(folded))
    return done[id(expr)]


def _closed(order: Sequence[Expr], root: Expr) -> set[int]:
    """The nodes inside kernels, which stay as they are, by id."""
    kernels = [node for node in order if isinstance(node, Function) and is_primitive(node) and node is not root]
    return {id(n) for kernel in kernels for n in post_order(kernel) if not isinstance(n, (Op, Constant))}


def fold_node(old: Expr, new: Expr, compute: Compute, fold_qnn: bool) -> Expr:
    """A node with folded operands, `new`, as a constant where it is one. It stands for the node `old`."""
    if isinstance(new, Call):
        return _fold_call(old, new, compute, fold_qnn)
    if isinstance(new, TupleGetItem):
        source = _placed(new.tuple_value)
        if isinstance(source, Tuple):
            return _placed_alike(source.fields[new.index], new.tuple_value)
    if isinstance(new, If):
        cond = _placed(new.cond)
        if isinstance(cond, Constant) and cond.data.ndim == 0:
            return new.true_branch if bool(cond.data) else new.false_branch
    return new


def _placed_alike(field: Expr, source: Expr) -> Expr:
    """A tuple's field where the tuple is."""
    if not isinstance(source, Call) or _placed(field) is not field:
        return field
    return typed(Call(source.op, [field], source.attrs, (), source.span), field.checked_type)


def _fold_call(old: Expr, new: Call, compute: Compute, fold_qnn: bool) -> Expr:
    op = new.op
    if not isinstance(op, Op) or op.stateful or not new.args:
        return new
    # A constant is in no kernel: nothing is in front of a separation behind it.
    if Trait.BARRIER in op.traits and Trait.SEPARATION not in op.traits:
        return new
    if op.name.startswith("qnn.") and not fold_qnn:
        return new
    assert isinstance(old, Call)
    if Trait.EXTENTS in op.traits:
        shape = static_shape(new.args[0].checked_type or old.args[0].checked_type)
        if shape is not None:
            ty = old.checked_type
            value = np.asarray(prod(shape) if isinstance(ty, TensorType) and not ty.shape else shape)
            return _expression(value.astype(getattr(new.attrs, "dtype", None) or "int32"), ty)
    values = []
    for arg in new.args:
        value = _value(arg)
        if value is None:
            return new
        values.append(value)
    result = compute(new, values)
    return new if result is None else _expression(result, old.checked_type)


def evaluator(steps: int = STEPS) -> Compute:
    """What computes calls of operators on constants: the interpreter, for at most so many steps. Later calls stay calls.

    A call stays one, too, whose result would have more than 2**24 elements, and more than its operands.
    """
    compute: Compute = service("evaluate a call")
    used = 0

    def bounded(call: Call, values: list[Any]) -> Any:
        nonlocal used
        if isinstance(call.op, Op) and call.op.name in DYNAMIC:  # its type tells no size
            static = static_call(call, values)
            if static is None or any(d.severity == "error" for d in infer(static, fragment=True)):
                return None
            known = dict(zip(map(id, call.args), values))
            call, values = static, [known.get(id(a), _value(a)) for a in static.args]
        if elements(call.checked_type) > max(_LARGE, sum([elements(a.checked_type) for a in call.args])):
            return None
        used += work(call)
        return compute(call, values) if used <= steps else None

    return bounded


def fold_typed(expr: Expr, mod: IRModule | None = None, fold_qnn: bool = False) -> Expr:
    """An expression, typed in a module, with its constants folded. Raises `RelayError` where it is not well-typed."""
    check(expr, module=mod, fragment=True)
    return fold_expr(expr, evaluator(), fold_qnn)


@dataclass(frozen=True)
class FoldConstant(Pass):
    """Compute constant expressions. `fold_qnn`: compute operators of the qnn dialect, too."""

    fold_qnn: bool = False

    opt_level = 2

    def run(self, mod: IRModule) -> IRModule:
        return fold_constant(mod, evaluator(), self.fold_qnn)
