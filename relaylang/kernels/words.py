"""The lines and words of a page of the loop language, and its expressions before their types are known.

Expressions have the precedence of C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from relaylang.diagnostics import RelayError, SourceFile, Span, did_you_mean, error
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.ir import INDEX
from relaylang.kernels.ops import INFIX
from relaylang.kernels.sizes import Size

#: Brackets inside brackets, and statements inside statements.
DEEPEST = 200
_TOKEN = re.compile(
    r"\s*(?:(?P<string>\"[^\"]*\")|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\.\.\.|\.\.|->|<<|>>|<=|>=|==|!=|[-+*/%<>&|^?:()\[\],=])|(?P<wrong>\S))"
)
TYPE = re.compile(rf"(?:{'|'.join(CTYPES)}|index)(?:x\d+)?")
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
    """A line: its indentation, and the note that it is."""

    depth: int
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


def lines_of(source: SourceFile, first: int = 0, last: int | None = None) -> list[Line]:
    """The lines of a text, or of a part of it; empty ones are left out."""
    out: list[Line] = []
    start = first
    for text in source.text[first:last].split("\n"):
        stripped = text.strip()
        if stripped:
            depth = len(text) - len(text.lstrip(" "))
            span = Span(source, start + depth, start + len(text.rstrip()))
            note = stripped[1:].removeprefix(" ") if stripped.startswith("#") else None
            out.append(Line(depth, note, span, stripped))
        start += len(text) + 1
    return out


def tokens_of(line: Line) -> list[Token]:
    source, start = line.span.source, line.span.first
    out: list[Token] = []
    for match in _TOKEN.finditer(source.text, start, line.span.last):
        kind = match.lastgroup or "wrong"
        span = Span(source, match.start(kind), match.end(kind))
        if kind == "wrong":
            wrong(span, f"`{match[kind]}` is no part of the loop language")
        out.append(Token(kind, match[kind], span))
    return out


def _said(stands: Any) -> str:
    """What a name stands for, in words."""
    return f"the type {stands}" if isinstance(stands, str) else "an extent or an attribute"


class Words:
    """The tokens of a line, one after the other. `names` stand for numbers, sizes, lists of numbers, and types."""

    def __init__(self, line: Line, names: Mapping[str, Any] = {}) -> None:
        self.tokens = tokens_of(line)
        self.names = names
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
        """A name that the line gives to something; it stands for nothing else."""
        span, name = self.span, self._of("name", what)
        if name in self.names:
            wrong(span, f"{name} stands for {_said(self.names[name])} already")
        return name

    def whole(self) -> int:
        """A whole number, or a name that stands for one."""
        sign = -1 if self.take("-") else 1
        named = self.names.get(self.next)
        if isinstance(named, Size):
            wrong(self.span, f"{self.next} is not known before the kernel runs; a number is needed here")
        if isinstance(named, int):
            self.at += 1
            return sign * named
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
        span, name = self.span, self._type(self._of("name", "type"))
        if not TYPE.fullmatch(name):
            known = [*CTYPES, INDEX, *(n for n, stands in self.names.items() if isinstance(stands, str))]
            wrong(span, f"no type is called {name}", notes=close(name, known))
        return f"{'const ' if const else ''}{name}*" if self.take("*") else name

    def _type(self, name: str) -> str:
        stands = self.names.get(name)
        return stands if isinstance(stands, str) else name

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
        left = self.operand()
        count = 0
        while (own := _LEVELS.get(self.next, 0)) >= level:
            count += 1
            if count > DEEPEST:
                wrong(self.span, f"more than {DEEPEST} operators stand in a row", notes=("`let` gives a part a name",))
            sign = self.next
            self.at += 1
            right = self._infix(own + 1)
            span = left.span.to(right.span)
            if left.kind == right.kind == "string" and sign in ("==", "!="):
                left = Node("number", span, str(int((left.text == right.text) == (sign == "=="))))
            else:
                left = Node("op", span, _NAMES[sign], (left, right))
        return left

    def operand(self) -> Node:
        span = self.span
        if self.take("-"):
            return self._negated(span)
        if self.take("("):
            node = self.expression()
            self.need(")")
            return node
        if self.take("&"):
            name = self._of("name", "name of an array")
            return self._place("address", name, span)
        kind = self.tokens[self.at].kind if self.at < len(self.tokens) else ""
        if kind in ("number", "string"):
            self.at += 1
            return Node(kind, span, self.tokens[self.at - 1].text.strip('"'))
        name = self._of("name", "value")
        if name in ("nan", "inf"):
            return Node("number", span, name)
        if name in ("True", "False"):
            return Node("const", span, "bool", (Node("number", span, str(int(name == "True"))),), "bool")
        if name in self.names:
            stands = self.names[name]
            if not isinstance(stands, str):
                return self._standing(name, stands, span)
            if self.next != "(":
                return Node("string", span, stands)
            name = stands
        if self.next == "[":
            return self._place("load", name, span)
        return self._called(name, span)

    def _negated(self, span: Span) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            wrong(span, f"signs are nested more than {DEEPEST} deep")
        inner = self.operand()
        self.depth -= 1
        if inner.kind == "number":
            return Node("number", span.to(inner.span), f"-{inner.text}".removeprefix("--"))
        return Node("minus", span.to(inner.span), "-", (inner,))

    def _called(self, name: str, span: Span) -> Node:
        """A name, or an operation on operands: `name(x, y)`, with the type that it states in `name<float32>(x)`."""
        stated = ""
        ahead = [t.text for t in self.tokens[self.at : self.at + 4]]
        if len(ahead) == 4 and ahead[0] == "<" and ahead[2:] == [">", "("] and TYPE.fullmatch(self._type(ahead[1])):
            self.at += 3
            stated = self._type(ahead[1])
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
        call = span.to(self.tokens[self.at - 1].span)
        if TYPE.fullmatch(name):
            if len(args) != 1:
                wrong(call, f"{name}(...) converts one value")
            return Node("const" if args[0].kind == "number" else "cast", call, name, tuple(args), name)
        return Node("op", call, name, tuple(args), stated)

    def _standing(self, name: str, stands: Any, span: Span) -> Node:
        """What a name stands for: a number, an element of a list, or a size."""
        if isinstance(stands, (tuple, list)):
            self.need("[")
            at = self.whole()
            self.need("]")
            if not -len(stands) <= at < len(stands):
                wrong(span, f"{name} has {len(stands)} elements, and none at {at}")
            stands = stands[at]
        if isinstance(stands, Size):
            return Node("name", span, name)
        if stands is None:
            wrong(span, f"the attribute {name} has no value here")
        if isinstance(stands, float) and not stands.is_integer():
            return Node("number", span, repr(stands))
        return Node("number", span, f"{stands:.0f}" if isinstance(stands, float) else str(int(stands)))

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
