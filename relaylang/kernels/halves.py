"""Vector loops over float16, in blocks that are converted to float32 and back as a whole.

Compilers have instructions for these conversions, but few use them in vector code of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylang.kernels import ir
from relaylang.kernels.ops import OPERATIONS
from relaylang.kernels.rewrites import stride
from relaylang.kernels.visit import expressions, parts, rebuilt, rewrite, statements, with_parts

#: The iterations of a block, and the fewest of a loop that is worth one.
BLOCK, _LEAST = 256, 16
_TYPE = "float16"


def blocked(body: Sequence[ir.Stmt]) -> ir.Body:
    """Statements with their vector loops over float16 in blocks."""
    if not any(isinstance(s, ir.Loop) and s.kind == ir.VECTOR and _converts(s) for s in statements(body)):
        return list(body)
    return [_block(s) if isinstance(s, ir.Loop) and s.kind == ir.VECTOR else rebuilt(s, lambda value: value, blocked) for s in body]


def _converts(loop: ir.Loop) -> bool:
    """Whether a loop has lets and stores alone, some of which convert float16."""
    stores = [s for s in loop.body if isinstance(s, ir.Store)]
    lets = [s for s in loop.body if isinstance(s, ir.Let) and not s.mutable]
    places = {s.buffer: ir.key(s.index) for s in stores}
    values = [*(s.value for s in lets), *(s.value for s in stores)]
    inner = [part for value in values for part in expressions(value)]
    reads = [part for part in inner if isinstance(part, ir.Load) and part.buffer in places]
    plain = len(stores) + len(lets) == len(loop.body) and len(places) == len(stores)
    if not plain or any(ir.key(r.index) != places[r.buffer] for r in reads):
        return False
    converts = any(map(_reads, inner)) or any(map(_writes, inner))
    return converts and loop.step == 1 and (loop.trips is None or loop.trips >= _LEAST)


def _reads(value: ir.Expr) -> bool:
    """Whether an expression converts from float16."""
    return isinstance(value, ir.Cast) and value.type == "float32" and value.value.type == _TYPE


def _writes(value: ir.Expr) -> bool:
    """Whether an expression converts to float16."""
    return isinstance(value, ir.Cast) and value.type == _TYPE and value.value.type == "float32"


@dataclass
class _Block:
    """A block of iterations: the arrays of floats that are read and written, and the names with numbers of float16."""

    loop: ir.Loop
    first: ir.Expr
    count: ir.Expr
    size: int
    before: ir.Body = field(default_factory=list)
    behind: ir.Body = field(default_factory=list)
    arrays: dict[Any, ir.Local] = field(default_factory=dict)
    #: Names of float16: the same number as a float, and the one before it was rounded.
    exact: dict[str, ir.Expr] = field(default_factory=dict)
    longer: dict[str, ir.Expr] = field(default_factory=dict)

    @property
    def at(self) -> ir.Expr:
        """The place of an iteration in the block's arrays."""
        return ir.Var(self.loop.var) - self.first

    def array(self) -> ir.Local:
        return ir.Local(f"{self.loop.var}h{len(self.arrays)}", "float32", (self.size,))

    def begin(self, index: ir.Expr) -> ir.Expr:
        """An index at the block's first iteration."""
        return rewrite(index, lambda part: self.first if isinstance(part, ir.Var) and part.name == self.loop.var else part)

    def read(self, source: ir.Load) -> ir.Expr | None:
        """An element of a buffer that is read one by one, as a float; None for others."""
        if stride(source.index, self.loop.var) != 1:
            return None
        name = (source.buffer, ir.key(source.index))
        if name not in self.arrays:
            array = self.arrays[name] = self.array()
            start = ir.Address(source.buffer, self.begin(source.index), f"const {_TYPE}*")
            self.before += [array, ir.Call("r_read_halves", (ir.Var(array.name, "float32*"), start, self.count))]
        return ir.load(self.arrays[name], self.at)

    def value(self, value: ir.Expr, certain: bool = True) -> ir.Expr:
        """An expression in floats, as far as it converts. Elements that may not be there are read where it does."""
        old = parts(value)
        lazy = isinstance(value, ir.Op) and OPERATIONS[value.name].lazy
        sure = [not (lazy and n) for n in range(len(old))]
        new = [self.value(part, certain and s) for part, s in zip(old, sure)]
        if any(a is not b for a, b in zip(old, new)):
            value = with_parts(value, new)
        return self.converted(value, certain) if isinstance(value, ir.Cast) and _reads(value) else value

    def converted(self, value: ir.Cast, certain: bool) -> ir.Expr:
        """A number of float16 as a float."""
        match value.value:
            case ir.Var(name) if name in self.exact:
                return self.exact[name]
            case ir.Cast(exact) if _writes(value.value):
                return ir.op("round_half", exact)
            case ir.Load() as load if certain and (held := self.read(load)) is not None:
                return held
        return value

    def written(self, stmt: ir.Store) -> ir.Stmt:
        """A store, into an array where it converts."""
        value, longer = self.value(stmt.value), None
        if isinstance(stmt.value, ir.Var):
            longer = self.longer.get(stmt.value.name)
        elif isinstance(value, ir.Cast) and _writes(value):
            longer = value.value
        if longer is None or stride(stmt.index, self.loop.var) != 1:
            return ir.Store(stmt.buffer, stmt.index, value, stmt.aligned)
        array = self.arrays[len(self.arrays)] = self.array()
        self.before.append(array)
        start = ir.Address(stmt.buffer, self.begin(stmt.index), f"{_TYPE}*")
        self.behind.append(ir.Call("r_write_halves", (start, ir.Var(array.name, "const float32*"), self.count)))
        return ir.store(array, longer, self.at)

    def named(self, stmt: ir.Let) -> ir.Body:
        """A let, with a name for the float behind a number of float16."""
        value = self.value(stmt.value)
        if isinstance(value, ir.Load) and value.type == _TYPE and (held := self.read(value)) is not None:
            self.exact[stmt.name] = held
        elif isinstance(value, ir.Cast) and _writes(value):
            wide = ir.Let(f"{stmt.name}w", value.value)
            rounded = ir.Let(f"{stmt.name}r", ir.op("round_half", wide.var))
            self.longer[stmt.name], self.exact[stmt.name] = wide.var, rounded.var
            return [wide, rounded, ir.Let(stmt.name, ir.Cast(wide.var, _TYPE))]
        return [ir.Let(stmt.name, value)]


def _block(loop: ir.Loop) -> ir.Stmt:
    if not _converts(loop):
        return loop
    var = loop.var
    small = loop.trips is not None and loop.trips <= BLOCK
    first: ir.Expr = loop.low if small else ir.Var(f"{var}b")
    count: ir.Expr = ir.expr(loop.trips or 0) if small else ir.Var(f"{var}n")
    block = _Block(loop, first, count, loop.trips or BLOCK if small else BLOCK)
    inner: ir.Body = []
    for stmt in loop.body:
        inner += [block.written(stmt)] if isinstance(stmt, ir.Store) else block.named(stmt)  # type: ignore[arg-type]
    inner = _used(inner)
    unit = [*block.before, ir.Loop(var, first, first + count, inner, ir.VECTOR), *block.behind]
    if small:
        return ir.Block(unit)
    let = ir.Let(f"{var}n", ir.minimum(loop.high - first, BLOCK))
    return ir.Loop(f"{var}b", loop.low, loop.high, [let, *unit], ir.SERIAL, BLOCK)


def _used(body: ir.Body) -> ir.Body:
    """Statements without the lets that nothing uses."""
    out: ir.Body = []
    names: set[str] = set()
    for stmt in reversed(body):
        if isinstance(stmt, ir.Let) and stmt.name not in names:
            continue
        for value in (stmt.value, *([stmt.index] if isinstance(stmt, ir.Store) else [])):  # type: ignore[attr-defined]
            names |= {p.name for p in expressions(value) if isinstance(p, ir.Var)}
        out.append(stmt)
    return out[::-1]
