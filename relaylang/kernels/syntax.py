"""The syntax of the loop language's page: its lines, tokens and expressions, before the types of these are known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from relaylang.diagnostics import RelayError, SourceFile, Span, did_you_mean, error
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.ir import INDEX
from relaylang.kernels.ops import INFIX

#: Brackets inside brackets, and statements inside statements.
DEEPEST = 200


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\.\.|->|<<|>>|<=|>=|==|!=|[-+*/%<>&|^?:()\[\],=])|(?P<wrong>\S))"
)


_TYPE = re.compile(rf"(?:{'|'.join(CTYPES)}|index)(?:x\d+)?")


#: How tightly operators bind, as in C.
_LEVELS = {
    "|": 1,
    "^": 2,
    "&": 3,
    "==": 4,
    "!=": 4,
    "<": 5,
    "<=": 5,
    ">": 5,
    ">=": 5,
    "<<": 6,
    ">>": 6,
    "+": 7,
    "-": 7,
    "*": 8,
    "/": 8,
    "%": 8,
}


_NAMES = {sign: name for name, sign in INFIX.items()}


@dataclass
class Token:
    kind: str
    text: str
    span: Span


@dataclass
class Line:
    """A line: its indentation, its tokens, and the note that it is."""

    depth: int
    tokens: list[Token]
    note: str | None
    span: Span
    text: str


@dataclass
class Node:
    """An expression before its types are known: what it is, its parts, and the type that it says itself."""

    kind: str
    span: Span
    text: str = ""
    parts: tuple[Node, ...] = ()
    #: The type in `<...>`, or of a place.
    said: str = ""
    aligned: bool = False
    known: str | None = None


def wrong(span: Span, title: str, label: str = "", notes: tuple[str, ...] = ()) -> NoReturn:
    raise RelayError(error("R0644", title, span, label, notes=notes))


def close(name: str, known: Iterable[str]) -> tuple[str, ...]:
    near = did_you_mean(name, known)
    return (f"did you mean {near}?",) if near else ()


def lines_of(source: SourceFile) -> list[Line]:
    out: list[Line] = []
    start = 0
    for text in source.text.split("\n"):
        stripped = text.strip()
        if stripped:
            depth = len(text) - len(text.lstrip(" "))
            span = Span(source, start + depth, start + len(text.rstrip()))
            note = stripped[1:].removeprefix(" ") if stripped.startswith("#") else None
            out.append(Line(depth, [], note, span, stripped))
        start += len(text) + 1
    return out


def _tokens(line: Line) -> list[Token]:
    source, start = line.span.source, line.span.first
    for match in _TOKEN.finditer(source.text, start, line.span.last):
        kind = match.lastgroup or "wrong"
        span = Span(source, match.start(kind), match.end(kind))
        if kind == "wrong":
            wrong(span, f"`{match[kind]}` is no part of the loop language")
        line.tokens.append(Token(kind, match[kind], span))
    return line.tokens


class Words:
    """The tokens of a line, one after the other."""

    def __init__(self, line: Line) -> None:
        self.tokens = _tokens(line)
        self.at = 0
        self.end = Span(line.span.source, line.span.last, line.span.last)
        self.depth = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    @property
    def span(self) -> Span:
        return self.tokens[self.at].span if self.at < len(self.tokens) else self.end

    def take(self, text: str) -> bool:
        if self.next != text:
            return False
        self.at += 1
        return True

    def need(self, text: str) -> None:
        if not self.take(text):
            wrong(self.span, f"`{text}` is missing here")

    def name(self, what: str = "name") -> str:
        return self._of("name", what)

    def whole(self) -> int:
        sign = -1 if self.take("-") else 1
        text = self._of("number", "whole number")
        if not text.isdigit():
            wrong(self.tokens[self.at - 1].span, f"{text} is no whole number")
        return sign * int(text)

    def _of(self, kind: str, what: str) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind != kind:
            wrong(self.span, f"a {what} is missing here")
        self.at += 1
        return self.tokens[self.at - 1].text

    def type(self) -> str:
        """A type: `float32`, `float32x8`, `const float32*`."""
        const = self.take("const")
        span, name = self.span, self.name("type")
        if not _TYPE.fullmatch(name):
            wrong(span, f"no type is called {name}", notes=close(name, [*CTYPES, INDEX]))
        return f"{'const ' if const else ''}{name}*" if self.take("*") else name

    def done(self) -> None:
        if self.at < len(self.tokens):
            wrong(self.span, f"`{self.next}` does not belong here")

    # -- expressions -----------------------------------------------------------------------------------------------------

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            wrong(self.span, f"brackets are nested more than {DEEPEST} deep")
        node = self._infix(1)
        if self.take("?"):
            yes = self.expression()
            self.need(":")
            no = self.expression()
            node = Node("op", node.span.to(no.span), "select", (node, yes, no))
        self.depth -= 1
        return node

    def _infix(self, level: int) -> Node:
        left = self.one()
        while (own := _LEVELS.get(self.next, 0)) >= level:
            sign = self.next
            self.at += 1
            right = self._infix(own + 1)
            left = Node("op", left.span.to(right.span), _NAMES[sign], (left, right))
        return left

    def one(self) -> Node:
        span = self.span
        if self.take("-"):
            inner = self.one()
            if inner.kind == "number":
                return Node("number", span.to(inner.span), f"-{inner.text}")
            return Node("minus", span.to(inner.span), "-", (inner,))
        if self.take("("):
            node = self.expression()
            self.need(")")
            return node
        if self.take("&"):
            name = self.name("name of an array")
            return self._place("address", name, span)
        if self.at < len(self.tokens) and self.tokens[self.at].kind == "number":
            self.at += 1
            return Node("number", span, self.tokens[self.at - 1].text)
        name = self.name("value")
        if name in ("nan", "inf"):
            return Node("number", span, name)
        if self.next == "[":
            return self._place("load", name, span)
        said = ""
        ahead = [t.text for t in self.tokens[self.at : self.at + 4]]
        if len(ahead) == 4 and ahead[0] == "<" and ahead[2:] == [">", "("] and _TYPE.fullmatch(ahead[1]):
            self.at += 3
            said = ahead[1]
        if name == "size" and self.next == "(":
            return self._size(span)
        if name == "null" and self.take("("):
            ty = self.type()
            self.need(")")
            return Node("null", span, ty)
        if not self.take("("):
            return Node("name", span, name)
        args = []
        while not self.take(")"):
            args.append(self.expression())
            if not self.take(","):
                self.need(")")
                break
        whole = span.to(self.tokens[self.at - 1].span)
        if _TYPE.fullmatch(name):
            if len(args) != 1:
                wrong(whole, f"{name}(...) converts one value")
            return Node("const" if args[0].kind == "number" else "cast", whole, name, tuple(args), name)
        return Node("op", whole, name, tuple(args), said)

    def _size(self, span: Span) -> Node:
        """The text of a size, as C has it."""
        first, depth = self.at, 0
        while self.at < len(self.tokens):
            depth += (self.next == "(") - (self.next == ")")
            self.at += 1
            if not depth:
                last = self.tokens[self.at - 1].span
                return Node("size", span.to(last), span.source.text[self.tokens[first].span.last : last.first])
        wrong(self.span, "`)` is missing here")

    def _place(self, kind: str, name: str, span: Span) -> Node:
        """`buffer[index]`, with a number of lanes or a type behind a colon."""
        self.need("[")
        index = self.expression()
        said, aligned = "", False
        if self.take(":"):
            said = str(self.whole()) if self.tokens[self.at : self.at + 1] and self.tokens[self.at].kind == "number" else self.type()
            aligned = self.take("aligned")
        self.need("]")
        return Node(kind, span.to(self.tokens[self.at - 1].span), name, (index,), said, aligned)
