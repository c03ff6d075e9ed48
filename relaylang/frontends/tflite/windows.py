"""The windows of convolutions and pools: strides, dilation, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.frontends.common.nn import padding_of, same_padding
from relaylang.frontends.tflite.node import Node


def window(n: Node, kernel: Sequence[int]) -> dict[str, Any]:
    """The attributes strides, dilation and padding of a layer on NHWC data; the option padding is 0 for SAME, 1 for VALID."""
    o = n.options
    strides = (o["stride_h"], o["stride_w"])
    dilation = (o.get("dilation_hfactor", 1), o.get("dilation_wfactor", 1))
    pairs = [(0, 0)] * 2
    if o["padding"] == 0:
        pairs = same_padding(n.b.shape(n.x(0))[1:3], kernel, strides, dilation)
    return {"strides": strides, "dilation": dilation, "padding": padding_of(pairs)}


__all__ = ["window"]
