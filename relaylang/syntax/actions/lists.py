"""Actions for lists, and for the text as a whole."""

from __future__ import annotations

from typing import Any as AnyValue

from relaylang.syntax.actions.locals import Locals


class ListActions:
    """Makes lists of the values between commas."""

    def on_list_one(self, v: AnyValue, first: int, last: int) -> list[AnyValue]:
        return [v]

    def on_list_more(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        v[0].append(v[2])
        return v[0]

    def on_list_two(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        v[0].append(v[1])
        return v[0]

    def on_list_closed(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return v[0]


class TextActions:
    """Makes the value of a text: whether it defines anything, and its expression."""

    def __init__(self, locals: Locals) -> None:
        self.locals = locals
        self.versioned = False
        #: The header's text; empty where there is none.
        self.header = ""

    def on_start_versioned(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        self.versioned = True
        self.header = v[0]
        return v[1]

    def on_text_defs(self, v: AnyValue, first: int, last: int) -> AnyValue:
        return True, None

    def on_text_both(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return True, v[1]

    def on_text_block(self, v: AnyValue, first: int, last: int) -> AnyValue:
        self.locals.check_reused(v)
        return False, v

    def on_text_empty(self, v: AnyValue, first: int, last: int) -> AnyValue:
        return False, None

    def on_defs_one(self, v: AnyValue, first: int, last: int) -> None:
        return None

    def on_defs_more(self, v: AnyValue, first: int, last: int) -> None:
        return None


__all__ = ["ListActions", "TextActions"]
