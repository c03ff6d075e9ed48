"""Knowledge of computed shapes: the elements of small integer tensors, each a number, a computation of named extents, or `?`.

A model with a dynamic extent computes shapes: it takes the extents of a tensor, slices, multiplies and joins them. Most of
the elements are known all the same. With them, a reshape keeps its extents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from relaylang.interpreter.compute import compute
from relaylang.ir import ANY, Call, Constant, Dim, Expr, TensorType, Tuple, TypeVar, is_static
from relaylang.ir.extents import bounds, combine
from relaylang.ir.types import ComputedDim
from relaylang.ops.record import Op, OpPattern

#: Tensors with more elements are not followed.
_MOST = 64
#: Two series of stand-ins for elements that are no numbers. What moves an element gives its stand-ins, in both.
_STAND_INS = (1, 1 + _MOST)
#: Operators that compute extents of extents.
_COMPUTES = {
    "add": "tir.Add",
    "subtract": "tir.Sub",
    "multiply": "tir.Mul",
    **dict.fromkeys(("divide", "floor_divide", "trunc_divide"), "tir.FloorDiv"),
    **dict.fromkeys(("mod", "floor_mod", "trunc_mod"), "tir.FloorMod"),
    "minimum": "tir.Min",
    "maximum": "tir.Max",
}


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
            elif isinstance(field.checked_type, TensorType) and field.checked_type.shape in ((), (1,)):
                parts.append(_array([ANY], field.checked_type.concrete_shape))
            else:
                return None
        return parts


def _array(elements: Sequence[Dim], shape: Sequence[int]) -> np.ndarray:
    return np.array(elements, object).reshape(shape)


def _is_small(node: Expr) -> bool:
    """Whether a value is a tensor of few whole numbers or bools."""
    ty = node.checked_type
    if not isinstance(ty, TensorType) or not ("int" in ty.dtype or ty.dtype == "bool"):
        return False
    extents = [int(d) for d in ty.shape if isinstance(d, int)]
    return len(extents) == len(ty.shape) and math.prod(extents) <= _MOST


def _whole(parts: Sequence[np.ndarray]) -> bool:
    return all(is_static(d) for part in parts for d in part.flat)


def _computed(op: Op, operands: Sequence[Sequence[np.ndarray]], call: Call) -> np.ndarray | None:
    """The result of arithmetic that has named extents in it; None for other operators and for numbers alone."""
    meaning = _MEANINGS.get(op.name)
    if meaning is None or all(map(_whole, operands)):
        return None
    arrays = np.broadcast_arrays(*[parts[0] for parts in operands])
    return _array([meaning(*dims) for dims in zip(*[a.flat for a in arrays])], arrays[0].shape)


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
    if key in ("tir.FloorDiv", "tir.FloorMod") and not (is_static(right) and right > 0 and _at_least(left, 0)):
        return ANY
    return combine(key, int(left) if is_static(left) else left, int(right) if is_static(right) else right)


def _at_least(dim: Dim, number: int) -> bool:
    low, _ = bounds(dim)
    return low is not None and low >= number


def _less(left: Dim, right: Dim) -> Dim:
    """Whether one element is less than another; `?` where that depends on what names stand for."""
    low, high = bounds(_combined("tir.Sub", left, right))
    return True if high is not None and high < 0 else False if low is not None and low >= 0 else ANY


def _equal(left: Dim, right: Dim) -> Dim:
    low, high = bounds(_combined("tir.Sub", left, right))
    apart = (low is not None and low > 0) or (high is not None and high < 0)
    return False if apart else True if low == high == 0 else ANY


def _not(truth: Dim) -> Dim:
    return not truth if is_static(truth) else ANY


def _and(left: Dim, right: Dim) -> Dim:
    if any([is_static(d) and not d for d in (left, right)]):
        return False
    return True if is_static(left) and is_static(right) else ANY


def _where(condition: Dim, left: Dim, right: Dim) -> Dim:
    if not is_static(condition):
        return left if left is right else ANY
    return left if condition else right


def _sign(dim: Dim) -> Dim:
    """A named extent is positive here: the sign of 0 makes no difference to the quotient for which programs ask it."""
    if isinstance(dim, TypeVar) and not isinstance(dim, ComputedDim):
        return 1
    return 1 if _at_least(dim, 1) else ANY


#: Operators of integers and bools, and what they do to elements that are known.
_MEANINGS: Mapping[str, Callable[..., Dim]] = {
    **{name: partial(_combined, key) for name, key in _COMPUTES.items()},
    "less": _less,
    "greater": lambda left, right: _less(right, left),
    "less_equal": lambda left, right: _not(_less(right, left)),
    "greater_equal": lambda left, right: _not(_less(left, right)),
    "equal": _equal,
    "not_equal": lambda left, right: _not(_equal(left, right)),
    "logical_not": _not,
    "logical_and": _and,
    "logical_or": lambda left, right: _not(_and(_not(left), _not(right))),
    "where": _where,
    "sign": _sign,
}


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
