"""Resizing, and the operators that MediaPipe's networks add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.tflite.families.conv import transposed
from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr


def resize(method: str) -> Callable[[Node], Any]:
    """The size is the second operand: height, width."""

    def convert(n: Node) -> Any:
        b, o = n.b, n.options
        align, half = bool(o.get("align_corners")), bool(o.get("half_pixel_centers"))
        mode = "align_corners" if align else "half_pixel" if half else "asymmetric"
        rounding = ""
        if method == "nearest_neighbor":
            mode = "tf_half_pixel_for_nn" if half and not align else mode
            rounding = "round" if align else "floor"
            if mode == "align_corners" and half:
                raise Unsupported("it has both align_corners and half_pixel_centers")
        x = n.x(0) if method == "nearest_neighbor" and n.same_scales() else n.real(0)
        made = b.op(
            "image.resize2d", x, size=n.ints(1, "the size"), roi=[0.0] * 4, layout="NHWC", method=method,
            coordinate_transformation_mode=mode, rounding_method=rounding,
        )  # fmt: skip
        return made if x is n.x(0) else n.result(made, activation=False)

    return convert


# ---- MediaPipe


def _convolution_params(n: Node) -> tuple[int, int, bool]:
    """Strides and SAME of TfLiteTransposeConvParams, three int32: padding (1 is SAME), width, height."""
    words = np.frombuffer(n.operator.custom[:12], np.int32)
    if words.size != 3:
        raise Unsupported("its options are not those of TfLiteTransposeConvParams")
    return int(words[2]), int(words[1]), int(words[0]) == 1


def transpose_bias(n: Node) -> Any:
    """`Convolution2DTransposeBias`: data, weights (OHWI), bias."""
    b = n.b
    height, width, same = _convolution_params(n)
    shape = b.static_shape(n.x(1), "the weights")
    sizes = []
    for axis, stride in ((1, height), (2, width)):
        have = b.extent(n.x(0), axis)
        sizes.append(have * stride if same else (have - 1) * stride + shape[axis])
    made = transposed(n, n.real(0), b.transpose(n.real(1), (3, 0, 1, 2)), shape, sizes, (height, width), same)
    return b.op("nn.bias_add", made, n.real(2), axis=3)


def _matrix_parts(n: Node, index: int) -> list[Expr]:
    """The first two rows of a 4 x 4 matrix, element by element."""
    b = n.b
    flat = b.reshape(n.real(index), [16])
    return [b.scalar(b.slice(flat, [i], [i + 1], [0])) for i in (0, 1, 3, 4, 5, 7)]


def transform_landmarks(n: Node) -> Any:
    """Points (1, n, 2 or 3), moved in x and y by a 4 x 4 matrix; z stays."""
    b, points = n.b, n.real(0)
    a, c, e, d, f, g = _matrix_parts(n, 1)
    axis = b.rank(points) - 1
    x, y = (b.slice(points, [i], [i + 1], [axis]) for i in (0, 1))
    new_x = b.op("add", b.op("add", b.op("multiply", x, a), b.op("multiply", y, c)), e)
    new_y = b.op("add", b.op("add", b.op("multiply", x, d), b.op("multiply", y, f)), g)
    rest = [b.slice(points, [2], [b.extent(points, axis)], [axis])] if b.extent(points, axis) > 2 else []
    return b.concat([new_x, new_y, *rest], axis)


RULES = (
    Rule("Convolution2DTransposeBias", transpose_bias),
    Rule("RESIZE_BILINEAR", resize("linear")),
    Rule("RESIZE_NEAREST_NEIGHBOR", resize("nearest_neighbor")),
    Rule("TransformLandmarks", transform_landmarks),
)
