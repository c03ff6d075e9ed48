"""Windows over height and width: Relay's numbers of strides and paddings, and exact paddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.diagnostics.unsupported import Unsupported


def pair(values: Any) -> tuple[int, int]:
    values = tuple(int(v) for v in values) if isinstance(values, (list, tuple)) else (int(values),)
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def padding4(values: Any) -> tuple[int, int, int, int]:
    """Relay's padding of 1, 2 or 4 numbers as (top, left, bottom, right)."""
    values = tuple(int(v) for v in values) if isinstance(values, (list, tuple)) else (int(values),)
    if len(values) == 1:
        return (values[0],) * 4  # type: ignore[return-value]
    if len(values) == 2:
        return values[0], values[1], values[0], values[1]
    return values  # type: ignore[return-value]


#: In steps above 3, Vela gives more channels than a block of the U85 the weights of others.
_MOST_CHANNELS = 128


def check_steps(stride: tuple[int, int], channels: int) -> None:
    """Refuse a depthwise convolution in large steps of so many channels. Averages are such convolutions."""
    if max(stride) > 3 and channels > _MOST_CHANNELS:
        raise Unsupported(f"steps of {max(stride)} over {channels} channels; at most {_MOST_CHANNELS} are taken in steps above 3")


def nchw(shape: Sequence[Any], layout: str) -> tuple[int, int, int, int]:
    return tuple(int(shape[layout.index(a)]) for a in "NCHW")  # type: ignore[return-value]


def exact_padding(
    size: tuple[int, int],
    out: tuple[int, int],
    kernel: tuple[int, int],
    pad: tuple[int, int, int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
) -> tuple[int, int, int, int]:
    """The padding with which the windows fill the input exactly, as TOSA wants: only the far sides change.

    A negative number says how many last rows or columns no window reaches.
    """
    if min(out) < 1:
        raise Unsupported("its result is empty")
    top, left = pad[:2]
    bottom, right = ((out[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 - size[i] - pad[i] for i in (0, 1))
    if min(top, left) < 0:
        raise Unsupported("a negative padding")
    if -bottom >= size[0] or -right >= size[1]:
        raise Unsupported("its windows lie in the padding only")
    return top, left, bottom, right
