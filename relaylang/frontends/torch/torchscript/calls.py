"""Calls of PyTorch's operators on tensors: their conversions come from the tables of `families/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Builder, Table, Unsupported
from relaylang.frontends.torch.node import Node
from relaylang.frontends.torch.pt2 import Node as Call
from relaylang.frontends.torch.torchscript.node import ScriptNode
from relaylang.frontends.torch.torchscript.quantised import SCALED, quantised, scaled
from relaylang.frontends.torch.torchscript.schemas import Schema, overload_of
from relaylang.frontends.torch.torchscript.values import Tensor
from relaylang.frontends.torch.torchscript.views import note_view
from relaylang.ir import Expr

#: Operators that give their operand itself where there is nothing to do.
_SAME = frozenset(
    "contiguous to dropout feature_dropout detach alias reshape type_as expand_as flatten squeeze view data".split()
)


def plain(value: Any) -> Any:
    """An argument as conversions take it: expressions in the place of tensors."""
    if isinstance(value, Tensor):
        return value.read()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def wrapped(value: Any) -> Any:
    """A result as the program holds it: tensors in the place of expressions."""
    if isinstance(value, Expr):
        return Tensor(value)
    if isinstance(value, (list, tuple)):
        return [wrapped(v) for v in value]
    return value


def convert(b: Builder, rules: Table, name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """The result of `aten.name`. Raises `Unsupported`."""
    if name in SCALED:
        return scaled(b, name, args, named)
    rule, inplace = rules.find(f"aten.{name}"), False
    if rule is None and name.endswith("_") and not name.endswith("__"):
        rule, inplace, name = rules.find(f"aten.{name[:-1]}"), True, name[:-1]
    elif name.endswith("_") and not name.startswith("__"):
        inplace = True
    if rule is None:
        raise Unsupported
    found = overload_of(name, args, named) or overload_of(name.removesuffix("_"), args, named)
    if found is None:
        raise Unsupported("its arguments fit none of the overloads that are known")
    schema, bound = found
    special = quantised(b, rule.convert, schema, bound)
    made = special if special is not None else _apply(b, rule.convert, schema, bound)
    target = next(iter(bound.values()), None)
    if inplace and isinstance(target, Tensor) and isinstance(made, Tensor):
        target.write(_like(b, made.value, target))
        return target
    return made


def _like(b: Builder, value: Expr, target: Tensor) -> Expr:
    """A value with the element type of the tensor that takes it."""
    return b.cast(value, b.dtype(target.value))


def _apply(b: Builder, rule: Callable[[Node], Any], schema: Schema, bound: dict[str, Any]) -> Any:
    call = Call(f"aten.{schema.operator}.{schema.overload}", {n: plain(v) for n, v in bound.items()}, ())
    result = rule(ScriptNode(b, call))
    if schema.results == "1" and isinstance(result, (list, tuple)):
        result = result[0]
    made = wrapped(result)
    first = next(iter(bound.values()), None)
    if isinstance(first, Tensor):
        if schema.operator in _SAME and isinstance(made, Tensor) and made.value is first.value:
            return first
        note_view(b, schema.operator, first, made, bound)
    return made


__all__ = ["convert", "plain", "wrapped"]
