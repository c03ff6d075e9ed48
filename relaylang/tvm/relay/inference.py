"""`tvm.relay.frontend.common`: what an importer of one's own asks about the nodes that it has made."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error, source
from relaylang.ir import Constant, Expr, Function, GlobalVar, IRModule, TensorType, Type, Var, children, free_vars
from relaylang.ir.expr import var as new_var
from relaylang.ir.types import Any as Unknown
from relaylang.ir.visit import rebuilt
from relaylang.passes.simplify.fold_constant import FoldConstant
from relaylang.tvm import op as operators
from relaylang.tvm.executor import create_executor
from relaylang.tvm.ir.spans import SourceName, Span
from relaylang.tvm.op.build import TupleWrapper
from relaylang.typing import check


def infer_type(node: Expr, mod: IRModule | None = None) -> Expr:
    """A node with its type. It may use the functions and types of a module. Raises `RelayError`."""
    wrapped = IRModule.from_expr(node)
    if mod is not None:
        wrapped = IRModule({**mod.functions, **wrapped.functions}, {**mod.type_definitions, **wrapped.type_definitions}, mod.attrs)
    check(wrapped)
    main = wrapped["main"]
    return main if isinstance(node, Function) else main.body


def infer_shape(inputs: Expr, mod: IRModule | None = None) -> tuple[Any, ...] | Type | None:
    """The shape of a tensor; the type of another value. Raises `RelayError`."""
    ty = infer_type(inputs, mod).checked_type
    return ty.shape if isinstance(ty, TensorType) else ty


def infer_channels(inputs: Expr, transpose: bool = False) -> Any:
    """The number of channels that a weight makes: its first extent, the second one of a transposed convolution's."""
    shape = infer_shape(inputs)
    assert isinstance(shape, tuple)
    return shape[1 if transpose else 0]


def infer_value(input_val: Expr, params: Mapping[str, Any], mod: IRModule | None = None) -> Any:
    """The value of an expression whose free variables have values by name. Raises `RelayError`."""
    function = Function(free_vars(input_val), input_val)
    values = [params[v.name_hint] for v in function.params]
    return create_executor("debug", mod).evaluate(function)(*values)


def try_infer_value(
    val: Any,
    on_success: Callable[[Any], Any] | None = None,
    on_failure: Callable[[], Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Any, bool]:
    """The value of an expression and True, or the expression (the result of `on_failure`) and False.

    `on_success` converts the value. An expression with variables that `parameters` lack has no value.
    """
    params = parameters or {}
    if isinstance(val, Expr) and all(v.name_hint in params for v in free_vars(val)):
        value = infer_value(val, params).numpy()
        return (on_success(value) if on_success is not None else value), True
    return (on_failure() if on_failure is not None else val), False


def fold_constant(node: Expr, mod: IRModule | None = None) -> Expr:
    """The expression with its constant parts computed. It may use the functions and types of a module."""
    wrapped = IRModule.from_expr(node)
    if mod is not None:
        wrapped = IRModule({**mod.functions, **wrapped.functions}, {**mod.type_definitions, **wrapped.type_definitions}, mod.attrs)
    main = FoldConstant()(wrapped)["main"]
    return main if isinstance(node, Function) else main.body


def shape_of(x: Expr, dtype: str = "int64", start: int | None = None, end: int | None = None) -> Expr:
    """The shape of a tensor: a constant where all extents are numbers, a call of `shape_of` otherwise.

    `start` and `end` take a part of it.
    """
    shape = infer_shape(x)
    if isinstance(shape, tuple) and not any(isinstance(extent, Unknown) for extent in shape):
        return Constant(np.array([int(extent) for extent in shape][start:end], dtype))
    extents: Expr = operators.shape_of(x, dtype)
    if start is None and end is None:
        return extents
    assert isinstance(shape, tuple)
    first, last, _ = slice(start, end).indices(len(shape))
    return operators.strided_slice(extents, [first], [last])


def get_relay_op(op_name: str) -> Callable[..., Any]:
    """The function that makes calls of an operator, by its name without a prefix: `softmax` finds `relay.nn.softmax`.

    Raises `RelayError` (R0203) where no function has the name.
    """
    if "." in op_name:
        prefix, _, name = op_name.rpartition(".")
        homes = [prefix.removeprefix("relay.").removeprefix("op.")]
    else:
        name, homes = op_name, ["", "nn", "image", "vision", "contrib"]
    for home in homes:
        function = getattr(getattr(operators, home) if home else operators, name, None)
        if function is not None:
            return function
    raise RelayError(error("R0203", f"there is no operator {op_name}", notes=["relaylang.op lists the functions of operators"]))


def set_span(sym: Any, node_name: str | source.Span) -> Any:
    """Give a place, or the name of a layer, to the nodes of an expression that have none. Lists give lists.

    Below a node with a place, all nodes keep theirs. Variables and operators stay as they are.
    """
    if isinstance(sym, (list, tuple)):
        return type(sym)([set_span(one, node_name) for one in sym])
    if isinstance(sym, TupleWrapper):
        return TupleWrapper(set_span(sym.tuple_value, node_name), sym.size)
    span = node_name if isinstance(node_name, source.Span) else Span(SourceName(node_name), 0, 0, 0, 0)
    done: dict[int, Expr] = {}
    stack = [sym]
    while stack:
        node = stack[-1]
        if node.is_record or node.span is not None or isinstance(node, (Var, GlobalVar)):
            done[id(node)] = node
        open_children = [] if id(node) in done else [c for c in children(node) if id(c) not in done]
        if open_children:
            stack += open_children
            continue
        stack.pop()
        if id(node) not in done:
            new = rebuilt(node, done)
            placed = copy.copy(node) if new is node else new
            placed.span = span
            done[id(node)] = placed
    return done[id(sym)]


__all__ = [
    "fold_constant",
    "get_relay_op",
    "infer_channels",
    "infer_shape",
    "infer_type",
    "infer_value",
    "new_var",
    "set_span",
    "shape_of",
    "try_infer_value",
]
