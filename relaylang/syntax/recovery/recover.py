"""Errors of syntax: finds the mistake, suggests a repair, and reads on behind it.

A text that the reader's loop could not read goes through an automaton of the same tables, token by token. Where a token
cannot follow, the known mistakes (`mistakes`) are asked first. Then small repairs are tried: a token put in, left out or
changed. The diagnostic suggests a repair that lets several of the next tokens follow. If there is none, it lists the
tokens that could stand here. Then tokens are skipped to the next `;`, `,`, closing bracket or definition. The grammar's
ERROR takes the place of the unfinished phrase.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.diagnostics import Diagnostic, Span, and_more, error
from relaylang.syntax.actions import Build
from relaylang.syntax.actions.errors import Missing
from relaylang.syntax.recovery import mistakes
from relaylang.syntax.recovery.expected import CLOSERS, CLOSES, OPENS, SIGNS, quoted
from relaylang.syntax.recovery.reading import PROGRESS, Reading
from relaylang.syntax.recovery.repairs import candidates, complaint
from relaylang.syntax.recovery.rule import Repair
from relaylang.syntax.tables import Tables
from relaylang.syntax.tokens import TokenSource

#: The most errors that are reported, and the most that are counted.
_LIMIT, _COUNTED = 20, 1000
#: The most places of a text at which recovery tries.
_TRIED = 3000
_SYNC = {";", ",", ")", "]", "}"}
_DEFINITIONS = {"def", "type", "data", "extern"}
#: The texts of tokens that are put in and have one text, beside the signs.
_TEXTS = {
    **{kind: kind.lower() for kind in ("DEF", "TYPE", "EXTERN", "DATA", "FN", "LET", "FREE_VAR", "IF", "MATCH", "CASE")},
    **{"EQEQ": "==", "NE": "!=", "LE": "<=", "GE": ">=", "LT": "<", "SLASH": "/", "MINUS": "-", "MATCHQ": "match?"},
    **{"REF": "ref", "REF_READ": "ref_read", "REF_WRITE": "ref_write", "HEADER": ""},
}


class Recovery(Reading):
    """One pass through a text that has an error in it."""

    def run(self) -> list[Diagnostic]:
        i, count, stuck = 0, len(self.tokens), 0
        while i < count and self.count < _COUNTED and len(self.places) < _TRIED and not self.stopped:
            kind = self.kind(i)
            if kind == "COMMENT":
                i += 1
                continue
            height = len(self.machine.stack)
            token = self.tokens[i]
            fits = not self.after_unclosed(i, kind)
            if fits and (self.machine.feed(kind, token, i) or (self.ends(i, kind) and self.machine.feed(kind, token, i))):
                self.shifted(i, min(height, len(self.machine.stack) - 1))
                i += 1
                continue
            if self.owed and self.machine.can(self.owed[-1]):
                self.put_in(self.owed.pop(), [])
                continue
            if self.first is None:
                self.first = i
            self.places.append(self.before if self.tokens[i] in _DEFINITIONS and self.before is not None else i)
            at = self.wrong(i, kind)
            stuck = stuck + 1 if at == i else 0
            if at is None or (stuck and not self.tokens[i]):
                break
            self.leave_out(i, at + (stuck > 3))
            i = at + (stuck > 3)
        self.leave_out(i, count)
        return self.found

    def leave_out(self, begin: int, end: int) -> None:
        """Tokens that are not read: names in them may be defined there."""
        if self.build is not None:
            doubtful = self.build.reports.doubtful
            for token in self.tokens[begin:end]:
                if token[:1] in ("%", "@") or token[:1].isupper():
                    doubtful.add(token.partition(":")[0].rstrip("(= "))

    def put_in(self, kind: str, replaced: list[str]) -> bool:
        """Feed a token that the text does not have, in place of others."""
        text: str = SIGNS.get(kind) or _TEXTS.get(kind) or Missing("?")
        at = self.before or 0
        if kind in ("LOCAL", "GLOBAL"):
            sign = "%" if kind == "LOCAL" else "@"
            words = [word for token in replaced if (word := token.strip("%@(= ")).isidentifier()]
            if len(words) == len(replaced) == 1:
                text = sign + words[0]
                if self.build is not None:
                    self.build.reports.doubtful.add(words[0])  # the sign is missing where the name is used, too
            else:
                text = Missing(f"{sign}?{at}")
        elif kind in ("NAME", "NAMEP"):
            text = Missing(f"?{at}" + "(" * (kind == "NAMEP"))
        return self.machine.feed(kind, text, at)

    def ends(self, i: int, kind: str) -> bool:
        """End the statement in front of token `i` where it may end without its `;`."""
        return self.may_end(i) and self.machine.can("SEMI", kind) and self.machine.feed("SEMI", ";", self.before or 0)

    def shifted(self, i: int, height: int) -> None:
        """Token `i` has been read: keep the open brackets."""
        token = self.tokens[i]
        last = token[-1:]
        if last in CLOSES and (len(token) == 1 or last == "("):
            self.open.append((last, i, height))
        elif token in OPENS and self.open:
            _, opened, _ = self.open.pop()
            if token == "}" and self.suspect is None and self.indent(i) < self.indent(opened, True):
                self.suspect = opened
        elif token in _DEFINITIONS:
            self.open.clear()
            self.owed.clear()
        elif token == ";" and self.owed[-1:] == ["SEMI"]:
            self.owed.pop()
        self.before = i
        self.since += 1

    def say(self, diagnostic: Diagnostic) -> None:
        span = diagnostic.span
        told = (diagnostic.title, span.start, span.end) if span is not None else (diagnostic.title, -1, -1)
        if told in self.told:
            return
        self.told.add(told)
        self.count += 1
        if len(self.found) < _LIMIT:
            self.found.append(diagnostic)

    def wrong(self, i: int, kind: str) -> int | None:
        """Token `i` cannot follow. Say it, and return where reading goes on."""
        kind = "SEMI" if kind == "INNER" else kind
        line = self.source.locate(self.source.start_of(i))[0]
        noise = self.since < 3 or (line == self.doubtful and bool(self.tokens[i]))
        self.since = 0
        known = mistakes.recognise(self, i, kind)
        if known is not None:
            diagnostic, repair = known
            if not noise:
                self.say(diagnostic)
            if repair is not None and self.apply(repair, i):
                self.since = 3
                return repair.at
            return self.resume(i)
        repaired = self.repaired(i, kind)
        if repaired is not None:
            diagnostic, repair, done = repaired
            if not noise:
                self.say(diagnostic)
            if done < PROGRESS:
                self.doubtful = line
            at = self.open[0][1] if self.open else 0
            if self.build is not None and diagnostic.fix is None and self.tokens[max(0, at - 2) : at - 1] == ["def"]:
                self.build.functions.unsure = len(self.open) == 1  # the parameters of a definition
            self.apply(repair, i)
            self.since = 3
            return repair.at
        if not noise:
            self.say(complaint(self, i, kind))
        self.doubtful = line
        return self.resume(i)

    def apply(self, repair: Repair, i: int) -> bool:
        """Make a repair. Returns False where it does not fit; the tokens fed until then stay."""
        replaced = [x for x in self.machine.values[len(self.machine.values) - repair.dropped :] if isinstance(x, str)]
        if repair.dropped >= len(self.machine.stack):
            return False
        if repair.dropped > 0:
            dropped = self.machine.drop(repair.dropped)
            if self.build is not None:
                self.build.errors.kept(dropped, self.before or 0, self.before or 0)
        replaced += self.tokens[i : repair.at]
        for kind in repair.feed:
            if not self.put_in(kind, replaced):
                return False
            if kind in CLOSERS.values() and self.open:
                self.open.pop()
            elif kind in ("LBRACE", "LPAR", "LSQ") and self.before is not None:
                self.open.append((SIGNS[kind], self.before, len(self.machine.stack) - 1))
        if repair.dropped > 0 and not repair.feed and self.before:
            self.before -= 1
        self.owed += repair.owed
        return True

    # -- repairs

    def repaired(self, i: int, kind: str) -> tuple[Diagnostic, Repair, int] | None:
        """The diagnostic, the best of the small repairs, and how far it leads. None where no repair leads on."""
        best: tuple[Diagnostic, Repair, int] | None = None
        for diagnostic, repair, wanted in candidates(self, i, kind):
            done = self.progress(repair.at, repair.feed, repair.dropped)
            if done >= wanted and (best is None or repair.at + done > best[1].at + best[2]):
                best = (diagnostic, repair, done)
                if done == PROGRESS:
                    break
        return best

    # -- going on

    def resume(self, i: int) -> int | None:
        """Skip from token `i` to where reading can go on. Returns the next token's number, or None at the text's end."""
        depth = 0
        hopeless: set[str] = set()
        for at in range(i, len(self.tokens)):
            token = self.tokens[at]
            if not token:
                return None
            starts_line = token in _DEFINITIONS or token == "let" or (token[0] == "%" and token[-1] == "=")
            if depth == 0 or token in _DEFINITIONS:
                if token == "," and self.open and self.open[-1][0] == "[":
                    continue  # lists have no place for an error
                if token in _SYNC:
                    if self.put_error(self.kind(at), hopeless, at):
                        self.leave(token)
                        self.since = 3 if token in (";", "}") else 0
                        return at
                elif starts_line and self.source.newline_before(at):
                    if token in _DEFINITIONS:
                        if self.put_error(self.kind(at), hopeless, at):
                            self.open.clear()
                            self.owed.clear()
                            self.since = 3
                            return at
                    elif self.put_error("SEMI", hopeless, at) and self.machine.feed("SEMI", ";", at - 1):
                        self.leave(";")
                        self.since = 3
                        return at
            if token[-1] in CLOSES and (len(token) == 1 or token[-1] == "("):
                depth += 1
            elif token in OPENS:
                if depth:
                    depth -= 1
                elif self.open:
                    self.open.pop()
        return None

    def leave(self, token: str) -> None:
        """Forget the brackets that were given up on the way to a `;` or a closing bracket."""
        wanted = {";": "{", "}": "{", ")": "(", "]": "["}.get(token)
        height = len(self.machine.stack)
        while self.open and (self.open[-1][2] >= height or (wanted is not None and self.open[-1][0] != wanted)):
            self.open.pop()
        self.owed.clear()

    def put_error(self, kind: str, hopeless: set[str], at: int) -> bool:
        """Put ERROR in place of the unfinished phrase, at the innermost place where `kind`, token `at`, can follow it."""
        if kind in hopeless:
            return False
        machine = self.machine
        stack, states = machine.stack, machine.states
        for depth in range(len(stack) - 1, -1, -1):
            behind = states[stack[depth]].get("ERROR")
            if behind is None or behind < 0 or kind not in states[behind]:
                continue
            return machine.give_up(depth + 1, at)
        hopeless.add(kind)
        return False


def syntax_errors(tab: Tables, tokens: Sequence[str], source: TokenSource, at: int, build: Build) -> tuple[list[Diagnostic], AnyValue]:
    """The diagnostics of a text in which the loop stopped at token `at`, and its value.

    The `build`, a fresh one, makes all of the text that can be read.
    """
    reports = build.reports
    recovery = Recovery(tab, tokens, source, build)
    reports.broken = True
    diagnostics = recovery.run()
    values = recovery.machine.values
    value = values[1] if len(values) == 2 and values[1].__class__ is tuple else (True, None)
    build.finish()
    if not diagnostics:
        token = tokens[at]
        return [error("R0101", f"unexpected {quoted(token)}" if token else "the text ends too early", source.offsets(at))], value
    if recovery.stopped:
        return diagnostics[-1:], value
    known = reports.said
    hidden = max(0, known.errors - known.limit)
    places = [d.span for d in diagnostics if d.span is not None]
    places += [source.offsets(max(0, i - 1), i) for i in recovery.places]
    if _in_a_type(tokens, recovery.places):  # what it defines is not known
        known.items = [d for d in known.items if "constructor" not in d.title]
    names = [d for d in known.items if d.severity == "error" and not any(_follows(d, place) for place in places)]
    every = sorted(names + diagnostics, key=lambda d: d.span.start if d.span is not None else 0)
    hidden += len(every) - len(every[:_LIMIT]) + recovery.count - len(diagnostics)
    return every[:_LIMIT] + and_more(hidden, recovery.count < _COUNTED and len(recovery.places) < _TRIED), value


def _in_a_type(tokens: Sequence[str], places: list[int]) -> bool:
    """Whether one of the places stands in the definition of a type."""
    starts = [i for i, token in enumerate(tokens) if token in _DEFINITIONS]
    return any(before and tokens[starts[before - 1]] != "def" for before in (bisect_right(starts, at) for at in places))


def _follows(name: Diagnostic, wrong: Span) -> bool:
    """Whether an error in names may follow from one of syntax, which stands in its place or in its let's value."""
    if name.span is None:
        return False
    start = name.labels[1].span.start if name.code == "R0209" else name.span.start
    return start <= wrong.end and wrong.start <= name.span.end


__all__ = ["Recovery", "syntax_errors"]
