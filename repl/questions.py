"""Inputs that ask for help: `?nn.dense`, `nn.dense?`, and the words that other sessions take."""

from __future__ import annotations

import re

_NAME = r'[%@:]?(?:\w[\w.]*!?|"[^"\n]*")'
_QUESTION = re.compile(rf"\s*(?:\?\s*({_NAME})?|({_NAME})\s*\?)\s*")
_WORD = re.compile(r"\s*(help|exit|quit)\s*(?:\(\s*\))?\s*;?\s*")
_LEAVE = ":quit or Ctrl-D leaves"
_HINTS = {"help": ":help lists the commands, ?NAME explains a name", "exit": _LEAVE, "quit": _LEAVE}


def question(text: str) -> str | None:
    """The name that an input asks about, "" for `?` alone; None for other inputs."""
    found = _QUESTION.fullmatch(text)
    return (found[1] or found[2] or "") if found is not None else None


def hint(text: str) -> str | None:
    """The answer to `help`, `exit` and `quit`; None for other inputs."""
    found = _WORD.fullmatch(text)
    return _HINTS[found[1]] if found is not None else None


__all__ = ["hint", "question"]
