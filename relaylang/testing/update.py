"""Rewrites the expectations of a test file that its results do not fit, and changes nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from relaylang.testing.directives import EXPECTED_PLACE, Expected, Found, Part, TestFile, check_pattern
from relaylang.testing.expected import unfit
from relaylang.testing.matching import LIKE, Check, Miss, literal

_DIRECTIVE = re.compile(r"^\s*(?://|#)\s*(?:RUN:|expected-\w)")
_EXPECTED = re.compile(r"\s*(?://|#)\s*expected-(?:error|warning|note)[^\n]*$")

#: A part of a file, what a RUN line wrote for it, and its diagnostics.
Output = tuple[Part, str, Sequence[Found]]


@dataclass(frozen=True)
class Checks:
    """Rewrites the checks of one RUN line, in the lines of its file.

    `miss` tells the first check of a text that the outputs do not fit, `readable` all checks of a text.
    """

    lines: Sequence[str]
    prefixes: Sequence[str]
    outputs: Sequence[Output]
    miss: Callable[[str], Miss | None]
    readable: Callable[[str], list[Check]]

    def updated(self) -> list[str] | None:
        """The lines with checks that the outputs fit; None where no change of checks alone makes them fit.

        The nearest line of the output replaces each text that fails. Where that is not enough, checks that cover the output
        of their part get and lose lines.
        """
        ways = (lambda: list(self.lines), lambda: self._covering(False), lambda: self._covering(True))
        for begun in ways:
            lines = self._nearest(begun())
            if lines is not None:
                return lines
        return None

    def _nearest(self, lines: list[str]) -> list[str] | None:
        """The lines with the nearest text of the output in each check that fails."""
        tried: set[int] = set()
        output = joined(self.outputs)
        while (miss := self.miss(text_of(lines))) is not None:
            check = miss.check
            if check is None or check.kind in ("NOT", "EMPTY") or check.line in tried:
                return None
            tried.add(check.line)
            came = _without_constants(output[miss.begin :])
            near = check.nearest(came)
            if near is None:
                return None
            old = lines[check.line - 1]
            lines[check.line - 1] = old[: old.rindex(check.text)] + check.fitted_to(came[near])
        return lines

    def _covering(self, every: bool) -> list[str]:
        """The lines, where the checks of each part that cover its output are its lines now.

        `every`: so are those that cover less than half, and capture nothing.
        """
        known = {check.line: check for check in self.readable(text_of(self.lines))}
        pattern = check_pattern(self.prefixes)
        lines: list[str] = []
        done = 0
        for part, output, _ in self.outputs:
            lines += self.lines[done : part.first - 1]
            own = list(self.lines[part.first - 1 : part.last])
            places = [i for i, line in enumerate(own) if pattern.search(line) and not _DIRECTIVE.match(line)]
            block = _block(output)
            most = 2 * len(places) >= len(block) or (every and not any("[[" in own[i] for i in places))
            if most and _chain([match.group() for i in places if (match := pattern.search(own[i]))], len(block)):
                own = _aligned(own, {i: known.get(part.first + i) for i in places}, block, self.prefixes[0])
            lines += own
            done = part.last
        return lines + list(self.lines[done:])


def joined(outputs: Sequence[Output]) -> str:
    """What a RUN line wrote for all parts, as its checks see it."""
    return "\n".join(text for _, text, _ in outputs)


def text_of(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _chain(heads: Sequence[str], lines: int) -> bool:
    """Whether the checks stand for lines one behind the other: a CHECK for each block of lines, then CHECK-NEXT."""
    follows = sum(head.endswith("-NEXT:") for head in heads)
    plain = sum(re.search(r"-(?:DAG|COUNT-\d+|NOT|EMPTY|NEXT|SAME|LABEL)|\{", head) is None for head in heads)
    if follows + plain < len(heads):
        return False
    return not heads or (lines <= 1 if len(heads) == 1 else follows >= max(plain, 2) - 1)


def _block(output: str) -> list[tuple[str, bool]]:
    """The lines of an output without the header and the values of constants, and whether each follows another."""
    block: list[tuple[str, bool]] = []
    follows = False
    for line in _without_constants(output):
        if line and not line.startswith("#[version"):
            block.append((line, follows))
        follows = bool(line) and not line.startswith("#[version")
    return block


def _without_constants(output: str) -> list[str]:
    return [line.strip() for line in output.partition("\n#[metadata]")[0].splitlines()]


def _aligned(own: Sequence[str], checks: dict[int, Check | None], block: Sequence[tuple[str, bool]], prefix: str) -> list[str]:
    """A part's lines with a check for each line of the output. Checks that fit a line of it stay as they are, in their places.

    `checks` has the check on each line of the part that holds one; None for those that cannot be read.
    """
    texts = [text for text, _ in block]
    places = list(checks)
    fits = [next((t for t in texts if check is not None and check.pattern.search(t)), own[i]) for i, check in checks.items()]
    new: dict[int, str | None] = {}
    added: dict[int, list[str]] = {}
    end = places[-1] + 1 if places else _behind_directives(own)
    for _, a, b, c, d in SequenceMatcher(None, fits, texts, autojunk=False).get_opcodes():
        for i, j in zip_longest(range(a, b), range(c, d)):
            if j is None:
                new[places[i]] = None
            elif i is None:
                before = places[b] if b < len(places) else end
                added.setdefault(before, []).append(_line(own[places[-1]] if places else "//", prefix, *block[j]))
            else:
                new[places[i]] = _rewritten(own[places[i]], checks[places[i]], prefix, *block[j])
    lines: list[str] = []
    for i, line in enumerate([*own, None]):
        lines += added.get(i, [])
        if i in added and not places and line and line.strip():
            lines.append("")
        kept = new.get(i, line)
        if kept is not None:
            lines.append(kept)
    return lines


def _rewritten(old: str, check: Check | None, prefix: str, text: str, follows: bool) -> str:
    """A line with a check that fits a line of the output."""
    if check is None or (check.kind == "NEXT" and not follows):
        return _line(old, prefix, text, follows)
    if check.pattern.search(text):
        return old
    if check.likeness(text) < LIKE:
        return _line(old, prefix, text, follows)
    return old[: old.rindex(check.text)] + check.fitted_to(text)


def _line(like: str, prefix: str, text: str, follows: bool) -> str:
    """A check for a line of the output, in a comment as `like` has."""
    comment = re.match(r"\s*(?://|#)\s?", like)
    lead = comment[0] if comment else "// "
    return f"{lead if lead.endswith(' ') else lead + ' '}{prefix}{'-NEXT' if follows else ''}: {literal(text)}"


def _behind_directives(lines: Sequence[str]) -> int:
    """The number of lines up to the last RUN line at the top."""
    last = 0
    for i, line in enumerate(lines):
        if _DIRECTIVE.match(line):
            last = i + 1
        elif line.strip() and not line.lstrip().startswith("//"):
            break
    return last


@dataclass
class _Line:
    """A line of the new file. `old` is its number in the old one, `names` the old line that its expectation names."""

    text: str
    old: int | None
    expected: Expected | None = None
    names: int | None = None


def with_expectations(test: TestFile, outputs: Sequence[Output]) -> list[str] | None:
    """The lines of a file with expectations for all diagnostics of a RUN line; None where it made no diagnostic.

    Expectations that fit stay; those that name a line by its distance follow it.
    """
    notes = any(e.severity == "note" for part in test.parts for e in part.expected)
    held = {test.source.locate(e.span.start)[0]: e for part in test.parts for e in part.expected}
    differences = [(part, *unfit(part, diagnostics)) for part, _, diagnostics in outputs]
    wrong = {id(e) for _, missing, _ in differences for e in missing}
    lines: list[_Line] = []
    for number, text in enumerate(test.lines, 1):
        expected = held.get(number)
        if expected is not None and id(expected) in wrong:
            expected, text = None, _EXPECTED.sub("", text)
            if not text.strip():
                continue
        lines.append(_Line(text, number, expected, expected.line if expected else None))
    for part, _, left in differences:
        top = next((n.old for n in lines if n.old is not None and n.old >= part.first), part.first)
        for f in left:
            if f.severity != "note" or notes:
                target = f.line if any(n.old == f.line for n in lines) else None
                _insert(lines, target or top, _Line(f"// expected-{f.severity}@unknown {{{{{f.title}}}}}", None, None, target))
    if not any(n.expected or n.old is None for n in lines):
        return None
    now = {line.old: i for i, line in enumerate(lines) if line.old is not None}
    return [_placed(line, now[line.names] - i if line.names in now else None) for i, line in enumerate(lines)]


def _insert(lines: list[_Line], target: int, line: _Line) -> None:
    """Put a new expectation in front of a line, and of the expectations that stand in front of it."""
    at = next((i for i, n in enumerate(lines) if n.old == target), len(lines))
    here = lines[at].text if at < len(lines) else ""
    while at and lines[at - 1].names is not None and _DIRECTIVE.match(lines[at - 1].text) and lines[at - 1].old is not None:
        at -= 1
    line.text = here[: len(here) - len(here.lstrip())] + line.text
    lines.insert(at, line)


def _placed(line: _Line, distance: int | None) -> str:
    """A line whose expectation names a line at a distance, with that distance."""
    if distance is None or (line.expected is not None and line.expected.line == line.old):
        return line.text
    place = EXPECTED_PLACE.search(line.text)
    if place is None or {"@above": -1, "@below": 1}.get(place[0]) == distance:
        return line.text
    return f"{line.text[: place.start()]}@{distance:+d}{line.text[place.end() :]}"
