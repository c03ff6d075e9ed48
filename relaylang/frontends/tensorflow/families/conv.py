"""Convolutions and pools in the layout of the file: NHWC, or NCHW by `data_format`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.nn import check_window, padding_of, same_padding
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr

_LAYOUTS = {2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


@dataclass(frozen=True)
class Window:
    """What the attributes say of a window over `rank` axes: the layout, the place of the channels and of the first axis."""

    n: Node
    rank: int

    @property
    def layout(self) -> str:
        return self.n.choice("data_format", _LAYOUTS[self.rank][0], _LAYOUTS[self.rank])

    @property
    def last(self) -> bool:
        """Whether the channels are the last axis."""
        return self.layout == _LAYOUTS[self.rank][0]

    @property
    def channels(self) -> int:
        return self.rank + 1 if self.last else 1

    def inner(self, values: Sequence[Any], what: str) -> list[Any]:
        """Of numbers for all axes, those for the window's; the others must be 1."""
        if len(values) != self.rank + 2:
            raise Malformed(f"the attribute {what} has {len(values)} numbers, not {self.rank + 2}")
        if values[0] != 1 or values[self.channels] != 1:
            raise Unsupported(f"the attribute {what} is {list(values)}: the window moves over images or channels")
        return self.spatial(values)

    def spatial(self, values: Sequence[Any]) -> list[Any]:
        return list(values[1:-1] if self.last else values[2:])

    def strides(self) -> list[int]:
        return self.inner(self.n.ints("strides"), "strides")

    def dilations(self) -> list[int]:
        return self.inner(self.n.ints("dilations", [1] * (self.rank + 2)), "dilations")

    def pads(
        self, sizes: Sequence[Any], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Pairs of padding for the window's axes."""
        check_window(kernel, strides, dilations)
        how = self.n.choice("padding", "VALID", ("SAME", "VALID", "EXPLICIT"))
        if how == "SAME":
            return same_padding(sizes, kernel, strides, dilations)
        if how == "VALID":
            return [(0, 0)] * self.rank
        amounts = self.n.ints("explicit_paddings", [])
        if len(amounts) != 2 * (self.rank + 2) or min(amounts) < 0:
            raise Malformed(f"the attribute explicit_paddings is {amounts[:16]}; it must have {2 * (self.rank + 2)} numbers from 0 on")
        return self.spatial([(amounts[2 * i], amounts[2 * i + 1]) for i in range(self.rank + 2)])


def _turned(n: Node, weights: Expr, order: Sequence[int], shape: Sequence[int] = ()) -> Expr:
    """A weight with its axes in another order, and in another shape, changed now where it is constant."""
    value = n.b.value(weights)
    if value is None:
        turned = n.b.transpose(weights, order)
        return n.b.reshape(turned, shape) if shape else turned
    array = np.ascontiguousarray(value.transpose(order))
    return n.b.weight(n.importer.weight_name(weights, n), array.reshape(shape) if shape else array)


def conv(rank: int) -> Callable[..., Any]:
    """Weights are HWIO; groups follow from their channels."""

    def convert(n: Node, x: Expr, weights: Expr) -> Any:
        b, w = n.b, Window(n, rank)
        shape = b.static_shape(weights, "the weights", rank + 2)
        channels = b.extent(b.of_rank(x, rank + 2), w.channels, "the number of channels")
        if not shape[rank] or channels % shape[rank]:
            raise Malformed(f"its operand has {channels} channels, and its weights take {shape[rank]}")
        strides, dilations = w.strides(), w.dilations()
        pads = w.pads(w.spatial(b.shape(x)), shape[:rank], strides, dilations)
        layout = {2: "HWIO", 3: "DHWIO"}[rank]
        if not w.last:
            weights, layout = _turned(n, weights, [rank + 1, rank, *range(rank)]), {2: "OIHW", 3: "OIDHW"}[rank]
        return b.op(
            f"nn.conv{rank}d",
            x,
            weights,
            strides=strides,
            dilation=dilations,
            padding=padding_of(pads),
            groups=channels // shape[rank],
            channels=shape[-1],
            kernel_size=list(shape[:rank]),
            data_layout=w.layout,
            kernel_layout=layout,
        )

    return convert


def depthwise(n: Node, x: Expr, weights: Expr) -> Any:
    """Weights are (height, width, channels, multiplier)."""
    b, w = n.b, Window(n, 2)
    shape = b.static_shape(weights, "the weights", 4)
    channels = b.extent(b.of_rank(x, 4), w.channels, "the number of channels")
    if channels != shape[2]:
        raise Malformed(f"its operand has {channels} channels, and its weights {shape[2]}")
    strides, dilations = w.strides(), w.dilations()
    pads = w.pads(w.spatial(b.shape(x)), shape[:2], strides, dilations)
    layout = "HWOI"
    if not w.last:
        weights, layout = _turned(n, weights, [2, 3, 0, 1], [channels * shape[3], 1, *shape[:2]]), "OIHW"
    return b.op(
        "nn.conv2d",
        x,
        weights,
        strides=strides,
        dilation=dilations,
        padding=padding_of(pads),
        groups=channels,
        channels=channels * shape[3],
        kernel_size=list(shape[:2]),
        data_layout=w.layout,
        kernel_layout=layout,
    )


def conv_transpose(rank: int) -> Callable[..., Any]:
    """Operands: the result's shape, weights (HWOI seen from here), data. Relay has it with channels second."""

    def convert(n: Node, sizes: Expr, weights: Expr, x: Expr) -> Any:
        b, w = n.b, Window(n, rank)
        shape = b.static_shape(weights, "the weights", rank + 2)
        strides, dilations = w.strides(), w.dilations()
        known = b.known(sizes) or []
        if len(known) == rank + 2:
            known = w.spatial(known)
        if len(known) != rank or None in known:
            raise Unsupported("the extents of its result must be constants")
        wanted = [int(d) for d in known if d is not None]
        have = [b.extent(x, a, "an extent of the data") for a in w.spatial(range(rank + 2))]
        pads = w.pads(wanted, shape[:rank], strides, dilations)
        full = [(h - 1) * s + (k - 1) * d + 1 for h, s, k, d in zip(have, strides, shape, dilations)]
        # The forward window may leave elements of the result untouched at its end.
        begin = [p for p, _ in pads]
        end = [f - p - e for f, p, e in zip(full, begin, wanted)]
        extra = [max(-e, 0) for e in end]
        if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations)):
            raise Malformed(f"its result would have the extents {wanted}, which its data does not give")
        channels_in = b.extent(x, w.channels, "the number of channels")
        if channels_in != shape[rank + 1]:
            raise Malformed(f"its data has {channels_in} channels, and its weights take {shape[rank + 1]}")
        planes = x if not w.last else b.transpose(x, [0, rank + 1, *range(1, rank + 1)])
        turned = _turned(n, weights, [rank + 1, rank, *range(rank)])
        out = b.op(
            f"nn.conv{rank}d_transpose",
            planes,
            turned,
            strides=strides,
            dilation=dilations,
            padding=[*begin, *[max(e, 0) for e in end]],
            output_padding=extra,
            channels=shape[rank],
            kernel_size=list(shape[:rank]),
            data_layout=_LAYOUTS[rank][1],
            kernel_layout={2: "IOHW", 3: "IODHW"}[rank],
        )
        return out if not w.last else b.transpose(out, [0, *range(2, rank + 2), 1])

    return convert


def pool(kind: str, rank: int) -> Callable[..., Any]:
    """A window's largest element, or its mean without the padding. The window may be operands in the second form."""

    def convert(n: Node, x: Expr, size: Expr | None = None, steps: Expr | None = None) -> Any:
        b, w = n.b, Window(n, rank)
        b.of_rank(x, rank + 2)
        kernel = w.inner(n.ints("ksize") if size is None else n.ints_of(size, "the window"), "ksize")
        strides = w.strides() if steps is None else w.inner(n.ints_of(steps, "the strides"), "strides")
        pads = w.pads(w.spatial(b.shape(x)), kernel, strides, [1] * rank)
        attrs = {"count_include_pad": False} if kind == "avg" else {}
        return b.op(f"nn.{kind}_pool{rank}d", x, pool_size=kernel, strides=strides, padding=padding_of(pads), layout=w.layout, **attrs)

    return convert


def patches(n: Node, x: Expr, kernel: Sequence[int], strides: Sequence[int], rates: Sequence[int], fill: Any = 0) -> list[Expr]:
    """The elements of all windows, a tensor (batch, rows, columns, channels) for each place in a window."""
    b = n.b
    shape = b.static_shape(x, rank=4)
    pads = [(0, 0)] * 2
    if n.choice("padding", "VALID", ("SAME", "VALID")) == "SAME":
        pads = same_padding(shape[1:3], kernel, strides, rates)
    check_window(kernel, strides, rates)
    if any(p or q for p, q in pads):
        x = b.op("nn.pad", x, b.const(fill, b.dtype(x)), pad_width=[[0, 0], *[list(p) for p in pads], [0, 0]])
    have = b.static_shape(x)[1:3]
    counts = [(h - (k - 1) * r - 1) // s + 1 for h, k, s, r in zip(have, kernel, strides, rates)]
    if min(counts) < 1:
        raise Malformed(f"its window {list(kernel)} is larger than its operand")
    b.budget.take_nodes(kernel[0] * kernel[1], "writing its windows out")
    parts = []
    for i, j in product(range(kernel[0]), range(kernel[1])):
        begin = [i * rates[0], j * rates[1]]
        end = [f + (c - 1) * s + 1 for f, c, s in zip(begin, counts, strides)]
        parts.append(b.slice(x, begin, end, [1, 2], strides))
    return parts


def extract_patches(n: Node, x: Expr) -> Any:
    """The elements of each window behind each other."""
    w = Window(n, 2)
    sizes = [w.inner(n.ints(name), name) for name in ("ksizes", "strides", "rates")]
    return n.b.concat(patches(n, x, *sizes), 3)


def dilation(n: Node, x: Expr, weights: Expr) -> Any:
    """The largest sum of an element of a window and its weight."""
    b, w = n.b, Window(n, 2)
    shape = b.static_shape(weights, "the weights", 3)
    strides, rates = (w.inner(n.ints(name), name) for name in ("strides", "rates"))
    info = np.finfo(b.dtype(x)).min if "float" in b.dtype(x) else np.iinfo(b.dtype(x)).min
    largest = None
    for part, (i, j) in zip(patches(n, x, shape[:2], strides, rates, info), product(*map(range, shape[:2]))):
        weight = b.squeeze(b.slice(weights, [i, j], [i + 1, j + 1], [0, 1]), [0, 1])
        total = b.op("add", part, weight)
        largest = total if largest is None else b.op("maximum", largest, total)
    return largest


def max_with_place(n: Node, x: Expr) -> Any:
    """The largest elements, and their places in the whole image, or in the batch; the first of equal ones."""
    b, w = n.b, Window(n, 2)
    kernel, strides = w.inner(n.ints("ksize"), "ksize"), w.strides()
    shape = b.static_shape(x, rank=4)
    low = np.finfo(b.dtype(x)).min if "float" in b.dtype(x) else np.iinfo(b.dtype(x)).min
    places = b.arrays.arange(math.prod(shape)).reshape(shape)
    if not n.bool("include_batch_in_index"):
        places = places % max(int(np.prod(shape[1:])), 1)
    numbers = b.const(places)
    best = where = None
    for value, place in zip(patches(n, x, kernel, strides, [1, 1], low), patches(n, numbers, kernel, strides, [1, 1], 0)):
        if best is None or where is None:
            best, where = value, place
            continue
        more = b.op("greater", value, best)
        best, where = b.op("where", more, value, best), b.op("where", more, place, where)
    assert where is not None
    return [best, b.cast(where, n.dtype("Targmax", "int64"))]


RULES = (
    Rule("AvgPool", pool("avg", 2)),
    Rule("AvgPool3D", pool("avg", 3)),
    Rule("Conv2D", conv(2)),
    Rule("Conv2DBackpropInput", conv_transpose(2)),
    Rule("Conv3D", conv(3)),
    Rule("Conv3DBackpropInputV2", conv_transpose(3)),
    Rule("DepthwiseConv2dNative", depthwise),
    Rule("Dilation2D", dilation),
    Rule("ExtractImagePatches", extract_patches),
    Rule("MaxPool", pool("max", 2)),
    Rule("MaxPool3D", pool("max", 3)),
    Rule("MaxPoolV2", pool("max", 2)),
    Rule("MaxPoolWithArgmax", max_with_place),
)
