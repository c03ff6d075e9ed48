"""Kernels as C for devices: what OpenCL C and CUDA C++ have in common.

A stage is a kernel of the language, and each unit of its parallel loop a work item. Stages without such a loop have one.
Kernels are lowered for a machine without vectors. `opencl` and `cuda` have the words of each language.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import numpy as np

from relaylang.kernels import ir
from relaylang.kernels.dtypes import CTYPES, is_float, literal
from relaylang.kernels.nest import Buf
from relaylang.kernels.ops import cast_form
from relaylang.kernels.render import Renderer, ctype
from relaylang.kernels.sizes import Size

#: Operation -> its C of floats of either precision, where that is not the C of `ops`: both languages choose by the type.
FLOATS: Mapping[str, str] = {
    "mod": "fmod({0}, {1})", "floor_div": "floor({0} / {1})", "floor_mod": "({0} - floor({0} / {1}) * {1})",
    "pow": "pow({0}, {1})", "abs": "fabs({0})", "fmax": "fmax({0}, {1})", "fmin": "fmin({0}, {1})",
    "rsqrt": "(1 / sqrt({0}))", "sigmoid": "(1 / (1 + exp(-{0})))", "round_even": "rint({0})",
    "near_quotient": "({0} / {1})", "libm_log": "log({0})",
    **{name: f"{name}({{0}})" for name in (
        "exp", "log", "log2", "log10", "sqrt", "tanh", "atanh", "erf", "floor", "ceil", "trunc", "round", "sin", "cos", "tan",
        "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh")},
}  # fmt: skip
#: The same of signed integers, whose overflow wraps here and is undefined in both languages; TYPE is their type.
WRAPPING: Mapping[str, str] = {
    **{name: f"((TYPE_t)((uTYPE_t){{0}} {sign} (uTYPE_t){{1}}))" for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"))},
    "neg": "((TYPE_t)(0 - (uTYPE_t){0}))",
    "abs": "({0} < 0 ? (TYPE_t)(0 - (uTYPE_t){0}) : {0})",
    "shl": "((TYPE_t)((uTYPE_t){0} << {1}))",
}
#: Operations that a device does not have: they ask the system, or keep something for each thread.
MACHINE = frozenset({"amx", "alternate", "fixed_lanes"})
#: Functions of `csrc/device.h` that have a name for each type.
_TYPED = re.compile(r"\b(r_div|r_mod|r_floor_div|r_floor_mod|r_left_shift|r_right_shift|r_pow_int)\(")


class Unrendered(Exception):
    """A kernel has what only some processor can do; the text says what."""


class Kernel(Protocol):
    """A kernel: buffers, and stages that run one after the other."""

    @property
    def params(self) -> Sequence[Buf]: ...
    @property
    def outs(self) -> Sequence[Buf]: ...
    @property
    def work(self) -> Sequence[Buf]: ...
    @property
    def fault(self) -> Buf: ...
    @property
    def packs(self) -> Sequence[Any]: ...
    @property
    def stages(self) -> Sequence[Any]: ...
    @property
    def functions(self) -> Sequence[ir.Function]: ...
    @property
    def constants(self) -> Sequence[tuple[Buf, np.ndarray]]: ...
    @property
    def in_place(self) -> set[int]: ...


@dataclass(frozen=True)
class Launch:
    """The run of a stage: the function's name, the work items, and its arguments.

    Arguments are buffers of the kernel by their names (`arg0`, `packed0`, `out0`, `tmp0`), then sizes (`size0`), each an
    int64. There may be more work items than `units`.
    """

    name: str
    units: int | Size
    buffers: tuple[str, ...]
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class Language:
    """The words of a language: its heads of functions, address spaces, and the type of indices.

    `bits` has the C of a value's bits as another type, by both types. `head` is a file of `csrc/`.
    """

    head: str
    kernel: str
    function: str
    shared: str
    table: str
    table_space: str
    restrict: str
    index: str
    number: str
    bits: Mapping[tuple[str, str], str]


class DeviceRenderer(Renderer):
    """C for a device. `spaces` has the address space of each pointer, for languages that have several."""

    def __init__(self, module: Module, functions: Mapping[str, ir.Function], spaces: Mapping[str, str], indent: int = 1) -> None:
        super().__init__(indent)
        self.module = module
        self.language = module.language
        self.own = functions
        self.spaces = dict(spaces)

    def type(self, ty: str) -> str:
        if ir.vector_of(ty)[1] > 1:
            raise Unrendered(f"vectors ({ty})")
        if ty == ir.INDEX:
            return self.language.index
        const = "const " if ty.startswith("const ") else ""
        return f"{const}{self.type(ir.element_of(ty))}*" if ty.endswith("*") else ctype(ty)

    def pointer(self, ty: str, space: str) -> str:
        """The type of a pointer into an address space."""
        return f"{space} {self.type(ty)}".lstrip()

    def space(self, value: ir.Expr) -> str:
        """The address space that a pointer leads to."""
        match value:
            case ir.Address(name, _) | ir.Var(name):
                return self.spaces[name]
            case ir.Op("select", (_, yes, _)):
                return self.space(yes)
        return self.language.shared

    def expr(self, value: ir.Expr) -> str:
        match value:
            case ir.Const(data, ty):
                return constant(data, ty)
            case ir.Intrinsic("fma", (x, y, z)) if ir.vector_of(value.type)[1] == 1:
                return super().expr(x * y + z)
            case ir.Intrinsic(name) if name not in ("splat", "sum"):
                raise Unrendered(f"the intrinsic {name}")
        return super().expr(value)

    def _cast(self, inner: ir.Expr, ty: str) -> str:
        if ty.endswith("*"):
            return f"(({self.pointer(ty, self.language.shared)})({self.expr(inner)}))"
        form = cast_form(inner.type, ty)
        return typed(form, inner.type).format(self.expr(inner)) if form else f"(({self.type(ty)})({self.expr(inner)}))"

    def _form(self, name: str, args: Sequence[ir.Expr], ty: str) -> str:
        operand = args[0].type if args else ty
        if name in MACHINE:
            raise Unrendered(f"the operation {name}")
        if name == "bitcast":
            bits = self.language.bits
            return (bits.get((operand, ty)) or bits.get((operand, "")) or bits["", ""]).replace("{type}", ctype(ty))
        table = FLOATS if is_float(operand) else WRAPPING if operand in ("int32", "int64") else {}
        form = table.get(name, "").replace("TYPE", operand)
        return form or typed(super()._form(name, args, ty), operand)

    def inside(self, head: str, body: Sequence[ir.Stmt]) -> None:
        outer = dict(self.spaces)
        super().inside(head, body)
        self.spaces = outer

    def stmt(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Let(name, value) if value.type.endswith("*"):
                text = self.expr(value)
                self.spaces[name] = self.space(value)
                self.put(f"{self.pointer(value.type, self.spaces[name])} {name} = {text};")
            case ir.Call("__builtin_prefetch"):
                pass
            case ir.Call("memcpy", (to, source, size)):
                index = self.language.index
                count = f"({self.expr(size)}) / ({index})sizeof({self.type(ir.element_of(to.type))})"
                self.put(f"for ({index} c_ = 0; c_ < {count}; c_++) ({self.expr(to)})[c_] = ({self.expr(source)})[c_];")
            case ir.Call(name, args):
                if name not in self.own:
                    raise Unrendered(f"the function {name}")
                spaces = [self.space(a) if a.type.endswith("*") else "" for a in args]
                function = self.module.function(self.own[name], self.own, spaces)
                self.put(f"{function}({', '.join(map(self.expr, args))});")
            case _:
                super().stmt(stmt)

    def local(self, stmt: ir.Local) -> None:
        if stmt.space == ir.REGISTERS:
            super().local(stmt)
            return
        self.spaces[stmt.name] = ""
        self.put(f"{self.type(stmt.type)} {stmt.name}[{stmt.size}]{' = {0}' if stmt.zero else ''};")

    def loop(self, stmt: ir.Loop) -> None:
        if stmt.kind == ir.PARALLEL:
            self.inside("{", [ir.Let(stmt.var, ir.Var("unit_")), *stmt.body])
            self.put("}")
        elif stmt.kind == ir.UNROLLED:
            super().loop(stmt)
        else:
            forward = f"{stmt.var}++" if stmt.step == 1 else f"{stmt.var} += {stmt.step}"
            low, high = self.expr(stmt.low), self.expr(stmt.high)
            self.inside(f"for ({self.language.index} {stmt.var} = {low}; {stmt.var} < {high}; {forward}) {{", stmt.body)
            self.put("}")


def constant(value: Any, dtype: str) -> str:
    """A number as a constant of either language."""
    if is_float(dtype) and dtype != "float16" and not np.isfinite(float(value)):
        text = "R_NAN" if value != value else "R_INF" if value > 0 else "(-R_INF)"
        return f"((double){text})" if dtype == "float64" else text
    return literal(float(np.float32(value)) if dtype == "float32" else value, dtype)


def typed(form: str, operand: str) -> str:
    """A form whose function has the operand's type in its name."""
    dtype = {"bool": "uint8", ir.INDEX: "int64", "float16": "uint16", "bfloat16": "uint16"}.get(operand, operand)
    return _TYPED.sub(rf"\1_{dtype}(", form)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


@cache
def _csrc(name: str) -> str:
    return files(f"{__package__}.csrc").joinpath(name).read_text(encoding="utf-8")


class Module:
    """Kernels of one file. Equal functions and tables stand in it once."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.pieces: dict[str, str] = {}
        self._functions: dict[tuple[int, tuple[str, ...]], tuple[ir.Function, str]] = {}

    def _piece(self, kind: str, text: str, notes: Sequence[str] = ()) -> str:
        """The name of a piece; the first NAME in its text stands for it. Its notes are comments."""
        name = f"{kind}_{_digest(text)}"
        self.pieces.setdefault(name, "\n".join([*(f"// {note}" for note in notes), text.replace("NAME", name, 1)]))
        return name

    def function(self, function: ir.Function, others: Mapping[str, ir.Function], spaces: Sequence[str]) -> str:
        """The name of a function, for pointers into these address spaces."""
        cached = self._functions.get((id(function), tuple(spaces)))
        if cached is None:
            code = DeviceRenderer(self, others, {p.name: s for p, s in zip(function.params, spaces)}, 1)
            alone = self.language.restrict
            params = [
                f"{code.pointer(p.type, space)} {alone + ' ' if p.type.endswith('*') else ''}{p.name}"
                for p, space in zip(function.params, spaces)
            ]
            lines = code.body(function.body).lines
            text = "\n".join([f"{self.language.function} void NAME({', '.join(params)}) {{", *lines, "}"])
            notes = [function.doc] if function.doc else []
            cached = self._functions[id(function), tuple(spaces)] = function, self._piece("block", text, notes)
        return cached[1]

    def _table(self, buf: Buf, data: np.ndarray) -> str:
        values = ", ".join(constant(v, buf.dtype) for v in np.asarray(data).ravel().tolist()) or "0"
        return self._piece("table", f"{self.language.table} {CTYPES[buf.dtype]} NAME[{max(1, buf.size)}] = {{{values}}};")

    def add(self, kernel: Kernel, notes: Sequence[str] = ()) -> list[Launch]:
        """Add a kernel's packings and stages. Raises `Unrendered`; the file is then as it was."""
        before = dict(self.pieces)
        try:
            launches = [self._stage(kernel, pack.body, 1, {pack.target.name}, notes) for pack in kernel.packs]
            written = {buf.name for buf in (*kernel.outs, *kernel.work, kernel.fault)}
            return launches + [self._stage(kernel, stage.body, stage.units, written, notes) for stage in kernel.stages]
        except Unrendered:
            self.pieces, self._functions = before, {}
            raise

    def _stage(self, kernel: Kernel, body: Sequence[ir.Stmt], units: int, written: set[str], notes: Sequence[str]) -> Launch:
        language = self.language
        bufs = [*kernel.params, *(pack.target for pack in kernel.packs), *kernel.outs, *kernel.work, kernel.fault]
        spaces = {buf.name: language.shared for buf in bufs} | {buf.name: language.table_space for buf, _ in kernel.constants}
        code = DeviceRenderer(self, {f.name: f for f in kernel.functions}, spaces, 2).body(body)
        used = [buf for buf in bufs if buf.name in code.names]
        overwritten = {kernel.params[n].name for n in kernel.in_place}
        overwritten |= {buf.name for buf in kernel.outs} if kernel.in_place else set()
        params = []
        for buf in used:
            const = "" if buf.name in written else "const "
            restrict = "" if buf.name in overwritten else f" {language.restrict}"
            params.append(f"{language.shared} {const}{CTYPES[buf.dtype]}*{restrict} {buf.name}".lstrip())
        sizes = sorted({*code.sizes, *(_names(units))}, key=lambda name: int(name.removeprefix("size")))
        params += [f"{language.index} {name}" for name in sizes]
        tables = []
        for buf, data in kernel.constants:
            if buf.name in code.names:
                kind = f"{language.table_space} const {CTYPES[buf.dtype]}*".lstrip()
                tables.append(f"    {kind} const {buf.name} = {self._table(buf, data)};")
        lines = [
            f"{language.kernel} void NAME({', '.join(params)}) {{",
            f"  const {language.index} unit_ = {language.number};",
            f"  if (unit_ < {units}) {{",
            *tables,
            *code.lines,
            "  }",
            "}",
        ]
        return Launch(self._piece("kernel", "\n".join(lines), notes), units, tuple(buf.name for buf in used), tuple(sizes))

    def text(self) -> str:
        """The file."""
        body = "\n\n".join(self.pieces.values())
        head = ["#define R_DOUBLE"] if "double" in body else []
        return "\n".join([*head, _csrc(self.language.head), _csrc("device.h"), body, ""])


def _names(units: int | Size) -> Iterable[str]:
    return re.findall(r"\bsize\d+\b", str(units)) if isinstance(units, Size) else ()


def program(language: Language, kernel: Kernel) -> tuple[str, list[Launch]]:
    """A kernel's text in a language, and its launches in their order. Raises `Unrendered`."""
    module = Module(language)
    launches = module.add(kernel)
    return module.text(), launches
