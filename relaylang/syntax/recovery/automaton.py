"""Runs the parser's tables token by token, and tries tokens: may one follow, how far does a repair lead?

The reader's short loop makes the program. This automaton makes no nodes, so trials cost little.
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
    """A cheap copy of an automaton: it shares the stack below `base`, and has its own states on top."""

    __slots__ = ("base", "extra", "of")

    def __init__(self, of: Automaton, dropped: int = 0) -> None:
        self.of = of
        self.base = len(of.stack) - dropped
        self.extra: list[int] = []

    def feed(self, kind: str) -> bool:
        """Takes a token, as the automaton does. After False, the trial is of no further use."""
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
