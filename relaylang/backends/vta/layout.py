"""How tensors lie in DRAM: blocked, NCHWnc.

A tensor (N, C, H, W) of channels in blocks of c and a batch in blocks of n lies as (N/n, C/c, H, W, n, c). Zeros
fill the last blocks. Its elements are tiles of n times c numbers. A matrix (N, C) is an image of N/n rows, one tile wide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class View(NamedTuple):
    """A blocked tensor: its extents in tiles, and how many tiles lie between neighbours along each axis."""

    groups: int
    blocks: int
    height: int
    width: int
    group_stride: int
    block_stride: int
    row_stride: int

    @property
    def size(self) -> int:
        return self.groups * self.blocks * self.height * self.width

    def at(self, group: int, block: int, row: int, column: int) -> int:
        """The number of a tile."""
        return group * self.group_stride + block * self.block_stride + row * self.row_stride + column


def view_of(shape: tuple[int, ...], batch: int, block: int) -> View:
    """The view of a tensor of 2 or 4 axes."""
    rows, blocks = -(-shape[0] // batch), -(-shape[1] // block)
    if len(shape) == 2:
        return View(1, blocks, rows, 1, rows * blocks, 1, blocks)
    height, width = shape[2:]
    return View(rows, blocks, height, width, blocks * height * width, height * width, width)


def pack(value: np.ndarray, batch: int, block: int) -> np.ndarray:
    """A tensor of 2 or 4 axes as its tiles, shape (tiles, batch, block)."""
    n, c, *space = value.shape
    padded = np.zeros((-(-n // batch) * batch, -(-c // block) * block, *space), value.dtype)
    padded[:n, :c] = value
    blocked = padded.reshape(padded.shape[0] // batch, batch, padded.shape[1] // block, block, *space)
    order = (0, 2, 4, 5, 1, 3) if space else (0, 2, 1, 3)
    return np.ascontiguousarray(blocked.transpose(order)).reshape(-1, batch, block)


def unpack(tiles: np.ndarray, shape: tuple[int, ...], batch: int, block: int) -> np.ndarray:
    """The tensor of this shape whose tiles these are."""
    n, c, *space = shape
    rows, blocks = -(-n // batch), -(-c // block)
    blocked = tiles.reshape(rows, blocks, *space, batch, block)
    order = (0, 4, 1, 5, 2, 3) if space else (0, 2, 1, 3)
    return np.ascontiguousarray(blocked.transpose(order).reshape(rows * batch, blocks * block, *space)[:n, :c])


def pack_weights(weight: np.ndarray, block_in: int, block_out: int) -> np.ndarray:
    """Weights (O, I, H, W) as tiles (O/o, I/i, H, W, o, i), shape (tiles, o, i)."""
    o, i, height, width = weight.shape
    padded = np.zeros((-(-o // block_out) * block_out, -(-i // block_in) * block_in, height, width), weight.dtype)
    padded[:o, :i] = weight
    blocked = padded.reshape(padded.shape[0] // block_out, block_out, padded.shape[1] // block_in, block_in, height, width)
    return np.ascontiguousarray(blocked.transpose(0, 2, 4, 5, 1, 3)).reshape(-1, block_out, block_in)


__all__ = ["View", "pack", "pack_weights", "unpack", "view_of"]
