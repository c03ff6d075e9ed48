"""Convolutions, dense layers, matrix products, and enlargement by convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn, windows
from relaylang.frontends.common.deformable import deformable_conv
from relaylang.frontends.common.nn import check_window
from relaylang.frontends.common.slices import pad
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr

#: Layouts by the number of spatial axes, with channels second and with channels last.
_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


class Window:
    """The window that a convolution or a pool states: kernel, strides, dilation and padding, for each spatial axis."""

    def __init__(self, n: Node, count: int) -> None:
        self.kernel = n.ints("kernel", count=count)
        self.strides = _each(n, "stride", 1, count)
        self.dilations = _each(n, "dilate", 1, count)
        pads = _each(n, "pad", 0, count)
        if any(p < 0 for p in pads):
            raise Malformed(f"the attribute pad is {pads}; its numbers must be 0 or more")
        self.pads = [(p, p) for p in pads]
        check_window(self.kernel, self.strides, self.dilations)


def _each(n: Node, name: str, default: int, count: int) -> list[int]:
    return n.ints(name, [default] * count, count)


def channels_last(n: Node, count: int) -> bool:
    """Whether a layer's layout has the channels last."""
    layout = n.string("layout", _FIRST[count])
    if layout not in (_FIRST[count], _LAST[count]):
        raise Unsupported(f"data of {count} spatial axes has the layout {_FIRST[count]} or {_LAST[count]}, not {layout[:20]!r}")
    return layout == _LAST[count]


def to_first(b: Builder, x: Expr) -> Expr:
    """Channels last become channels second."""
    rank = b.rank(x)
    return b.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def to_last(b: Builder, x: Expr) -> Expr:
    """Channels second become channels last."""
    rank = b.rank(x)
    return b.transpose(x, [0, *range(2, rank), 1])


def _with_bias(n: Node, product: Expr, bias: Expr | None, axis: int = 1) -> Expr:
    if n.bool("no_bias") or bias is None:
        return product
    return n.b.op("nn.bias_add", product, bias, axis=axis)


def _check_bias(n: Node, bias: Expr | None, default: bool = False) -> None:
    if bias is None and not n.bool("no_bias", default):
        raise Malformed("its bias is missing, and no_bias is False")


def convolution(n: Node, x: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    b = n.b
    _check_bias(n, bias)
    count = windows.spatial(b, x)
    w, last, groups = Window(n, count), channels_last(n, count), n.int("num_group", 1)
    if groups < 1:
        raise Malformed(f"the attribute num_group is {groups}; it must be 1 or more")
    b.shape(weight, count + 2)
    if last:
        x, weight = to_first(b, x), to_first(b, weight)
    conv = _with_bias(n, windows.conv(b, x, weight, w.strides, w.pads, w.dilations, groups), bias)
    return to_last(b, conv) if last else conv


def deconvolution(n: Node, x: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    """A transposed convolution. `target_shape` replaces padding and added rows by those that give it."""
    b = n.b
    _check_bias(n, bias, True)
    count = windows.spatial(b, x)
    w, groups = Window(n, count), n.int("num_group", 1)
    if channels_last(n, count):
        raise Unsupported("transposed convolutions have channels second")
    more = _each(n, "adj", 0, count)
    target = n.ints("target_shape", [])
    pads = w.pads
    if target and any(target):
        if len(target) != count:
            raise Malformed(f"the attribute target_shape has {len(target)} numbers; it must have {count}")
        pads, more = [], []
        sizes = b.static_shape(x, "the data of a transposed convolution with target_shape")[2:]
        for size, stride, k, d, wanted in zip(sizes, w.strides, w.kernel, w.dilations, target):
            total = (size - 1) * stride + (k - 1) * d + 1 - wanted
            if total < 0:
                raise Malformed(f"target_shape has {wanted} places, more than the {total + wanted} of its windows")
            pads.append(((total + 1) // 2, (total + 1) // 2))
            more.append(total % 2)
    outward = [m if m < s else 0 for m, s in zip(more, w.strides)]
    conv = windows.conv_transpose(b, x, weight, w.strides, pads, w.dilations, outward, groups)
    if outward != more:
        # Relay has fewer added rows than a stride; further ones are empty.
        conv = pad(b, conv, [(0, 0), (0, 0), *[(0, m - o) for m, o in zip(more, outward)]])
    return conv if n.bool("no_bias", True) or bias is None else b.op("nn.bias_add", conv, bias, axis=1)


def fully_connected(n: Node, x: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    b = n.b
    _check_bias(n, bias)
    units, flat = b.shape(weight, 2)[0], n.bool("flatten", True)
    if flat or b.rank(x) == 1:
        x = x if b.rank(x) == 2 else b.op("nn.batch_flatten", x) if b.rank(x) > 1 else b.unsqueeze(x, [1])
    product = b.op("nn.dense", x, weight, units=units if isinstance(units, int) else None)
    return _with_bias(n, product, bias, -1)


# ---- products


def dot(n: Node, x: Expr, y: Expr) -> Any:
    """The sum of products over the last axis of x and the first of y; `transpose_a` and `transpose_b` turn the axes round."""
    b = n.b
    if n.bool("transpose_a"):
        x = b.transpose(x, [*range(1, b.rank(x)), 0]) if b.rank(x) > 1 else x
    if n.bool("transpose_b"):
        y = b.transpose(y, [b.rank(y) - 1, *range(b.rank(y) - 1)]) if b.rank(y) > 1 else y
    if b.rank(x) == 0 or b.rank(y) == 0:
        raise Malformed("it takes no scalars")
    if b.rank(y) <= 2:
        product = nn.matmul(b, x, y)
        return b.reshape(product, [1]) if b.rank(product) == 0 else product
    rest = list(b.static_shape(y, "the second operand of a product"))
    product = nn.matmul(b, x, b.reshape_exactly(y, [rest[0], int(np.prod(rest[1:]))]))
    front = [int(d) if isinstance(d, int) else -1 for d in b.shape(product)[:-1]]
    return b.reshape(product, [*front, *rest[1:]])


def _turned(b: Builder, x: Expr, turn: bool) -> Expr:
    rank = b.rank(x)
    return b.transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if turn else x


def batch_dot(n: Node, x: Expr, y: Expr) -> Any:
    b = n.b
    if b.rank(x) != 3 or b.rank(y) != 3:
        return nn.matmul(b, _turned(b, x, n.bool("transpose_a")), _turned(b, y, n.bool("transpose_b")))
    return b.op("nn.batch_matmul", x, y, transpose_a=n.bool("transpose_a"), transpose_b=n.bool("transpose_b"))


def gemm2(n: Node, x: Expr, y: Expr) -> Any:
    b = n.b
    if n.int("axis", -2) != -2:
        raise Unsupported("the rows of its matrices are not the last axis but one")
    product = nn.matmul(b, _turned(b, x, n.bool("transpose_a")), _turned(b, y, n.bool("transpose_b")))
    alpha = n.float("alpha", 1.0)
    return product if alpha == 1.0 else b.op("multiply", product, alpha)


def gemm(n: Node, x: Expr, y: Expr, z: Expr) -> Any:
    b, beta = n.b, n.float("beta", 1.0)
    return b.op("add", gemm2(n, x, y), z if beta == 1.0 else b.op("multiply", z, beta))


def syrk(n: Node, x: Expr) -> Any:
    """`alpha * x x^T`, or `alpha * x^T x` where `transpose`."""
    b, turn, alpha = n.b, n.bool("transpose"), n.float("alpha", 1.0)
    product = nn.matmul(b, _turned(b, x, turn), _turned(b, x, not turn))
    return product if alpha == 1.0 else b.op("multiply", product, alpha)


# ---- enlargement


def upsampling(n: Node, *xs: Expr) -> Any:
    """Rows and columns repeated, or joined by lines through a convolution whose weights the network has."""
    b, scale = n.b, n.int("scale")
    if scale < 1:
        raise Malformed(f"the attribute scale is {scale}; it must be 1 or more")
    if n.choice("sample_type", "nearest", ("nearest", "bilinear")) == "bilinear":
        if len(xs) != 2:
            raise Malformed(f"it has {len(xs)} operands; joined by lines, it has the data and a weight")
        kernel, rim = 2 * scale - scale % 2, -(-(scale - 1) // 2)
        b.shape(xs[1], 4)
        channels = b.extent(xs[0], 1, "the channels")
        pads: Sequence[tuple[int, int]] = [(rim, rim)] * 2
        if b.static_shape(xs[1])[2:] != (kernel, kernel):
            raise Malformed(f"its weight must have a kernel of {kernel} by {kernel}")
        return windows.conv_transpose(b, xs[0], xs[1], [scale] * 2, pads, [1, 1], [0, 0], channels)
    if not xs:
        raise Malformed("it has no operands")
    height, width = (b.extent(xs[0], axis, "the data") * scale for axis in (2, 3))
    grown = []
    for x in xs:
        factors = [size / b.extent(x, axis, "the data") for size, axis in ((height, 2), (width, 3))]
        if any(f != f // 1 for f in factors):
            raise Unsupported("its operands have extents of which none is a multiple of the other")
        grown.append(b.op("nn.upsampling", b.of_rank(x, 4), scale_h=factors[0], scale_w=factors[1]))
    if len(grown) == 1:
        return grown[0]
    if n.choice("multi_input_mode", "concat", ("concat", "sum")) == "concat":
        return b.concat(grown, 1)
    total = grown[0]
    for x in grown[1:]:
        total = b.op("add", total, x)
    return total


def deformable(n: Node, x: Expr, offset: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    """A convolution at moved places. Places before the data or a whole element after it give 0."""
    b = n.b
    _check_bias(n, bias)
    w = Window(n, 2)
    shape = b.static_shape(weight, "the weight of a convolution", 4)
    groups = {"deformable_groups": n.int("num_deformable_group", 1), "groups": n.int("num_group", 1)}
    offset = _held(b, x, offset, w, groups["deformable_groups"])
    conv = b.op(
        "nn.deformable_conv2d",
        x,
        offset,
        weight,
        strides=w.strides,
        padding=nn.padding_of(w.pads),
        dilation=w.dilations,
        channels=shape[0],
        kernel_size=list(shape[2:]),
        **groups,
    )
    return _with_bias(n, conv, bias)


def _held(b: Builder, x: Expr, moves: Expr, w: Window, groups: int) -> Expr:
    """Moves with which places after the last element, and less than one beyond it, are that element."""
    sizes, rows, columns = b.static_shape(x, "the data", 4)[2:], *(b.extent(moves, axis) for axis in (2, 3))
    down, across = (b.arrays.arange(k) * d for k, d in zip(w.kernel, w.dilations))
    taps = np.stack(np.broadcast_arrays(down[:, None], across)).reshape(2, -1).T
    steps = [b.arrays.arange(count) * s - p for count, s, (p, _) in zip((rows, columns), w.strides, w.pads)]
    b.arrays.reserve((taps.size, rows, columns))
    places = np.stack(np.broadcast_arrays(steps[0][:, None], steps[1]))
    own = b.arrays.tile((taps[:, :, None, None] + places).reshape(-1, rows, columns), (groups, 1, 1))[None]
    base = b.const(own.astype(b.dtype(moves)))
    ends = b.const(b.arrays.tile(np.array(sizes), [len(own[0]) // 2]).reshape(1, -1, 1, 1).astype(b.dtype(moves)))
    at = b.op("add", moves, base)
    held = b.op("subtract", b.op("minimum", at, b.op("subtract", ends, 1.0)), base)
    return b.op("where", b.op("less", at, ends), held, moves)


def modulated(n: Node, x: Expr, offset: Expr, mask: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    """A convolution at moved places, each with a factor of its own, and zeros around the data."""
    _check_bias(n, bias)
    w, groups = Window(n, 2), (n.int("num_group", 1), n.int("num_deformable_group", 1))
    conv = deformable_conv(n.b, x, offset, weight, mask, w.strides, [p for p, _ in w.pads], w.dilations, *groups)
    return _with_bias(n, conv, bias)


RULES = (
    Rule("Convolution", convolution),
    Rule("Deconvolution", deconvolution),
    Rule("FullyConnected", fully_connected),
    Rule("dot", dot),
    Rule("batch_dot", batch_dot),
    Rule("_linalg_gemm2", gemm2),
    Rule("_linalg_gemm", gemm),
    Rule("_linalg_syrk", syrk),
    Rule("UpSampling", upsampling),
    Rule("_contrib_DeformableConvolution", deformable),
    Rule("_contrib_ModulatedDeformableConvolution", modulated),
)

__all__ = ["RULES", "Window", "channels_last", "to_first", "to_last"]
