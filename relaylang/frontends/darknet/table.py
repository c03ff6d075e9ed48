"""The conversions of Darknet's layers, by the names of sections.

Source: the layers of Darknet, of its first author and of the versions with YOLO v4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Table, Unsupported, nn
from relaylang.frontends.common.nn import check_window, padding_of
from relaylang.frontends.darknet.node import Node
from relaylang.ir import Expr

#: Layers whose form Relay has, but not this importer; they keep states from call to call, or serve training.
REFUSED = {
    **dict.fromkeys(("rnn", "gru", "lstm", "crnn", "conv_lstm", "history"), "its states go from call to call"),
    "detection": "the boxes of YOLO v1 are made by Darknet's own code",
}


def _sigmoid(b: Builder, x: Expr) -> Any:
    return b.op("sigmoid", x)


def _pieces(b: Builder, x: Expr) -> Any:
    """`plse`: a slope of 0.01 below -4 and above 4, 1/8 between them."""
    low = b.op("multiply", b.op("add", x, 4.0), 0.01)
    high = b.op("add", b.op("multiply", b.op("subtract", x, 4.0), 0.01), 1.0)
    middle = b.op("add", b.op("multiply", x, 0.125), 0.5)
    return b.op("where", b.op("less", x, -4.0), low, b.op("where", b.op("greater", x, 4.0), high, middle))


def _low_tanh(b: Builder, x: Expr) -> Any:
    """`lhtan`: a slope of 0.001 outside of [0, 1]."""
    low, high = b.op("multiply", x, 0.001), b.op("add", b.op("multiply", b.op("subtract", x, 1.0), 0.001), 1.0)
    return b.op("where", b.op("less", x, 0.0), low, b.op("where", b.op("greater", x, 1.0), high, x))


def _stair(b: Builder, x: Expr) -> Any:
    """`stair`: floor(x / 2) where floor(x) is even, else the way to the next step."""
    floor = b.op("floor", x)
    half = b.op("floor", b.op("divide", x, 2.0))
    even = b.op("equal", b.op("multiply", b.op("floor", b.op("divide", floor, 2.0)), 2.0), floor)
    return b.op("where", even, half, b.op("add", b.op("subtract", x, floor), half))


ACTIVATIONS: dict[str, Callable[[Builder, Expr], Any]] = {
    "linear": lambda b, x: x,
    "logistic": _sigmoid,
    "relu": lambda b, x: b.op("nn.relu", x),
    "relu6": lambda b, x: b.op("clip", x, a_min=0.0, a_max=6.0),
    "relie": lambda b, x: b.op("nn.leaky_relu", x, alpha=0.01),
    "ramp": lambda b, x: b.op("add", b.op("nn.relu", x), b.op("multiply", x, 0.1)),
    "tanh": lambda b, x: b.op("tanh", x),
    "plse": _pieces,
    "leaky": lambda b, x: b.op("nn.leaky_relu", x, alpha=0.1),
    "elu": lambda b, x: nn.elu(b, x),
    "selu": lambda b, x: nn.elu(b, x, 1.6732, 1.0507),
    "loggy": lambda b, x: b.op("subtract", b.op("multiply", b.op("sigmoid", x), 2.0), 1.0),
    "stair": _stair,
    "hardtan": lambda b, x: b.op("clip", x, a_min=-1.0, a_max=1.0),
    "lhtan": _low_tanh,
    "swish": lambda b, x: nn.swish(b, x),
    "mish": lambda b, x: nn.mish(b, x),
    "hard_mish": lambda b, x: b.op("multiply", x, b.op("multiply", b.op("clip", b.op("add", x, 2.0), a_min=0.0, a_max=2.0), 0.5)),
    "gelu": lambda b, x: nn.gelu(b, x, approximate=True),
}


def activated(n: Node, x: Expr, default: str) -> Any:
    """A result behind the layer's activation."""
    name = n.entries.get("activation", default)
    if name not in ACTIVATIONS:
        raise Unsupported(f"its activation is {name[:40]}")
    return ACTIVATIONS[name](n.b, x)


def _normalised(n: Node, x: Expr, beta: np.ndarray, scale: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Any:
    """Darknet adds its epsilon to the deviation, and since YOLO v4 to the variance. `nn.batch_norm` adds it to the variance."""
    if n.importer.recent:
        epsilon = 1e-5
    else:
        epsilon = 0.0
        variance = ((np.sqrt(variance.astype(np.float64)) + 1e-6) ** 2).astype(np.float32)
    names = ("gamma", "beta", "moving_mean", "moving_var")
    parts = [n.weight(a, name) for a, name in zip((scale, beta, mean, variance), names)]
    return n.b.fields(n.b.op("nn.batch_norm", x, *parts, axis=1, epsilon=epsilon))[0]


def _window(n: Node) -> tuple[int, list[int], int, int]:
    """The size of a kernel, its strides, its padding on each side and its dilation."""
    size, stride, dilation = n.int("size", 1, 1), n.int("stride", 1), n.int("dilation", 1, 1)
    strides = [n.int("stride_y", stride), n.int("stride_x", stride)]
    dilation = 1 if size == 1 else dilation
    check_window([size], strides, [dilation])
    padding = size // 2 if n.int("pad", 0) else n.int("padding", 0, 0)
    return size, strides, padding * dilation, dilation


def convolutional(n: Node, x: Expr) -> Any:
    """The biases come first in the file, then the moments of the normalisation, then the kernels."""
    b = n.b
    n.refuse(
        "antialiasing",
        "assisted_excitation",
        "binary",
        "deform",
        "dontload",
        "dontloadscales",
        "flipped",
        "rotate",
        "share_index",
        "stretch",
        "sway",
        "xnor",
    )
    filters, groups, channels = n.int("filters", 1, 1), n.int("groups", 1, 1), b.extent(b.of_rank(x, 4), 1)
    size, strides, padding, dilation = _window(n)
    if channels % groups or filters % groups:
        raise Malformed(f"its {channels} channels and {filters} filters do not form {groups} groups")
    shape = (filters, channels // groups, size, size)
    count = math.prod(shape) + filters
    if count > n.importer.weights.left:
        raise Malformed(f"it has {count} weights, and {n.importer.weights.file} has {n.importer.weights.left} more")
    normalise = n.int("batch_normalize", 0) != 0
    biases = n.take((filters,), "bias")
    moments = [n.take((filters,), name) for name in ("scales", "mean", "variance")] if normalise else []
    kernel = n.weight(n.take(shape, "weight"), "weight")
    conv = b.op(
        "nn.conv2d",
        x,
        kernel,
        strides=strides,
        padding=[padding] * 4,
        dilation=[dilation] * 2,
        groups=groups,
        channels=filters,
        kernel_size=[size, size],
    )
    conv = _normalised(n, conv, biases, *moments) if normalise else b.op("nn.bias_add", conv, n.weight(biases, "bias"), axis=1)
    return activated(n, conv, "logistic")


def deconvolutional(n: Node, x: Expr) -> Any:
    """Kernels are (channels, filters, size, size)."""
    b = n.b
    filters, channels = n.int("filters", 1, 1), b.extent(b.of_rank(x, 4), 1)
    size, strides, padding, _ = _window(n)
    normalise = n.int("batch_normalize", 0) != 0
    biases = n.take((filters,), "bias")
    moments = [n.take((filters,), name) for name in ("scales", "mean", "variance")] if normalise else []
    kernel = n.weight(n.take((channels, filters, size, size), "weight"), "weight")
    conv = b.op("nn.conv2d_transpose", x, kernel, strides=strides, padding=[padding] * 4, channels=filters, kernel_size=[size, size])
    conv = _normalised(n, conv, biases, *moments) if normalise else b.op("nn.bias_add", conv, n.weight(biases, "bias"), axis=1)
    return activated(n, conv, "logistic")


def connected(n: Node, x: Expr) -> Any:
    """Weights are (outputs, inputs), or turned in files of the first versions."""
    b = n.b
    data = b.op("nn.batch_flatten", x) if b.rank(x) > 2 else x
    outputs, inputs = n.int("output", 1, 1), b.extent(data, 1)
    if outputs * (inputs + 1) > n.importer.weights.left:
        raise Malformed(f"it has {outputs * (inputs + 1)} weights, and {n.importer.weights.file} has {n.importer.weights.left} more")
    biases = n.take((outputs,), "bias")
    turned = n.importer.weights.turned
    kernel = n.take((inputs, outputs), "weight").T if turned else n.take((outputs, inputs), "weight")
    normalise = n.int("batch_normalize", 0) != 0
    moments = [n.take((outputs,), name) for name in ("scales", "mean", "variance")] if normalise else []
    product = b.op("nn.dense", data, n.weight(np.ascontiguousarray(kernel), "weight"), units=outputs)
    product = (
        _normalised(n, product, biases, *moments) if normalise else b.op("nn.bias_add", product, n.weight(biases, "bias"), axis=1)
    )
    return activated(n, product, "logistic")


def maxpool(n: Node, x: Expr) -> Any:
    """`padding` is that of both sides together; the first one gets the smaller half."""
    b = n.b
    n.refuse("maxpool_depth", "antialiasing")
    b.of_rank(x, 4)
    stride = n.int("stride", 1, 1)
    strides = [n.int("stride_y", stride, 1), n.int("stride_x", stride, 1)]
    size = n.int("size", stride, 1)
    padding = n.int("padding", size - 1, 0)
    low = padding // 2
    pads = padding_of([(low, padding - low)] * 2)
    return b.op("nn.max_pool2d", x, pool_size=[size, size], strides=strides, padding=pads)


def avgpool(n: Node, x: Expr) -> Any:
    """The mean of each channel."""
    return n.b.op("nn.global_avg_pool2d", n.b.of_rank(x, 4))


def softmax(n: Node, x: Expr) -> Any:
    """Over all elements of a picture, or over each of several groups of them."""
    b = n.b
    n.refuse("tree")
    groups, temperature = n.int("groups", 1, 1), n.float("temperature", 1.0)
    if n.int("spatial", 0):
        return b.op("nn.softmax", x, axis=1)
    flat = b.op("nn.batch_flatten", x) if b.rank(x) > 2 else x
    size = b.extent(flat, 1)
    if temperature == 0 or size % groups:
        raise Malformed(f"its temperature is {temperature}, and it has {groups} groups of {size} elements")
    flat = flat if temperature == 1 else b.op("divide", flat, temperature)
    if groups == 1:
        return b.op("nn.softmax", flat, axis=1)
    parts = b.op("nn.softmax", b.op("reshape", flat, newshape=[0, groups, size // groups]), axis=2)
    return b.op("reshape", parts, newshape=[0, size])


def route(n: Node, x: Expr) -> Any:
    """Results of other layers behind each other; with `groups`, a part of each one's channels."""
    b = n.b
    parts = [b.of_rank(n.layer(i), 4) for i in n.ints("layers")]
    groups, group = n.int("groups", 1, 1), n.int("group_id", 0, 0)
    if groups > 1:
        slices = []
        for part in parts:
            channels = b.extent(part, 1)
            if channels % groups or group >= groups:
                raise Malformed(f"it takes the group {group} of {groups} from {channels} channels")
            width = channels // groups
            slices.append(b.slice(part, [group * width], [(group + 1) * width], [1]))
        parts = slices
    if any(b.shape(p)[2:] != b.shape(parts[0])[2:] for p in parts):
        raise Malformed(f"its layers have the sizes {', '.join(str(tuple(b.shape(p)[2:])) for p in parts)}")
    return b.concat(parts, 1)


def shortcut(n: Node, x: Expr) -> Any:
    """The sum with other layers' results. Of one with more channels the first ones count, of a larger one every other place."""
    b = n.b
    n.refuse("weights_type", "weights_normalization")
    total = b.of_rank(x, 4)
    alpha, beta = n.float("alpha", 1.0), n.float("beta", 1.0)
    total = total if alpha == 1 else b.op("multiply", total, alpha)
    for index in n.ints("from"):
        other = b.of_rank(n.layer(index), 4)
        have, wanted = b.static_shape(other), b.static_shape(total)
        if have[2] < wanted[2] or have[3] < wanted[3]:
            raise Unsupported("it adds a smaller picture to a larger one")
        step = have[3] // wanted[3]
        if step > 1:
            other = b.slice(other, [0, 0], [have[2], have[3]], [2, 3], [step, step])
            have = b.static_shape(other)
        if have[2:] != wanted[2:]:
            raise Malformed(f"it adds pictures of the sizes {tuple(wanted[2:])} and {tuple(have[2:])}")
        if have[1] > wanted[1]:
            other = b.slice(other, [0], [wanted[1]], [1])
        elif have[1] < wanted[1]:
            b.arrays.reserve(wanted, "padding channels", 0)
            other = b.op("nn.pad", other, b.const(0.0, "float32"), pad_width=[[0, 0], [0, wanted[1] - have[1]], [0, 0], [0, 0]])
        total = b.op("add", total, other if beta == 1 else b.op("multiply", other, beta))
    return activated(n, total, "linear")


def _scaled(gated: bool) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        """Channels or places times those of another layer."""
        b = n.b
        n.refuse("scale_wh")
        other = n.layer(n.int("from"))
        if b.shape(x)[1] != b.shape(other)[1] or (not gated and b.shape(x)[2:] != (1, 1)):
            raise Malformed("its operands do not fit")
        return activated(n, b.op("multiply", other, x), "linear")

    return convert


def upsample(n: Node, x: Expr) -> Any:
    """Each element `stride` times in both directions, times `scale`."""
    b = n.b
    stride, scale = n.int("stride", 2), n.float("scale", 1.0)
    if stride < 1:
        raise Unsupported("it makes pictures smaller")
    height, width = b.static_shape(x, rank=4)[2:]
    b.arrays.reserve((height * stride, width * stride), "resizing its operand", 1)
    repeated = b.op("nn.upsampling", x, scale_h=float(stride), scale_w=float(stride), layout="NCHW", method="nearest_neighbor")
    return repeated if scale == 1 else b.op("multiply", repeated, scale)


def reorg(n: Node, x: Expr) -> Any:
    """Blocks of places as channels, in Darknet's order."""
    n.refuse("reverse", "flatten", "extra")
    return n.b.op("vision.yolo_reorg", n.b.of_rank(x, 4), stride=n.int("stride", 1, 1))


def _anchors(n: Node, x: Expr, entries: int, boxes: int) -> Expr:
    """Data (batch, boxes, entries, height, width) of (batch, boxes * entries, height, width)."""
    channels = n.b.extent(n.b.of_rank(x, 4), 1)
    if channels != entries * boxes:
        raise Malformed(f"its operand has {channels} channels, and it has {boxes} boxes of {entries} entries")
    return n.b.op("reshape", x, newshape=[0, -4, boxes, entries, -2])


def _joined(n: Node, x: Expr, parts: list[Expr]) -> Any:
    return n.b.reshape(n.b.concat(parts, 2), [0, *[int(d) for d in n.b.static_shape(x)[1:]]] if _known(n, x) else [0, -3, -2])


def _known(n: Node, x: Expr) -> bool:
    return all(isinstance(d, int) for d in n.b.shape(x)[1:])


def _cut(n: Node, x: Expr, begin: int, end: int) -> Expr:
    return n.b.slice(x, [begin], [end], [2])


def region(n: Node, x: Expr) -> Any:
    """Boxes of YOLO v2: places and objects by the sigmoid, classes by the softmax or the sigmoid."""
    b = n.b
    n.refuse("tree")
    boxes, classes, coords = n.int("num", 1, 1), n.int("classes", 20, 1), n.int("coords", 4, 2)
    background, soft = n.int("background", 0) != 0, n.int("softmax", 0) != 0
    cells = _anchors(n, x, coords + 1 + classes, boxes)
    end = coords + 1 + classes
    parts = [b.op("sigmoid", _cut(n, cells, 0, 2)), *([_cut(n, cells, 2, coords)] if coords > 2 else [])]
    if soft:
        first = coords + (not background)
        parts += [] if background else [b.op("sigmoid", _cut(n, cells, coords, coords + 1))]
        parts.append(b.op("nn.softmax", _cut(n, cells, first, end), axis=2))
    else:
        objects = _cut(n, cells, coords, coords + 1)
        parts += [objects if background else b.op("sigmoid", objects), b.op("sigmoid", _cut(n, cells, coords + 1, end))]
    detections = _joined(n, x, parts)
    n.importer.detect(n, detections, "Region", [boxes, *_sizes(n, x), classes, coords, int(background)], _biases(n, boxes), [])
    return detections


def yolo(n: Node, x: Expr) -> Any:
    """Boxes of YOLO v3 and v4: places, objects and classes by the sigmoid; sizes as they are."""
    b = n.b
    n.refuse("embedding_layer", "yolo_point")
    total, classes = n.int("num", 1, 1), n.int("classes", 20, 1)
    mask = n.ints("mask", range(total) if total < 1 << 16 else [])
    boxes = len(mask)
    if any(not 0 <= m < total for m in mask):
        raise Malformed(f"its mask {mask[:20]} names boxes that there are not; there are {total}")
    cells = _anchors(n, x, classes + 5, boxes)
    places, scale = _cut(n, cells, 0, 2), n.float("scale_x_y", 1.0)
    done = n.int("new_coords", 0) != 0
    places = places if done else b.op("sigmoid", places)
    if scale != 1:
        places = b.op("add", b.op("multiply", places, scale), -0.5 * (scale - 1))
    rest = _cut(n, cells, 4, classes + 5)
    detections = _joined(n, x, [places, _cut(n, cells, 2, 4), rest if done else b.op("sigmoid", rest)])
    n.importer.detect(n, detections, "Yolo", [boxes, *_sizes(n, x), classes, total], _biases(n, total), mask)
    return detections


def _sizes(n: Node, x: Expr) -> list[int]:
    return [int(d) if isinstance(d, int) else -1 for d in n.b.shape(x)[1:]]


def _biases(n: Node, count: int) -> list[float]:
    """The widths and heights of anchors; 1/2 where there are none."""
    n.b.arrays.reserve(2 * count, "listing anchors")
    anchors = n.floats("anchors")[: 2 * count]
    return [*anchors, *[0.5] * (2 * count - len(anchors))]


def l2norm(n: Node, x: Expr) -> Any:
    """Length 1 along the channels."""
    b = n.b
    square = b.op("sum", b.op("multiply", x, x), axis=[1], keepdims=True)
    return b.op("divide", x, b.op("sqrt", square))


def normalization(n: Node, x: Expr) -> Any:
    """Local response normalisation over channels."""
    size = n.int("size", 5, 1)
    if size % 2 == 0:
        raise Unsupported(f"its size is {size}, which is even")
    alpha, beta, kappa = n.float("alpha", 0.0001), n.float("beta", 0.75), n.float("kappa", 1.0)
    return n.b.op("nn.lrn", n.b.of_rank(x, 4), size=size, axis=1, alpha=alpha * size, beta=beta, bias=kappa)


def crop(n: Node, x: Expr) -> Any:
    """The middle of a picture, from [0, 1] to [-1, 1] unless `noadjust` is set."""
    b = n.b
    height, width = b.static_shape(x, rank=4)[2:]
    rows, columns = n.int("crop_height", least=1), n.int("crop_width", least=1)
    if rows > height or columns > width:
        raise Malformed(f"it crops {rows} x {columns} of {height} x {width}")
    top, left = (height - rows) // 2, (width - columns) // 2
    cropped = b.slice(x, [top, left], [top + rows, left + columns], [2, 3])
    return cropped if n.int("noadjust", 0) else b.op("add", b.op("multiply", cropped, 2.0), -1.0)


def activation(n: Node, x: Expr) -> Any:
    return activated(n, x, "linear")


def same(n: Node, x: Expr) -> Any:
    """Layers of training."""
    return x


_NAMES: dict[str, Callable[[Node, Expr], Any]] = {
    "activation": activation,
    "active": activation,
    "avg": avgpool,
    "avgpool": avgpool,
    "conn": connected,
    "connected": connected,
    "conv": convolutional,
    "convolutional": convolutional,
    "cost": same,
    "crop": crop,
    "deconv": deconvolutional,
    "deconvolutional": deconvolutional,
    "dropout": same,
    "empty": same,
    "silence": same,
    "l2norm": l2norm,
    "logistic": lambda n, x: _sigmoid(n.b, x),
    "lrn": normalization,
    "max": maxpool,
    "maxpool": maxpool,
    "normalization": normalization,
    "region": region,
    "reorg": reorg,
    "route": route,
    "scale_channels": _scaled(False),
    "sam": _scaled(True),
    "shortcut": shortcut,
    "soft": softmax,
    "softmax": softmax,
    "upsample": upsample,
    "yolo": yolo,
}


@cache
def table() -> Table:
    """All conversions, by the names of sections."""
    return Table([Rule(name, convert) for name, convert in _NAMES.items()])


__all__ = ["ACTIVATIONS", "REFUSED", "table"]
