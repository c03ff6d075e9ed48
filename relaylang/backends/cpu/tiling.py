"""The cuts of a contraction: results in registers, the part of the sum in the cache, the order of blocks.

`choose` weighs every block that fits the registers. It counts cycles of multiply-adds, loads, latency, and of a block's
beginning and end. The figures are those of x86 cores since 2015. They agree with measurements on Zen 3 and Sapphire
Rapids, and other machines prefer the same shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.schedule_space import Space
from relaylang.kernels.sizes import Size, usual

#: Bytes of a panel of weights that stay in the first cache.
_PANEL = 16_384
#: Bytes of operands that stay in the second cache.
SECOND_CACHE = 400_000
#: Fewer units of work than this leave threads without any.
_UNITS = 8
#: The most rows of results that one unit of work takes, and of its block of memory (bytes).
_ROWS, _BLOCK = 96, 24_576


#: How many vectors a block may be wide.
WIDTHS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Costs:
    """The constants of `choose`. `benchmarks/fit_tiling.py` fits them to measurements.

    A core begins `fmas` vector multiply-adds and `loads` loads in a cycle, and reads `second` bytes from its second cache.
    `latency` are the cycles from a multiply-add to one that needs its result, and one to spare. Further cycles are those of
    each load (`load`), of a block's beginning and end (`block`), and of each vector of its results (`store`).
    """

    fmas: float = 2
    loads: float = 2
    latency: float = 5
    second: float = 24
    load: float = 0.05
    block: float = 30
    store: float = 2


COSTS = Costs()


@dataclass(frozen=True)
class Tiling:
    """A block of `vectors` of columns by `rows` rows, in registers.

    A line has `tiles` blocks: the first `full` of `rows` rows, the others of `less` rows. They are shared out to `segments`
    evenly. A line whose length is a size has up to `blocks` for each segment, and the last block has the rows that are left. A
    unit of work takes a segment, or `lines` whole lines. The sum is taken in parts of about `part` steps.
    """

    vectors: int
    rows: int
    tiles: int
    full: int
    segments: int
    lines: int
    part: int
    less: int
    blocks: int | None = None

    @property
    def sizes(self) -> list[int]:
        """The rows of the blocks that a line has."""
        if self.full == self.tiles:
            return [self.rows]
        return [self.rows, self.less] if self.blocks is None else powers(self.rows)

    @property
    def most(self) -> int:
        """The most rows of a segment."""
        return (-(-self.tiles // self.segments) if self.blocks is None else self.blocks) * self.rows


def powers(rows: int) -> list[int]:
    """Some rows, and the powers of two below, down to one. Any number below `rows` is a sum of different ones."""
    return [rows, *(1 << n for n in reversed(range((rows - 1).bit_length())))]


def _step(isa: Isa, vectors: int, size: int, costs: Costs) -> float:
    """The cycles of one step of the sum."""
    loads = (size + vectors) / costs.loads
    weights = vectors * isa.lanes * 4 / costs.second
    busy = max(size * vectors / costs.fmas, loads * 1.1, weights, costs.latency)
    return busy + costs.load * loads


@cache
def choose(
    isa: Isa, columns: int, length: int, lines: int, depth: int, widths: tuple[int, ...] = WIDTHS, costs: Costs = COSTS
) -> Tiling:
    """The cheapest cut of `columns` by `lines` of `length` results, each a sum of `depth` steps."""
    best: tuple[float, int] | None = None
    best_cut = (1, 1)
    for vectors in widths:
        blocks = -(-columns // (vectors * isa.lanes))
        for size in range(1, min(length, (isa.registers - 1) // vectors - 1) + 1):
            tiles = -(-length // size)
            rows = -(-length // tiles)
            full = length - tiles * (rows - 1)
            work = full * _step(isa, vectors, rows, costs) + (tiles - full) * _step(isa, vectors, rows - 1, costs)
            cost = blocks * (depth * work + costs.block * tiles + costs.store * length * vectors)
            if best is None or (cost, -rows * vectors) < best:
                best, best_cut = (cost, -rows * vectors), (vectors, rows)
    width = best_cut[0] * isa.lanes
    parts = max(1, round(depth / max(256, _PANEL // (4 * width))))
    return cut(isa, length, lines, *best_cut, -(-depth // parts))


def cut(isa: Isa, length: int, lines: int, vectors: int, rows: int, part: int) -> Tiling:
    """The cut with a block of `vectors` by about `rows`, and parts of `part` steps."""
    most = min(_ROWS, _BLOCK // (4 * vectors * isa.lanes))
    if isinstance(length, Size):
        # Rows that do not fill a block are the last block, in smaller ones.
        tiles, blocks = -(-length // rows), max(1, most // rows)
        return Tiling(vectors, rows, tiles, length // rows, -(-tiles // blocks), 1, part, 1, blocks)
    tiles = -(-length // rows)
    rows = -(-length // tiles)
    most = max(rows, most)
    segments = -(-tiles // (most // rows))
    many = max(1, most // length) if segments == 1 else 1
    if not isinstance(lines, Size):
        many = -(-lines // -(-lines // many))
    return Tiling(vectors, rows, tiles, length - tiles * (rows - 1), segments, many, part, rows - 1)


def block(space: Space, isa: Isa, best: Tiling, length: int) -> tuple[int, int]:
    """The vectors and rows of a block that a schedule asks for; by default those of `best`."""
    vectors = space.pick("vectors", WIDTHS, best.vectors)
    limit = min(usual(length), (isa.registers - 1) // vectors - 1)
    return vectors, space.pick("rows", range(1, limit + 1), min(best.rows, limit))


def picked(space: Space, isa: Isa, columns: int, length: int, lines: int, depth: int, widths: tuple[int, ...] = WIDTHS) -> Tiling:
    """The cut that a schedule asks for; by default `choose`'s."""
    best = choose(isa, usual(columns), usual(length), usual(lines), depth, widths)
    vectors, rows = block(space, isa, best, length)
    part = space.pick("part", (64, 128, 256, 512, 1024), best.part)
    tiling = cut(isa, length, lines, vectors, rows, part)
    return _shared_out(tiling, -(-columns // (vectors * isa.lanes)), lines)


def _shared_out(tiling: Tiling, blocks: int, lines: int) -> Tiling:
    """The same with enough units of work for a few threads, where there are tiles for them."""
    units = usual(blocks * (-(-lines // tiling.lines) if tiling.segments == 1 else lines * tiling.segments))
    if units >= _UNITS or tiling.blocks is not None:
        return tiling
    more = -(-_UNITS // units)
    if tiling.lines > 1:
        return replace(tiling, lines=max(1, tiling.lines // more))
    return replace(tiling, segments=min(tiling.tiles, tiling.segments * more))


def weights_first(weights: int, data: int, segments: int, blocks: int) -> bool:
    """Whether each panel of weights should stay in the cache while all data pass, rather than the reverse.

    `weights` and `data` are bytes of the operands, cut into `blocks` panels and `segments`.
    """
    stay_data = data + (weights if weights < SECOND_CACHE else weights * segments)
    stay_weights = weights + (data if data < SECOND_CACHE else data * blocks)
    return stay_weights < stay_data
