"""How a type error is said: texts of types and of what differs, and the places to point at."""

from __future__ import annotations

import re
from collections.abc import Iterator

from relaylang.diagnostics import define_codes
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Constructor, Expr, Function, GlobalVar, Let, TupleGetItem, Var
from relaylang.ir.types import ANY, FuncType, TensorType, TupleType, Type, TypeCall, TypeVar, type_children, type_text
from relaylang.ops.record import Op
from relaylang.typing.written import call_span

define_codes(
    {
        "R0301": "an operator does not accept its arguments",
        "R0302": "two types differ",
        "R0303": "a wrong number of arguments",
        "R0304": "a type is not known",
        "R0305": "what is called is not a function",
        "R0306": "not a field of a tuple",
        "R0307": "a condition is not a truth value",
        "R0308": "a match does not cover every value",
        "R0309": "a pattern does not fit what is matched",
        "R0310": "a type would contain itself",
        "R0311": "a type is not well formed",
        "R0312": "a name has no definition",
        "R0313": "not a reference",
        "R0314": "a variable is used before it has a value",
        "R0315": "types that are left open",
        "R0316": "a name is bound twice",
    }
)

_SHOWN = 300


def show(ty: Type) -> str:
    """A type's text, cut where it is long. Types of any depth are shown without writing all of them."""
    if _size(ty, 400) >= 400:
        return _outline(ty)
    text = type_text(ty)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _size(ty: Type, limit: int) -> int:
    count = 0
    stack = [ty]
    while stack and count < limit:
        count += 1
        stack.extend(type_children(stack.pop()))
    return count


def _outline(ty: Type) -> str:
    if isinstance(ty, TupleType):
        return f"(a tuple of {len(ty.fields)})"
    if isinstance(ty, FuncType):
        return f"fn (... {len(ty.arg_types)} arguments) -> ..."
    return f"{type(ty).__name__}(...)"


def difference(expected: Type, found: Type) -> str:
    """In what two types differ, as half a sentence, or nothing where the texts say it all."""
    if isinstance(expected, TensorType) and isinstance(found, TensorType):
        if expected.dtype != found.dtype:
            return f"the element type is {found.dtype}, not {expected.dtype}"
        if len(expected.shape) != len(found.shape):
            return f"it has {_count(len(found.shape), 'dimension')}, not {len(expected.shape)}"
        for axis, (want, have) in enumerate(zip(expected.shape, found.shape)):
            if want != have and want is not ANY and have is not ANY:
                return f"dimension {axis} is {_dim(have)}, not {_dim(want)}"
    if isinstance(expected, TupleType) and isinstance(found, TupleType):
        if len(expected.fields) != len(found.fields):
            return f"it has {_count(len(found.fields), 'field')}, not {len(expected.fields)}"
        for i, (wanted, has) in enumerate(zip(expected.fields, found.fields)):
            if type(wanted) is not type(has) or (isinstance(wanted, TensorType) and wanted != has):
                inner = difference(wanted, has) if isinstance(wanted, TensorType) else ""
                if inner or type(wanted) is not type(has):
                    return f"field {i} is `{show(has)}`, not `{show(wanted)}`{': ' if inner else ''}{inner}"
    if isinstance(expected, FuncType) and isinstance(found, FuncType):
        if len(expected.arg_types) != len(found.arg_types):
            return f"it takes {_count(len(found.arg_types), 'argument')}, not {len(expected.arg_types)}"
    if isinstance(expected, TypeCall) and isinstance(found, TypeCall) and expected.func is not found.func:
        return "they are two definitions, and types are told apart by name"
    return ""


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _dim(dim: object) -> str:
    return dim.name_hint if isinstance(dim, TypeVar) else str(dim)


def name_of(expr: Expr) -> str:
    """What an expression is called in a message."""
    if isinstance(expr, Op):
        return f"`{expr.name}`"
    if isinstance(expr, GlobalVar):
        return f"`@{expr.name_hint}`"
    if isinstance(expr, Var):
        return f"`%{expr.name_hint}`"
    if isinstance(expr, Constructor):
        return f"`{expr.name_hint}`"
    if isinstance(expr, Call):
        return (
            f"the result of {name_of(expr.op)}"
            if isinstance(expr.op, (Op, GlobalVar, Var, Constructor))
            else "a call's result"
        )
    if isinstance(expr, TupleGetItem):
        return f"field {expr.index}"
    return "the function"


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
        found = mentions[-1 if last else 0]
        source = getattr(whole.source, "plain", whole.source)
        return Span(source, whole.start + found.start(), whole.start + found.end())
    if span is None or whole is None:
        return whole
    if span.source is whole.source and whole.first <= span.first and span.last <= whole.last:
        return span
    return whole


_CALLEE = re.compile(r'\s*[%@]?(?:"[^"]*"|[\w.:/-]+)\s*\(')
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_PIECE = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*|[\[\](){},]', re.S)


def _arguments(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the arguments of the last call in a stretch of text stand."""
    depth = 0
    begin = -1
    last = -1
    for piece in _PIECE.finditer(text, start, end):
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
    if _CALLEE.match(text, start) is None:
        return place(call.args[index], span)
    for i, (begin, stop) in enumerate(_arguments(text, start, end)):
        if i == index:
            piece = _COMMENT.sub(lambda m: " " * len(m.group()), text[begin:stop])
            body = piece.strip()
            if not body or i >= len(call.args):
                return span
            begin += piece.index(body)
            return Span(getattr(span.source, "plain", span.source), begin, begin + len(body))
    return span


def attribute_span(call: Call, name: str) -> Span | None:
    """Where a call gives an attribute a value (`axis=5`), or None where it does not."""
    span = call_span(call)
    if _CALLEE.match(span.source.text, span.start) is None:
        return None
    text = span.source.text
    for begin, stop in _arguments(text, span.start, span.end):
        piece = _COMMENT.sub(lambda m: " " * len(m.group()), text[begin:stop])
        if re.match(rf"\s*{name}\s*=(?!=)", piece):
            begin += len(piece) - len(piece.lstrip())
            return Span(getattr(span.source, "plain", span.source), begin, begin + len(piece.strip()))
    return None


def note_of(expected: Type, found: Type) -> tuple[str, ...]:
    """The difference of two types as notes."""
    text = difference(expected, found)
    return (text,) if text else ()


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
    # A let's span ends with its body: what is looked for stands near its beginning.
    found = re.compile(rf"(?<![\w.%@/]){re.escape(name)}(?![\w.]|\s*\()").search(span.source.text, start, span.end)
    if found is None:
        return span
    return Span(getattr(span.source, "plain", span.source), found.start(), found.end())


def result_span(function: Function) -> Span | None:
    """Where a function declares its result's type."""
    if function.ret_type is None:
        return None
    span = function.span
    if function.ret_type.span is not None or span is None:
        return function.ret_type.span
    depth, begin = 0, -1
    for piece in re.compile(_PIECE.pattern + "|->", re.S).finditer(span.source.text, span.start, span.end):
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
