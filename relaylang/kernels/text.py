"""The loop language as a page to read: `relay compile --emit loops`. `relaylang.kernels.reader` reads it back.

A place in memory is `buffer[index]`, of the type of the buffer's elements. `buffer[index : 8]` are 8 of them, and
`buffer[index : int32]` is of another type. `float32(x)` is x as a float32; `float32(2)` is the number of that type.
`null(float32*)` is a pointer to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.kernels import ir
from relaylang.kernels.nest import Buf
from relaylang.kernels.operands import ON_INDICES, result_of, wanted
from relaylang.kernels.ops import INFIX
from relaylang.kernels.render import sum_text
from relaylang.kernels.sizes import Size

#: The kinds of a kernel's buffers, in the order of the page.
BUFFERS = ("in", "packed", "out", "work", "table")


@dataclass
class Part:
    """A kernel's stage or a packing on a page: its buffers by kind, its facts, and its statements."""

    name: str
    buffers: list[tuple[str, Buf]]
    body: ir.Body
    notes: list[str] = field(default_factory=list)
    pack: bool = False

    @property
    def arrays(self) -> dict[str, str]:
        """The pointer type of each buffer."""
        return {b.name: f"{'' if kind in ('out', 'work') else 'const '}{b.dtype}*" for kind, b in self.buffers}


def number(data: Any) -> str:
    """A number as a text, from which it can be read again."""
    if isinstance(data, (bool, np.bool_)):
        return str(int(data))
    if isinstance(data, (int, np.integer)):
        return str(data)
    value = float(data)
    if value != value:
        return "nan"
    short = f"{value:g}"
    return short if float(short) == value else repr(float(str(data)))


def extent_text(size: int) -> str:
    """A size in an expression; a lone one by its name."""
    text = str(size)
    return text if text.isidentifier() else f"size{text}" if _bare(text) != text else f"size({text})"


class _Expressions:
    """The texts of expressions. `types` has those of names: arrays by their pointers or `elements[]`."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self.types = types

    def known(self, value: ir.Expr) -> str | None:
        """The type of an expression where its text says it."""
        match value:
            case ir.Const() | ir.Address():
                return None
            case ir.Linear(terms):
                return ir.INDEX if terms and any(a.type == ir.INDEX for a, _ in terms) else None
            case ir.Op(name, args) | ir.Intrinsic(name, args):
                intrinsic = isinstance(value, ir.Intrinsic)
                return None if result_of(name, [self.known(a) for a in args], intrinsic) is None else value.type
        return value.type

    def show(self, value: ir.Expr, place: str | None = None) -> str:
        """An expression where a type is asked for; None where none is."""
        match value:
            case ir.Var(name):
                return name
            case ir.Linear(terms):
                if place in (ir.INDEX, None) if not terms else place == ir.INDEX or self.known(value) == ir.INDEX:
                    return sum_text(value, self._atom)
                return f"add<index>({sum_text(value, self._atom)}, 0)" if terms else f"index({value.const})"
            case ir.Const(data, ty):
                return number(data) if ty == place else f"{ty}({number(data)})"
            case ir.Load(buffer, index, ty, aligned):
                return self.place(buffer, index, ty, aligned)
            case ir.Op(name, args, ty):
                return self._operation(name, args, ty, place, False)
            case ir.Intrinsic(name, args, ty):
                return self._operation(name, args, ty, place, True)
            case ir.Extent(size):
                return extent_text(size)
            case ir.Address(buffer, index, ty):
                usual = f"const {ir.element_of(self.types[buffer]).removesuffix('[]')}*" if buffer in self.types else ty
                return f"&{buffer}[{_bare(self.show(index, ir.INDEX))}{'' if ty in (place, usual) else f' : {ty}'}]"
            case ir.Cast(ir.Linear(), ty) if ty.endswith("*"):
                return f"null({ty})"
            case ir.Cast(inner, ty):
                # A number in brackets is one of that type.
                return f"{ty}({_bare(self.show(inner, '' if isinstance(inner, ir.Linear) and not inner.terms else None))})"
        raise AssertionError(type(value).__name__)

    def _atom(self, value: ir.Expr) -> str:
        text = self.show(value, ir.INDEX)
        return f"({text})" if isinstance(value, (ir.Linear, ir.Const)) else text

    def _operation(self, name: str, args: Sequence[ir.Expr], ty: str, place: str | None, intrinsic: bool) -> str:
        types = [self.known(a) for a in args]
        natural = result_of(name, types, intrinsic)
        result = natural or (place if place == ty else None)
        asked = wanted(name, types, result, intrinsic)
        if any(t is None and not self._fits(a, w) for a, t, w in zip(args, types, asked)):
            # Where one operand has to say its type, all do.
            asked = [w if t is not None else "" for t, w in zip(types, asked)]
            result = result_of(name, [a.type for a in args], intrinsic) or result
        if name in ON_INDICES and ty != ir.INDEX and place == ir.INDEX:
            result = None
        explicit = result != ty
        if explicit:
            inside = ty == ir.INDEX and name in ON_INDICES
            asked = [ir.INDEX if inside else "" if t is None else None for t in types]
        texts = [self.show(a, w) for a, w in zip(args, asked)]
        if not explicit and name == "select":
            test, yes, no = map(self._operand, args, texts)
            return f"({test} ? {yes} : {no})"
        if not explicit and name in INFIX and len(args) == 2:
            return f"({self._operand(args[0], texts[0])} {INFIX[name]} {self._operand(args[1], texts[1])})"
        return f"{name}{f'<{ty}>' if explicit else ''}({', '.join(map(_bare, texts))})"

    def _fits(self, value: ir.Expr, place: str | None) -> bool:
        """Whether an expression without a stated type has the wanted type."""
        return value.type == place or (place is None and isinstance(value, ir.Linear))

    def _operand(self, value: ir.Expr, text: str) -> str:
        return f"({text})" if isinstance(value, ir.Linear) and value.terms else text

    def place(self, buffer: str, index: ir.Expr, ty: str, aligned: bool = False) -> str:
        """An element of an array, or several of them."""
        dtype, lanes = ir.vector_of(ty)
        held = self.types.get(buffer, dtype)
        element = held.removesuffix("[]") if held.endswith("[]") else ir.element_of(held)
        kind = "" if element == ty else str(lanes) if element == dtype and lanes > 1 else ty
        if aligned:
            kind = f"{kind or ty} aligned"
        return f"{buffer}[{_bare(self.show(index, ir.INDEX))}{f' : {kind}' if kind else ''}]"


def show(value: ir.Expr, types: Mapping[str, str] = {}) -> str:
    """An expression as text. `types` are those of names; see `lines`."""
    return _Expressions(types).show(value)


def _bare(text: str) -> str:
    """A text without the brackets around all of it."""
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for n, letter in enumerate(text):
            depth += (letter == "(") - (letter == ")")
            if not depth and n < len(text) - 1:
                return text
        text = text[1:-1]
    return text


class _Page:
    def __init__(self, indent: int, types: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self.depth = indent
        self.types = dict(types)
        self.expressions = _Expressions(self.types)

    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def one(self, value: ir.Expr, place: str | None = None) -> str:
        return _bare(self.expressions.show(value, place))

    def inside(self, body: Sequence[ir.Stmt]) -> None:
        self.depth += 1
        outer = dict(self.types)
        for stmt in body:
            self.write(stmt)
        self.types.clear()
        self.types.update(outer)
        self.depth -= 1

    def write(self, stmt: ir.Stmt) -> None:
        at = self.expressions.place
        match stmt:
            case ir.Let(name, value, mutable):
                self.put(f"{'var' if mutable else 'let'} {name}: {value.type} = {self.one(value, value.type)}")
                self.types[name] = value.type
            case ir.Assign(name, value):
                self.put(f"{name} = {self.one(value, self.types.get(name, value.type))}")
            case ir.Local(name, ty, shape, space, zero):
                self.types[name] = f"{ty}[]"
                where = " in registers" if space == ir.REGISTERS else ""
                self.put(f"local {name}: {ty}[{', '.join(map(str, shape))}]{where}{' = 0' if zero else ''}")
            case ir.Store(buffer, index, value, aligned):
                self.put(f"{at(buffer, index, value.type, aligned)} = {self.one(value, value.type)}")
            case ir.Reduce(name, buffer, index, value):
                self.put(f"reduce {at(buffer, index, value.type)} by {name}: {self.one(value, value.type)}")
            case ir.Loop(var, low, high, body, kind, step):
                by = f" by {step}" if step != 1 else ""
                kind = "for" if kind == ir.SERIAL else kind
                self.put(f"{kind} {var} in {self.one(low, ir.INDEX)} .. {self.one(high, ir.INDEX)}{by}")
                self.inside(body)
            case ir.If(condition, body, otherwise):
                self.put(f"if {self.one(condition)}")
                self.inside(body)
                if otherwise:
                    self.put("else")
                    self.inside(otherwise)
            case ir.While(condition, body):
                self.put(f"while {self.one(condition)}")
                self.inside(body)
            case ir.Block(body):
                self.put("do")
                self.inside(body)
            case ir.Call(name, args):
                self.put(f"call {name}({', '.join(self.one(a) for a in args)})")
            case ir.Note(text):
                self.put(f"# {text}".rstrip())


def lines(body: Sequence[ir.Stmt], indent: int = 0, types: Mapping[str, str] = {}) -> list[str]:
    """Statements as lines of text. `types` are those of names from outside; of a buffer, its pointer type.

    Places in buffers of which nothing is known are taken to be of the type of their elements.
    """
    page = _Page(indent, types)
    for stmt in body:
        page.write(stmt)
    return page.lines


def function(made: ir.Function, functions: Mapping[str, str] | None = None) -> list[str]:
    """A function as lines of text."""
    params = ", ".join(f"{p.name}: {p.type}" for p in made.params)
    note = [f"# {made.doc}"] if made.doc else []
    return [*note, f"function {made.name}({params})", *lines(made.body, 1, {p.name: p.type for p in made.params})]


def buffer(buf: Buf) -> str:
    """A buffer's name, type and shape, and its strides where it has gaps or another order."""
    shown = f"{buf.name}: {buf.dtype}[{_list(buf.shape)}]"
    return shown if buf.contiguous else f"{shown} strides [{_list(buf.strides)}]"


def _list(extents: Iterable[int]) -> str:
    return ", ".join(extent_text(e) if isinstance(e, Size) else str(e) for e in extents)


def kernel(part: Part) -> list[str]:
    """A kernel's stage or a packing as lines of text."""
    body = lines(part.body, 1, part.arrays)
    if part.pack:
        inputs, outputs = ([buffer(b) for kind, b in part.buffers if (kind == "out") is out] for out in (False, True))
        return [f"pack {part.name}: {', '.join(inputs)} -> {outputs[0]}", *body]
    notes = [f"  # {note}".rstrip() for note in part.notes]
    return [f"kernel {part.name}", *notes, *[f"  {kind} {buffer(b)}" for kind, b in part.buffers], *body]
