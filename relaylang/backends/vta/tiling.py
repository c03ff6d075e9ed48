"""Tiles of a layer: how many channels, rows and columns of the output are computed at a time, and in which order.

Each memory has two halves, one in use while the other is filled (virtual threads). A tile must fit into a half. Among those
that fit, the one with the least estimated cycles is chosen: units overlap, so that the slower of computing and DRAM counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.layers.reader import Layer
from relaylang.backends.vta.layout import View, view_of
from relaylang.backends.vta.steps import Gemm, Pool
from relaylang.diagnostics.unsupported import Unsupported

#: The cycles that an instruction takes beside its turns.
OVERHEAD = 8
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


def extents(count: int, stride: int, window: int, dilation: int) -> int:
    """Rows or columns of the input that so many of the output need; those between are left out for a window of one."""
    return (count - 1) * (stride if window > 1 else 1) + (window - 1) * dilation + 1


def input_tile(part: Gemm | Pool, height: int, width: int) -> tuple[int, int]:
    """The rows and columns of the input that a tile needs. Columns between are loaded, too."""
    window = part.weight.shape[2:] if isinstance(part, Gemm) else part.window
    rows = extents(height, part.strides[0], window[0], part.dilation[0])
    return rows, (width - 1) * part.strides[1] + (window[1] - 1) * part.dilation[1] + 1


def alu_cycles(layer: Layer) -> int:
    """The cycles of a layer's steps for each tile of sums: one with a number, two with a second tile."""
    taps = sum(p.window[0] * p.window[1] for p in layer.pools)
    steps = [s for s in layer.steps if s.operation not in ("load8", "load32", "gemm", "pool")]
    return 2 * taps + sum(2 if step.kind in ("vec", "slot") else 1 for step in steps)


def choose(layer: Layer, config: Config) -> Tiling:
    """The best tiling of a layer. Raises `Unsupported` where no tile fits."""
    view = view_of(layer.shape, config.batch, config.block_out)
    fitting = [(cost, tiling) for tiling in _candidates(layer, view, config) for cost in [_cost(layer, view, tiling, config)]]
    if not fitting:
        raise Unsupported(f"no tile of it fits the memories of {config}")
    return min(fitting, key=lambda pair: pair[0])[1]


def _parts(count: int) -> list[int]:
    """The sizes of equal parts of an extent, largest first."""
    return sorted({-(-count // n) for n in range(1, count + 1)}, reverse=True)


def _candidates(layer: Layer, view: View, config: Config) -> Iterator[Tiling]:
    half = {name: depth // 2 for name, depth in config.depth.items()}
    for channels in _parts(view.blocks):
        for height in _parts(view.height):
            for width in _parts(view.width):
                pixels = height * width
                pooled = [input_tile(p, height, width) for p in layer.pools]
                sums = channels * (layer.slots * pixels + sum(h * w for h, w in pooled) + len(layer.vectors))
                if sums > half["acc"] or pixels > _MOST_TURNS or channels > _MOST_TURNS or channels > half["uop"]:
                    continue
                inputs = [_input_blocks(gemm, channels, height, width, half, config) for gemm in layer.gemms]
                if all(inputs):
                    for by_channels in (True, False):
                        yield Tiling(channels, height, width, tuple(inputs), by_channels)
                    break  # narrower tiles of this height cost more


def _input_blocks(gemm: Gemm, channels: int, height: int, width: int, half: dict[str, int], config: Config) -> int:
    """The most blocks of input channels that fit, in equal parts; 0 where one is too many."""
    rows, columns = input_tile(gemm, height, width)
    taps = gemm.weight.shape[2] * gemm.weight.shape[3]
    most = min(half["inp"] // (rows * columns), half["wgt"] // (channels * taps), half["uop"] // (channels * taps))
    return next((n for n in _parts(-(-gemm.data[1] // config.block_in)) if n <= most), 0)


def _cost(layer: Layer, view: View, tiling: Tiling, config: Config) -> float:
    """The cycles that a tiling takes, roughly."""
    down, across = -(-view.height // tiling.height), -(-view.width // tiling.width)
    space, parts = view.groups * down * across, -(-view.blocks // tiling.channels)
    size = config.element_bytes
    tail = alu_cycles(layer) * view.size
    compute, moved, instructions = (
        tail,
        view.size * size["out"] * (1 + len(layer.leaves) - len(layer.gemms) + 4 * len(layer.tensors)),
        0,
    )
    for gemm, blocks in zip(layer.gemms, tiling.inputs):
        taps, deep = gemm.weight.shape[2] * gemm.weight.shape[3], -(-gemm.data[1] // config.block_in)
        rows, columns = input_tile(gemm, tiling.height, tiling.width)
        turns = -(-deep // blocks)
        compute += taps * deep * view.size
        instructions += space * parts * deep * taps
        weights_once = parts * turns <= 2 or (tiling.by_channels and turns == 1)
        inputs_once = space * turns <= 2 or (not tiling.by_channels and turns == 1)
        moved += view.blocks * deep * taps * size["wgt"] * (1 if weights_once else space)
        moved += rows * columns * deep * size["inp"] * space * (1 if inputs_once else parts)
    instructions += space * parts * len(layer.steps)
    compute += OVERHEAD * instructions
    tiles = space * parts
    return max(compute, moved / config.bandwidth) + (moved / config.bandwidth + tail) / tiles + 2 * config.latency * tiles


__all__ = ["OVERHEAD", "Tiling", "alu_cycles", "choose", "extents", "input_tile"]
