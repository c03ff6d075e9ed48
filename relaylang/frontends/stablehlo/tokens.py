"""MLIR's text as tokens, read one by one."""

from __future__ import annotations

import re
from typing import NoReturn

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import SourceFile, Span

_INSIDE = r"[^<>-]|->|-(?!>)"


def _nested(depth: int) -> str:
    return _INSIDE if depth == 0 else rf"{_INSIDE}|<(?:{_nested(depth - 1)})*>"


_TOKEN = re.compile(
    r"(?:[ \t\r\n]+|//[^\n]*)*(?:"
    r"(?P<value>%[\w$.-]+(?:\#\d+)?)"
    rf"|(?P<type>(?:tensor|tuple|![\w.]+)<(?:{_nested(4)})*>|![\w.]+)"
    r"|(?P<word>[A-Za-z_][\w$.]*)"
    r"|(?P<number>-?0x[0-9A-Fa-f]+|-?\d+(?:\.\d*(?:[eE][+-]?\d+)?)?)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r'|(?P<symbol>@(?:[A-Za-z_][\w$.-]*|"(?:[^"\\\n]|\\.)*"))'
    r"|(?P<alias>\#[A-Za-z_][\w$.-]*)"
    r"|(?P<block>\^[\w$.-]+)"
    r"|(?P<mark>->|\{-\#|\#-\}|::|[{}()\[\]<>=,:*?/+|;-])"
    r"|(?P<end>\Z))"
)
_PAIRS = {"{": "}", "(": ")", "[": "]", "<": ">"}


class Tokens:
    """The tokens of a text. `kind` and `value` are those of the current one, which is at `at`."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.text = source.text
        self.kind = self.value = ""
        self.at = self.after = 0
        self.next()

    def next(self) -> str:
        """Go to the next token; the text of the one before."""
        before = self.value
        match = _TOKEN.match(self.text, self.after)
        if match is None:
            self.at = self.after
            self.fail("no token of MLIR begins here")
        self.kind = kind = match.lastgroup or "end"
        self.value = match[kind]
        self.at, self.after = match.span(kind)
        return before

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        """Raise `RelayError` (R0802) at a place, by default at the current token."""
        start = self.at if at is None else at
        raise RelayError(error("R0802", f"{self.source.name}: {what}", self.span(start)))

    def span(self, start: int, end: int | None = None) -> Span:
        """The place of a stretch; by default that of a token."""
        return Span(self.source, start, end if end is not None else max(self.after, start))

    def take(self, value: str) -> bool:
        """Whether the current token is a mark or a word; go on if it is."""
        if self.value != value or self.kind in ("string", "end"):
            return False
        self.next()
        return True

    def expect(self, value: str) -> None:
        if not self.take(value):
            self.fail(f"{value} is missing here")

    def of_kind(self, kind: str, what: str) -> str:
        """The text of the current token, which must be of a kind."""
        if self.kind != kind:
            self.fail(f"{what} is missing here")
        return self.next()

    def skip(self) -> None:
        """Go over one token, or over everything between brackets."""
        closing: list[str] = []
        start = self.at
        while True:
            if self.kind == "end":
                self.fail("a bracket is not closed", start)
            if self.kind == "mark":
                if self.value in _PAIRS:
                    closing.append(_PAIRS[self.value])
                elif self.value == "{-#":
                    closing.append("#-}")
                elif self.value in ("}", ")", "]", ">", "#-}"):
                    if not closing or closing.pop() != self.value:
                        self.fail(f"{self.value} closes no bracket")
            self.next()
            if not closing:
                return

    def begins_line(self) -> bool:
        """Whether the current token is the first of its line."""
        return not self.text[self.text.rfind("\n", 0, self.at) + 1 : self.at].strip()


def unquoted(text: str) -> str:
    """The contents of a string in quotation marks."""
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text[1:-1])


__all__ = ["Tokens", "unquoted"]
