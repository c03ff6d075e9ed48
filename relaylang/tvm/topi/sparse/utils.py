"""Random matrices of blocks, for tests. They need SciPy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


def random_bsr_matrix(m: int, n: int, bs_r: int, bs_c: int, density: float, dtype: str = "float32") -> Any:
    """A SciPy `bsr_matrix` of m x n, in blocks of bs_r x bs_c. About this part of the blocks is filled.

    Raises `ValueError` for blocks that do not divide the matrix, and `ImportError` without SciPy.
    """
    if m % bs_r or n % bs_c:
        raise ValueError(f"blocks of {bs_r} x {bs_c} do not divide a matrix of {m} x {n}")
    rng = np.random.default_rng(np.random.randint(1 << 31))
    places = m // bs_r * (n // bs_c)
    chosen = rng.choice(places, min(int(density * m * n / (bs_r * bs_c)) + 1, places), replace=False)
    blocks = np.zeros((places, bs_r, bs_c), dtype)
    blocks[chosen] = rng.normal(size=(len(chosen), bs_r, bs_c))
    dense = blocks.reshape(m // bs_r, n // bs_c, bs_r, bs_c).transpose(0, 2, 1, 3).reshape(m, n)
    return importlib.import_module("scipy.sparse").bsr_matrix(dense, blocksize=(bs_r, bs_c))


__all__ = ["random_bsr_matrix"]
