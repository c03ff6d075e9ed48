"""Vector loops over float16, in blocks that are converted to float32 and back as a whole.

Compilers have instructions for these conversions, but few use them in vector code of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylang.kernels.ir import (
    SERIAL,
    VECTOR,
    Address,
    Block,
    Body,
    Call,
    Cast,
    Expr,
    Let,
    Load,
    Local,
    Loop,
    Op,
    Stmt,
    Store,
    Var,
    expr,
    key,
    load,
    minimum,
    op,
    store,
)
from relaylang.kernels.ops import OPERATIONS
from relaylang.kernels.rewrites import stride
from relaylang.kernels.visit import expressions, parts, rebuilt, rewrite, statements, with_parts

#: The iterations of a block, and the fewest of a loop that is worth one.
BLOCK, _LEAST = 256, 16
_TYPE = "float16"


def blocked(body: Sequence[Stmt]) -> Body:
    """Statements with their vector loops over float16 in blocks."""
    if not any(isinstance(s, Loop) and s.kind == VECTOR and _converts(s) for s in statements(body)):
        return list(body)
    return [_block(s) if isinstance(s, Loop) and s.kind == VECTOR else rebuilt(s, lambda value: value, blocked) for s in body]


def _converts(loop: Loop) -> bool:
    """Whether a loop has lets and stores alone, some of which convert float16."""
    plain = all(isinstance(s, Store) or (isinstance(s, Let) and not s.mutable) for s in loop.body)
    values = [s.value for s in loop.body if isinstance(s, (Let, Store))]
    places = {s.buffer: key(s.index) for s in loop.body if isinstance(s, Store)}
    reads = [part for v in values for part in expressions(v) if isinstance(part, Load) and part.buffer in places]
    if len(places) < sum(isinstance(s, Store) for s in loop.body) or any(key(r.index) != places[r.buffer] for r in reads):
        return False
    found = [part for v in values for part in expressions(v) if _reads(part) or _writes(part)]
    return plain and bool(found) and loop.step == 1 and (loop.trips is None or loop.trips >= _LEAST)


def _reads(value: Expr) -> bool:
    """Whether an expression converts from float16."""
    return isinstance(value, Cast) and value.type == "float32" and value.value.type == _TYPE


def _writes(value: Expr) -> bool:
    """Whether an expression converts to float16."""
    return isinstance(value, Cast) and value.type == _TYPE and value.value.type == "float32"


@dataclass
class _Block:
    """A block of iterations: the arrays of floats that are read and written, and the names with numbers of float16."""

    loop: Loop
    first: Expr
    count: Expr
    size: int
    before: Body = field(default_factory=list)
    behind: Body = field(default_factory=list)
    arrays: dict[Any, Local] = field(default_factory=dict)
    #: Names of float16: the same number as a float, and the one before it was rounded.
    exact: dict[str, Expr] = field(default_factory=dict)
    longer: dict[str, Expr] = field(default_factory=dict)

    @property
    def at(self) -> Expr:
        """The place of an iteration in the block's arrays."""
        return Var(self.loop.var) - self.first

    def array(self) -> Local:
        return Local(f"{self.loop.var}h{len(self.arrays)}", "float32", (self.size,))

    def begin(self, index: Expr) -> Expr:
        """An index at the block's first iteration."""
        return rewrite(index, lambda part: self.first if isinstance(part, Var) and part.name == self.loop.var else part)

    def read(self, source: Load) -> Expr | None:
        """An element of a buffer that is read one by one, as a float; None for others."""
        if stride(source.index, self.loop.var) != 1:
            return None
        name = (source.buffer, key(source.index))
        if name not in self.arrays:
            made = self.arrays[name] = self.array()
            start = Address(source.buffer, self.begin(source.index), f"const {_TYPE}*")
            self.before += [made, Call("r_read_halves", (Var(made.name, "float32*"), start, self.count))]
        return load(self.arrays[name], self.at)

    def value(self, value: Expr, certain: bool = True) -> Expr:
        """An expression in floats, as far as it converts. Elements that may not be there are read where it does."""
        old = parts(value)
        lazy = isinstance(value, Op) and OPERATIONS[value.name].lazy
        sure = [not (lazy and n) for n in range(len(old))]
        new = [self.value(part, certain and s) for part, s in zip(old, sure)]
        if any(a is not b for a, b in zip(old, new)):
            value = with_parts(value, new)
        return self.converted(value, certain) if isinstance(value, Cast) and _reads(value) else value

    def converted(self, value: Cast, certain: bool) -> Expr:
        """A number of float16 as a float."""
        match value.value:
            case Var(name) if name in self.exact:
                return self.exact[name]
            case Cast(exact) if _writes(value.value):
                return op("round_half", exact)
            case Load() as found if certain and (held := self.read(found)) is not None:
                return held
        return value

    def written(self, stmt: Store) -> Stmt:
        """A store, into an array where it converts."""
        value, longer = self.value(stmt.value), None
        if isinstance(stmt.value, Var):
            longer = self.longer.get(stmt.value.name)
        elif isinstance(value, Cast) and _writes(value):
            longer = value.value
        if longer is None or stride(stmt.index, self.loop.var) != 1:
            return Store(stmt.buffer, stmt.index, value, stmt.aligned)
        made = self.arrays[len(self.arrays)] = self.array()
        self.before.append(made)
        start = Address(stmt.buffer, self.begin(stmt.index), f"{_TYPE}*")
        self.behind.append(Call("r_write_halves", (start, Var(made.name, "const float32*"), self.count)))
        return store(made, longer, self.at)

    def named(self, stmt: Let) -> Body:
        """A let, with a name for the float behind a number of float16."""
        value = self.value(stmt.value)
        if isinstance(value, Load) and value.type == _TYPE and (held := self.read(value)) is not None:
            self.exact[stmt.name] = held
        elif isinstance(value, Cast) and _writes(value):
            wide = Let(f"{stmt.name}w", value.value)
            rounded = Let(f"{stmt.name}r", op("round_half", wide.var))
            self.longer[stmt.name], self.exact[stmt.name] = wide.var, rounded.var
            return [wide, rounded, Let(stmt.name, Cast(wide.var, _TYPE))]
        return [Let(stmt.name, value)]


def _block(loop: Loop) -> Stmt:
    if not _converts(loop):
        return loop
    var = loop.var
    small = loop.trips is not None and loop.trips <= BLOCK
    first: Expr = loop.low if small else Var(f"{var}b")
    count: Expr = expr(loop.trips or 0) if small else Var(f"{var}n")
    made = _Block(loop, first, count, loop.trips or BLOCK if small else BLOCK)
    inner: Body = []
    for stmt in loop.body:
        inner += [made.written(stmt)] if isinstance(stmt, Store) else made.named(stmt)  # type: ignore[arg-type]
    inner = _used(inner)
    whole = [*made.before, Loop(var, first, first + count, inner, VECTOR), *made.behind]
    if small:
        return Block(whole)
    let = Let(f"{var}n", minimum(loop.high - first, BLOCK))
    return Loop(f"{var}b", loop.low, loop.high, [let, *whole], SERIAL, BLOCK)


def _used(body: Body) -> Body:
    """Statements without the lets that nothing uses."""
    out: Body = []
    names: set[str] = set()
    for stmt in reversed(body):
        if isinstance(stmt, Let) and stmt.name not in names:
            continue
        for value in (stmt.value, *([stmt.index] if isinstance(stmt, Store) else [])):  # type: ignore[attr-defined]
            names |= {p.name for p in expressions(value) if isinstance(p, Var)}
        out.append(stmt)
    return out[::-1]
