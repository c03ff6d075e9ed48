"""How tensors lie in DRAM: blocked, NCHWnc.

A tensor (N, C, H, W) of channels in blocks of c and a batch in blocks of n lies as (N/n, C/c, H, W, n, c). Zeros
fill the last blocks. Its elements are tiles of n times c numbers. A matrix (N, C) is an image of N/n rows, one tile wide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relaylang.interpreter.kernels.common import from_plain, to_plain


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
    """A tensor of 2 or 4 axes as its tiles, shape (tiles, batch, block). Weights (O, I, H, W) have tiles (O, I)."""
    axes = "NCHW"[: value.ndim]
    padded = np.pad(value, [(0, -value.shape[0] % batch), (0, -value.shape[1] % block), (0, 0), (0, 0)][: value.ndim])
    return from_plain(padded, axes, f"{axes}{batch}n{block}c").reshape(-1, batch, block)


def unpack(tiles: np.ndarray, shape: tuple[int, ...], batch: int, block: int) -> np.ndarray:
    """The tensor of this shape whose tiles these are."""
    (n, c, *space), axes = shape, "NCHW"[: len(shape)]
    blocked = tiles.reshape(-(-n // batch), -(-c // block), *space, batch, block)
    return np.ascontiguousarray(to_plain(blocked, f"{axes}{batch}n{block}c", axes)[:n, :c])


__all__ = ["View", "pack", "unpack", "view_of"]
