"""The tiles of Winograd's convolution over three axes."""

from __future__ import annotations

from typing import Any


def _infer_tile_size(data: Any, kernel: Any) -> int:
    """The side of a tile: 4 where it divides the image's height evenly into pairs of tiles, else 2."""
    return 4 if int(data.shape[3]) % 8 == 0 else 2


__all__ = ["_infer_tile_size"]
