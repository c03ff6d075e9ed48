"""Reads the operators of a text: their heads, and the lines of their statements (`relaylang.kernels.templates`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from relaylang.diagnostics import RelayError, SourceFile, Span, did_you_mean, error
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.templates import ATTRIBUTES, SUMS, Argument, Attribute, Template
from relaylang.kernels.words import Line, Node, Words, lines_of, wrong

#: Words that stand for several element types in a line `type T: ...`.
CLASSES = {
    "float": ("float32", "float64", "float16", "bfloat16"),
    "int": ("int32", "int64", "int8", "int16"),
    "uint": ("uint8", "uint16", "uint32", "uint64"),
}
_HEADS = ("type", "attr", "in", "out", "work")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def templates(
    source: SourceFile, first: int = 0, last: int | None = None, attributes: Mapping[str, str] | None = None
) -> list[Template]:
    """The operators of a text, or of a part of it.

    `attributes` are the kinds of those that a record declares; the text then declares none. Raises `RelayError` (R0644)
    with the place of a mistake.
    """
    lines = lines_of(source, first, last)
    out: list[Template] = []
    at = 0
    while at < len(lines):
        line, end = lines[at], at + 1
        while end < len(lines) and lines[end].depth > line.depth:
            end += 1
        if line.note is None:
            out.append(_template(line, lines[at + 1 : end], attributes))
        at = end
    if not out:
        raise RelayError(error("R0644", f"{source.name} has no operator", notes=["a text begins with `operator NAME`"]))
    return out


def _template(line: Line, inside: list[Line], attributes: Mapping[str, str] | None) -> Template:
    head, _, name = line.text.partition(" ")
    if head != "operator" or not _NAME.fullmatch(name.strip()):
        wrong(line.span, "an operator's text begins with `operator NAME`", "this is something else")
    out = Template(name.strip(), line.span)
    out.attributes = [Attribute(n, kind, None, line.span) for n, kind in (attributes or {}).items()]
    notes = []
    at = 0
    while at < len(inside):
        here = inside[at]
        word = here.text.split(" ")[0]
        if here.note is not None and not out.arguments:
            notes.append(here.note)
        elif word in _HEADS and re.match(r"\w+ +\w+ *:", here.text):
            if word == "attr" and attributes is not None:
                wrong(here.span, "the operator's record declares its attributes")
            _head(out, word, here)
        else:
            break
        at += 1
    out.doc = " ".join(notes)
    out.lines = inside[at:]
    _examine_head(out)
    return out


def _head(out: Template, word: str, line: Line) -> None:
    words = Words(line)
    words.at += 1
    span, name = words.span, words.name()
    taken = [*(a.name for a in out.attributes), *(a.name for a in out.arguments), *out.types]
    if name in taken or name in CTYPES:
        wrong(span, f"{name} is the name of two things")
    words.need(":")
    if word == "type":
        out.types[name] = _types(words)
    elif word == "attr":
        out.attributes.append(_attribute(words, name, span))
    else:
        out.arguments.append(_argument(words, word, name, span, out))
    words.done()


def _types(words: Words) -> tuple[str, ...]:
    types: list[str] = []
    while True:
        span, name = words.span, words.name("type")
        if name not in CTYPES and name not in CLASSES:
            near = did_you_mean(name, [*CTYPES, *CLASSES])
            wrong(span, f"no element type is called {name}", notes=(f"did you mean {near}?",) if near else ())
        types += CLASSES.get(name, (name,))
        if not words.take(","):
            return tuple(dict.fromkeys(types))


def _attribute(words: Words, name: str, span: Span) -> Attribute:
    at, kind = words.span, words.name("kind of attribute")
    if kind not in ATTRIBUTES:
        wrong(at, f"no attribute is of the kind {kind}", notes=(f"there are {', '.join(ATTRIBUTES)}",))
    default = _default(words, kind) if words.take("=") else None
    return Attribute(name, kind, default, span)


def _default(words: Words, kind: str) -> Any:
    span = words.span
    if kind in ("Ints", "Floats"):
        words.need("[")
        values: list[Any] = []
        while not words.take("]"):
            values.append(_default(words, "int" if kind == "Ints" else "float"))
            if not words.take(","):
                words.need("]")
                break
        return tuple(values)
    node = words.operand()
    if kind == "str" and node.kind == "string":
        return node.text
    if kind == "bool" and node.kind == "const" and node.text == "bool":
        return node.parts[0].text == "1"
    if kind in ("int", "float") and node.kind == "number" and (kind == "float" or node.text.lstrip("-").isdigit()):
        return int(node.text) if kind == "int" else float(node.text)
    wrong(span, f"this is no default of the kind {kind}")


def _argument(words: Words, kind: str, name: str, span: Span, out: Template) -> Argument:
    at, dtype = words.span, words.name("type")
    texts = [a.name for a in out.attributes if a.kind == "str"]
    if dtype not in CTYPES and dtype not in out.types and dtype not in texts:
        near = did_you_mean(dtype, [*CTYPES, *out.types, *texts])
        notes = (f"did you mean {near}?",) if near else (f"`type {dtype}: float32, int32` declares it",)
        wrong(at, f"no element type is called {dtype}", notes=notes)
    words.need("[")
    extents: list[Node] = []
    while not words.take("]"):
        node = words.expression()
        if node.kind == "name" and words.take("..."):
            node = Node("group", node.span, node.text)
        extents.append(node)
        if not words.take(","):
            words.need("]")
            break
    argument = Argument(kind, name, span, dtype, extents)
    if words.take("at"):
        where, argument.axis = words.span, words.name("attribute")
        if argument.axis not in [a.name for a in out.attributes if a.kind == "int"]:
            wrong(where, f"{argument.axis} is no attribute of the kind int")
    if words.take("broadcast"):
        argument.broadcast = True
    if kind != "in" and words.take("="):
        words.need("0")
        argument.zero = True
    argument.span = span.to(words.tokens[words.at - 1].span)
    return argument


def _examine_head(out: Template) -> None:
    """The extents of the head are of names that something says."""
    if not out.of("out"):
        wrong(out.span, f"{out.name} has no result", notes=("`out y: T[N]` declares one",))
    if not out.lines:
        wrong(out.span, f"{out.name} has no statements")
    attributes = {a.name: a.kind for a in out.attributes}
    known = {*attributes}
    for argument in out.of("in"):
        known |= {e.text for e in argument.extents if e.kind in ("name", "group")}
        _examine_groups(argument)
    groups = {e.text for a in out.of("in") for e in a.extents if e.kind == "group"}
    for argument in out.arguments:
        for node in argument.extents:
            if node.kind == "group" and argument.kind != "in" and node.text not in groups:
                wrong(node.span, f"{node.text}... stands in no argument")
            elif node.kind != "group":
                _examine_extent(node, known, attributes)
    lone = {e.text for a in out.arguments for e in a.extents if e.kind == "name"} - set(attributes)
    for name in sorted(groups & lone):
        wrong(out.span, f"{name} is an extent, and a group of extents")


def _examine_groups(argument: Argument) -> None:
    groups = [e.kind == "group" for e in argument.extents]
    if argument.axis and groups != [True, False, True]:
        wrong(argument.span, "`at` needs a shape `A..., N, B...`")
    if sum(groups) > 1 and not argument.axis:
        wrong(argument.span, "a shape has one group of extents", notes=("`T[A..., N, B...] at axis` takes an axis of an attribute",))
    if argument.broadcast and groups != [True]:
        wrong(argument.span, "an argument that is broadcast has the shape of one group", notes=("`in x: T[S...] broadcast`",))


def _examine_extent(node: Node, known: set[str], attributes: Mapping[str, str]) -> None:
    stack = [node]
    while stack:
        part = stack.pop()
        stack += part.parts
        if part.kind in ("name", "load"):
            if part.text not in known:
                near = did_you_mean(part.text, known)
                said = "an extent of no argument, and no attribute"
                wrong(part.span, f"{part.text} is {said}", notes=(f"did you mean {near}?",) if near else ())
            kind = attributes.get(part.text, "int")
            if kind not in ("int", "bool") if part.kind == "name" else kind != "Ints":
                wrong(part.span, f"the attribute {part.text} is of the kind {kind}, and no extent")
        elif part.kind == "op":
            if part.text not in SUMS or len(part.parts) != 2:
                wrong(part.span, f"extents are computed with + - * / % min max, not with {part.text}")
        elif part.kind != "minus" and not (part.kind == "number" and part.text.lstrip("-").isdigit()):
            wrong(part.span, "this is no extent")


__all__ = ["templates"]
