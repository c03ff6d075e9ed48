"""Texts as nested lists of strings. Text inside many nested blocks is not copied once for each block."""

from __future__ import annotations

from itertools import groupby
from typing import Any as AnyValue

Text = str | list  # a text, or a nested list of texts

#: The strings of a long text that are joined at a time.
_BLOCK = 4096


class Lines(list[AnyValue]):
    """A text that grows line by line. Its strings are joined in blocks, so that a million lines are not a million strings."""

    __slots__ = ("_joined",)

    def __init__(self) -> None:
        super().__init__()
        self._joined = 0  # how many items are blocks, or nested texts in front of one

    def add(self, text: str) -> None:
        """Put a string behind the others."""
        self.append(text)
        if len(self) - self._joined > _BLOCK:
            open_items = self[self._joined :]
            del self[self._joined :]
            for is_string, items in groupby(open_items, lambda item: type(item) is str):
                run = list(items)
                self.extend(["".join(run)] if is_string else run)
            self._joined = len(self)


class Moved:
    """A text made at one level of indentation and put at another."""

    __slots__ = ("by", "text")

    def __init__(self, text: Text, by: int) -> None:
        self.text = text
        self.by = by


def flatten(text: Text) -> list[str]:
    """The strings of a nested list, in their order."""
    out: list[str] = []
    stack: list[AnyValue] = [iter([text])]
    shifts: list[tuple[int, str]] = []  # the stack's height at which a shift ends, and the shifted line end
    while stack:
        for item in stack[-1]:
            if type(item) is str:
                out.append(item.replace("\n", shifts[-1][1]) if shifts else item)
                continue
            if type(item) is Moved:
                shifts.append((len(stack), (shifts[-1][1] if shifts else "\n") + "  " * item.by))
                item = [item.text]
            stack.append(iter(item))
            break
        else:
            stack.pop()
            while shifts and shifts[-1][0] == len(stack):
                shifts.pop()
    return out
