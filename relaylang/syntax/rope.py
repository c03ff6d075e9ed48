"""Texts as nested lists of strings. Text inside many nested blocks is not copied once for each block."""

from __future__ import annotations

from typing import Any as AnyValue

Text = str | list  # a text, or a nested list of texts


class Moved:
    """A text made at one level of indentation and put at another."""

    __slots__ = ("by", "text")

    def __init__(self, text: Text, by: int) -> None:
        self.text = text
        self.by = by


def flatten(text: Text) -> str:
    """One string of a nested list."""
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
    return "".join(out)
