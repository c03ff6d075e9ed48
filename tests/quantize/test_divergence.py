"""Thresholds of histograms."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.quantize.divergence import BINS, NUMBERS, OUTLIERS, _divergence, threshold
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
    assert _divergence(counts, start, stop) == pytest.approx(wanted, rel=1e-4)


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


#: TVM 0.16's thresholds of `_samples(0)` and those behind it.
_RECORDED = [
    0.08308269083499908, 0.0001179058599518612, 2999.843994140625, 0.035958897322416306, 0.0011559237027540803,
    74734.65625, 1735.740234375, 8483.6240234375, 67.95420837402344, 0.003396306186914444, 0.008340275846421719,
    1.3597475117421709e-05, 300689.34375, 195.2193603515625, 20000.0, 75.9029312133789, 0.5421699285507202, 12.0,
    987.9806518554688, 3075.327392578125, 2.997889995574951, 20012.498046875, 0.5100364089012146, 61.56059646606445,
]  # fmt: skip


@pytest.mark.parametrize("seed", few(range(len(_RECORDED)), 5))
def test_random_values_have_the_threshold_of_tvm_or_keep_all_but_outliers(seed: int) -> None:
    values = _samples(seed)
    wanted = max(_RECORDED[seed], float(np.quantile(np.abs(values), OUTLIERS)))
    assert threshold(values) == pytest.approx(wanted, rel=1e-6)
