"""Static quantisation: what each operator does with values that have a scale.

A row says which part an operator takes in a layer. A layer is one operator between quantised values; a product with its
bias, or with the limits behind it, is one layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from relaylang.ops import Trait, having
from relaylang.rules.fake_quantization import FLOWS
from relaylang.rules.fake_quantization import RULES as INTEGER


class Role(Enum):
    """The part of an operator in a layer."""

    #: A product of data and weights, whose sums have 32 bits.
    PRODUCT = auto()
    #: A constant that is added to a product's sums.
    BIAS = auto()
    #: A limit of the range: it may join the operator before it.
    LIMIT = auto()
    #: Elements are moved, or chosen: the result has its operand's scale.
    SAME = auto()
    #: A result at a scale of its own.
    OTHER = auto()
    #: As `OTHER`, for accelerators that have tables of the function.
    TABLE = auto()


_LIMITS = ("nn.relu", "clip")
_PRODUCTS = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul")
_JOINS = ("concatenate", "maximum", "minimum")
ROLES: Mapping[str, Role] = {
    **dict.fromkeys(having(Trait.UNARY), Role.TABLE),
    **dict.fromkeys([name for name in INTEGER if name != "topk"], Role.OTHER),
    **dict.fromkeys(FLOWS.difference(_LIMITS, _JOINS, {"topk"}), Role.SAME),
    **dict.fromkeys(_PRODUCTS, Role.PRODUCT),
    **dict.fromkeys(_LIMITS, Role.LIMIT),
    "nn.bias_add": Role.BIAS,
    "nn.softmax": Role.TABLE,
}

#: Functions with bounds: the scale of their results, and the smallest result. Source: TensorFlow Lite's specification of int8.
BOUNDED: Mapping[str, tuple[float, float]] = {
    "sigmoid": (1 / 256, 0.0),
    "nn.softmax": (1 / 256, 0.0),
    "tanh": (1 / 128, -1.0),
}


#: Sums that round once where a target has integers of 32 bits for them.
_SUMS = ("add", "subtract")


@dataclass(frozen=True)
class Wishes:
    """What an accelerator, or the processor, wants of a quantised network."""

    #: All layers that have an integer form, else only those between other quantised layers.
    everything: bool
    #: Zero points of activations other than 0.
    asymmetric: bool = True
    #: Functions of one element are tables.
    tables: bool = False
    #: Sums of bytes that round once, else as `qnn.add`, which kernels of other libraries stand for.
    finer_sums: Sequence[str] = ()


TARGETS: Mapping[str, Wishes] = {
    "c": Wishes(everything=False, finer_sums=_SUMS),
    "cmsis-nn": Wishes(everything=True),
    "ethos-u": Wishes(everything=True, tables=True, finer_sums=_SUMS),
}

__all__ = ["BOUNDED", "ROLES", "TARGETS", "Role", "Wishes"]
