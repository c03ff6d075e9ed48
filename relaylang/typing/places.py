"""The places that messages point at: arguments, attributes, names and results inside a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from relaylang.diagnostics.source import Span
from relaylang.grammar import compiled, patterns
from relaylang.ir.expr import Call, Expr, Function, Let, Var
from relaylang.typing.call_text import call_span


def plain(span: Span | None) -> Span | None:
    """The span by offsets, where its source counts tokens: one diagnostic then speaks of one source."""
    source = getattr(span.source, "plain", None) if span is not None else None
    if span is None or source is None:
        return span
    return Span(source, span.start, span.end)


def place(part: Expr, whole: Span | None, last: bool = False) -> Span | None:
    """Where a part of an expression is written; the whole where the part is a shared node that stands elsewhere.

    A variable's own span is where it is declared: its first (or last) mention in the whole is looked for.
    """
    span = part.span
    if isinstance(part, Var) and whole is not None:
        mentions = list(re.finditer(rf"%{re.escape(part.name_hint)}(?![\w.])", whole.text))
        if not mentions:
            return whole
        mention = mentions[-1 if last else 0]
        source = getattr(whole.source, "plain", whole.source)
        return Span(source, whole.start + mention.start(), whole.start + mention.end())
    if span is None or whole is None:
        return whole
    if span.source.within is whole.source:
        return span
    if span.source is whole.source and whole.first <= span.first and span.last <= whole.last:
        return span
    return whole


@lru_cache(maxsize=1)
def _callee() -> re.Pattern[str]:
    """Finds the callee in front of a call's bracket."""
    return re.compile(r'\s*[%@]?(?:"[^"]*"|[\w.:/-]+)\s*\(')


@lru_cache(maxsize=1)
def _piece() -> re.Pattern[str]:
    """Finds brackets, commas and arrows, and the strings and comments that may hide them."""
    hidden = "|".join(patterns()[name] for name in ("STRING", "BLOCK_COMMENT", "LINE_COMMENT"))
    return re.compile(rf"{hidden}|[\[\](){{}},]|->")


def _without_comments(text: str) -> str:
    """The text with blanks in place of its comments."""
    blanks = compiled("STRING", "BLOCK_COMMENT", "LINE_COMMENT")
    return blanks.sub(lambda m: m[0] if m.lastgroup == "STRING" else " " * len(m[0]), text)


def _arguments(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the arguments of the last call in a stretch of text stand."""
    depth = 0
    begin = -1
    last = -1
    for piece in _piece().finditer(text, start, end):
        mark = piece.group()
        if mark in ("(", "[", "{"):
            depth += 1
            if depth == 1 and mark == "(":
                begin = piece.end()
        elif mark in (")", "]", "}"):
            depth -= 1
            if depth == 0 and mark == ")":
                last = piece.start()
                break
        elif mark == "," and depth == 1 and begin >= 0:
            yield begin, piece.start()
            begin = piece.end()
    if begin >= 0 and last >= 0:
        yield begin, last


def argument_span(call: Call, index: int) -> Span | None:
    """Where a call's argument is written, which for a shared node is not where the node itself stands."""
    span = call_span(call)
    argument = call.args[index].span
    start, end = span.start, span.end
    if argument is not None and argument.source is span.source and start <= argument.start and argument.end <= end:
        return argument
    text = span.source.text
    if _callee().match(text, start) is None:
        return place(call.args[index], span)
    for i, (begin, stop) in enumerate(_arguments(text, start, end)):
        if i == index:
            piece = _without_comments(text[begin:stop])
            body = piece.strip()
            if not body or i >= len(call.args):
                return span
            begin += piece.index(body)
            return Span(getattr(span.source, "plain", span.source), begin, begin + len(body))
    return span


def attribute_span(call: Call, name: str) -> Span | None:
    """Where a call gives an attribute a value (`axis=5`), or None where it does not."""
    span = call_span(call)
    if _callee().match(span.source.text, span.start) is None:
        return None
    text = span.source.text
    for begin, stop in _arguments(text, span.start, span.end):
        piece = _without_comments(text[begin:stop])
        if re.match(rf"\s*{name}\s*=(?!=)", piece):
            begin += len(piece) - len(piece.lstrip())
            return Span(getattr(span.source, "plain", span.source), begin, begin + len(piece.strip()))
    return None


def last_value(expr: Expr) -> Expr:
    """Where the value of an expression is made: behind its lets."""
    while isinstance(expr, Let):
        expr = expr.body
    return expr


def bare_name(name: str, holder: Expr | None) -> Span | None:
    """Where an operator's name stands in an expression without being called; the expression where it is not found."""
    span = holder.span if holder is not None else None
    if span is None:
        return None
    start = span.start
    # A let's span ends with its body: the name stands near its beginning.
    match = re.compile(rf"(?<![\w.%@/]){re.escape(name)}(?![\w.]|\s*\()").search(span.source.text, start, span.end)
    if match is None:
        return span
    return Span(getattr(span.source, "plain", span.source), match.start(), match.end())


def result_span(function: Function) -> Span | None:
    """Where a function declares its result's type."""
    if function.ret_type is None:
        return None
    span = function.span
    if function.ret_type.span is not None or span is None:
        return function.ret_type.span
    depth, begin = 0, -1
    for piece in _piece().finditer(span.source.text, span.start, span.end):
        mark = piece.group()
        if mark == "{" and depth == 0:
            if begin < 0:
                return None
            text = span.source.text[begin : piece.start()]
            begin += len(text) - len(text.lstrip())
            return Span(getattr(span.source, "plain", span.source), begin, begin + len(text.strip()))
        if mark == "->" and depth == 0 and begin < 0:
            begin = piece.end()
        depth += (mark in "([{") - (mark in ")]}")
    return None


__all__ = ["argument_span", "attribute_span", "bare_name", "last_value", "place", "plain", "result_span"]
