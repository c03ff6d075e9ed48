"""The values that a rule of recovery works with: a token and its neighbours, a repair, an answer."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.diagnostics import Diagnostic, Span
from relaylang.syntax.recovery.reading import Reading


@dataclass(frozen=True)
class Repair:
    """How reading goes on: take `dropped` tokens back, feed kinds, and go on at token `at`. `owed` is fed where it fits."""

    at: int
    feed: tuple[str, ...] = ()
    dropped: int = 0
    owed: tuple[str, ...] = ()


#: A diagnostic, and the repair with which reading goes on; None skips.
Answer = tuple[Diagnostic, "Repair | None"] | None

#: Kinds of tokens that end an operand.
OPERAND_ENDS = ("LOCAL", "RPAR", "RSQ", "NUMBER", "PROJ", "META", "GRAPHBIND")


class Here:
    """Token `i` with its neighbours: `t`, `p` in front of it, `n` behind it, and their kinds `k`, `pk`, `nk`."""

    def __init__(self, r: Reading, i: int, kind: str) -> None:
        self.r, self.i, self.k = r, i, kind
        self.t = r.tokens[i]
        self.at = r.before
        self.p = r.tokens[r.before] if r.before is not None else ""
        self.pk = r.kind(r.before) if r.before is not None else ""
        self.after = r.next(i)
        self.n = r.tokens[self.after]
        self.nk = r.kind(self.after)

    def can(self, *kinds: str) -> bool:
        return self.r.machine.can(*kinds)

    def part(self, i: int, start: int, end: int) -> Span:
        begin = self.r.source.start_of(i)
        return Span(self.r.source.plain, begin + start, begin + end)

    def begin(self, i: int) -> Span:
        return self.part(i, 0, 0)

    def place(self) -> Span:
        return self.r.place(self.i)


__all__ = ["OPERAND_ENDS", "Answer", "Here", "Repair"]
