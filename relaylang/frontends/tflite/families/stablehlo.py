"""StableHLO's operators on elements and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported, hlo
from relaylang.frontends.stablehlo.names import COMPARED
from relaylang.frontends.tflite.node import Node

#: The comparisons, by their numbers.
_COMPARED = tuple(COMPARED)


def plain(op: str, integer: str = "", logical: str = "") -> Callable[[Node], Any]:
    """An operator of Relay; another one for integers, another one for bools."""

    def convert(n: Node) -> Any:
        xs = [n.real(i) for i in range(max(len(n), 1))]
        dtype = n.b.dtype(xs[0])
        name = logical if dtype == "bool" and logical else integer if integer and "float" not in dtype else op
        return n.result(n.b.op(name, *xs), activation=False)

    return convert


def cube_root(n: Node) -> Any:
    return hlo.cube_root(n.b, n.real(0))


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
    return hlo.broadcast(n.b, n.x(0), n.options["broadcast_dimensions"], _shape(n))


def concatenate(n: Node) -> Any:
    return n.b.concat([n.x(i) for i in range(len(n))], n.options["dimension"])


def slice_(n: Node) -> Any:
    o = n.options
    begin = o["start_indices"]
    return n.b.slice(n.x(0), begin, o["limit_indices"], list(range(len(begin))), o["strides"])


def transpose(n: Node) -> Any:
    rank = n.b.rank(n.x(0))
    return n.b.transpose(n.x(0), n.axes("permutation", rank, rank))


def pad(n: Node) -> Any:
    widths = [n.listed(name, n.b.rank(n.x(0))) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    return hlo.padded(n.b, n.x(0), n.x(1), *widths)


def iota(n: Node) -> Any:
    return hlo.iota(n.b, _shape(n), n.options["iota_dimension"], n.out_dtype())


def dynamic_slice(n: Node) -> Any:
    sizes = n.listed("slice_sizes", n.b.rank(n.x(0)))
    return hlo.dynamic_slice(n.b, n.x(0), [n.x(i) for i in range(1, len(n))], sizes)


def dynamic_update_slice(n: Node) -> Any:
    return hlo.dynamic_update_slice(n.b, n.x(0), n.x(1), [n.x(i) for i in range(2, len(n))])


def dot_general(n: Node) -> Any:
    o = n.options
    axes = [[o[f"{side}_{kind}_dimensions"] for side in ("lhs", "rhs")] for kind in ("batching", "contracting")]
    return n.result(hlo.dot_general(n.b, n.real(0), n.real(1), *axes), activation=False)


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
