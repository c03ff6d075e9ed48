"""Multiply-shifts for hardware of 32 bits: `y = (v * m + 2^(s - 1)) >> s` with a multiplier m of up to 31 bits, exact to the integer.

Relay computes it in 64 bits. A shorter multiplier and another summand give the same y for all v of an interval, if they do so
on both sides of each v at which y grows. One product is enough where `(v * m' + c) >> s'` fits 32 bits. Else m' is cut into
digits of b bits, with a product for each from the lowest on. The sum so far is shifted by b and added to the next product:
floor((x * 2^b + y) / 2^b) = x + floor(y / 2^b).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

#: The least and greatest number that a value may be.
Bounds = tuple[int, int]
#: The most results for which a shorter multiplier is sought, and the most bits of a scale's shift.
_MOST_RESULTS, _MOST_SHIFT = 1 << 12, 57
_GREATEST = (1 << 31) - 1


class Scale(NamedTuple):
    """An exact scale: y = (v * multiplier + 2^(shift - 1)) >> shift."""

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


class Product(NamedTuple):
    """The digits of a multiplier, lowest first, their bits, the summand of the last product, and the last shift."""

    digits: tuple[int, ...]
    bits: int
    summand: int
    shift: int


def products_of(intervals: dict[Scale, Bounds], count: int) -> dict[Scale, Product] | None:
    """Exact products of `count` digits for each scale and its interval, with the same shifts if they can have them.

    None where a scale has none.
    """
    own: dict[Scale, Product] = {}
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
def _product(scale: Scale, interval: Bounds, count: int, most_shift: int, most_bits: int) -> Product | None:
    """So many products that fit, and give each y of the interval: of an equal multiplier, or of one with the most bits."""
    multiplier, shift = scale
    most = max(abs(interval[0]), abs(interval[1]), 1)
    bits = min(31 - most.bit_length(), most_bits) if count > 1 else 0
    lower = (count - 1) * bits
    if not multiplier:
        return Product((0,) * count, bits, 0, max(min(most_shift - lower, 31), 1))
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


def _summands(scale: Scale, interval: Bounds, factor: int, cut: int) -> Bounds:
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


def _cut(factor: int, shift: int, bits: int, count: int, most: int, summands: Bounds) -> Product | None:
    """The products of the digits of a factor. None where one does not fit 32 bits."""
    bits = min(bits, (shift - 1) // max(count - 1, 1))
    if shift < 1 or summands[0] > summands[1] or (count > 1 and bits < 1):
        return None
    lower = (count - 1) * bits
    summand = max(min(1 << shift - 1, summands[1]), summands[0]) >> lower
    summand += summand << lower < summands[0]
    *digits, last = [factor >> number * bits & ((1 << bits) - 1) for number in range(count - 1)] + [factor >> lower]
    fits = most * (last + (count > 1)) + abs(summand) <= _GREATEST and shift - lower <= 31 and summand << lower <= summands[1]
    return Product((*digits, last), bits, summand, shift - lower) if fits else None


__all__ = ["Bounds", "Product", "Scale", "products_of"]
