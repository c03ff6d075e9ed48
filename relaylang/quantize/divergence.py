"""Thresholds by the Kullback-Leibler divergence of histograms.

Source: S. Migacz, "8-bit inference with TensorRT", GTC 2017. The number of bins and the smoothing are those of TVM 0.16. So are
float32 sums in the order of the bins: they decide between candidates that hardly differ.
"""

from __future__ import annotations

import numpy as np

#: Bins of the histogram, and numbers that a quantised value has.
BINS, NUMBERS = 8001, 255
#: The quantile beyond which values are outliers. Clipping takes no others, however few samples there are; TVM has no such limit.
OUTLIERS = 0.999
#: What bins without a sample get in place of 0.
_SMALL = np.float32(0.0001)


def threshold(values: np.ndarray) -> float:
    """The magnitude at which clipping leaves the histogram of `values` most like its quantised form."""
    values = np.asarray(values, np.float32)
    most = float(np.abs(values).max(initial=0.0))
    if most == 0:
        return 0.0
    counts, edges = np.histogram(values, bins=BINS, range=(-most, most))
    middle = BINS // 2
    divergences = [_divergence(counts, middle - half, middle + half + 1) for half in range(NUMBERS // 2, middle + 1)]
    best = float(edges[middle + NUMBERS // 2 + int(np.argmin(divergences)) + 1])
    return max(best, float(np.quantile(np.abs(values), OUTLIERS)))


def _divergence(counts: np.ndarray, start: int, stop: int) -> float:
    """How far the bins from `start` to `stop`, with all others clipped to them, are from their quantised form."""
    inner = counts[start:stop].copy()
    inner[0] = 0
    clipped = inner.astype(np.float32)
    clipped[0] = counts[: start + 1].sum()
    clipped[-1] += counts[stop:].sum()
    merged = len(inner) // NUMBERS
    bins = np.minimum(np.arange(len(inner)) // merged, NUMBERS - 1)
    sums = np.bincount(bins, inner, NUMBERS).astype(np.float32)
    filled = np.bincount(bins, inner != 0, NUMBERS).astype(np.float32)
    each = np.divide(sums, filled, out=np.zeros(NUMBERS, np.float32), where=filled > 0)
    p, q = smoothed(clipped), smoothed(np.where(clipped != 0, each[bins], np.float32(0)))
    if p is None or q is None:
        return float("inf")
    p, q = p / _sum(p), q / _sum(q)
    # Logarithms are rounded from float64: numpy's of float32 depend on the processor.
    return float(_sum(p * np.log((p / q).astype(np.float64)).astype(np.float32)))


def _sum(values: np.ndarray) -> np.floating:
    """The sum in the order of the values; numpy's own adds them in pairs."""
    return np.cumsum(values)[-1]


def smoothed(counts: np.ndarray) -> np.ndarray | None:
    """Counts of which none is 0, with the same sum and element type; None where there are too few."""
    empty = int((counts == 0).sum())
    if empty == len(counts):
        return None
    taken = counts.dtype.type(_SMALL * np.float32(empty)) / counts.dtype.type(len(counts) - empty)
    return np.where(counts == 0, counts.dtype.type(_SMALL), counts - taken) if taken < 1 else None
