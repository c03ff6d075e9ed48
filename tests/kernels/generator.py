"""Random well-formed kernels over the loop language: the same for the same seed.

A kernel reads and writes buffers of every element type, inside loops of every kind. Its loops and names make up a `Scope`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from relaylang.kernels import ir
from relaylang.kernels.evaluate import extent
from relaylang.kernels.ir import Body, Expr
from relaylang.kernels.sizes import Sizes, step_of
from tests.kernels.values import DTYPES, FLOATS, HALVES, INTS, Scope, Values, numbers

#: The elements of each buffer.
SIZE = 24
#: The most statements that have others inside.
_MOST = 4
_REDUCED = ("add", "mul", "max", "min", "peak", "trough")
#: Reductions whose order is of no account: of integers.
_ANY_ORDER = ("add", "mul", "max", "min", "and", "or", "xor")


@dataclass
class Buffer:
    """A buffer of a kernel, with what it holds at first."""

    name: str
    dtype: str
    data: np.ndarray
    written: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape


@dataclass
class Generated:
    """A kernel: its statements, its functions, its buffers, the units of its parallel loop, and its sizes by name."""

    seed: int
    body: Body
    functions: list[ir.Function]
    buffers: list[Buffer]
    units: int = 1
    sizes: dict[str, int] = field(default_factory=dict)


class Generator(Values):
    """Makes a kernel of a seed. `lanes` is how many float32 a vector of the machine has; 0 for kernels without vectors."""

    def __init__(self, seed: int, lanes: int = 0) -> None:
        super().__init__(random.Random(seed))
        self.seed, self.lanes = seed, lanes
        self.made = self.nested = 0
        self.functions: list[ir.Function] = []
        self.buffers: list[Buffer] = []

    def name(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def buffer(self, name: str, dtype: str, written: bool, count: int = SIZE) -> Buffer:
        made = Buffer(name, dtype, numbers(dtype, self.rng, count), written)
        self.buffers.append(made)
        return made

    def kernel(self) -> Generated:
        rng = self.rng
        self.buffer("a0", rng.choice((*INTS, *FLOATS)), False)
        for n in (1, 2):
            self.buffer(f"a{n}", rng.choice(DTYPES), False)
        for n in (0, 1):
            self.buffer(f"z{n}", rng.choice(DTYPES), True)
        scope = Scope(sure=frozenset({"a0", "a1", "a2"}))
        for b in self.buffers:
            scope.reads[b.name] = b.dtype, SIZE
            if b.written:
                scope.writes[b.name] = b.dtype, SIZE
        sizes: dict[str, int] = {}
        if rng.random() < 0.3:
            sizes = {f"size{n}": rng.randint(1, 7) for n in range(2)}
            one, two = Sizes([11, 13], broadcasting=True).sizes
            shown = [one, two, one + 2, one * two, one // 2, (one + two) % 4, one * 3 // 2, step_of(one, two) * two]
            self.sizes = [(size, extent(size, sizes)) for size in rng.sample(shown, 3)]  # type: ignore[misc]
        if rng.random() < 0.3:
            self.function()
        made = Generated(self.seed, [], self.functions, self.buffers, 1, sizes)
        if rng.random() < 0.25:
            units, var = rng.randint(1, 5), self.name("u")
            high: Expr = ir.number(units)
            if self.sizes and rng.random() < 0.5:
                size, units = rng.choice(self.sizes)
                high = ir.expr(size)
            scope.indices[var] = max(units - 1, 0)
            made.units = units
            made.body = [ir.Loop(var, ir.number(0), high, self.body(scope, 2), ir.PARALLEL)]
            return made
        made.body = self.body(scope, 2)
        if rng.random() < 0.4:
            made.body += self.nest(scope)
        if self.lanes and rng.random() < 0.6:
            made.body += self.vectors()
        return made

    def function(self) -> None:
        """A function of an array to read, one to write, and a count."""
        rng = self.rng
        source, dtype = rng.choice(INTS + FLOATS), rng.choice(INTS + FLOATS)
        params = [ir.Param("x", f"const {source}*"), ir.Param("t", f"{dtype}*"), ir.Param("n", ir.INDEX)]
        scope = Scope(reads={"x": (source, 8), "t": (dtype, 8)}, writes={"t": (dtype, 8)})
        sizes, self.sizes = self.sizes, []  # a function has no sizes
        var = self.name("i")
        inner = scope.inner()
        inner.indices[var] = 7
        body = [ir.loop(var, 0, ir.Var("n"), self.body(inner, 1, 2)), *self.body(scope, 1, 1)]
        self.sizes = sizes
        self.functions.append(ir.Function(f"k{self.seed}_f{len(self.functions)}", params, body))

    # -- statements ------------------------------------------------------------------------------------------------------

    def body(self, scope: Scope, depth: int, count: int = 0) -> Body:
        out: Body = []
        for _ in range(count or self.rng.randint(1, 3)):
            out += self.statement(scope, depth)
        return out

    def statement(self, scope: Scope, depth: int) -> Body:
        rng = self.rng
        kinds = ["let", "var", "assign", "store", "store", "store", "reduce"]
        if depth and self.nested < _MOST:
            kinds += ["loop", "loop", "if", "while", "local", "block", "vector", "vector", "registers", "call", "call", "outside"]
        kind = rng.choice(kinds)
        if kind in ("loop", "if", "while", "block", "vector", "registers"):
            self.nested += 1
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
            return [ir.If(self.expr(scope, "bool", 2), self.body(scope.inner(), depth - 1, rng.randint(1, 2)), otherwise)]
        if kind == "while":
            return self.repeated(scope, depth)
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
        if kind == "outside":
            return self.outside(scope)
        name, (dtype, size) = rng.choice(list(scope.writes.items()))
        return [ir.Store(name, self.index(scope, size), self.expr(scope, dtype, 3))]

    def repeated(self, scope: Scope, depth: int) -> Body:
        """A loop that counts down while a number is left."""
        rng = self.rng
        left, inner = self.name("w"), scope.inner()
        low = rng.choice(("int32", "int64", "index"))
        var = ir.Var(left, low)
        one: Expr = ir.number(1) if low == "index" else ir.Const(1, low)
        start: Expr = ir.number(rng.randint(0, 4)) if low == "index" else ir.Const(rng.randint(0, 4), low)
        body = [*self.body(inner, depth - 1, rng.randint(1, 2)), ir.Assign(left, var - one)]
        return [ir.Let(left, start, True), ir.While(ir.op("gt", var, 0), body)]

    def loop(self, scope: Scope, depth: int) -> ir.Stmt:
        rng = self.rng
        var, inner, step = self.name("i"), scope.inner(), rng.choice([1, 1, 1, 2, 3])
        low, high = rng.randint(0, 2), rng.randint(0, 5)
        kind = rng.choice((ir.SERIAL, ir.SERIAL, ir.UNROLLED))
        inner.indices[var] = max(high - 1, 0)
        ends: tuple[Expr, Expr] = ir.number(low), ir.number(high)
        if kind == ir.SERIAL and self.sizes and rng.random() < 0.6:
            size, value = rng.choice(self.sizes)
            ends = ends[0], ir.expr(size)
            inner.indices[var] = max(value - 1, 0)
        elif kind == ir.SERIAL and scope.indices and rng.random() < 0.3:
            other = rng.choice(list(scope.indices))
            ends = ends[0], ir.Var(other) + 1
            inner.indices[var] = scope.indices[other]
        return ir.Loop(var, *ends, self.body(inner, depth - 1, rng.randint(1, 2)), kind, step)

    def independent(self, scope: Scope) -> ir.Stmt:
        """A vector loop: it writes one buffer, an element an iteration, and reads others."""
        rng = self.rng
        name, (dtype, size) = rng.choice(list(scope.writes.items()))
        reads = {n: r for n, r in scope.reads.items() if n != name}
        inner = Scope(dict(scope.values), {}, reads, {}, dict(scope.indices), scope.sure)
        var = self.name("i")
        inner.indices[var] = size - 1
        t, other = self.name("t"), rng.choice((*DTYPES, "int32", "float32"))
        value = self.straight(inner, other, var, 2) if rng.random() < 0.5 else self.expr(inner, other, 2)
        inner.values[t] = other
        body: Body = [ir.Let(t, value)]
        result = self.cast(ir.Var(t, other), dtype) if rng.random() < 0.5 else self.expr(inner, dtype, 3)
        if dtype in INTS[:4] and other == "int32" and rng.random() < 0.5:
            result = ir.op("saturate", ir.Var(t, other), type=dtype)
        return ir.loop(var, 0, size, [*body, ir.Store(name, ir.Var(var), result)], ir.VECTOR)

    def straight(self, scope: Scope, dtype: str, var: str, depth: int) -> Expr:
        """A value of elements that lie one after the other along a loop, as vectors take it."""
        rng = self.rng
        if depth == 0:
            arrays = [(name, ty) for name, (ty, size) in scope.reads.items() if size > scope.indices[var]]
            if not arrays:
                return self.const(dtype)
            name, ty = rng.choice(arrays)
            return self.cast(ir.Load(name, ir.Var(var), ty), dtype)
        if dtype == "int32":
            kind = rng.choice(("fixed", "max", "cast"))
            if kind == "fixed":
                return ir.Op("fixed", (self.straight(scope, dtype, var, depth - 1), *self.fixed_parts()), dtype)
            if kind == "cast":
                return ir.cast(ir.op("clamp", self.straight(scope, "float32", var, depth - 1), -300.0, 300.0), dtype)
        if dtype in HALVES:
            return self.cast(self.straight(scope, "float32", var, depth - 1), dtype)
        if dtype == "bool":
            return ir.op("lt", self.straight(scope, "float32", var, depth - 1), 1.0)
        names = ("add", "mul", "max", "min", "sub", *(("div", "number", "peak") if dtype in FLOATS else ()))
        left, right = (self.straight(scope, dtype, var, depth - 1) for _ in range(2))
        return ir.Op(rng.choice(names), (left, right if rng.random() < 0.7 else self.const(dtype)), dtype)

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

    def outside(self, scope: Scope) -> Body:
        """A call of a function in C: a copy, a conversion of many halves, or a hint."""
        rng = self.rng
        name, (dtype, size) = rng.choice(list(scope.reads.items()))
        count = rng.randint(0, min(size, 9))
        to = "float32" if dtype == "float16" and rng.random() < 0.7 else dtype
        made = ir.Local(self.name("m"), to, (9,), zero=True)
        source = ir.Address(name, ir.number(rng.randint(0, size - count)), f"const {dtype}*")
        target = ir.address(made, 9 - count, written=True)
        scope.reads[made.name] = scope.writes[made.name] = to, 9
        if to != dtype:
            return [made, ir.Call("r_read_halves", (target, source, ir.number(count)))]
        halves = [n for n, (ty, room) in scope.writes.items() if ty == "float16" and room >= 9]
        call = ir.Call("memcpy", (target, source, ir.number(count * np.dtype(dtype).itemsize)))
        hint = ir.Call("__builtin_prefetch", (ir.Address(name, ir.number(0), f"const {dtype}*"),))
        if to == "float32" and halves:
            written = ir.Address(rng.choice(halves), ir.number(0), "float16*")
            return [made, call, ir.Call("r_write_halves", (written, ir.address(made, 0), ir.number(rng.randint(0, 9))))]
        return [made, call, hint]

    # -- nests -----------------------------------------------------------------------------------------------------------

    def nest(self, scope: Scope) -> Body:
        """Loops with nothing between them that write or reduce into a buffer of their own, as schedules want them."""
        rng = self.rng
        extents = [rng.choice((1, 2, 3, 4, 5, 8)) for _ in range(rng.randint(1, 3))]
        names = [self.name("j") for _ in extents]
        dtype = rng.choice(DTYPES)
        reduced = dtype in INTS and rng.random() < 0.5
        room = int(np.prod(extents))
        held = self.buffer("n0", dtype, True, room)
        source = self.buffer("n1", rng.choice(DTYPES), False, room)
        inner = Scope(dict(scope.values), {}, {n: r for n, r in scope.reads.items() if n not in scope.writes}, {}, {}, scope.sure)
        inner.reads["n1"] = source.dtype, room
        inner.indices = {name: size - 1 for name, size in zip(names, extents)}
        at = ir.offset(extents, [ir.Var(name) for name in names]) if len(names) > 1 else ir.Var(names[0])
        read = self.cast(ir.Load("n1", at, source.dtype), dtype)
        if dtype == "bool":
            value = ir.op(rng.choice(("and", "or", "xor")), read, self.expr(inner, dtype, 2))
        elif dtype in HALVES:
            value = self.cast(ir.cast(read, "float32") + self.cast(self.expr(inner, dtype, 2), "float32"), dtype)
        else:
            value = ir.op(rng.choice(("add", "sub", "mul", "max", "min")), read, self.expr(inner, dtype, 2))
        if reduced:
            left = [ir.Var(n) if rng.random() < 0.6 else ir.number(0) for n in names]
            place = ir.offset(extents, left) if len(left) > 1 else left[0]
            body: Body = [ir.Reduce(rng.choice(_ANY_ORDER), held.name, place, value)]
        else:
            body = [ir.Store(held.name, at, value)]
        for name, size in zip(reversed(names), reversed(extents)):
            body = [ir.loop(name, 0, size, body)]
        return body

    # -- vectors ---------------------------------------------------------------------------------------------------------

    def vectors(self) -> Body:
        """Vectors of the machine's width: lanes read, computed with and written."""
        rng = self.rng
        dtype = rng.choice(("float32", "int32", "float32", "int32", "float64", "int64"))
        lanes = self.lanes if dtype in ("float32", "int32") else self.lanes // 2
        source, target = self.buffer("v0", dtype, False), self.buffer("v1", dtype, True)
        short = self.buffer("v2", rng.choice(INTS[:4]), True)
        ty = ir.vector(dtype, lanes)

        def place() -> Expr:
            return ir.number(rng.randint(0, SIZE - lanes))

        def value(depth: int) -> Expr:
            kinds = ["load", "load", "splat", *(["widen"] if dtype in ("int32", "int64") else ())]
            kind = rng.choice([*kinds, *["op", "op", "op", "fma", "mix", "rare"] * (depth > 0)])
            if kind == "load":
                return ir.Load(source.name, place(), ty)
            if kind == "splat":
                return ir.splat(ir.Load(source.name, ir.number(rng.randrange(SIZE)), dtype), lanes)
            if kind == "widen":
                return ir.Cast(ir.Load(short.name, place(), ir.vector(short.dtype, lanes)), ty)
            if kind == "fma":
                return ir.fma(value(depth - 1), value(depth - 1), value(depth - 1))
            if kind == "mix":
                return ir.mix(value(depth - 1), value(depth - 1), [rng.randrange(2 * lanes) for _ in range(lanes)])
            if kind == "rare" and dtype == "int32":
                return ir.Intrinsic("madd", (value(depth - 1), value(depth - 1), value(depth - 1)), ty)
            if kind == "rare" and dtype == "float32":
                # A sum of whole numbers, whose order is of no account.
                small = ir.op("min", ir.op("max", ir.op("number", value(depth - 1), 0.0), -99.0), 99.0)
                return ir.splat(ir.Intrinsic("sum", (ir.op("round", small),), dtype), lanes)
            names: tuple[str, ...] = ("add", "sub", "mul", "neg")
            if dtype in ("float32", "int32"):
                names += ("max", "min", *(("and", "or") if dtype == "int32" else ("div", "peak", "number", "round")))
            name = rng.choice(names)
            return ir.Op(name, tuple(value(depth - 1) for _ in range(1 if name in ("neg", "round") else 2)), ty)

        name = self.name("q")
        held = ir.Var(name, ty)
        out: Body = [ir.Let(name, value(3)), ir.Store(target.name, place(), held)]
        out.append(ir.Store(target.name, ir.number(rng.randrange(SIZE)), ir.lane(held, rng.randrange(lanes))))
        if dtype == "int32":
            narrow = ir.vector(short.dtype, lanes)
            out.append(ir.Store(short.name, place(), rng.choice((ir.Cast(held, narrow), ir.Op("saturate", (held,), narrow)))))
        if dtype in ("float32", "int32"):
            out.append(ir.Store(target.name, place(), ir.Intrinsic("low", (held,), ir.vector(dtype, lanes // 2))))
        return out


def generate(seed: int, lanes: int = 0) -> Generated:
    """The kernel of a seed."""
    return Generator(seed, lanes).kernel()
