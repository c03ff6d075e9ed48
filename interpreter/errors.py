"""What goes wrong while a program runs, and where: the operator, its arguments' types, and the calls that led there."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.diagnostics import RelayError, define_codes, error
from relaylang.interpreter.values import Value, value_type
from relaylang.ir import Expr
from relaylang.source import Span

define_codes(
    {
        "R0401": "wrong number of arguments",
        "R0402": "an argument does not have its parameter's type",
        "R0403": "a value is missing",
        "R0404": "an operator cannot be computed",
        "R0405": "no clause of a match fits",
        "R0406": "no kernel for an operator",
        "R0407": "not a function",
        "R0408": "out of memory",
        "R0409": "a function without a body",
    }
)

_SHOWN_FRAMES = 6


class Trap(Exception):
    """Evaluation stops at a node: a code and a sentence."""

    def __init__(self, code: str, message: str, node: Expr | None = None) -> None:
        self.code = code
        self.message = message
        self.node = node
        super().__init__(message)


def frame_text(function: str, span: Span | None) -> str:
    return f"in {function} at {span}" if span is not None else f"in {function}"


def evaluation_error(
    code: str,
    message: str,
    span: Span | None,
    arguments: Sequence[Value] | None,
    frames: Sequence[tuple[str, Span | None]],
) -> RelayError:
    """An error at a place of the program, with the types of what the operator got and the calls, innermost first."""
    notes = []
    if arguments is not None:
        notes.append(f"the arguments are {', '.join(value_type(a) for a in arguments) or 'none'}")
    shown = [frame_text(*f) for f in frames[:_SHOWN_FRAMES]]
    if len(frames) > _SHOWN_FRAMES + 1:
        shown.append(f"... {len(frames) - _SHOWN_FRAMES - 1} more calls ...")
    if len(frames) > _SHOWN_FRAMES:
        shown.append(frame_text(*frames[-1]))
    notes += shown
    return RelayError(error(code, message, span, notes=notes))
