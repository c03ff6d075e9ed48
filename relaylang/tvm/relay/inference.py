"""`tvm.relay.frontend.common`: what an importer of one's own asks about the nodes that it has made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.ir import Expr, Function, IRModule, TensorType, Type, free_vars
from relaylang.ir.expr import var as new_var
from relaylang.tvm.executor import create_executor
from relaylang.typing import check


def infer_type(node: Expr, mod: IRModule | None = None) -> Expr:
    """A node with its type. It may use the functions and types of a module. Raises `RelayError`."""
    made = IRModule.from_expr(node)
    if mod is not None:
        made = IRModule({**mod.functions, **made.functions}, {**mod.type_definitions, **made.type_definitions}, mod.attrs)
    check(made)
    main = made["main"]
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
    given = [params[v.name_hint] for v in function.params]
    return create_executor("debug", mod).evaluate(function)(*given)


__all__ = ["infer_channels", "infer_shape", "infer_type", "infer_value", "new_var"]
