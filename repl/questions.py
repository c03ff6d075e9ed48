"""Inputs that ask for help: `?nn.dense`, `nn.dense?`, and the words that other sessions take."""

from __future__ import annotations

import re

_NAME = r'[%@:]?(?:\w[\w.]*!?|"[^"\n]*")'
_QUESTION = re.compile(rf"\s*(?:\?\s*({_NAME})?|({_NAME})\s*\?)\s*")
_WORD = re.compile(r"\s*(help|exit|quit)\s*(?:\(\s*\))?\s*;?\s*")
_LEAVE = ":quit or Ctrl-D leaves"
_HINTS = {"help": ":help lists the commands, ?NAME explains a name", "exit": _LEAVE, "quit": _LEAVE}
#: Words of Python and of other sessions, and the commands of this session for them.
_FOREIGN_WORD = re.compile(r"\s*(\w+)")
_FOREIGN = {
    **dict.fromkeys(("import", "from"), ':load FILE reads a file, import "FILE" does in a text'),
    **dict.fromkeys(("dir", "vars", "locals", "globals", "who", "ls"), ":names lists the definitions"),
    **dict.fromkeys(("time", "timeit"), ":time EXPR measures an evaluation"),
    **dict.fromkeys(("plot", "show"), "an expression shows its value, :plot draws it"),
    "clear": "Ctrl-L clears the screen, :reset forgets the definitions",
    "del": ":undo takes the last definition back",
    "help": ":help lists the commands, ?NAME explains a name",
    "history": "Up and Ctrl-R search the history",
    "load": ":load FILE reads a file",
    "print": "an expression shows its value, :print its text",
    "reset": ":reset forgets the definitions",
    "type": ":type EXPR infers a type",
    "undo": ":undo takes the last definition back",
    "viz": ":viz EXPR draws a graph",
}


def question(text: str) -> str | None:
    """The name that an input asks about, "" for `?` alone; None for other inputs."""
    match = _QUESTION.fullmatch(text)
    return (match[1] or match[2] or "") if match is not None else None


def hint(text: str) -> str | None:
    """The answer to `help`, `exit` and `quit`; None for other inputs."""
    match = _WORD.fullmatch(text)
    return _HINTS[match[1]] if match is not None else None


def advice(text: str) -> str | None:
    """The command for a word of Python, such as `print(%x)` and `dir()`, that begins a wrong input."""
    match = _FOREIGN_WORD.match(text)
    return _FOREIGN.get(match[1]) if match is not None else None


__all__ = ["advice", "hint", "question"]
