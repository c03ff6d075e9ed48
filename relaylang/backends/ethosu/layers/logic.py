"""Comparisons, logic on bits and truth values, and choices between tensors, for the Ethos-U85."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.backends.ethosu.layers.operands import FEATURES, feature_type, op_name
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call

_SIGNED = ("int8", "int16", "int32")
_NUMBERS = (*FEATURES, "int32")
#: Relay's comparisons: TOSA's, whether the sides change places, and whether its result is turned around.
_COMPARISONS = {
    "equal": ("EQUAL", False, False),
    "not_equal": ("EQUAL", False, True),
    "greater": ("GREATER", False, False),
    "greater_equal": ("GREATER_EQUAL", False, False),
    "less": ("GREATER", True, False),
    "less_equal": ("GREATER_EQUAL", True, False),
}
#: TOSA's operators that compute what Relay's do, and the types of their operands.
_PLAIN = {
    "logical_and": ("LOGICAL_AND", ("bool",)),
    "logical_or": ("LOGICAL_OR", ("bool",)),
    "logical_xor": ("LOGICAL_XOR", ("bool",)),
    "logical_not": ("LOGICAL_NOT", ("bool",)),
    "bitwise_and": ("BITWISE_AND", _SIGNED),
    "bitwise_or": ("BITWISE_OR", _SIGNED),
    "bitwise_xor": ("BITWISE_XOR", _SIGNED),
    "divide": ("INTDIV", ("int32",)),
}
COMPARISONS, PLAIN = tuple(_COMPARISONS), tuple(_PLAIN)


@dataclass(frozen=True)
class Comparison:
    """Truth values of TOSA's comparison `op`, of the sides in the other order if `swapped`, then turned around if `negated`."""

    op: str
    swapped: bool
    negated: bool


@dataclass(frozen=True)
class Plain:
    """TOSA's operator `op` on tensors of one type, which is that of the result."""

    op: str


@dataclass(frozen=True)
class Choice:
    """Elements of the second tensor where the first holds, else of the third."""


@dataclass(frozen=True)
class TruthCast:
    """Truth values of numbers, or the numbers 0 and 1 of truth values."""


def read_comparison(calls: Sequence[Call]) -> Comparison:
    """A comparison of two tensors of one type."""
    (call,) = calls
    for arg, name in zip(call.args, ("left", "right")):
        feature_type(arg, f"its {name} side", _NUMBERS)
    return Comparison(*_COMPARISONS[op_name(call)])


def read_plain(calls: Sequence[Call]) -> Plain:
    """Logic on truth values or bits, or a quotient of int32."""
    (call,) = calls
    op, dtypes = _PLAIN[op_name(call)]
    for arg in call.args:
        feature_type(arg, "an input", dtypes)
    return Plain(op)


def read_choice(calls: Sequence[Call]) -> Choice:
    """where of a tensor of truth values."""
    (call,) = calls
    feature_type(call.args[0], "its condition", ("bool",))
    feature_type(call, "its result", _NUMBERS)
    return Choice()


def read_cast(calls: Sequence[Call]) -> TruthCast:
    """cast between truth values and numbers."""
    (call,) = calls
    source = feature_type(call.args[0], dtypes=("bool", *_SIGNED)).dtype
    result = feature_type(call, "its result", ("bool", *_SIGNED)).dtype
    if (source == "bool") == (result == "bool"):
        raise Unsupported(f"a cast from {source} to {result}, which no layer in front takes along")
    return TruthCast()


def comparison(w: Writer, layer: Comparison, at: Composite) -> Value:
    perm, operands = w.operands(at, at.calls[0].args)
    sides = [w.as_int32(x) for x, _ in operands]
    out = w.graph.binary(layer.op, *(reversed(sides) if layer.swapped else sides), dtype="bool")
    return at.broadcast("bool", perm, w.graph.unary("LOGICAL_NOT", out) if layer.negated else out)


def plain(w: Writer, layer: Plain, at: Composite) -> Value:
    perm, operands = w.operands(at, at.calls[0].args)
    sides = [x for x, _ in operands]
    out = w.graph.binary(layer.op, *sides) if len(sides) == 2 else w.graph.unary(layer.op, *sides)
    return at.broadcast(at.dtype, perm, out)


def choice(w: Writer, layer: Choice, at: Composite) -> Value:
    perm, operands = w.operands(at, at.calls[0].args)
    return at.broadcast(at.dtype, perm, w.graph.select(*[x for x, _ in operands]))


def cast(w: Writer, layer: TruthCast, at: Composite) -> Value:
    perm, x = w.any_order(at.source)
    return Value(at.dtype, {perm: w.graph.cast(x, at.dtype)})
