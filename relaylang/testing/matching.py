"""Compares an output with the checks of a test file, by the package filecheck.

A failed check gets its nearest text of the output: its place, and the letters that differ.
"""

from __future__ import annotations

import contextlib
import io
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate
from types import ModuleType
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.testing.directives import Run, TestFile, wrong_expression

#: How near a line must be to a check to be shown, or to be written for it.
LIKE = 0.5
#: More differences than these say less than the nearest line itself.
_MOST_MARKS = 3
#: Lines with the most words in common are compared letter by letter, and of long ones the first letters.
_CANDIDATES, _LONGEST = 50, 4000
#: The first of the letters that stand for the patterns of a check.
_WILD = 0xE000
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_AT_LINE = re.compile(r":(\d+):(?:\d+:?)? ?(?:error: )?(.*)")
_UNDEFINED = re.compile(r"Variable (\S+) referenced before assignment")
_SPECIAL = re.compile(r"\{\{|\[\[(?=\$?[#A-Za-z_])")
_WORD = re.compile(r"[\w.]+")
_TOKEN = re.compile(r"[\w.]+|[ \t]+|.")
#: A variable's value where none is known: a name or a number.
_VALUE = r"[\w.$@%]+"


@dataclass(frozen=True)
class Wild:
    """A pattern in a check: its text (`[[A:[0-9]+]]`), and the regular expression of what fits it."""

    text: str
    pattern: str


@dataclass(frozen=True)
class Step:
    """A stretch of a check beside the letters `begin` to `end` of a line; `same` if they fit."""

    text: str
    begin: int
    end: int
    same: bool


@dataclass(frozen=True)
class Check:
    """A check of a test file. `kind` is CHECK, NEXT, NOT, ...; a letter from `_WILD` stands in `letters` for each pattern."""

    line: int
    kind: str
    text: str
    letters: str
    wilds: tuple[Wild, ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression of what fits."""
        return self._expression(self.letters)

    def _expression(self, letters: str) -> re.Pattern[str]:
        """The regular expression of what fits a stretch; blanks fit blanks of any number."""
        pieces: list[str] = []
        for letter in re.sub(r"[ \t]+", " ", letters):
            wild = self._wild(letter)
            pieces.append(f"(?:{wild.pattern})" if wild else r"[ \t]+" if letter == " " else re.escape(letter))
        return re.compile("".join(pieces))

    def _wild(self, letter: str) -> Wild | None:
        at = ord(letter) - _WILD
        return self.wilds[at] if 0 <= at < len(self.wilds) else None

    def _raw(self, letters: str) -> str:
        return "".join(w.text if (w := self._wild(c)) else c for c in letters)

    def likeness(self, line: str) -> float:
        """How near a line is where they have most in common: from 0 to 1."""
        wanted = self.letters
        same = SequenceMatcher(None, wanted, line, autojunk=False).find_longest_match()
        begin = max(0, same.b - same.a)
        return SequenceMatcher(None, wanted, line[begin : begin + len(wanted)], autojunk=False).ratio()

    def nearest(self, lines: Sequence[str]) -> int | None:
        """The number of the line nearest to this check, from 0. None where no line is like it."""
        words = set(_WORD.findall(self.letters))
        common = [len(words.intersection(_WORD.findall(line))) for line in lines]
        likely = sorted(range(len(lines)), key=lambda i: -common[i])[:_CANDIDATES]
        scores = {i: self.likeness(lines[i][:_LONGEST]) for i in sorted(likely)}
        best = max(scores, key=lambda i: scores[i], default=None)
        return best if best is not None and scores[best] >= LIKE else None

    def beside(self, line: str) -> list[Step]:
        """The check's stretches beside those of a line. What the line has before the first and behind the last is left out."""
        own, others = _TOKEN.findall(self.letters), _TOKEN.findall(line[:_LONGEST])
        at_own, at_others = _offsets(own), _offsets(others)
        codes = SequenceMatcher(None, own, others, autojunk=False).get_opcodes()
        if codes and codes[0][0] == "insert":
            del codes[0]
        if codes and codes[-1][0] == "insert":
            codes.pop()
        steps: list[Step] = []
        for i, (_, a, b, c, d) in enumerate(codes):
            wanted = self.letters[at_own[a] : at_own[b]]
            begin, end = _narrowed(wanted, line, at_others[c], at_others[d], i == 0, i == len(codes) - 1)
            steps += self._fitted(line, at_own[a], at_own[b], begin, end)
        return steps

    def _fitted(self, line: str, a: int, b: int, c: int, d: int) -> Iterator[Step]:
        """The letters `a` to `b` beside `c` to `d` of a line. Where not all fit, the first and the last pattern may."""
        if self._expression(self.letters[a:b]).fullmatch(line, c, d):
            yield Step(self._raw(self.letters[a:b]), c, d, True)
            return
        head = self._wild(self.letters[a]) if a < b else None
        tail = self._wild(self.letters[b - 1]) if b - a > 1 else None
        first = re.compile(head.pattern).match(line, c, d) if head is not None else None
        if head is not None and first is not None:
            yield Step(head.text, c, first.end(), True)
            a, c = a + 1, first.end()
        last = re.compile(f"(?:{tail.pattern})$").search(line, c, d) if tail is not None else None
        if last is not None:
            b, end = b - 1, last.start()
        else:
            end = d
        yield Step(self._raw(self.letters[a:b]), c, end, False)
        if tail is not None and last is not None:
            yield Step(tail.text, end, d, True)

    def fitted_to(self, line: str) -> str:
        """The check's text with as few changes as let it fit a line."""
        steps = self.beside(line)
        return "".join(s.text if s.same else literal(line[s.begin : s.end]) for s in steps).strip()


def _narrowed(wanted: str, line: str, begin: int, end: int, first: bool, last: bool) -> tuple[int, int]:
    """The words of a stretch of a line that are like a text. The first and the last stretch of a check may be cut."""
    same = SequenceMatcher(None, wanted, line[begin:end], autojunk=False).find_longest_match()
    if not (first or last) or 2 * same.size < len(wanted) or not same.size:
        return begin, end
    words = [begin + at for at in _offsets(_TOKEN.findall(line[begin:end]))]
    left, right = begin + same.b, begin + same.b + same.size
    return (
        max(at for at in words if at <= left) if first else begin,
        min(at for at in words if at >= right) if last else end,
    )


def _offsets(tokens: Sequence[str]) -> list[int]:
    """Where each token begins, and where the last one ends."""
    return [0, *accumulate(map(len, tokens))]


def literal(line: str) -> str:
    """A text of the output as the text of a check."""
    return _SPECIAL.sub(lambda m: "{{" + re.escape(m[0]) + "}}", line)


@dataclass(frozen=True)
class Miss:
    """Why an output does not fit: filecheck's message, the check, and where in the output the search began."""

    message: str
    line: int = 0
    check: Check | None = None
    begin: int = 0


class FileCheck:
    """The package filecheck. Raises `RelayError` (R0763) where it is not installed."""

    def __init__(self) -> None:
        self._package = _filecheck()
        #: Its results are prints, so that one thread at a time may ask, or print itself.
        self.lock = threading.Lock()

    def miss(self, text: str, words: Sequence[str], output: str) -> Miss | None:
        """The first check of a test file's text that an output does not fit. `words` are the options and the file's name.

        Raises `ValueError` where filecheck cannot take the options or the checks.
        """
        package = self._package
        with self.lock, contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            try:
                options = package.options.parse_argv_options(["filecheck", *words])
                parser = package.parser.Parser(options, io.StringIO(text), *package.parser.pattern_for_opts(options))
                kept = _Kept(parser)
                matcher = package.matcher.Matcher(options, package.finput.FInput("<output>", output), kept)
                status = matcher.run()
            except package.error.CheckError as e:
                return Miss(e.message, e.op.source_line)
            except Exception as e:  # of another package, which has no one class of errors
                raise ValueError(" ".join(str(e).split()) or type(e).__name__) from None
        if status == 0:
            return None
        said = [line for line in _ANSI.sub("", out.getvalue()).splitlines() if line.strip()]
        at = _AT_LINE.search(said[0].replace(options.match_filename, "", 1)) if said else None
        if at is None:
            return Miss(said[0] if said else "the output is not the expected one")
        op = next((op for op in kept.ops if op.source_line == int(at[1])), None)
        check = _check(op, matcher.ctx.live_variables) if op is not None else None
        excluded = matcher.ctx.negative_matches_start if check is not None and check.kind == "NOT" else None
        begin = matcher.file.range.start if excluded is None else excluded
        return Miss(at[2], int(at[1]), check, min(begin, len(output)))

    def checks(self, text: str, words: Sequence[str]) -> list[Check]:
        """The checks of a test file's text; none where filecheck cannot read one of them."""
        package = self._package
        try:
            options = package.options.parse_argv_options(["filecheck", *words])
            ops = list(package.parser.Parser(options, io.StringIO(text), *package.parser.pattern_for_opts(options)))
        except Exception:  # of another package, which has no one class of errors
            return []
        return [check for op in ops if (check := _check(op, {})) is not None]


class _Kept:
    """The checks that a parser yields, kept for who asks later."""

    def __init__(self, ops: Iterable[Any]) -> None:
        self._left = ops
        self.ops: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        for op in self._left:
            self.ops.append(op)
            yield op


def _check(op: Any, values: dict[str, str | int]) -> Check | None:
    """A check of filecheck's; None where its patterns are not readable."""
    texts = [] if op.is_literal else list(_patterns(op.arg))
    parts = [u for u in op.uops if type(u).__name__ != "Literal"]
    if len(texts) != len(parts):
        return None
    captured: dict[str, str] = {}
    wilds: list[Wild] = []
    for (begin, end), part in zip(texts, parts):
        match type(part).__name__:
            case "RE":
                pattern = part.content
            case "Capture":
                pattern = captured[part.name] = part.pattern
            case "Subst" if part.variable in values:
                pattern = re.escape(str(values[part.variable]))
            case "Subst":
                pattern = captured.get(part.variable, _VALUE)
            case "PseudoVar":
                pattern = str(op.source_line + part.offset)
            case _:
                return None
        wilds.append(Wild(op.arg[begin:end], pattern))
    letters, done = "", 0
    for i, (begin, end) in enumerate(texts):
        letters += op.arg[done:begin] + chr(_WILD + i)
        done = end
    check = Check(op.source_line, op.name, op.arg, letters + op.arg[done:], tuple(wilds))
    try:
        return check if check.pattern else None
    except re.error:
        return None


def _patterns(text: str) -> Iterator[tuple[int, int]]:
    """The begin and the end of each `{{...}}` and `[[...]]`."""
    at = 0
    while (match := _SPECIAL.search(text, at)) is not None:
        at = match.end()
        if match[0] == "{{":
            end = text.find("}}", at)
            if end < 0:
                return
            at = end + 2
        else:
            depth = 2
            while depth and at < len(text):
                if text[at] == "\\":
                    at += 1
                depth += {"[": 1, "]": -1}.get(text[at : at + 1], 0)
                at += 1
        yield match.start(), at


_TITLES = {
    "NEXT": "the next line of the output does not fit this check",
    "SAME": "the rest of the line does not fit this check",
    "COUNT": "too few texts of the output fit this check",
    "NOT": "the output has a text that this check excludes",
    "EMPTY": "the next line of the output is not empty",
    "LABEL": "no line of the output fits this label",
}


def diagnose(miss: Miss, test: TestFile, run: Run, output: str) -> Diagnostic:
    """A failed check: its place, its nearest text of the output, and the letters that differ."""
    notes = [f"ran: {run}"]
    inside = 1 <= miss.line <= len(test.lines)
    span = test.span(miss.line) if inside else run.span
    undefined = _UNDEFINED.match(miss.message)
    check = miss.check
    if undefined is not None:
        title = f"`[[{undefined[1]}]]` has no value here: write `[[{undefined[1]}:regular expression]]` in a check above"
        return error("R0760", title, span, notes=notes)
    if miss.message.endswith("is empty."):
        return error("R0760", "the output is empty", span, notes=notes)
    expression = wrong_expression(test, miss.line) if inside and "regex" in miss.message else None
    if expression is not None:
        place, text, reason = expression
        notes.append("a sign that stands for itself there has a `\\` in front; outside of `{{ }}` every sign does")
        return error("R0760", f"`{text[:60]}` holds no regular expression: {reason}", place, notes=notes)
    if check is None or not inside or "regex" in miss.message:
        return error("R0760", miss.message, span, notes=notes)
    at = span.source.text.find(check.text, span.start, span.end) if check.text else -1
    if at >= 0:
        span = Span(span.source, at, at + len(check.text))
    title = _TITLES.get(check.kind, "no text in the rest of the output fits this check")
    seen = _Seen(check, SourceFile("<output>", output), miss.begin)
    return error("R0760", title, span, also=seen.labels(), notes=[*seen.notes(), *notes])


@dataclass(frozen=True)
class _Seen:
    """An output as a failed check sees it, from `begin` on."""

    check: Check
    output: SourceFile
    begin: int

    def notes(self) -> list[str]:
        return [] if self.check.kind == "EMPTY" or self._nearest or self._found else ["no line of the output is like this check"]

    def labels(self) -> Iterator[tuple[Span, str]]:
        kind, match = self.check.kind, self._found
        if kind == "NOT" and match:
            yield self._span(match.start(), match.end()), "this is excluded"
        elif kind == "EMPTY" or (kind in ("NEXT", "SAME") and match):
            here = self._next_line if kind != "SAME" else self.output.locate(self.begin)[0]
            yield self._line(here), "the search looks at this line alone"
            if match:
                yield self._span(match.start(), match.end()), "this fits, at another line"
        elif match:
            says = "and more are wanted" if kind == "COUNT" else "but stands before the match of an earlier check"
            yield self._span(match.start(), match.end()), f"this fits, {says}"
        elif self._nearest:
            yield from self._differences(*self._nearest)
        elif self.output.text[self.begin :].strip():
            yield self._line(self._next_line), "the search begins here"

    @cached_property
    def _next_line(self) -> int:
        """The line behind the last match; the first one where nothing has matched."""
        line = self.output.locate(self.begin)[0] + (self.begin > 0)
        return min(line, self.output.line_count())

    @cached_property
    def _found(self) -> re.Match[str] | None:
        """A text that fits, where the check does not look; for NOT, where it does."""
        if self.check.kind == "EMPTY":
            return None
        text = self.output.text
        return self.check.pattern.search(text, self.begin) or self.check.pattern.search(text)

    @cached_property
    def _nearest(self) -> tuple[int, str] | None:
        """The nearest line and its text."""
        kind = self.check.kind
        lines = [self.output.line(i) for i in range(1, self.output.line_count() + 1)]
        first = self.output.locate(self.begin)[0]
        if kind in ("NEXT", "SAME"):
            first = self._next_line if kind == "NEXT" else first
            best = self.check.nearest(lines[first - 1 : first])
        else:
            best = self.check.nearest(lines[first - 1 :])
        return None if best is None or kind in ("NOT", "EMPTY") else (first + best, lines[first + best - 1])

    def _differences(self, line: int, text: str) -> Iterator[tuple[Span, str]]:
        start = self.output.line_starts()[line - 1]
        steps = [step for step in self.check.beside(text) if not step.same]
        if not 0 < len(steps) <= _MOST_MARKS:
            yield self._line(line), "this line is nearest"
            return
        for step in steps:
            says = f"the check has `{step.text}` here" if step.text else "the check has not this"
            if step.begin == step.end:
                says = f"the check has `{step.text}` before this"
            yield self._span(start + step.begin, start + max(step.end, step.begin + 1)), says

    def _line(self, number: int) -> Span:
        start = self.output.line_starts()[number - 1]
        text = self.output.line(number)
        return self._span(start + len(text) - len(text.lstrip()), start + max(1, len(text)))

    def _span(self, begin: int, end: int) -> Span:
        return Span(self.output, begin, end)


def _filecheck() -> ModuleType:
    """The package filecheck. Raises `RelayError` where it is not installed."""
    try:
        import filecheck.error
        import filecheck.finput
        import filecheck.matcher
        import filecheck.options
        import filecheck.parser
    except ImportError:
        notes = ["pip install 'relaylang[golden]'"]
        raise RelayError(error("R0763", "relay test needs the package filecheck", notes=notes)) from None
    return filecheck
