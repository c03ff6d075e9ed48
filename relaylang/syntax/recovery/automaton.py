"""The parser's tables run token by token, with trials: whether a token could follow, and how far a repair would lead.

The short loop of the reader makes the program; this one makes nothing and can be asked anything.
"""

from __future__ import annotations

from typing import Any as AnyValue

END = "$END"


class Automaton:
    """A stack of states. Its top is always the state behind the last token that was fed."""

    def __init__(self, data: dict[str, AnyValue]) -> None:
        self.states: list[dict[str, int]] = data["states"]
        self.rules: list[tuple[str, int, str | None]] = data["rules"]
        self.end: int = data["end"]
        self.terminals = [t[0] for t in data["terminals"]] + [END]
        self.stack: list[int] = [data["start"]]

    def feed(self, kind: str) -> bool:
        """Shift a token with the reductions in front of it. False, and nothing happens, where it cannot follow."""
        trial = Trial(self)
        if not trial.feed(kind):
            return False
        del self.stack[trial.base :]
        self.stack += trial.extra
        return True

    def can(self, *kinds: str) -> bool:
        """Whether these tokens could follow, one after the other."""
        trial = Trial(self)
        return all(trial.feed(kind) for kind in kinds)

    def possible(self) -> set[str]:
        """The kinds of all tokens that could follow."""
        return {kind for kind in self.terminals if self.can(kind)}

    def drop(self) -> None:
        """Take the last token back."""
        self.stack.pop()


class Trial:
    """A copy of an automaton that costs nothing to make: the stack below `base`, and what stands on it now."""

    __slots__ = ("base", "extra", "of")

    def __init__(self, of: Automaton, dropped: int = 0) -> None:
        self.of = of
        self.base = len(of.stack) - dropped
        self.extra: list[int] = []

    def feed(self, kind: str) -> bool:
        """As the automaton's; after False the trial is of no use any more."""
        of, extra = self.of, self.extra
        states, rules = of.states, of.rules
        top = extra[-1] if extra else of.stack[self.base - 1]
        while True:
            if top == of.end and kind == END:
                return True
            code = states[top].get(kind)
            if code is None:
                return False
            if code >= 0:
                extra.append(code)
                return True
            origin, length, _ = rules[~code]
            kept = len(extra) - length
            if kept >= 0:
                del extra[kept:]
            else:
                extra.clear()
                self.base += kept
            top = states[extra[-1] if extra else of.stack[self.base - 1]][origin]
            extra.append(top)
