"""Errors of running programs, with their places: the operator, its arguments' types, and the calls that led there."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import Span
from relaylang.ir import Expr

_SHOWN_FRAMES = 6


class Trap(Exception):
    """Evaluation stops at a node: a code, a sentence and notes."""

    def __init__(self, code: str, message: str, node: Expr | None = None, notes: Sequence[str] = ()) -> None:
        self.code = code
        self.message = message
        self.node = node
        self.notes = notes
        super().__init__(message)


class Fault(ValueError):
    """A step cannot be done: a code and a sentence. The evaluator adds the place."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def frame_text(function: str, span: Span | None) -> str:
    return f"in {function} at {span}" if span is not None else f"in {function}"


def evaluation_error(
    code: str,
    message: str,
    span: Span | None,
    types: Sequence[str] | None,
    frames: Sequence[str],
    notes: Sequence[str] = (),
) -> RelayError:
    """An error at a place of the program, with the types of the operands and the calls (see `call_stack`)."""
    said = list(notes)
    if types:
        said.append(f"the {'argument is' if len(types) == 1 else 'arguments are'} {', '.join(types)}")
    return RelayError(error(code, message, span, notes=[*said, *frames]))


def call_stack(here: tuple[str, Span | None], callers: Sequence[tuple[str, Span | None]]) -> list[str]:
    """The active calls as text, innermost first: those next to the place and the outermost. `callers` is given from the
    outermost in and not copied, so that this works where memory is short."""
    shown = [frame_text(*here)]
    shown += [frame_text(*callers[-i]) for i in range(1, min(_SHOWN_FRAMES, len(callers) + 1))]
    left = len(callers) + 1 - _SHOWN_FRAMES
    if left > 1:
        shown.append(f"... {left - 1} more calls ...")
    if left > 0:
        shown.append(frame_text(*callers[0]))
    return shown
