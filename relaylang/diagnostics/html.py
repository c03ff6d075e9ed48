"""Coloured terminal text as HTML, for notebooks and pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

_CODE = re.compile(r"\x1b\[([0-9;]*)m")
#: A notebook's colour by ANSI code, readable on the light box.
_COLOURS = {"31": "#c4212c", "32": "#1a7f37", "33": "#8a5a00", "34": "#0b57b0", "35": "#8250df", "36": "#0a6a7a"}
#: Text and background, so that dark notebooks show it, too.
BOX = (
    "margin: 0; padding: 6px 10px; border-radius: 4px; font-family: monospace; line-height: 1.35; overflow-x: auto; "
    "color: #1f2328; background: #f6f8fa"
)


class Run(NamedTuple):
    """A piece of text in one colour: an ANSI code such as `31`, or "" for the terminal's own."""

    text: str
    colour: str
    bold: bool


def runs(text: str) -> Iterator[Run]:
    """The pieces of a text with ANSI colours."""
    colour, bold = "", False
    for i, piece in enumerate(_CODE.split(text)):
        if i % 2 == 0:
            if piece:
                yield Run(piece, colour, bold)
            continue
        for code in piece.split(";"):
            if code in ("", "0"):
                colour, bold = "", False
            elif code == "1":
                bold = True
            elif code in _COLOURS:
                colour = code


def as_html(coloured: str) -> str:
    """A text with ANSI colours as a terminal shows it, in a box with its own colours."""
    pieces: list[str] = []
    for text, colour, bold in runs(coloured):
        style = ([f"color: {_COLOURS[colour]}"] if colour else []) + (["font-weight: bold"] if bold else [])
        pieces.append(f'<span style="{"; ".join(style)}">{escape(text)}</span>' if style else escape(text))
    return f'<pre style="{BOX}">{"".join(pieces)}</pre>'


__all__ = ["BOX", "Run", "as_html", "runs"]
