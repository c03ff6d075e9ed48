"""FoldScaleAxis: what each operator does with factors of channels that pass through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

from relaylang.ir import Call
from relaylang.ir.tensors import static_shape, tensor_type
from relaylang.ops import Trait, having
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

    `axes(call, which)` says along which axes, for the data ("I") or the result ("O"). It says None where there are none.
    """

    axes: Callable[[Call, str], Axes | None]


Rule = Step | Product


def _axes_of(layout: str, letter: str) -> tuple[int, ...] | None:
    """Where an axis stands in a layout, and its blocks behind it."""
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
