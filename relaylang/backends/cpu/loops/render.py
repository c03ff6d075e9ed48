"""The C of the loop language.

A parallel loop becomes a loop over the units `lo..hi` that the stage's function is called with. Unrolled loops are written
out, and register arrays become one variable for each element.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.backends.cpu.dtypes import CTYPES, literal
from relaylang.backends.cpu.loops.ir import (
    INDEX,
    PARALLEL,
    REGISTERS,
    UNROLLED,
    VECTOR,
    Address,
    Assign,
    Binary,
    Block,
    Body,
    Call,
    Cast,
    Const,
    Expr,
    Function,
    If,
    Intrinsic,
    Let,
    Linear,
    Load,
    Local,
    Loop,
    Note,
    Reduce,
    Statement,
    Stmt,
    Store,
    Template,
    Var,
    constant_of,
    element_of,
    number,
    rewrite,
    sum_text,
    vector_of,
)

#: Element type -> the vector of a register's width in C, and the suffix of its helpers (`csrc/simd.h`). Another `u` behind
#: the type's name is the same at any address.
VECTORS = {
    "float32": ("r_vf", "vf"),
    "int32": ("r_vi", "vi"),
    "float64": ("r_vd", "vd"),
    "int64": ("r_vl", "vl"),
    "int16": ("r_vs", "vs"),
    "bfloat16": ("r_vbf", "vbf"),
    "int8": ("r_vq", "vq"),
    "uint8": ("r_vuq", "vuq"),
}
#: The helpers of scalars.
SCALARS = {"float32": "f32"}


def ctype(ty: str) -> str:
    """A type in C."""
    if ty == INDEX:
        return "long"
    if ty.endswith("*"):
        return f"{'const ' if ty.startswith('const ') else ''}{ctype(element_of(ty))}*"
    dtype, lanes = vector_of(ty)
    return VECTORS[dtype][0] if lanes > 1 else CTYPES[dtype]


def _suffix(ty: str) -> str:
    dtype, lanes = vector_of(ty)
    return VECTORS[dtype][1] if lanes > 1 else SCALARS[dtype]


class Names:
    """Names that C spells in another way: arrays in registers, arrays of vectors, and variables of unrolled loops."""

    __slots__ = ("registers", "unrolled", "vectors")

    def __init__(self) -> None:
        self.registers: set[str] = set()
        self.vectors: set[str] = set()
        self.unrolled: dict[str, int] = {}

    def settled(self, value: Expr) -> Expr:
        """An index with the numbers of unrolled loops in place of their variables."""
        unrolled = self.unrolled
        if not unrolled:
            return value
        match value:
            case Var(name):
                return number(unrolled[name]) if name in unrolled else value
            case Linear(terms, const):
                kept = []
                for atom, factor in terms:
                    if not isinstance(atom, Var):
                        break
                    if atom.name in unrolled:
                        const += unrolled[atom.name] * factor
                    else:
                        kept.append((atom, factor))
                else:
                    return Linear(tuple(kept), const) if len(kept) < len(terms) else value
        return rewrite(value, lambda part: number(unrolled[part.name]) if isinstance(part, Var) and part.name in unrolled else part)


_NONE = Names()


def render(value: Expr, names: Names = _NONE) -> str:
    """The C of an expression."""
    match value:
        case Var(name):
            return str(names.unrolled[name]) if name in names.unrolled else name
        case Linear():
            settled = names.settled(value)
            return sum_text(settled, lambda part: render(part, names)) if isinstance(settled, Linear) else render(settled, names)
        case Const(data, ty):
            return literal(data, ty)
        case Load(buffer, index, ty, aligned):
            return place(buffer, index, ty, aligned, names)
        case Template(text, args):
            return text.format(*[render(a, names) for a in args]) if args else text
        case Binary() if names.unrolled and (settled := names.settled(value)) is not value:
            return render(settled, names)
        case Binary("min" | "max" as op, left, right):
            a, b = _operand(left, names), _operand(right, names)
            return f"({a} {'<' if op == 'min' else '>'} {b} ? {a} : {b})"
        case Binary(op, left, right):
            return f"({_operand(left, names)} {op} {_operand(right, names)})"
        case Address(buffer, index):
            text = render(index, names)
            return buffer if text == "0" else f"{buffer} + {text}".replace("+ -", "- ")
        case Intrinsic(op, args, ty):
            variant = args[0].type if op == "sum" else ty
            return f"r_{op}_{_suffix(variant)}({', '.join(render(a, names) for a in args)})"
        case Cast(inner, ty):
            return f"(({ctype(ty)})({render(inner, names)}))"
    raise AssertionError(type(value).__name__)


def _operand(value: Expr, names: Names) -> str:
    text = render(value, names)
    return f"({text})" if isinstance(value, (Linear, Address)) and not text.isalnum() else text


def place(buffer: str, index: Expr, ty: str, aligned: bool, names: Names, const: bool = True) -> str:
    """The C of an element of a buffer, or of a vector there."""
    at = render(index, names)
    if buffer in names.registers:
        return f"{buffer}_{at}"
    if buffer in names.vectors or vector_of(ty)[1] == 1:
        return f"{buffer}[{at}]"
    text = ctype(ty) + ("" if aligned else "u")
    return f"*({'const ' if const else ''}{text}*){buffer if at == '0' else f'({buffer} + {at})'}"


class _Writer:
    """Lines of C, indented by the loops around them and the braces that texts have opened."""

    def __init__(self, indent: int) -> None:
        self.lines: list[str] = []
        self.depth = indent
        self.texts = 0
        self.names = Names()

    def put(self, line: str) -> None:
        self.lines.append("  " * (self.depth + self.texts) + line)

    def one(self, value: Expr) -> str:
        return render(value, self.names)

    def at(self, buffer: str, index: Expr, ty: str, aligned: bool = False) -> str:
        return place(buffer, index, ty, aligned, self.names, const=False)

    def inside(self, body: Body) -> None:
        self.depth += 1
        for stmt in body:
            self.write(stmt)
        self.depth -= 1

    def write(self, stmt: Stmt) -> None:
        match stmt:
            case Let(name, value, mutable):
                kind = ctype(value.type)
                const = "" if mutable or kind.endswith("*") else "const "
                self.put(f"{const}{kind} {name} = {self.one(value)};")
            case Assign(name, value):
                self.put(f"{name} = {self.one(value)};")
            case Local():
                self.local(stmt)
            case Store(buffer, index, value, aligned):
                self.put(f"{self.at(buffer, index, value.type, aligned)} = {self.one(value)};")
            case Reduce(both, buffer, index, value):
                target = self.at(buffer, index, value.type)
                self.put(f"{target} = {both.format(target, self.one(value))};")
            case Loop():
                self.loop(stmt)
            case If(condition, body, otherwise):
                test = self.one(condition)
                self.put(f"if {test if isinstance(condition, Binary) else f'({test})'} {{")
                self.inside(body)
                if otherwise:
                    self.put("} else {")
                    self.inside(otherwise)
                self.put("}")
            case Block(body):
                self.put("{")
                self.inside(body)
                self.put("}")
            case Call(name, args):
                self.put(f"{name}({', '.join(map(self.one, args))});")
            case Statement(text, args):
                self.text(text.format(*map(self.one, args)) if args else text)
            case Note(text):
                self.put(f"// {text}")

    def text(self, text: str) -> None:
        pad = "  " * self.depth
        for line in text.split("\n"):
            self.lines.append(pad + line if line and not line.startswith("#") else line)
            self.texts += line.count("{") - line.count("}")

    def local(self, stmt: Local) -> None:
        kind = ctype(stmt.type)
        if stmt.space == REGISTERS:
            self.names.registers.add(stmt.name)
            names = [f"{stmt.name}_{n}{' = {0}' if stmt.zero else ''}" for n in range(stmt.size)]
            self.put(f"{kind} {', '.join(names)};")
            return
        if vector_of(stmt.type)[1] > 1:
            self.names.vectors.add(stmt.name)
        zero = " = {0}" if stmt.zero else ""
        self.put(f"{kind} {stmt.name}[{stmt.size}] __attribute__((aligned(64))){zero};")

    def loop(self, stmt: Loop) -> None:
        if stmt.kind == UNROLLED:
            self.unrolled(stmt)
            return
        low, high, step = self.one(stmt.low), self.one(stmt.high), stmt.step
        if stmt.kind == PARALLEL:
            low, high = "lo", "hi"
        if stmt.kind == VECTOR:
            self.put("R_IVDEP")
        forward = f"{stmt.var}++" if step == 1 else f"{stmt.var} += {step}"
        self.put(f"for (long {stmt.var} = {low}; {stmt.var} < {high}; {forward}) {{")
        self.inside(stmt.body)
        self.put("}")

    def unrolled(self, stmt: Loop) -> None:
        low, high = (constant_of(self.names.settled(end)) for end in (stmt.low, stmt.high))
        assert low is not None and high is not None
        own = any(isinstance(s, (Let, Local)) for s in stmt.body)
        for value in range(low, high, stmt.step):
            self.names.unrolled[stmt.var] = value
            if own:
                self.write(Block(stmt.body))
            else:
                for inner in stmt.body:
                    self.write(inner)
        self.names.unrolled.pop(stmt.var, None)


def lines(body: Sequence[Stmt], indent: int = 1) -> list[str]:
    """The C of statements, a line an element."""
    writer = _Writer(indent)
    for stmt in body:
        writer.write(stmt)
    return writer.lines


def function(made: Function) -> str:
    """The C of a function that stages call."""
    params = [f"{ctype(p.type)} {'restrict ' if p.type.endswith('*') else ''}{p.name}" for p in made.params]
    head = f"static __attribute__((noinline)) void {made.name}({', '.join(params)}) {{"
    note = [f"// {made.doc}"] if made.doc else []
    return "\n".join([*note, head, *lines(made.body), "}"])
