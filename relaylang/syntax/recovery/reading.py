"""The state of reading a wrong text, which the rules of recovery ask about."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.diagnostics import Diagnostic, Span
from relaylang.syntax.actions import Build
from relaylang.syntax.recovery.automaton import END, Automaton, Trial
from relaylang.syntax.recovery.expected import CLOSES, OPENS
from relaylang.syntax.tables import Tables
from relaylang.syntax.tokens import TokenSource

#: The most tokens behind a repair that are tried.
PROGRESS = 8


class Reading:
    """How far a text is read: its tokens, the open brackets, and the automaton at token `before`."""

    def __init__(self, tab: Tables, tokens: Sequence[str], source: TokenSource, build: Build | None = None) -> None:
        self.tab = tab
        self.tokens = list(tokens)
        self.source = source
        self.build = build
        self.machine = Automaton(tab.data, build)
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
        #: Opening brackets that nothing closes; known with `inner`.
        self.unclosed: set[int] = set()

    # -- the text's tokens

    def kind(self, i: int) -> str:
        token = self.tokens[i]
        number = self.tab.kinds.get(token)
        name = self.tab.names[number if number is not None else self.tab.kind_of(token)]
        if token == "#" and self.source.text.startswith("#[", self.source.start_of(i)):
            return "BAD"  # a wrong header or a broken metadata section
        if name == "SEMI" and i in self.inner_signs():
            return "INNER"
        return "LOCAL" if name == "DASHED" else name

    def _closed(self, i: int, opened: list[tuple[str, list[int], int]], heads: dict[int, bool]) -> list[int]:
        """Leave the bracket that token `i` closes. Returns each `;` in it that ends no statement."""
        token = self.tokens[i]
        wanted = ("(", "match") if token == ")" else ("{", "arms") if token == "}" else ("[",)
        while token == "}" and opened and opened[-1][0] not in wanted:
            self.unclosed.add(opened.pop()[2])
        if not opened or opened[-1][0] not in wanted:
            return []
        kind, signs, _ = opened.pop()
        heads[i] = kind == "match"
        return signs if token == ")" or kind == "arms" else []

    def inner_signs(self) -> set[int]:
        """Each `;` in closed parentheses, and in an arm of a match without braces. It ends no statement of a block."""
        if self.inner is None:
            self.inner = set()
            opened: list[tuple[str, list[int], int]] = []  # brackets, the `;` in each, and their tokens
            heads: dict[int, bool] = {}  # whether the parentheses that a `)` closes stand behind `match`
            tokens = self.tokens
            for i, token in enumerate(tokens):
                last = token[-1:]
                if token == ";" and opened:
                    opened[-1][1].append(i)
                elif last in CLOSES and (len(token) == 1 or last == "("):
                    arms = token == "{" and (heads.get(i - 1, False) or tokens[i - 2] in ("match", "match?"))
                    opened.append((("match" if tokens[i - 1] in ("match", "match?") else "arms" if arms else last), [], i))
                    if last == "(" and opened[-1][0] == "match":
                        heads[i] = True
                elif token in OPENS:
                    self.inner.update(self._closed(i, opened, heads))
            self.unclosed.update(at for _, _, at in opened)
        return self.inner

    def after_unclosed(self, i: int, kind: str) -> bool:
        """Whether token `i` begins a statement of its own, on a line behind a `(` that is never closed."""
        if kind not in ("LET", "GRAPHBIND") or not self.open or self.open[-1][0] != "(" or not self.source.newline_before(i):
            return False
        self.inner_signs()
        return self.open[-1][1] in self.unclosed

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

    def progress(self, i: int, feed: tuple[str, ...] = (), dropped: int = 0) -> int:
        """How many of the tokens from `i` on could follow if `dropped` tokens were taken back and `feed` put in."""
        trial = Trial(self.machine, dropped)
        for kind in feed:
            if not trial.feed(kind):
                return -1
        done = 0
        while done < PROGRESS:
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
                return PROGRESS
            done += 1
            i += 1
        return done
