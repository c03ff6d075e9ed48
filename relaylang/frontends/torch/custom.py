"""Conversions that a caller brings: TVM's `custom_convert_map`.

A conversion is called with the operator's arguments and their types by name, and gives a Relay expression, or a list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.torch.pt2 import DType
from relaylang.ir import Call, Constant, Expr, Tuple, TupleGetItem, TupleType, children
from relaylang.ir.typed import typed, typed_constant
from relaylang.ops.record import Op
from relaylang.typing import type_of

#: `convert(inputs, input_types)`, as in TVM. Names are those of TorchScript: "aten::add", "mylib::blur".
Custom = Callable[[list[Any], list[str]], Any]


def find(converters: Mapping[str, Custom], target: str) -> Custom | None:
    """The conversion of an operator such as `aten.add.Tensor`, by its name with or without the overload."""
    if not converters or target.count(".") < 1:
        return None
    space, name, *overload = target.split(".", 2)
    full = f"{space}::{name}"
    return converters.get(".".join([full, *overload])) or converters.get(full)


def kind_of(b: Builder, value: Any) -> str:
    """TVM's name of an argument's type: the element type of a tensor, or the kind of another value."""
    if isinstance(value, Expr):
        return "tuple" if isinstance(value.checked_type, TupleType) else b.dtype(value)
    if isinstance(value, DType):
        return "int32"
    names = {bool: "bool", int: "int32", float: "float32", str: "str", list: "ListType", tuple: "ListType"}
    return names.get(type(value), "optional")


def convert(b: Builder, custom: Custom, values: Sequence[Any]) -> Any:
    """The results of a conversion with their types: one expression, or a list of them."""
    inputs = [v.name if isinstance(v, DType) else v for v in values]
    converted = custom(list(inputs), [kind_of(b, v) for v in values])
    if isinstance(converted, (list, tuple)) and not isinstance(converted, Expr):
        return [adopt(b, m) for m in converted]
    adopted = adopt(b, converted)
    return b.fields(adopted) if isinstance(adopted.checked_type, TupleType) else adopted


def adopt(b: Builder, made: Any) -> Expr:
    """An expression that was built elsewhere, with the types of its nodes."""
    root = made if isinstance(made, Expr) else getattr(made, "tuple_value", None)
    if not isinstance(root, Expr):
        raise Unsupported("its own conversion does not give a Relay expression")
    pending = [(root, False)]
    while pending:
        node, ready = pending.pop()
        if node.checked_type is not None:
            continue
        if not ready:
            pending.append((node, True))
            pending += [(c, False) for c in children(node) if not isinstance(c, Op)]
        else:
            _give(b, node)
    return root


def _give(b: Builder, node: Expr) -> None:
    """The type of a node whose operands have theirs."""
    if isinstance(node, Call) and isinstance(node.op, Op):
        b.type_call(node)
    elif isinstance(node, Constant):
        typed(node, typed_constant(node.data).checked_type)
    elif isinstance(node, Tuple):
        typed(node, TupleType([f.checked_type for f in node.fields if f.checked_type is not None]))
    elif isinstance(node, TupleGetItem) and isinstance(node.tuple_value.checked_type, TupleType):
        typed(node, node.tuple_value.checked_type.fields[node.index])
    else:
        type_of(node)


__all__ = ["Custom", "adopt", "convert", "find", "kind_of"]
