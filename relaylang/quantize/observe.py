"""Observers: the ranges and histograms of a network's values over a data set, counted in compiled code in one pass.

The network is compiled once, with the extremes and the histogram of each value as its outputs. A histogram has a range that
grows by factors of two: bins are then merged in pairs, so its memory does not depend on the number of batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.backends.cpu import compile_for
from relaylang.backends.target import Target
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var
from relaylang.ir.typed import typed_var
from relaylang.ops.record import Op
from relaylang.quantize.prepare import refuse
from relaylang.rules.quantization.measures import histograms, ranges
from relaylang.typing import check

#: The bins of a histogram: eight for each number that a quantised value has.
BINS = 2048
#: Histograms count so many batches, and then one of `EVERY`.
COUNTED, EVERY = 32, 8
#: The share of a new batch in moving averages.
MOMENTUM = 0.1

#: The least range of a histogram: the bins in a range of 1 are a float32.
_NARROWEST = float(np.finfo("float32").tiny) * BINS

#: A batch of inputs by name.
Batch = Mapping[str, np.ndarray]


def compiled(mod: IRModule, params: Sequence[Var], outputs: Sequence[Expr]) -> Any:
    """A compiled program of a module that computes expressions over some parameters, as a tuple."""
    probe = mod.with_functions({**mod.functions, mod.get_global_var("main"): Function(params, Tuple(outputs))})
    check(probe)
    return compile_for(probe, Target("c"), [], {}, "main")


@dataclass
class Seen:
    """The numbers of a value over all batches. `counts[i]` numbers lie in bin i of the `BINS` between `low` and `high`."""

    least: float = np.inf
    greatest: float = -np.inf
    moving: tuple[float, float] | None = None
    low: float = 0.0
    high: float = 0.0
    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def ranged(self, least: float, greatest: float) -> bool:
        """Take the extremes of a batch. Returns whether the histogram's range had to grow."""
        self.least, self.greatest = min(self.least, least), max(self.greatest, greatest)
        if self.moving is None:
            self.moving = least, greatest
            self.low, self.high = min(least, 0.0), max(greatest, 0.0)
            if self.high == self.low:
                self.high = self.low + 1.0
            return True
        old = self.moving
        self.moving = old[0] + MOMENTUM * (least - old[0]), old[1] + MOMENTUM * (greatest - old[1])
        grown = False
        while greatest > self.high:
            self.high = self.low + 2 * (self.high - self.low)
            self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(1), np.zeros(BINS // 2, np.int64)])
            grown = True
        while least < self.low:
            self.low = self.high - 2 * (self.high - self.low)
            self.counts = np.concatenate([np.zeros(BINS // 2, np.int64), self.counts.reshape(-1, 2).sum(1)])
            grown = True
        return grown

    def count(self, counts: np.ndarray) -> None:
        """Take a batch's histogram, which may be of samples. Both extremes were there at least once."""
        self.counts += counts
        for end in (self.least, self.greatest):
            at = min(int((end - self.low) / (self.high - self.low) * BINS), BINS - 1)
            self.counts[at] = max(self.counts[at], 1)

    @property
    def centres(self) -> np.ndarray:
        """The middle of each bin."""
        return self.low + (np.arange(BINS) + 0.5) * ((self.high - self.low) / BINS)


class Observer:
    """Counts the numbers of expressions over @main's parameters. `histogrammed` says whether extremes are not enough.

    The extremes are those of all batches. Histograms count the first `COUNTED` batches, then one of `EVERY`.
    """

    def __init__(self, mod: IRModule, values: Sequence[Expr], histogrammed: bool) -> None:
        self.values = values
        self.seen = [Seen() for _ in values]
        self._batches = 0
        params: list[Var] = list(mod["main"].params)
        names = {p.name_hint for p in params}
        self._names = [_fresh(name, names) for name in ("lows", "factors")]
        outputs = [ranges(values)]
        self._program = compiled(mod, params, outputs)
        self._counting: Any = None
        if histogrammed:
            bins = [typed_var(name, TensorType((len(values),), "float32")) for name in self._names]
            self._counting = compiled(mod, [*params, *bins], [*outputs, histograms(values, BINS, *bins)])

    def add(self, batch: Batch) -> None:
        """Count the numbers of a batch. Raises `RelayError` (R0530) for numbers that are not finite."""
        number, self._batches = self._batches, self._batches + 1
        counting = self._counting is not None and (number < COUNTED or number % EVERY == 0)
        batch_values = self._counted(batch) if counting and number else self._program.run(**batch)
        ends = np.asarray(batch_values[0], "float64").reshape(-1, 2)
        for value, finite in zip(self.values, np.isfinite(ends).all(1)):
            if not finite:
                name = value.op.name if isinstance(value, Call) and isinstance(value.op, Op) else "a value of the network"
                title = f"the result of {name} is not finite for batch {number}"
                raise refuse(title, "NaN and infinities have no form in whole numbers", span=value.span)
        grown = [seen.ranged(float(a), float(b)) for seen, (a, b) in zip(self.seen, ends)]
        if counting:
            if any(grown):
                batch_values = self._counted(batch)
            for seen, counts in zip(self.seen, batch_values[1]):
                seen.count(counts)

    def _counted(self, batch: Batch) -> Any:
        widths = np.array([max(seen.high - seen.low, _NARROWEST) for seen in self.seen])
        ranges = np.array([seen.low for seen in self.seen], "float32"), (BINS / widths).astype("float32")
        return self._counting.run(**batch, **dict(zip(self._names, ranges)))


def _fresh(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name


def observe(
    mod: IRModule, values: Sequence[Expr], dataset: Iterable[Batch], histograms: bool, step: Callable[[int], None] = lambda n: None
) -> list[Seen]:
    """The numbers of expressions over @main's parameters, in the order of `values`. `step` is called after each batch."""
    observer = Observer(mod, values, histograms)
    for batch in dataset:
        observer.add(batch)
        step(1)
    return observer.seen


__all__ = ["BINS", "Batch", "Observer", "Seen", "compiled", "observe"]
