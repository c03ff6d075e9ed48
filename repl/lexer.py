"""Relay text for Pygments: `pygmentize -l relay`, and the session's highlighting."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

_NAME = r"[A-Za-z_/][\w/]*"
_DTYPE = r"(?:u?int(?:1|4|8|16|32|64)?|float(?:8_\w+|16|32|64)?|bfloat16|bool|handle|custom\[\w+\]\d+)"


class RelayLexer(RegexLexer):
    """Relay, the text language of TVM's and relaylang's programs."""

    name = "Relay"
    url = "https://tvm.apache.org"
    aliases: ClassVar[list[str]] = ["relay"]
    filenames: ClassVar[list[str]] = ["*.relay"]
    mimetypes: ClassVar[list[str]] = ["text/x-relay"]

    tokens: ClassVar = {
        "root": [
            (r"#\[metadata\]", Comment.Preproc, "metadata"),
            (r"#\[[^\]\n]*\]", Comment.Preproc),
            (r"/\*", Comment.Multiline, "comment"),
            (r"//[^\n]*|#[^\n]*", Comment.Single),
            (r"\s+", Whitespace),
            (r'%"(?:\\.|[^"\\])*"', Name.Variable),
            (r'@"(?:\\.|[^"\\])*"', Name.Function),
            (r'"', String, "string"),
            (r"%[\w/][\w/.:\-]*(?<![.:\-])", Name.Variable),
            (rf"@{_NAME}", Name.Function),
            (words(("def", "data", "type", "extern", "free_var"), suffix=r"\b"), Keyword.Declaration),
            (words(("fn", "let", "if", "else", "match", "case"), suffix=r"\b"), Keyword),
            (words(("ref", "ref_read", "ref_write"), suffix=r"(?=\()"), Keyword),
            (words(("True", "False", "None"), suffix=r"\b"), Keyword.Constant),
            (rf"{_DTYPE}\b", Keyword.Type),
            (r"Tensor(?=\[)", Keyword.Type),
            (r"(meta)(\[)([\w.]+)(\])", bygroups(Keyword, Punctuation, Name.Class, Punctuation)),
            (r"(?:inf|nan)(?:f(?:16|32|64)?|bf16)\b", Number.Float),
            (r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?:f(?:16|32|64)?|bf16)\b", Number.Float),
            (r"\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+", Number.Float),
            (r"\d+[iu](?:8|16|32|64)\b|\d+", Number.Integer),
            (r"[a-z_][\w/]*(?:\.[A-Za-z_][\w/]*)+|[a-z_][\w/]*(?=\s*\()", Name.Builtin),
            (r"[A-Za-z_]\w*(?=\s*=(?!=))", Name.Attribute),
            (r"[A-Z]\w*", Name.Class),
            (_NAME, Name),
            (r"->|=>|==|!=|<=|>=|[-+*/<>=?!]", Operator),
            (r"[()\[\]{},;:.]", Punctuation),
        ],
        "comment": [
            (r"/\*", Comment.Multiline, "#push"),
            (r"\*/", Comment.Multiline, "#pop"),
            (r"[^*/]+|[*/]", Comment.Multiline),
        ],
        "string": [
            (r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", String.Escape),
            (r'[^"\\\n]+', String),
            (r'"|\n', String, "#pop"),
        ],
        "metadata": [
            (r'"(?:\\.|[^"\\])*"', String),
            (r"-?\d+", Number),
            (r"\s+", Whitespace),
            (r"[^\s\"\d-]+|.", Punctuation),
        ],
    }
