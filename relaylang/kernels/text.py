"""The loop language as a page to read: `relay compile --emit loops`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from relaylang.kernels.ir import (
    REGISTERS,
    SERIAL,
    Address,
    Assign,
    Block,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    Function,
    If,
    Intrinsic,
    Let,
    Linear,
    Load,
    Local,
    Loop,
    Note,
    Op,
    Reduce,
    Stmt,
    Store,
    Var,
    While,
    sum_text,
    vector_of,
)
from relaylang.kernels.ops import INFIX


def show(value: Expr, vectors: Collection[str] = ()) -> str:
    """An expression as text. `vectors` are the arrays whose elements are vectors."""

    def one(value: Expr) -> str:
        return show(value, vectors)

    def operand(value: Expr) -> str:
        return f"({one(value)})" if isinstance(value, Linear) and value.terms else one(value)

    match value:
        case Var(name):
            return name
        case Linear():
            return sum_text(value, one)
        case Const(data, ty):
            return f"{data:g}" if isinstance(data, float) and float(f"{data:g}") == data else f"{data}"
        case Load(buffer, index, ty):
            return f"{buffer}[{_place(buffer, one(index), ty, vectors)}]"
        case Op("select", (test, yes, no)):
            return f"({operand(test)} ? {operand(yes)} : {operand(no)})"
        case Op(name, (left, right)) if name in INFIX:
            return f"({operand(left)} {INFIX[name]} {operand(right)})"
        case Op(name, args):
            return f"{name}({', '.join(_bare(one(a)) for a in args)})"
        case Extent(size):
            return str(size)
        case Address(buffer, index):
            return f"&{buffer}[{one(index)}]"
        case Intrinsic(name, args):
            return f"{name}({', '.join(_bare(one(a)) for a in args)})"
        case Cast(inner, ty):
            return f"{ty}({_bare(one(inner))})"
    raise AssertionError(type(value).__name__)


def _place(buffer: str, index: str, ty: str, vectors: Collection[str]) -> str:
    lanes = vector_of(ty)[1]
    return _bare(index) + (f" : {lanes}" if lanes > 1 and buffer not in vectors else "")


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
    def __init__(self, indent: int, functions: Mapping[str, str]) -> None:
        self.functions = functions
        self.lines: list[str] = []
        self.depth = indent
        self.vectors: set[str] = set()

    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def one(self, value: Expr) -> str:
        return show(value, self.vectors)

    def at(self, buffer: str, index: Expr, value: Expr) -> str:
        return f"{buffer}[{_place(buffer, self.one(index), value.type, self.vectors)}]"

    def inside(self, body: Sequence[Stmt]) -> None:
        self.depth += 1
        for stmt in body:
            self.write(stmt)
        self.depth -= 1

    def write(self, stmt: Stmt) -> None:
        match stmt:
            case Let(name, value, mutable):
                self.put(f"{'var' if mutable else 'let'} {name}: {value.type} = {_bare(self.one(value))}")
            case Assign(name, value):
                self.put(f"{name} = {_bare(self.one(value))}")
            case Local(name, ty, shape, space, zero):
                if vector_of(ty)[1] > 1:
                    self.vectors.add(name)
                where = " in registers" if space == REGISTERS else ""
                self.put(f"local {name}: {ty}[{', '.join(map(str, shape))}]{where}{' = 0' if zero else ''}")
            case Store(buffer, index, value):
                self.put(f"{self.at(buffer, index, value)} = {_bare(self.one(value))}")
            case Reduce(name, buffer, index, value):
                self.put(f"reduce {self.at(buffer, index, value)} by {name}: {_bare(self.one(value))}")
            case Loop(var, low, high, body, kind, step):
                by = f" by {step}" if step != 1 else ""
                kind = "for" if kind == SERIAL else kind
                self.put(f"{kind} {var} in {_bare(self.one(low))} .. {_bare(self.one(high))}{by}")
                self.inside(body)
            case If(condition, body, otherwise):
                self.put(f"if {_bare(self.one(condition))}")
                self.inside(body)
                if otherwise:
                    self.put("else")
                    self.inside(otherwise)
            case While(condition, body):
                self.put(f"while {_bare(self.one(condition))}")
                self.inside(body)
            case Block(body):
                self.put("do")
                self.inside(body)
            case Call(name, args):
                self.put(f"call {self.functions.get(name, name)}({', '.join(_bare(self.one(a)) for a in args)})")
            case Note(text):
                self.put(f"# {text}")


def lines(body: Sequence[Stmt], indent: int = 0, functions: Mapping[str, str] | None = None) -> list[str]:
    """Statements as lines of text; `functions` have other names where they are called."""
    page = _Page(indent, functions or {})
    for stmt in body:
        page.write(stmt)
    return page.lines


def function(made: Function, functions: Mapping[str, str] | None = None) -> list[str]:
    """A function as lines of text."""
    params = ", ".join(f"{p.name}: {p.type}" for p in made.params)
    note = [f"# {made.doc}"] if made.doc else []
    name = (functions or {}).get(made.name, made.name)
    return [*note, f"function {name}({params})", *lines(made.body, 1, functions)]
