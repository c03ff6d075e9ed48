"""Test files with directives in their comments.

Example:

    // RUN: relay opt %s --passes FoldConstant
    // CHECK: add(%x, 3f)

    // RUN: relay check %s --verify-diagnostics
    // expected-error@+1 {{`nn.rellu` is not an operator}}

    // -----                    splits the file into parts, which run separately
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from relaylang.diagnostics import Diagnostic, Fix, RelayError, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.diagnostics.suggest import allowed, edits
from relaylang.runtime.text import read_text
from relaylang.syntax.tokeniser import is_blank

VERIFY = "--verify-diagnostics"
_RUN = re.compile(r"^\s*(?://|#)\s*RUN:(.*)$")
_SPLIT = re.compile(r"^\s*//\s*-----+\s*$")
_EXPECTED = re.compile(r"(?://|#)\s*expected-(\w+)(.*)$")
#: Where an expectation names its line.
EXPECTED_PLACE = re.compile(r"@(?:[+-]?\d+|above|below|unknown)(?=\s*\{\{)")
_REST = re.compile(r"(-re)?(?:@([+-]?\d+|above|below|unknown))?\s*\{\{(.*)\}\}\s*$")
_MERGE = "2>&1"
#: A comment that begins with a word in capitals, as checks do, and a regular expression in a check.
_WORD = re.compile(r"\s*(?://|#)\s*([A-Z][A-Z0-9]*)(?:-[A-Z]+(?:-\d+)?)?(?:\{LITERAL\})?:")
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}")


@dataclass(frozen=True)
class Command:
    """One call of a RUN line: the words behind `relay` (or `filecheck`). `fails`: `not` stands in front of it."""

    words: tuple[str, ...]
    fails: bool = False
    merge: bool = False


@dataclass(frozen=True)
class Run:
    """A RUN line: its calls, each reading what the one before wrote, and how the last one's output is checked."""

    span: Span
    commands: tuple[Command, ...]
    filecheck: tuple[str, ...]
    verify: bool

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The words that begin this line's checks, `CHECK` where none is named."""
        prefixes: list[str] = []
        words = [part for w in self.filecheck for part in w.split("=", 1)]
        for name, value in pairwise(words):
            if name.lstrip("-") in ("check-prefix", "check-prefixes"):
                prefixes += value.split(",")
        return tuple(prefixes) or ("CHECK",)

    def __str__(self) -> str:
        return " | ".join("not " * c.fails + "relay " + shlex.join(c.words) for c in self.commands)


@dataclass(frozen=True)
class Expected:
    """A diagnostic that a test expects. `line` counts from 1, None where it has no place."""

    span: Span
    severity: str
    line: int | None
    text: str
    regex: bool

    def fits(self, found: Found) -> bool:
        if found.severity != self.severity or found.line != self.line:
            return False
        if self.regex:
            pieces = re.split(r"\{\{(.*?)\}\}", self.text)
            pattern = "".join(p if i % 2 else re.escape(p) for i, p in enumerate(pieces))
            return re.search(pattern, found.says) is not None
        return self.text in found.says


@dataclass(frozen=True)
class Found:
    """A diagnostic that a run made."""

    severity: str
    code: str
    title: str
    line: int | None
    notes: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        return "\n".join([f"{self.code}: {self.title}", *self.notes])


@dataclass
class Part:
    """The lines `first` to `last` (from 1) between two `// -----`, and their expectations."""

    first: int
    last: int
    expected: list[Expected] = field(default_factory=list)


@dataclass
class TestFile:
    """A test file's directives."""

    __test__ = False

    source: SourceFile
    lines: list[str]
    runs: list[Run]
    parts: list[Part]

    def part_text(self, part: Part) -> str:
        """A part's text, its lines where they are in the file."""
        return "\n" * (part.first - 1) + "\n".join(self.lines[part.first - 1 : part.last]) + "\n"

    def span(self, line: int) -> Span:
        """The stretch of a line's text."""
        starts = self.source.line_starts()
        text = self.source.line(line)
        begin = starts[line - 1] + len(text) - len(text.lstrip())
        return Span(self.source, begin, starts[line - 1] + len(text.rstrip()))


def read_test(path: str) -> TestFile:
    """The directives of a file. Raises `RelayError` for a file that cannot be read and for wrong directives."""
    source = read_text(path)
    lines = source.text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    test = TestFile(source, lines, [], [])
    wrong: list[Diagnostic] = []
    held, held_at = "", 0
    first = 1
    bounds = [i for i, line in enumerate(lines, 1) if _SPLIT.match(line)]
    for bound in [*bounds, len(lines) + 1]:
        test.parts.append(Part(first, bound - 1))
        first = bound + 1
    part = iter(test.parts)
    current = next(part)
    for number, line in enumerate(lines, 1):
        while number > current.last + 1:
            current = next(part)
        try:
            run = _RUN.match(line)
            if run is not None:
                held_at = held_at or number
                held += run[1].removesuffix("\\")
                if not run[1].endswith("\\"):
                    text, at = held, held_at
                    held, held_at = "", 0
                    test.runs.append(_run(text, test.span(at)))
            elif (match := _EXPECTED.search(line)) is not None:
                current.expected.append(_expected(match, number, test.span(number)))
        except RelayError as e:
            wrong += e.diagnostics
    if held:
        wrong.append(_bad(test.span(held_at), "this RUN line goes on with `\\`, and no RUN line follows"))
    wrong += _unknown_checks(test)
    if wrong:
        raise RelayError(wrong)
    test.parts = [p for p in test.parts if p.expected or not is_blank(test.part_text(p))] or test.parts[:1]
    return test


def _unknown_checks(test: TestFile) -> list[Diagnostic]:
    """Checks such as `CHECK-NXT:`, which nothing would look at."""
    prefixes = sorted({p for run in test.runs if not run.verify for p in run.prefixes})
    if not prefixes:
        return []
    known = check_pattern(prefixes)
    wrong = _misspelt_checks(test, prefixes)
    like = re.compile(rf"(?://|#)\s*((?:{'|'.join(map(re.escape, prefixes))})-[A-Z][\w-]*)(?:\{{LITERAL\}})?:")
    unknown = [(i, m) for i, line in enumerate(test.lines, 1) if (m := like.search(line)) and not known.search(line)]
    kinds = ", ".join(f"-{k}" for k in ("NEXT", "SAME", "NOT", "DAG", "LABEL", "EMPTY", "COUNT-n"))
    note = f"behind the prefix stands nothing, or one of {kinds}"
    return [*wrong, *(_bad(test.span(i), f"there is no check `{m[1]}:`", note) for i, m in unknown)]


def _misspelt_checks(test: TestFile, prefixes: Sequence[str]) -> list[Diagnostic]:
    """Checks such as `CHEK:`, which nothing would look at."""
    errors = []
    starts = test.source.line_starts()
    for number, line in enumerate(test.lines, 1):
        written = _WORD.match(line)
        if written is None or written[1].startswith(tuple(prefixes)):
            continue
        word = written[1]
        near = next((p for p in prefixes if edits(word, p, 2) <= min(2, allowed(p))), None)
        if near is not None:
            span = Span(test.source, starts[number - 1] + written.start(1), starts[number - 1] + written.end(1))
            errors.append(error("R0762", f"there is no check `{word}:`", span, fix=Fix(span, near, f"did you mean `{near}`?")))
    return errors


def wrong_expression(test: TestFile, number: int) -> tuple[Span, str, str] | None:
    """The first `{{...}}` of a line (from 1) that is no regular expression: its wrong place, text, and reason."""
    line, start = test.lines[number - 1], test.source.line_starts()[number - 1]
    for inner in _EXPRESSION.finditer(line):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # classes of POSIX, such as [[:alpha:]]
                re.compile(inner[1])
        except re.error as e:
            at = start + inner.start(1) + min(e.pos or 0, len(inner[1]))
            return Span(test.source, at, at + 1), inner[0], e.msg
    return None


def _bad(span: Span, title: str, *notes: str) -> Diagnostic:
    return error("R0762", title, span, notes=notes)


def _run(text: str, span: Span) -> Run:
    lexer = shlex.shlex(text.replace(_MERGE, " \0 "), posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError as e:
        raise RelayError(_bad(span, f"this RUN line cannot be read: {str(e).lower()}")) from None
    calls: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            calls.append([])
        elif word and set(word) <= set("|<>&;"):
            raise RelayError(_bad(span, f"a RUN line has no `{word}`", "it runs without a shell; %t is a temporary file"))
        else:
            calls[-1].append(_MERGE if word == "\0" else word)
    filecheck: list[str] = []
    if len(calls) > 1 and calls[-1][:1] == ["filecheck"]:
        filecheck = calls.pop()[1:]
    verify = any(VERIFY in call for call in calls)
    commands = [_command([w for w in call if w not in (VERIFY, "--split-input-file")], span) for call in calls]
    if verify and (filecheck or len(commands) > 1):
        raise RelayError(_bad(span, f"{VERIFY} stands with one call and no filecheck"))
    return Run(span, tuple(commands), tuple(filecheck), verify)


def _command(words: list[str], span: Span) -> Command:
    fails = words[:1] == ["not"]
    words = words[fails:]
    merge = _MERGE in words
    words = [w for w in words if w != _MERGE]
    if len(words) < 2 or words[0] != "relay":
        said = f"`{' '.join(words)[:60]}`" if words else "nothing"
        note = "e.g. `// RUN: relay opt %s --passes FuseOps`"
        if words and words[0].lower() == "filecheck":
            note = "leave it out: the output is compared with the checks of the file; `| filecheck OPTIONS` takes options"
        raise RelayError(_bad(span, f"a RUN line calls `relay VERB ...`, not {said}", note))
    return Command(tuple(words[1:]), fails, merge)


def _expected(match: re.Match[str], number: int, span: Span) -> Expected:
    severity, rest = match[1], _REST.match(match[2])
    if severity not in ("error", "warning", "note") or rest is None:
        example = "`// expected-error@+1 {{text}}`, with error, warning or note, and @+N, @-N, @N, @above, @below or @unknown"
        raise RelayError(_bad(span, "this expectation cannot be read", f"it is written {example}"))
    regex, place, text = rest.groups()
    if not text.strip():
        raise RelayError(error("R0761", "this expectation has no text, so that anything would fit", span))
    line: int | None = number
    if place == "unknown":
        line = None
    elif place is not None:
        step = {"above": "-1", "below": "+1"}.get(place, place)
        line = number + int(step) if step[0] in "+-" else int(step)
    if regex:
        try:
            re.compile("".join(re.split(r"\{\{(.*?)\}\}", text)[1::2]))
        except re.error as e:
            raise RelayError(_bad(span, f"this regular expression is wrong: {e}")) from None
    return Expected(span, severity, line, text, regex is not None)


def checks(test: TestFile, prefixes: Sequence[str]) -> list[int]:
    """The lines (from 1) with a check of one of the prefixes."""
    pattern = check_pattern(prefixes)
    return [i for i, line in enumerate(test.lines, 1) if pattern.search(line) and not _RUN.match(line)]


def check_pattern(prefixes: Sequence[str]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, prefixes))
    return re.compile(rf"(?://|#)\s*(?:{names})(?:-(?:DAG|COUNT-\d+|NOT|EMPTY|NEXT|SAME|LABEL))?(?:\{{LITERAL\}})?:")
