"""The schedule of plain loop nests: the order of the loops, tiles, units of work, each a knob."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

from relaylang.kernels.ir import VECTOR, Body, Loop, constant_of
from relaylang.kernels.rewrites import Refused, independent, parallelise, reorder, tile

#: The iterations of a unit of work, where a lone loop is cut into units.
UNITS = (256, 1024, 4096, 16384)
UNIT = 1024
#: The edges of a tile of the two innermost loops; 0 makes none.
TILES = (0, 8, 16, 32, 64)
#: Nests of more loops have no knob for their order.
_ORDERED = 4

Pick = Callable[[str, Sequence, object], object]


def perfect(body: Body) -> list[Loop]:
    """The loops of a nest that has nothing between its loops, from outside in; none for other bodies."""
    out: list[Loop] = []
    while len(body) == 1 and isinstance(body[0], Loop):
        out.append(body[0])
        body = body[0].body
    return [] if any(isinstance(s, Loop) for s in body) else out


def _free(loops: Sequence[Loop]) -> bool:
    """Whether the loops may run in any order."""
    try:
        for loop in loops:
            if loop.trips is None or constant_of(loop.low) != 0:
                return False
            independent(loop, reductions=True)
    except Refused:
        return False
    return len(loops) > 1


def _ordered(body: Body, wanted: Sequence[str]) -> Body:
    """The nest with its loops, which may run in any order, in this one: by swaps of neighbours.

    After a swap, the rewrite alone could no longer tell that iterations share nothing.
    """
    for place, name in enumerate(wanted):
        loops = [loop.var for loop in perfect(body)]
        for n in range(loops.index(name), place, -1):
            body = reorder(body, loops[n - 1], name, trusted=True)
            loops[n - 1], loops[n] = loops[n], loops[n - 1]
    return body


def _vector_inside(body: Body) -> Body:
    """The nest with the mark of its vector loop on the innermost one."""
    loops = perfect(body)
    if not any(loop.kind == VECTOR for loop in loops):
        return body
    inner: Body = loops[-1].body
    for n, loop in enumerate(reversed(loops)):
        inner = [Loop(loop.var, loop.low, loop.high, inner, "serial" if n else VECTOR, loop.step)]
    return inner


def _tiled(body: Body, outer: str, inner: str, edge: int) -> Body | None:
    """The nest with tiles of its two innermost loops; None where its order does not allow them."""
    try:
        return _vector_inside(tile(body, outer, inner, edge, edge))
    except Refused:
        return None


def nest(body: Body, pick: Pick, trusted: bool) -> Body:
    """A stage of a nest. With `trusted`, the outermost loop's iterations share nothing, whatever can be seen of them."""
    loops = perfect(body)
    if 1 < len(loops) <= _ORDERED and _free(loops):
        names = [loop.var for loop in loops]
        orders = [" ".join(p) for p in permutations(names)]
        order = str(pick("order", orders, orders[0])).split()
        if order != names:
            body = _vector_inside(_ordered(body, order))
        tiles = {edge: tiled for edge in TILES[1:] if (tiled := _tiled(body, order[-2], order[-1], edge)) is not None}
        edge = int(pick("tile", (0, *tiles), 0)) if tiles else 0  # type: ignore[call-overload]
        body = tiles.get(edge, body)
    outer = next((s for s in body if isinstance(s, Loop)), None)
    if outer is None or outer.trips is None or constant_of(outer.low) != 0:
        return body
    unit = 1
    if not any(isinstance(s, Loop) for s in outer.body):
        if outer.trips <= UNITS[0]:
            return body
        unit = int(pick("unit", UNITS, UNIT))  # type: ignore[call-overload]
        if outer.trips <= unit:
            return body
    try:
        return parallelise(body, outer.var, unit, trusted)
    except Refused:
        return body
