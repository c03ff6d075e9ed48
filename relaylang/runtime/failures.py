"""How a run of compiled code says that it failed: a record at the end of its memory, and the error that the record means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.faults import fault_text
from relaylang.diagnostics.source import SourceFile, Span

#: The bytes at the end of the arena that say how a run failed. The first two words of 32 bits are the number and the result
#: of external code, or an error's number below 0 and the number of the site. Numbers of 64 bits follow for the sentence.
STATUS = 64
#: The errors of functions in C, in the order of their numbers from 1 on.
ERRORS: dict[str, str] = {
    "MEMORY": "there is no memory for the workspace",
    "ALIGNMENT": "the workspace is at no multiple of 64",
    "WEIGHTS": "the weights are not those of this program, or lie at no multiple of 64",
    "DIVISION": "division by zero",
    "SHIFT": "a shift by a negative number of bits",
    "POWER": "a negative power of 0",
    "EXTERNAL": "external code failed",
    "RANGE": "an index or a slice is outside its axis",
}
#: The error of kernels. The numbers of its sentence follow its own number and that of its site.
RANGE = list(ERRORS).index("RANGE") + 1


class Place(NamedTuple):
    """A call that may fail: its operator, the kind of the fault (`relaylang.diagnostics.faults`), and its place.

    The place is a source's name, a line from 1 on, its text, and the columns of the stretch in it. Without one, `line` is 0.
    """

    operator: str
    kind: str
    source: str
    line: int
    text: str
    begin: int
    end: int

    @property
    def span(self) -> Span | None:
        if not self.line:
            return None
        before = "\n" * (self.line - 1)
        return Span(SourceFile(self.source, before + self.text), len(before) + self.begin - 1, len(before) + self.end - 1)


def place_of(operator: str, kind: str, span: Span | None) -> Place:
    """A site with its place as a file keeps it: that of the first line, where there are several."""
    if span is None:
        return Place(operator, kind, "", 0, "", 1, 1)
    text = span.source.line(span.line)
    end = span.end_column if span.end_line == span.line else len(text) + 1
    return Place(operator, kind, span.source.name, span.line, text, span.column, end)


def fault_title(operator: str, kind: str, numbers: Sequence[int]) -> str:
    """The words about a call of an operator that failed."""
    return f"{operator}: {fault_text(kind, *numbers)}"


def failure(record: np.ndarray, places: Sequence[Place]) -> RelayError:
    """The error (R0404) of a run whose kernel failed, from what the arena says (`STATUS`)."""
    number = int(record.view(np.int32)[1])
    if number >= len(places):
        return RelayError(error("R0404", ERRORS["RANGE"]))
    place = places[number]
    return RelayError(error("R0404", fault_title(place.operator, place.kind, record.view(np.int64)[1:].tolist()), place.span))


__all__ = ["ERRORS", "RANGE", "STATUS", "Place", "failure", "fault_title", "place_of"]
