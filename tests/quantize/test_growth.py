"""Memory does not depend on the number of batches: at most three are alive at a time."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from relaylang.quantize import StaticConfig, StaticQuantization
from relaylang.quantize.compare import compare
from relaylang.quantize.correct import correct_biases
from relaylang.quantize.observe import BINS
from relaylang.quantize.rounding import adapt_rounding
from tests.quantize.test_static import data, network


class Batches:
    """Batches that are made when they are asked for. `most` is the largest number of them that were alive."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.alive = self.most = 0

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        rng = np.random.default_rng(0)
        for _ in range(self.count):
            array = rng.normal(size=(1, 3, 8, 8)).astype("float32")
            self.alive += 1
            self.most = max(self.most, self.alive)
            weakref.finalize(array, self._gone)
            batch = {"x": array}
            del array
            yield batch
            del batch

    def _gone(self) -> None:
        self.alive -= 1


STEPS: dict[str, Callable[[StaticQuantization, Any], Any]] = {
    "calibrate": lambda of, batches: of.calibrate(batches),
    "compare": compare,
    "correct biases": correct_biases,
    "adapt rounding": adapt_rounding,
}


@pytest.mark.parametrize("step", STEPS)
def test_batches_are_let_go(step: str) -> None:
    mod, params = network()
    made = StaticQuantization(mod, params, StaticConfig(calibrator="entropy"))
    made.calibrate(data())
    batches = Batches(20)
    STEPS[step](made, batches)
    assert batches.most <= 3
    assert all(seen.counts.shape == (BINS,) for seen in made.seen)
