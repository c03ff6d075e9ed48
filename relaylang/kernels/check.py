"""The rules of the loop language, each a small function over one statement; tests and rewrites run them.

`check(body, names)` returns the violations as texts. `names` are the buffers and variables that the body is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from relaylang.kernels import ir
from relaylang.kernels.ops import DOTS, INTRINSICS, OPERATIONS
from relaylang.kernels.visit import bodies, expressions, exprs, parts, used


class _Place:
    """The names and loops that a statement stands in."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = set(names)
        self.registers: dict[str, ir.Local] = {}
        self.mutable: set[str] = set()
        #: The variables of the unrolled loops around, with their first and last values.
        self.unrolled: dict[str, tuple[int, int]] = {}
        self.depth = 0


def _names(stmt: ir.Stmt, at: _Place) -> str | None:
    """Every name has a definition before it."""
    unknown = sorted(used(stmt) - at.names)
    return f"undefined: {', '.join(unknown)}" if unknown else None


def _kinds(stmt: ir.Stmt, at: _Place) -> str | None:
    """A loop has a kind and a step forward."""
    if isinstance(stmt, ir.Loop) and (stmt.kind not in ir.KINDS or stmt.step < 1):
        return f"loop {stmt.var}: kind {stmt.kind}, step {stmt.step}"
    return None


def _parallels(stmt: ir.Stmt, at: _Place) -> str | None:
    """A parallel loop is outermost and runs from 0 to a constant, or to a size."""
    known = not isinstance(stmt, ir.Loop) or stmt.trips is not None or isinstance(stmt.high, ir.Extent)
    if isinstance(stmt, ir.Loop) and stmt.kind == ir.PARALLEL and (at.depth or ir.constant_of(stmt.low) != 0 or not known):
        return f"parallel loop {stmt.var} is not outermost, or its bounds are not constant"
    return None


def _unrolls(stmt: ir.Stmt, at: _Place) -> str | None:
    """An unrolled loop has a constant number of iterations."""
    if isinstance(stmt, ir.Loop) and stmt.kind == ir.UNROLLED and stmt.trips is None:
        return f"unrolled loop {stmt.var} has no constant bounds"
    return None


def _registers(stmt: ir.Stmt, at: _Place) -> str | None:
    """An index into registers is constant once loops are unrolled, and inside the array."""
    accesses = [(stmt.buffer, stmt.index)] if isinstance(stmt, (ir.Store, ir.Reduce)) else []
    for value in exprs(stmt):
        for part in expressions(value):
            if isinstance(part, ir.Address) and part.buffer in at.registers:
                return f"{part.buffer} is in registers and has no address"
            if isinstance(part, ir.Load):
                accesses.append((part.buffer, part.index))
    for buffer, index in accesses:
        if buffer not in at.registers:
            continue
        free = {p.name for p in expressions(index) if isinstance(p, ir.Var)} - at.unrolled.keys()
        if free:
            return f"{buffer} is in registers; its index has {', '.join(sorted(free))}"
        low, high = _span(index, at.unrolled)
        if low < 0 or high >= at.registers[buffer].size:
            return f"{buffer}[{low}..{high}] leaves the array"
    return None


def _span(index: ir.Expr, ranges: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """The least and the greatest value of an index that is linear; (0, 0) of others."""
    if isinstance(index, ir.Var):
        return ranges[index.name]
    if not isinstance(index, ir.Linear) or not all(isinstance(a, ir.Var) for a, _ in index.terms):
        return 0, 0
    ends = [sorted(c * v for v in ranges[a.name]) for a, c in index.terms]  # type: ignore[attr-defined]
    return index.const + sum(e[0] for e in ends), index.const + sum(e[1] for e in ends)


def _whole(ty: str) -> bool:
    return ty == ir.INDEX or (ty.startswith(("int", "uint")) and not ty.endswith("*"))


def _types(stmt: ir.Stmt, at: _Place) -> str | None:
    """Indices and their parts are whole numbers, and so are the bounds of loops."""
    for value in exprs(stmt):
        for part in expressions(value):
            for atom in parts(part) if isinstance(part, ir.Linear) else ():
                if not _whole(atom.type):
                    return f"an index is computed from a value of the type {atom.type}"
    if isinstance(stmt, ir.Loop):
        for bound in (stmt.low, stmt.high):
            if not _whole(bound.type):
                return f"loop {stmt.var} has a bound of the type {bound.type}"
    wrong = [
        p for v in exprs(stmt) for p in expressions(v) if isinstance(p, ir.Load) and p.index.type not in (ir.INDEX, "int64", "int32")
    ]
    if isinstance(stmt, (ir.Store, ir.Reduce)) and stmt.index.type not in (ir.INDEX, "int64", "int32"):
        return f"the index of {stmt.buffer} is of the type {stmt.index.type}"
    return f"the index of {wrong[0].buffer} is of the type {wrong[0].index.type}" if wrong else None


def _factors(dot: ir.Intrinsic) -> list[tuple[str, int]]:
    """The types that a sum of products of neighbours takes."""
    left, right, steps = DOTS[dot.name]
    dtype, lanes = ir.vector_of(dot.type)
    return [(left, lanes * steps), (right, lanes * steps), (dtype, lanes)]


def _lanes(stmt: ir.Stmt, at: _Place) -> str | None:
    """The operands of an intrinsic are as many, and as wide, as it takes."""
    for value in exprs(stmt):
        for part in expressions(value):
            if isinstance(part, ir.Intrinsic):
                if INTRINSICS.get(part.name) not in (0, len(part.args)):
                    return f"the intrinsic {part.name} with {len(part.args)} operands"
                if part.name == "fma" and len({ir.vector_of(a.type) for a in part.args}) != 1:
                    return f"fma of {', '.join(a.type for a in part.args)}"
                if part.name in DOTS and [ir.vector_of(a.type) for a in part.args] != _factors(part):
                    return f"{part.name} of {', '.join(a.type for a in part.args)}"
    return None


def _operations(stmt: ir.Stmt, at: _Place) -> str | None:
    """An operation is one of the table's."""
    names = [p.name for v in exprs(stmt) for p in expressions(v) if isinstance(p, ir.Op)]
    names += [stmt.op] if isinstance(stmt, ir.Reduce) else []
    unknown = [name for name in names if name not in OPERATIONS]
    return f"no operation is called {unknown[0]}" if unknown else None


def _assigned(stmt: ir.Stmt, at: _Place) -> str | None:
    """Only a mutable name gets another value."""
    if isinstance(stmt, ir.Assign) and stmt.name not in at.mutable:
        return f"{stmt.name} is not mutable"
    return None


#: The rules, in the order of their messages.
RULES: tuple[Callable[[ir.Stmt, _Place], str | None], ...] = (
    _names,
    _kinds,
    _parallels,
    _unrolls,
    _registers,
    _types,
    _lanes,
    _operations,
    _assigned,
)


Report = Callable[[ir.Stmt, str], None]


def check(body: Sequence[ir.Stmt], names: Collection[str] = (), report: Report = lambda stmt, text: None) -> list[str]:
    """The violations of a stage's or a function's statements. `report` is called with the statement of each."""
    violations: list[str] = []

    def violation(stmt: ir.Stmt, text: str) -> None:
        violations.append(text)
        report(stmt, text)

    _check(body, _Place(names), violation)
    parallels = [s for s in body if isinstance(s, ir.Loop) and s.kind == ir.PARALLEL]
    for stmt in parallels[1:2]:
        violation(stmt, "a stage has one parallel loop")
    return violations


def check_function(function: ir.Function, names: Collection[str] = ()) -> list[str]:
    """The violations of a function."""
    return check(function.body, {*names, *(p.name for p in function.params)})


def _check(body: Sequence[ir.Stmt], at: _Place, violation: Report) -> None:
    new: list[str] = []

    def define(name: str) -> None:
        if name not in at.names:
            at.names.add(name)
            new.append(name)

    for stmt in body:
        for rule in RULES:
            if (text := rule(stmt, at)) is not None:
                violation(stmt, text)
        match stmt:
            case ir.Let(name, _, mutable):
                define(name)
                (at.mutable.add if mutable else at.mutable.discard)(name)
            case ir.Local(name):
                define(name)
                if stmt.space == ir.REGISTERS:
                    at.registers[name] = stmt
                else:
                    at.registers.pop(name, None)
        known = isinstance(stmt, ir.Loop) and stmt.var not in at.names
        if isinstance(stmt, ir.Loop):
            at.names.add(stmt.var)
            if stmt.kind == ir.UNROLLED and stmt.trips:
                low = ir.constant_of(stmt.low) or 0
                at.unrolled[stmt.var] = low, low + (stmt.trips - 1) * stmt.step
        at.depth += 1
        for inner in bodies(stmt):
            _check(inner, at, violation)
        at.depth -= 1
        if isinstance(stmt, ir.Loop):
            at.unrolled.pop(stmt.var, None)
            if known:
                at.names.discard(stmt.var)
    at.names.difference_update(new)
