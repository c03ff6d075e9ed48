"""Which lints run: options of a call, or the table `[tool.relay]` of the nearest pyproject.toml.

    [tool.relay]
    select = ["R10"]        # all lints, which is the default
    ignore = ["R1004"]

    [tool.relay.per-file-ignores]
    "models/*.relay" = ["R1001"]

A code may be cut off: it stands for all codes that begin so. A pattern is about paths from the file's folder on; one
without `/` is about names of files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from relaylang.diagnostics import RelayError, SourceFile, Span, did_you_mean, error
from relaylang.passes.lints import CODES
from relaylang.runtime.text import read_text

KEYS = ("select", "ignore", "per-file-ignores")


@dataclass
class Table:
    """What a pyproject.toml states, with its text."""

    file: Path
    source: SourceFile
    select: list[str] | None = None
    ignore: list[str] = field(default_factory=list)
    per_file: dict[str, list[str]] = field(default_factory=dict)

    def wrong(self, what: str, word: str = "", note: str = "") -> RelayError:
        """An error at a word of the table, or at the table's header."""
        return RelayError(error("R0710", what, self._place(word), notes=[note] if note else []))

    def _place(self, word: str) -> Span:
        text = self.source.text
        header = re.search(r"tool\s*\.\s*relay|tool", text)
        begin, end = header.span() if header is not None else (0, 0)
        if word:
            at = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])").search(text, end)
            begin, end = at.span() if at is not None else (begin, end)
        return Span(self.source, begin, end)

    def codes(self, path: str) -> frozenset[str]:
        """The codes of the lints that run on a file. Raises `RelayError` (R0710) for a code that no lint has."""
        selected = frozenset().union(*[self._expanded(code) for code in (self.select if self.select is not None else ["R10"])])
        selected -= frozenset().union(*[self._expanded(code) for code in self.ignore])
        inside = Path(path).absolute()
        try:
            name = inside.relative_to(self.file.parent).as_posix()
        except ValueError:
            name = inside.name
        for pattern, codes in self.per_file.items():
            without = frozenset().union(*[self._expanded(code) for code in codes])
            if fnmatchcase(name if "/" in pattern else inside.name, pattern):
                selected -= without
        return selected

    def _expanded(self, code: str) -> frozenset[str]:
        codes = _beginning(code)
        if not codes:
            raise self.wrong(f"{code!r} is the code of no lint", code, _hint(code))
        return codes


def chosen(select: Sequence[str] | None, ignore: Sequence[str] | None) -> frozenset[str]:
    """The codes of the lints that a call selects. Raises `RelayError` (R0710) for one that no lint has."""
    wanted = [_given("--select", code) for code in (select if select is not None else ["R10"])]
    without = [_given("--ignore", code) for code in (ignore or ())]
    return frozenset().union(*wanted) - frozenset().union(*without)


def _given(option: str, code: str) -> frozenset[str]:
    codes = _beginning(code)
    if not codes:
        raise RelayError(error("R0710", f"{option} names {code!r}, the code of no lint", notes=[_hint(code)]))
    return codes


def _beginning(code: str) -> frozenset[str]:
    """The codes that begin so."""
    return frozenset(name for name in CODES if name.startswith(code)) if code else frozenset()


def _hint(code: str) -> str:
    near = did_you_mean(code, CODES)
    return f"did you mean {near}?" if near else f"the codes of lints are {CODES[0]} to {CODES[-1]}"


def codes_for(path: str) -> frozenset[str]:
    """The lints that run on a file, by its pyproject.toml. Raises `RelayError` (R0710)."""
    table = table_for(path)
    return table.codes(path) if table is not None else frozenset(CODES)


def table_for(path: str) -> Table | None:
    """The table of the nearest pyproject.toml that has one; None where there is none.

    Raises `RelayError` (R0710) for a file that cannot be read, and for keys and values that are unknown.
    """
    folder = Path.cwd() if path == "-" else Path(path).absolute().parent
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            table = _table(file)
            if table is not None:
                return table
    return None


def _table(file: Path) -> Table | None:
    text = read_text(str(file)).text
    if not re.search(r"\btool\b", text) or "relay" not in text:
        return None
    table = Table(file, SourceFile(str(file), text))
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            what = "Python 3.10 cannot read this file without the package tomli"
            raise table.wrong(what, note="run pip install tomli") from None
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as problem:
        raise _no_toml(table, str(problem)) from None
    kept: Any = tool.get("relay") if isinstance(tool, dict) else None
    if kept is None:
        return None
    if not isinstance(kept, dict):
        raise table.wrong("tool.relay is no table", "", "write its keys below a line [tool.relay]")
    for key, value in kept.items():
        if key not in KEYS:
            near = did_you_mean(key, KEYS)
            note = f"did you mean {near}?" if near else f"its keys are {', '.join(KEYS)}"
            raise table.wrong(f"[tool.relay] has no key {key}", key, note)
        if key == KEYS[2]:
            if not isinstance(value, dict):
                note = 'write lines such as "models/*.relay" = ["R1001"] below [tool.relay.per-file-ignores]'
                raise table.wrong(f"{key} is no table of patterns", key, note)
            for pattern, codes in value.items():
                _check_codes(table, pattern, codes)
        else:
            _check_codes(table, key, value)
    table.select, table.ignore, table.per_file = kept.get(KEYS[0]), kept.get(KEYS[1], []), kept.get(KEYS[2], {})
    return table


def _check_codes(table: Table, key: str, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise table.wrong(f"{key} is no list of codes", key, 'write a list such as ["R1001"]')


def _no_toml(table: Table, problem: str) -> RelayError:
    """What the reader of TOML says, at its place."""
    at = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)", problem)
    text = table.source.text
    start = len(text.rstrip())
    if at is not None and at[1]:
        start = table.source.line_starts()[int(at[1]) - 1] + int(at[2]) - 1
    what = problem[: at.start()] if at is not None else problem
    place = Span(table.source, min(start, len(text)), min(start + 1, len(text)))
    return RelayError(error("R0710", f"this file is no TOML: {what[:1].lower()}{what[1:]}", place))


__all__ = ["Table", "chosen", "codes_for", "table_for"]
