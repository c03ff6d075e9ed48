"""The texts of types and names in messages, and the difference of two types as half a sentence."""

from __future__ import annotations

from relaylang.ir.expr import Call, Constructor, Expr, GlobalVar, TupleGetItem, Var
from relaylang.ir.types import ANY, FuncType, TensorType, TupleType, Type, TypeCall, TypeVar, type_children, type_text
from relaylang.ops.record import Op
from relaylang.typing.terms import open_names

_SHOWN = 300


def show(ty: Type) -> str:
    """A type's text, cut where it is long. Types of any depth are shown without writing all of them."""
    if _size(ty, 400) >= 400:
        return _outline(ty)
    text = type_text(ty)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _size(ty: Type, limit: int) -> int:
    count = 0
    stack = [ty]
    while stack and count < limit:
        count += 1
        stack.extend(type_children(stack.pop()))
    return count


def _outline(ty: Type) -> str:
    if isinstance(ty, TupleType):
        return f"(a tuple of {len(ty.fields)})"
    if isinstance(ty, FuncType):
        return f"fn (... {len(ty.arg_types)} arguments) -> ..."
    return f"{type(ty).__name__}(...)"


def _difference_of_tensors(expected: TensorType, actual: TensorType) -> str:
    if expected.dtype != actual.dtype:
        return f"the element type is {actual.dtype}, not {expected.dtype}"
    if len(expected.shape) != len(actual.shape):
        return f"it has {_count(len(actual.shape), 'dimension')}, not {len(expected.shape)}"
    for axis, (want, have) in enumerate(zip(expected.shape, actual.shape)):
        if want != have and want is not ANY and have is not ANY and not (open_names(want) and open_names(have)):
            return f"dimension {axis} is {_dim(have)}, not {_dim(want)}"
    return ""


def difference(expected: Type, found: Type) -> str:
    """In what two types differ, as half a sentence, or nothing where the texts say it all."""
    if isinstance(expected, TensorType) and isinstance(found, TensorType):
        return _difference_of_tensors(expected, found)
    if isinstance(expected, TupleType) and isinstance(found, TupleType):
        if len(expected.fields) != len(found.fields):
            return f"it has {_count(len(found.fields), 'field')}, not {len(expected.fields)}"
        for i, (wanted, has) in enumerate(zip(expected.fields, found.fields)):
            if type(wanted) is not type(has) or (isinstance(wanted, TensorType) and wanted != has):
                inner = difference(wanted, has) if isinstance(wanted, TensorType) else ""
                if inner or type(wanted) is not type(has):
                    return f"field {i} is `{show(has)}`, not `{show(wanted)}`{': ' if inner else ''}{inner}"
    if isinstance(expected, FuncType) and isinstance(found, FuncType):
        if len(expected.arg_types) != len(found.arg_types):
            return f"it takes {_count(len(found.arg_types), 'argument')}, not {len(expected.arg_types)}"
    if isinstance(expected, TypeCall) and isinstance(found, TypeCall) and expected.func is not found.func:
        return "they are two definitions, and types of different names differ"
    return ""


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _dim(dim: object) -> str:
    return dim.name_hint if isinstance(dim, TypeVar) else str(dim)


def name_of(expr: Expr) -> str:
    """The name of an expression in a message."""
    if isinstance(expr, Op):
        return f"`{expr.name}`"
    if isinstance(expr, GlobalVar):
        return f"`@{expr.name_hint}`"
    if isinstance(expr, Var):
        return f"`%{expr.name_hint}`"
    if isinstance(expr, Constructor):
        return f"`{expr.name_hint}`"
    if isinstance(expr, Call):
        return f"the result of {name_of(expr.op)}" if isinstance(expr.op, (Op, GlobalVar, Var, Constructor)) else "a call's result"
    if isinstance(expr, TupleGetItem):
        return f"field {expr.index}"
    return "the function"


def note_of(expected: Type, found: Type) -> tuple[str, ...]:
    """The difference of two types as notes."""
    text = difference(expected, found)
    return (text,) if text else ()


__all__ = ["difference", "name_of", "note_of", "show"]
