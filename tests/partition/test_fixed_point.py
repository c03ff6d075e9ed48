"""The integers of requantize, and those of a TOSA rescale: one and the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.partition.fixed_point import IDENTITY, make_rescale, multiplier_and_shift


def spelled_out(value: int, ratio: float) -> int:
    """Relay's arithmetic with Python's unbounded integers: frexp, round the significand, multiply, round half up."""
    significand, exponent = math.frexp(ratio)
    fixed = int(significand * 2**31 + 0.5)
    if fixed == 2**31:
        fixed, exponent = fixed // 2, exponent + 1
    shift = 31 - exponent
    return (value * fixed + 2 ** (shift - 1)) // 2**shift


def some_ratios(rng: np.random.Generator, count: int) -> list[float]:
    return [float(np.float32(a)) / float(np.float32(b)) for a, b in np.exp(rng.uniform(-9, 2, (count, 2)))]


def test_multiplier_is_normal() -> None:
    for ratio in [*some_ratios(np.random.default_rng(1), 300), 1.0, 0.5, 2.0**-31, 1 - 2.0**-40]:
        multiplier, shift = multiplier_and_shift(ratio)
        assert 2**30 <= multiplier < 2**31
        assert multiplier / 2.0**shift == pytest.approx(ratio, rel=2.0**-31)
    assert multiplier_and_shift(1.0) == IDENTITY


def test_formula_against_unbounded_integers() -> None:
    rng = np.random.default_rng(2)
    for ratio in some_ratios(rng, 100):
        bound = 2**20
        try:
            rescale = make_rescale(np.float32(ratio), np.float32(1), 0, np.array([bound]))
        except Unsupported:
            continue
        values = np.concatenate([rng.integers(-bound, bound + 1, 50), [0, 1, -1, bound, -bound]])
        exact = [spelled_out(int(v), float(np.float32(ratio))) for v in values]
        assert rescale.apply(values).tolist() == exact


@pytest.mark.parametrize(
    ("ratio", "bound", "says"),
    [
        (2.0**-40, 10, "2\\^31 times smaller"),
        (2.0**30, 10, "2\\^28 times larger"),
        (0.75, 2**31 - 1, "may leave the range in which a TOSA rescale is defined"),
        (300.0, 2**23, "range"),
        (0.0, 10, "positive finite"),
        (float("inf"), 10, "positive finite"),
    ],
)
def test_refused(ratio: float, bound: int, says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        make_rescale(np.float32(ratio), np.float32(1), 0, np.array([bound]))


def test_to_nearest_is_taken_only_where_no_midpoint_is_negative() -> None:
    bound = np.array([1000])
    with pytest.raises(Unsupported, match="midpoints"):
        make_rescale(np.float32(0.5), np.float32(1), 0, bound, rounding="TONEAREST")
    rescale = make_rescale(np.float32(0.3), np.float32(1), 0, bound, rounding="TONEAREST")
    values = np.arange(-1000, 1001)
    multiplier, shift = rescale.multipliers[0], rescale.shifts[0]
    away = [int(math.copysign((abs(int(v)) * multiplier + 2 ** (shift - 1)) >> shift, int(v))) for v in values]
    assert rescale.apply(values).tolist() == away


def test_channels_need_as_many_scales() -> None:
    with pytest.raises(Unsupported, match="3 scales for 4 channels"):
        make_rescale(np.ones(3, np.float32), np.float32(2), 0, np.full(4, 9))


def test_reference_model_gives_the_same_integers() -> None:
    """Random scales, one for the tensor and one for each channel, with the ends of the accepted range."""
    pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
    from relaylang.backends.ethosu.flatbuffer import serialize
    from relaylang.backends.ethosu.reference import run_tosa
    from relaylang.backends.ethosu.tosa import Graph

    rng = np.random.default_rng(3)
    channels = 64
    for case in range(12):
        spread = (-22, -1) if case < 9 else (-30, -26)
        ratios = np.exp2(rng.uniform(*spread, channels if case % 2 else 1)).astype(np.float32)
        if case == 4:
            ratios = np.exp2(rng.integers(-20, 0, channels)).astype(np.float32)
        if case == 6:
            ratios = np.array([0.5], np.float32)
        if case == 8:
            ratios = np.nextafter(np.float32(0.5), np.float32([0, 1] * (channels // 2)), dtype=np.float32)
        bound = 2**29
        scale = ratios if ratios.size > 1 else ratios.reshape(())
        rescale = make_rescale(scale, np.float32(1), 0, np.array([bound]))
        values = rng.integers(-bound, bound + 1, (1, 4, 8, channels)).astype(np.int32)
        values[0, 0] = rng.integers(-300, 301, (8, channels))
        values[0, 1, :4] = np.array([bound, -bound, 1, -1]).reshape(4, 1)
        zero_point = int(rng.integers(-128, 128))
        graph = Graph()
        x = graph.input("x", values.shape, "int32")
        arrays = np.array(rescale.multipliers), np.array(rescale.shifts)
        many = len(rescale.shifts) > 1
        graph.output(graph.rescale(x, "int8", *arrays, output_zp=zero_point, per_channel=many))
        graph.output(graph.rescale(x, "int32", *arrays, per_channel=many))
        small, wide = run_tosa(serialize(graph), [values])
        exact = rescale.apply(values)
        np.testing.assert_array_equal(wide, exact)
        np.testing.assert_array_equal(small, np.clip(exact + zero_point, -128, 127))
