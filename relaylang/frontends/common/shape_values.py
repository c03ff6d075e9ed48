"""Knowledge of computed shapes: the elements of small integer tensors, each a number, a computation of named extents, or `?`.

A model with a dynamic extent computes shapes: it takes the extents of a tensor, slices, multiplies and joins them. Most of
the elements are known all the same. With them, a reshape keeps its extents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylang.interpreter.compute import compute
from relaylang.ir import ANY, Call, Constant, Dim, Expr, TensorType, Tuple, is_static
from relaylang.ir.extents import combine, terms_of
from relaylang.ops.record import Op, OpPattern

#: Tensors with more elements are not followed.
_MOST = 64
#: Two series of stand-ins for elements that are no numbers. What moves an element gives its stand-ins, in both.
_STAND_INS = (1, 1 + _MOST)
#: Operators that compute extents of extents.
_COMPUTES = {"add": "tir.Add", "subtract": "tir.Sub", "multiply": "tir.Mul", "divide": "tir.FloorDiv", "floor_divide": "tir.FloorDiv"}


class Knowledge:
    """Partly known integer tensors by node."""

    def __init__(self) -> None:
        # The node itself is kept, so that no other node gets its id.
        self._found: dict[int, tuple[Expr, np.ndarray]] = {}

    def put(self, node: Expr, elements: Sequence[Dim]) -> None:
        """Note the elements of a vector."""
        self._found[id(node)] = node, _array(elements, (len(elements),))

    def of(self, node: Expr) -> list[Dim] | None:
        """The elements of a tensor in order; None for a tensor that is not followed."""
        entry = self._found.get(id(node))
        return None if entry is None else list(entry[1].reshape(-1))

    def follow(self, call: Call, op: Op) -> None:
        """Note what a call's result is known to be, from what its operands are known to be."""
        if not any(map(self._has, call.args)) or not _is_small(call):
            return
        ty = call.checked_type
        assert isinstance(ty, TensorType)
        is_product = op.name == "prod" and math.prod(ty.concrete_shape) == 1
        if op.pattern > OpPattern.INJECTIVE and not is_product:
            return
        parts = [self._parts(a) for a in call.args]
        if any(p is None for p in parts):
            return
        operands = [p for p in parts if p is not None]
        result = _product(operands[0][0], ty) if is_product else _computed(op, operands, call)
        if result is None and not is_product and (op.pattern != OpPattern.INJECTIVE or all(map(_whole, operands[1:]))):
            result = _moved(op, operands, call)
        if result is not None and any(d is not ANY for d in result.flat):
            self._found[id(call)] = call, result

    def _has(self, x: Expr) -> bool:
        if isinstance(x, Tuple):
            return any(id(f) in self._found or isinstance(f, Constant) for f in x.fields)
        return id(x) in self._found

    def _parts(self, x: Expr) -> list[np.ndarray] | None:
        """The elements of a tensor, or of the fields of a tuple."""
        parts = []
        for field in x.fields if isinstance(x, Tuple) else [x]:
            if isinstance(field, Constant) and field.data.size <= _MOST:
                parts.append(field.data.astype(object))
            elif id(field) in self._found:
                parts.append(self._found[id(field)][1])
            elif isinstance(field.checked_type, TensorType) and field.checked_type.shape == (1,):
                parts.append(_array([ANY], (1,)))
            else:
                return None
        return parts


def _array(elements: Sequence[Dim], shape: Sequence[int]) -> np.ndarray:
    return np.array(elements, object).reshape(shape)


def _is_small(node: Expr) -> bool:
    """Whether a value is a tensor of few whole numbers."""
    ty = node.checked_type
    if not isinstance(ty, TensorType) or "int" not in ty.dtype:
        return False
    extents = [int(d) for d in ty.shape if isinstance(d, int)]
    return len(extents) == len(ty.shape) and math.prod(extents) <= _MOST


def _whole(parts: Sequence[np.ndarray]) -> bool:
    return all(is_static(d) for part in parts for d in part.flat)


def _computed(op: Op, operands: Sequence[Sequence[np.ndarray]], call: Call) -> np.ndarray | None:
    """The result of arithmetic that has named extents in it; None for other operators and for numbers alone."""
    key = _COMPUTES.get(op.name)
    if key is None or all(map(_whole, operands)):
        return None
    left, right = np.broadcast_arrays(*[parts[0] for parts in operands])
    return _array([_combined(key, a, b) for a, b in zip(left.flat, right.flat)], left.shape)


def _product(factors: np.ndarray, ty: TensorType) -> np.ndarray:
    """The product of all elements."""
    total: Dim = 1
    for factor in factors.flat:
        total = _combined("tir.Mul", total, factor)
    return _array([total], ty.concrete_shape)


def _combined(key: str, left: Dim, right: Dim) -> Dim:
    if left is ANY or right is ANY:
        return ANY
    # Quotients of negative numbers are rounded in another way.
    if key == "tir.FloorDiv" and not (is_static(right) and right > 0 and all(c > 0 for c in terms_of(left).values())):
        return ANY
    return combine(key, int(left) if is_static(left) else left, int(right) if is_static(right) else right)


def _moved(op: Op, operands: Sequence[Sequence[np.ndarray]], call: Call) -> np.ndarray | None:
    """The result of a call that moves elements, or computes with numbers alone."""
    dims = [d for parts in operands for part in parts for d in part.flat]
    results = []
    for first in _STAND_INS:
        count, values = first, []
        for parts, x in zip(operands, call.args):
            arrays = []
            for part, field in zip(parts, x.fields if isinstance(x, Tuple) else [x]):
                numbers = [int(d) if is_static(d) else count + i for i, d in enumerate(part.flat)]
                count += part.size
                assert isinstance(field.checked_type, TensorType)
                arrays.append(np.array(numbers, np.int64).reshape(part.shape).astype(np.dtype(field.checked_type.dtype)))
            values.append(tuple(arrays) if isinstance(x, Tuple) else arrays[0])
        results.append(compute(call, values))
    if results[0] is None or results[1] is None:
        return None
    one, other = (np.asarray(r, np.int64) for r in results)
    shape = one.shape
    alone = len(operands) == len(operands[0]) == 1
    moves = op.pattern == OpPattern.INJECTIVE or op.name == "cast" or (alone and operands[0][0].shape != shape)
    elements: list[Dim] = []
    for a, b in zip(one.flat, other.flat):
        place = int(a) - _STAND_INS[0]
        moved = moves and b - a == _STAND_INS[1] - _STAND_INS[0] and 0 <= place < len(dims)
        elements.append(int(a) if a == b else dims[place] if moved else ANY)
    if not moves:
        masks = [np.vectorize(is_static, otypes=[bool])(part) for parts in operands for part in parts]
        known = np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*masks)), shape)
        elements = [d if k else ANY for d, k in zip(elements, known.flat)]
    return _array(elements, shape)


__all__ = ["Knowledge"]
