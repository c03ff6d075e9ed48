"""Schedules: functions from statements to statements, each for one loop, found by its variable.

A rewrite checks what it needs and raises `Refused` where the result could differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylang.kernels.ir import (
    PARALLEL,
    SERIAL,
    UNROLLED,
    VECTOR,
    Assign,
    Body,
    Call,
    Const,
    Expr,
    Intrinsic,
    Let,
    Linear,
    Load,
    Local,
    Loop,
    Op,
    Reduce,
    Stmt,
    Store,
    Var,
    constant_of,
    key,
    minimum,
    number,
    splat,
    vector,
    vector_of,
)
from relaylang.kernels.ops import OPERATIONS
from relaylang.kernels.render import render
from relaylang.kernels.visit import bodies, expressions, exprs, rebuilt, statements, substitute

#: The variable of a loop over units.
UNIT = "u"


class Refused(Exception):
    """A rewrite would change what the loops do, or cannot tell."""


def find(body: Sequence[Stmt], var: str) -> Loop:
    """The loop of a variable. Raises `Refused` where there is none, or more than one."""
    found = [s for s in statements(body) if isinstance(s, Loop) and s.var == var]
    if len(found) != 1:
        raise Refused(f"{len(found)} loops over {var}")
    return found[0]


def _replaced(body: Sequence[Stmt], old: Stmt, new: Sequence[Stmt]) -> Body:
    out: Body = []
    for stmt in body:
        if stmt is old:
            out += new
        elif bodies(stmt):
            out.append(rebuilt(stmt, lambda e: e, lambda inner: _replaced(inner, old, new)))
        else:
            out.append(stmt)
    return out


def _change(body: Sequence[Stmt], var: str, change: Callable[[Loop], Sequence[Stmt]]) -> Body:
    old = find(body, var)
    return _replaced(body, old, change(old))


# -- marks ---------------------------------------------------------------------------------------------------------------


def serial(body: Sequence[Stmt], var: str) -> Body:
    """A loop without any mark."""
    return _change(body, var, lambda at: [Loop(at.var, at.low, at.high, at.body, SERIAL, at.step)])


def unroll(body: Sequence[Stmt], var: str) -> Body:
    """A loop of constant length, written out."""

    def change(at: Loop) -> list[Stmt]:
        if at.trips is None:
            raise Refused(f"the length of loop {var} is not constant")
        return [Loop(at.var, at.low, at.high, at.body, UNROLLED, at.step)]

    return _change(body, var, change)


def vectorise(body: Sequence[Stmt], var: str, trusted: bool = False) -> Body:
    """A loop whose iterations the C compiler may run side by side: none reads or writes what another writes.

    With `trusted`, the caller knows that they do not.
    """

    def change(at: Loop) -> list[Stmt]:
        if any(bodies(s) for s in at.body):
            raise Refused(f"loop {var} has loops or conditions inside")
        if not trusted:
            independent(at, reductions=False)
        return [Loop(at.var, at.low, at.high, at.body, VECTOR, at.step)]

    return _change(body, var, change)


def parallelise(body: Sequence[Stmt], var: str, unit: int = 1, trusted: bool = False) -> Body:
    """An outermost loop whose iterations may run on several threads, `unit` iterations at a time.

    With `trusted`, the caller knows that the iterations share nothing.
    """

    def change(at: Loop) -> list[Stmt]:
        if not any(s is at for s in body):
            raise Refused(f"loop {var} is not outermost")
        if constant_of(at.low) != 0 or at.trips is None or at.step != 1:
            raise Refused(f"loop {var} does not count from 0 to a constant")
        if not trusted:
            independent(at, reductions=False)
        if unit == 1:
            return [Loop(at.var, at.low, at.high, at.body, PARALLEL)]
        units = find(chunk([at], var, unit), UNIT)
        return [Loop(units.var, units.low, units.high, units.body, PARALLEL)]

    return _change(body, var, change)


# -- shapes --------------------------------------------------------------------------------------------------------------


def split(body: Sequence[Stmt], var: str, factor: int, outer: str = "", inner: str = "") -> Body:
    """A loop as a loop over chunks of `factor` iterations, and one over a chunk's."""
    outer, inner = outer or f"{var}o", inner or f"{var}i"

    def change(at: Loop) -> list[Stmt]:
        if at.kind in (UNROLLED, PARALLEL) or at.step != 1 or constant_of(at.low) != 0 or at.trips is None:
            raise Refused(f"loop {var} does not count from 0 to a constant, one at a time")
        whole = at.trips % factor == 0
        size: Expr = number(factor) if whole else minimum(at.high - Var(outer) * factor, factor)
        new = substitute(at.body, {var: Var(outer) * factor + Var(inner)})
        chunk = Loop(inner, number(0), size, new, at.kind)
        return [Loop(outer, number(0), number(-(-at.trips // factor)), [chunk])]

    return _change(body, var, change)


def chunk(body: Sequence[Stmt], var: str, factor: int, outer: str = UNIT) -> Body:
    """As `split`, with the variable's own values in the inner loop: `var` from `outer * factor` on."""

    def change(at: Loop) -> list[Stmt]:
        if at.kind in (UNROLLED, PARALLEL) or at.step != 1 or constant_of(at.low) != 0 or at.trips is None:
            raise Refused(f"loop {var} does not count from 0 to a constant, one at a time")
        low = Var(outer) * factor
        high = low + factor if at.trips % factor == 0 else minimum(low + factor, at.high)
        return [Loop(outer, number(0), number(-(-at.trips // factor)), [Loop(var, low, high, at.body, at.kind)])]

    return _change(body, var, change)


def reorder(body: Sequence[Stmt], outer: str, inner: str, trusted: bool = False) -> Body:
    """Two loops, one directly inside the other, change places.

    With `trusted`, the caller knows that their iterations are independent.
    """

    def change(at: Loop) -> list[Stmt]:
        if len(at.body) != 1 or not isinstance(at.body[0], Loop) or at.body[0].var != inner:
            raise Refused(f"loop {inner} is not all that loop {outer} has inside")
        inside = at.body[0]
        if any(isinstance(p, Var) and p.name == outer for v in exprs(inside) for p in expressions(v)):
            raise Refused(f"the bounds of loop {inner} depend on {outer}")
        if PARALLEL in (at.kind, inside.kind):
            raise Refused("a parallel loop stays outermost")
        if not trusted:
            independent(at, reductions=True)
            independent(inside, reductions=True)
        swapped = Loop(at.var, at.low, at.high, inside.body, at.kind, at.step)
        return [Loop(inside.var, inside.low, inside.high, [swapped], inside.kind, inside.step)]

    return _change(body, outer, change)


def tile(body: Sequence[Stmt], outer: str, inner: str, rows: int, columns: int) -> Body:
    """Two loops, one directly inside the other, as loops over tiles and loops inside a tile."""
    for name in (outer, inner):
        # Of the loops as they are: where a tile does not fit, its parts are harder to tell apart.
        independent(find(body, name), reductions=True)
    body = split(body, outer, rows)
    body = split(body, inner, columns)
    return reorder(body, f"{outer}i", f"{inner}o", trusted=True)


def fuse(body: Sequence[Stmt], outer: str, inner: str, name: str) -> Body:
    """Two loops, one directly inside the other, as one over all pairs. The two variables become its digits."""

    def change(at: Loop) -> list[Stmt]:
        if len(at.body) != 1 or not isinstance(at.body[0], Loop) or at.body[0].var != inner:
            raise Refused(f"loop {inner} is not all that loop {outer} has inside")
        inside = at.body[0]
        if inside.trips is None or at.trips is None or any(constant_of(x.low) != 0 or x.step != 1 for x in (at, inside)):
            raise Refused("only loops from 0 to constants become one")
        lets: Body = [Let(outer, Var(name) // inside.trips), Let(inner, Var(name) % inside.trips)]
        return [Loop(name, number(0), number(at.trips * inside.trips), [*lets, *inside.body])]

    return _change(body, outer, change)


# -- vectors -------------------------------------------------------------------------------------------------------------


def lanes(body: Sequence[Stmt], var: str, count: int) -> Body:
    """A loop of constant length, a multiple of `count`, over vectors of `count` lanes.

    Its body has lets and stores of numbers, sums and products alone. It goes through each buffer one by one, or stands still.
    """

    def change(at: Loop) -> list[Stmt]:
        if at.trips is None or at.trips % count or at.step != 1:
            raise Refused(f"loop {var} does not have a multiple of {count} iterations")
        independent(at, reductions=False)
        wide: dict[str, str] = {}
        new: Body = []
        for stmt in at.body:
            match stmt:
                case Let(name, value, False):
                    value = _widened(value, var, count, wide)
                    wide[name] = value.type
                    new.append(Let(name, value))
                case Store(buffer, index, value, aligned):
                    if stride(index, var) != 1:
                        raise Refused(f"{buffer} is not written one by one along {var}")
                    new.append(Store(buffer, index, _full(_widened(value, var, count, wide), count), aligned))
                case _:
                    raise Refused(f"a {type(stmt).__name__} in loop {var}")
        return [Loop(var, at.low, at.high, new, SERIAL, count)]

    return _change(body, var, change)


def _full(value: Expr, count: int) -> Expr:
    return value if vector_of(value.type)[1] == count else splat(value, count)


def _widened(value: Expr, var: str, count: int, wide: dict[str, str]) -> Expr:
    """An expression of `count` iterations at once: a vector, or a scalar where they agree."""
    match value:
        case Var(name):
            if name == var:
                raise Refused(f"the value of {var} itself is used")
            return Var(name, wide.get(name, value.type))
        case Const():
            return value
        case Load(buffer, index, ty, aligned):
            step = stride(index, var)
            if step not in (0, 1):
                raise Refused(f"{buffer} is not read one by one along {var}")
            return Load(buffer, index, vector(ty, count), aligned) if step else value
        case Op(name, args, ty) if OPERATIONS[name].on_vectors(ty) is not None:
            new = [_widened(a, var, count, wide) for a in args]
            if all(vector_of(a.type)[1] == 1 for a in new):
                return Op(name, tuple(new), ty)
            return Op(name, tuple(_full(a, count) for a in new), vector(ty, count))
        case Intrinsic("fma", args, ty):
            return Intrinsic("fma", tuple(_full(_widened(a, var, count, wide), count) for a in args), vector(ty, count))
    raise Refused(f"a {type(value).__name__} has no vector form")


def stride(index: Expr, var: str) -> int | None:
    """The factor of a variable in an index; None where it is not linear in it."""
    if isinstance(index, Var):
        return int(index.name == var)
    inside = [p for p in expressions(index) if isinstance(p, Var) and p.name == var]
    if not inside:
        return 0
    if not isinstance(index, Linear):
        return None
    own = [c for a, c in index.terms if isinstance(a, Var) and a.name == var]
    return own[0] if len(own) == 1 == len(inside) else None


# -- what iterations share ----------------------------------------------------------------------------------------------


def independent(at: Loop, reductions: bool) -> None:
    """Refuse where iterations of a loop touch the same element and one writes it.

    With `reductions`, several may reduce into one element; nothing else reads it.
    """
    inside = list(statements(at.body))
    for stmt in inside:
        if isinstance(stmt, Call):
            raise Refused(f"loop {at.var} calls {stmt.name}, which may touch anything")
    own = {s.name for s in inside if isinstance(s, (Let, Local))}
    extents = {s.var: None if s.trips is None else s.trips * s.step for s in inside if isinstance(s, Loop)}
    reads: dict[str, list[Expr]] = {}
    writes: dict[str, list[Expr]] = {}
    reduced: dict[str, list[Expr]] = {}
    for stmt in inside:
        if isinstance(stmt, Assign) and stmt.name not in own:
            raise Refused(f"loop {at.var} carries {stmt.name}")
        for value in exprs(stmt):
            for part in expressions(value):
                if isinstance(part, Load) and part.buffer not in own:
                    reads.setdefault(part.buffer, []).append(part.index)
        if isinstance(stmt, Store) and stmt.buffer not in own:
            writes.setdefault(stmt.buffer, []).append(stmt.index)
        if isinstance(stmt, Reduce) and stmt.buffer not in own:
            reduced.setdefault(stmt.buffer, []).append(stmt.index)
    for buffer in {**writes, **reduced}:
        touched = [*writes.get(buffer, ()), *reads.get(buffer, ()), *reduced.get(buffer, ())]
        only_reduced = buffer in reduced and buffer not in writes and buffer not in reads
        if reductions and only_reduced:
            continue
        same = len({key(i) for i in touched}) == 1 and _injective(touched[0], at.var, extents, own)
        if not same and not _apart(touched, at.var, inside, own):
            verbs = [*["writes"] * len(writes.get(buffer, ())), *["reads"] * len(reads.get(buffer, ())), *["reduces"] * len(touched)]
            places = dict.fromkeys(f"{verb} {buffer}[{render(index)}]" for verb, index in zip(verbs, touched))
            one, other = [*places, *places][:2]
            what = f"one {one}, another {other}" if len(places) > 1 else f"each {one}"
            raise Refused(f"iterations of loop {at.var} may touch the same element of {buffer}: {what}")


def _injective(index: Expr, var: str, extents: dict[str, int | None], own: set[str]) -> bool:
    """Whether different values of a variable lead to different places, whatever the loops inside do.

    Where names of the body's `own` are part of the index, that is unknown.
    """
    step = stride(index, var)
    if not step:
        return False
    terms = index.terms if isinstance(index, Linear) else ((index, 1),)
    reach = 0
    for atom, factor in terms:
        if isinstance(atom, Var) and atom.name in extents:
            trips = extents[atom.name]
            if trips is None:
                return False
            reach += abs(factor) * (trips - 1)
        elif not isinstance(atom, Var) or atom.name in own:
            return False
    return abs(step) > reach


def _apart(indices: Sequence[Expr], var: str, inside: Sequence[Stmt], own: set[str]) -> bool:
    """Whether different values of a variable lead to stretches of places that do not overlap, whatever the loops inside do."""
    ranges: dict[str, tuple[int, int]] = {}
    for stmt in inside:
        if isinstance(stmt, Loop):
            low = constant_of(stmt.low)
            if low is None or not stmt.trips or stmt.var in ranges:
                return False
            ranges[stmt.var] = low, low + (stmt.trips - 1) * stmt.step
    steps: set[int] = set()
    outer: set[tuple[tuple[str, int], ...]] = set()
    first: list[int] = []
    last: list[int] = []
    for index in indices:
        terms, low = (index.terms, index.const) if isinstance(index, Linear) else (((index, 1),), 0)
        high = low
        others: list[tuple[str, int]] = []
        own_step = 0
        for atom, factor in terms:
            if not isinstance(atom, Var) or atom.name in own:
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
