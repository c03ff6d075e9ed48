"""A tuner with a cost model: gradient-boosted trees (XGBoost) over features of the loops, and of the knobs' values.

Needs `pip install 'relaylang[tune]'`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.tune.space import Point, SearchSpace
from relaylang.tune.tuners import Result, _Base, evolve

#: Results before the first model, the share of random points in a batch, and points that a failed one counts as slower.
_FIRST, _RANDOM, _FAILED = 8, 0.1, 8.0
_TREES = 60
LOSSES = {"rank": "rank:pairwise", "reg": "reg:squarederror"}
FEATURES = ("itervar", "knob")


def xgboost() -> Any:
    """The package XGBoost. Raises `RelayError` (R0645) where it is missing."""
    try:
        import xgboost as found
    except ImportError:
        notes = ["pip install 'relaylang[tune]'", "--tuner ga needs no package"]
        raise RelayError(error("R0645", "the tuner xgb needs the package xgboost-cpu", notes=notes)) from None
    return found


class XGBTuner(_Base):
    """Proposes what a model of the results calls the fastest, and a few random points.

    `loss_type` is "rank" (the order of points) or "reg" (their times). `feature_type` is "itervar" (features of the
    loops and the knobs' values) or "knob" (the values alone). `transfer` are features and ratios of other tasks.
    """

    def __init__(
        self,
        space: SearchSpace,
        seed: int = 0,
        loss_type: str = "rank",
        feature_type: str = "itervar",
        transfer: Sequence[tuple[Sequence[float], float]] = (),
    ) -> None:
        super().__init__(space, seed)
        if loss_type not in LOSSES or feature_type not in FEATURES:
            known = f"losses: {', '.join(LOSSES)}; features: {', '.join(FEATURES)}"
            raise RelayError(error("R0645", f"the tuner xgb has no loss {loss_type} of features {feature_type}", notes=[known]))
        self.xgb = xgboost()
        self.objective, self.features, self.seed = LOSSES[loss_type], feature_type, seed
        width = len(space.default.features)
        self.transfer = [row for row in transfer if len(row[0]) == width and feature_type == "itervar"]
        self._model: Any = None
        #: The knobs that the model was fitted with. Points that are drawn later may open others.
        self._knobs: list[str] = []

    def update(self, results: Iterable[Result]) -> None:
        super().update(results)
        self._model = None

    def _row(self, point: Point) -> list[float]:
        knobs = [float(self._place(name, point.choice)) for name in self._knobs]
        return [*(point.features if self.features == "itervar" else ()), *knobs]

    def _place(self, name: str, choice: Mapping[str, Any]) -> float:
        """A knob's value as a number: its place among the choices. A knob that is not there is none."""
        return self.space.knobs[name].index(choice[name]) if name in choice else math.nan

    def _fit(self) -> None:
        """Fit the model to the results so far. A score is the higher, the faster."""
        self._knobs = list(self.space.knobs)
        rows, labels, groups = [], [], []
        ranked = [Result(self.space.default, 1.0), *self.results.values()]
        for result in ranked:
            rows.append(self._row(result.point))
            labels.append(-math.log2(result.ratio if result.ratio is not None else _FAILED))
        groups.append(len(rows))
        for features, ratio in self.transfer:
            rows.append([*features, *[math.nan] * len(self._knobs)])
            labels.append(-math.log2(max(ratio, 1e-3)))
        if self.transfer:
            groups.append(len(self.transfer))
        table = self.xgb.DMatrix(np.asarray(rows, np.float64), label=self._labels(labels, groups))
        if self.objective.startswith("rank"):
            table.set_group(groups)
        settings = {
            "objective": self.objective,
            "max_depth": 4,
            "eta": 0.2,
            "min_child_weight": 0,
            "subsample": 1.0,
            "seed": self.seed,
            "nthread": 1,
            "verbosity": 0,
        }
        self._model = self.xgb.train(settings, table, num_boost_round=_TREES)

    def _labels(self, labels: Sequence[float], groups: Sequence[int]) -> np.ndarray:
        """Times as the loss wants them: ranking takes grades from 0 to 31 of each task."""
        values = np.asarray(labels, np.float64)
        if not self.objective.startswith("rank"):
            return values
        out, first = np.empty(len(values)), 0
        for size in groups:
            part = values[first : first + size]
            order = np.argsort(np.argsort(part, kind="stable"), kind="stable")
            out[first : first + size] = np.floor(31 * order / max(size - 1, 1))
            first += size
        return out

    def score(self, points: Sequence[Point]) -> Sequence[float]:
        """What the model expects of points: the higher, the faster."""
        table = self.xgb.DMatrix(np.asarray([self._row(p) for p in points], np.float64))
        return [float(v) for v in self._model.predict(table)]

    def _points(self) -> Iterator[Point]:
        known = len(self.results) + len(self.transfer)
        if known >= _FIRST:
            if self._model is None:
                self._fit()
            starts = [r.point for r in self.ranked()[:16]]
            starts += [self.space.sample(self.rng) for _ in range(16)]
            for point in evolve(self.space, self.rng, starts, self.score):
                if self.rng.random() < _RANDOM:
                    other = self.space.fresh(lambda: self.space.sample(self.rng), self.seen)
                    if other is not None:
                        yield other
                yield point
        while (drawn := self.space.fresh(lambda: self.space.sample(self.rng), self.seen)) is not None:
            yield drawn


__all__ = ["FEATURES", "LOSSES", "XGBTuner"]
