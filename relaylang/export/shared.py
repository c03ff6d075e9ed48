"""Rules of StableHLO and Relax that ask an emitter for verbs which both have: `same`, `compare`, `cast`, `reshape`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import permutation, shape_of
from relaylang.export.walk import Rule, Value
from relaylang.ir import Call


def one(name: str) -> Any:
    def rule(e: Any, call: Call, x: Value) -> Value:
        return e.same(name, x)

    return rule


def rounding(name: str) -> Any:
    """A rounding of real numbers, which leaves integers as they are."""

    def rule(e: Any, call: Call, x: Value) -> Value:
        return e.same(name, x) if "float" in x.dtype else x

    return rule


def compared(way: str) -> Any:
    def rule(e: Any, call: Call, a: Value, b: Value) -> Value:
        return e.compare(way, a, b)

    return rule


def logarithm(base: float) -> Any:
    def rule(e: Any, call: Call, x: Value) -> Value:
        return e.same("multiply", e.same("log", x), e.splat(1 / math.log(base), x))

    return rule


def copy(e: Any, call: Call, x: Value) -> Value:
    return x


def cast(e: Any, call: Call, x: Value) -> Value:
    return e.cast(x, call.attrs.dtype)  # type: ignore[union-attr]


def cast_like(e: Any, call: Call, x: Value, like: Value) -> Value:
    return e.cast(x, like.dtype)


def reshape(e: Any, call: Call, x: Value, *_: Value) -> Value:
    return e.reshape(x, shape_of(call))


def transpose(e: Any, call: Call, x: Value) -> Value:
    return e.transpose(x, permutation(call, x.rank))


def fixed_point(call: Call, x: Value, *operands: Value) -> list[np.ndarray]:
    """The factors of a fixed-point product, and its shifts to the left and then to the right, in int64.

    The product is `x * multiplier * 2**(shift - 31)`, halves rounded upwards. Raises `Unsupported`.
    """
    a: Any = call.attrs
    if not operands:
        return [np.asarray(n, np.int64) for n in (a.multiplier, max(a.shift, 0), 31 - min(a.shift, 0))]
    if any(v.data is None for v in operands) or len(a.axes) != 1:
        raise Unsupported("its multipliers are not constants along one axis")
    extents = [-1 if i == a.axes[0] % x.rank else 1 for i in range(x.rank)]
    multiplier, left, right = (np.asarray(v.data, np.int64).reshape(extents) for v in operands)
    return [multiplier, left if a.is_lshift_required else 0 * left, 31 + (right if a.is_rshift_required else 0 * right)]


_RESHAPES = (
    "reshape",
    "contrib_reverse_reshape",
    "reshape_like",
    "dyn.reshape",
    "vm.reshape_tensor",
    "expand_dims",
    "squeeze",
    "dyn.squeeze",
    "nn.batch_flatten",
)
RULES: dict[str, Rule] = {
    **dict.fromkeys(_RESHAPES, reshape),
    "transpose": transpose,
    "copy": copy,
    "annotation.stop_fusion": copy,
    "log2": logarithm(2),
    "log10": logarithm(10),
    "ceil": rounding("ceil"),
    "floor": rounding("floor"),
    "cast": cast,
    "cast_like": cast_like,
}

__all__ = ["RULES", "compared", "fixed_point", "one", "rounding"]
