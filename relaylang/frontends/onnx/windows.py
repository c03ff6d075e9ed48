"""The attributes that convolutions and pools have in common."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.frontends.common import Unsupported
from relaylang.frontends.common.nn import same_padding
from relaylang.frontends.onnx.node import Node
from relaylang.ir.types import Dim

Pairs = list[tuple[int, int]]


def pairs_of(pads: Sequence[int]) -> Pairs:
    """ONNX lists all begins, then all ends."""
    half = len(pads) // 2
    return list(zip(pads[:half], pads[half:]))


def padding(n: Node, sizes: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Pairs:
    """The padding that `auto_pad` or `pads` states."""
    auto = n.string("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        return same_padding(sizes, kernel, strides, dilations, lower=auto == "SAME_LOWER")
    if auto == "VALID":
        return [(0, 0)] * len(kernel)
    if auto not in ("NOTSET", ""):
        raise Unsupported(f"auto_pad={auto} is unknown")
    return pairs_of(n.ints("pads", [0] * (2 * len(kernel))))


def ones(n: Node, name: str, count: int) -> list[int]:
    """An attribute with a number for each spatial axis, 1 by default."""
    values = n.ints(name, [1] * count)
    if len(values) != count:
        raise Unsupported(f"{name}={values} must have {count} numbers")
    return values


__all__ = ["Pairs", "ones", "padding", "pairs_of"]
