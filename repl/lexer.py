"""Relay text for Pygments: `pygmentize -l relay`, and the session's highlighting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from relaylang.syntax.tokeniser import Token, tokenise

_DECLARING = frozenset({"def", "data", "type", "extern", "free_var"})
_KINDS = {
    "local": Name.Variable,
    "global": Name.Function,
    "constant": Keyword.Constant,
    "type": Keyword.Type,
    "header": Comment.Preproc,
    "arrow": Operator,
}
_COMMENT_MARK = re.compile(r"(/\*|\*/)")
_ESCAPE = re.compile(r"(\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[\s\S]))")
_WHOLE = re.compile(r"\d+(?:[iu]\d*)?")
#: The metadata section: its head and the pieces of its JSON.
_METADATA = re.compile(r'(#\[metadata\]|METADATA:)|("(?:\\.|[^"\\])*")|(-?\d+)|(\s+)|([^\s"\d-]+|.)')
_METADATA_KINDS = (Comment.Preproc, String, Number, Whitespace, Punctuation)

Piece = tuple[Any, str]


def _kind_of_mark(sign: str) -> Any:
    return Punctuation if sign in "()[]{},;:." else Operator if sign in "-+*/<>=?!" else Error


def _kind_of_name(text: str, behind: str) -> Any:
    """The kind of a bare name, by the token behind it."""
    if text[0].islower() and ("." in text or behind == "("):
        return Name.Builtin
    if behind == "=":
        return Name.Attribute
    return Name.Class if text[0].isupper() else Name


def _kind_of_number(text: str) -> Any:
    return Number.Integer if _WHOLE.fullmatch(text) else Number.Float


def _pieces(token: Token, behind: str) -> Iterator[Piece]:
    """The pieces of a token that are coloured alone."""
    kind, text = token.kind, token.text
    if kind == "comment" and text.startswith("/*"):
        yield from ((Comment.Multiline, piece) for piece in _COMMENT_MARK.split(text) if piece)
    elif kind == "comment":
        yield Comment.Single, text
    elif kind == "string":
        pieces = _ESCAPE.split(text)
        yield from ((String.Escape if i % 2 else String, piece) for i, piece in enumerate(pieces) if piece)
    elif kind == "metadata":
        for found in _METADATA.finditer(text):
            assert found.lastindex is not None
            yield _METADATA_KINDS[found.lastindex - 1], found[0]
    elif kind == "reference":  # meta[key][number]
        word, key, number = text.replace("]", "").split("[")
        yield from ((Keyword, word), (Punctuation, "["), (Name.Class, key), (Punctuation, "]["), (Number.Integer, number))
        yield Punctuation, "]"
    elif kind == "keyword":
        yield Keyword.Declaration if text in _DECLARING else Keyword, text
    elif kind == "name":
        yield _kind_of_name(text, behind), text
    elif kind == "number":
        yield _kind_of_number(text), text
    elif kind == "mark":
        yield _kind_of_mark(text), text
    else:
        yield _KINDS[kind] if text not in ("%", "@") else Error, text


class RelayLexer(Lexer):
    """Relay, the text language of TVM's and relaylang's programs."""

    name = "Relay"
    url = "https://tvm.apache.org"
    aliases: ClassVar[list[str]] = ["relay"]
    filenames: ClassVar[list[str]] = ["*.relay"]
    mimetypes: ClassVar[list[str]] = ["text/x-relay"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Each piece of the text with its offset and kind; white space is a piece, too."""
        at = 0
        tokens = list(tokenise(text))
        for i, token in enumerate(tokens):
            if token.start > at:
                yield at, Whitespace, text[at : token.start]
            at = token.start
            for kind, piece in _pieces(token, tokens[i + 1].text if i + 1 < len(tokens) else ""):
                yield at, kind, piece
                at += len(piece)
        if at < len(text):
            yield at, Whitespace, text[at:]
