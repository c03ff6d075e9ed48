"""Reads a page of the loop language (`relaylang.kernels.text`) back into its nodes.

A line is a statement, and the lines indented below it are inside it. Expressions have the precedence of C. Mistakes are
diagnostics with their places (R0644), and so are violations of the language's rules (`relaylang.kernels.check`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relaylang.diagnostics import SourceFile, Span
from relaylang.kernels import check, ir, visit
from relaylang.kernels.ir import INDEX, Body, Expr
from relaylang.kernels.nest import Buf
from relaylang.kernels.operands import ON_INDICES, result_of, wanted
from relaylang.kernels.ops import INTRINSICS, OPERATIONS
from relaylang.kernels.sizes import MOST, Sizes, _size
from relaylang.kernels.text import BUFFERS, Part
from relaylang.kernels.words import DEEPEST, Line, Node, Words, close, lines_of, wrong

_LOOPS = {"for": ir.SERIAL, "parallel": ir.PARALLEL, "vector": ir.VECTOR, "unrolled": ir.UNROLLED}
_STATEMENTS = ("let", "var", "local", "reduce", *_LOOPS, "if", "else", "while", "do", "call")


@dataclass
class Listing:
    """What a page has: statements outside of kernels, functions, kernels and packings, and the calls of the program."""

    body: Body = field(default_factory=list)
    functions: list[ir.Function] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)


class Reader:
    """The statements of a body, with the types of the names around them. `names` stand for numbers, sizes and types."""

    def __init__(self, source: SourceFile, types: Mapping[str, str], spans: dict[int, Span], names: Mapping[str, Any] = {}) -> None:
        self.source = source
        self.names = names
        #: A parallel loop's stage has the ends of its units.
        self.types = {"lo": INDEX, "hi": INDEX, **types}
        #: Where each statement stands.
        self.spans = spans
        self.sizes = Sizes(())
        self.has_sizes = True

    # -- types -----------------------------------------------------------------------------------------------------------

    def name(self, node: Node) -> str:
        held = self.types.get(node.text)
        if held is None:
            wrong(node.span, f"undefined: {node.text}", notes=close(node.text, self.types))
        return held

    def place(self, node: Node) -> str:
        """The type of what a place holds."""
        held = self.name(node)
        if not held.endswith(("[]", "*")):
            wrong(node.span, f"{node.text} is no array")
        element = held.removesuffix("[]") if held.endswith("[]") else ir.element_of(held)
        if node.said.isdigit():
            return ir.vector(ir.vector_of(element)[0], int(node.said))
        return node.said or element

    def known(self, node: Node) -> str | None:
        """The type that an expression says; None where its place has to."""
        if not node.known:
            node.known = self._known(node) or "?"
        return None if node.known == "?" else node.known

    def _known(self, node: Node) -> str | None:
        match node.kind:
            case "name":
                if node.text in self.names or (node.text not in self.types and re.fullmatch(r"size\d+", node.text)):
                    return INDEX
                held = self.name(node)
                return f"{held.removesuffix('[]')}*" if held.endswith("[]") else held
            case "cast" | "const" | "null":
                return node.text
            case "size":
                return INDEX
            case "load":
                return self.place(node)
            case "minus":
                return self.known(node.parts[0])
            case "op":
                return node.said or result_of(node.text, [self.known(p) for p in node.parts], node.text in INTRINSICS)
        return None

    # -- expressions -----------------------------------------------------------------------------------------------------

    def address(self, node: Node, place: str) -> Expr:
        """A pointer of the type that the text states, or that is asked for, or else to what nobody writes."""
        held = self.name(node)
        element = held.removesuffix("[]") if held.endswith("[]") else ir.element_of(held)
        pointer = place if place.endswith("*") else f"const {element}*"
        return ir.Address(node.text, self.build(node.parts[0], INDEX), node.said or pointer)

    def build(self, node: Node, place: str | None = None) -> Expr:
        """The expression, where a type is asked for."""
        match node.kind:
            case "number":
                return self.number(node, place or INDEX)
            case "const":
                return self.number(node.parts[0], node.text)
            case "name" if node.text in self.names:
                return ir.Extent(self.names[node.text])
            case "name" if node.text not in self.types and re.fullmatch(r"size\d+", node.text):
                return self.size(node)
            case "string":
                wrong(node.span, f'"{node.text}" can be compared with another text, and no more')
            case "name":
                return ir.Var(node.text, self.known(node) or INDEX)
            case "size":
                return self.size(node)
            case "load":
                return ir.Load(node.text, self.build(node.parts[0], INDEX), self.place(node), node.aligned)
            case "address":
                return self.address(node, place or "")
            case "null":
                return ir.Cast(ir.number(0), node.text)
            case "cast":
                return ir.Cast(self.build(node.parts[0]), node.text)
            case "minus":
                inner = self.build(node.parts[0], place)
                return ir.times(inner, -1) if inner.type == INDEX or place == INDEX else ir.op("neg", inner)
        return self.operation(node, place)

    def operation(self, node: Node, place: str | None) -> Expr:
        name, intrinsic = node.text, node.text in INTRINSICS
        if not intrinsic and name not in OPERATIONS:
            wrong(node.span, f"no operation is called {name}", notes=close(name, [*OPERATIONS, *INTRINSICS]))
        types = [self.known(p) for p in node.parts]
        result = node.said or result_of(name, types, intrinsic) or place
        if not node.said and name in ON_INDICES and place == INDEX:
            result = INDEX
        if node.said:
            asked: list[str | None] = [INDEX if result == INDEX and name in ON_INDICES else None] * len(types)
        else:
            asked = wanted(name, types, result, intrinsic)
        if name == "quotient" and result is not None and "float" in result:
            name = "div"
        if name == "select" and len(types) != 3:
            wrong(node.span, f"select takes 3 operands, not {len(types)}")
        args = tuple(self.build(p, t) for p, t in zip(node.parts, asked))
        if result is None:
            result = args[0].type if args and not intrinsic else None
        if result is None:
            wrong(node.span, f"the type of {name} is not known here", notes=(f"write {name}<type>(...)",))
        index = self.index(name, args) if result == INDEX and len(args) == 2 else None
        if index is not None:
            return index
        return ir.Intrinsic(name, args, result) if intrinsic else ir.Op(name, args, result)

    def index(self, name: str, args: tuple[Expr, ...]) -> Expr | None:
        """An operation on two indices, computed as far as they are known; None where it stays as it is."""
        if name in ("add", "sub", "mul"):
            return ir.binary(name, *args)
        if name in ("quotient", "remainder") and self.names:
            left, right = map(_extent_of, args)
            if left is not None and right is not None and (right > 0 or (type(left) is type(right) is int and right)):
                return ir.expr(left // right if name == "quotient" else left % right)  # as heads have it
        return None

    def number(self, node: Node, ty: str) -> Expr:
        text = node.text
        is_integer = text.lstrip("-").isdigit()
        if ty == INDEX:
            if not is_integer:
                wrong(node.span, f"the type of {text} is not known here", notes=(f"write its type: float32({text})",))
            return ir.number(int(text))
        if not is_integer and "float" not in ty:
            wrong(node.span, f"{text} is no number of the type {ty}")
        return ir.Const(int(text) if is_integer and "float" not in ty else float(text), ty)

    def size(self, node: Node) -> Expr:
        """A size of the kernel that a page is of; operators have names for theirs."""
        if not self.has_sizes:
            wrong(node.span, "an operator has extents with names, and no sizes")
        return ir.Extent(self.extent(node.text))  # type: ignore[arg-type]

    def extent(self, text: str) -> int:
        """A size of its text: a sum of products of names, numbers, and quotients and the like in brackets."""
        terms: dict[tuple[str, ...], int] = {}
        for part in _split(text, " + "):
            atoms, factor = [], 1
            for word in _split(part, " * "):
                if re.fullmatch(r"-?\d+", word):
                    factor *= int(word)
                else:
                    atoms.append(word)
                    # Not those of `Sizes`, whose numbers nobody knows here.
                    self.sizes.made_of[word] = frozenset(map(int, re.findall(r"\bsize(\d+)", word)))
                    self.sizes.atom(word, 0, MOST, 1, 1)
            terms[tuple(atoms)] = terms.get(tuple(atoms), 0) + factor
        return _size(self.sizes, terms)

    # -- statements ------------------------------------------------------------------------------------------------------

    def body(self, lines: list[Line]) -> Body:
        """The statements of lines, which begin at one depth."""
        out: Body = []
        at = 0
        while at < len(lines):
            line = lines[at]
            if line.depth != lines[0].depth:
                wrong(line.span, "the line is indented in another way than the one before it")
            end = at + 1
            while end < len(lines) and lines[end].depth > line.depth:
                end += 1
            inside = lines[at + 1 : end]
            stmt = self.statement(line, inside, out)
            if stmt is not None:
                out.append(stmt)
                self.spans[id(stmt)] = line.span
            at = end
        return out

    def inner(self, lines: list[Line], **names: str) -> Body:
        outer = self.types
        self.types = {**outer, **names}
        if lines and lines[0].depth // 2 > DEEPEST:
            wrong(lines[0].span, f"statements are nested more than {DEEPEST} deep")
        body = self.body(lines)
        self.types = outer
        return body

    def statement(self, line: Line, inside: list[Line], before: Body) -> ir.Stmt | None:
        if line.note is not None:
            return ir.Note(line.note)
        words = Words(line, self.names)
        first = words.next
        head = first if first in _STATEMENTS and len(words.tokens) > 1 and words.tokens[1].text not in ("=", "[") else ""
        if first in ("else", "do") and len(words.tokens) == 1:
            head = first
        words.at += bool(head)
        stmt = self._statement(head, words, inside, before)
        words.done()
        if inside and (stmt is None or not visit.bodies(stmt)) and head != "else":
            wrong(inside[0].span, "nothing can stand inside this statement", line.text)
        return stmt

    def _statement(self, head: str, words: Words, inside: list[Line], before: Body) -> ir.Stmt | None:
        match head:
            case "let" | "var":
                name = words.name()
                words.need(":")
                ty = words.type()
                words.need("=")
                value = self.whole(words, ty)
                self.types[name] = ty
                return ir.Let(name, value, head == "var")
            case "local":
                return self._local(words)
            case "reduce":
                node = words.operand()
                target = self.target(node)
                words.need("by")
                span, name = words.span, words.name("operation")
                if name not in OPERATIONS:
                    wrong(span, f"no operation is called {name}")
                words.need(":")
                return ir.Reduce(name, node.text, target.index, self.whole(words, target.type))
            case "for" | "parallel" | "vector" | "unrolled":
                name = words.name()
                words.need("in")
                low = self.build(words.expression(), INDEX)
                words.need("..")
                high = self.build(words.expression(), INDEX)
                step = words.whole() if words.take("by") else 1
                return ir.Loop(name, low, high, self.inner(inside, **{name: INDEX}), _LOOPS[head], step)
            case "if":
                return ir.If(self.build(words.expression()), self.inner(inside))
            case "else":
                if not before or not isinstance(before[-1], ir.If) or before[-1].otherwise:
                    wrong(words.tokens[0].span, "`else` has no `if` before it")
                stmt = before.pop()
                assert isinstance(stmt, ir.If)
                stmt.otherwise = self.inner(inside)  # nothing else has the node yet
                before.append(stmt)
                return None
            case "while":
                return ir.While(self.build(words.expression()), self.inner(inside))
            case "do":
                return ir.Block(self.inner(inside))
            case "call":
                name = words.name()
                words.need("(")
                args = []
                while not words.take(")"):
                    args.append(self.build(words.expression()))
                    if not words.take(","):
                        words.need(")")
                        break
                return ir.Call(name, tuple(args))
        node = words.operand()
        if node.kind == "name":
            words.need("=")
            return ir.Assign(node.text, self.whole(words, self.name(node)))
        target = self.target(node)
        words.need("=")
        return ir.Store(node.text, target.index, self.whole(words, target.type), target.aligned)

    def target(self, node: Node) -> ir.Load:
        if node.kind != "load":
            wrong(node.span, "a name or a place is missing here", "this is neither")
        return self.build(node)  # type: ignore[return-value]

    def whole(self, words: Words, ty: str) -> Expr:
        """The rest of a line as a value of a type."""
        node = words.expression()
        value = self.build(node, ty)
        if value.type != ty and not (value.type.endswith("*") and ty.endswith("*")):
            wrong(node.span, f"a value of the type {value.type}, where one of the type {ty} is asked for")
        return value

    def _local(self, words: Words) -> ir.Local:
        name = words.name()
        words.need(":")
        ty = words.type()
        words.need("[")
        shape = []
        while not words.take("]"):
            shape.append(words.whole())
            if not words.take(","):
                words.need("]")
                break
        space = ir.STACK
        if words.take("in"):
            words.need("registers")
            space = ir.REGISTERS
        zero = words.take("=")
        if zero:
            words.need("0")
        self.types[name] = f"{ty}[]"
        return ir.Local(name, ty, tuple(shape), space, zero)

    def buffer(self, words: Words) -> Buf:
        """`name: type[shape]`, perhaps with strides."""
        name = words.name("buffer")
        words.need(":")
        ty = words.type()
        shape = self.extents(words)
        return Buf(name, shape, ty, self.extents(words) if words.take("strides") else None)

    def extents(self, words: Words) -> list[int]:
        words.need("[")
        out: list[int] = []
        while not words.take("]"):
            if words.tokens[words.at : words.at + 1] and words.tokens[words.at].kind == "number":
                out.append(words.whole())
            else:
                node = words.operand()
                if node.kind not in ("size", "name"):
                    wrong(node.span, "an extent is a number or a size")
                out.append(self.extent(node.text))
            if not words.take(","):
                words.need("]")
                break
        return out


def _extent_of(value: Expr) -> int | None:
    """The extent that an index always is; None where it depends on more than extents."""
    match value:
        case ir.Extent(size):
            return size
        case ir.Linear(terms, const):
            total = const
            for atom, factor in terms:
                extent = _extent_of(atom)
                if extent is None:
                    return None
                total = total + extent * factor
            return total
        case ir.Op("mul", (one, two), ty) if ty == INDEX:
            left, right = _extent_of(one), _extent_of(two)
            return None if left is None or right is None else left * right
    return None


def _split(text: str, sign: str) -> list[str]:
    """The parts of a text between signs outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth and text.startswith(sign, at):
            parts.append(text[start:at].strip())
            start = at + len(sign)
    return [*parts, text[start:].strip()]


def parse(text: str, types: Mapping[str, str] = {}, name: str = "<loops>") -> Listing:
    """The page of a text. `types` are those of names from outside, for statements that stand in no kernel or function.

    Raises `RelayError` (R0644) with the places of a mistake, or of statements that break the language's rules.
    """
    source = SourceFile(name, text)
    lines = lines_of(source)
    out = Listing()
    notes: list[str] = []
    spans: dict[int, Span] = {}
    at = 0
    loose: list[Line] = []
    while at < len(lines):
        line, end = lines[at], at + 1
        while end < len(lines) and lines[end].depth > line.depth:
            end += 1
        inside, at = lines[at + 1 : end], end
        head = line.text.split(" ")[0] if line.note is None and line.depth == 0 else ""
        if line.note is not None and not line.depth:
            notes.append(line.note)
            loose.append(line)
            continue
        if head in ("prepare", "run") and line.text == head:
            out.calls += [line.text, *("  " * (i.depth // 2) + i.text for i in inside)]
        elif head == "function":
            out.functions.append(_function(line, inside, source, notes, spans))
        elif head in ("kernel", "pack"):
            out.parts.append(_part(line, inside, source, head, spans))
        else:
            loose += [line, *inside]
            continue
        notes, loose = [], [i for i in loose if i.note is None or out.body]
    if any(i.note is None for i in loose):
        out.body = checked(Reader(source, types, spans), loose, types, spans)
    return out


def checked(reader: Reader, lines: list[Line], names: Mapping[str, str], spans: dict[int, Span]) -> Body:
    """The statements of lines, which obey the rules."""
    body = reader.body(lines)
    reported: list[Any] = []
    check.check(body, {*names, "lo", "hi"}, lambda stmt, message: reported.append((stmt, message)))
    for stmt, message in reported:
        span = spans.get(id(stmt)) or lines[0].span
        wrong(span, message)
    return body


def _function(line: Line, inside: list[Line], source: SourceFile, notes: list[str], spans: dict[int, Span]) -> ir.Function:
    words = Words(line)
    words.need("function")
    name = words.name()
    words.need("(")
    params = []
    while not words.take(")"):
        param = words.name("parameter")
        words.need(":")
        params.append(ir.Param(param, words.type()))
        if not words.take(","):
            words.need(")")
            break
    words.done()
    types = {p.name: p.type for p in params}
    return ir.Function(name, params, checked(Reader(source, types, spans), inside, types, spans) if inside else [], " ".join(notes))


def _part(line: Line, inside: list[Line], source: SourceFile, head: str, spans: dict[int, Span]) -> Part:
    words = Words(line)
    words.need(head)
    part = Part(words.name(), [], [], [], head == "pack")
    reader = Reader(source, {}, spans)
    if part.pack:
        words.need(":")
        while True:
            part.buffers.append(("in", reader.buffer(words)))
            if not words.take(","):
                break
        words.need("->")
        part.buffers.append(("out", reader.buffer(words)))
    words.done()
    at = 0
    while not part.pack and at < len(inside):
        here = inside[at]
        if here.note is not None and not part.buffers:  # one after buffers is a statement
            part.notes.append(here.note)
        elif here.text.split(" ")[0] in BUFFERS and re.match(r"\w+ \w+:", here.text):
            words = Words(here)
            part.buffers.append((words.name(), reader.buffer(words)))
            words.done()
        else:
            break
        at += 1
    reader.types |= part.arrays
    part.body = checked(reader, inside[at:], part.arrays, spans) if inside[at:] else []
    return part
