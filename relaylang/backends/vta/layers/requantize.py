"""Requantization on an ALU of 32 bits: `y = (v * m + 2^(s - 1)) >> s` with a multiplier m of up to 31 bits, exact to the integer.

Relay computes it in 64 bits. A shorter multiplier and another summand give the same y for all v of an interval, if they do so
on both sides of each v at which y grows. Where limits follow, v is limited first: the interval gets short, and they cost
nothing. One product is enough where `(v * m' + c) >> s'` fits 32 bits. Else m' is cut into digits of b bits, with a product for
each from the lowest on: as floor((x * 2^b + y) / 2^b) = x + floor(y / 2^b), the sum so far is shifted by b, and added to the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from relaylang.backends.vta.layers.steps import FULL, Layer, Value
from relaylang.diagnostics.unsupported import Unsupported

#: The least and greatest number that a value may be.
Bounds = tuple[int, int]
#: The most results of a channel for which a shorter multiplier is sought, bits of a scale's shift, and products.
_MOST_RESULTS, _MOST_SHIFT, _MOST_DIGITS = 1 << 12, 57, 8


class _Scale(NamedTuple):
    """A channel's exact scale: y = (v * multiplier + 2^(shift - 1)) >> shift."""

    multiplier: int
    shift: int

    def __call__(self, v: int) -> int:
        return (v * self.multiplier + (1 << self.shift - 1)) >> self.shift

    def first(self, y: Any) -> Any:
        """The least v that gives y or more."""
        return -((-y * (1 << self.shift) + (1 << self.shift - 1)) // self.multiplier)

    def limits(self, bounds: Bounds, wanted: Bounds) -> Bounds:
        """The interval to which v may be limited, where y is limited to `wanted` anyway."""
        if not self.multiplier:
            return min(max(bounds[0], 0), bounds[1]), max(min(bounds[1], 0), bounds[0])
        low, high = self.first(wanted[0] + 1) - 1, self.first(wanted[1])
        return min(max(bounds[0], low), bounds[1]), max(min(bounds[1], high), bounds[0])


class _Product(NamedTuple):
    """The digits of a multiplier, lowest first, their bits, what is added to the last product, and the last shift."""

    digits: tuple[int, ...]
    bits: int
    summand: int
    shift: int


def requantize(layer: Layer, value: Value, multipliers: np.ndarray, shifts: np.ndarray, wanted: Bounds | None = None) -> Value:
    """Append the steps that scale a value, and return the result.

    `multipliers` and `shifts` are int64, one or one for each channel. `wanted` is the interval that limits after it keep; the
    result is right after these limits. Raises `Unsupported`.
    """
    scales = [_Scale(int(m), int(s)) for m, s in np.broadcast(np.asarray(multipliers, np.int64), np.asarray(shifts, np.int64))]
    if any(not 0 <= scale.multiplier < 1 << 31 for scale in scales):
        raise Unsupported("a multiplier is negative, or has more than 31 bits")
    if not any(scale.multiplier for scale in scales):
        layer.apply("MUL", value.slot, 0)
        return Value(value.slot, 0, 0)
    if any(scale.shift < 1 for scale in scales):
        raise Unsupported("its scale enlarges values more than 2^30 times")
    wide = dict.fromkeys(scales, (value.low, value.high))
    narrow = wide if wanted is None else {scale: scale.limits(bounds, wanted) for scale, bounds in wide.items()}
    results = [scale(v) for scale, interval in narrow.items() for v in interval]
    if min(results) < FULL[0] or max(results) > FULL[1]:
        raise Unsupported("the scaled value may leave the range of int32")
    for count, intervals in itertools.product(range(1, _MOST_DIGITS + 1), (wide, narrow)):
        products = _products(intervals, count)
        if products is not None:
            results = [scale(v) for scale, interval in intervals.items() for v in interval]
            low, high = (_one([intervals[scale][end] for scale in scales]) for end in (0, 1))
            if np.any(low != value.low):
                layer.apply("MAX", value.slot, low)
            if np.any(high != value.high):
                layer.apply("MIN", value.slot, high)
            _scale(layer, value.slot, [products[scale] for scale in scales])
            return Value(value.slot, min(results), max(results))
    raise Unsupported(f"values up to {max(-value.low, value.high)} times a multiplier of 31 bits need too many products of 32 bits")


def _products(intervals: dict[_Scale, Bounds], count: int) -> dict[_Scale, _Product] | None:
    """Exact products for all channels, if they exist: with the same shifts if they can have them, which costs less."""
    own: dict[_Scale, _Product] = {}
    for scale, interval in intervals.items():
        product = _product(scale, interval, count, _MOST_SHIFT, 30)
        if product is None:
            return None
        own[scale] = product
    some = [product for scale, product in own.items() if scale.multiplier]
    least, bits = (min(values) for values in zip(*[(product.shift + (count - 1) * product.bits, product.bits) for product in some]))
    same = {scale: _product(scale, interval, count, least, bits) for scale, interval in intervals.items()}
    return own if None in same.values() else same  # type: ignore[return-value]


@lru_cache(maxsize=1 << 14)
def _product(scale: _Scale, interval: Bounds, count: int, most_shift: int, most_bits: int) -> _Product | None:
    """So many products that fit, and give each y of the interval: of an equal multiplier, or of one with the most bits."""
    multiplier, shift = scale
    most = max(abs(interval[0]), abs(interval[1]), 1)
    bits = min(31 - most.bit_length(), most_bits) if count > 1 else 0
    lower = (count - 1) * bits
    if not multiplier:
        return _Product((0,) * count, bits, 0, max(min(most_shift - lower, 31), 1))
    zeros = min((multiplier & -multiplier).bit_length(), shift) - 1
    room = max(multiplier.bit_length() - lower - (30 - most.bit_length()), shift - 31 - lower, shift - most_shift, 0)
    if shift > _MOST_SHIFT or (count > 1 and bits < 1):
        return None
    for cut in (zeros, room):
        for factor in (multiplier >> cut, (multiplier >> cut) + 1)[: 1 + (cut > zeros)]:
            product = _cut(factor, shift - cut, bits, count, most, _summands(scale, interval, factor, cut))
            if product is not None and shift - cut <= most_shift:
                return product
    return None


def _summands(scale: _Scale, interval: Bounds, factor: int, cut: int) -> Bounds:
    """The least and greatest summand with which `(v * factor + summand) >> (shift - cut)` is y; none if the first is greater."""
    shift, half = scale.shift - cut, 1 << max(scale.shift - cut - 1, 0)
    if factor << cut == scale.multiplier:
        return half, half
    first, last = scale(interval[0]), scale(interval[1])
    if shift < 1 or last - first > _MOST_RESULTS:
        return 1, 0
    y = np.arange(first + 1, last + 1)
    grows, ends = scale.first(y), y << shift
    lowest = max([first * 2 * half - interval[0] * factor, *(ends - grows * factor).tolist()])
    return lowest, min([(last + 1) * 2 * half - interval[1] * factor, *(ends - (grows - 1) * factor).tolist()]) - 1


def _cut(factor: int, shift: int, bits: int, count: int, most: int, summands: Bounds) -> _Product | None:
    """The products of the digits of a factor. None where one does not fit 32 bits."""
    bits = min(bits, (shift - 1) // max(count - 1, 1))
    if shift < 1 or summands[0] > summands[1] or (count > 1 and bits < 1):
        return None
    lower = (count - 1) * bits
    summand = max(min(1 << shift - 1, summands[1]), summands[0]) >> lower
    summand += summand << lower < summands[0]
    *digits, last = [factor >> number * bits & ((1 << bits) - 1) for number in range(count - 1)] + [factor >> lower]
    fits = most * (last + (count > 1)) + abs(summand) <= FULL[1] and shift - lower <= 31 and summand << lower <= summands[1]
    return _Product((*digits, last), bits, summand, shift - lower) if fits else None


def _one(values: list[int]) -> Any:
    """A number where all are equal."""
    return values[0] if len(set(values)) == 1 else np.array(values, np.int64)


def _scale(layer: Layer, slot: int, products: Sequence[_Product]) -> None:
    digits, bits, summand, shift = zip(*products)
    *lower, last = [_one(list(values)) for values in zip(*digits)]
    total = None
    for digit in lower:
        part = layer.copy(slot)
        layer.apply("MUL", part, digit)
        if total is not None:
            layer.add(part, total)
        layer.apply("SHR", part, _one(list(bits)))
        total = part
    layer.apply("MUL", slot, last)
    if total is not None:
        layer.add(slot, total)
    layer.apply("ADD", slot, _one(list(summand)))
    layer.apply("SHR", slot, _one(list(shift)))


__all__ = ["requantize"]
