"""Requantization on an ALU of 32 bits: `y = (v * m + 2^(s - 1)) >> s` with a multiplier m of up to 31 bits, exact to the integer.

Relay computes it in 64 bits. A shorter multiplier and another summand give the same y for all v of an interval, if they do so
on both sides of each v at which y grows. Where limits follow, v is limited first: the interval gets short, and they cost
nothing. The first of these that is exact is taken:

- one product, `(v * m' + c) >> s'`;
- two, with m' = mh * 2^b + ml: `(v * mh + (v * ml >> b) + c) >> (s' - b)`, as floor((x * 2^b + y) / 2^b) = x + floor(y / 2^b);
- four, with v = vh * 2^11 + vl, too: v * m = vh * mh * 2^27 + vh * ml * 2^11 + vl * mh * 2^16 + vl * ml.

Each product and sum fits 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from relaylang.backends.vta.layers.steps import FULL, Layer, Value
from relaylang.diagnostics.unsupported import Unsupported

#: The least and greatest number that a value may be.
Bounds = tuple[int, int]
#: The bits of v and m below the split into four products.
_LOW_V, _LOW_M = 11, 16
#: The most results of a channel for which a shorter multiplier is sought, and the most bits of a scale's shift.
_MOST_RESULTS, _MOST_SHIFT = 1 << 12, 57


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
    """y = (v * high + (v * low >> bits) + summand) >> shift; with one product `bits` and `low` are 0."""

    high: int
    low: int
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
    for split in (False, True):
        for intervals in (wide, narrow):
            products = _products(intervals, split)
            results = [scale(v) for scale, interval in intervals.items() for v in interval]
            if products is None or min(results) < FULL[0] or max(results) > FULL[1]:
                continue
            low, high = (_one([intervals[scale][end] for scale in scales]) for end in (0, 1))
            if np.any(low != value.low):
                layer.apply("MAX", value.slot, low)
            if np.any(high != value.high):
                layer.apply("MIN", value.slot, high)
            _scale(layer, value.slot, [products[scale] for scale in scales])
            return Value(value.slot, min(results), max(results))
    results = [scale(v) for scale, interval in wide.items() for v in interval]
    if min(results) < FULL[0] or max(results) > FULL[1]:
        raise Unsupported("the scaled value may leave the range of int32")
    _scale_in_four(layer, value, scales)
    return Value(value.slot, min(results), max(results))


def _products(intervals: dict[_Scale, Bounds], split: bool) -> dict[_Scale, _Product] | None:
    """Exact products for all channels, if they exist: with the same shifts if they can have them, which costs less."""
    own: dict[_Scale, _Product] = {}
    for scale, interval in intervals.items():
        product = _product(scale, interval, split, _MOST_SHIFT, 30)
        if product is None:
            return None
        own[scale] = product
    some = [product for scale, product in own.items() if scale.multiplier]
    least, bits = min([product.shift + product.bits for product in some]), min([product.bits for product in some])
    same = {scale: _product(scale, interval, split, least, bits) for scale, interval in intervals.items()}
    return own if None in same.values() else same  # type: ignore[return-value]


@lru_cache(maxsize=1 << 14)
def _product(scale: _Scale, interval: Bounds, split: bool, most_shift: int, most_bits: int) -> _Product | None:
    """Products that fit, and give each y of the interval: those of an equal multiplier, or of one with the most bits."""
    multiplier, shift = scale
    most = max(abs(interval[0]), abs(interval[1]), 1)
    bits = min(31 - most.bit_length(), most_bits) if split else 0
    if not multiplier:
        return _Product(0, 0, bits, 0, max(min(most_shift - bits, 31), 1))
    zeros = min((multiplier & -multiplier).bit_length(), shift) - 1
    room = max(multiplier.bit_length() - bits - (30 - most.bit_length()), shift - 31 - bits, shift - most_shift, 0)
    if shift > _MOST_SHIFT or bits < split:
        return None
    for cut in (zeros, room):
        for factor in (multiplier >> cut, (multiplier >> cut) + 1)[: 1 + (cut > zeros)]:
            product = _split(factor, shift - cut, bits, most, _summands(scale, interval, factor, cut))
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


def _split(factor: int, shift: int, bits: int, most: int, summands: Bounds) -> _Product | None:
    """The product by a factor, in two where there are bits for that. None where it does not fit 32 bits."""
    bits = min(bits, shift - 1)
    summand = max(min(1 << max(shift - 1, 0), summands[1]), summands[0]) >> max(bits, 0)
    summand += summand << max(bits, 0) < summands[0]
    if shift < 1 or shift - bits > 31 or summands[0] > summands[1] or summand << bits > summands[1]:
        return None
    high, low = factor >> bits, factor & ((1 << bits) - 1)
    return _Product(high, low, bits, summand, shift - bits) if most * (high + (low > 0)) + abs(summand) <= FULL[1] else None


def _one(values: list[int]) -> Any:
    """A number where all are equal."""
    return values[0] if len(set(values)) == 1 else np.array(values, np.int64)


def _scale(layer: Layer, slot: int, products: Sequence[_Product]) -> None:
    high, low, bits, summand, shift = (_one(list(values)) for values in zip(*products))
    if np.any(low):
        part = layer.copy(slot)
        layer.apply("MUL", part, low)
        layer.apply("SHR", part, bits)
    layer.apply("MUL", slot, high)
    if np.any(low):
        layer.add(slot, part)
    layer.apply("ADD", slot, summand)
    layer.apply("SHR", slot, shift)


def _scale_in_four(layer: Layer, value: Value, scales: Sequence[_Scale]) -> None:
    multipliers, shifts = (np.array(values, np.int64) for values in zip(*scales))
    v, most = value.slot, max(abs(value.low), abs(value.high))
    low = ((multipliers + (1 << 15)) & 0xFFFF) - (1 << 15)
    high = (multipliers - low) >> _LOW_M
    if most >= 1 << 26 or (high >= 1 << 15).any():
        raise Unsupported(f"values up to {most} times a multiplier of 31 bits need more than two numbers of 32 bits")
    if (shifts < _LOW_V + _LOW_M + 1).any() or (shifts > _MOST_SHIFT).any():
        raise Unsupported("its scale is above 8, or below 2^-26")
    ml, mh, rest = (_one(values.tolist()) for values in (low, high, shifts - _LOW_V - _LOW_M))
    upper = layer.copy(v)
    layer.apply("ADD", upper, 1 << _LOW_V - 1)
    layer.apply("SHR", upper, _LOW_V)  # vh
    layer.keep_low(v, _LOW_V)  # vl
    sums = layer.copy(v)
    layer.apply("MUL", sums, ml)
    layer.apply("SHR", sums, _LOW_V)  # vl * ml / 2^11
    layer.apply("MUL", v, mh)  # vl * mh, in units of 2^16
    part = layer.copy(upper)
    layer.apply("MUL", part, ml)  # vh * ml, in units of 2^11
    layer.add(sums, part)
    layer.apply("MUL", upper, mh)  # vh * mh, in units of 2^27
    part = layer.copy(v)
    layer.keep_low(part, _LOW_V, _LOW_M - _LOW_V)  # the low 11 bits of vl * mh, in units of 2^11
    layer.add(sums, part)
    layer.apply("SHR", sums, _LOW_M)
    layer.apply("ADD", v, 1 << _LOW_V - 1)
    layer.apply("SHR", v, _LOW_V)
    layer.add(v, upper)
    layer.add(v, sums)
    layer.apply("ADD", v, np.left_shift(1, rest - 1))
    layer.apply("SHR", v, rest)


__all__ = ["requantize"]
