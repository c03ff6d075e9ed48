"""Scalar instructions: a row for an operator and its element types, `add.int32`.

The rows come from the CPU backend's tables of operators on numbers. An instruction's C is that of the kernel for
scalars. So each has the values of compiled kernels, and those of the interpreter. Where the interpreter refuses an operand
(a divisor of 0), the instruction does, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.lower.tensor import BINARY, COMPARE, FLOAT_UNARY, TESTS
from relaylang.backends.cpu.lowering import lower_function
from relaylang.ir import Call, Function, TensorType, Var
from relaylang.kernels import ir, visit
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.render import Renderer
from relaylang.ops import OPS
from relaylang.ops.record import make_attrs
from relaylang.runtime.vm.instructions import BASE, DTYPE_NUMBERS
from relaylang.typing import infer

_INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float32", "float64")
_ALL = ("bool", *_INTS, *_FLOATS)
#: Operators of one number beside the functions of floats.
_UNARY = ("negative", "abs", "sign", "nn.relu", "logical_not", "bitwise_not")
#: Whole numbers that an operator refuses: the test in C of the operands a and b, and the fault.
_REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("divide", "floor_divide", "trunc_divide", "mod", "floor_mod", "trunc_mod"), ("b == 0", "division")),
    **dict.fromkeys(("left_shift", "right_shift"), ("b < 0", "shift")),
    "power": ("a == 0 && b < 0", "power"),
}
#: Whole numbers with a negative power, for which kernels have no code.
_POWER = "b < 0 ? (a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0) : {}"

#: A power beyond int64.
_LONG_POWER = "({ uint64_t x_ = a, n_ = b, y_ = 1; for (; n_; n_ >>= 1, x_ *= x_) if (n_ & 1) y_ *= x_; y_; })"


@dataclass(frozen=True)
class Row:
    """A scalar instruction: its number, operator, element types of operands and result, its C, and the helpers that this uses."""

    number: int
    operator: str
    operands: tuple[str, ...]
    result: str
    text: str
    helpers: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return ".".join([self.operator, *dict.fromkeys([*self.operands[-1:], *([self.result] if self.converts else [])])])

    @property
    def converts(self) -> bool:
        """Whether an attribute, not the operands, says the result's element type."""
        return OPS[self.operator].attrs is not None


def _wanted() -> Iterator[tuple[str, tuple[str, ...], dict[str, str]]]:
    for name in (*BINARY, *COMPARE):
        for dtype in _ALL:
            yield name, (dtype, dtype), {}
    for name in _UNARY:
        for dtype in _ALL:
            yield name, (dtype,), {}
    for name in (*FLOAT_UNARY, *TESTS):
        for dtype in _FLOATS:
            yield name, (dtype,), {}
    for dtype in _ALL:
        yield "where", ("bool", dtype, dtype), {}
        for other in _ALL:
            if other != dtype:
                yield "cast", (dtype,), {"dtype": other}


def _expression(body: ir.Body) -> tuple[str, frozenset[str]]:
    """The C of the value that a kernel for scalars stores, and its helpers. The operands are a, b and c."""
    values: dict[str, ir.Expr] = {}

    def named(part: ir.Expr) -> ir.Expr:
        match part:
            case ir.Var(name):
                return values[name]
            case ir.Load(buffer, _, dtype):
                return ir.Var("abc"[int(buffer.removeprefix("arg"))], dtype)
        return part

    for stmt in body:
        assert isinstance(stmt, (ir.Let, ir.Store))
        value = visit.rewrite(stmt.value, named)
        if isinstance(stmt, ir.Let):
            values[stmt.name] = value
    renderer = Renderer()
    return renderer.expr(value), frozenset(renderer.helpers)


@cache
def rows() -> tuple[Row, ...]:
    """All scalar instructions, in the order of their numbers."""
    table: list[Row] = []
    for name, operands, attrs in _wanted():
        op = OPS[name]
        params = [Var(f"x{n}", TensorType((), dtype)) for n, dtype in enumerate(operands)]
        call = Call(op, params, make_attrs(op.attrs, attrs) if op.attrs is not None else None)
        function = Function(params, call)
        if any(d.severity == "error" for d in infer(function, fragment=True)) or not isinstance(call.checked_type, TensorType):
            continue
        (stage,) = lower_function(function, "scalar", GENERIC, {}).stages
        text, helpers = _expression(stage.body)
        if name == "power" and operands[0].startswith("int"):
            text = _POWER.format(text)
        elif name == "power" and operands[0] == "uint64":
            text = _LONG_POWER
        table.append(Row(len(BASE) + len(table), name, operands, call.checked_type.dtype, text, helpers))
    return tuple(table)


@cache
def row_of() -> dict[tuple[str, tuple[str, ...], str], Row]:
    """The rows by operator, element types of the operands, and element type of the result."""
    return {(row.operator, row.operands, row.result): row for row in rows()}


def labels() -> str:
    """The addresses of the instructions in the loop, by their numbers."""
    return ", ".join([*[f"&&L_{i.name}" for i in BASE], *[f"&&S_{row.number}" for row in rows()]])


def refusal(row: Row) -> tuple[str, str]:
    """A test in C of the operands a and b that an instruction refuses, and its fault. Both are "" where it takes all."""
    return _REFUSED.get(row.operator, ("", "")) if not row.operands[-1].startswith("float") else ("", "")


def cases() -> str:
    """The C of the scalar instructions."""
    lines = []
    for row in rows():
        test, fault = refusal(row)
        refused = f" if ({test}) FAIL(R_FAULT_{fault.upper()});" if test else ""
        read = "".join(
            f" const {CTYPES[dtype]} {'abc'[n]} = *(const {CTYPES[dtype]}*)&R[pc[{n + 2}]].v;" for n, dtype in enumerate(row.operands)
        )
        kind = DTYPE_NUMBERS[row.result]
        lines.append(
            f"  S_{row.number}: {{{read}{refused} *({CTYPES[row.result]}*)&R[pc[1]].v = {row.text};"
            f" R[pc[1]].kind = {kind}; NEXT({len(row.operands) + 2}); }}  // {row.name}"
        )
    return "\n".join(lines)
