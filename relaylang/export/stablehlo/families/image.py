"""Resizing, as a sum of weighted neighbours along each axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import result, shape_of
from relaylang.export.stablehlo.emitter import Emitter
from relaylang.export.stablehlo.families.shape import taken
from relaylang.export.walk import Value
from relaylang.ir import Call


def _places(mode: str, n: int, m: int) -> np.ndarray:
    """Where the pixels of `m` lie among those of `n`, by the coordinate transformation."""
    i = np.arange(m, dtype=np.float64)
    if mode == "align_corners":
        return i * ((n - 1) / (m - 1)) if m > 1 else i * 0
    if mode == "half_pixel":
        return (i + 0.5) * (n / m) - 0.5
    if mode == "pytorch_half_pixel":
        return (i + 0.5) * (n / m) - 0.5 if m > 1 else i * 0
    if mode == "asymmetric":
        return i * (n / m)
    raise Unsupported(f"the coordinate transformation is {mode}")


def resize(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    method, mode = a.method, a.coordinate_transformation_mode
    out = shape_of(call)
    space = [i for i, c in enumerate(a.layout) if c in "DHW"]
    for axis in space:
        n, m = x.static()[axis], out[axis]
        if n == m and method != "cubic":
            continue
        at = _places(mode, n, m)
        if method == "nearest_neighbor":
            x = taken(e, x, e.array(_nearest(at, a.rounding_method, mode, n)), axis)
        elif method == "linear" and "float" in x.dtype:
            x = _linear(e, x, at, axis)
        else:
            raise Unsupported(f"the method is {method}, of {x.dtype}")
    return e.cast(x, result(call).dtype)


def _nearest(at: np.ndarray, rounding: str, mode: str, n: int) -> np.ndarray:
    rounding = rounding or ("round" if mode == "align_corners" else "floor")
    if rounding in ("round", "round_prefer_ceil"):
        near = np.floor(at + 0.5)
    elif rounding == "round_prefer_floor":
        near = np.ceil(at - 0.5)
    else:
        near = np.ceil(at) if rounding == "ceil" else np.floor(at + 1e-5)
    return np.clip(near, 0, n - 1).astype(np.int32)


def _linear(e: Emitter, x: Value, at: np.ndarray, axis: int) -> Value:
    n = x.static()[axis]
    low = np.floor(at)
    weight = (at - low).astype(np.dtype(x.dtype)).reshape([-1 if i == axis else 1 for i in range(x.rank)])
    first = taken(e, x, e.array(np.clip(low, 0, n - 1).astype(np.int32)), axis)
    second = taken(e, x, e.array(np.clip(low + 1, 0, n - 1).astype(np.int32)), axis)
    kept = e.two("multiply", first, e.array(1 - weight, x.dtype))
    return e.same("add", kept, e.two("multiply", second, e.array(weight, x.dtype)))


RULES = {f"image.resize{n}d": resize for n in (1, 2, 3)}

__all__ = ["RULES"]
