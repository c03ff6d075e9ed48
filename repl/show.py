"""How values are shown: tensors as numpy prints them, everything else as Relay text, with the type behind a colon."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.values import Closure, ConstructorValue, RefValue
from relaylang.ir.types import TensorType, TupleType, Type, type_text

_WIDTH = 100
#: How many parts of a tuple, a constructor value or a list are shown.
_MOST = 1000


def show(value: Any, ty: Type | None) -> str:
    """A value and its type. `11 : int32`, `[1. 2.] : Tensor[(2), float32]`; nothing is known of the type: the value's.

    Tensors of more than 1000 elements are summarised as numpy does; of a structure with more than 1000 parts the rest
    is left out with an ellipsis.
    """
    says = type_text(ty) if ty is not None else value_type_text(value)
    if isinstance(value, np.ndarray):
        return _with_type(array_text(value), says)
    text = value_text(value)
    if isinstance(value, tuple) and (len(text) > _WIDTH or "\n" in text):
        fields = ty.fields if isinstance(ty, TupleType) else [None] * len(value)
        lines = [f"  {_indented(show(v, t))}," for v, t in zip(value[:_MOST], fields)]
        lines += ["  ..."] if len(value) > _MOST else []
        return "\n".join(["(", *lines, ")"])
    return _with_type(text, says)


def _with_type(text: str, says: str) -> str:
    return f"{text} : {says}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def array_text(value: np.ndarray) -> str:
    """A tensor as numpy prints it; a scalar without brackets, booleans as Relay writes them."""
    if value.ndim == 0:
        item = value[()]
        return str(bool(item)) if value.dtype == bool else str(item)
    return np.array2string(value, max_line_width=_WIDTH, separator=", ", threshold=1000)


def value_type_text(value: Any) -> str:
    """What a value's type is as far as the value itself tells."""
    match value:
        case np.ndarray():
            return type_text(TensorType(value.shape, value.dtype.name))
        case tuple():
            inner = ", ".join(value_type_text(v) for v in value[:_MOST])
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case ConstructorValue():
            return str(value.constructor.belong_to.name_hint)
        case RefValue():
            return f"ref({value_type_text(value.value)})"
    return "fn"


def value_text(value: Any) -> str:
    """A value as Relay text, without its type: `(1, [2 3])`, `Cons(1, Nil)`, `ref(2)`, `<function of %x, %y>`."""
    out: list[str] = []
    parts = 0
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, _Text):
            out.append(item)
            continue
        parts += 1
        if parts > _MOST:
            # What is open is closed; what is not begun is left out.
            if out[-1:] != ["..."]:
                out.append("...")
            stack = [t for t in stack if isinstance(t, _Text) and t == ")"]
            continue
        match item:
            case np.ndarray():
                out.append(array_text(item))
            case tuple():
                tail = ",)" if len(item) == 1 else ")"
                out.append("(")
                stack.append(_Text(tail))
                stack.extend(_listed(item))
            case ConstructorValue():
                out.append(item.constructor.name_hint)
                if item.fields:
                    out.append("(")
                    stack.append(_Text(")"))
                    stack.extend(_listed(item.fields))
            case RefValue():
                out.append("ref(")
                stack += [_Text(")"), item.value]
            case Closure():
                names = ", ".join(f"%{p.name_hint}" for p in item.function.params)
                out.append(f"<function of {names}>" if names else "<function>")
            case _:
                out.append(f"<{type(item).__name__}>")
    return "".join(out)


class _Text(str):
    """A piece of punctuation among values that are still to be written."""

    __slots__ = ()


def _listed(items: Any) -> list[Any]:
    """Values with commas between them, last first, as a stack takes them."""
    out: list[Any] = []
    for item in reversed(items[: _MOST + 1]):
        out += [item, _Text(", ")]
    return out[:-1]
