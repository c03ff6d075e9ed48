"""Calibrators: the range of a value that its numbers have to represent, from observations; and of weights.

A range holds 0. What lies outside is clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from relaylang.quantize.divergence import OUTLIERS, smoothed
from relaylang.quantize.observe import Seen

#: The candidates for the end of a range.
_STEPS = 64
#: The shortest range that is tried, as a share of the whole.
_SHORTEST = 0.3
#: The bins on each side that are a bin's neighbourhood.
_NEAR = 8
#: The least share of numbers that is a distribution without those that occur again and again.
_LITTLE = 0.25


@dataclass(frozen=True)
class Grid:
    """The whole numbers of quantised values: `levels` from `least`; `symmetric` ones have the zero point 0."""

    dtype: str
    symmetric: bool
    power2: bool = False

    @property
    def least(self) -> int:
        return int(np.iinfo(self.dtype).min) + int(self.symmetric)

    @property
    def greatest(self) -> int:
        return int(np.iinfo(self.dtype).max)

    def scaled(self, low: float, high: float) -> tuple[float, int]:
        """The scale and the zero point of a range, as float32 and an integer."""
        low, high = min(low, 0.0), max(high, 0.0)
        tiny = float(np.finfo("float32").tiny) * 2**24
        if self.symmetric:
            scale = max(-low, high) / self.greatest
        else:
            scale = (high - low) / (self.greatest - self.least)
        scale = 1.0 if scale == 0 else max(scale, tiny)
        if self.power2:
            scale = 2.0 ** np.ceil(np.log2(scale))
        scale = float(np.float32(scale))
        if self.symmetric:
            return scale, 0
        zero = int(np.clip(np.rint(self.least - low / scale), self.least, self.greatest))
        return scale, zero

    def rounded(self, values: np.ndarray, scale: float, zero: int) -> np.ndarray:
        """The real numbers that quantised values stand for."""
        return (np.clip(np.rint(values / scale) + zero, self.least, self.greatest) - zero) * scale


#: `(observations, grid, share)` to a range.
Calibrator = Callable[[Seen, Grid, float], tuple[float, float]]


def _minmax(seen: Seen, grid: Grid, share: float) -> tuple[float, float]:
    return seen.least, seen.greatest


def _moving_average(seen: Seen, grid: Grid, share: float) -> tuple[float, float]:
    assert seen.moving is not None
    return seen.moving


def _percentile(seen: Seen, grid: Grid, share: float) -> tuple[float, float]:
    """The ends of the numbers without the share of both tails."""
    total = np.cumsum(seen.counts)
    if not total[-1]:
        return _minmax(seen, grid, share)
    width = (seen.high - seen.low) / len(seen.counts)
    tail = (1 - share) * total[-1] / (1 if seen.least >= 0 or seen.greatest <= 0 else 2)
    first = int(np.searchsorted(total, tail, side="right"))
    last = int(np.searchsorted(total, total[-1] - tail, side="left"))
    low = seen.least if seen.least >= 0 else max(seen.least, seen.low + first * width)
    high = seen.greatest if seen.greatest <= 0 else min(seen.greatest, seen.low + (last + 1) * width)
    return low, high


def _mse(seen: Seen, grid: Grid, share: float) -> tuple[float, float]:
    """The range with the least squared error: both ends together first, then each alone."""
    low, high = min(seen.least, 0.0), max(seen.greatest, 0.0)
    centres, counts = seen.centres, seen.counts
    used = counts > 0
    centres, counts = centres[used], counts[used]

    def cost(range_: tuple[float, float]) -> float:
        return float((counts * (centres - grid.rounded(centres, *grid.scaled(*range_))) ** 2).sum())

    shares = np.linspace(1.0, _SHORTEST, _STEPS)
    best = min(((low * a, high * a) for a in shares), key=cost)
    if not grid.symmetric:
        best = min(((low * a, best[1]) for a in shares), key=cost)
        best = min(((best[0], high * a) for a in shares), key=cost)
    return best


def _entropy(seen: Seen, grid: Grid, share: float) -> tuple[float, float]:
    """The threshold whose quantised histogram is nearest to the clipped one by the Kullback-Leibler divergence.

    Values of both signs are seen by their magnitudes. Of equally good thresholds, the largest is taken.
    Source: S. Migacz, "8-bit inference with TensorRT", GTC 2017.
    """
    both = seen.least < 0 < seen.greatest
    magnitudes = np.abs(seen.centres)
    most = max(-seen.least, seen.greatest)
    if most <= 0:
        return seen.least, seen.greatest
    bins = len(seen.counts)
    places = np.minimum((magnitudes / most * bins).astype(int), bins - 1)
    counts = np.bincount(places, seen.counts, bins)
    spread = _spread(counts)
    levels = (grid.greatest - grid.least + 1) // (2 if both else 1)
    levels = min(levels, bins // 4)
    ends = range(bins, levels - 1, -max(levels // 8, 1))
    best = min(ends, key=lambda end: _divergence(spread[:end], counts[end:].sum(), levels)) / bins * most
    # Few samples leave most bins empty. Clipping takes none but outliers then, too.
    best = max(best, (int(np.searchsorted(np.cumsum(counts), OUTLIERS * counts.sum())) + 1) / bins * most)
    return max(seen.least, -best), min(seen.greatest, best)


def _spread(counts: np.ndarray) -> np.ndarray:
    """Counts without numbers that occur again and again: zeros of rectifiers, limits, and what constant parts of data give.

    Such a number fills one bin alone. A divergence is large where it shares a step with other bins, though it is represented as
    well as they. Bins have at most what their neighbourhood makes likely. Where that leaves little, the counts stay, but
    for those of zero, which has a whole number of its own.
    """
    window = np.lib.stride_tricks.sliding_window_view(np.pad(counts, _NEAR, mode="reflect"), 2 * _NEAR + 1)
    middle = np.median(window, axis=1)
    spread = np.minimum(counts, 2 * middle + 3 * np.sqrt(middle))
    if spread.sum() < _LITTLE * counts.sum():
        spread = counts.copy()
        spread[0] = min(spread[:2])
    return spread


def _divergence(inner: np.ndarray, clipped: float, levels: int) -> float:
    """How far counts, with so many others clipped to the last bin, are from their form in levels.

    Samples of a distribution that is even within each level have a divergence, too: half a chi-square number. Its degrees of
    freedom are the filled bins less the filled levels. The mean of that number is subtracted: it would favour thresholds with
    a level for each bin.
    """
    groups = np.minimum(np.arange(len(inner)) * levels // len(inner), levels - 1)
    sums, filled = np.bincount(groups, inner, levels), np.bincount(groups, inner > 0, levels)
    each = np.divide(sums, filled, out=np.zeros(levels), where=filled > 0)
    p, q = smoothed(np.append(inner[:-1], inner[-1] + clipped)), smoothed(np.where(inner > 0, each[groups], 0.0))
    if p is None or q is None:
        return float("inf")
    expected = (filled.sum() - np.count_nonzero(filled)) / (2 * p.sum())
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum() - expected)


CALIBRATORS: Mapping[str, Calibrator] = {
    "minmax": _minmax,
    "moving-average": _moving_average,
    "percentile": _percentile,
    "entropy": _entropy,
    "mse": _mse,
}
#: Those that need no histogram.
EXTREMES = frozenset({"minmax", "moving-average"})


# ---- weights: of each channel, the largest magnitude


def _most(rows: np.ndarray, share: float) -> np.ndarray:
    return np.abs(rows).max(1, initial=0.0)


def _most_percentile(rows: np.ndarray, share: float) -> np.ndarray:
    return np.quantile(np.abs(rows), share, axis=1) if rows.shape[1] else np.zeros(len(rows))


def _most_mse(rows: np.ndarray, share: float) -> np.ndarray:
    """The magnitudes with the least squared error at 8 bits."""
    most = _most(rows, share)
    best, least = most.copy(), np.full(len(rows), np.inf)
    for part in np.linspace(1.0, 0.5, 51):
        scale = np.where(most > 0, most * part / 127, 1.0)[:, None]
        cost = ((rows - np.clip(np.rint(rows / scale), -127, 127) * scale) ** 2).sum(1)
        better = cost < least
        best[better], least[better] = most[better] * part, cost[better]
    return best


#: `(rows, share)` to the largest magnitude of each row that is represented.
WEIGHTS: Mapping[str, Callable[[np.ndarray, float], np.ndarray]] = {"max": _most, "percentile": _most_percentile, "mse": _most_mse}

__all__ = ["CALIBRATORS", "EXTREMES", "WEIGHTS", "Grid"]
