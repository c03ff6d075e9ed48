"""StableHLO's operators on elements and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.tflite.families.shape import at_place, counted, grid
from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr

#: The comparisons, by their numbers.
_COMPARED = ("equal", "not_equal", "greater_equal", "greater", "less_equal", "less")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def plain(op: str, integer: str = "", logical: str = "") -> Callable[[Node], Any]:
    """An operator of Relay; another one for integers, another one for bools."""

    def convert(n: Node) -> Any:
        xs = [n.real(i) for i in range(max(len(n), 1))]
        dtype = n.b.dtype(xs[0])
        name = logical if dtype == "bool" and logical else integer if integer and "float" not in dtype else op
        return n.result(n.b.op(name, *xs), activation=False)

    return convert


def cube_root(n: Node) -> Any:
    """Of negative numbers, too."""
    b, x = n.b, n.real(0)
    return b.op("multiply", b.op("sign", x), b.op("power", b.op("abs", x), 1 / 3))


def clamp(n: Node) -> Any:
    """Operands: the least number, data, the largest."""
    return n.b.op("minimum", n.b.op("maximum", n.x(1), n.x(0)), n.x(2))


def compare(n: Node) -> Any:
    direction = n.options["comparison_direction"]
    if not 0 <= direction < len(_COMPARED):
        raise Malformed(f"the option comparison_direction is {direction}; it must be from 0 to {len(_COMPARED) - 1}")
    return n.b.op(_COMPARED[direction], n.real(0), n.real(1))


def reshape(n: Node) -> Any:
    return n.b.reshape(n.x(0), n.out_shape())


def _shape(n: Node) -> list[int]:
    """The result's shape, which must be known."""
    shape = n.out_shape()
    if any(d < 0 for d in shape):
        raise Unsupported("its result must have a known shape")
    return shape


def broadcast(n: Node) -> Any:
    """Each axis of the operand becomes one of the result's."""
    b, x, shape, axes = n.b, n.x(0), _shape(n), n.options["broadcast_dimensions"]
    x = b.transpose(x, [int(i) for i in np.argsort(axes)])
    placed = dict(zip(sorted(axes), b.static_shape(x)))
    x = b.reshape_exactly(x, [placed.get(a, 1) for a in range(len(shape))])
    return b.op("broadcast_to", x, shape=shape)


def concatenate(n: Node) -> Any:
    return n.b.concat([n.x(i) for i in range(len(n))], n.options["dimension"])


def slice_(n: Node) -> Any:
    o = n.options
    begin = o["start_indices"]
    return n.b.slice(n.x(0), begin, o["limit_indices"], list(range(len(begin))), o["strides"])


def transpose(n: Node) -> Any:
    rank = n.b.rank(n.x(0))
    return n.b.transpose(n.x(0), n.axes("permutation", rank, rank))


def padded(n: Node, x: Expr, value: Expr, low: list[int], high: list[int], inner: list[int]) -> Expr:
    """Gaps of a value between the elements, and at the ends; negative widths cut elements off."""
    b, rank = n.b, len(low)
    if any(inner):
        x = b.op("nn.dilate", x, strides=[i + 1 for i in inner], dilation_value=float(b.need(value, "the value of gaps")))
    if any(p > 0 for p in (*low, *high)):
        x = b.op("nn.pad", x, b.scalar(value), pad_width=[[max(i, 0), max(j, 0)] for i, j in zip(low, high)])
    shape = b.static_shape(x)
    begin, end = [max(-i, 0) for i in low], [d - max(-j, 0) for d, j in zip(shape, high)]
    return b.slice(x, begin, end, list(range(rank))) if any(p < 0 for p in (*low, *high)) else x


def pad(n: Node) -> Any:
    widths = [n.listed(name, n.b.rank(n.x(0))) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    return padded(n, n.x(0), n.x(1), *widths)


def iota(n: Node) -> Any:
    """The index along an axis."""
    shape = _shape(n)
    axis = n.axis(n.options["iota_dimension"], len(shape), "iota_dimension")
    return n.b.op("broadcast_to", grid(n.b, shape, axis, n.out_dtype()), shape=shape)


def _starts(n: Node, first: int, extents: tuple[int, ...], sizes: list[int]) -> list[Expr]:
    """The scalars behind an operand, held to where a part of some size fits."""
    b = n.b
    found = [b.scalar(n.x(first + i)) for i in range(len(extents))]
    return [b.op("clip", s, a_min=0.0, a_max=float(d - w)) for s, d, w in zip(found, extents, sizes)]


def dynamic_slice(n: Node) -> Any:
    b, x = n.b, n.x(0)
    extents = b.static_shape(x)
    sizes = n.listed("slice_sizes", len(extents))
    for axis, start in enumerate(_starts(n, 1, extents, sizes)):
        if sizes[axis] != extents[axis]:
            places = b.op("add", counted(b, sizes[axis], b.dtype(start)), start)
            x = b.op("take", x, places, axis=axis)
    return x


def dynamic_update_slice(n: Node) -> Any:
    b, x, update = n.b, n.x(0), n.x(1)
    starts = _starts(n, 2, b.static_shape(x), list(b.static_shape(update)))
    return at_place(b, x, update, b.op("stack", b.tuple(starts), axis=0)) if starts else update


def dot_general(n: Node) -> Any:
    """Batch axes first, then the left operand's other axes, then the right one's."""
    b, o = n.b, n.options
    names = iter(_LETTERS)
    ranks = [b.rank(n.x(i)) for i in (0, 1)]
    if sum(ranks) > len(_LETTERS):
        raise Malformed(f"its operands have {sum(ranks)} axes in all")
    left, right = [""] * ranks[0], [""] * ranks[1]
    for kind in ("batching", "contracting"):
        axes = n.axes(f"lhs_{kind}_dimensions", ranks[0])
        for i, j in zip(axes, n.axes(f"rhs_{kind}_dimensions", ranks[1], len(axes))):
            left[i] = right[j] = next(names)
    batch = "".join(left[i] for i in o["lhs_batching_dimensions"])
    free = []
    for term in (left, right):
        open_ = [i for i, letter in enumerate(term) if not letter]
        for i in open_:
            term[i] = next(names)
        free.append("".join(term[i] for i in open_))
    equation = f"{''.join(left)},{''.join(right)}->{batch}{free[0]}{free[1]}"
    return n.result(einsum(b, equation, [n.real(0), n.real(1)]), activation=False)


def select(n: Node) -> Any:
    """A scalar condition chooses one operand."""
    return n.b.op("where", n.x(0), n.x(1), n.x(2))


_ELEMENTS = {
    "ABS": plain("abs"),
    "ADD": plain("add", logical="logical_or"),
    "AND": plain("bitwise_and", logical="logical_and"),
    "CBRT": cube_root,
    "CLAMP": clamp,
    "COMPARE": compare,
    "CONVERT": lambda n: n.b.cast(n.x(0), n.out_dtype()),
    "COSINE": plain("cos"),
    "DIVIDE": plain("divide", "trunc_divide"),
    "EXPONENTIAL": plain("exp"),
    "FLOOR": plain("floor"),
    "LOG": plain("log"),
    "LOGISTIC": plain("sigmoid"),
    "MAXIMUM": plain("maximum", logical="logical_or"),
    "MINIMUM": plain("minimum", logical="logical_and"),
    "MULTIPLY": plain("multiply", logical="logical_and"),
    "NEGATE": plain("negative"),
    "OR": plain("bitwise_or", logical="logical_or"),
    "POWER": plain("power"),
    "REMAINDER": plain("trunc_mod"),
    "RSQRT": plain("rsqrt"),
    "SELECT": select,
    "SHIFT_LEFT": plain("left_shift"),
    "SUBTRACT": plain("subtract"),
    "TANH": plain("tanh"),
}
_SHAPES = {
    "BROADCAST_IN_DIM": broadcast,
    "CONCATENATE": concatenate,
    "DOT_GENERAL": dot_general,
    "DYNAMIC_SLICE": dynamic_slice,
    "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
    "IOTA": iota,
    "PAD": pad,
    "RESHAPE": reshape,
    "SLICE": slice_,
    "TRANSPOSE": transpose,
}
RULES = tuple([Rule(f"STABLEHLO_{name}", f) for name, f in {**_ELEMENTS, **_SHAPES}.items()])
