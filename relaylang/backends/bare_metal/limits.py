"""A program that needs more memory than its processor has: the kernel at which most is in use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from relaylang.backends.cpu.origin import calls_of
from relaylang.backends.cpu.program import Outside, Program, Run, Slot, Turns, walk
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Function, post_order

#: The most operators that the note lists.
_MOST = 4


def check_workspace(size: int, limit: int, programs: Iterable[Program]) -> None:
    """Raise `RelayError` (R0618) for a workspace over the limit, both in bytes, with the place of the largest kernel."""
    if size <= limit:
        return
    notes: list[str] = []
    span = None
    peak = max((_peak(program) for program in programs), key=lambda peak: peak[0], default=(0, None))
    used, function = peak
    if function is not None:
        calls = [call for f in (function, *_inside(function)) for call in calls_of(f)]
        names = list(dict.fromkeys(call.op.name for call in calls))  # type: ignore[attr-defined]
        span = next((call.span for call in reversed(calls) if call.span is not None), function.span)
        shown = ", ".join(names[:_MOST]) + (", ..." if len(names) > _MOST else "")
        notes.append(f"most is in use at {shown}: {used} bytes")
    raise RelayError(error("R0618", f"a run needs {size} bytes of workspace, and the limit is {limit}", span, notes=notes))


def _inside(function: Function) -> list[Function]:
    """The composites of a region."""
    return [n.op for n in post_order(function.body) if isinstance(n, Call) and isinstance(n.op, Function)]


def _peak(program: Program) -> tuple[int, Function | None]:
    """The most bytes that are in use at once, and the kernel that runs then."""
    items = walk(program.run)
    change = [0] * (len(items) + 1)
    for slot in _slots(items):
        change[slot.first] += slot.bytes
        change[slot.last + 1] -= slot.bytes
    now = 0
    best: tuple[int, Function | None] = (0, None)
    for item, step in zip(items, change):
        now += step
        if now > best[0] and isinstance(item, (Run, Outside, Turns)):
            best = now, item.function
    return best


def _slots(items: Sequence[object]) -> list[Slot]:
    """The slots of the arena. The lives of those that are written over another one are its own."""
    slots: dict[int, Slot] = {}
    for item in items:
        if isinstance(item, (Run, Outside, Turns)):
            own = [*item.outputs, *([item.work] if item.work is not None else [])]
            slots.update({id(s): s for s in own if s.kind == "made" and not s.fixed and s.first >= 0})
    return list(slots.values())


__all__ = ["check_workspace"]
