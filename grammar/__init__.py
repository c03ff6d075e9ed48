"""The grammar of Relay text. `relay.lark` is the one home of its terminals; whatever reads Relay text takes them from here."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_TERMINAL = re.compile(r'^([A-Z_]+)(?:\.\d+)?: (?:"([^"]+)"|/(.*)/(s?))$', re.M)


@lru_cache(maxsize=1)
def text() -> str:
    """The grammar, as Lark reads it."""
    return (Path(__file__).parent / "relay.lark").read_text("utf-8")


@lru_cache(maxsize=1)
def literals() -> dict[str, str]:
    """The terminals that are one word or sign: its text, by the terminal's name."""
    return {name: literal for name, literal, _, _ in _TERMINAL.findall(text()) if literal}


@lru_cache(maxsize=1)
def patterns() -> dict[str, str]:
    """The other terminals: a regular expression of Python's `re` without groups, by the terminal's name."""
    return {
        name: f"(?s:{pattern})" if flags else f"(?:{pattern})"
        for name, literal, pattern, flags in _TERMINAL.findall(text())
        if not literal
    }


@lru_cache(maxsize=64)
def compiled(*names: str) -> re.Pattern[str]:
    """One pattern for several terminals, each a group of its name, tried in this order."""
    return re.compile("|".join(f"(?P<{name}>{patterns()[name]})" for name in names))


__all__ = ["compiled", "literals", "patterns", "text"]
