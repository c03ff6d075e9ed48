"""Sorting and searching."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, np_dtype, wide


def order(x: Any, axis: int, ascending: bool) -> Any:
    """The places of the elements in order; equal ones stay in theirs. A nan counts as greater than every number."""
    x = wide(x)
    if ascending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - back, axis)


def sort(attrs: Any, x: Any) -> Any:
    return np.take_along_axis(x, order(x, attrs.axis, attrs.is_ascend), attrs.axis)


def argsort(attrs: Any, x: Any) -> Any:
    return order(x, attrs.axis, attrs.is_ascend).astype(np_dtype(attrs.dtype or "int32"))


def topk(attrs: Any, x: Any) -> Any:
    places = order(x, attrs.axis, attrs.is_ascend)
    if attrs.k > x.shape[attrs.axis]:
        raise KernelError(f"an axis of {x.shape[attrs.axis]} entries has not {attrs.k} of them")
    if attrs.k >= 1:
        places = np.take(places, np.arange(attrs.k), axis=attrs.axis)
    values, indices = np.take_along_axis(x, places, attrs.axis), places.astype(np_dtype(attrs.dtype or "int32"))
    return {"both": (values, indices), "values": values, "indices": indices}[attrs.ret_type]


def searchsorted(attrs: Any, sequence: Any, values: Any) -> Any:
    """Along the last axis, one sequence for all values or one for each row of them."""
    side: Literal["left", "right"] = "right" if attrs.right else "left"
    if not sequence.size or not values.size:
        return np.zeros(values.shape, np_dtype(attrs.dtype))
    sequence, values = wide(sequence), wide(values)
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side).astype(np_dtype(attrs.dtype))
    rows = zip(sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1]))
    positions = [np.searchsorted(row, wanted, side) for row, wanted in rows]
    return np.stack(positions).reshape(values.shape).astype(np_dtype(attrs.dtype))


KERNELS: dict[str, Kernel] = {"sort": sort, "argsort": argsort, "topk": topk, "searchsorted": searchsorted}
