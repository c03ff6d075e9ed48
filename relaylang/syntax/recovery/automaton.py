"""Runs the parser's tables token by token, and tries tokens: may one follow, how far does a repair lead?

The automaton makes the nodes of a text, as the reader's short loop does for right ones. Trials make none, so they cost little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue

from relaylang.syntax.actions import ACTIONS, Action, Build
from relaylang.syntax.actions.errors import Missing, Unread

END = "$END"

#: A reduction: its rule (origin, length, action), and the height of the stack under it.
Step = tuple[tuple[str, int, str | None], int]


class Automaton:
    """A stack of states. Its top is always the state behind the last token that was fed.

    With a `build`, actions make the values of the text: one for each state.
    """

    def __init__(self, data: dict[str, AnyValue], build: Build | None = None, actions: Mapping[str, Action] = ACTIONS) -> None:
        self.build = build
        self.actions = actions
        self.values: list[AnyValue] = [None]
        self.firsts: list[int] = [0]  # the first token of each value
        self.read = 0  # the last token that was fed
        self.missing = False  # whether a token was put in whose meaning nobody knows
        self.states: list[dict[str, int]] = data["states"]
        self.rules: list[tuple[str, int, str | None]] = data["rules"]
        self.end: int = data["end"]
        self.terminals = [t[0] for t in data["terminals"]] + [END]
        self.stack: list[int] = [data["start"]]

    def feed(self, kind: str, value: AnyValue = "", at: int = 0) -> bool:
        """Shift a token with the reductions in front of it. False, and nothing happens, where it cannot follow.

        `value` is its text, `at` its number.
        """
        trial = Trial(self)
        steps: list[Step] = []
        if not trial.feed(kind, steps):
            return False
        if self.build is not None:
            self._reduce(steps, at)
            if kind != END:
                if value.__class__ is Missing:
                    self.missing = True
                self.values.append(value)
                self.firsts.append(at)
                self.read = max(self.read, at)
        del self.stack[trial.base :]
        self.stack += trial.extra
        return True

    def _reduce(self, steps: list[Step], at: int) -> None:
        """Call the actions of the reductions in front of a token that can follow."""
        assert self.build is not None
        values, firsts, parts, unknown = self.values, self.firsts, self.build.parts, self.build.errors.unknown
        for (origin, length, alias), height in steps:
            first, value = at, None
            if length:
                first = firsts[height]
                value = values[height] if length == 1 else values[height:]
                if self.missing and origin in unknown and any(type(x) is Missing for x in values[height:]):
                    value, alias = unknown[origin](first, self.read), None
                del values[height:], firsts[height:]
            if alias is not None:
                part, action = self.actions[alias]
                value = action(parts[part], value, first, self.read)
            values.append(value)
            firsts.append(first)

    def give_up(self, height: int, at: int) -> bool:
        """Put ERROR in place of all that was read since the stack had this height, in front of token `at`."""
        left_out, first = Unread(self.values[height:]), self.firsts[height:][:1]
        del self.stack[height:], self.values[height:], self.firsts[height:]
        done = self.feed("ERROR", left_out, first[0] if first else at)
        self.read = max(self.read, at - 1)
        return done

    def can(self, *kinds: str) -> bool:
        """Whether these tokens could follow, one after the other."""
        trial = Trial(self)
        return all(trial.feed(kind) for kind in kinds)

    def possible(self) -> set[str]:
        """The kinds of all tokens that could follow."""
        return {kind for kind in self.terminals if self.can(kind)}

    def drop(self, count: int = 1) -> list[AnyValue]:
        """Take the last values back, and return them."""
        dropped = self.values[-count:]
        del self.stack[-count:], self.values[-count:], self.firsts[-count:]
        return dropped


class Trial:
    """A cheap copy of an automaton: it shares the stack below `base`, and has its own states on top."""

    __slots__ = ("base", "extra", "of")

    def __init__(self, of: Automaton, dropped: int = 0) -> None:
        self.of = of
        self.base = len(of.stack) - dropped
        self.extra: list[int] = []

    def feed(self, kind: str, steps: list[Step] | None = None) -> bool:
        """Takes a token, as the automaton does, and adds the reductions to `steps`. After False, it is of no further use."""
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
            rule = rules[~code]
            origin, length, _ = rule
            kept = len(extra) - length
            if kept >= 0:
                del extra[kept:]
            else:
                extra.clear()
                self.base += kept
            if steps is not None:
                steps.append((rule, self.base + len(extra)))
            top = states[extra[-1] if extra else of.stack[self.base - 1]][origin]
            extra.append(top)
