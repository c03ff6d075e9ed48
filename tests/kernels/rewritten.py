"""Random rewrites and schedules of random kernels: those that are not refused leave what a kernel does as it is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.kernels import halves, ir, rewrites, schedules, visit
from relaylang.kernels.dtypes import SIZES, is_float
from relaylang.kernels.ir import Body, Loop
from relaylang.kernels.rewrites import Refused
from relaylang.kernels.vectors import written_out
from tests.kernels.generator import Generated


def _inside(at: Loop) -> str:
    """The variable of the loop inside a loop."""
    inner = next((s.var for s in at.body if isinstance(s, Loop)), None)
    if inner is None:
        raise Refused("there is no loop inside")
    return inner


def _in_order(at: Loop) -> None:
    """Refuse where a sum of floats would take another order."""
    for stmt in visit.statements([at]):
        if isinstance(stmt, ir.Reduce) and is_float(stmt.value.type):
            raise Refused("floats are summed in their order")


def _reordered(body: Body, at: Loop, rng: random.Random) -> Body:
    _in_order(at)
    return rewrites.reorder(body, at.var, _inside(at))


def _tiled(body: Body, at: Loop, rng: random.Random) -> Body:
    _in_order(at)
    return rewrites.tile(body, at.var, _inside(at), rng.randint(1, 4), rng.randint(1, 4))


def _scheduled(body: Body, at: Loop, rng: random.Random) -> Body:
    _in_order(at)
    found = schedules.nest([at], lambda name, choices, usual: rng.choice(choices), False)
    if any(isinstance(s, Loop) and s.kind == ir.PARALLEL for s in found) and (len(body) > 1 or at.kind == ir.PARALLEL):
        raise Refused("a stage has one parallel loop")
    return [part for stmt in body for part in (found if stmt is at else [stmt])]


def _in_lanes(body: Body, at: Loop, size: int) -> Body:
    """A loop over elements of a size, in vectors of 8 float32."""
    if any(isinstance(s, ir.Store) and SIZES[ir.vector_of(s.value.type)[0]] != size for s in at.body):
        raise Refused("elements of another size")
    return rewrites.lanes(body, at.var, 32 // size)


#: Rewrites of a loop by their names.
REWRITES: dict[str, Callable[[Body, Loop, random.Random], Body]] = {
    "serial": lambda body, at, rng: rewrites.serial(body, at.var) if at.kind != ir.PARALLEL else _refused(),
    "unroll": lambda body, at, rng: rewrites.unroll(body, at.var) if at.kind != ir.PARALLEL else _refused(),
    "vectorise": lambda body, at, rng: rewrites.vectorise(body, at.var) if at.kind != ir.PARALLEL else _refused(),
    "parallelise": lambda body, at, rng: rewrites.parallelise(body, at.var, rng.randint(1, 3)) if len(body) == 1 else _refused(),
    "split": lambda body, at, rng: rewrites.split(body, at.var, rng.randint(1, 4)),
    "chunk": lambda body, at, rng: rewrites.chunk(body, at.var, rng.randint(1, 4), f"{at.var}c"),
    "reorder": _reordered,
    "tile": _tiled,
    "fuse": lambda body, at, rng: rewrites.fuse(body, at.var, _inside(at), f"{at.var}f"),
    "lanes 32": lambda body, at, rng: _in_lanes(body, at, 4),
    "lanes 64": lambda body, at, rng: _in_lanes(body, at, 8),
    "schedule": _scheduled,
}


def _refused() -> Body:
    raise Refused("not of this loop")


def steps(k: Generated, lanes: int) -> list[tuple[str, Body]]:
    """A kernel's statements after each of some rewrites, with their names."""
    rng = random.Random(k.seed)
    out: list[tuple[str, Body]] = []
    body = k.body
    for _ in range(rng.randint(2, 8)):
        loops = [s for s in visit.statements(body) if isinstance(s, Loop)]
        if not loops:
            break
        name, at = rng.choice([n for n in REWRITES if "lanes" not in n or lanes == 8]), rng.choice(loops)
        try:
            body = REWRITES[name](body, at, rng)
        except Refused:
            continue
        out.append((f"{name} {at.var}", body))
    if rng.random() < 0.5:
        out.append(("folded", visit.folded(body)))
    for name, change in _machine(lanes):
        found = change(out[-1][1] if out else body)
        out.append((name, found))
    return out


def _machine(lanes: int) -> Sequence[tuple[str, Callable[[Body], Any]]]:
    """What the pipeline makes of the statements for a machine with vectors."""
    return [("blocked", halves.blocked), ("written out", lambda body: written_out(body, lanes))] if lanes else []


def units(body: Body, k: Generated) -> int:
    """The units of a kernel's parallel loop after rewrites."""
    loop = visit.parallel(body)
    return k.units if loop is None or loop.trips is None else loop.trips
