"""Knowledge of computed shapes: the elements of small integer tensors, each known or not.

A model with a dynamic extent computes shapes: it takes the extents of a tensor, slices, multiplies and joins them. Most of
the elements are known all the same. With them, a reshape keeps its static extents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.interpreter.compute import compute
from relaylang.ir import Call, Constant, Expr, TensorType, Tuple
from relaylang.ops.record import Op, OpPattern

#: Tensors with more elements are not followed.
_MOST = 64
#: Two different stand-ins for an unknown element. What moves elements gives equal results for both where they are known.
_STAND_INS = (1, 2)


class Knowledge:
    """Partly known integer tensors by node."""

    def __init__(self) -> None:
        # The node itself is kept, so that no other node gets its id.
        self._found: dict[int, tuple[Expr, np.ndarray, np.ndarray]] = {}

    def put(self, node: Expr, elements: list[int | None]) -> None:
        """Note the elements of a vector, None for unknown ones."""
        values = np.array([0 if n is None else n for n in elements], np.int64)
        self._found[id(node)] = node, values, np.array([n is not None for n in elements], bool)

    def of(self, node: Expr) -> list[int | None] | None:
        """The elements of a tensor in order, None for unknown ones; None for a tensor that is not followed."""
        entry = self._found.get(id(node))
        if entry is None:
            return None
        return [int(v) if k else None for v, k in zip(entry[1].reshape(-1), entry[2].reshape(-1))]

    def follow(self, call: Call, op: Op) -> None:
        """Note what a call's result is known to be, from what its operands are known to be."""
        if op.pattern > OpPattern.INJECTIVE or not any(map(self._has, call.args)) or not _is_small(call):
            return
        parts = [self._parts(a) for a in call.args]
        if any(p is None for p in parts):
            return
        if op.pattern == OpPattern.INJECTIVE and any(not _whole(p) for p in parts[1:]):
            return
        results = [compute(call, [_filled(p, n, a) for p, a in zip(parts, call.args)]) for n in _STAND_INS]
        if any(r is None for r in results):
            return
        first, second = (np.asarray(r) for r in results)
        mask = _mask(op, [k for p in parts for _, k in (p or ())], first, second)
        if mask.any():
            self._found[id(call)] = call, first.astype(np.int64), mask

    def _has(self, x: Expr) -> bool:
        if isinstance(x, Tuple):
            return any(id(f) in self._found or isinstance(f, Constant) for f in x.fields)
        return id(x) in self._found

    def _parts(self, x: Expr) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """The values and the knowledge of them, for a tensor or for the fields of a tuple."""
        parts = []
        for field in x.fields if isinstance(x, Tuple) else [x]:
            if isinstance(field, Constant) and field.data.size <= _MOST:
                parts.append((field.data, np.ones_like(field.data, bool)))
            elif id(field) in self._found:
                parts.append(self._found[id(field)][1:])
            elif isinstance(field.checked_type, TensorType) and field.checked_type.shape == (1,):
                parts.append((np.zeros(1, np.int64), np.zeros(1, bool)))
            else:
                return None
        return parts


def _is_small(node: Expr) -> bool:
    """Whether a value is a tensor of few whole numbers."""
    ty = node.checked_type
    if not isinstance(ty, TensorType) or "int" not in ty.dtype:
        return False
    extents = [int(d) for d in ty.shape if isinstance(d, int)]
    return len(extents) == len(ty.shape) and math.prod(extents) <= _MOST


def _mask(op: Op, masks: Sequence[np.ndarray], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Which elements of a result are known; `first` and `second` differ where an unknown element went."""
    if op.pattern == OpPattern.INJECTIVE or (len(masks) == 1 and masks[0].shape != first.shape):
        return np.asarray(first == second)  # the call moves elements
    return np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*masks)), first.shape)


def _whole(parts: list[tuple[np.ndarray, np.ndarray]] | None) -> bool:
    return parts is not None and all(k.all() for _, k in parts)


def _filled(parts: list[tuple[np.ndarray, np.ndarray]] | None, stand_in: int, x: Expr) -> Any:
    assert parts is not None
    fields = x.fields if isinstance(x, Tuple) else [x]
    stand_ins = [np.where(k, v, stand_in).astype(np.dtype(f.checked_type.dtype)) for (v, k), f in zip(parts, fields)]  # type: ignore[union-attr]
    return tuple(stand_ins) if isinstance(x, Tuple) else stand_ins[0]


__all__ = ["Knowledge"]
