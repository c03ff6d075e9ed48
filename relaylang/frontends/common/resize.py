"""Resampling along one axis: which elements each result is made of, and with which weights.

Source: the operator Resize of the ONNX specification, opset 19. All other formats are special cases of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Method:
    """How to resample: the kernel, where a result's place lies in the input, and the rules at the borders.

    `kind` is "nearest", "linear" or "cubic". `coordinates` and `rounding` are ONNX's names. `a` is the cubic kernel's
    coefficient. With `exclude_outside`, elements beyond the border have no weight; otherwise the border repeats.
    `outside` is the value of results beyond the border for "tf_crop_and_resize".
    """

    kind: str = "linear"
    coordinates: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    outside: float = 0.0


def places(method: Method, size: int, out: int, scale: float, start: float = 0.0, end: float = 1.0) -> np.ndarray:
    """Where the results lie on the input's axis, in elements: float64 of shape (out,)."""
    x = np.arange(out, dtype=np.float64)
    exact = scale * size  # a scale need not lead to a whole number
    mode = method.coordinates
    if mode == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - out / exact) + (x + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if exact > 1 else np.zeros(out)
    if mode == "align_corners":
        return x * (size - 1) / (exact - 1) if exact != 1 else np.zeros(out)
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if mode == "tf_crop_and_resize":
        if out > 1:
            return start * (size - 1) + x * (end - start) * (size - 1) / (out - 1)
        return np.full(out, 0.5 * (start + end) * (size - 1))
    raise ValueError(mode)


def nearest(method: Method, at: np.ndarray, size: int) -> np.ndarray:
    """The index of the element that each result copies: int64 of shape (out,)."""
    rounded = {
        "round_prefer_floor": np.ceil(at - 0.5), "round_prefer_ceil": np.floor(at + 0.5), "floor": np.floor(at),
        "ceil": np.ceil(at), "round": np.ceil(at - 0.5),
    }[method.rounding]  # fmt: skip
    found: np.ndarray = np.clip(rounded, 0, size - 1).astype(np.int64)
    return found


def taps(method: Method, at: np.ndarray, size: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The elements of each result and their weights: int64 and float64 of shape (out, taps)."""
    squeeze = min(scale, 1.0) if method.antialias else 1.0
    reach = 1 if method.kind == "linear" else 2
    first = math.floor(-reach / squeeze) + 1
    low = np.floor(at)
    offsets = np.arange(first, 2 - first)
    distance = np.abs((offsets[None, :] - (at - low)[:, None]) * squeeze)
    weights = np.clip(1 - distance, 0, 1) if method.kind == "linear" else _cubic(distance, method.a)
    index = low[:, None].astype(np.int64) + offsets[None, :]
    if method.exclude_outside:
        weights = np.where((index < 0) | (index >= size), 0.0, weights)
    if method.exclude_outside or method.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    used = np.any(weights != 0, axis=0)
    return np.clip(index, 0, size - 1)[:, used], weights[:, used]


def _cubic(d: np.ndarray, a: float) -> np.ndarray:
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


__all__ = ["Method", "nearest", "places", "taps"]
