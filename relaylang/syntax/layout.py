"""The canonical layout of Relay text: line ends, indentation, and the space between two tokens.

The layout is the printer's. Beyond that, it keeps an author's own line ends where they help a reader. These are line ends
in brackets and around infix operators, and one blank line between statements. A block without statements that was on one
line stays on one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Blocks deeper than this stand below each other, so that a deep nest's text grows with its size.
DEEPEST = 40

_WORDS_BEFORE_PAREN = frozenset({"fn", "if", "match", "match?"})
_INFIX = frozenset({"+", "-", "*", "/", "<", ">", "<=", ">=", "==", "!="})
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


@dataclass(slots=True)
class Comment:
    """A comment and how many line ends stand in front of it."""

    text: str
    lines: int


@dataclass(slots=True)
class Piece:
    """A token of the layout: its text, the comments and line ends in front of it, and its role."""

    text: str
    comments: Sequence[Comment] = ()
    lines: int = 0  # line ends in front, behind the last comment
    apart: bool = False  # white space in front
    role: str = ""  # "list", "map" or "block" for brackets; "top", "end" for a definition's first and last
    kind: str = ""  # "local", "word", "number", "string", "field", "header"


@dataclass(slots=True)
class _Context:
    """An open bracket: its kind, the levels inside it and of its closing bracket, and whether it spans several lines."""

    kind: str
    inner: int
    outer: int
    broken: bool
    at: int  # the level of the last line that began in it


def _matches(pieces: list[Piece]) -> tuple[dict[int, int], dict[int, bool]]:
    """The closing bracket of each opening one, and whether a line ends, or a statement, between them."""
    closer: dict[int, int] = {}
    broken: dict[int, bool] = {}
    stack: list[list[int]] = []
    for i, piece in enumerate(pieces):
        ends = piece.lines > 0 or any(c.lines or c.text.startswith("//") or "\n" in c.text for c in piece.comments)
        if stack and (ends or piece.text == ";"):
            stack[-1][1] = 1
        if piece.text in _CLOSE and piece.kind == "" and stack:
            opened, flag = stack.pop()
            closer[opened] = i
            broken[opened] = bool(flag)
            if stack and flag:
                stack[-1][1] = 1
        elif piece.text in _OPEN and piece.kind == "":
            stack.append([i, 0])
    return closer, broken


class Layout:
    """Writes pieces. `text()` gives the whole."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.closer, self.broken = _matches(pieces)
        self.out: list[str] = []
        self.stack: list[_Context] = [_Context("block", 0, 0, True, 0)]
        self.breaks = [""]

    def line(self, level: int, blank: bool = False) -> None:
        level = min(level, DEEPEST)
        self.stack[-1].at = level
        if self.out:
            self.out.append("\n\n" if blank else "\n")
            self.out.append("  " * level)

    def text(self) -> str:
        previous: Piece | None = None
        skip = False
        for i, piece in enumerate(self.pieces):
            if piece.text == "," and piece.kind == "" and self._dropped_comma(i):
                skip = True
                if piece.comments:
                    self._carry(i)
                continue
            self._put(i, piece, previous, skip)
            skip = False
            previous = piece
        self.out.append("\n")
        return "".join(self.out).lstrip("\n")

    def _carry(self, i: int) -> None:
        following = self.pieces[i + 1]
        following.comments = [*self.pieces[i].comments, *following.comments]

    def _dropped_comma(self, i: int) -> bool:
        """A comma behind the last arm or constructor of a list that stands on one line."""
        context = self.stack[-1]
        return context.kind == "list" and not context.broken and self.pieces[i + 1].text == "}"

    def _put(self, i: int, piece: Piece, previous: Piece | None, skipped: bool) -> None:
        context = self.stack[-1]
        closes = piece.kind == "" and piece.text in _CLOSE and len(self.stack) > 1
        if closes and context.kind == "list" and context.broken and previous is not None and previous.text not in "{,":
            self.out.append(",")
        wanted = self._wanted_line(piece, previous, closes)
        level = context.inner
        held = False  # a line comment ends its line
        for n, comment in enumerate(piece.comments):
            if previous is None and n == 0 and not self.out:
                self.out.append("")
            elif comment.lines or held:
                blank = comment.lines > 1 and not self._after_open(previous, n)
                if wanted == 2 and n == 0:
                    blank = True
                self.line(level, blank)
            else:
                tight = previous is not None and previous.text in ("(", "[") and n == 0
                self.out.append("" if tight else " ")
            self.out.append(comment.text)
            held = comment.text.startswith("//")
        if piece.text == "":  # the text's end
            return
        own = bool(piece.comments) and (piece.comments[-1].lines > 0) and piece.lines > 0
        if previous is None and not piece.comments:
            pass
        elif held or own or wanted or (previous is None and piece.lines):
            blank = piece.lines > 1 and not closes and not (self._after_open(previous, len(piece.comments)))
            if wanted == 2 and not (piece.comments and piece.comments[-1].lines):
                blank = True
            if not wanted and context.kind == "bracket":
                blank = False
            self.line(context.outer if closes and (wanted or context.broken) else self._continued(piece, previous, level), blank)
        elif piece.comments:
            self.out.append("" if piece.text in (",", ";", ")", "]") else " ")
        else:
            self.out.append(self._space(piece, previous) if previous is not None else "")
        self.out.append(piece.text)
        if closes:
            self.stack.pop()
        elif piece.kind == "" and piece.text in _OPEN and i in self.closer:
            kind = piece.role or ("block" if piece.text == "{" else "bracket")
            self.stack.append(_Context(kind, context.at + 1, context.at, self.broken[i], context.at))

    def _after_open(self, previous: Piece | None, n: int) -> bool:
        return n == 0 and (previous is None or (previous.kind == "" and previous.text in _OPEN))

    def _continued(self, piece: Piece, previous: Piece | None, level: int) -> int:
        """The level of a line: one further where it goes on with a statement."""
        context = self.stack[-1]
        if context.kind != "block" or previous is None or piece.role == "top" or "end" == previous.role or previous.kind == "header":
            return level
        begins = previous.kind == "" and previous.text in (";", "{", "(")
        return level if begins else level + 1

    def _wanted_line(self, piece: Piece, previous: Piece | None, closes: bool) -> int:
        """Whether a line begins with a piece: 0 no, 1 yes, 2 with a blank line in front."""
        if previous is None:
            return 0
        context = self.stack[-1]
        if previous.kind == "header":
            return 1
        if len(self.stack) == 1 and (piece.role == "top" or previous.role == "end"):
            return 2
        before = previous.text if previous.kind == "" else ""
        if context.kind in ("block", "list"):
            if closes:
                return int(context.broken and before not in ("{", "("))
            if before in ("{", "(") and previous is not None and previous.role != "map":
                return int(context.broken)
            if context.kind == "list":
                return int(context.broken and before == ",")
            if before == ";":
                return 1
        if not piece.lines or piece.comments:
            return 0
        if context.kind == "bracket":
            return int(closes or before in ("(", "[", ",", ";") or before in _INFIX or piece.text in _INFIX)
        if context.kind == "map":
            return int(closes or before in ("{", ","))
        return int((before in _INFIX or (piece.text in _INFIX and piece.kind == "")) and context.kind == "block")

    def _space(self, piece: Piece, previous: Piece) -> str:
        """The space between two pieces of one line."""
        now, before = piece.text, previous.text
        context = self.stack[-1]
        if piece.kind == "field":
            # `%x .5` and `1 .5` are projections, `%x.5` is a name and `1.5` a number
            return " " if piece.apart and (previous.kind == "local" or before.isdigit()) else ""
        if piece.kind == "" and now in (",", ";", ")", "]", ":"):
            return ""
        if previous.kind == "":
            if before in ("(", "["):
                return ""
            if before == "=" and previous.role == "attr":
                return ""
            if before == "-" and previous.role == "sign":
                return ""
            if before == "{":
                return "" if context.kind == "map" or (now == "}" and piece.kind == "") else " "
        if piece.kind == "":
            if now == "=":
                return "" if piece.role == "attr" else " "
            if now == "(":
                tight = previous.kind in ("word", "local", "global", "number") or before in (")", "]", "}")
                return "" if tight and before not in _WORDS_BEFORE_PAREN else " "
            if now == "[":
                return "" if (previous.kind in ("word", "global", "local") and before != "fn") or before == "]" else " "
            if now == "{" and piece.role == "map":
                return " "
            if now == "}" and context.kind == "map":
                return ""
        return " "
