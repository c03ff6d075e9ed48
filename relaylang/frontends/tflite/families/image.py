"""Resizing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.tflite.node import Node


def resize(method: str) -> Callable[[Node], Any]:
    """The size is the second operand: height, width."""

    def convert(n: Node) -> Any:
        b, o = n.b, n.options
        align, half = bool(o.get("align_corners")), bool(o.get("half_pixel_centers"))
        mode = "align_corners" if align else "half_pixel" if half else "asymmetric"
        rounding = ""
        nearest = method == "nearest_neighbor"
        if nearest:
            mode = "tf_half_pixel_for_nn" if half and not align else mode
            rounding = "round" if align else "floor"
            if mode == "align_corners" and half:
                raise Unsupported("it has both align_corners and half_pixel_centers")
        # TensorFlow Lite mixes the stored numbers, and rounds halves away from zero.
        mixed = n.same_scales() and n.q(0) is not None and not nearest
        x = n.numbers(0) if mixed else n.x(0) if nearest and n.same_scales() else n.real(0)
        resized = b.op(
            "image.resize2d",
            x,
            size=n.ints(1, "the size"),
            roi=[0.0] * 4,
            layout="NHWC",
            method=method,
            coordinate_transformation_mode=mode,
            rounding_method=rounding,
        )
        if mixed:
            return n.stored(resized)
        return resized if x is n.x(0) else n.result(resized, activation=False)

    return convert


RULES = (
    Rule("RESIZE_BILINEAR", resize("linear")),
    Rule("RESIZE_NEAREST_NEIGHBOR", resize("nearest_neighbor")),
)
