"""The C of the loop language.

A parallel loop becomes a loop over the units `lo..hi` that the stage's function is called with. Unrolled loops are written
out, and register arrays become one variable for each element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.kernels.dtypes import CTYPES, literal
from relaylang.kernels.ir import (
    INDEX,
    PARALLEL,
    REGISTERS,
    UNROLLED,
    VECTOR,
    Address,
    Assign,
    Block,
    Body,
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
    Raw,
    Reduce,
    Statement,
    Stmt,
    Store,
    Var,
    While,
    constant_of,
    element_of,
    number,
    rewrite,
    sum_text,
    vector_of,
)
from relaylang.kernels.ops import INFIX, OPERATIONS, SHORT, bitcast_form, cast_form

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
#: A type -> short integers -> the helper that reads a vector of that type from such integers at an address.
WIDEN: Mapping[str, Mapping[str, str]] = {
    "int32": {dtype: f"r_widen_{short}" for dtype, short in SHORT.items()},
    "int64": {dtype: f"r_widen_long_{short}" for dtype, short in SHORT.items()},
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
        case Op() if names.unrolled and value.type == INDEX and (settled := names.settled(value)) is not value:
            return render(settled, names)
        case Op(name, args, ty):
            return _form(name, args, ty).format(*[_operand(a, names) for a in args])
        case Extent(size):
            return str(size)
        case Raw(text, args):
            return text.format(*[render(a, names) for a in args]) if args else text
        case Address(buffer, index):
            text = render(index, names)
            return buffer if text == "0" else f"{buffer} + {text}".replace("+ -", "- ")
        case Intrinsic("lane", (vector, lane)):
            return f"{render(vector, names)}[{render(lane, names)}]"
        case Intrinsic(name, args, ty):
            variant = args[0].type if name == "sum" else ty
            return f"r_{name}_{_suffix(variant)}({', '.join(render(a, names) for a in args)})"
        case Cast(Load(buffer, index, source), ty) if vector_of(source)[1] > 1 and vector_of(source)[0] in SHORT:
            short = vector_of(source)[0]
            return f"{WIDEN[vector_of(ty)[0]][short]}({render(Address(buffer, index, f'const {short}*'), names)})"
        case Cast(inner, ty) if vector_of(ty)[1] > 1:
            return f"__builtin_convertvector({render(inner, names)}, {ctype(ty)})"
        case Cast(inner, ty):
            text = render(inner, names)
            return form.format(text) if (form := cast_form(inner.type, ty)) else f"(({ctype(ty)})({text}))"
    raise AssertionError(type(value).__name__)


def _form(name: str, args: Sequence[Expr], ty: str) -> str:
    """The C of an operation with `{0}`, `{1}` ... for its operands."""
    operation, (dtype, lanes) = OPERATIONS[name], vector_of(ty)
    if name == "bitcast":
        return bitcast_form(args[0].type, ty)
    if lanes == 1:
        return operation.form(dtype, args[0].type if args else dtype)
    text = operation.on_vectors(dtype)
    assert text is not None, (name, ty)
    return text


def _operand(value: Expr, names: Names) -> str:
    text = render(value, names)
    return f"({text})" if isinstance(value, (Linear, Address)) and not text.isalnum() else text


def _written(value: Expr) -> tuple[str, tuple[Expr, ...]] | None:
    """The helper that writes a vector of short integers, and its operands; None for values that are stored as they are."""
    dtype, lanes = vector_of(value.type)
    if lanes == 1 or dtype not in SHORT:
        return None
    match value:
        case Op("saturate", args):
            return f"r_saturated_{'pair_' if len(args) == 2 else ''}{SHORT[dtype]}", args
        case Cast(inner):
            return f"r_narrow_{SHORT[dtype]}", (inner,)
    return None


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
            case Store(buffer, index, value) if (helper := _written(value)) is not None:
                to = Address(buffer, index, f"{vector_of(value.type)[0]}*")
                self.put(f"{helper[0]}({', '.join(map(self.one, (to, *helper[1])))});")
            case Store(buffer, index, Intrinsic("low", (vector,), ty)):
                to = self.one(Address(buffer, index, f"{vector_of(ty)[0]}*"))
                self.put(f"memcpy({to}, &{self.one(vector)}, {4 * vector_of(ty)[1]});")
            case Store(buffer, index, value, aligned):
                self.put(f"{self.at(buffer, index, value.type, aligned)} = {self.one(value)};")
            case Reduce(name, buffer, index, value):
                target = self.at(buffer, index, value.type)
                self.put(f"{target} = {_form(name, (value,), value.type).format(target, self.one(value))};")
            case Loop():
                self.loop(stmt)
            case If(condition, body, otherwise):
                test = self.one(condition)
                self.put(f"if {test if isinstance(condition, Op) and condition.name in INFIX else f'({test})'} {{")
                self.inside(body)
                if otherwise:
                    self.put("} else {")
                    self.inside(otherwise)
                self.put("}")
            case While(condition, body):
                self.put(f"while ({self.one(condition)}) {{")
                self.inside(body)
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
