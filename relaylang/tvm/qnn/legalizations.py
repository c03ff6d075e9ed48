"""Functions of floats that `tvm.relay.qnn.op.legalizations` turns into tables of bytes."""

from __future__ import annotations

import numpy as np


def hardswish_func(x: np.ndarray) -> np.ndarray:
    """`x * relu6(x + 3) / 6`."""
    made: np.ndarray = x * np.clip(x + 3.0, 0.0, 6.0) / 6.0
    return made


__all__ = ["hardswish_func"]
