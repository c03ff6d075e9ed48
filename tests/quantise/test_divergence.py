"""Thresholds of histograms."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.quantise.divergence import BINS, NUMBERS, _divergence, threshold


def test_a_far_away_value_is_clipped() -> None:
    values = np.random.default_rng(0).normal(size=20_000).astype("float32")
    near = threshold(values)
    assert 3 < near <= np.abs(values).max()
    # two values a thousand deviations away
    assert threshold(np.append(values, [1000.0, -1000.0]).astype("float32")) < 100


@pytest.mark.sweep
def test_values_that_fill_their_range_keep_it() -> None:
    values = np.linspace(-2, 2, 80_000, dtype="float32")
    assert threshold(values) == pytest.approx(2, abs=4 / NUMBERS)


def test_nothing_and_one_value() -> None:
    assert threshold(np.zeros(5, "float32")) == 0
    assert 0 < threshold(np.full(5, 3, "float32")) <= 3
    assert threshold(np.array([], "float32")) == 0


def test_the_divergence_by_its_definition() -> None:
    """The loops of the definition over a small part of a histogram, bin by bin."""
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, BINS)
    start, stop = BINS // 2 - 300, BINS // 2 + 301
    size = stop - start
    p = [float(c) for c in counts[start:stop]]
    p[0] = float(sum(counts[: start + 1]))
    p[-1] += float(sum(counts[stop:]))
    inner = [0, *counts[start + 1 : stop]]
    merged = size // NUMBERS
    q = [0.0] * size
    for j in range(NUMBERS):
        end = (j + 1) * merged if j < NUMBERS - 1 else size
        part = inner[j * merged : end]
        filled = sum(c != 0 for c in part)
        for k in range(j * merged, end):
            q[k] = sum(part) / filled if p[k] and filled else 0.0

    def smooth(values: list[float]) -> list[float]:
        empty = sum(v == 0 for v in values)
        return [0.0001 if v == 0 else v - 0.0001 * empty / (len(values) - empty) for v in values]

    p, q = smooth(p), smooth(q)
    wanted = sum(a / sum(p) * np.log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True))
    assert _divergence(counts, start, stop) == pytest.approx(wanted, rel=1e-12)
