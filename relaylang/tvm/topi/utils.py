"""Helpers of `tvm.topi.utils`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def get_const_int(expr: Any) -> int:
    """An extent as a plain number. Raises `TypeError` or `ValueError` where it is none."""
    return int(expr)


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """A shape with plain numbers; other extents stay."""
    return tuple([int(d) if isinstance(d, int) else d for d in in_tuple])


def _infer_tile_size(data: Any, kernel: Any) -> int:
    """The side of a tile of Winograd's convolution over three axes: 4 where pairs of tiles divide the image's height, else 2."""
    return 4 if int(data.shape[3]) % 8 == 0 else 2


__all__ = ["get_const_int", "get_const_tuple"]
