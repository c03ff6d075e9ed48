"""Scaling, against whole numbers of any size."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.backends.ethosu.simulator.elementwise import _leading_zeros, _shifted_right
from relaylang.backends.ethosu.simulator.output import DOUBLE, NATURAL, TRUNCATE, scaled


def exact(value: int, multiplier: int, shift: int, rounding: int) -> int:
    """As TOSA 1.0 defines RESCALE: rounding halves up, in two steps, or towards zero."""
    product = value * multiplier
    half = 1 << shift >> 1
    if rounding == NATURAL:
        return (product + half) >> shift
    if rounding == DOUBLE:
        extra = (1 << 30) * (1 if value >= 0 else -1) if shift > 31 else 0
        return (product + half + extra) >> shift
    return abs(product) >> shift if product >= 0 else -(abs(product) >> shift)


@pytest.mark.parametrize("rounding", [DOUBLE, TRUNCATE, NATURAL])
@pytest.mark.parametrize("bits", [8, 16, 31, 39, 47])
def test_scaling_is_exact(rounding: int, bits: int) -> None:
    rng = np.random.default_rng(bits)
    values = rng.integers(-(1 << bits), 1 << bits, 5000)
    multipliers = rng.integers(0, 1 << 32, 5000) >> rng.integers(0, 31, 5000)
    shifts = rng.integers(0, 63, 5000)
    wanted = [exact(int(v), int(m), int(s), rounding) for v, m, s in zip(values, multipliers, shifts)]
    # A shift of up to 20 of a larger product gives what no output holds; it stays as large.
    found = [max(min(int(v), 1 << 41), -(1 << 41)) for v in scaled(values, multipliers, shifts, rounding)]
    assert found == [max(min(w, 1 << 41), -(1 << 41)) for w in wanted]


@pytest.mark.parametrize("rounding", [DOUBLE, TRUNCATE, NATURAL])
def test_halves_are_rounded_as_they_should(rounding: int) -> None:
    values = np.arange(-8, 9)
    found = scaled(values, 1, 1, rounding)
    wanted = {TRUNCATE: np.trunc(values / 2)}.get(rounding, np.floor(values / 2 + 0.5))
    np.testing.assert_array_equal(found, wanted)


def test_shifts_and_leading_zeros() -> None:
    values = np.asarray([-7, -6, -5, -1, 0, 1, 5, 6, 7, 127])
    np.testing.assert_array_equal(_shifted_right(values, np.full(10, 2), NATURAL), np.floor(values / 4 + 0.5))
    np.testing.assert_array_equal(_shifted_right(values, np.full(10, 2), TRUNCATE), values >> 2)
    np.testing.assert_array_equal(_shifted_right(values, np.zeros(10, int), DOUBLE), values)
    numbers = [0, 1, 2, 3, 255, 256, (1 << 31) - 1, -1, 1 << 30]
    np.testing.assert_array_equal(
        _leading_zeros(np.asarray(numbers)), [32 - (n & 0xFFFFFFFF).bit_length() for n in numbers]
    )
