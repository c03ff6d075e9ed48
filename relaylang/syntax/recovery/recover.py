"""Errors of syntax: finds the mistake, suggests a repair, and reads on behind it.

A text that the reader's loop could not read goes through an automaton of the same tables, token by token. Where a token
cannot follow, the known mistakes (`mistakes`) are asked first. Then small repairs are tried: a token put in, left out or
changed. The diagnostic suggests a repair that lets several of the next tokens follow. If there is none, it lists the
tokens that could stand here. Then tokens are skipped to the next `;`, `,`, closing bracket or definition. The grammar's
ERROR takes the place of the unfinished phrase.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from relaylang.diagnostics import Diagnostic, Diagnostics, and_more, error
from relaylang.diagnostics.source import Span
from relaylang.syntax.recovery import mistakes
from relaylang.syntax.recovery.automaton import END, Automaton, Trial
from relaylang.syntax.recovery.expected import CLOSERS, CLOSES, OPENS, SIGNS, quoted
from relaylang.syntax.recovery.repairs import candidates, complaint
from relaylang.syntax.recovery.rule import Repair
from relaylang.syntax.tables import Tables
from relaylang.syntax.tokens import TokenSource

#: The most errors that are reported, the most that are counted, and the tokens that must follow a repair.
_LIMIT, _COUNTED, _PROGRESS = 20, 1000, 8
#: The most places of a text at which recovery tries.
_TRIED = 3000
#: Reads tokens again: `(tokens, names of what is left out, each with its token) -> what is to be said`.
Reading = Callable[[list[str], dict[str, int]], list[Diagnostic]]
_SYNC = {";", ",", ")", "]", "}"}
_DEFINITIONS = {"def", "type", "data", "extern"}


class Recovery:
    """One pass through a text that has an error in it."""

    def __init__(self, tab: Tables, tokens: list[str], source: TokenSource) -> None:
        self.tab = tab
        self.tokens = tokens
        self.source = source
        self.machine = Automaton(tab.data)
        self.found: list[Diagnostic] = []
        self.count = 0
        self.first: int | None = None
        self.told: set[tuple[str, int, int]] = set()
        #: The tokens at which something was wrong; where a definition begins, the token in front of it.
        self.places: list[int] = []
        #: Open brackets: the sign, its token, the height of the stack in front of that.
        self.open: list[tuple[str, int, int]] = []
        self.owed: list[str] = []
        self.since = 3
        self.before: int | None = None
        self.stopped = False
        #: The line of an error whose repair did not lead far: nothing else is said of it.
        self.doubtful = 0
        #: The first `{` whose `}` stands further left than the line that opens it.
        self.suspect: int | None = None
        self.inner: set[int] | None = None

    # -- the text's tokens

    def kind(self, i: int) -> str:
        token = self.tokens[i]
        name = self.tab.names[self.tab.kind_of(token)]
        if token == "#" and self.source.text.startswith("#[", self.source.start_of(i)):
            return "BAD"  # a wrong header or a broken metadata section
        if name == "SEMI" and i in self.inner_signs():
            return "INNER"
        return "LOCAL" if name == "DASHED" else name

    def inner_signs(self) -> set[int]:
        """Each `;` in closed parentheses, and in an arm of a match without braces. It ends no statement of a block."""
        if self.inner is None:
            self.inner = set()
            opened: list[tuple[str, list[int]]] = []  # brackets, and the `;` in each
            heads: dict[int, bool] = {}  # whether the parentheses that a `)` closes stand behind `match`
            tokens = self.tokens
            for i, token in enumerate(tokens):
                last = token[-1:]
                if token == ";" and opened:
                    opened[-1][1].append(i)
                elif last in CLOSES and (len(token) == 1 or last == "("):
                    arms = token == "{" and (heads.get(i - 1, False) or tokens[i - 2] in ("match", "match?"))
                    opened.append((("match" if tokens[i - 1] in ("match", "match?") else "arms" if arms else last), []))
                    if last == "(" and opened[-1][0] == "match":
                        heads[i] = True
                elif token in OPENS:
                    wanted = ("(", "match") if token == ")" else ("{", "arms") if token == "}" else ("[",)
                    while token == "}" and opened and opened[-1][0] not in wanted:
                        opened.pop()
                    if opened and opened[-1][0] in wanted:
                        kind, signs = opened.pop()
                        heads[i] = kind == "match"
                        if token == ")" or kind == "arms":
                            self.inner.update(signs)
        return self.inner

    def next(self, i: int) -> int:
        """The number of the next token that is no comment."""
        i += 1
        while i < len(self.tokens) and self.kind(i) == "COMMENT":
            i += 1
        return min(i, len(self.tokens) - 1)

    def place(self, i: int, last: int | None = None) -> Span:
        return self.source.offsets(i, last)

    def behind(self, i: int | None) -> Span:
        """The place right behind token `i`."""
        end = self.source.end_of(i) if i is not None else 0
        return Span(self.source.plain, end, end)

    def bracket(self, at: int) -> Span:
        """The place of an opening bracket, which may be the last character of its token."""
        end = self.source.end_of(at)
        return Span(self.source.plain, end - 1, end)

    def indent(self, i: int, line: bool = False) -> int:
        """The indentation of a token that is the first on its line, or, with `line`, of its line."""
        start = self.source.start_of(i)
        begin = self.source.text.rfind("\n", 0, start) + 1
        front = self.source.text[begin:start]
        if front.strip():
            return len(front) - len(front.lstrip()) if line else len(front)
        return len(front)

    def may_end(self, i: int) -> bool:
        """Whether a statement may end in front of token `i` without its `;`."""
        return self.tokens[i] in ("", "}") or self.source.newline_before(i)

    # -- the loop

    def run(self) -> list[Diagnostic]:
        i, count, stuck = 0, len(self.tokens), 0
        while i < count and self.count < _COUNTED and len(self.places) < _TRIED and not self.stopped:
            kind = self.kind(i)
            if kind == "COMMENT":
                i += 1
                continue
            height = len(self.machine.stack)
            if self.machine.feed(kind) or (self.ends(i, kind) and self.machine.feed(kind)):
                self.shifted(i, min(height, len(self.machine.stack) - 1))
                i += 1
                continue
            if self.owed and self.machine.can(self.owed[-1]):
                self.machine.feed(self.owed.pop())
                continue
            if self.first is None:
                self.first = i
            self.places.append(self.before if self.tokens[i] in _DEFINITIONS and self.before is not None else i)
            at = self.wrong(i, kind)
            stuck = stuck + 1 if at == i else 0
            if at is None or (stuck and not self.tokens[i]):
                break
            i = at + (stuck > 3)
        return self.found

    def ends(self, i: int, kind: str) -> bool:
        """End the statement in front of token `i` where it may end without its `;`."""
        return self.may_end(i) and self.machine.can("SEMI", kind) and self.machine.feed("SEMI")

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
            if repair is not None and self.apply(repair):
                self.since = 3
                return repair.at
            return self.resume(i)
        made = self.repaired(i, kind)
        if made is not None:
            diagnostic, repair, done = made
            if not noise:
                self.say(diagnostic)
            if done < _PROGRESS:
                self.doubtful = line
            self.apply(repair)
            self.since = 3
            return repair.at
        if not noise:
            self.say(complaint(self, i, kind))
        self.doubtful = line
        return self.resume(i)

    def apply(self, repair: Repair) -> bool:
        """Make a repair. Returns False where it does not fit; the tokens fed until then stay."""
        for _ in range(repair.dropped):
            self.machine.drop()
        for kind in repair.feed:
            if not self.machine.feed(kind):
                return False
            if kind in CLOSERS.values() and self.open:
                self.open.pop()
            elif kind in ("LBRACE", "LPAR", "LSQ") and self.before is not None:
                self.open.append((SIGNS[kind], self.before, len(self.machine.stack) - 1))
        self.owed += repair.owed
        return True

    # -- repairs

    def progress(self, i: int, feed: tuple[str, ...] = (), dropped: int = 0) -> int:
        """How many of the tokens from `i` on could follow if `dropped` tokens were taken back and `feed` put in."""
        trial = Trial(self.machine, dropped)
        for kind in feed:
            if not trial.feed(kind):
                return -1
        done = 0
        while done < _PROGRESS:
            kind = self.kind(i)
            if kind == "COMMENT":
                i += 1
                continue
            base, extra = trial.base, list(trial.extra)
            if not trial.feed(kind):
                trial.base, trial.extra = base, extra
                if not (self.may_end(i) and trial.feed("SEMI") and trial.feed(kind)):
                    return done
            if kind == END:
                return _PROGRESS
            done += 1
            i += 1
        return done

    def repaired(self, i: int, kind: str) -> tuple[Diagnostic, Repair, int] | None:
        """The diagnostic, the best of the small repairs, and how far it leads. None where no repair leads on."""
        best: tuple[Diagnostic, Repair, int] | None = None
        for diagnostic, repair, wanted in candidates(self, i, kind):
            done = self.progress(repair.at, repair.feed, repair.dropped)
            if done >= wanted and (best is None or done > best[2]):
                best = (diagnostic, repair, done)
                if done == _PROGRESS:
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
                if token in _SYNC:
                    if self.put_error(self.kind(at), hopeless):
                        self.leave(token)
                        self.since = 3 if token in (";", "}") else 0
                        return at
                elif starts_line and self.source.newline_before(at):
                    if token in _DEFINITIONS:
                        if self.put_error(self.kind(at), hopeless):
                            self.open.clear()
                            self.owed.clear()
                            self.since = 3
                            return at
                    elif self.put_error("SEMI", hopeless) and self.machine.feed("SEMI"):
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

    def put_error(self, kind: str, hopeless: set[str]) -> bool:
        """Put ERROR in place of the unfinished phrase, at the innermost place where `kind` can follow it."""
        if kind in hopeless:
            return False
        machine = self.machine
        stack, states = machine.stack, machine.states
        for depth in range(len(stack) - 1, -1, -1):
            behind = states[stack[depth]].get("ERROR")
            if behind is None or behind < 0 or kind not in states[behind]:
                continue
            del stack[depth + 1 :]
            return machine.feed("ERROR")
        hopeless.add(kind)
        return False


def _sound_definitions(tokens: list[str], places: list[int]) -> tuple[list[str], dict[str, int], set[str]] | None:
    """The tokens with blank comments in place of every definition that has an error in it.

    Also the names of those definitions, with their tokens, and their first words. None where no definition is sound.
    """
    starts = [i for i, t in enumerate(tokens) if t in _DEFINITIONS and not (t == "type" and tokens[i - 1] == "extern")]
    if not starts or any(at < starts[0] for at in places):
        return None
    broken = {bisect_right(starts, at) - 1 for at in places}
    if len(broken) == len(starts):
        return None
    kept = list(tokens)
    names: dict[str, int] = {}
    words: set[str] = set()
    for number in broken:
        begin = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else len(tokens) - 1
        kept[begin:end] = ["//"] * (end - begin)
        words.add(tokens[begin])
        names[tokens[begin + 1 + (tokens[begin] == "extern")].rstrip("([{")] = begin
    return kept, names, words


def syntax_errors(
    tab: Tables, tokens: list[str], source: TokenSource, at: int, known: Diagnostics, read_again: Reading
) -> list[Diagnostic]:
    """The diagnostics of a text in which the loop stopped at token `at`.

    `known` are the diagnostics until then; those in front of the first error of syntax count. `read_again` reads the
    definitions without such an error once more. It takes tokens and the names of the definitions that are left out.
    """
    recovery = Recovery(tab, tokens, source)
    found = recovery.run()
    if not found:
        token = tokens[at]
        return [error("R0101", f"unexpected {quoted(token)}" if token else "the text ends too early", source.offsets(at))]
    if recovery.stopped:
        return found[-1:]
    begins = source.start_of(max(0, (recovery.first if recovery.first is not None else at) - 1))
    before = [d for d in known.items if d.severity == "error" and d.span is not None and d.span.start < begins]
    hidden = known.errors - known.limit if known.errors > known.limit else 0
    sound = _sound_definitions(tokens, recovery.places) if recovery.count < _LIMIT else None
    if sound is not None:
        kept, names, words = sound
        told = {(d.code, d.span) for d in before}
        more = read_again(kept, names)
        if words - {"def"}:  # constructors of a type that was left out are not unknown
            more = [d for d in more if d.code not in ("R0202", "R0210")]
        before += [d for d in more if d.severity == "error" and d.span is not None and (d.code, d.span) not in told]
        before = [d for d in before if all(d.span != other.span for other in found)]
    every = sorted(before + found, key=lambda d: d.span.start if d.span is not None else 0)
    hidden += len(every) - len(every[:_LIMIT]) + recovery.count - len(found)
    return every[:_LIMIT] + and_more(hidden, recovery.count < _COUNTED and len(recovery.places) < _TRIED)
