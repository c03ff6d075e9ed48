"""The attributes that convolutions and pools have in common."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.frontends.common import Malformed
from relaylang.frontends.common.nn import check_window, same_padding
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
    check_window(kernel, strides, dilations)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        return same_padding(sizes, kernel, strides, dilations, lower=auto == "SAME_LOWER")
    if auto == "VALID":
        return [(0, 0)] * len(kernel)
    if auto not in ("NOTSET", ""):
        raise Malformed(f"the attribute auto_pad is {auto[:40]!r}; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID")
    pads = n.ints("pads", [0] * (2 * len(kernel)))
    if len(pads) != 2 * len(kernel):
        raise Malformed(f"the attribute pads has {len(pads)} numbers; it must have {2 * len(kernel)}, two for each axis")
    return pairs_of(pads)


def ones(n: Node, name: str, count: int) -> list[int]:
    """An attribute with a number for each spatial axis, 1 by default."""
    values = n.ints(name, [1] * count)
    if len(values) != count:
        raise Malformed(f"the attribute {name} has {len(values)} numbers; it must have {count}, one for each axis")
    return values


__all__ = ["Pairs", "ones", "padding", "pairs_of"]
