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
from relaylang.ops.build import op_call, with_axes_behind
from relaylang.ops.layouts import parts, places
from relaylang.ops.record import Op

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
    """One factor for each index of an axis and its blocks: an expression with these axes alone."""

    vector: Expr
    axes: tuple[int, ...]
    #: Whether they are known to be greater than 0, and not to be 0.
    positive: bool
    invertible: bool
    #: Whether they are constants.
    known: bool


def _numbers(expr: Expr) -> np.ndarray | None:
    """The numbers of a constant, also behind operators that only change its shape; in any order."""
    while isinstance(expr, Call) and isinstance(expr.op, Op) and Trait.RESHAPE in expr.op.traits:
        expr = expr.args[0]
    return expr.data if isinstance(expr, Constant) else None


def factors_of(factor: Expr, shape: tuple[int, ...], axes: tuple[int, ...]) -> Factors | None:
    """`factor` as factors of an axis of a tensor and its blocks. It is a scalar, or its other extents are 1."""
    ty, own = tensor_type(factor), static_shape(factor.checked_type)
    if own is None or ty is None or len(own) > len(shape):
        return None
    before = len(shape) - len(own)
    extents = [shape[a] for a in axes]
    vector = factor
    if not own:
        vector = op_call("expand_dims", [factor], TensorType((1,) * len(axes), ty.dtype), axis=0, num_newaxis=len(axes))
        for place, extent in enumerate(extents):
            wide = (*extents[: place + 1], *(1,) * (len(axes) - place - 1))
            vector = op_call("repeat", [vector], TensorType(wide, ty.dtype), repeats=extent, axis=place)
    elif axes[0] < before or any(d != (shape[i] if i in axes else 1) for i, d in enumerate(own, before)):
        return None
    elif len(own) > len(axes):
        others = [i for i in range(len(own)) if i + before not in axes]
        vector = op_call("squeeze", [factor], TensorType(extents, ty.dtype), axis=others)
    known = _numbers(factor)
    positive = known is not None and bool(np.all(known > 0))
    return Factors(vector, axes, positive, known is not None and bool(np.all(known != 0)), known is not None)


def _along(factors: Factors, shape: tuple[int, ...], axes: tuple[int, ...]) -> Expr:
    """The factors in a form that broadcasts along axes of a tensor."""
    ty = tensor_type(factors.vector)
    assert ty is not None
    if len(axes) > 1 or len(ty.shape) > 1:
        wide = [d if i in axes else 1 for i, d in enumerate(shape)]
        return op_call("reshape", [factors.vector], TensorType(wide, ty.dtype), newshape=wide)
    return with_axes_behind(factors.vector, ty, len(shape) - axes[0] - 1)


def weight_times(weight: Expr, factors: Factors, axes: tuple[int, ...]) -> Expr:
    """A weight times the factors, along axes of its own."""
    ty, shape = tensor_type(weight), static_shape(weight.checked_type)
    assert ty is not None and shape is not None
    return op_call("multiply", [weight, _along(factors, shape, axes)], ty)


def is_along(operand: Expr, shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether a summand differs along axes of a tensor alone."""
    own = static_shape(operand.checked_type)
    if own is None or len(own) > len(shape) or own == shape:
        return False
    return all(d == 1 for i, d in enumerate(own, len(shape) - len(own)) if i not in axes)


def scaled_operand(operand: Expr, factors: Factors, shape: tuple[int, ...], divide: bool) -> Expr:
    """A summand of a tensor, multiplied (or divided) by the factors."""
    factor, ty, own = _along(factors, shape, factors.axes), tensor_type(operand), static_shape(operand.checked_type)
    wide = static_shape(factor.checked_type)
    assert ty is not None and own is not None and wide is not None
    return _times(operand, factor, TensorType(np.broadcast_shapes(own, wide), ty.dtype), divide)


def scaled_vector(vector: Expr, factors: Factors, divide: bool) -> Expr:
    """A vector along the factors' axis, multiplied (or divided) by them."""
    ty = tensor_type(vector)
    assert ty is not None
    return _times(vector, factors.vector, ty, divide)


def _times(x: Expr, y: Expr, ty: TensorType, divide: bool) -> Call:
    return op_call("divide" if divide else "multiply", [x, y], ty)


def _axes_of(layout: str, letter: str) -> tuple[int, ...] | None:
    """The positions of an axis and its blocks in a layout."""
    positions = places(layout, letter)
    known = parts(layout)
    if not positions or known[positions[0]][1] or any(not known[a][1] for a in positions[1:]):
        return None
    return tuple(positions)


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
