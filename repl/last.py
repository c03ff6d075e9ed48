"""The last value in an input: `_` stands for the variable `%_`, but in patterns and types."""

from __future__ import annotations

import re

from relaylang.repl.completion.place import Cursor
from relaylang.syntax.tokeniser import tokenise

#: The name of the last value's variable.
LAST = "_"
_ALONE = re.compile(r"(?<![\w.%@])_(?!\w)")


def with_last(text: str) -> str:
    """The text with `%_` for each `_` that is an operand."""
    if _ALONE.search(text) is None:
        return text
    places = [token.start for token in tokenise(text) if token.kind == "name" and token.text == LAST]
    for start in reversed(places):
        cursor = Cursor(text[:start])
        if cursor.clause() is None and not cursor.at_type:
            text = f"{text[:start]}%{text[start:]}"
    return text


__all__ = ["LAST", "with_last"]
