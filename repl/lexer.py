"""Relay text for Pygments: `pygmentize -l relay`, and the session's highlighting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
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


def _kind_of_name(text: str, behind: str) -> Any:
    """The kind of a bare name, by the token behind it."""
    if text[0].islower() and ("." in text or behind == "("):
        return Name.Builtin
    if behind == "=":
        return Name.Attribute
    return Name.Class if text[0].isupper() else Name


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
        for match in _METADATA.finditer(text):
            assert match.lastindex is not None
            yield _METADATA_KINDS[match.lastindex - 1], match[0]
    elif kind == "reference":  # meta[key][number]
        word, key, number = text.replace("]", "").split("[")
        yield from ((Keyword, word), (Punctuation, "["), (Name.Class, key), (Punctuation, "]["), (Number.Integer, number))
        yield Punctuation, "]"
    elif kind == "keyword":
        yield Keyword.Declaration if text in _DECLARING else Keyword, text
    elif kind == "name":
        yield _kind_of_name(text, behind), text
    elif kind == "number":
        yield (Number.Integer if _WHOLE.fullmatch(text) else Number.Float), text
    elif kind == "mark":
        yield (Punctuation if text in "()[]{},;:." else Operator if text in "-+*/<>=?!" else Error), text
    else:
        yield _KINDS[kind] if text not in ("%", "@") else Error, text


#: A message's first line; a line of an excerpt; its marks; what follows it.
_MESSAGE = re.compile(r"(?:(?P<place>[^\s:]+:\d+:\d+): )?(?P<kind>(?:error|warning|note)\[R\d{4}\])(?P<title>:.*\n?)")
_EXCERPT = re.compile(r"(?P<gutter> *\d+ \| ?)(?P<text>.*\n?)")
_MARKS = re.compile(r"(?P<gutter> +\| ?)(?P<marks> *[-^~+]+.*\n?)")
_REMARK = re.compile(r"(?P<kind>  = (?:note|help):|  in \S+:\d+:\d+:|  \.\.\.)(?P<text>.*\n?)")
#: A line of an output that is Relay text.
_RELAY = re.compile(r"\s*(?:#\[version|#\[metadata\]|def @|fn\b|let %|%[\w.]+ = |type \w|//|[})]|(?:nn|qnn)\.)|  +\S")
_PROMPTS = ("$ ", "relay> ", "  ...> ", ">>> ")


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


class RelayConsoleLexer(Lexer):
    """A terminal with calls of relay: commands behind `$ `, diagnostics, Relay text.

    The lexer that Pygments has for terminals takes `%0 = ...` and `#[version ...]` for prompts.
    """

    name = "Relay console"
    url = "https://tvm.apache.org"
    aliases: ClassVar[list[str]] = ["relay-console"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Each piece of the text with its offset and kind."""
        at = 0
        for line in text.splitlines(keepends=True):
            for kind, piece in self._line(line):
                if piece:
                    yield at, kind, piece
                    at += len(piece)

    def _line(self, line: str) -> Iterator[Piece]:
        prompt = next((p for p in _PROMPTS if line.startswith(p)), None)
        if prompt == "$ ":
            yield Generic.Prompt, prompt
            command, space, rest = line[len(prompt) :].partition(" ")
            yield from ((Name.Builtin, command), (Text, space + rest))
        elif prompt is not None:
            yield Generic.Prompt, prompt
            yield from _relay(line[len(prompt) :])
        elif match := _MESSAGE.match(line):
            yield from ((Generic.Output, match["place"] or ""), (Generic.Output, ": " if match["place"] else ""))
            yield from ((Generic.Error, match["kind"]), (Generic.Strong, match["title"]))
        elif match := _MARKS.match(line):
            yield from ((Generic.Lineno, match["gutter"]), (Generic.Error, match["marks"]))
        elif match := _EXCERPT.match(line):
            yield Generic.Lineno, match["gutter"]
            yield from _relay(match["text"])
        elif match := _REMARK.match(line):
            yield from ((Generic.Strong, match["kind"]), (Generic.Output, match["text"]))
        elif _RELAY.match(line):
            yield from _relay(line)
        else:
            yield Generic.Output, line


def _relay(text: str) -> Iterator[Piece]:
    return ((kind, piece) for _, kind, piece in RelayLexer().get_tokens_unprocessed(text))
