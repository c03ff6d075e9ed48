"""Blocks of contractions in registers that hold tiles of bytes: AMX.

A tile has up to 16 rows of 64 bytes. Four tiles of sums hold two blocks of rows by 32 columns. The data of neighbouring
rows lie equally far apart, so a tile is read from where they are. Source: Intel, "Architecture Instruction Set
Extensions Programming Reference", chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from relaylang.kernels import ir
from relaylang.kernels.build import Builder

#: The most rows and bytes of a tile, and the fewest bytes that are worth one.
ROWS, BYTES, _LEAST = 16, 64, 24
#: The columns of a block, and the fewest products of a result. Vectors do shorter sums before tiles are set up.
COLUMNS, DEPTH = 32, 64


def run_of(length: int) -> int:
    """The bytes of a row that are multiplied at once, of `length` neighbours; 0 where they would be few."""
    size = next(n for n in range(min(BYTES, length), 0, -4) if length % n == 0)
    return size if size >= _LEAST else 0


def tile_kernel(name: str, loops: Sequence[tuple[int, int]], length: int, apart: int) -> ir.Function:
    """`name(a, b, w, begin, to, next, step)`: two blocks of rows, at `a` and `b`, times a panel of weights.

    `loops` are the outer loops of the sum: their counts, and their steps in the data. `length` bytes of a row follow each
    other inside, and rows lie `apart` bytes apart. Sums begin with `begin`, and go to `to` and `next`, `step` numbers
    apart.
    """
    run = run_of(length)
    data, weights, sums = "const uint8*", "const int8*", "int32*"
    a, b, w, begin, to, next_ = params = [
        ir.Param(n, t) for n, t in (("a", data), ("b", data), ("w", weights), ("begin", f"const {sums}"), ("to", sums), ("next", sums))
    ]
    step = ir.Param("step", ir.INDEX)
    build = Builder()

    def each(call: str, blocks: Sequence[tuple[int, ir.Param]], stride: ir.Expr) -> None:
        """A call for both halves of the columns of each block, which has two tiles."""
        for number, place in blocks:
            for half in range(2):
                at = ir.address(place, half * COLUMNS // 2, written=place is not begin)
                build.call(call, ir.number(number + half), at, stride)

    each("r_tile_load", [(0, begin), (2, begin)], ir.number(0))
    panel = build.var("panel", ir.address(w, 0))
    with ExitStack() as nest:
        numbers = [nest.enter_context(build.loop(f"l{n}", count)) for n, (count, _) in enumerate(loops)]
        shift = sum((l * stride for l, (_, stride) in zip(numbers, loops)), ir.number(0))
        k = nest.enter_context(build.loop("k", 0, length, step=run))
        build.call("R_TILE_STEP", ir.address(a, shift + k), ir.address(b, shift + k), panel, ir.number(apart))
        build.assign(panel, ir.address(panel, run * COLUMNS))
    each("r_tile_store", [(2, next_), (0, to)], ir.Var("step") * 4)
    return ir.Function(name, [*params, step], build.body)
