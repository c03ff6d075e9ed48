"""FoldScaleAxis: what each operator does with factors of channels that pass through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ir.tensors import static_shape, tensor_type
from relaylang.ops import Trait, having
from relaylang.ops.build import op_call
from relaylang.ops.layouts import parts, places

#: The axes of a product's data or result along which factors may lie, and those of its weight.
Axes = tuple[tuple[int, ...], tuple[int, ...]]


class Step(Enum):
    """An operator between factors and the product that takes them."""

    #: A product with factors itself.
    FACTORS = auto()
    #: Positive factors go through.
    POSITIVE = auto()
    #: A sum of tensors: the other operand is scaled.
    SUM = auto()
    #: A sum with a vector along an axis: the vector is scaled.
    VECTOR = auto()


@dataclass(frozen=True)
class Product:
    """An operator whose weight takes factors.

    `axes(call, which)` says along which axes, for the data ("I") or the result ("O"). It says None where there are
    none.
    """

    axes: Callable[[Call, str], Axes | None]


Rule = Step | Product


@dataclass(frozen=True)
class Factors:
    """One factor for each index of an axis and its blocks: the expression as written, and as a vector."""

    full: Expr
    vector: Expr
    axes: tuple[int, ...]
    extent: int
    positive: bool


def _flat(expr: Expr, axes: int, extent: int) -> Expr:
    ty = tensor_type(expr)
    assert ty is not None
    if ty.shape == (extent,):
        return expr
    if axes > 1:
        return op_call("reshape", [expr], TensorType((extent,), ty.dtype), newshape=[extent])
    others = [i for i, d in enumerate(ty.shape) if d != extent]
    return op_call("squeeze", [expr], TensorType((extent,), ty.dtype), axis=others)


def factors_of(factor: Expr, shape: tuple[int, ...], axes: tuple[int, ...]) -> Factors | None:
    """`factor` as factors of an axis of a tensor and its blocks: its other extents are 1."""
    own = static_shape(factor.checked_type)
    if own is None or len(own) > len(shape):
        return None
    padded = (1,) * (len(shape) - len(own)) + own
    extent = int(np.prod([shape[a] for a in axes]))
    if extent == 1 or any(d != (shape[i] if i in axes else 1) for i, d in enumerate(padded)):
        return None
    positive = isinstance(factor, Constant) and bool(np.all(factor.data > 0))
    return Factors(factor, _flat(factor, len(axes), extent), axes, extent, positive)


def weight_times(weight: Expr, factors: Factors, axes: tuple[int, ...]) -> Expr:
    ty = tensor_type(weight)
    assert ty is not None
    factor = factors.vector
    wide = [d if i in axes else 1 for i, d in enumerate(ty.shape)][axes[0] :]
    if len(axes) > 1:
        factor = op_call("reshape", [factor], TensorType(wide, ty.dtype), newshape=wide)
    elif len(wide) > 1:
        factor = op_call("expand_dims", [factor], TensorType(wide, ty.dtype), axis=1, num_newaxis=len(wide) - 1)
    return op_call("multiply", [weight, factor], ty)


def scaled_operand(operand: Expr, factors: Factors, rank: int, divide: bool) -> Expr | None:
    """A summand of channels, multiplied (or divided) by the factors."""
    own = static_shape(operand.checked_type)
    if own is None or any(d != 1 for i, d in enumerate((1,) * (rank - len(own)) + own) if i not in factors.axes):
        return None
    factor_shape = static_shape(factors.full.checked_type)
    assert factor_shape is not None
    ty = tensor_type(operand)
    assert ty is not None
    shape = np.broadcast_shapes(own, factor_shape)
    return _times(operand, factors.full, TensorType(shape, ty.dtype), divide)


def scaled_vector(vector: Expr, factors: Factors, divide: bool) -> Expr:
    """A vector along the factors' axis, multiplied (or divided) by them."""
    ty = tensor_type(vector)
    assert ty is not None
    return _times(vector, factors.vector, ty, divide)


def _times(x: Expr, y: Expr, ty: TensorType, divide: bool) -> Call:
    return op_call("divide" if divide else "multiply", [x, y], ty)


def _axes_of(layout: str, letter: str) -> tuple[int, ...] | None:
    """The positions of an axis and its blocks in a layout."""
    found = places(layout, letter)
    known = parts(layout)
    if not found or known[found[0]][1] or any(not known[a][1] for a in found[1:]):
        return None
    return tuple(found)


def _dense(call: Call, which: str) -> Axes | None:
    ty = tensor_type(call)
    return ((1,), (1 if which == "I" else 0,)) if ty is not None and len(ty.shape) == 2 else None


def _convolution(call: Call, which: str) -> Axes | None:
    attrs = call.attrs
    data_layout, kernel_layout = attrs.data_layout, attrs.kernel_layout
    if which == "O" and attrs.out_layout not in ("", None, data_layout):
        return None
    weight = static_shape(call.args[1].checked_type)
    inputs, outputs = _axes_of(kernel_layout, "I"), _axes_of(kernel_layout, "O")
    if weight is None or inputs is None or outputs is None:
        return None
    extents = [prod([weight[a] for a in axes]) for axes in (outputs, inputs)]
    if attrs.groups != 1 and which == "I":
        if extents != [attrs.groups, 1]:
            return None
        which = "O"  # a kernel for each channel: inputs are outputs
    shape = static_shape((call.args[0] if which == "I" else call).checked_type)
    data, kernel = _axes_of(data_layout, "C"), inputs if which == "I" else outputs
    if data is None or shape is None or prod([shape[a] for a in data]) != extents[which == "I"]:
        return None  # blocks that are not full
    return data, kernel


RULES: Mapping[str, Rule] = {
    "multiply": Step.FACTORS,
    **dict.fromkeys(having(Trait.CONV, without=[Trait.QUANTISED, Trait.BLOCKED]), Product(_convolution)),
    "nn.dense": Product(_dense),
    "nn.relu": Step.POSITIVE,
    "nn.leaky_relu": Step.POSITIVE,
    "nn.bias_add": Step.VECTOR,
    "add": Step.SUM,
    "subtract": Step.SUM,
}
