"""The shapes that operators give to operands whose own shapes a symbol leaves open: their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.mxnet.node import Node
from relaylang.ir import ANY

#: A shape, None where it does not follow.
Shape = Sequence[Any] | None
#: From a layer and the shape of its first operand to the shapes of the others.
_Rule = Callable[[Node, Any], Sequence[Shape]]


def _channels(n: Node, shape: Any, axis: int = 1) -> Any:
    return shape[axis] if -len(shape) <= axis < len(shape) else None


def _convolution(n: Node, shape: Any) -> Sequence[Shape]:
    kernel, count = n.ints("kernel"), n.int("num_filter")
    last = n.string("layout", "NC").endswith("C")
    own = _channels(n, shape, -1 if last else 1)
    each = own // n.int("num_group", 1) if isinstance(own, int) else ANY
    weight = [count, *kernel, each] if last else [count, each, *kernel]
    return [weight, [count]]


def _deconvolution(n: Node, shape: Any) -> Sequence[Shape]:
    count = n.int("num_filter")
    return [[_channels(n, shape), count // max(n.int("num_group", 1), 1), *n.ints("kernel")], [count]]


def _dense(n: Node, shape: Any) -> Sequence[Shape]:
    count = n.int("num_hidden")
    rest = shape[1:] if n.bool("flatten", True) else shape[-1:]
    width = math.prod(rest) if all(isinstance(d, int) for d in rest) else ANY
    return [[count, width], [count]]


def _vectors(axis: int, count: int) -> _Rule:
    def shapes(n: Node, shape: Any) -> Sequence[Shape]:
        return [[_channels(n, shape, n.int("axis", axis))]] * count

    return shapes


def _prelu(n: Node, shape: Any) -> Sequence[Shape]:
    return [[_channels(n, shape)]]


def _same(n: Node, shape: Any) -> Sequence[Shape]:
    return [shape]


_RULES: dict[str, _Rule] = {
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "FullyConnected": _dense,
    "BatchNorm": _vectors(1, 4),
    "LayerNorm": _vectors(-1, 2),
    "InstanceNorm": _vectors(1, 2),
    "GroupNorm": _vectors(1, 2),
    "LeakyReLU": _prelu,
    "Embedding": lambda n, shape: [[n.int("input_dim"), n.int("output_dim")]],
    "_contrib_BatchNormWithReLU": _vectors(1, 4),
}
_ALIKE = frozenset(("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_maximum", "_minimum", "_power"))


def is_weight(operator: str, index: int) -> bool:
    """Whether an operand of an operator is a weight: a value that a file of parameters has."""
    return index > 0 and operator in _RULES


def expected(n: Node, operator: str, index: int, shape: Any) -> Shape:
    """The shape of an operand that follows from that of the first one; None where none follows."""
    rule = _RULES.get(operator, _same if operator in _ALIKE else None)
    if rule is None or index == 0:
        return None
    shapes = rule(n, shape)
    own = shapes[index - 1] if index <= len(shapes) else None
    return None if own is None or None in own else own


__all__ = ["expected", "is_weight"]
