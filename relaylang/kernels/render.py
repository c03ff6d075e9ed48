"""The C of the loop language.

A parallel loop becomes a loop over the units `lo..hi` that the stage's function is called with. Unrolled loops are written
out, and register arrays become one variable for each element. What the C uses is noted as it is written: names, helpers
of `csrc/`, functions and sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
    constant_of,
    element_of,
    number,
    vector_of,
)
from relaylang.kernels.ops import INFIX, OPERATIONS, SHORT, bitcast_form, cast_form, helper_of
from relaylang.kernels.sizes import sizes_in
from relaylang.kernels.visit import rewrite

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
    """A scalar type, or a pointer to one, in C."""
    if ty == INDEX:
        return "long"
    if ty.endswith("*"):
        return f"{'const ' if ty.startswith('const ') else ''}{ctype(element_of(ty))}*"
    return CTYPES[ty]


class Renderer:
    """Lines of C, indented by the loops around them, and what they use.

    `names` are buffers and variables, `helpers` functions and types of `csrc/`, `calls` other functions by their names in
    the C, `sizes` those of the kernel's sizes. Functions of the kernel have the names that `functions` gives them.

    With `extents`, the C has a name for each number of indices and loops: `extent0`, `extent1`, ... The table gets the
    numbers. So kernels that differ in them alone have the same C.
    """

    def __init__(self, indent: int = 1, functions: Mapping[str, str] | None = None, extents: dict[int, int] | None = None) -> None:
        self.extents = extents
        self.lines: list[str] = []
        self.depth = indent
        self.functions = functions or {}
        self.names: set[str] = set()
        self.helpers: set[str] = set()
        self.calls: set[str] = set()
        self.sizes: set[str] = set()
        #: Names that C spells in another way: arrays in registers, arrays of vectors, and variables of unrolled loops.
        self._registers: set[str] = set()
        self._vectors: set[str] = set()
        self._unrolled: dict[str, int] = {}

    # -- expressions -----------------------------------------------------------------------------------------------------
    def helper(self, name: str) -> str:
        """A function or a type of `csrc/`, which the C uses from now on."""
        self.helpers.add(name)
        return name

    def type(self, ty: str) -> str:
        """A type in C."""
        dtype, lanes = vector_of(ty)
        return self.helper(VECTORS[dtype][0]) if lanes > 1 else ctype(ty)

    def expr(self, value: Expr) -> str:
        """The C of an expression."""
        match value:
            case Var(name):
                return self.name(name)
            case Linear(terms, const):
                self.sizes.update(sizes_in(const, *[factor for _, factor in terms]))
                settled = self._settled(value)
                return sum_text(settled, self.expr, self.number) if isinstance(settled, Linear) else self.expr(settled)
            case Const(data, ty):
                return literal(data, ty)
            case Load(buffer, index, ty, aligned):
                return self.place(buffer, index, ty, aligned)
            case Op() if self._unrolled and value.type == INDEX and (settled := self._settled(value)) is not value:
                return self.expr(settled)
            case Op(("quotient" | "remainder"), (left, right)) if self.extents is not None:  # known divisors become products
                return self._form(value.name, value.args, value.type).format(self._operand(left), self._written(right, self._operand))
            case Op(name, args, ty):
                return self._form(name, args, ty).format(*map(self._operand, args))
            case Extent(size):
                self.sizes.update(sizes_in(size))
                return str(size)
            case Address(buffer, index):
                text = self.expr(index)
                return self.name(buffer) if text == "0" else f"{self.name(buffer)} + {text}".replace("+ -", "- ")
            case Intrinsic():
                return self._intrinsic(value)
            case Cast(inner, ty):
                return self._cast(inner, ty)
        raise AssertionError(type(value).__name__)

    def number(self, value: int) -> str:
        """A number of an index, or the name that stands for it."""
        if self.extents is None or abs(value) & (abs(value) - 1) == 0:  # a vector's lanes are a power of two
            return str(value)
        return f"extent{self.extents.setdefault(value, len(self.extents))}"

    def _written(self, value: Expr, one: Callable[[Expr], str]) -> str:
        """The C of an expression with its numbers, as `one` writes it."""
        extents, self.extents = self.extents, None
        text = one(value)
        self.extents = extents
        return text

    def _intrinsic(self, value: Intrinsic) -> str:
        match value:
            case Intrinsic("lane", (vector, lane)):
                return f"{self.expr(vector)}[{self._written(lane, self.expr)}]"
            case Intrinsic("mix", (one, two, *mixed), ty) if self.extents is not None:
                helper = self.helper(f"r_mix_{VECTORS[vector_of(ty)[0]][1]}")
                return f"{helper}({self.expr(one)}, {self.expr(two)}, {', '.join(self._written(n, self.expr) for n in mixed)})"
            case Intrinsic("splat" | "sum", (inner,), ty) if vector_of(inner.type)[1] == vector_of(ty)[1] == 1:
                return self.expr(inner)
            case Intrinsic("fma", (x, y, z), ty) if vector_of(ty)[1] == 1 and ty not in SCALARS:
                return self.expr(x * y + z)
        dtype, lanes = vector_of(value.args[0].type if value.name == "sum" else value.type)
        helper = self.helper(f"r_{value.name}_{VECTORS[dtype][1] if lanes > 1 else SCALARS[dtype]}")
        return f"{helper}({', '.join(map(self.expr, value.args))})"

    def name(self, name: str) -> str:
        """A variable or a buffer; the number of an unrolled loop's."""
        if name in self._unrolled:
            return str(self._unrolled[name])
        self.names.add(name)
        return name

    def _cast(self, inner: Expr, ty: str) -> str:
        dtype, lanes = vector_of(ty)
        if lanes == 1:
            form = cast_form(inner.type, ty)
            return self._helped(form).format(self.expr(inner)) if form else f"(({ctype(ty)})({self.expr(inner)}))"
        if isinstance(inner, Load) and vector_of(inner.type)[0] in SHORT:
            short = vector_of(inner.type)[0]
            return f"{self.helper(WIDEN[dtype][short])}({self.expr(Address(inner.buffer, inner.index, f'const {short}*'))})"
        return f"__builtin_convertvector({self.expr(inner)}, {self.type(ty)})"

    def _form(self, name: str, args: Sequence[Expr], ty: str) -> str:
        """The C of an operation with `{0}`, `{1}` ... for its operands."""
        operation, (dtype, lanes) = OPERATIONS[name], vector_of(ty)
        if name == "bitcast":
            return self._helped(bitcast_form(args[0].type, ty))
        if lanes == 1:
            return self._helped(operation.form(dtype, args[0].type if args else dtype))
        text = operation.on_vectors(dtype)
        assert text is not None, (name, ty)
        return self._helped(text)

    def _helped(self, form: str) -> str:
        """A form of the table of operations, whose helper is noted."""
        self.helpers.update(helper_of(form))
        return form

    def _operand(self, value: Expr) -> str:
        text = self.expr(value)
        return f"({text})" if isinstance(value, (Linear, Address)) and not text.isalnum() else text

    def place(self, buffer: str, index: Expr, ty: str, aligned: bool, const: bool = True) -> str:
        """The C of an element of a buffer, or of a vector there."""
        if buffer in self._registers:
            return f"{buffer}_{self._written(index, self.expr)}"
        at, name = self.expr(index), self.name(buffer)
        if buffer in self._vectors or vector_of(ty)[1] == 1:
            return f"{name}[{at}]"
        text = self.type(ty) + ("" if aligned else "u")
        return f"*({'const ' if const else ''}{text}*){name if at == '0' else f'({name} + {at})'}"

    def _settled(self, value: Expr) -> Expr:
        """An index with the numbers of unrolled loops in place of their variables."""
        unrolled = self._unrolled
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

    # -- statements ------------------------------------------------------------------------------------------------------
    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def body(self, body: Sequence[Stmt]) -> Renderer:
        """The lines of statements; returns the renderer."""
        for stmt in body:
            self.stmt(stmt)
        return self

    def inside(self, head: str, body: Sequence[Stmt]) -> None:
        """A line that opens braces, and the statements in them. The last brace is the caller's."""
        self.put(head)
        self.depth += 1
        self.body(body)
        self.depth -= 1

    def stmt(self, stmt: Stmt) -> None:
        """The lines of a statement."""
        match stmt:
            case Let(name, value, mutable):
                kind = self.type(value.type)
                const = "" if mutable or kind.endswith("*") else "const "
                self.put(f"{const}{kind} {name} = {self.expr(value)};")
            case Assign(name, value):
                self.put(f"{name} = {self.expr(value)};")
            case Local():
                self.local(stmt)
            case Store():
                self.store(stmt)
            case Reduce(name, buffer, index, value):
                target = self.place(buffer, index, value.type, False, const=False)
                self.put(f"{target} = {self._form(name, (value,), value.type).format(target, self.expr(value))};")
            case Loop():
                self.loop(stmt)
            case If(condition, body, otherwise):
                test = self.expr(condition)
                self.inside(f"if {test if isinstance(condition, Op) and condition.name in INFIX else f'({test})'} {{", body)
                if otherwise:
                    self.inside("} else {", otherwise)
                self.put("}")
            case While(condition, body):
                self.inside(f"while ({self.expr(condition)}) {{", body)
                self.put("}")
            case Block(body):
                self.inside("{", body)
                self.put("}")
            case Call(name, args):
                function = self.functions.get(name, name)
                (self.helpers if function == name else self.calls).add(function)
                # Some helpers are macros that want numbers.
                texts = map(self.expr, args) if function != name else (self._written(arg, self.expr) for arg in args)
                self.put(f"{function}({', '.join(texts)});")
            case Note(text):
                self.put(f"// {text}")

    def store(self, stmt: Store) -> None:
        """Write an element or a vector; a helper writes vectors of short integers, and the first lanes of one."""
        dtype, lanes = vector_of(stmt.value.type)
        match stmt.value:
            case Op("saturate", args) if lanes > 1:
                helper = f"r_saturated_{'pair_' if len(args) == 2 else ''}{SHORT[dtype]}"
            case Cast(inner) if lanes > 1 and dtype in SHORT:
                helper, args = f"r_narrow_{SHORT[dtype]}", (inner,)
            case Intrinsic("low", (vector,)):
                self.put(f"memcpy({self.expr(Address(stmt.buffer, stmt.index, f'{dtype}*'))}, &{self.expr(vector)}, {4 * lanes});")
                return
            case value:
                target = self.place(stmt.buffer, stmt.index, value.type, stmt.aligned, const=False)
                self.put(f"{target} = {self.expr(value)};")
                return
        to = Address(stmt.buffer, stmt.index, f"{dtype}*")
        self.put(f"{self.helper(helper)}({', '.join(map(self.expr, (to, *args)))});")

    def local(self, stmt: Local) -> None:
        """A local array."""
        kind = self.type(stmt.type)
        if stmt.space == REGISTERS:
            self._registers.add(stmt.name)
            names = [f"{stmt.name}_{n}{' = {0}' if stmt.zero else ''}" for n in range(stmt.size)]
            self.put(f"{kind} {', '.join(names)};")
            return
        if vector_of(stmt.type)[1] > 1:
            self._vectors.add(stmt.name)
        zero = " = {0}" if stmt.zero else ""
        self.put(f"{kind} {stmt.name}[{stmt.size}] __attribute__((aligned(64))){zero};")

    def loop(self, stmt: Loop) -> None:
        """A loop; an unrolled one is written out."""
        if stmt.kind == UNROLLED:
            self._write_out(stmt)
            return
        if stmt.kind == PARALLEL:
            self.names |= {"lo", "hi"}
        low, high = ("lo", "hi") if stmt.kind == PARALLEL else (self.expr(stmt.low), self.expr(stmt.high))
        if stmt.kind == VECTOR:
            self.put("R_IVDEP")
        forward = f"{stmt.var}++" if stmt.step == 1 else f"{stmt.var} += {stmt.step}"
        self.inside(f"for (long {stmt.var} = {low}; {stmt.var} < {high}; {forward}) {{", stmt.body)
        self.put("}")

    def _write_out(self, stmt: Loop) -> None:
        low, high = (constant_of(self._settled(end)) for end in (stmt.low, stmt.high))
        assert low is not None and high is not None
        own = any(isinstance(s, (Let, Local)) for s in stmt.body)
        for value in range(low, high, stmt.step):
            self._unrolled[stmt.var] = value
            self.body([Block(stmt.body)] if own else stmt.body)
        self._unrolled.pop(stmt.var, None)

    def signature(self, made: Function) -> str:
        """The name of a function that stages call, and its parameters."""
        params = [f"{ctype(p.type)} {'restrict ' if p.type.endswith('*') else ''}{p.name}" for p in made.params]
        return f"void {self.functions.get(made.name, made.name)}({', '.join(params)})"

    def function(self, made: Function) -> Renderer:
        """The C of a function that stages call; returns the renderer."""
        if made.doc:
            self.put(f"// {made.doc}")
        self.inside(f"R_LOCAL __attribute__((noinline)) {self.signature(made)} {{", made.body)
        self.put("}")
        return self


def render(value: Expr) -> str:
    """The C of an expression."""
    return Renderer().expr(value)


def lines(body: Sequence[Stmt], indent: int = 1) -> list[str]:
    """The C of statements, a line an element."""
    return Renderer(indent).body(body).lines


def function(made: Function) -> str:
    """The C of a function that stages call."""
    return "\n".join(Renderer(0).function(made).lines)


def sum_text(value: Linear, one: Callable[[Expr], str], digits: Callable[[int], str] = str) -> str:
    """The text of a sum; `one` gives that of its operands, `digits` that of its numbers."""
    out = [f"{'-' if c < 0 else ''}{one(a)}{f'*{digits(abs(c))}' if abs(c) != 1 else ''}" for a, c in value.terms]
    if out and value.const > 0 > value.terms[0][1]:
        out.insert(0, digits(value.const))
    elif value.const != 0 or not out:
        out.append(digits(value.const))
    return " + ".join(out).replace("+ -", "- ")
