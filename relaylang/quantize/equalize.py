"""Cross-layer equalisation: channels between two products get ranges that suit both weights.

Between two products there may be functions that keep positive factors. There a channel may be divided by a number in the
first product and multiplied by it in the second. Weights with one scale for a tensor lose less then.
Source: M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Constant, Expr, Function, IRModule, children, post_order, rewrite
from relaylang.ir.tensors import static_shape
from relaylang.ir.typed import forget_stale_types, typed_constant
from relaylang.ops.record import Op
from relaylang.passes.infer_type import InferType
from relaylang.passes.rewriting import is_call, per_function
from relaylang.rules.quantization.forms import bias_of, channel_axis, channel_behind, input_axis, output_axis
from relaylang.rules.quantization.static import ROLES, Role

#: The most rounds over all pairs, and the largest change of a factor in the last one.
_ROUNDS, _SETTLED = 40, 0.01


@dataclass
class _Pair:
    """Two weights, and the bias behind the first one, with their axes of the channels between them."""

    first: Constant
    rows: int
    bias: Constant | None
    second: Constant
    columns: int


def equalize(mod: IRModule) -> tuple[IRModule, int]:
    """A prepared module with equalised weights, and the number of pairs of layers that were."""
    count = 0

    def one(func: Expr) -> Expr:
        nonlocal count
        assert isinstance(func, Function)
        pairs = _pairs(func)
        count += len(pairs)
        values = _settled(pairs)
        return forget_stale_types(rewrite(func, lambda old, new: values.get(id(old), new)))

    return InferType()(per_function(mod, one)), count


def _pairs(func: Function) -> list[_Pair]:
    users: dict[int, list[Expr]] = {}
    order = list(post_order(func))
    for node in order:
        for child in children(node):
            users.setdefault(id(child), []).append(node)

    def alone(node: Expr) -> Expr | None:
        mine = users.get(id(node), [])
        return mine[0] if len(mine) == 1 else None

    def weight(node: Expr) -> Constant | None:
        """The constant that a product alone multiplies with."""
        w = node.args[1] if _is_product(node) and isinstance(node, Call) else None
        return w if isinstance(w, Constant) and alone(w) is node and np.isfinite(w.data).all() else None

    pairs = []
    for node in order:
        first = weight(node)
        rows = output_axis(node) if first is not None and isinstance(node, Call) else None
        if first is None or rows is None or not isinstance(node, Call):
            continue
        bias: Constant | None = None
        behind = alone(node)
        at: Expr = node
        shape = static_shape(node.checked_type)
        if shape is None:
            continue
        axis: int | None = channel_axis(node) % len(shape)
        if behind is not None and bias_of(behind, node) is not None and is_call(behind, "nn.bias_add"):
            assert isinstance(behind, Call)
            vector = behind.args[1]
            if not isinstance(vector, Constant) or alone(vector) is not behind:
                continue
            bias = vector
            at, behind = behind, alone(behind)
        while axis is not None and isinstance(behind, Call) and isinstance(behind.op, Op) and not _is_product(behind):
            axis = channel_behind(behind, axis)
            at, behind = behind, alone(behind)
        if axis is None or not isinstance(behind, Call) or not _is_product(behind) or behind.args[0] is not at:
            continue
        second, columns = weight(behind), input_axis(behind, axis)
        if second is not None and columns is not None and second.data.shape[columns] == first.data.shape[rows]:
            pairs.append(_Pair(first, rows, bias, second, columns))
    return pairs


def _is_product(node: Expr) -> bool:
    return is_call(node, *(name for name, role in ROLES.items() if role is Role.PRODUCT))


def _settled(pairs: list[_Pair]) -> dict[int, Constant]:
    """The new constants by the identity of the old ones: both weights of a pair have equal ranges in each channel."""
    data = {id(c): c.data.astype("float64") for p in pairs for c in (p.first, p.bias, p.second) if c is not None}
    kinds = {id(c): c for p in pairs for c in (p.first, p.bias, p.second) if c is not None}
    for _ in range(_ROUNDS):
        change = 0.0
        for pair in pairs:
            one, two = _ranges(data[id(pair.first)], pair.rows), _ranges(data[id(pair.second)], pair.columns)
            there = (one > 0) & (two > 0)
            factor = np.sqrt(np.divide(one, two, out=np.ones_like(one), where=there))
            factor = np.clip(factor, 2.0**-12, 2.0**12)
            data[id(pair.first)] = data[id(pair.first)] / _along(factor, pair.rows, pair.first)
            if pair.bias is not None:
                data[id(pair.bias)] = data[id(pair.bias)] / factor
            data[id(pair.second)] = data[id(pair.second)] * _along(factor, pair.columns, pair.second)
            change = max(change, float(np.abs(np.log(factor)).max(initial=0.0)))
        if change < _SETTLED:
            break
    return {key: typed_constant(values.astype(kinds[key].data.dtype)) for key, values in data.items()}


def _ranges(data: np.ndarray, axis: int) -> np.ndarray:
    return np.abs(np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)).max(1, initial=0.0)


def _along(factor: np.ndarray, axis: int, constant: Constant) -> np.ndarray:
    return factor.reshape([-1 if i == axis else 1 for i in range(constant.data.ndim)])


__all__ = ["equalize"]
