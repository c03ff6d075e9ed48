"""Relay text to the canonical form of the same text: `relay fmt`.

Names, comments, the order of statements and an author's blank lines stay. White space, brackets, commas, semicolons and the
spelling of the documented dialect become those of the printer. The result means the same program, which is checked.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any as AnyValue

from relaylang.ir.bulk import gc_paused
from relaylang.ir.module import IRModule
from relaylang.ir.structural import structural_diff
from relaylang.syntax.canonical import Rewritings, rewritings
from relaylang.syntax.layout import Comment, Layout, Piece
from relaylang.syntax.node_writer import VERSION
from relaylang.syntax.reader import parse, tables
from relaylang.syntax.spellings import dated
from relaylang.syntax.tokeniser import comment_end, section_start, tokenise
from relaylang.syntax.tokens import TokenSource, TokenWalk

HEADER = '#[version = "0.0.5"]'

_SPACE = re.compile(r"\s*")
_KINDS = {
    "LOCAL": "local",
    "DASHED": "local",
    "GLOBAL": "global",
    "STRING": "string",
    "QUOTED": "string",
    "NUMBER": "number",
    "NAME": "word",
    "CUSTOM": "word",
    "PROJ": "field",
    "DOT": "field",
    "HEADER": "header",
    "MATCHQ": "word",
}


#: The pieces' kinds of fine tokens, where they are no words.
_PART_KINDS = {
    "comment": "comment",
    "string": "string",
    "local": "local",
    "global": "global",
    "number": "number",
    "arrow": "sign",
    "mark": "sign",
}


def _comments(text: str, start: int, end: int) -> tuple[Sequence[Comment], int]:
    """The comments between two tokens, and the line ends behind the last one."""
    between = text[start:end]
    if not between or between.isspace():
        return (), between.count("\n")
    comments: list[Comment] = []
    at = start
    lines = 0
    while at < end:
        space = _SPACE.match(text, at, end)
        assert space is not None
        lines += text.count("\n", at, space.end())
        at = space.end()
        if at >= end:
            break
        begin = at
        if text.startswith("/*", at):
            at = comment_end(text, at, end) or end
            said = text[begin:at]
        else:
            at = text.find("\n", at, end)
            at = end if at < 0 else at
            said = text[begin:at].rstrip()
            if said.startswith("#"):
                said = "//" + said[1:]
        comments.append(Comment(said.replace("\r\n", "\n"), lines))
        lines = 0
    return comments, lines


def _inside(written: str, token: str) -> list[Comment]:
    """The comments inside a token of a text whose comments were blanked: `%0 /* of the /* first */ */ =` is one token."""
    comments: list[Comment] = []
    at = -1 if written == token else written.find("/*")
    while at >= 0:
        end = at + 2
        if not token[at:end].strip():
            end = comment_end(written, at, len(written)) or len(written)
            comments.append(Comment(written[at:end].replace("\r\n", "\n"), 0))
        at = written.find("/*", end)
    return comments


class _Pieces:
    """Makes the layout's pieces out of a text's tokens."""

    def __init__(self, notes: Rewritings, source: TokenSource) -> None:
        self.notes = notes
        self.source = source
        self.made: list[Piece] = []
        self.concerned = notes.concerned()
        self.known: dict[str, list[tuple[str, str]]] = {}  # the pieces of tokens without comments, each with its kind
        self.pending: list[Comment] = []  # comments in front of tokens that go
        self.lines = 0
        self.opened: list[str] = []  # kinds of the brackets that are open
        self.starts: list[int] = []  # the numbers of their pieces
        self.binds = False  # whether the token ends a let's head

    def add(self, text: str, kind: str = "", comments: Sequence[Comment] = (), lines: int = 0, apart: bool = False) -> None:
        if self.pending or self.lines:
            piece = Piece(text, [*self.pending, *comments], max(lines, self.lines) if not comments else lines, apart, "", kind)
            self.pending, self.lines = [], 0
        else:
            piece = Piece(text, comments, lines, apart, "", kind)
        before = self.made[-1] if self.made else None
        if kind == "":
            if text == "=":
                attribute = self.opened and self.opened[-1] in ("bracket", "map") and not self.binds
                piece.role = "attr" if attribute and before is not None and before.kind != "local" else ""
            elif text == "-" and (
                before is None
                or (before.kind == "" and before.text not in (")", "]", "}"))
                or (before.kind == "word" and before.text == "else")
            ):
                piece.role = "sign"
        self.made.append(piece)

    def token(self, i: int, text: str, kind: str, comments: Sequence[Comment], lines: int, apart: bool) -> None:
        if i in self.concerned:
            self.changed(i, text, kind, comments, lines, apart)
        else:
            self.binds = False
            self.same(i, text, kind, comments, lines, apart)

    def same(self, i: int, text: str, kind: str, comments: Sequence[Comment], lines: int, apart: bool) -> None:
        """The pieces of a token that stays as it is."""
        if kind in _KINDS:
            self.add(HEADER if kind == "HEADER" else text, _KINDS[kind], comments, lines, apart)
        elif len(text) < 3 and not (text[0].isalpha() or text[0] in "_%"):
            if text in ("(", "[", "{"):
                self.open(text, i, comments, lines, apart)
            elif text in (")", "]", "}"):
                self.close(text, i, comments, lines, apart)
            else:
                self.add(text, "", comments, lines, apart)
        elif text.isidentifier():
            self.add(text, "word", comments, lines, apart)
        else:
            self.parts(text, comments, lines, apart)

    def changed(self, i: int, text: str, kind: str, comments: Sequence[Comment], lines: int, apart: bool) -> None:
        """The pieces of a token that begins or ends a statement or definition, or changes."""
        notes = self.notes
        self.binds = i in notes.binds
        told = notes.before.get(i)
        if told:
            for sign in told:
                self.open(sign, -1, comments, lines, apart)
                comments, lines = (), 0
        fresh = notes.fresh.get(i)
        if fresh:
            self.parts(fresh, comments, lines, apart)
            comments, lines, apart = (), 0, False
        first = len(self.made)
        replaced = notes.texts.get(i)
        if replaced == "":
            self.pending += comments
            self.lines = max(self.lines, lines)
        elif replaced is not None:
            alone = replaced.rstrip("(")
            name = "local" if alone[0] == "%" else "word" if alone[0].isalpha() or alone[0] == "_" else ""
            self.add(alone, name, comments, lines, apart)
            if alone != replaced:
                self.open("(", i)
        else:
            self.same(i, text, kind, comments, lines, apart)
        if len(self.made) > first:
            if i in notes.tops:
                self.made[first].role = self.made[first].role or "top"
        if i in notes.behind:
            for sign in re.findall(r"=>|.", notes.behind[i]):
                if sign in "})":
                    self.close(sign, -1)
                elif self.made[-1].text != sign:
                    held, self.pending = self.pending, []
                    behind, self.lines = self.lines, 0
                    self.add(sign)
                    self.pending, self.lines = held, behind
        if i in notes.ends and self.made:
            self.made[-1].role = "end"

    def open(self, sign: str, i: int, comments: Sequence[Comment] = (), lines: int = 0, apart: bool = False) -> None:
        self.add(sign, "", comments, lines, apart)
        block = sign == "{" or i in self.notes.blocks
        role = "map" if i in self.notes.maps else "block" if block else "bracket"
        self.made[-1].role = role if block else ""
        self.opened.append(role)
        self.starts.append(len(self.made) - 1)

    def close(self, sign: str, i: int, comments: Sequence[Comment] = (), lines: int = 0, apart: bool = False) -> None:
        self.add(sign, "", comments, lines, apart)
        if self.opened:
            self.opened.pop()
        if self.starts:
            begin = self.starts.pop()
            if i in self.notes.lists:
                self.made[begin].role = "list"

    def parts(self, text: str, comments: Sequence[Comment], lines: int, apart: bool) -> None:
        """A token that stands for several."""
        if text[0] == "%" and text[-1] == "=" and "*" not in text:  # a graph binding's head: nearly each is another text
            parts = [(text[:-1].rstrip(), "local"), ("=", "sign")]
        else:
            known = self.known.get(text)
            parts = known or [(token.text, _PART_KINDS.get(token.kind, "word")) for token in tokenise(text)]
            if known is None and len(self.known) < 10_000:
                self.known[text] = parts
        for part, kind in parts:
            if kind == "comment":
                self.pending.append(Comment(part, 0))
                continue
            if kind == "sign" and part in "([{":
                self.open(part, -1, comments, lines, apart)
            elif kind == "sign" and part in ")]}":
                self.close(part, -1, comments, lines, apart)
            else:
                self.add(part, "" if kind == "sign" else kind, comments, lines, apart)
            comments, lines, apart = (), 0, False


def _pieces(text: str, name: str, module: IRModule | None = None) -> tuple[list[Piece], bool]:
    """The pieces of a text, and whether it has the canonical form's tokens already."""
    notes, source = rewritings(text, name, module)
    builder = _Pieces(notes, source)
    tables = source.tables
    comment, known, names = tables.numbers["COMMENT"], tables.kinds, tables.names
    starts, ends = source.places()
    end = source.begin
    for i, token in enumerate(notes.tokens):
        kind = known.get(token)
        if kind is None:
            kind = tables.kind_of(token)
        if token and kind == comment:
            continue
        start = starts[i] if token else source.end
        said, lines = _comments(text, end, start)
        if not token:
            builder.add("", "end", said, lines)
            break
        builder.token(i, token, names[kind], said, lines, start > end)
        end = ends[i]
        if source.blanked:
            builder.pending += _inside(text[start:end], token)
    return builder.made, notes.is_empty() and not source.blanked and not source.names_split


def _same_tokens(text: str, other: str) -> bool:
    """Whether two texts have the same tokens for the reader, after the version header."""
    sources = TokenSource("", text, tables()), TokenSource("", other, tables())
    walks = [chain(TokenWalk(source), [None]) for source in sources]
    firsts = [next(walk) for walk in walks]
    if not str(firsts[0]).startswith("#["):
        walks[0] = chain(firsts[:1], walks[0])
    return all(map(operator.eq, *walks))


def format_text(text: str, name: str = "<string>", module: IRModule | None = None) -> str:
    """The canonical form of a text. It reads as the same program and is its own canonical form.

    `module` has definitions that the text may use. The metadata section stays as it is. Raises `RelayError` with the
    text's errors. A result that reads as another program is a fault of relaylang, and raises `AssertionError`.
    """
    first = parse(text, name, module)
    defines = first.module is not None
    with gc_paused():
        pieces, same = _pieces(text, name, module)
        if defines and not any(p.kind == "header" for p in pieces):
            head = Piece(HEADER, kind="header")
            if pieces[0].comments and pieces[0].comments[0].text:
                pieces[0].comments[0].lines = max(1, pieces[0].comments[0].lines)
            pieces.insert(0, head)
        formatted = Layout(pieces).text()
        del pieces
    section = first.source.text[first.source.end :]  # type: ignore[attr-defined]
    if any(n.code == "R0152" for n in first.notes):
        section = dated(section, VERSION)  # the text in front of it is in today's spelling now
    if section:
        formatted += "\n#[metadata]" + section[section_start(section, 0) :]
    if same and "meta[" not in text and _same_tokens(text, formatted):
        return formatted  # comments say the types of values in the metadata section
    again: AnyValue = parse(formatted, name, module)
    difference = structural_diff(first.value, again.value, map_free_vars=True)
    if difference is not None:
        raise AssertionError(f"the formatter would change {name}: {difference}")
    return formatted
