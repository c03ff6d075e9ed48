"""Random arrays for the kernels' tests."""

from __future__ import annotations

from typing import Any

import numpy as np

#: (operator, attributes, arguments, which arguments are constants)
Case = tuple[str, dict[str, Any], list[Any], set[int]]


def real(*shape: int, dtype: str = "float32", low: float = -1.0, high: float = 1.0) -> np.ndarray:
    return np.random.default_rng([*shape, len(dtype)]).uniform(low, high, shape).astype(dtype)


def whole(*shape: int, dtype: str = "int32", low: int = -100, high: int = 100, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def f32(value: Any) -> np.ndarray:
    return np.asarray(value, np.float32)


def i32(value: Any) -> np.ndarray:
    return np.asarray(value, np.int32)
