"""Attributes of windows and reductions as lists, and constants in the place of unused operands."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.walk import Value
from relaylang.ir import Call, TensorType
from relaylang.ops.reduce import taken_axes


def name_of(call: Call) -> str:
    """The name of the operator that is called."""
    return str(call.op.name)  # type: ignore[attr-defined]


def result(call: Call) -> TensorType:
    """The type of a call's result, which is one tensor."""
    assert isinstance(call.checked_type, TensorType)
    return call.checked_type


def shape_of(call: Call) -> list[int]:
    """The result's shape. Raises `Unsupported` where it is open."""
    extents = result(call).shape
    if not all(isinstance(n, int) for n in extents):
        raise Unsupported("an extent of its result is open")
    return [int(n) for n in extents]  # type: ignore[arg-type]


def many(values: Any, count: int) -> list[int]:
    """An attribute as one number for each axis."""
    numbers = [values] if isinstance(values, int) else [int(v) for v in values]
    return numbers * count if len(numbers) == 1 else numbers


def pads(values: Any, count: int) -> list[int]:
    """Padding: all beginnings, then all ends."""
    numbers = [values] if isinstance(values, int) else [int(v) for v in values]
    return numbers * 2 * count if len(numbers) == 1 else numbers * 2 if len(numbers) == count else numbers


def space(layout: str) -> list[int]:
    """The places of the axes D, H and W in a layout. Raises `Unsupported` for layouts with blocks."""
    if not layout.isalpha() or not layout.isupper():
        raise Unsupported(f"the layout {layout} has blocks")
    return [i for i, c in enumerate(layout) if c in "DHW"]


def windows(call: Call, x: Value) -> dict[str, list[int]]:
    """Sizes, strides, dilation and padding of a pool; of ceil_mode, padding that gives the same windows."""
    a: Any = call.attrs
    axes = space(a.layout)
    count = len(axes)
    window = {
        "size": many(a.pool_size, count),
        "strides": many(a.strides, count),
        "dilation": many(a.dilation, count),
        "padding": pads(a.padding, count),
    }
    if not a.ceil_mode:
        return window
    out = shape_of(call)
    for i, axis in enumerate(axes):
        reach = (window["size"][i] - 1) * window["dilation"][i] + 1
        behind = max((out[axis] - 1) * window["strides"][i] + reach - x.extent(axis) - window["padding"][i], 0)
        if behind != window["padding"][count + i] and getattr(a, "count_include_pad", False):
            raise Unsupported("windows of ceil_mode end behind the padding, which the divisor does not count")
        if behind >= reach:
            raise Unsupported("a window of ceil_mode lies behind the data")
        window["padding"][count + i] = behind
    return window


def axes_of(call: Call, rank: int) -> list[int]:
    """The axes that a reduction takes."""
    a: Any = call.attrs
    return taken_axes(rank, (a.axis,) if isinstance(a.axis, int) else a.axis, a.exclude)


def of_nothing(name: str, dtype: str) -> Any:
    """The value of a reduction of no elements: for `max` the least finite number of the type, for `min` the greatest."""
    if name not in ("max", "min"):
        return int(name in ("prod", "all"))
    if dtype == "bool":
        return name == "min"
    limits: Any = (ml_dtypes.finfo if "float" in dtype else np.iinfo)(np.dtype(dtype))
    return limits.min if name == "max" else limits.max


def permutation(call: Call, rank: int) -> list[int]:
    """The axes of a transposition."""
    a: Any = call.attrs
    return [int(i) % rank for i in a.axes] if a.axes else list(range(rank))[::-1]


def cuts(call: Call, extent: int) -> list[tuple[int, int]]:
    """Where the parts of a split begin and end."""
    cut = call.attrs.indices_or_sections  # type: ignore[union-attr]
    points = [extent * i // cut for i in range(1, cut)] if isinstance(cut, int) else [min(int(n), extent) for n in cut]
    ends = [0, *points, extent]
    return [(a, max(a, b)) for a, b in pairwise(ends)]


def slices(call: Call, rank: int) -> list[tuple[int, int | None, int | None, int]]:
    """The axes of a strided_slice: axis, begin, end and stride; None is the end that the stride points from or to."""
    a: Any = call.attrs
    begin = list(a.begin)
    axes = [i % rank for i in a.axes] if a.axes else list(range(len(begin)))
    strides = [int(s) for s in a.strides] if a.strides else [1]
    strides = strides * len(begin) if len(strides) == 1 else strides + [1] * (len(begin) - len(strides))
    ends = list(a.end) + [None] * (len(begin) - len(a.end))
    bounds = []
    for axis, b, n, s in zip(axes, begin, ends, strides):
        first, last = None if b is None else int(b), None if n is None else int(n)
        if a.slice_mode == "size":
            first, s = first or 0, 1
            last = None if last is None or last < 0 else first + last
        bounds.append((axis, first, last, s))
    return bounds


def mirrored(extent: int, before: int, behind: int, mode: str) -> np.ndarray:
    """Where the elements of an axis come from that is padded with elements of its own."""
    if before < 0 or behind < 0:
        raise Unsupported(f"it crops in the mode {mode}")
    return np.pad(np.arange(extent, dtype=np.int32), (before, behind), mode)  # type: ignore[call-overload]


def depthwise(w: Value, call: Call) -> list[int] | None:
    """The shape of a kernel of a depthwise convolution whose axes O and I stand for channels and multiplier, as
    TVM's layout HWOI has it; None for others. The kernel's first axes are O and I."""
    a: Any = call.attrs
    outputs = result(call).shape[(a.out_layout or a.data_layout).index("C")]
    shape = w.static("its kernel")
    if a.groups > 1 and isinstance(outputs, int) and shape[0] != outputs and shape[0] * shape[1] == outputs:
        return [outputs, 1, *shape[2:]]
    return None


__all__ = [
    "axes_of",
    "cuts",
    "depthwise",
    "many",
    "mirrored",
    "name_of",
    "of_nothing",
    "pads",
    "permutation",
    "result",
    "shape_of",
    "slices",
    "space",
    "windows",
]
