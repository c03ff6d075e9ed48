"""The operators that MediaPipe's networks add.

Source: MediaPipe, mediapipe/util/tflite/operations, and the parsers of TensorFlow Lite's GPU delegate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.tflite.families.conv import transposed
from relaylang.frontends.tflite.node import Node
from relaylang.frontends.tflite.windows import window
from relaylang.ir import Expr


def _words(n: Node, count: int) -> list[int]:
    """The int32 numbers of options that are a C structure: padding (1 is SAME, 2 is VALID), width, height ..."""
    if len(n.operator.custom) < 4 * count:
        raise Unsupported(f"its options have {len(n.operator.custom)} bytes, not {4 * count}")
    return [int(w) for w in np.frombuffer(n.operator.custom[: 4 * count], "<i4")]


def transpose_bias(n: Node) -> Any:
    """A transposed convolution with a bias: data, weights (OHWI), bias."""
    b = n.b
    padding, width, height = _words(n, 3)
    shape = b.static_shape(n.x(1), "the weights")
    sizes = []
    for axis, stride in ((1, height), (2, width)):
        have = b.extent(n.x(0), axis)
        sizes.append(have * stride if padding == 1 else (have - 1) * stride + shape[axis])
    conv = transposed(n, n.real(0), b.transpose(n.real(1), (3, 0, 1, 2)), shape, sizes, (height, width), padding == 1)
    return b.op("nn.bias_add", conv, n.real(2), axis=3)


def _pool(n: Node) -> tuple[int, int]:
    """The window's height and width; strides and padding become options as those of a builtin pool."""
    padding, stride_w, stride_h, width, height, activation = _words(n, 6)
    n.options = {
        "padding": padding - 1,
        "stride_w": stride_w,
        "stride_h": stride_h,
        "fused_activation_function": activation,
    }
    return height, width


def max_pool_argmax(n: Node) -> Any:
    """The largest elements, and their places in their windows as real numbers with 0.1 added."""
    b = n.b
    height, width = _pool(n)
    attrs = window(n, (height, width))
    top, left, bottom, right = attrs["padding"]
    stride_h, stride_w = attrs["strides"]
    x = n.real(0)
    least = float(np.finfo(np.float32).min)
    padded = b.op("nn.pad", x, b.const(least, "float32"), pad_width=[[0, 0], [top, bottom], [left, right], [0, 0]])
    rows = (b.extent(padded, 1) - height) // stride_h + 1
    columns = (b.extent(padded, 2) - width) // stride_w + 1
    parts = []
    for y in range(height):
        for z in range(width):
            end = [y + (rows - 1) * stride_h + 1, z + (columns - 1) * stride_w + 1]
            parts.append(b.slice(padded, [y, z], end, [1, 2], [stride_h, stride_w]))
    stacked = b.op("stack", b.tuple(parts), axis=0)
    places = b.cast(b.op("argmax", stacked, axis=(0,)), "float32")
    return [n.activated(b.op("max", stacked, axis=(0,))), b.op("add", places, 0.1)]


def max_unpooling(n: Node) -> Any:
    """Elements back at their places in windows that do not overlap; all others are 0."""
    b = n.b
    height, width = _pool(n)
    if (n.options["stride_h"], n.options["stride_w"]) != (height, width):
        raise Unsupported("its windows overlap")
    x, places = n.real(0), b.cast(n.real(1), "int32")
    rows, columns, channels = (b.extent(x, a) for a in (1, 2, 3))
    chosen = b.op("one_hot", places, b.const(1.0, "float32"), b.const(0.0, "float32"), depth=height * width, axis=-1, dtype="float32")
    spread = b.op("multiply", chosen, b.unsqueeze(x, [4]))
    spread = b.op("reshape", spread, newshape=(-1, rows, columns, channels, height, width))
    return b.reshape(b.transpose(spread, (0, 1, 4, 2, 5, 3)), [-1, rows * height, columns * width, channels])


def _element(b: Builder, flat: Expr, index: int) -> Expr:
    return b.scalar(b.slice(flat, [index], [index + 1], [0]))


def transform_landmarks(n: Node) -> Any:
    """Points (1, n, 2 or 3), or all coordinates along the last axis: x and y are moved by a 4 x 4 matrix, z stays."""
    b, points, options = n.b, n.real(0), n.flexible_options() if n.operator.custom else {}
    shape = b.static_shape(points)
    dimensions = int(options.get("dimensions", shape[-1] if len(shape) == 3 else 3))
    scale = float(options.get("scale", 1.0)) if len(shape) == 4 else 1.0
    flat = b.reshape(n.real(1), [16])
    m = {i: _element(b, flat, i) for i in (0, 1, 3, 4, 5, 7)}
    rows = b.reshape(points, [-1, dimensions])
    x, y = (b.slice(rows, [i], [i + 1], [1]) for i in (0, 1))

    def moved(first: int) -> Expr:
        shift = m[first + 3] if scale == 1.0 else b.op("multiply", m[first + 3], scale)
        product = b.op("add", b.op("multiply", x, m[first]), b.op("multiply", y, m[first + 1]))
        return b.op("add", product, shift)

    rest = [b.slice(rows, [2], [3], [1])] if dimensions == 3 else []
    return b.reshape(b.concat([moved(0), moved(4), *rest], 1), list(shape))


def landmarks_to_matrix(n: Node) -> Any:
    """The 4 x 4 matrix from the pixels of a crop to the landmarks' coordinates (version 2).

    The crop holds the landmarks of a subset, turned so that two landmarks lie level.
    """
    b, o = n.b, n.flexible_options()
    if "subset_idxs" not in o or b.rank(n.x(0)) != 3:
        raise Unsupported("the importer has its version 2 only")
    rows = b.reshape(n.real(0), [-1, b.extent(n.x(0), 2)])
    x, y = (b.squeeze(b.slice(rows, [i], [i + 1], [1]), [1]) for i in (0, 1))
    left, right = int(o["left_rotation_idx"]), int(o["right_rotation_idx"])
    dx, dy = (b.op("subtract", _element(b, v, right), _element(b, v, left)) for v in (x, y))
    turn = b.op("subtract", b.const(float(o["target_rotation_radians"]), "float32"), nn.angle(b, dy, dx))
    cos, sin = b.op("cos", turn), b.op("sin", turn)
    subset = b.const(np.array(o["subset_idxs"], np.int32))
    px, py = (b.op("take", v, subset, axis=0) for v in (x, y))
    ux = b.op("subtract", b.op("multiply", px, cos), b.op("multiply", py, sin))
    uy = b.op("add", b.op("multiply", px, sin), b.op("multiply", py, cos))
    low, high = ([b.op(op, v) for v in (ux, uy)] for op in ("min", "max"))
    width, height = (b.op("subtract", h, s) for h, s in zip(high, low))
    mx, my = (b.op("multiply", b.op("add", h, s), 0.5) for h, s in zip(high, low))
    center_x = b.op("add", b.op("multiply", mx, cos), b.op("multiply", my, sin))
    center_y = b.op("subtract", b.op("multiply", my, cos), b.op("multiply", mx, sin))
    columns, lines = float(o["output_width"]), float(o["output_height"])
    sx = b.op("multiply", width, float(o["scale_x"]) / columns)
    sy = b.op("multiply", height, float(o["scale_y"]) / lines)
    # shift(center) * rotation(-turn) * scale * shift(-half the crop)
    a, c = b.op("multiply", cos, sx), b.op("multiply", sin, sy)
    d, e = b.op("negative", b.op("multiply", sin, sx)), b.op("multiply", cos, sy)
    tx = b.op("add", center_x, b.op("add", b.op("multiply", a, -columns / 2), b.op("multiply", c, -lines / 2)))
    ty = b.op("add", center_y, b.op("add", b.op("multiply", d, -columns / 2), b.op("multiply", e, -lines / 2)))
    zero, one = b.const(0.0, "float32"), b.const(1.0, "float32")
    cells = [a, c, zero, tx, d, e, zero, ty, zero, zero, one, zero, zero, zero, zero, one]
    return b.reshape(b.op("stack", b.tuple(cells), axis=0), [1, 4, 4])


def transform_tensor(n: Node) -> Any:
    """A crop of an image at the places that a 4 x 4 matrix gives, between pixels; 0 outside the image."""
    b, o = n.b, n.flexible_options()
    x = n.real(0)
    lines, columns = int(o["output_height"]), int(o["output_width"])
    height, width = b.extent(x, 1), b.extent(x, 2)
    flat = b.reshape(n.real(1), [16])
    half = 0.5 if n.operator.version >= 2 or n.operator.name == "TransformTensorBilinear" else 0.0
    places = []
    for first in (0, 4):
        along, down, shift = (_element(b, flat, first + i) for i in (0, 1, 3))
        across = b.const((b.arrays.arange(columns, dtype=np.float32) + half).reshape(1, -1))
        below = b.const((b.arrays.arange(lines, dtype=np.float32) + half).reshape(-1, 1))
        sampled = b.op("add", b.op("multiply", across, along), b.op("multiply", below, down))
        places.append(b.op("subtract", b.op("add", sampled, shift), half))
    inside = None
    for place, extent in zip(places, (width, height)):
        for test in (b.op("greater_equal", place, 0.0), b.op("less_equal", place, float(extent - 1))):
            inside = test if inside is None else b.op("logical_and", inside, test)
    scaled = [b.op("subtract", b.op("multiply", p, 2 / (e - 1)), 1.0) for p, e in zip(places, (width, height))]
    grid = b.unsqueeze(b.op("stack", b.tuple(scaled), axis=0), [0])
    sampled = b.op("image.grid_sample", b.transpose(x, (0, 3, 1, 2)), grid, method="bilinear", layout="NCHW", padding_mode="zeros")
    mask = b.cast(b.unsqueeze(inside, [0, 1]), "float32")  # type: ignore[arg-type]
    return b.transpose(b.op("multiply", sampled, mask), (0, 2, 3, 1))


RULES = (
    Rule("Convolution2DTransposeBias", transpose_bias),
    Rule("Landmarks2TransformMatrix", landmarks_to_matrix),
    Rule("MaxPoolingWithArgmax2D", max_pool_argmax),
    Rule("MaxUnpooling2D", max_unpooling),
    Rule("TransformLandmarks", transform_landmarks),
    Rule("TransformTensor", transform_tensor),
    Rule("TransformTensorBilinear", transform_tensor),
)
