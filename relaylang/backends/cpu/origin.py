"""What a kernel is made of, for people: its operators, and the lines of the program that they came from."""

from __future__ import annotations

from relaylang.ir import Call, Function, post_order
from relaylang.ops.record import Op

#: The most operators that a line lists.
_MOST = 8


def calls_of(function: Function) -> list[Call]:
    """The calls of operators in a kernel, in order."""
    return [n for n in post_order(function.body) if isinstance(n, Call) and isinstance(n.op, Op)]


def describe(function: Function) -> str:
    """A kernel in a line: its operators in order."""
    names = [c.op.name for c in calls_of(function)]  # type: ignore[attr-defined]
    shown = " > ".join(names[:_MOST]) + (" ..." if len(names) > _MOST else "")
    return f"{shown}: {function.body.checked_type!r}"


def origins(function: Function) -> list[str]:
    """The lines that a kernel's operators stand in, each with its operators. What compilation added has no line."""
    lines: dict[str, list[str]] = {}
    for call in calls_of(function):
        if call.span is not None:
            place = f"{call.span.source.name}:{call.span.line} {call.span.label}".strip()
            lines.setdefault(place, []).append(call.op.name)  # type: ignore[attr-defined]
    return [f"{place}: {', '.join(names[:_MOST])}" + (", ..." if len(names) > _MOST else "") for place, names in lines.items()]
