"""Multiply-shifts in products of 32 bits: each result is the exact one, and no number on the way leaves 32 bits."""

from __future__ import annotations

import numpy as np

from relaylang.backends.multiply_shift import Bounds, Product, Scale, products_of


def _held(number: int) -> int:
    assert -(1 << 31) <= number < 1 << 31
    return number


def _value(product: Product, v: int) -> int:
    """What 32 bits compute. Fails where a number does not fit."""
    total = 0
    for digit in product.digits[:-1]:
        total = _held(_held(v * digit) + total) >> product.bits
    return _held(_held(_held(v * product.digits[-1]) + total) + product.summand) >> product.shift


def _cases(rng: np.random.Generator, scale: Scale, interval: Bounds) -> list[int]:
    """The ends, numbers between, and both sides of numbers at which the result grows."""
    low, high = interval
    grows = [int(scale.first(int(y))) for y in rng.integers(scale(low), scale(high) + 1, 50)] if scale.multiplier else []
    near = [v for first in grows for v in (first - 1, first)]
    return [v for v in (low, high, *rng.integers(low, high + 1, 50).tolist(), *near) if low <= v <= high]


def test_every_product_is_exact() -> None:
    rng, counts = np.random.default_rng(0), [0] * 9
    for _ in range(400):
        scales = [Scale(int(rng.integers(1 << 30, 1 << 31)) >> int(rng.integers(0, 31)), int(rng.integers(20, 46))) for _ in range(3)]
        bounds = -(1 << int(rng.integers(0, 24))), 1 << int(rng.integers(0, 24))
        intervals = {scale: scale.limits(bounds, (-128, 127)) if rng.random() < 0.7 else bounds for scale in [*scales, Scale(0, 31)]}
        for count in range(1, 9):
            products = products_of(intervals, count)
            if products is None:
                continue
            counts[count] += 1
            for scale, product in products.items():
                assert len(product.digits) == count
                assert all(_value(product, v) == scale(v) for v in _cases(rng, scale, intervals[scale]))
            break
    assert counts[1] > 50 and counts[2] > 50 and sum(counts) > 300


def test_how_many_products_typical_scales_need() -> None:
    """A shift needs one. So does a sum of two int8 numbers, at any scale; a long sum that is limited to int8 needs two."""
    power, scale, long = Scale(1 << 30, 39), Scale(0x5A3C_71E7, 32), Scale(0x5A3C_71E7, 39)
    assert products_of({power: (-(1 << 21), 1 << 21)}, 1) == {power: Product((1,), 0, 1 << 8, 9)}
    assert products_of({scale: (-255, 255)}, 1) is not None
    interval = long.limits((-(1 << 21), 1 << 21), (-128, 127))
    assert products_of({long: interval}, 1) is None and products_of({long: interval}, 2) is not None
