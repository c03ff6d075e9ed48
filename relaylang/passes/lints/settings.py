"""Which lints run: options of a call, or the table `[tool.relay]` of the nearest pyproject.toml.

    [tool.relay]
    select = ["R10"]        # all lints, which is the default
    ignore = ["R1004"]

A code may be cut off: it stands for all codes that begin so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.passes.lints import LINTS
from relaylang.runtime.text import read_text

KEYS = ("select", "ignore")


def chosen(select: Sequence[str] | None, ignore: Sequence[str] | None, where: str) -> frozenset[str]:
    """The codes of the lints to run. Raises `RelayError` (R0710) for one that no lint has; `where` names the place."""
    wanted = [_expanded(code, where) for code in (select if select is not None else ["R10"])]
    without = [_expanded(code, where) for code in (ignore or ())]
    return frozenset().union(*wanted) - frozenset().union(*without)


def _expanded(code: str, where: str) -> frozenset[str]:
    found = frozenset(name for name in LINTS if name.startswith(code)) if code else frozenset()
    if not found:
        near = did_you_mean(code, LINTS)
        notes = [f"did you mean {near}?"] if near else []
        raise RelayError(error("R0710", f"{where} names {code!r}, the code of no lint", notes=[*notes, f"known: {', '.join(LINTS)}"]))
    return found


def codes_for(path: str) -> frozenset[str]:
    """The lints that run on a file, by its pyproject.toml. Raises `RelayError` (R0710)."""
    table, file = table_for(path)
    return chosen(table.get("select"), table.get("ignore"), file)


def table_for(path: str) -> tuple[dict[str, list[str]], str]:
    """The table of the nearest pyproject.toml that has one, and the file's name; an empty table where there is none.

    Raises `RelayError` (R0710) for a file that cannot be read, and for keys and values that are unknown.
    """
    folder = Path.cwd() if path == "-" else Path(path).absolute().parent
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            found = _table(file)
            if found is not None:
                return found, str(file)
    return {}, ""


def _table(file: Path) -> dict[str, list[str]] | None:
    text = read_text(str(file)).text
    if "tool.relay" not in text:
        return None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise _wrong(file, "cannot be read: Python 3.10 needs the package tomli for it") from None
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as problem:
        raise _wrong(file, f"is no TOML: {problem}") from None
    table: Any = tool.get("relay") if isinstance(tool, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise _wrong(file, "has a tool.relay that is no table")
    for key, value in table.items():
        if key not in KEYS:
            raise _wrong(file, f"has the unknown key {key} in [tool.relay]", f"known: {', '.join(KEYS)}")
        if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
            raise _wrong(file, f"has a {key} that is no list of codes", f'as in {key} = ["R1001"]')
    return table


def _wrong(file: Path, what: str, note: str = "") -> RelayError:
    return RelayError(error("R0710", f"{file} {what}", notes=[note] if note else []))


__all__ = ["chosen", "codes_for", "table_for"]
