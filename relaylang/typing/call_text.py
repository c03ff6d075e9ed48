"""The text of a call that was built, not read: what an error about it shows, since it stands nowhere."""

from __future__ import annotations

from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir.expr import Call, Constant, Constructor, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from relaylang.ops.record import Op

#: How many operands of a call or fields of a tuple are written.
_MOST = 12


def call_span(call: Call) -> Span:
    """Where a call is written; where it is not, the whole of its text."""
    if call.span is not None:
        return call.span
    operands = _several([_operand(a) for a in call.args])
    text = f"{_callee(call.op)}({', '.join([*operands, *_attributes(call)])})"
    return Span(SourceFile("<built>", text), 0, len(text))


def _several(texts: list[str]) -> list[str]:
    return texts if len(texts) <= _MOST else [*texts[:_MOST], "..."]


def _callee(op: Expr) -> str:
    return "function" if isinstance(op, Function) else _operand(op)


def _operand(expr: Expr) -> str:
    match expr:
        case Var():
            return f"%{expr.name_hint}"
        case GlobalVar():
            return f"@{expr.name_hint}"
        case Constructor():
            return expr.name_hint
        case Op():
            return expr.name
        case Constant():
            return str(expr.data.item()) if expr.data.ndim == 0 else "const(...)"
        case Tuple():
            return f"({', '.join(_several([_part(f) for f in expr.fields]))}{',' if len(expr.fields) == 1 else ''})"
        case TupleGetItem():
            return f"{_part(expr.tuple_value)}.{expr.index}"
        case Function():
            return "fn (...) { ... }"
    return _part(expr)


def _part(expr: Expr) -> str:
    match expr:
        case Var() | GlobalVar() | Constructor() | Constant():
            return _operand(expr)
        case Call(op=op) if isinstance(op, (Op, Var, GlobalVar, Constructor)):
            return f"{_callee(op)}(...)"
    return "..."


def _attributes(call: Call) -> list[str]:
    """The attributes that are not what they are when nobody gives them."""
    if not isinstance(call.op, Op) or call.attrs is None:
        return []
    attributes = {name: getattr(call.attrs, name, field.default) for name, field in call.op.schema.items()}
    return [f"{n}={_value(v)}" for n, v in attributes.items() if v != call.op.schema[n].default]


def _value(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_several([_value(v) for v in value]))}]"
    return str(value) if isinstance(value, (bool, int, float)) or value is None else "..."


__all__ = ["call_span"]
