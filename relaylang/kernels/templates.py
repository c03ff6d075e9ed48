"""Kernels of users' operators: a text of the loop language, with names for what a call decides.

    operator my.scale
      # The data times a factor.
      type T: float32, int32
      attr factor: float = 2
      in data: T[S...]
      out y: T[S...]
      for i in 0 .. S
        y[i] = data[i] * factor

`T` is an element type, `factor` an attribute. `S...` stands for any number of extents, and `S` for their product. A lone
name in a shape is an extent. Extents of results are computed from those of arguments: `T[(H - K) / stride + 1]`.

`Template` has the heads of an operator. `bound` finds what the names stand for in a call, and `body` gives the statements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from relaylang.diagnostics import RelayError, SourceFile, Span, did_you_mean, error
from relaylang.ir.types import ANY
from relaylang.kernels import check, ir
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.legal import legal
from relaylang.kernels.reader import Reader
from relaylang.kernels.sizes import Size, largest, smallest
from relaylang.kernels.words import Line, Node, Words, lines_of, wrong

#: Words that stand for several element types in a line `type T: ...`.
CLASSES = {
    "float": ("float32", "float64", "float16", "bfloat16"),
    "int": ("int32", "int64", "int8", "int16"),
    "uint": ("uint8", "uint16", "uint32", "uint64"),
}
#: The kinds of attributes, each with a value that checks take where there is no default.
ATTRIBUTES: dict[str, Any] = {"int": 1, "float": 1.0, "bool": False, "str": "float32", "Ints": (1,) * 8, "Floats": (1.0,) * 8}
_HEADS = ("type", "attr", "in", "out", "work")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
#: Extents that checks take for names, in order.
_SAMPLES = (3, 5, 7, 11, 13, 17, 19, 23)
#: So many combinations of element types are checked when an operator is added.
_COMBINATIONS = 64
#: So many bodies are kept: checks of types ask for those that lowerings and the interpreter ask for again.
_KEPT = 256

#: The same extent of two that must agree: `agree(left, right, what, argument)`; raises where they differ.
Agree = Callable[[Any, Any, str, "int | None"], Any]


class Misfit(Exception):
    """A call does not fit the text: what is wrong, and the number of the argument, if it is one."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        self.message, self.argument = message, argument
        super().__init__(message)


def _agree(left: Any, right: Any, what: str, argument: int | None) -> Any:
    if left is ANY or right is ANY:
        return right if left is ANY else left
    if left != right:
        raise Misfit(f"{what} is {left} elsewhere, and {right} here", argument)
    return left


@dataclass
class Attribute:
    """An attribute that a text declares; None where it must be given."""

    name: str
    kind: str
    default: Any
    span: Span


@dataclass
class Argument:
    """A tensor of the text: `in`, `out` or `work`. An extent that ends in `...` is a group of extents.

    With two groups, the attribute `axis` says where the extent between them stands. `broadcast` says that the argument is
    brought to the group's shape before the kernel, `zero` that the elements begin as zeros.
    """

    kind: str
    name: str
    span: Span
    dtype: str
    extents: list[Node]
    axis: str = ""
    broadcast: bool = False
    zero: bool = False

    @property
    def text(self) -> str:
        """The declaration as it stands in the text."""
        return self.span.source.text[self.span.first : self.span.last]


@dataclass
class Template:
    """An operator's text: its head, and the lines of its statements."""

    name: str
    span: Span
    doc: str = ""
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    attributes: list[Attribute] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    _bodies: dict[Any, ir.Body] = field(default_factory=dict)

    def of(self, kind: str) -> list[Argument]:
        """The arguments of a kind."""
        return [a for a in self.arguments if a.kind == kind]

    # -- what names stand for --------------------------------------------------------------------------------------------

    def bound(
        self,
        given: Sequence[tuple[Sequence[Any], str]],
        attributes: Mapping[str, Any],
        results: Sequence[tuple[Sequence[Any], str]] | None = None,
        agree: Agree = _agree,
    ) -> dict[str, Any]:
        """What the names stand for in a call with tensors of these shapes and element types. Raises `Misfit`."""
        names: dict[str, Any] = dict(attributes)
        tensors = list(enumerate(zip(self.of("in"), given, strict=True)))
        for number, (argument, (shape, dtype)) in tensors:
            self._bind_type(argument, number, dtype, names)
            if not argument.broadcast:
                self._bind(argument, number, self._spread(argument, number, shape, names), names, agree)
        for number, (argument, (shape, _)) in tensors:
            if argument.broadcast:
                self._broadcast(argument, number, shape, names, agree)
        for number, (argument, (shape, _)) in tensors:
            if not argument.broadcast:
                self._compare(argument, number, shape, names, agree)
        for argument, (shape, dtype) in zip(self.of("out"), results or ()):
            self._bind_type(argument, None, dtype, names)
            if any(node.kind == "name" and node.text not in names for node in argument.extents):
                self._bind(argument, None, self._spread(argument, None, shape, names), names, agree)
            self._compare(argument, None, shape, names, agree)
        return names

    def _bind_type(self, argument: Argument, number: int | None, dtype: str, names: dict[str, Any]) -> None:
        wanted = names.get(argument.dtype, argument.dtype)
        if argument.dtype in self.types and argument.dtype not in names:
            if dtype not in self.types[argument.dtype]:
                raise Misfit(f"is of {dtype}, and the kernel takes {', '.join(self.types[argument.dtype])}", number)
            names[argument.dtype] = dtype
        elif wanted != dtype:
            raise Misfit(f"is of {dtype}, and the kernel has {wanted} for `{argument.text}`", number)

    def _spread(self, argument: Argument, number: int | None, shape: Sequence[Any], names: Mapping[str, Any]) -> list[Any]:
        """What stands in a shape for each extent of the text: an extent, or the extents of a group."""
        groups = [n for n, e in enumerate(argument.extents) if e.kind == "group"]
        lone = len(argument.extents) - len(groups)
        if len(shape) < lone or (not groups and len(shape) != lone):
            least = " or more" if groups else ""
            raise Misfit(f"has {len(shape)} dimensions, and the kernel takes {lone}{least}: `{argument.text}`", number)
        out: list[Any] = list(shape)
        if not groups:
            return out
        if argument.axis:
            axis = names[argument.axis]
            if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
                raise Misfit(f"has no axis {axis}", number)
            axis %= len(shape)
            return [tuple(out[:axis]), out[axis], tuple(out[axis + 1 :])]
        first, size = groups[0], len(shape) - lone
        return [*out[:first], tuple(out[first : first + size]), *out[first + size :]]

    def _bind(self, argument: Argument, number: int | None, extents: Sequence[Any], names: dict[str, Any], agree: Agree) -> None:
        for node, extent in zip(argument.extents, extents):
            if node.kind == "group":
                before = names.get(f"{node.text}...")
                what = f"{node.text}... of `{argument.text}`"
                if before is not None and len(before) != len(extent):
                    raise Misfit(f"{what} has {len(before)} dimensions elsewhere, and {len(extent)} here", number)
                if before is not None:
                    extent = tuple([agree(a, b, f"an extent of {what}", number) for a, b in zip(before, extent)])
                _group(names, node.text, extent)
            elif node.kind == "name" and node.text not in {a.name for a in self.attributes}:
                before = names.get(node.text)
                what = f"the extent {node.text} of `{argument.text}`"
                names[node.text] = extent if before is None else agree(before, extent, what, number)

    def _broadcast(self, argument: Argument, number: int | None, shape: Sequence[Any], names: dict[str, Any], agree: Agree) -> None:
        (node,) = argument.extents
        before = names.get(f"{node.text}...", ())
        rank = max(len(before), len(shape))
        one, two = ([1] * (rank - len(s)) + list(s) for s in (before, shape))
        alone = all(a.broadcast for a in self.of("in") if any(e.text == node.text for e in a.extents))
        out = []
        for a, b in zip(one, two):
            if type(b) is int and b == 1:
                out.append(a)
            elif alone and type(a) is int and a == 1:
                out.append(b)
            else:
                out.append(agree(a, b, f"an extent of {node.text}... of `{argument.text}`", number))
        if not alone and len(before) < rank:
            raise Misfit(f"has {len(shape)} dimensions, and the kernel takes {len(before)} at most: `{argument.text}`", number)
        _group(names, node.text, tuple(out))

    def _compare(self, argument: Argument, number: int | None, shape: Sequence[Any], names: Mapping[str, Any], agree: Agree) -> None:
        """A tensor has the shape that the names give."""
        wanted = self._shape(argument, names)
        if len(wanted) != len(shape):
            raise Misfit(f"has {len(shape)} dimensions, and the kernel {len(wanted)}: `{argument.text}`", number)
        for left, right in zip(wanted, shape):
            agree(left, right, f"an extent of `{argument.text}`", number)

    def _shape(self, argument: Argument, names: Mapping[str, Any]) -> tuple[Any, ...]:
        shape: list[Any] = []
        for node in argument.extents:
            shape += names[f"{node.text}..."] if node.kind == "group" else [value(node, names)]
        return tuple(shape)

    def results(self, names: Mapping[str, Any], kind: str = "out") -> list[tuple[tuple[Any, ...], str]]:
        """The shapes and element types of the results. An extent is `ANY` where it depends on one that is not known."""
        return [(self._shape(a, names), names.get(a.dtype, a.dtype)) for a in self.of(kind)]

    # -- statements ------------------------------------------------------------------------------------------------------

    def body(self, names: Mapping[str, Any]) -> ir.Body:
        """The statements for what the names stand for. Buffers have the names of the text.

        Raises `RelayError` (R0644) with the place of what is wrong in the text.
        """
        if any(isinstance(stands, Size) for stands in names.values()):
            return self._body(names)  # sizes belong to one kernel
        key = tuple((name, repr(stands)) for name, stands in names.items())
        if key not in self._bodies:
            if len(self._bodies) >= _KEPT:
                self._bodies.clear()
            self._bodies[key] = self._body(names)
        return self._bodies[key]

    def _body(self, names: Mapping[str, Any]) -> ir.Body:
        spans: dict[int, Span] = {}
        pointers = {}
        for a in self.arguments:
            if a.name in names:
                wrong(a.span, f"{a.name} is the name of two things")
            dtype = names.get(a.dtype, a.dtype)
            if dtype not in CTYPES:
                wrong(a.span, f"no element type is called {dtype}")
            pointers[a.name] = f"{'const ' if a.kind == 'in' else ''}{dtype}*"
        plain = {name: stands for name, stands in names.items() if "." not in name}
        reader = Reader(self.span.source, pointers, spans, plain)
        reader.types = dict(pointers)
        body = reader.body(self.lines)
        if any(isinstance(s, ir.Loop) and s.kind == ir.PARALLEL for s in body):
            for stmt in body:
                if isinstance(stmt, (ir.Let, ir.Local, ir.Assign)):
                    wrong(
                        spans[id(stmt)],
                        f"{stmt.name} stands outside of the parallel loop",
                        "each thread needs its own, inside of the loop",
                    )
        for part in stages(body):
            check.check(part, pointers, lambda stmt, message: wrong(spans.get(id(stmt), self.span), message))
        return self._zeros(names) + legal(body, pointers, spans, self.span)

    def _zeros(self, names: Mapping[str, Any]) -> ir.Body:
        out: ir.Body = []
        for kind in ("out", "work"):
            for a, (shape, dtype) in zip(self.of(kind), self.results(names, kind)):
                if a.zero:
                    store = ir.Store(a.name, ir.Var("zero"), ir.Const(0, dtype))
                    out.append(ir.loop("zero", 0, math.prod(shape), [store]))
        return out

    def samples(self) -> list[dict[str, Any]]:
        """What the names may stand for, with each combination of element types: for checks."""
        extents = iter(_SAMPLES * 8)
        names: dict[str, Any] = {a.name: ATTRIBUTES[a.kind] if a.default is None else a.default for a in self.attributes}
        for argument in self.arguments:
            for node in argument.extents:
                if node.kind == "group" and f"{node.text}..." not in names:
                    _group(names, node.text, (2, next(extents)))
                elif node.kind == "name" and node.text not in names:
                    names[node.text] = next(extents)
        combinations = islice(product(*self.types.values()), _COMBINATIONS)
        return [{**names, **dict(zip(self.types, types))} for types in combinations]

    def examine(self) -> None:
        """Check the statements for each combination of element types. Raises `RelayError` (R0644) with the place."""
        for names in self.samples():
            try:
                self.body(names)
            except RelayError as problem:
                types = ", ".join(f"{name} is {names[name]}" for name in self.types)
                noted = [replace(d, notes=(*d.notes, f"where {types}")) for d in problem.diagnostics]
                raise (RelayError(noted) if types else problem) from None


def stages(body: Sequence[ir.Stmt]) -> list[ir.Body]:
    """The parts of a kernel that run one after the other: each parallel loop, and the statements between two of them."""
    out: list[ir.Body] = []
    for stmt in body:
        alone = isinstance(stmt, ir.Loop) and stmt.kind == ir.PARALLEL
        if alone or not out or (isinstance(before := out[-1][-1], ir.Loop) and before.kind == ir.PARALLEL):
            out.append([])
        out[-1].append(stmt)
    return out


def _group(names: dict[str, Any], name: str, extents: tuple[Any, ...]) -> None:
    """A group of extents, and their product."""
    names[f"{name}..."] = extents
    names[name] = ANY if any(not isinstance(e, int) for e in extents) else math.prod(extents)


_SUMS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "quotient": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "min": smallest,
    "max": largest,
}


def value(node: Node, names: Mapping[str, Any]) -> Any:
    """The number of an extent. `ANY` where it depends on an extent that is not known. Raises `Misfit`."""
    match node.kind:
        case "number":
            return int(node.text)
        case "name":
            return names[node.text]
        case "load":
            at = value(node.parts[0], names)
            stands = names[node.text]
            if not -len(stands) <= at < len(stands):
                raise Misfit(f"{node.text} has {len(stands)} elements, and none at {at}")
            return stands[at]
        case "minus":
            return _SUMS["sub"](0, value(node.parts[0], names))
    left, right = (value(part, names) for part in node.parts)
    if not isinstance(left, int) or not isinstance(right, int):
        return ANY
    if node.text in ("quotient", "remainder") and right == 0:
        raise Misfit(f"the extent `{_text(node.span)}` divides by 0")
    return _SUMS[node.text](left, right)


def _text(span: Span) -> str:
    return span.source.text[span.first : span.last]


# -- reading the heads ---------------------------------------------------------------------------------------------------


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
    taken = [a.name for a in (*out.attributes, *out.arguments)] + list(out.types)
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
    found: list[str] = []
    while True:
        span, name = words.span, words.name("type")
        if name not in CTYPES and name not in CLASSES:
            near = did_you_mean(name, [*CTYPES, *CLASSES])
            wrong(span, f"no element type is called {name}", notes=(f"did you mean {near}?",) if near else ())
        found += CLASSES.get(name, (name,))
        if not words.take(","):
            return tuple(dict.fromkeys(found))


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
    if kind == "bool" and node.text in ("True", "False"):
        return node.text == "True"
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
    made = Argument(kind, name, span, dtype, extents)
    if words.take("at"):
        where, made.axis = words.span, words.name("attribute")
        if made.axis not in [a.name for a in out.attributes if a.kind == "int"]:
            wrong(where, f"{made.axis} is no attribute of the kind int")
    if words.take("broadcast"):
        made.broadcast = True
    if kind != "in" and words.take("="):
        words.need("0")
        made.zero = True
    made.span = span.to(words.tokens[words.at - 1].span)
    return made


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
            if part.text not in _SUMS or len(part.parts) != 2:
                wrong(part.span, f"extents are computed with + - * / % min max, not with {part.text}")
        elif part.kind != "minus" and not (part.kind == "number" and part.text.lstrip("-").isdigit()):
            wrong(part.span, "this is no extent")


__all__ = ["Argument", "Misfit", "Template", "templates", "value"]
