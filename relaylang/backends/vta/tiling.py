"""Tiles of a layer: how many channels, rows and columns of the output are computed at a time, and in which order.

Each memory has two halves, one in use while the other is filled (virtual threads). A tile must fit into a half. Among those
that fit, the one with the least estimated cycles is chosen: units overlap, so that the slower of computing and DRAM counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.layers.steps import Gemm, Layer, Pool
from relaylang.backends.vta.layout import View, view_of
from relaylang.diagnostics.unsupported import Unsupported

#: The cycles that an instruction takes beside its turns.
OVERHEAD = 8
#: The parts in which the first tile of a layer is loaded and the last one is stored, so that units wait less.
PARTS = 4
#: The cycles of a step for each tile of sums, by its operand: one with a number, two with a second tile.
_STEP_CYCLES = {"vec": 2, "slot": 2, "imm": 1, "": 1}
#: The most turns of a loop, and rows or columns of a transfer.
_MOST_TURNS = (1 << 14) - 1


class Tiling(NamedTuple):
    """Blocks of channels, rows and columns of a tile, and for each product the blocks of input channels at a time.

    With `by_channels` the tiles of the same channels follow each other, so that their weights may stay.
    """

    channels: int
    height: int
    width: int
    inputs: tuple[int, ...]
    by_channels: bool


class Tile(NamedTuple):
    """A tile of the output: its group, and the ranges of blocks, rows and columns."""

    group: int
    channels: range
    rows: range
    columns: range

    @property
    def pixels(self) -> int:
        return len(self.rows) * len(self.columns)


def tiles_of(view: View, tiling: Tiling) -> list[Tile]:
    """The tiles of a tensor in the order in which they are computed."""

    def ranges(count: int, size: int) -> list[range]:
        return [range(first, min(first + size, count)) for first in range(0, count, size)]

    rows, columns = ranges(view.height, tiling.height), ranges(view.width, tiling.width)
    tiles = [
        Tile(group, blocks, y, x)
        for blocks in ranges(view.blocks, tiling.channels)
        for group in range(view.groups)
        for y in rows
        for x in columns
    ]
    return tiles if tiling.by_channels else sorted(tiles, key=lambda t: (t.group, t.rows[0], t.columns[0], t.channels[0]))


def input_tile(part: Gemm | Pool, height: int, width: int) -> tuple[int, int]:
    """The rows and columns of the input that a tile needs. A product with windows of one row leaves out rows between."""
    (rows, columns), (down, across), _, dilation = part.window
    down = 1 if isinstance(part, Gemm) and rows == 1 else down
    return (height - 1) * down + (rows - 1) * dilation[0] + 1, (width - 1) * across + (columns - 1) * dilation[1] + 1


def choose(layer: Layer, config: Config) -> Tiling:
    """The best tiling of a layer. Raises `Unsupported` where no tile fits."""
    view = view_of(layer.shape, config.batch, config.block_out)
    deep = [len(gemm.sources(config.block_in, config.block_out)[0]) for gemm in layer.gemms]
    best = min(_candidates(layer, view, deep, config), key=lambda tiling: _cost(layer, view, tiling, deep, config), default=None)
    if best is None:
        raise Unsupported(f"no tile of it fits the memories of {config}")
    return best


def _parts(count: int) -> list[int]:
    """The sizes of equal parts of an extent, largest first."""
    return sorted({-(-count // n) for n in range(1, count + 1)}, reverse=True)


def _candidates(layer: Layer, view: View, deep: list[int], config: Config) -> Iterator[Tiling]:
    half = {name: depth // 2 for name, depth in config.depth.items()}
    for channels in [1] if any(gemm.groups > 1 for gemm in layer.gemms) else _parts(view.blocks):
        for height in _parts(view.height):
            for width in _parts(view.width):
                pixels = height * width
                pooled = [input_tile(p, height, width) for p in layer.pools]
                sums = channels * (layer.slots * pixels + sum(h * w for h, w in pooled) + len(layer.vectors))
                if sums > half["acc"] or max(pixels, channels) > _MOST_TURNS or channels > half["uop"]:
                    continue
                inputs = [_input_blocks(gemm, most, channels, height, width, half) for gemm, most in zip(layer.gemms, deep)]
                if all(inputs):
                    for by_channels in (True, False):
                        yield Tiling(channels, height, width, tuple(inputs), by_channels)
                    break  # narrower tiles of this height cost more


def _input_blocks(gemm: Gemm, deep: int, channels: int, height: int, width: int, half: dict[str, int]) -> int:
    """The most blocks of input channels that fit, in equal parts; 0 where one is too many."""
    rows, columns = input_tile(gemm, height, width)
    weights = channels * gemm.window.taps
    most = min(half["inp"] // (rows * columns), half["wgt"] // weights, half["uop"] // weights)
    return next((n for n in _parts(deep) if n <= most), 0)


def _cost(layer: Layer, view: View, tiling: Tiling, deep: list[int], config: Config) -> float:
    """The cycles that a tiling takes, roughly."""
    space = view.groups * -(-view.height // tiling.height) * -(-view.width // tiling.width)
    parts, size = -(-view.blocks // tiling.channels), config.element_bytes
    tail = view.size * sum([2 * pool.window.taps for pool in layer.pools] + [_STEP_CYCLES.get(step.kind, 0) for step in layer.steps])
    moved = view.size * size["out"] * (1 + len(layer.leaves) - len(layer.gemms) + 4 * len(layer.tensors))
    compute, instructions, first = tail, space * parts * len(layer.steps), 0
    for gemm, depth, blocks in zip(layer.gemms, deep, tiling.inputs):
        taps, turns = gemm.window.taps, -(-depth // blocks)
        rows, columns = input_tile(gemm, tiling.height, tiling.width)
        compute += taps * depth * view.size
        instructions += space * parts * depth * taps
        weights_once = parts * turns <= 2 or (tiling.by_channels and turns == 1)
        inputs_once = gemm.groups > 1 or space * turns <= 2 or (not tiling.by_channels and turns == 1)
        moved += view.blocks * depth * taps * size["wgt"] * (1 if weights_once else space)
        moved += rows * columns * depth * size["inp"] * space * (1 if inputs_once else parts)
        first += blocks * (tiling.channels * taps * size["wgt"] + rows * columns * size["inp"])
    compute += OVERHEAD * instructions
    tiles = space * parts
    loads = first / config.bandwidth
    last = tiling.channels * tiling.height * tiling.width * size["out"] / config.bandwidth
    ends = (loads + last) / PARTS + max((1 - 1 / PARTS) * loads - compute / tiles, 0)
    return max(compute, moved / config.bandwidth + 2 * config.latency * tiles) + ends


__all__ = ["OVERHEAD", "PARTS", "Tile", "Tiling", "choose", "input_tile", "tiles_of"]
