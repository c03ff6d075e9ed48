"""Random numbers and expressions of the kernel language, of any element type.

The rows of `relaylang.kernels.ops` are chosen by the type of their result. Left out are those that ask the machine
(`amx`, `alternate`), and `fixed_lanes`, which vectors alone have.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from relaylang.kernels import ir
from relaylang.kernels.ir import Expr
from relaylang.kernels.ops import TESTS
from relaylang.kernels.sizes import Size

INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
DTYPES = (*INTS, *FLOATS, *HALVES, "bool")

_BOTH = ("add", "sub", "mul", "max", "min", "peak", "trough", "number", "div", "mod", "floor_div", "floor_mod")
_OF_INTS = (*_BOTH, "pow", "and", "or", "xor", "left_shift", "right_shift")
_ONE_OF_INTS = ("neg", "abs", "sign", "not")
_ONE_OF_FLOATS = ("neg", "abs", "sign", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "round_even")
#: Functions of the C library, and polynomials. Compilers compute them of constants in their own way, so operands are read.
FUNCTIONS = ("exp", "log", "libm_log", "log2", "log10", "tanh", "atanh", "sigmoid", "erf", "sin", "cos", "tan", "sinh", "cosh",
             "asin", "acos", "atan", "asinh", "acosh", "pow")  # fmt: skip
_BITS = (("float16", "bfloat16", "int16", "uint16"), ("float32", "int32", "uint32"), ("float64", "int64", "uint64"))
_ENDS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-40, -1e-44, 3e38, -3e38, float("inf"), -float("inf"), float("nan"), 2147483648.0,
         -2147483648.0, 4294967296.0, 9.3e18, 1e19, 65504.0, 65520.0, 1e-8, 6e-8, 127.5, 255.0, 256.0, -129.0)  # fmt: skip
_WIDE_ENDS = (*_ENDS, 5e-324, -1e-310, 1.7e308, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, 2147483647.5, -2147483648.5, 1 + 2.0**-30)


@dataclass
class Scope:
    """What statements may use: names of values, arrays to read and to write, and indices with their greatest values.

    `sure` are arrays that nothing writes.
    """

    values: dict[str, str] = field(default_factory=dict)
    mutable: dict[str, str] = field(default_factory=dict)
    reads: dict[str, tuple[str, int]] = field(default_factory=dict)
    writes: dict[str, tuple[str, int]] = field(default_factory=dict)
    indices: dict[str, int] = field(default_factory=dict)
    sure: frozenset[str] = frozenset()

    def inner(self) -> Scope:
        return Scope(dict(self.values), dict(self.mutable), dict(self.reads), dict(self.writes), dict(self.indices), self.sure)


def numbers(dtype: str, rng: random.Random, count: int) -> np.ndarray:
    """Numbers of a type: ordinary ones, and those at its ends."""
    if dtype == "bool":
        return np.asarray([rng.random() < 0.5 for _ in range(count)])
    if dtype in INTS:
        limits = np.iinfo(dtype)
        ends = [limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1, limits.max // 2, max(limits.min, -1)]
        some = [rng.choice(ends) if rng.random() < 0.3 else rng.randint(max(limits.min, -9), 9) for _ in range(count)]
        wide = [rng.randint(limits.min, limits.max) if rng.random() < 0.3 else n for n in some]
        return np.asarray(wide, dtype)
    ends = _WIDE_ENDS if dtype == "float64" else _ENDS
    some = [
        rng.choice(ends) if rng.random() < 0.3 else rng.choice([rng.uniform(-4, 4), rng.randint(-8, 8), rng.uniform(-300, 300)])
        for _ in range(count)
    ]
    with np.errstate(over="ignore"):
        return np.asarray(some, np.float64).astype(np.dtype(dtype))


class Values:
    """Makes expressions. `sizes` are extents that are known when the kernel runs, with their values."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sizes: list[tuple[Size, int]] = []

    # -- indices ---------------------------------------------------------------------------------------------------------

    def index(self, scope: Scope, size: int) -> Expr:
        """An index below a size."""
        rng = self.rng
        if rng.random() < 0.08:
            arrays = [(name, dtype, extent) for name, (dtype, extent) in scope.reads.items() if dtype in ("int8", "int32", "int64")]
            if arrays:
                name, dtype, extent = rng.choice(arrays)
                found = ir.cast(ir.Load(name, ir.number(rng.randrange(extent)), dtype), ir.INDEX)
                return ir.Op("clamp", (found, ir.number(0), ir.number(size - 1)), ir.INDEX)
        if not scope.indices or rng.random() < 0.2:
            return ir.number(rng.randrange(size))
        name = rng.choice(list(scope.indices))
        var: Expr = ir.Var(name)
        if scope.indices[name] < size and rng.random() < 0.6:
            return var
        total = var * rng.randint(1, 3) + rng.randint(0, 5)
        if rng.random() < 0.3:
            total = total // rng.randint(1, 3) + ir.Var(rng.choice(list(scope.indices)))
        if self.sizes and rng.random() < 0.4:
            total = total + ir.expr(rng.choice(self.sizes)[0]) * rng.randint(1, 2)
        kind = rng.random()
        if kind < 0.2:
            return ir.minimum(total, size - 1)
        if kind < 0.3:
            return ir.minimum(ir.maximum(total - rng.randint(0, 9), 0), size - 1)
        return total % size

    # -- values ----------------------------------------------------------------------------------------------------------

    def cast(self, value: Expr, dtype: str) -> Expr:
        """A value as another type; halves by way of float32."""
        source = value.type
        if source != dtype and (source in HALVES or dtype in HALVES) and (source, dtype) != ("float64", "float16"):
            value = ir.cast(value, "float32")
        return ir.cast(value, dtype)

    def const(self, dtype: str) -> Expr:
        value = numbers(dtype, self.rng, 1)[0]
        return ir.Const(float(value) if dtype in HALVES else value.item(), dtype)

    def leaf(self, scope: Scope, dtype: str) -> Expr:
        rng = self.rng
        names = [name for name, ty in scope.values.items() if ty == dtype]
        arrays = [(name, size) for name, (ty, size) in scope.reads.items() if ty == dtype]
        kind = rng.random()
        if names and kind < 0.4:
            return ir.Var(rng.choice(names), dtype)
        if arrays and kind < 0.85:
            name, size = rng.choice(arrays)
            return ir.Load(name, self.index(scope, size), dtype)
        if kind > 0.93 and scope.indices and dtype in INTS:
            return ir.Cast(self.index(scope, 50), dtype)
        return self.const(dtype)

    def expr(self, scope: Scope, dtype: str, depth: int) -> Expr:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            return self.leaf(scope, dtype)
        if rng.random() < 0.1:
            return ir.select(self.expr(scope, "bool", depth - 1), *(self.expr(scope, dtype, depth - 1) for _ in range(2)))
        if rng.random() < 0.25 or dtype in HALVES:
            return self.converted(scope, dtype, depth - 1)
        if dtype == "bool":
            return self.test(scope, depth - 1)
        kind = rng.random()
        if kind < 0.35:
            special = self.of_floats(scope, dtype, depth - 1) if dtype in FLOATS else self.of_ints(scope, dtype, depth - 1)
            if special is not None:
                return special
        if kind < 0.5:
            name = rng.choice(_ONE_OF_FLOATS if dtype in FLOATS else _ONE_OF_INTS)
            return ir.Op(name, (self.expr(scope, dtype, depth - 1),), dtype)
        name = rng.choice(_BOTH if dtype in FLOATS else _OF_INTS)
        return ir.Op(name, (self.expr(scope, dtype, depth - 1), self.expr(scope, dtype, depth - 1)), dtype)

    def read(self, scope: Scope, dtype: str) -> Expr | None:
        """A value that no compiler knows: an element of an array that nothing writes, converted where it has to be."""
        arrays = [(name, ty, size) for name, (ty, size) in scope.reads.items() if name in scope.sure]
        if not arrays:
            return None
        name, ty, size = self.rng.choice([a for a in arrays if a[1] == dtype] or arrays)
        return self.cast(ir.Load(name, self.index(scope, size), ty), dtype)

    def of_floats(self, scope: Scope, dtype: str, depth: int) -> Expr | None:
        """A row of floats whose operands are restricted."""
        rng = self.rng
        kind = rng.choice(("function", "function", "clamp", "fmax", "fma", "round_half", "near"))
        if kind == "function":
            name = rng.choice(FUNCTIONS)
            args = [self.read(scope, dtype) for _ in range(1 + (name == "pow"))]
            return None if None in args else ir.Op(name, tuple(a for a in args if a is not None), dtype)
        value = self.expr(scope, dtype, depth)
        if kind == "clamp":
            return ir.Op("clamp", (value, ir.Const(-2.5, dtype), ir.Const(rng.choice((0.0, 6.0, 1e30)), dtype)), dtype)
        if kind == "fmax":
            # Of both zeros, either is right.
            return ir.op(rng.choice(("fmax", "fmin")), value, self.expr(scope, dtype, depth)) + ir.Const(0.0, dtype)
        if kind == "fma":
            return ir.fma(value, self.expr(scope, dtype, depth), self.expr(scope, dtype, depth))
        if dtype == "float64":
            return None
        if kind == "round_half":
            return ir.op("round_half", value)
        # The nearest whole number counts; with an odd divisor, none is as near as another.
        whole = ir.cast(self.expr(scope, rng.choice(("int8", "uint8", "int16")), depth), dtype)
        divisor = float(rng.choice((1, 3, 5, 7, 9, 11, 127)))
        high = float(np.float32(1 / divisor))
        parts = [ir.Const(n, dtype) for n in (divisor, high, float(np.float32(1 / divisor - high)))]
        return ir.op("round", ir.Op("near_quotient", (whole, *parts), dtype))

    def of_ints(self, scope: Scope, dtype: str, depth: int) -> Expr | None:
        """A row of integers whose operands are restricted."""
        rng = self.rng
        kind = rng.choice(
            ("shift", "quotient", "clamp", "saturate", *(("fixed", "fixed", "parts") if dtype in ("int32", "int64") else ()))
        )
        if kind == "shift":
            bits = min(31, 8 * np.dtype(dtype).itemsize - 1)
            return ir.Op(rng.choice(("shl", "shr")), (self.expr(scope, dtype, depth), ir.Const(rng.randint(0, bits), dtype)), dtype)
        if kind == "quotient":
            divisor = ir.Const(rng.randint(1, 9), dtype)
            return ir.Op(rng.choice(("quotient", "remainder")), (self.expr(scope, dtype, depth), divisor), dtype)
        if kind == "clamp" and dtype != "uint64":
            low = ir.Const(rng.randint(-3, 3) if dtype.startswith("i") else 2, dtype)
            return ir.Op("clamp", (self.expr(scope, dtype, depth), low, ir.Const(rng.randint(5, 90), dtype)), dtype)
        if kind == "saturate" and dtype in INTS[:4]:
            return ir.op("saturate", self.expr(scope, "int32", depth), type=dtype)
        if kind == "fixed":
            return self.cast(self.fixed(scope, depth), dtype)
        if kind != "parts":
            return None
        # Of a factor that arrives when the program runs: a finite one that is not negative.
        factor = self.expr(scope, "float64", depth)
        factor = ir.select(ir.op("and", factor > 1e-30, factor < 1e30), factor, ir.Const(rng.choice((0.0, 0.37, 1.0, 3e9)), "float64"))
        names = ("fixed_significand", "fixed_shift", "fixed_right") if dtype == "int64" else ("fixed_low",)
        return ir.op(rng.choice(names), factor, type=dtype)

    def fixed(self, scope: Scope, depth: int) -> Expr:
        """A product in fixed point."""
        rng = self.rng
        kind = rng.choice(("fixed", "lanes", "short", "multiply", "taps"))
        value = self.expr(scope, "int32", depth)
        significand, right = rng.randint(1, 2**31 - 1), rng.randint(33, 62)
        if kind == "short":
            return ir.Op(
                "fixed_short", (value, *(ir.Const(n, "int32") for n in (rng.randint(1, 999), 1 << right % 8, right % 31))), "int32"
            )
        if kind == "multiply":
            name = rng.choice(("fixed_multiply", "fixed_multiply_nearest"))
            x = ir.cast(value, "int64") if name == "fixed_multiply" else value
            return ir.Op(name, (x, ir.Const(significand, "int64"), ir.Const(rng.randint(-40, 30), "int64")), "int32")
        if kind == "taps":
            places = (
                self.index(scope, 9) - 4,
                ir.number(rng.randint(1, 3)),
                ir.number(rng.randint(1, 5)),
                ir.number(rng.randint(1, 9)),
            )
            return ir.Op("taps", places, "int32")
        if kind == "fixed":
            parts = [ir.Const(n, "int64") for n in (significand, 1 << rng.randint(0, 40), rng.randint(0, 62))]
            return ir.Op("fixed", (value, *parts), "int32")
        return ir.Op("fixed", (value, *self.fixed_parts()), "int32")

    def fixed_parts(self) -> list[Expr]:
        """The operands of a product in fixed point after the first: those of scalars, and those that vectors take."""
        significand, right = self.rng.randint(1, 2**31 - 1), self.rng.randint(33, 62)
        parts: list[Expr] = [ir.Const(n, "int64") for n in (significand, 1 << right - 1, right)]
        return parts + [ir.Const(n, "int32") for n in (0, 1 << right - 33, right - 32, 1)]

    def converted(self, scope: Scope, dtype: str, depth: int) -> Expr:
        """A value that comes from another type."""
        rng = self.rng
        same = next((group for group in _BITS if dtype in group), ())
        if same and rng.random() < 0.25:
            value = self.leaf(scope, rng.choice([other for other in same if other != dtype]))
            if value.type in FLOATS:  # the bits of a nan are the machine's affair
                value = ir.select(ir.op("eq", value, value), value, ir.Const(1.0, value.type))
            elif value.type in HALVES:
                wide = ir.cast(value, "float32")
                value = ir.select(ir.op("eq", wide, wide), value, ir.Const(1.0, value.type))
            return ir.op("bitcast", value, type=dtype)
        other = rng.choice(DTYPES)
        if dtype in HALVES:
            other = rng.choice(("float32", dtype) + (("float64",) if dtype == "float16" else ()))
        return self.cast(self.leaf(scope, other) if other in HALVES else self.expr(scope, other, depth), dtype)

    def test(self, scope: Scope, depth: int) -> Expr:
        rng = self.rng
        kind = rng.choice(["compare", "compare", "compare", "and", "or", "xor", "not", "max", "min"])
        if kind == "compare":
            dtype = rng.choice((*INTS, *FLOATS, "index"))
            name = rng.choice(sorted(TESTS))
            if dtype == "index":
                return ir.Op(name, (self.index(scope, 9), self.index(scope, 9)), "bool")
            return ir.op(name, self.expr(scope, dtype, depth), self.expr(scope, dtype, depth))
        first = self.expr(scope, "bool", depth)
        return ir.Op(kind, (first,) if kind == "not" else (first, self.expr(scope, "bool", depth)), "bool")
