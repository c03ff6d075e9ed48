"""Thresholds of histograms."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.quantize import divergence
from relaylang.quantize.divergence import BINS, NUMBERS, _divergence, threshold
from tests.shared import few


@pytest.mark.sweep
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


def _samples(seed: int) -> np.ndarray:
    """Values as layers give them: of several distributions, some with zeros, outliers or few different numbers."""
    rng = np.random.default_rng(seed)
    count = int(rng.choice([1, 3, 50, 1000, 20_000]))
    kinds = [
        rng.normal(size=count),
        rng.uniform(-1, 3, count),
        rng.laplace(size=count),
        rng.standard_cauchy(count),
        rng.exponential(size=count),
        np.round(rng.normal(size=count) * 3),
        rng.lognormal(sigma=2, size=count),
    ]
    values = kinds[int(rng.integers(len(kinds)))]
    if rng.random() < 0.4:
        values = np.maximum(values, 0)
    if rng.random() < 0.3:
        values = np.append(values, rng.normal(size=2) * 100)
    return (values * 10.0 ** float(rng.integers(-6, 6))).astype("float32")


def _reference(values: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """The divergence of each candidate, and its magnitude, by slices of the histogram."""
    most = float(np.abs(values).max())
    counts, edges = np.histogram(values, bins=bins, range=(-most, most))
    middle, found, ends = bins // 2, [], []
    for half in range(NUMBERS // 2, middle + 1):
        start, stop = middle - half, middle + half + 1
        inner = counts[start:stop].astype(np.float64)
        inner[0] = 0
        p = inner.copy()
        p[0], p[-1] = counts[: start + 1].sum(), p[-1] + counts[stop:].sum()
        step, q = len(p) // NUMBERS, np.zeros(len(p))
        for n in range(NUMBERS):
            part = slice(n * step, (n + 1) * step if n < NUMBERS - 1 else None)
            filled = np.count_nonzero(inner[part])
            q[part] = inner[part].sum() / filled if filled else 0
        q[p == 0] = 0
        both = []
        for x in (p, q):
            empty = np.count_nonzero(x == 0)
            taken = 1e-4 * empty / (len(x) - empty) if empty < len(x) else np.inf
            both.append(np.where(x == 0, 1e-4, x - taken) if taken < 1 else None)
        if both[0] is None or both[1] is None:
            found.append(np.inf)
        else:
            a, b = (x / x.sum() for x in both)
            found.append(float((a * np.log(a / b)).sum()))
        ends.append(float(edges[stop]))
    return np.asarray(found), np.asarray(ends)


@pytest.mark.parametrize("seed", few(range(60), 3))
def test_random_values_get_the_threshold_of_the_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divergence, "BINS", 601)
    values = _samples(seed)
    found, ends = _reference(values, 601)
    # of candidates that are equally good but for rounding, any
    best = ends[found <= found.min() + 1e-12] if np.isfinite(found.min()) else ends[:1]
    wanted = np.maximum(best, np.quantile(np.abs(values), divergence.OUTLIERS)) if values.any() else np.zeros(1)
    assert np.isclose(threshold(values), wanted, rtol=1e-12, atol=0).any()
