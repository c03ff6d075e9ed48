"""The inputs of recorded cases, which both the script that records them and the tests make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def made(specs: Sequence[Sequence[Any]], seed: int) -> list[np.ndarray]:
    """Arrays of (shape, element type, least, most) each."""
    rng = np.random.default_rng(seed)
    found = []
    for shape, dtype, low, high in specs:
        if dtype.startswith("float"):
            found.append(rng.uniform(low, high, tuple(shape)).astype(dtype))
        else:
            found.append(np.asarray(rng.integers(low, high, tuple(shape))).astype(dtype))
    return found
