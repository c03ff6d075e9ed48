"""Requantization on VTA's ALU, exact to the integer: products of 32 bits, as few as `multiply_shift` finds.

Where limits follow, the value is limited first: its interval gets short, and the limits after it cost nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.backends.multiply_shift import Bounds, Product, Scale, products_of
from relaylang.backends.vta.layers.steps import FULL, Layer, Value
from relaylang.diagnostics.unsupported import Unsupported

#: The most products for each value.
_MOST_PRODUCTS = 8


def requantize(layer: Layer, value: Value, multipliers: np.ndarray, shifts: np.ndarray, wanted: Bounds | None = None) -> Value:
    """Append the steps that scale a value, and return the result.

    `multipliers` and `shifts` are int64, one or one for each channel. `wanted` is the interval that limits after it keep; the
    result is right after these limits. Raises `Unsupported`.
    """
    scales = [Scale(int(m), int(s)) for m, s in np.broadcast(np.asarray(multipliers, np.int64), np.asarray(shifts, np.int64))]
    if not any(scale.multiplier for scale in scales):
        layer.apply("MUL", value.slot, 0)
        return Value(value.slot, 0, 0)
    wide = dict.fromkeys(scales, (value.low, value.high))
    _check(wide)
    narrow = wide if wanted is None else {scale: scale.limits(bounds, wanted) for scale, bounds in wide.items()}
    for count, intervals in itertools.product(range(1, _MOST_PRODUCTS + 1), (wide, narrow)):
        products = products_of(intervals, count)
        if products is not None:
            for operation, end in (("MAX", 0), ("MIN", 1)):
                if any(interval[end] != value[1 + end] for interval in intervals.values()):
                    layer.apply(operation, value.slot, _one([intervals[scale][end] for scale in scales]))
            _scale(layer, value.slot, [products[scale] for scale in scales])
            results = _results(intervals)
            return Value(value.slot, min(results), max(results))
    raise Unsupported(f"values up to {max(-value.low, value.high)} times a multiplier of 31 bits need too many products of 32 bits")


def _check(intervals: dict[Scale, Bounds]) -> None:
    """Raises `Unsupported` for scales that Relay does not compute as VTA can."""
    if any(not 0 <= scale.multiplier < 1 << 31 for scale in intervals):
        raise Unsupported("a multiplier is negative, or has more than 31 bits")
    if any(scale.shift < 1 for scale in intervals):
        raise Unsupported("its scale enlarges values more than 2^30 times")
    results = _results(intervals)
    if min(results) < FULL[0] or max(results) > FULL[1]:
        raise Unsupported("the scaled value may leave the range of int32")


def _results(intervals: dict[Scale, Bounds]) -> list[int]:
    """The least and greatest result of each scale."""
    return [scale(v) for scale, interval in intervals.items() for v in interval]


def _one(values: list[int]) -> Any:
    """A number where all are equal."""
    return values[0] if len(set(values)) == 1 else np.array(values, np.int64)


def _scale(layer: Layer, slot: int, products: Sequence[Product]) -> None:
    digits, bits, summand, shift = zip(*products)
    *lower, last = [_one(list(values)) for values in zip(*digits)]
    total = None
    for digit in lower:
        part = layer.copy(slot)
        layer.apply("MUL", part, digit)
        if total is not None:
            layer.combine("ADD", part, "slot", total)
        layer.apply("SHR", part, _one(list(bits)))
        total = part
    layer.apply("MUL", slot, last)
    if total is not None:
        layer.combine("ADD", slot, "slot", total)
    layer.apply("ADD", slot, _one(list(summand)))
    layer.apply("SHR", slot, _one(list(shift)))


__all__ = ["requantize"]
