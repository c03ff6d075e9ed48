"""A program that needs more memory than its processor has: the kernel at which most is in use."""

from __future__ import annotations

from collections.abc import Iterable

from relaylang.backends.cpu.memory import most_in_use
from relaylang.backends.cpu.program import Program
from relaylang.diagnostics import RelayError, error


def check_workspace(size: int, limit: int, programs: Iterable[Program]) -> None:
    """Raise `RelayError` (R0618) for a workspace over the limit, both in bytes, with the place of the largest kernel."""
    if size > limit:
        span, notes = most_in_use(programs)
        raise RelayError(error("R0618", f"a run needs {size} bytes of workspace, and the limit is {limit}", span, notes=notes))


__all__ = ["check_workspace"]
