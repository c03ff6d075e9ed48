"""Rewrites the expectations of a test file by its results, and changes nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from relaylang.runtime.files import atomic_write
from relaylang.testing.directives import Found, Part, Run, TestFile, check_pattern

_DIRECTIVE = re.compile(r"^\s*(?://|#)\s*(?:RUN:|expected-\w)")
_EXPECTED = re.compile(r"\s*(?://|#)\s*expected-(?:error|warning|note)[^\n]*$")
#: What may be anything. `{{\{\{}}` and the like, which an update writes, may not.
_OPEN = re.compile(r"\{\{(?!\\[{\[]\\[{\[]\}\}).*?\}\}|\[\[.*?\]\]")
#: How near a line must be to a check to be written for it.
_LIKE = 0.5
_SPECIAL = re.compile(r"\{\{|\[\[(?=\$?[#A-Za-z_])")


def updated(test: TestFile, run: Run, parts: Sequence[tuple[Part, str, Sequence[Found]]]) -> bool:
    """Rewrite the expectations of one RUN line. False where the run made nothing that could be expected."""
    if run.verify:
        lines = _expectations(test, parts)
    else:
        lines = _checks(test, run, parts)
    if lines is None:
        return False
    atomic_write(test.source.name, "\n".join(lines) + "\n")
    return True


def _checks(test: TestFile, run: Run, parts: Sequence[tuple[Part, str, Sequence[Found]]]) -> list[str] | None:
    prefix = run.prefixes[0]
    pattern = check_pattern(run.prefixes)
    lines: list[str] = []
    done = 0
    written = False
    for part, output, _ in parts:
        block = _block(prefix, output)
        lines += test.lines[done : part.first - 1]
        own = test.lines[part.first - 1 : part.last]
        places = [i for i, line in enumerate(own) if pattern.search(line) and not _DIRECTIVE.match(line)]
        if _selective([own[i] for i in places], pattern, block):
            lines += _chosen(own, places, pattern, output)
            written = written or lines[-len(own) :] != own
            done = part.last
            continue
        written = written or bool(block)
        at = places[0] if places else _behind_directives(own)
        kept = [line for i, line in enumerate(own[:at]) if i not in places]
        rest = [line for i, line in enumerate(own[at:], at) if i not in places]
        lines += [*kept, *block, *([""] if block and rest and rest[0].strip() and not places else []), *rest]
        done = part.last
    return lines + test.lines[done:] if written else None


def _selective(checks: Sequence[str], pattern: re.Pattern[str], block: Sequence[str]) -> bool:
    """Whether the checks select some lines of the output. An update must then not replace them by all lines.

    An update writes a CHECK for each block of lines, then CHECK-NEXT for the others, without patterns.
    """
    found = [f for line in checks if (f := pattern.search(line))]
    heads = [f.group() for f in found]
    follows = sum(head.endswith("-NEXT:") for head in heads)
    plain = sum(re.search(r"-(?:DAG|COUNT-\d+|NOT|EMPTY|NEXT|SAME|LABEL)|\{", head) is None for head in heads)
    if follows + plain < len(heads) or any(_OPEN.search(f.string, f.end()) for f in found):
        return True
    return bool(heads) and follows < max(plain, 2) - 1 + (len(heads) == 1) and (len(heads) > 1 or len(block) > 1)


def _chosen(own: Sequence[str], places: Sequence[int], pattern: re.Pattern[str], output: str) -> list[str]:
    """A part's lines. The nearest line of the output replaces each check without a match."""
    came = [line.strip() for line in output.partition("\n#[metadata]")[0].splitlines() if line.strip()]
    lines = list(own)
    for i in places:
        found = pattern.search(own[i])
        assert found is not None
        wanted = own[i][found.end() :].strip()
        if re.search(r"-(?:NOT|EMPTY)", found.group()) or any(_meets(line, wanted) for line in came):
            continue
        near = max(came, key=lambda line: _likeness(wanted, line), default="")
        if _likeness(wanted, near) >= _LIKE:
            lines[i] = f"{own[i][: found.end()]} {_shown(near)}"
    return lines


def _likeness(wanted: str, line: str) -> float:
    """How near to what a check wants a line is where they have most in common: from 0 to 1."""
    same = SequenceMatcher(None, wanted, line, autojunk=False).find_longest_match()
    begin = max(0, same.b - same.a)
    return SequenceMatcher(None, wanted, line[begin : begin + len(wanted)], autojunk=False).ratio()


def _meets(line: str, wanted: str) -> bool:
    """Whether a line has what a check wants: its text, with `{{...}}` and `[[...]]` for what may be anything."""
    parts = re.split(r"\{\{.*?\}\}|\[\[.*?\]\]", wanted)
    spaced = [r"\s+".join(map(re.escape, part.split())) for part in parts]
    return re.search(r".*".join(spaced), line) is not None


def _shown(line: str) -> str:
    """A line of the output as the text of a check."""
    return _SPECIAL.sub(lambda m: "{{" + re.escape(m[0]) + "}}", line.rstrip())


def _behind_directives(lines: Sequence[str]) -> int:
    """The number of lines up to the last RUN line at the top."""
    last = 0
    for i, line in enumerate(lines):
        if _DIRECTIVE.match(line):
            last = i + 1
        elif line.strip() and not line.lstrip().startswith("//"):
            break
    return last


def _block(prefix: str, output: str) -> list[str]:
    """The checks for an output: its lines one behind the other, without the header and the values of constants."""
    block: list[str] = []
    follows = False
    for line in output.partition("\n#[metadata]")[0].splitlines():
        if not line.strip() or line.startswith("#[version"):
            follows = False
            continue
        block.append(f"// {prefix}{'-NEXT' if follows else ''}: {_shown(line)}")
        follows = True
    return block


def _expectations(test: TestFile, parts: Sequence[tuple[Part, str, Sequence[Found]]]) -> list[str] | None:
    notes = any(e.severity == "note" for part in test.parts for e in part.expected)
    wanted: dict[int, list[str]] = {}
    kept: dict[int, str] = {}
    for number, line in enumerate(test.lines, 1):
        bare = _EXPECTED.sub("", line)
        if bare == line or bare.strip():
            kept[number] = bare
    for part, _, found in parts:
        top = min((n for n in kept if n >= part.first), default=part.first)
        for f in found:
            if f.severity != "note" or notes:
                place = f.line if f.line in kept else None
                text = f"expected-{f.severity}@{'+' if place else 'unknown'}"
                wanted.setdefault(place or top, []).append(f"{text} {{{{{f.title}}}}}")
    if not wanted:
        return None
    lines: list[str] = []
    for number, line in kept.items():
        here = wanted.get(number, [])
        indent = line[: len(line) - len(line.lstrip())]
        for i, text in enumerate(here):
            lines.append(f"{indent}// {text.replace('@+ ', f'@+{len(here) - i} ', 1)}")
        lines.append(line)
    return lines
