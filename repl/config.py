"""What a person likes: `relaylang/config.ini` in the configuration folder, and the history. A broken file is a warning."""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from relaylang.diagnostics import Diagnostic, did_you_mean, error
from relaylang.repl.tools import KEYS
from relaylang.runtime.text import reason

_SECTION = "repl"
#: Inputs longer than this are not kept in the history.
_LONGEST_KEPT = 100_000


@dataclass
class Settings:
    """`keys`: emacs or vi; `complete_while_typing`: without Tab; `highlight`: colours; `history`: across sessions.

    `suggestions`: the rest of an earlier input that begins like this one.
    """

    keys: str = "emacs"
    complete_while_typing: bool = False
    signatures: bool = True
    highlight: bool = True
    history: bool = True
    suggestions: bool = True
    said: list[Diagnostic] = field(default_factory=list)


def config_file() -> Path:
    return _folder("XDG_CONFIG_HOME", ".config") / "config.ini"


def _folder(variable: str, below_home: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / below_home) / "relaylang"


def settings() -> Settings:
    """The settings of the configuration file. `said` gets its errors; a wrong setting has its default."""
    out = Settings()
    try:
        path = config_file()
        text = path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return out
    except (OSError, UnicodeDecodeError, RuntimeError) as e:
        out.said.append(_warning("R0727", f"the configuration cannot be read: {reason(e)}"))
        return out
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text, str(path))
    except configparser.Error as e:
        says = " ".join(str(e).split())
        out.said.append(_warning("R0727", f"the configuration is not right: {says}", "none of its settings is used"))
        return out
    for section in parser.sections():
        if section != _SECTION:
            out.said.append(_warning("R0727", f"{path}: unknown section [{section}]", f"there is [{_SECTION}]"))
    values = parser[_SECTION] if parser.has_section(_SECTION) else {}
    for key, value in values.items():
        take = _KEYS.get(key)
        if take is None:
            near = did_you_mean(key, _KEYS)
            note = f"did you mean {near}?" if near else f"there are {', '.join(_KEYS)}"
            out.said.append(_warning("R0727", f"{path}: unknown setting {key}", note))
            continue
        try:
            setattr(out, key, take(value))
        except ValueError as e:
            out.said.append(_warning("R0727", f"{path}: {key} is {e}, not {value}"))
    return out


def _warning(code: str, title: str, *notes: str) -> Diagnostic:
    return error(code, title, notes=notes, severity="warning")


def _choice(value: str) -> str:
    if value.lower() not in KEYS:
        raise ValueError(" or ".join(KEYS))
    return value.lower()


def _flag(value: str) -> bool:
    known = configparser.ConfigParser.BOOLEAN_STATES
    if value.lower() not in known:
        raise ValueError("yes or no")
    return known[value.lower()]


_KEYS: dict[str, Callable[[str], object]] = {
    "keys": _choice,
    "complete_while_typing": _flag,
    "signatures": _flag,
    "highlight": _flag,
    "history": _flag,
    "suggestions": _flag,
}


class _ShortHistory(FileHistory):
    """A file of inputs, without those that are too long to want back. A full disk ends nothing."""

    def store_string(self, string: str) -> None:
        if len(string) <= _LONGEST_KEPT:
            try:
                super().store_string(string)
            except OSError:
                return


def history(wanted: bool = True) -> tuple[History, Diagnostic | None]:
    """The history across sessions, and a warning if the home directory does not allow one."""
    if not wanted:
        return InMemoryHistory(), None
    file: Path | str = "the history"
    try:
        folder = _folder("XDG_STATE_HOME", ".local/state")
        file = folder / "history"
        folder.mkdir(parents=True, exist_ok=True)
        with open(file, "a+b"):
            pass
        file.read_bytes().decode("utf-8")
    except (OSError, ValueError, RuntimeError) as e:
        says = "it is not UTF-8" if isinstance(e, UnicodeDecodeError) else reason(e)
        note = "the file is left as it is; this session's history is gone at its end"
        return InMemoryHistory(), _warning("R0728", f"{file} cannot be used: {says}", note)
    return _ShortHistory(str(file)), None
