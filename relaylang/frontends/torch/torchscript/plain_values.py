"""Operators on plain values: numbers, texts, lists and dicts. Numbers that depend on extents are expressions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Builder, Unsupported
from relaylang.ir import Expr

#: Lists and texts that operators make have at most this many elements.
_LONGEST = 1 << 20


def _short(value: Any) -> Any:
    """The value. Raises `Unsupported` for a number or list beyond all sense."""
    if isinstance(value, (list, str)) and len(value) > _LONGEST:
        raise Unsupported("it makes a list that is too long")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise Unsupported("its result has more than 64 bits")
    return value


def _mul(x: Any, y: Any) -> Any:
    if isinstance(x, (list, str)) and len(x) * max(y, 0) > _LONGEST:
        raise Unsupported("it makes a list that is too long")
    return x * y


def _pow(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int) and abs(x) > 1 and y > 63:
        raise Unsupported("its result has more than 64 bits")
    return x**y


def _div(x: Any, y: Any, rounding_mode: Any = None) -> Any:
    if rounding_mode is None:
        return x / y
    return math.floor(x / y) if rounding_mode == "floor" else math.trunc(x / y)


def _format(text: str, *values: Any) -> str:
    """The text with values in the place of braces. Python's own format would look into objects."""
    parts = text.split("{}")
    shown = [_shown(v) for v in values]
    return "".join(p + (shown[i] if i < len(shown) and i < len(parts) - 1 else "") for i, p in enumerate(parts))


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([_shown(v) if isinstance(v, (int, float, str)) else "?" for v in value[:20]]) + "]"
    return str(value)[:200] if isinstance(value, (int, float, str)) else "?"


def _least(*values: Any) -> Any:
    return min(values[0]) if len(values) == 1 else min(values)


def _most(*values: Any) -> Any:
    return max(values[0]) if len(values) == 1 else max(values)


#: Operators of which all operands are plain, by name.
PLAIN: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": _mul, "div": _div, "floordiv": operator.floordiv, "pow": _pow,
    "remainder": operator.mod, "fmod": math.fmod, "neg": operator.neg, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "abs": abs, "min": _least, "max": _most, "sum": sum,
    "ceil": math.ceil, "floor": math.floor, "round": round, "sqrt": math.sqrt, "log": math.log, "exp": math.exp,
    "log2": math.log2, "log10": math.log10, "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh,
    "__and__": operator.and_, "__or__": lambda x, y: x or y if isinstance(x, bool) else x | y,
    "__xor__": operator.xor, "__not__": operator.not_, "len": len,
    "__lshift__": lambda x, y: _mul(x, 1 << min(y, 64)), "__rshift__": operator.rshift, "__getitem__": lambda x, i: x[i],
    "__contains__": lambda values, x: x in values, "slice": lambda values, start=None, end=None, step=1: values[start:end:step],
    "__range_length": lambda start, stop, step: max(0, -((start - stop) // step)),
    "__derive_index": lambda i, start, step: start + i * step, "format": _format, "str": str, "list": list, "copy": list,
    "keys": list, "values": lambda d: list(d.values()), "items": lambda d: [tuple(i) for i in d.items()], "dict": dict,
    "join": lambda by, values: by.join(values), "lower": str.lower, "upper": str.upper, "startswith": str.startswith,
    "endswith": str.endswith, "isinf": math.isinf, "isnan": math.isnan, "isfinite": math.isfinite, "any": any, "all": all,
    "get": lambda d, key, other=None: d.get(key, other), "sorted": sorted, "Int": int, "Float": float, "Bool": bool,
    "index": lambda values, x: values.index(x), "count": lambda values, x: values.count(x), "bool": bool,
}  # fmt: skip
#: Operators on numbers that depend on extents.
_COMPUTED = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "floordiv": "floor_divide",
    "remainder": "floor_mod",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "__and__": "logical_and",
    "__or__": "logical_or",
    "__not__": "logical_not",
    "min": "minimum",
    "max": "maximum",
    "abs": "abs",
    "div": "divide",
}


def number(b: Builder, value: Any) -> Expr:
    """A number as an expression: int64, float64 or bool."""
    if isinstance(value, Expr):
        return value
    return b.const(value, "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64")


def known(b: Builder, value: Any) -> Any:
    """A number instead of an expression whose value is known."""
    constant = b.value(value) if isinstance(value, Expr) else None
    return value if constant is None or constant.size != 1 else constant.reshape(()).item()


def _compared(b: Builder, name: str, one: Any, other: Any) -> Any:
    """Whether lists of extents are equal, or whether a list has an element."""
    inside = name == "__contains__"
    pairs = [(v, other) for v in one] if inside else list(zip(one, other))
    all_equal: Any = not inside and len(one) == len(other)
    for x, y in pairs if inside or all_equal else []:
        same = x is y or compute(b, "eq", [x, y])
        all_equal = compute(b, "__or__" if inside else "__and__", [all_equal, same])
    return compute(b, "__not__", [all_equal]) if name == "ne" else all_equal


def compute(b: Builder, name: str, args: Sequence[Any]) -> Any:
    """The result of an operator on plain values. Raises `Unsupported` where an extent would have to be known."""
    if name in ("eq", "ne", "__contains__") and any(isinstance(a, list) and any(isinstance(v, Expr) for v in a) for a in args):
        return _compared(b, name, *args)
    if name == "__contains__" and isinstance(args[1], Expr):
        return _compared(b, name, *args)
    if not any(isinstance(a, Expr) for a in args):
        return _short(PLAIN[name](*args))
    if name == "__derive_index":
        return compute(b, "add", [args[1], compute(b, "mul", [args[0], args[2]])])
    if name not in _COMPUTED or not all(isinstance(a, (Expr, int, float)) for a in args):
        raise Unsupported("it depends on an extent that is not known; --shape gives it")
    values = [number(b, a) for a in args]
    if name == "div" or len({b.dtype(v) for v in values}) > 1:
        values = [b.cast(v, "float64") for v in values]
    return known(b, b.op(_COMPUTED[name], *values))


__all__ = ["PLAIN", "compute", "known", "number"]
