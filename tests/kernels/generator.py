"""Random well-formed kernels over the loop language: the same for the same seed.

A kernel reads and writes buffers of every element type, inside loops of every kind. Its loops and names make up `Scope`.
Operations whose C is a function of libm or a polynomial are left out, and those that ask the machine.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from relaylang.kernels import ir
from relaylang.kernels.ir import Body, Expr

INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
DTYPES = (*INTS, *FLOATS, *HALVES, "bool")
#: The elements of each buffer.
SIZE = 24

_BOTH = ("add", "sub", "mul", "max", "min", "peak", "trough", "number")
_OF_INTS = ("div", "mod", "floor_div", "floor_mod", "pow", "and", "or", "xor", "left_shift", "right_shift", "shl", "shr")
_OF_FLOATS = ("div", "mod", "floor_div", "floor_mod")
_ONE = ("neg", "abs", "sign")
_ONE_OF_FLOATS = ("sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "round_even")
_TESTS = ("lt", "le", "gt", "ge", "eq", "ne")
_REDUCED = ("add", "mul", "max", "min", "peak", "trough")


@dataclass
class Buffer:
    """A buffer of a kernel, with what it holds at first."""

    name: str
    dtype: str
    data: np.ndarray
    written: bool

    shape = (SIZE,)


@dataclass
class Generated:
    """A kernel: its statements, its functions, its buffers, and the units of its parallel loop."""

    seed: int
    body: Body
    functions: list[ir.Function]
    buffers: list[Buffer]
    units: int = 1


@dataclass
class Scope:
    """What statements may use: names of values, arrays to read and to write, and indices with their greatest values."""

    values: dict[str, str] = field(default_factory=dict)
    mutable: dict[str, str] = field(default_factory=dict)
    reads: dict[str, tuple[str, int]] = field(default_factory=dict)
    writes: dict[str, tuple[str, int]] = field(default_factory=dict)
    indices: dict[str, int] = field(default_factory=dict)

    def inner(self) -> Scope:
        return Scope(dict(self.values), dict(self.mutable), dict(self.reads), dict(self.writes), dict(self.indices))


def numbers(dtype: str, rng: random.Random, count: int = SIZE) -> np.ndarray:
    """Numbers of a type: ordinary ones, and those at its ends."""
    if dtype == "bool":
        return np.asarray([rng.random() < 0.5 for _ in range(count)])
    if dtype in INTS:
        limits = np.iinfo(dtype)
        ends = [limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1, limits.max // 2, max(limits.min, -1)]
        some = [rng.choice(ends) if rng.random() < 0.3 else rng.randint(max(limits.min, -9), 9) for _ in range(count)]
        wide = [rng.randint(limits.min, limits.max) if rng.random() < 0.3 else n for n in some]
        return np.asarray(wide, dtype)
    ends = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.5,
        1e-40,
        -1e-44,
        3e38,
        -3e38,
        float("inf"),
        -float("inf"),
        float("nan"),
        2147483648.0,
        1e19,
        65504.0,
        1e-8,
    ]
    some = [
        rng.choice(ends) if rng.random() < 0.3 else rng.choice([rng.uniform(-4, 4), rng.randint(-8, 8), rng.uniform(-300, 300)])
        for _ in range(count)
    ]
    with np.errstate(over="ignore"):
        return np.asarray(some, np.float64).astype(np.float32).astype(np.dtype(dtype))


class Generator:
    """Makes a kernel of a seed. `lanes` is how many float32 a vector of the machine has; 0 for kernels without vectors."""

    def __init__(self, seed: int, lanes: int = 0) -> None:
        self.rng = random.Random(seed)
        self.seed, self.lanes = seed, lanes
        self.made = 0
        self.functions: list[ir.Function] = []

    def name(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def kernel(self) -> Generated:
        rng = self.rng
        buffers = [Buffer(f"a{n}", (t := rng.choice(DTYPES)), numbers(t, rng), False) for n in range(3)]
        buffers += [Buffer(f"z{n}", (t := rng.choice(DTYPES)), numbers(t, rng), True) for n in range(2)]
        buffers[0] = Buffer("a0", (t := rng.choice((*INTS, *FLOATS))), numbers(t, rng), False)
        if self.lanes:
            dtype = rng.choice(("float32", "int32"))
            count = SIZE
            buffers += [Buffer("v0", dtype, numbers(dtype, rng, count), False), Buffer("v1", dtype, numbers(dtype, rng, count), True)]
        scope = Scope()
        for b in buffers:
            scope.reads[b.name] = b.dtype, SIZE
            if b.written:
                scope.writes[b.name] = b.dtype, SIZE
        if rng.random() < 0.3:
            self.function()
        if rng.random() < 0.3:
            units, var = rng.randint(1, 5), self.name("u")
            scope.indices[var] = units - 1
            return Generated(self.seed, [ir.loop(var, 0, units, self.body(scope, 2), ir.PARALLEL)], self.functions, buffers, units)
        body = self.body(scope, 3)
        if self.lanes:
            body += self.vectors(buffers[-2], buffers[-1])
        return Generated(self.seed, body, self.functions, buffers)

    def function(self) -> None:
        """A function of an array to read, one to write, and a count."""
        rng = self.rng
        source, dtype = rng.choice(INTS + FLOATS), rng.choice(INTS + FLOATS)
        params = [ir.Param("x", f"const {source}*"), ir.Param("t", f"{dtype}*"), ir.Param("n", ir.INDEX)]
        scope = Scope(reads={"x": (source, 8), "t": (dtype, 8)}, writes={"t": (dtype, 8)})
        var = self.name("i")
        inner = scope.inner()
        inner.indices[var] = 7
        body = [ir.loop(var, 0, ir.Var("n"), self.body(inner, 1, 2)), *self.body(scope, 1, 1)]
        self.functions.append(ir.Function(f"k{self.seed}_f{len(self.functions)}", params, body))

    # -- statements ------------------------------------------------------------------------------------------------------

    def body(self, scope: Scope, depth: int, count: int = 0) -> Body:
        out: Body = []
        for _ in range(count or self.rng.randint(2, 4)):
            out += self.statement(scope, depth)
        return out

    def statement(self, scope: Scope, depth: int) -> Body:
        rng = self.rng
        kinds = ["let", "var", "assign", "store", "store", "store", "reduce"]
        kinds += ["loop", "loop", "if", "while", "local", "block", "vector", "registers", "call"] if depth else []
        kind = rng.choice(kinds)
        if kind in ("let", "var"):
            name, dtype = self.name("t"), rng.choice(DTYPES)
            stmt = ir.Let(name, self.expr(scope, dtype, 3), kind == "var")
            scope.values[name] = dtype
            if kind == "var":
                scope.mutable[name] = dtype
            return [stmt]
        if kind == "assign" and scope.mutable:
            name = rng.choice(list(scope.mutable))
            return [ir.Assign(name, self.expr(scope, scope.mutable[name], 3))]
        if kind == "reduce":
            name, (dtype, size) = rng.choice(list(scope.writes.items()))
            if dtype in INTS + FLOATS:
                return [ir.Reduce(rng.choice(_REDUCED), name, self.index(scope, size), self.expr(scope, dtype, 3))]
        if kind == "loop":
            return [self.loop(scope, depth)]
        if kind == "if":
            otherwise = self.body(scope.inner(), depth - 1, 1) if rng.random() < 0.5 else []
            return [ir.If(self.expr(scope, "bool", 2), self.body(scope.inner(), depth - 1, 2), otherwise)]
        if kind == "while":
            left, inner = self.name("w"), scope.inner()
            low = rng.choice(("int32", "int64", "index"))
            var = ir.Var(left, low)
            one: Expr = ir.number(1) if low == "index" else ir.Const(1, low)
            start: Expr = ir.number(rng.randint(0, 4)) if low == "index" else ir.Const(rng.randint(0, 4), low)
            body = [*self.body(inner, depth - 1, 2), ir.Assign(left, var - one)]
            return [ir.Let(left, start, True), ir.While(ir.op("gt", var, 0), body)]
        if kind == "local":
            dtype, size = rng.choice(DTYPES), rng.randint(1, 9)
            local = ir.Local(self.name("l"), dtype, (size,), zero=True)
            scope.reads[local.name] = scope.writes[local.name] = dtype, size
            return [local]
        if kind == "block":
            return [ir.Block(self.body(scope.inner(), depth - 1, 2)), ir.Note("after a block")]
        if kind == "vector":
            return [self.independent(scope)]
        if kind == "registers":
            return self.registers(scope)
        if kind == "call" and self.functions and "n" not in scope.values:
            return self.call(scope)
        name, (dtype, size) = rng.choice(list(scope.writes.items()))
        return [ir.Store(name, self.index(scope, size), self.expr(scope, dtype, 3))]

    def loop(self, scope: Scope, depth: int) -> ir.Stmt:
        rng = self.rng
        var, inner, step = self.name("i"), scope.inner(), rng.choice([1, 1, 1, 2, 3])
        low, high = rng.randint(0, 2), rng.randint(0, 6)
        kind = rng.choice((ir.SERIAL, ir.SERIAL, ir.UNROLLED))
        inner.indices[var] = max(high - 1, 0)
        ends: tuple[Expr, Expr] = ir.number(low), ir.number(high)
        if kind == ir.SERIAL and scope.indices and rng.random() < 0.3:
            other = rng.choice(list(scope.indices))
            ends = ends[0], ir.Var(other) + 1
            inner.indices[var] = scope.indices[other]
        return ir.Loop(var, *ends, self.body(inner, depth - 1, 2), kind, step)

    def independent(self, scope: Scope) -> ir.Stmt:
        """A vector loop: it writes one buffer, an element an iteration, and reads others."""
        rng = self.rng
        name, (dtype, size) = rng.choice(list(scope.writes.items()))
        inner = Scope(dict(scope.values), {}, {n: r for n, r in scope.reads.items() if n != name}, {}, dict(scope.indices))
        var = self.name("i")
        inner.indices[var] = size - 1
        t, other = self.name("t"), rng.choice(DTYPES)
        let = ir.Let(t, self.expr(inner, other, 2))
        inner.values[t] = other
        return ir.loop(var, 0, size, [let, ir.Store(name, ir.Var(var), self.expr(inner, dtype, 3))], ir.VECTOR)

    def registers(self, scope: Scope) -> Body:
        rng = self.rng
        dtype, size = rng.choice(INTS + FLOATS), rng.randint(1, 4)
        local, var = ir.Local(self.name("r"), dtype, (size,), ir.REGISTERS, zero=True), self.name("i")
        inner = scope.inner()
        inner.indices[var] = size - 1
        fill = ir.loop(var, 0, size, [ir.store(local, self.expr(inner, dtype, 2), ir.Var(var))], ir.UNROLLED)
        name, (target, room) = rng.choice(list(scope.writes.items()))
        value = self.cast(ir.load(local, rng.randrange(size)), target)
        return [local, fill, ir.Store(name, self.index(scope, room), value)]

    def call(self, scope: Scope) -> Body:
        """A call with arrays of its own, whose results go into a buffer."""
        rng = self.rng
        function = rng.choice(self.functions)
        source, dtype = (ir.element_of(p.type) for p in function.params[:2])
        x = ir.Local(self.name("x"), source, (8,), zero=True)
        t = ir.Local(self.name("y"), dtype, (9,), zero=True)
        var, inner = self.name("i"), scope.inner()
        inner.indices[var] = 7
        fill = ir.loop(var, 0, 8, [ir.store(x, self.expr(inner, source, 1), ir.Var(var))])
        call = ir.Call(function.name, (ir.address(x, 0), ir.address(t, 1, written=True), ir.number(rng.randint(0, 8))))
        name, (target, room) = rng.choice(list(scope.writes.items()))
        return [x, t, fill, call, ir.Store(name, self.index(scope, room), self.cast(ir.load(t, rng.randint(1, 8)), target))]

    def vectors(self, source: Buffer, target: Buffer) -> Body:
        """Vectors of the machine's width: lanes read, computed with and written."""
        rng, lanes, dtype = self.rng, self.lanes, source.dtype
        ty = ir.vector(dtype, lanes)

        def place() -> Expr:
            return ir.number(rng.randint(0, SIZE - lanes))

        def value(depth: int) -> Expr:
            kind = rng.choice(["load", "load", "splat"] + ["op", "op", "op", "fma", "mix"] * (depth > 0))
            if kind == "load":
                return ir.Load(source.name, place(), ty)
            if kind == "splat":
                return ir.splat(ir.Load(source.name, ir.number(rng.randrange(SIZE)), dtype), lanes)
            if kind == "fma":
                return ir.fma(value(depth - 1), value(depth - 1), value(depth - 1))
            if kind == "mix":
                return ir.mix(value(depth - 1), value(depth - 1), [rng.randrange(2 * lanes) for _ in range(lanes)])
            names = ("add", "sub", "mul", "max", "min", "neg")
            names += ("and", "or") if dtype == "int32" else ("div", "peak", "number", "round")
            name = rng.choice(names)
            return ir.Op(name, tuple(value(depth - 1) for _ in range(1 if name in ("neg", "round") else 2)), ty)

        name = self.name("q")
        held = ir.Var(name, ty)
        lane = ir.Store(target.name, ir.number(rng.randrange(SIZE)), self.cast(ir.lane(held, rng.randrange(lanes)), target.dtype))
        store = ir.Store(target.name, place(), ir.cast(held, ir.vector(target.dtype, lanes)))
        return [ir.Let(name, value(3)), *([store] if target.dtype == dtype else []), lane]

    # -- expressions -----------------------------------------------------------------------------------------------------

    def index(self, scope: Scope, size: int) -> Expr:
        """An index below a size."""
        rng = self.rng
        if not scope.indices or rng.random() < 0.2:
            return ir.number(rng.randrange(size))
        name = rng.choice(list(scope.indices))
        var: Expr = ir.Var(name)
        if scope.indices[name] < size and rng.random() < 0.6:
            return var
        total = var * rng.randint(1, 3) + rng.randint(0, 5)
        if rng.random() < 0.3:
            total = total // rng.randint(1, 3) + ir.Var(rng.choice(list(scope.indices)))
        if rng.random() < 0.2:
            return ir.minimum(total, size - 1)
        return total % size

    def cast(self, value: Expr, dtype: str) -> Expr:
        """A value as another type; halves by way of float32."""
        source = value.type
        if source != dtype and (source in HALVES or dtype in HALVES) and (source, dtype) != ("float64", "float16"):
            value = ir.cast(value, "float32")
        return self.whole(value, dtype) if value.type in FLOATS and dtype in INTS else ir.cast(value, dtype)

    def const(self, dtype: str) -> Expr:
        value = numbers(dtype, self.rng, 1)[0]
        if dtype in HALVES:
            return ir.Const(float(value), dtype)
        return ir.Const(value.item(), dtype)

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
        if depth == 0 or rng.random() < 0.15:
            return self.leaf(scope, dtype)
        if rng.random() < 0.12:
            return ir.select(self.expr(scope, "bool", depth - 1), *(self.expr(scope, dtype, depth - 1) for _ in range(2)))
        if rng.random() < 0.2 or dtype in HALVES:
            return self.converted(scope, dtype, depth)
        if dtype == "bool":
            return self.test(scope, depth)
        floats = dtype in FLOATS
        name = rng.choice((*_BOTH, *_ONE, *(_OF_FLOATS + _ONE_OF_FLOATS if floats else _OF_INTS), *(("not",) if not floats else ())))
        first = self.expr(scope, dtype, depth - 1)
        if name in (*_ONE, *_ONE_OF_FLOATS, "not"):
            return ir.Op(name, (first,), dtype)
        if name in ("shl", "shr"):
            bits = min(31, 8 * np.dtype(dtype).itemsize - 1)
            return ir.Op(name, (first, ir.Const(rng.randint(0, bits), dtype)), dtype)
        if dtype == "float32" and rng.random() < 0.08:
            return ir.fma(first, self.expr(scope, dtype, depth - 1), self.expr(scope, dtype, depth - 1))
        return ir.Op(name, (first, self.expr(scope, dtype, depth - 1)), dtype)

    def converted(self, scope: Scope, dtype: str, depth: int) -> Expr:
        """A value that comes from another type."""
        rng = self.rng
        if dtype in ("int8", "uint8", "int16", "uint16") and rng.random() < 0.3:
            return ir.op("saturate", self.expr(scope, "int32", depth - 1), type=dtype)
        if dtype in INTS[:-1] and rng.random() < 0.2:
            divisor = ir.Const(rng.randint(1, 9), dtype)
            return ir.Op(rng.choice(("quotient", "remainder")), (self.expr(scope, dtype, depth - 1), divisor), dtype)
        if dtype == "int32" and rng.random() < 0.2:
            factors = [ir.Const(n, "int64") for n in (rng.randint(1, 2**31 - 1), 1 << rng.randint(0, 40), rng.randint(0, 62))]
            return ir.Op("fixed", (self.expr(scope, "int32", depth - 1), *factors), dtype)
        if dtype in ("int32", "int64") and rng.random() < 0.1:
            value = self.expr(scope, dtype, depth - 1)
            return ir.Op("clamp", (value, ir.Const(-3, dtype), ir.Const(rng.randint(0, 90), dtype)), dtype)
        if dtype == "float32" and rng.random() < 0.15:
            return ir.op("round_half", self.expr(scope, dtype, depth - 1))
        same = {"float32": "int32", "int32": "float32", "uint32": "float32", "int64": "float64"}.get(dtype)
        if same and rng.random() < 0.2:
            value = self.leaf(scope, same)
            if same in FLOATS:  # the bits of a nan are the machine's affair
                value = ir.select(ir.op("eq", value, value), value, ir.Const(1.0, same))
            return ir.op("bitcast", value, type=dtype)
        other = rng.choice(DTYPES)
        if dtype in HALVES:
            other = rng.choice(("float32", dtype) + (("float64",) if dtype == "float16" else ()))
        return self.cast(self.leaf(scope, other) if other in HALVES else self.expr(scope, other, depth - 1), dtype)

    def whole(self, value: Expr, dtype: str) -> Expr:
        """A float as an integer. Compilers fold what they know of it, and find other results than x86 where it does not fit.

        So numbers that do not fit come from arrays that nothing writes alone.
        """
        if isinstance(value, ir.Load) and value.buffer[0] in "ax":
            return ir.cast(value, dtype)
        limit = 2.0**62 if dtype == "int64" else 2.0**30
        inside = ir.op("and", value < limit, value > -limit)
        return ir.cast(ir.select(inside, value, ir.Const(-3.5, value.type)), dtype)

    def test(self, scope: Scope, depth: int) -> Expr:
        rng = self.rng
        kind = rng.choice(["compare", "compare", "and", "or", "xor", "not"])
        if kind == "compare":
            dtype = rng.choice(INTS + FLOATS)
            return ir.op(rng.choice(_TESTS), self.expr(scope, dtype, depth - 1), self.expr(scope, dtype, depth - 1))
        first = self.expr(scope, "bool", depth - 1)
        return ir.Op(kind, (first,) if kind == "not" else (first, self.expr(scope, "bool", depth - 1)), "bool")


def generate(seed: int, lanes: int = 0) -> Generated:
    """The kernel of a seed."""
    return Generator(seed, lanes).kernel()
