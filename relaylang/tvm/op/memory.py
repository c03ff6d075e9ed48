"""Calls of the operators for memory, which compilers of one's own write, and tuples of such memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.ir import Call, Expr, Tuple, TupleGetItem, TupleType, Type
from relaylang.ops.build import op_call
from relaylang.tvm.op.build import operand


def alloc_storage(size: Any, shape: Any, alignment: Any, virtual_device: Any, dtype_hint: str = "float32") -> Call:
    """A piece of memory of `size` bytes for tensors of a shape: a call of `memory.alloc_storage`."""
    arguments = [operand(size), operand(shape), operand(alignment)]
    return op_call("memory.alloc_storage", arguments, virtual_device=virtual_device, dtype=dtype_hint)


def alloc_tensor(storage: Expr, offset: Any, shape: Any, dtype: str = "float32", assert_shape: Sequence[int] | None = None) -> Call:
    """A tensor in a piece of memory: a call of `memory.alloc_tensor`. `assert_shape` is the shape where `shape` is computed."""
    arguments = [operand(storage), operand(offset), operand(shape)]
    # extents that are known are the constant's, unless the call states them
    known = {"assert_shape": tuple(assert_shape)} if assert_shape is not None else {"const_shape": arguments[2]}
    return op_call("memory.alloc_tensor", arguments, dtype=dtype, **known)


def flatten_tuple_type(ty: Type) -> list[Type]:
    """The types in a tuple's type in order, inner tuples taken apart; another type alone."""
    out: list[Type] = []
    stack = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TupleType):
            stack.extend(reversed(item.fields))
        else:
            out.append(item)
    return out


def from_tuple_type(ty: Type, expr: Expr) -> list[Expr]:
    """The fields of an expression of a type in order, inner tuples taken apart."""
    out: list[Expr] = []
    stack = [(ty, expr)]
    while stack:
        item, value = stack.pop()
        if isinstance(item, TupleType):
            stack.extend((field, TupleGetItem(value, n)) for n, field in reversed(list(enumerate(item.fields))))
        else:
            out.append(value)
    return out


def to_tuple_type(ty: Type, exprs: Sequence[Expr]) -> Expr:
    """The expression of a type that has these fields: the reverse of `from_tuple_type`. Raises `ValueError` for another number."""
    if len(exprs) != len(flatten_tuple_type(ty)):
        raise ValueError(f"the type has {len(flatten_tuple_type(ty))} fields, not {len(exprs)}")
    rest = iter(exprs)
    done: list[list[Expr]] = [[]]
    stack: list[Any] = [ty]
    while stack:
        item = stack.pop()
        if item is None:  # the end of a tuple
            fields = done.pop()
            done[-1].append(Tuple(fields))
        elif isinstance(item, TupleType):
            done.append([])
            stack.append(None)
            stack.extend(reversed(item.fields))
        else:
            done[-1].append(next(rest))
    return done[0][0]


__all__ = ["alloc_storage", "alloc_tensor", "flatten_tuple_type", "from_tuple_type", "to_tuple_type"]
