"""Scaling, against whole numbers of any size."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang import RelayError
from relaylang.backends.ethosu.simulator.accumulators import accumulated
from relaylang.backends.ethosu.simulator.elementwise import _leading_zeros, _shifted_right
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.scaling import Rounding, scaled
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.stream import Command, Stream


def exact(value: int, multiplier: int, shift: int, kind: Rounding, raised: int) -> int:
    """By whole numbers: one addend and a shift, or a division of the magnitude."""
    product = value * multiplier
    half = 1 << shift >> 1
    first = 1 << 30 >> raised if shift > 31 - raised else 0
    if kind == Rounding.TRUNCATE_TO_ZERO:
        return abs(product) >> shift if product >= 0 else -(abs(product) >> shift)
    if kind == Rounding.SYMMETRIC:
        return (abs(product) + half) >> shift if product >= 0 else -((abs(product) + half) >> shift)
    addends = {
        Rounding.NATURAL: half,
        Rounding.TRUNCATE_TO_LOWER: 0,
        Rounding.DOUBLE_ASYMMETRIC: half + first,
        Rounding.DOUBLE_SYMMETRIC: half + (first if value >= 0 else -first),
    }
    return (product + addends[kind]) >> shift


@pytest.mark.sample(8)
@pytest.mark.parametrize("raised", [0, 15, 20])
@pytest.mark.parametrize("kind", Rounding)
@pytest.mark.parametrize("bits", [8, 16, 31, 39, 47])
def test_scaling_is_exact(kind: Rounding, bits: int, raised: int) -> None:
    rng = np.random.default_rng(bits)
    values = rng.integers(-(1 << bits), 1 << bits, 2000)
    multipliers = rng.integers(0, 1 << 32, 2000) >> rng.integers(0, 31, 2000)
    shifts = rng.integers(0, 64, 2000)
    wanted = [exact(int(v), int(m), int(s), kind, raised) for v, m, s in zip(values, multipliers, shifts)]
    # A shift of up to 20 of a larger product gives what no output holds; it stays as large.
    found = [max(min(int(v), 1 << 41), -(1 << 41)) for v in scaled(values, multipliers, shifts, kind, raised)]
    assert found == [max(min(w, 1 << 41), -(1 << 41)) for w in wanted]


#: Halves below and above zero.
HALVES = {
    Rounding.NATURAL: (-2, 3),
    Rounding.SYMMETRIC: (-3, 3),
    Rounding.TRUNCATE_TO_ZERO: (-2, 2),
    Rounding.TRUNCATE_TO_LOWER: (-3, 2),
    Rounding.DOUBLE_SYMMETRIC: (-2, 3),
    Rounding.DOUBLE_ASYMMETRIC: (-2, 3),
}


@pytest.mark.parametrize("kind", Rounding)
def test_halves_are_rounded_as_they_should(kind: Rounding) -> None:
    assert tuple(scaled(np.asarray([-5, 5]), 1, 1, kind)) == HALVES[kind]


@pytest.mark.sample(3)
@pytest.mark.parametrize("e", [1, 5, 12])
def test_double_rounding_is_that_of_tensorflow_lite(e: int) -> None:
    """Its multiplication rounds at bit 31, halves away from zero; its shift does so behind."""
    rng = np.random.default_rng(e)
    for value, multiplier in zip(rng.integers(-(1 << 20), 1 << 20, 3000), rng.integers(1 << 30, 1 << 31, 3000)):
        product = abs(int(value) * int(multiplier))
        once = (product + (1 << 30)) >> 31
        wanted = (once + (1 << e >> 1)) >> e
        found = scaled(np.asarray([value]), int(multiplier), 31 + e, Rounding.DOUBLE_SYMMETRIC)
        assert found[0] == (wanted if value >= 0 else -wanted)


def test_shifts_and_leading_zeros() -> None:
    values = np.asarray([-7, -6, -5, -1, 0, 1, 5, 6, 7, 127])
    np.testing.assert_array_equal(_shifted_right(values, np.full(10, 2), Rounding.NATURAL), np.floor(values / 4 + 0.5))
    np.testing.assert_array_equal(_shifted_right(values, np.full(10, 2), Rounding.TRUNCATE_TO_ZERO), values >> 2)
    np.testing.assert_array_equal(_shifted_right(values, np.zeros(10, int), Rounding.DOUBLE_SYMMETRIC), values)
    numbers = [0, 1, 2, 3, 255, 256, (1 << 31) - 1, -1, 1 << 30]
    np.testing.assert_array_equal(_leading_zeros(np.asarray(numbers)), [32 - (n & 0xFFFFFFFF).bit_length() for n in numbers])


@pytest.mark.parametrize(("product", "kind", "bits"), [("ethos-u55", 0, 32), ("ethos-u65", 1, 40), ("ethos-u85", 1, 48)])
def test_sums_that_accumulators_cannot_hold(product: str, kind: int, bits: int) -> None:
    """What they become is not documented."""
    state = State(Stream(product, 256, 24, ()))
    state.set(Command(0, "SET_ACC_FORMAT", kind, None))
    memory = Memory(state, {}, {}, 1)
    sums = np.full((1, 1, 1), -1 << bits - 1, np.int64)
    np.testing.assert_array_equal(accumulated(state, memory, sums), sums)
    for wrong in (sums - 1, -sums):
        with pytest.raises(RelayError, match=f"R0616.*accumulators of {bits} bits cannot hold"):
            accumulated(state, memory, wrong)
