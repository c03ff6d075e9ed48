"""The places of one text and the diagnostics about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from relaylang.diagnostics import Diagnostic, Diagnostics, Fix, did_you_mean, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Expr, Var
from relaylang.ir.types import POISON
from relaylang.syntax.literals import bad_escapes
from relaylang.syntax.tokens import TokenSource

#: The length at which a name in a message is cut.
_SHOWN = 60
#: The number of known names that are compared with a misspelt one.
_COMPARED = 50_000


def shown(name: str) -> str:
    """A name for a message: without NUL, cut where it is long."""
    name = name.replace("\0", "")
    return name if len(name) <= _SHOWN else name[: _SHOWN - 1] + "…"


class Reports:
    """Makes spans from token numbers, and collects diagnostics.

    `said` holds the diagnostics. `deferred` holds those that a later rule may withdraw, by token.
    """

    __slots__ = ("broken", "deferred", "doubtful", "reported", "said", "source", "tokens")

    def __init__(self, source: TokenSource, tokens: Sequence[str]) -> None:
        self.source = source
        self.tokens = tokens
        self.said = Diagnostics()
        self.deferred: dict[int, Diagnostic] = {}
        self.reported: set[tuple[str, str]] = set()
        #: Names in what could not be read of the text, which may be defined there.
        self.doubtful: set[str] = set()
        #: Whether the text has an error of syntax.
        self.broken = False

    def span(self, first: int, last: int) -> Span:
        """The span of a node, by token numbers."""
        return Span(self.source, first, last)

    def place(self, first: int, last: int | None = None) -> Span:
        """The span of a diagnostic, by offsets."""
        return self.source.offsets(first, last)

    def unknown_value(self, first: int, last: int, name: str = "?") -> Var:
        """The value of what an error leaves unknown."""
        return Var(name, POISON, self.span(first, last))

    def unknown_call(self, args: Sequence[Expr], first: int, last: int) -> Expr:
        """An unknown value that is made of others."""
        return Call(self.unknown_value(first, last), args, None, (), self.span(first, last))

    def within(self, at: int, start: int, end: int) -> Span:
        """A span inside token `at`, by offsets from its beginning."""
        begin = self.source.start_of(at)
        return Span(self.source.plain, begin + start, begin + end)

    def add(self, diagnostic: Diagnostic) -> None:
        self.said.add(diagnostic)

    def once(self, code: str, name: str) -> bool:
        """Whether no diagnostic of this code has named `name` yet."""
        key = (code, name)
        if key in self.reported:
            return False
        self.reported.add(key)
        return True

    def twice(self, what: str, at: int, before: int) -> None:
        """Report a second definition."""
        also = [(self.place(before), "first here")]
        self.add(error("R0205", f"{what} is defined twice", self.place(at), "here again", also=also, notes=["rename one of them"]))

    def unknown(
        self,
        code: str,
        what: str,
        name: str,
        span: Span,
        known: Iterable[str],
        sign: str = "",
        notes: Iterable[str] = (),
        near: str | None = None,
    ) -> None:
        """Report an unknown name, and suggest `near` or the nearest known name."""
        if sign + name in self.doubtful or not self.once(code, name):
            return
        if self.said.errors >= self.said.limit:
            self.said.errors += 1
            return
        if near is None:
            meant = did_you_mean(name, islice(known, _COMPARED))
            near = sign + meant if meant else None
        fix = Fix(span, near, f"did you mean `{shown(near)}`?") if near else None
        self.add(error(code, f"unknown {what} `{sign}{shown(name)}`", span, "not known here", notes=notes, fix=fix))

    def finish(self) -> None:
        """Report the deferred diagnostics, and escapes in strings that lack their digits."""
        for diagnostic in self.deferred.values():
            self.add(diagnostic)
        if "\\" not in self.source.text:
            return
        for at, token in enumerate(self.tokens):
            if "\\" in token and token[0] not in "/#":
                for start, problem in bad_escapes(token):
                    self.add(error("R0105", problem, self.within(at, start, start + 2)))


__all__ = ["Reports", "shown"]
