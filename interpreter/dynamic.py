"""Calls whose types hold `?`: the operator's relation looks at the values before its kernel does.

The checker cannot compare extents that are not known. So the same relation runs again, with the types of the values.
A refusal is an error at the call, in the words that the checker has for known extents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError
from relaylang.interpreter.values import is_tensor
from relaylang.ir import Call, Expr, TensorType, TupleType, Type
from relaylang.ops.domains import problem_of
from relaylang.ops.record import Op, RelationError
from relaylang.typing.operators import Context, need_taken
from relaylang.typing.solver import Solver


def is_static(ty: Type | None) -> bool:
    """Whether a type is a tensor's, or a tuple's of tensors, with known extents."""
    stack = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TupleType):
            stack.extend(item.fields)
        elif not isinstance(item, TensorType) or not all([isinstance(d, int) for d in item.shape]):
            return False
    return True


def guarded(kernel: Kernel, op: Op, node: Expr) -> Kernel:
    """A kernel that looks at the types of its operands, where the program leaves them open."""
    if not isinstance(node, Call) or all([is_static(a.checked_type) for a in node.args]):
        return kernel
    fine: set[Any] = set()

    def run(attrs: Any, *inputs: Any) -> Any:
        key = tuple([_key(x) for x in inputs])
        if key not in fine:
            _check(op, attrs, inputs)
            fine.add(key)
        return kernel(attrs, *inputs)

    return run


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_key(v) for v in value])
    return (value.shape, value.dtype) if is_tensor(value) else None


def _check(op: Op, attrs: Any, inputs: tuple[Any, ...]) -> None:
    types = [_type(x) for x in inputs]
    known = [ty for ty in types if ty is not None]
    if len(known) != len(types):
        return  # a function, a reference or a data type: the checker has seen what it is
    context = Context(Solver())
    context.types = known
    try:
        wrong = problem_of(op, attrs, known) if attrs is not None else None
        if wrong is not None:
            raise RelationError(*wrong)
        op.rel(known, attrs, context)
        need_taken(op, known)
    except RelationError as problem:
        raise KernelError(_said(op, problem)) from None
    except ArithmeticError:
        raise KernelError("an attribute is 0, or too large, where it must not be") from None


def _said(op: Op, problem: RelationError) -> str:
    arg = problem.arg
    if arg is None:
        return problem.message
    word = f" ({op.args[arg]})" if arg < len(op.args) else ""
    return f"argument {arg + 1}{word} {problem.message}"


def _type(value: Any) -> Type | None:
    if isinstance(value, tuple):
        fields = [_type(v) for v in value]
        known = [f for f in fields if f is not None]
        return TupleType(known) if len(known) == len(fields) else None
    if not is_tensor(value):
        return None
    return TensorType(value.shape, "bool" if value.dtype == np.bool_ else value.dtype.name)


__all__ = ["guarded", "is_static"]
