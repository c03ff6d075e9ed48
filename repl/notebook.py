"""Programs in notebooks and terminals: highlighted text."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from pygments import highlight
from pygments.formatters import HtmlFormatter, Terminal256Formatter, TerminalFormatter
from pygments.styles.default import DefaultStyle
from pygments.token import Comment, Error, Keyword, Name, Number, String, Token

from relaylang.diagnostics.html import BOX
from relaylang.ir import Expr, IRModule
from relaylang.repl.lexer import RelayLexer
from relaylang.syntax.shown import text

#: The most lines and characters that a notebook shows of a program.
_LINES, _CHARACTERS = 2000, 400_000


def as_html(node: IRModule | Expr) -> str:
    """Highlighted Relay text as HTML with its own colours. Of a long text, the first lines."""
    return highlighted(text(node))


def highlighted(shown: str) -> str:
    """Relay text, or a session's output, as HTML with its own colours. Of a long text, the first lines."""
    lines = shown.splitlines()
    short = "\n".join(lines[:_LINES])[:_CHARACTERS]
    markup: str = highlight(short, RelayLexer(), HtmlFormatter(noclasses=True, nowrap=True, style=_Style))
    left = len(lines) - short.count("\n") - 1
    more = f'<div style="color: #888">{left} more lines; print the program for all of it</div>' if left > 0 else ""
    return f'<pre style="{BOX}">{markup}</pre>{more}'


class _Style(DefaultStyle):
    """Pygments' colours, without frames around letters of pictures that are no Relay."""

    styles: ClassVar = {**DefaultStyle.styles, Error: ""}


#: Colours of the terminal's own sixteen, by kind: those that are readable on light and dark ones.
_COLOURS = {
    Token: "",
    Comment: "brightblack",
    Comment.Preproc: "magenta",
    Keyword: "*brightblue*",
    Keyword.Type: "cyan",
    Name.Attribute: "brightblack",
    Name.Builtin: "brightblue",
    Name.Class: "cyan",
    Name.Function: "*brightblue*",
    Name.Variable: "yellow",
    Number: "magenta",
    String: "green",
    String.Escape: "*green*",
}


def coloured(shown: str) -> str:
    """Relay text with a terminal's colours. A very long text stays plain."""
    if len(shown) > _CHARACTERS:
        return shown
    lexer = RelayLexer(stripnl=False, ensurenl=False)
    scheme = {kind: (colour, colour) for kind, colour in _COLOURS.items()}  # Pygments wants one for each background
    coloured_text: str = highlight(shown, lexer, TerminalFormatter(colorscheme=scheme))
    return coloured_text


def show(node: IRModule | Expr, style: str | None = None) -> None:
    """Show a program: highlighted in a notebook and in a terminal, plain text elsewhere.

    `style` is one of Pygments' for terminals of 256 colours; without one, the terminal's own colours show the text.
    """
    display = _display()
    if display is not None:
        display(_Html(as_html(node)))
    elif not sys.stdout.isatty():
        print(text(node).rstrip("\n"))
    elif style is not None:
        print(highlight(text(node), RelayLexer(), Terminal256Formatter(style=style)), end="")
    else:
        print(coloured(text(node).rstrip("\n")))


class _Html:
    def __init__(self, content: str) -> None:
        self._content = content

    def _repr_html_(self) -> str:
        return self._content


def _display() -> Any:
    """The notebook's `display`; None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return sys.modules["IPython.display"].display if "IPython.display" in sys.modules else None


__all__ = ["as_html", "coloured", "highlighted", "show"]
