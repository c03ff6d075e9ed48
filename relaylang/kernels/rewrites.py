"""Schedules: functions from statements to statements, each for one loop, found by its variable.

A rewrite checks what it needs and raises `Refused` where the result could differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from relaylang.kernels import ir
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.ops import OPERATIONS
from relaylang.kernels.render import VECTORS, render
from relaylang.kernels.visit import bodies, expressions, exprs, rebuilt, statements, substitute

#: The variable of a loop over units.
UNIT = "u"


class Refused(Exception):
    """A rewrite would change what the loops do, or cannot tell."""


def find(body: Sequence[ir.Stmt], var: str) -> ir.Loop:
    """The loop of a variable. Raises `Refused` where there is none, or more than one."""
    loops = [s for s in statements(body) if isinstance(s, ir.Loop) and s.var == var]
    if len(loops) != 1:
        raise Refused(f"{len(loops)} loops over {var}")
    return loops[0]


def _replaced(body: Sequence[ir.Stmt], old: ir.Stmt, new: Sequence[ir.Stmt]) -> ir.Body:
    out: ir.Body = []
    for stmt in body:
        if stmt is old:
            out += new
        elif bodies(stmt):
            out.append(rebuilt(stmt, lambda e: e, lambda inner: _replaced(inner, old, new)))
        else:
            out.append(stmt)
    return out


def _change(body: Sequence[ir.Stmt], var: str, change: Callable[[ir.Loop], Sequence[ir.Stmt]]) -> ir.Body:
    old = find(body, var)
    new = change(old)
    lost = _written_out([old]) - _written_out(new)
    if lost:
        arrays = {s.name for s in statements(body) if isinstance(s, ir.Local) and s.space == ir.REGISTERS}
        for buffer, index in _places([old]):
            if buffer in arrays and any(isinstance(p, ir.Var) and p.name in lost for p in expressions(index)):
                raise Refused(f"{buffer} is in registers, so loop {var} stays written out")
    return _replaced(body, old, new)


def _written_out(body: Sequence[ir.Stmt]) -> set[str]:
    """The variables of the loops that are written out."""
    return {s.var for s in statements(body) if isinstance(s, ir.Loop) and s.kind == ir.UNROLLED}


def _places(body: Sequence[ir.Stmt]) -> Iterator[tuple[str, ir.Expr]]:
    """The elements that statements read and write: the array, and the index."""
    for stmt in statements(body):
        if isinstance(stmt, (ir.Store, ir.Reduce)):
            yield stmt.buffer, stmt.index
        for value in exprs(stmt):
            yield from ((part.buffer, part.index) for part in expressions(value) if isinstance(part, ir.Load))


# -- marks ---------------------------------------------------------------------------------------------------------------


def serial(body: Sequence[ir.Stmt], var: str) -> ir.Body:
    """A loop without any mark."""
    return _change(body, var, lambda at: [ir.Loop(at.var, at.low, at.high, at.body, ir.SERIAL, at.step)])


def unroll(body: Sequence[ir.Stmt], var: str) -> ir.Body:
    """A loop of constant length, written out."""

    def change(at: ir.Loop) -> list[ir.Stmt]:
        if at.trips is None:
            raise Refused(f"the length of loop {var} is not constant")
        return [ir.Loop(at.var, at.low, at.high, at.body, ir.UNROLLED, at.step)]

    return _change(body, var, change)


def vectorise(body: Sequence[ir.Stmt], var: str, trusted: bool = False) -> ir.Body:
    """A loop whose iterations the C compiler may run side by side: none reads or writes what another writes.

    With `trusted`, the caller knows that they do not.
    """

    def change(at: ir.Loop) -> list[ir.Stmt]:
        if any(bodies(s) for s in at.body):
            raise Refused(f"loop {var} has loops or conditions inside")
        if not trusted:
            independent(at, reductions=False)
        return [ir.Loop(at.var, at.low, at.high, at.body, ir.VECTOR, at.step)]

    return _change(body, var, change)


def parallelise(body: Sequence[ir.Stmt], var: str, unit: int = 1, trusted: bool = False) -> ir.Body:
    """An outermost loop whose iterations may run on several threads, `unit` iterations at a time.

    With `trusted`, the caller knows that the iterations share nothing.
    """

    def change(at: ir.Loop) -> list[ir.Stmt]:
        if not any(s is at for s in body):
            raise Refused(f"loop {var} is not outermost")
        if ir.constant_of(at.low) != 0 or at.trips is None or at.step != 1:
            raise Refused(f"loop {var} does not count from 0 to a constant")
        if not trusted:
            independent(at, reductions=False)
        if unit == 1:
            return [ir.Loop(at.var, at.low, at.high, at.body, ir.PARALLEL)]
        units = find(chunk([at], var, unit), UNIT)
        return [ir.Loop(units.var, units.low, units.high, units.body, ir.PARALLEL)]

    return _change(body, var, change)


# -- shapes --------------------------------------------------------------------------------------------------------------


def split(body: Sequence[ir.Stmt], var: str, factor: int, outer: str = "", inner: str = "") -> ir.Body:
    """A loop as a loop over chunks of `factor` iterations, and one over a chunk's."""
    outer, inner = outer or f"{var}o", inner or f"{var}i"

    def change(at: ir.Loop) -> list[ir.Stmt]:
        if at.kind in (ir.UNROLLED, ir.PARALLEL) or at.step != 1 or ir.constant_of(at.low) != 0 or at.trips is None:
            raise Refused(f"loop {var} does not count from 0 to a constant, one at a time")
        divides = at.trips % factor == 0
        size: ir.Expr = ir.number(factor) if divides else ir.minimum(at.high - ir.Var(outer) * factor, factor)
        new = substitute(at.body, {var: ir.Var(outer) * factor + ir.Var(inner)})
        chunk = ir.Loop(inner, ir.number(0), size, new, at.kind)
        return [ir.Loop(outer, ir.number(0), ir.number(-(-at.trips // factor)), [chunk])]

    return _change(body, var, change)


def chunk(body: Sequence[ir.Stmt], var: str, factor: int, outer: str = UNIT) -> ir.Body:
    """As `split`, with the variable's own values in the inner loop: `var` from `outer * factor` on."""

    def change(at: ir.Loop) -> list[ir.Stmt]:
        if at.kind in (ir.UNROLLED, ir.PARALLEL) or at.step != 1 or ir.constant_of(at.low) != 0 or at.trips is None:
            raise Refused(f"loop {var} does not count from 0 to a constant, one at a time")
        low = ir.Var(outer) * factor
        high = low + factor if at.trips % factor == 0 else ir.minimum(low + factor, at.high)
        return [ir.Loop(outer, ir.number(0), ir.number(-(-at.trips // factor)), [ir.Loop(var, low, high, at.body, at.kind)])]

    return _change(body, var, change)


def reorder(body: Sequence[ir.Stmt], outer: str, inner: str, trusted: bool = False) -> ir.Body:
    """Two loops, one directly inside the other, change places.

    With `trusted`, the caller knows that their iterations are independent.
    """

    def change(at: ir.Loop) -> list[ir.Stmt]:
        if len(at.body) != 1 or not isinstance(at.body[0], ir.Loop) or at.body[0].var != inner:
            raise Refused(f"loop {inner} is not all that loop {outer} has inside")
        inside = at.body[0]
        if any(isinstance(p, ir.Var) and p.name == outer for v in exprs(inside) for p in expressions(v)):
            raise Refused(f"the bounds of loop {inner} depend on {outer}")
        if ir.PARALLEL in (at.kind, inside.kind):
            raise Refused("a parallel loop stays outermost")
        if not trusted:
            independent(at, reductions=True)
            independent(inside, reductions=True)
        swapped = ir.Loop(at.var, at.low, at.high, inside.body, at.kind, at.step)
        return [ir.Loop(inside.var, inside.low, inside.high, [swapped], inside.kind, inside.step)]

    return _change(body, outer, change)


def tile(body: Sequence[ir.Stmt], outer: str, inner: str, rows: int, columns: int) -> ir.Body:
    """Two loops, one directly inside the other, as loops over tiles and loops inside a tile."""
    for name in (outer, inner):
        # Of the loops as they are: where a tile does not fit, its parts are harder to tell apart.
        independent(find(body, name), reductions=True)
    body = split(body, outer, rows)
    body = split(body, inner, columns)
    return reorder(body, f"{outer}i", f"{inner}o", trusted=True)


def fuse(body: Sequence[ir.Stmt], outer: str, inner: str, name: str) -> ir.Body:
    """Two loops, one directly inside the other, as one over all pairs. The two variables become its digits."""

    def change(at: ir.Loop) -> list[ir.Stmt]:
        if len(at.body) != 1 or not isinstance(at.body[0], ir.Loop) or at.body[0].var != inner:
            raise Refused(f"loop {inner} is not all that loop {outer} has inside")
        inside = at.body[0]
        if inside.trips is None or at.trips is None or any(ir.constant_of(x.low) != 0 or x.step != 1 for x in (at, inside)):
            raise Refused("only loops from 0 to constants become one")
        lets: ir.Body = [ir.Let(outer, ir.Var(name) // inside.trips), ir.Let(inner, ir.Var(name) % inside.trips)]
        return [ir.Loop(name, ir.number(0), ir.number(at.trips * inside.trips), [*lets, *inside.body])]

    return _change(body, outer, change)


# -- vectors -------------------------------------------------------------------------------------------------------------


def lanes(body: Sequence[ir.Stmt], var: str, count: int) -> ir.Body:
    """A loop of constant length, a multiple of `count`, over vectors of `count` lanes.

    Its body has lets and stores of numbers, sums and products alone. It goes through each buffer one by one, or stands still.
    All elements have one size, so that `count` of each fill a vector.
    """

    def change(at: ir.Loop) -> list[ir.Stmt]:
        if at.trips is None or at.trips % count or at.step != 1:
            raise Refused(f"loop {var} does not have a multiple of {count} iterations")
        independent(at, reductions=False)
        wide: dict[str, str] = {}
        new: ir.Body = []
        for stmt in at.body:
            match stmt:
                case ir.Let(name, value, False):
                    value = _widened(value, var, count, wide)
                    wide[name] = value.type
                    new.append(ir.Let(name, value))
                case ir.Store(buffer, index, value, aligned):
                    if stride(index, var) != 1:
                        raise Refused(f"{buffer} is not written one by one along {var}")
                    new.append(ir.Store(buffer, index, _full(_widened(value, var, count, wide), count), aligned))
                case _:
                    raise Refused(f"a {type(stmt).__name__} in loop {var}")
        held = {ir.vector_of(part.type) for stmt in new for value in exprs(stmt) for part in expressions(value)}
        dtypes = {dtype for dtype, width in held if width > 1}
        without = sorted(dtypes - VECTORS.keys())
        if without or len({SIZES[dtype] for dtype in dtypes}) > 1:
            raise Refused(f"there are no vectors of {', '.join(without) or ' beside '.join(sorted(dtypes))}")
        return [ir.Loop(var, at.low, at.high, new, ir.SERIAL, count)]

    return _change(body, var, change)


def _full(value: ir.Expr, count: int) -> ir.Expr:
    return value if ir.vector_of(value.type)[1] == count else ir.splat(value, count)


def _widened(value: ir.Expr, var: str, count: int, wide: dict[str, str]) -> ir.Expr:
    """An expression of `count` iterations at once: a vector, or a scalar where they agree."""
    match value:
        case ir.Var(name):
            if name == var:
                raise Refused(f"the value of {var} itself is used")
            return ir.Var(name, wide.get(name, value.type))
        case ir.Const():
            return value
        case ir.Load(buffer, index, ty, aligned):
            step = stride(index, var)
            if step not in (0, 1):
                raise Refused(f"{buffer} is not read one by one along {var}")
            return ir.Load(buffer, index, ir.vector(ty, count), aligned) if step else value
        case ir.Op(name, args, ty) if OPERATIONS[name].on_vectors(ty) is not None:
            new = [_widened(a, var, count, wide) for a in args]
            if all(ir.vector_of(a.type)[1] == 1 for a in new):
                return ir.Op(name, tuple(new), ty)
            return ir.Op(name, tuple(_full(a, count) for a in new), ir.vector(ty, count))
        case ir.Intrinsic("fma", args, ty):
            return ir.Intrinsic("fma", tuple(_full(_widened(a, var, count, wide), count) for a in args), ir.vector(ty, count))
    raise Refused(f"a {type(value).__name__} has no vector form")


def stride(index: ir.Expr, var: str) -> int | None:
    """The factor of a variable in an index; None where it is not linear in it."""
    if isinstance(index, ir.Var):
        return int(index.name == var)
    inside = [p for p in expressions(index) if isinstance(p, ir.Var) and p.name == var]
    if not inside:
        return 0
    if not isinstance(index, ir.Linear):
        return None
    own = [c for a, c in index.terms if isinstance(a, ir.Var) and a.name == var]
    return own[0] if len(own) == 1 == len(inside) else None


# -- what iterations share ----------------------------------------------------------------------------------------------


def independent(at: ir.Loop, reductions: bool) -> None:
    """Refuse where iterations of a loop touch the same element and one writes it.

    With `reductions`, several may reduce into one element; nothing else reads it.
    """
    inside = list(statements(at.body))
    own = {s.name for s in inside if isinstance(s, (ir.Let, ir.Local))}
    _check_plain(at, inside, own)
    extents = {s.var: None if s.trips is None else s.trips * s.step for s in inside if isinstance(s, ir.Loop)}
    reads, writes, reduced = _accesses(inside, own)
    for buffer in {**writes, **reduced}:
        touched = [*writes.get(buffer, ()), *reads.get(buffer, ()), *reduced.get(buffer, ())]
        only_reduced = buffer in reduced and buffer not in writes and buffer not in reads
        if reductions and only_reduced:
            continue
        same = len({ir.key(i) for i in touched}) == 1 and _injective(touched[0], at.var, extents, own)
        if not same and not _apart(touched, at.var, inside, own):
            verbs = [*["writes"] * len(writes.get(buffer, ())), *["reads"] * len(reads.get(buffer, ())), *["reduces"] * len(touched)]
            places = dict.fromkeys(f"{verb} {buffer}[{render(index)}]" for verb, index in zip(verbs, touched))
            one, other = [*places, *places][:2]
            what = f"one {one}, another {other}" if len(places) > 1 else f"each {one}"
            raise Refused(f"iterations of loop {at.var} may touch the same element of {buffer}: {what}")


def _check_plain(at: ir.Loop, inside: Sequence[ir.Stmt], own: set[str]) -> None:
    """Refuse a loop that calls functions, or whose iterations hand on values."""
    for stmt in inside:
        if isinstance(stmt, ir.Call):
            raise Refused(f"loop {at.var} calls {stmt.name}, which may touch anything")
    for stmt in inside:
        if isinstance(stmt, ir.Assign) and stmt.name not in own:
            raise Refused(f"loop {at.var} carries {stmt.name}")


_Places: TypeAlias = dict[str, list[ir.Expr]]


def _accesses(inside: Sequence[ir.Stmt], own: set[str]) -> tuple[_Places, _Places, _Places]:
    """The indices at which statements read, write and reduce into each buffer that is not their `own`."""
    reads: _Places = {}
    writes: _Places = {}
    reduced: _Places = {}
    for stmt in inside:
        for value in exprs(stmt):
            for part in expressions(value):
                if isinstance(part, ir.Load) and part.buffer not in own:
                    reads.setdefault(part.buffer, []).append(part.index)
        if isinstance(stmt, ir.Store) and stmt.buffer not in own:
            writes.setdefault(stmt.buffer, []).append(stmt.index)
        if isinstance(stmt, ir.Reduce) and stmt.buffer not in own:
            reduced.setdefault(stmt.buffer, []).append(stmt.index)
    return reads, writes, reduced


def _injective(index: ir.Expr, var: str, extents: dict[str, int | None], own: set[str]) -> bool:
    """Whether different values of a variable lead to different places, whatever the loops inside do.

    Where names of the body's `own` are part of the index, that is unknown.
    """
    step = stride(index, var)
    if not step:
        return False
    terms = index.terms if isinstance(index, ir.Linear) else ((index, 1),)
    reach = 0
    for atom, factor in terms:
        if isinstance(atom, ir.Var) and atom.name in extents:
            trips = extents[atom.name]
            if trips is None:
                return False
            reach += abs(factor) * (trips - 1)
        elif not isinstance(atom, ir.Var) or atom.name in own:
            return False
    return abs(step) > reach


def _apart(indices: Sequence[ir.Expr], var: str, inside: Sequence[ir.Stmt], own: set[str]) -> bool:
    """Whether different values of a variable lead to stretches of places that do not overlap, whatever the loops inside do."""
    ranges: dict[str, tuple[int, int]] = {}
    for stmt in inside:
        if isinstance(stmt, ir.Loop):
            low = ir.constant_of(stmt.low)
            if low is None or not stmt.trips or stmt.var in ranges:
                return False
            ranges[stmt.var] = low, low + (stmt.trips - 1) * stmt.step
    steps: set[int] = set()
    outer: set[tuple[tuple[str, int], ...]] = set()
    first: list[int] = []
    last: list[int] = []
    for index in indices:
        terms, low = (index.terms, index.const) if isinstance(index, ir.Linear) else (((index, 1),), 0)
        high = low
        others: list[tuple[str, int]] = []
        own_step = 0
        for atom, factor in terms:
            if not isinstance(atom, ir.Var) or atom.name in own:
                return False
            if atom.name == var:
                own_step = factor
            elif atom.name in ranges:
                ends = sorted(factor * end for end in ranges[atom.name])
                low, high = low + ends[0], high + ends[1]
            else:
                others.append((atom.name, factor))
        steps.add(own_step)
        outer.add(tuple(sorted(others)))
        first.append(low)
        last.append(high)
    return len(steps) == len(outer) == 1 and abs(*steps) > max(last) - min(first)
