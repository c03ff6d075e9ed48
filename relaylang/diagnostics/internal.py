"""The diagnostic for a fault of relaylang itself."""

from __future__ import annotations

import os

from relaylang.diagnostics.source import Span
from relaylang.diagnostics.value import Diagnostic, error


def internal(ours: BaseException, where: str = "", span: Span | None = None, *notes: str) -> Diagnostic:
    """R0900 for an exception that nothing raises on purpose: its kind, its words, and the line of our code.

    `where` names the part of the input that was read, such as a layer. `span` is its place.
    """
    place = ours.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    at = f" ({os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno})" if place is not None else ""
    says = " ".join(str(ours).split())[:300]
    title = f"{where}{': ' if where else ''}internal error of relaylang: {type(ours).__name__}: {says}{at}"
    return error(
        "R0900",
        title,
        span,
        notes=[
            *notes,
            "the program may be right; please report this, with the input, the call and `relay --version`",
            "RELAY_TRACEBACK=1 in front of the call shows the traceback, which belongs in the report",
        ],
    )


__all__ = ["internal"]
