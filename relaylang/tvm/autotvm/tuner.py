"""Tuners with TVM's names: `tvm.autotvm.tuner`. They search as `relaylang.tune` does.

    tuner = XGBTuner(task, loss_type="rank")
    tuner.tune(n_trial=100, measure_option=measure_option("local", "local"), callbacks=[log_to_file("log.jsonl")])

A tuner of one's own has `has_next`, `next_batch` and `update`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.tuning_log import Record, frozen
from relaylang.tune.search import search, tuner_named
from relaylang.tune.space import Frozen, Point
from relaylang.tune.tuners import Result
from relaylang.tvm.autotvm.callback import Callback, format_si_prefix
from relaylang.tvm.autotvm.measure import MeasureInput, MeasureResult, mean_cost
from relaylang.tvm.autotvm.record import records_of
from relaylang.tvm.autotvm.space import ConfigEntity
from relaylang.tvm.autotvm.task import Task, pair_of
from relaylang.tvm.tuning import refused

#: How often a tuner of a script may propose points that were measured before.
_ATTEMPTS = 64


class Tuner:
    """What all tuners share: the search of one task, and its best point."""

    def __init__(self, task: Task, **kwargs: Any) -> None:
        self.param = kwargs
        self.task = task
        self.space = task.config_space
        self.error_ct_threshold = 150
        self.ttl: int | None = None
        self.n_trial: int | None = None
        self.early_stopping: int | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the best point."""
        self.best_config: ConfigEntity | None = None
        self.best_flops = 0.0
        self.best_cost = float("inf")
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.best_iter = 0

    def has_next(self) -> bool:
        """Whether there are points left. A tuner has its own."""
        return True

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """Up to so many points to measure. A tuner has its own."""
        raise refused(f"{type(self).__name__} proposes no points", "a tuner has a method next_batch")

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Take the results of measurements. A tuner that learns has its own."""

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Take measurements of earlier searches, to learn from. A tuner that learns has its own."""

    def set_error_threshold(self, threshold: int) -> None:
        """Has no effect: failed measurements are records of the log, and change nothing else."""
        self.error_ct_threshold = threshold

    def tune(
        self,
        n_trial: int,
        measure_option: Mapping[str, Any],
        early_stopping: int | None = None,
        callbacks: Iterable[Callback] = (),
        si_prefix: str = "G",
    ) -> None:
        """Measure up to `n_trial` points, fewer where `early_stopping` trials bring no gain.

        `callbacks` are called after each trial, with the tuner, inputs and results. Raises `RelayError`.
        """
        format_si_prefix(0, si_prefix)
        self.n_trial, self.early_stopping = n_trial, early_stopping
        watchers = list(callbacks)
        sink = _Callbacks(self, watchers)
        measurer = measure_option["runner"].measurer(measure_option["builder"])
        try:
            outcome = search(
                [self.task.tunable()],
                measurer,
                sink,
                n_trial,
                lambda space: _Asked(self, sink),
                early_stopping,
                spaces=lambda kernel: self.space.points,
            )
        finally:
            measurer.close()
            for watcher in watchers:
                close = getattr(watcher, "close", None)
                if callable(close):
                    close()
        if outcome.states[0].default is None:
            warnings.warn(f"{self.task.name}: {outcome.states[0].done}", stacklevel=2)


class _Callbacks:
    """The sink of a search that calls a script's callbacks, and keeps the trials for the tuner."""

    def __init__(self, tuner: Tuner, callbacks: Sequence[Callback]) -> None:
        self.tuner, self.callbacks = tuner, callbacks
        self.seen: set[Frozen] = set()
        self.pairs: list[tuple[MeasureInput, MeasureResult]] = []
        self.begin = time.monotonic()

    def append(self, record: Record) -> None:
        now = time.monotonic()
        inp, result = pair_of(record, self.tuner.task, now - self.begin)
        self.begin = now
        key = frozen(record.choice)
        trial = not record.is_default and key not in self.seen
        if trial:
            self.seen.add(key)
            self.pairs.append((inp, result))
            self._count(inp, result)
        for callback in self.callbacks:
            if trial or getattr(callback, "every_record", False):
                callback(self.tuner, [inp], [result])

    def _count(self, inp: MeasureInput, result: MeasureResult) -> None:
        """Keep the best trial with the tuner."""
        tuner, cost = self.tuner, mean_cost(result)
        if cost < tuner.best_cost:
            tuner.best_cost, tuner.best_flops = cost, inp.task.flop / cost
            tuner.best_config, tuner.best_measure_pair = inp.config, (inp, result)
            tuner.best_iter = len(self.seen) - 1
        patience = tuner.early_stopping or tuner.n_trial or 0
        tuner.ttl = min(patience + tuner.best_iter, tuner.n_trial or 0) - len(self.seen)

    def taken(self) -> list[tuple[MeasureInput, MeasureResult]]:
        """The trials since the last call."""
        pairs, self.pairs = self.pairs, []
        return pairs


class _Asked:
    """A tuner of `relaylang.tune` that asks one with TVM's methods."""

    def __init__(self, tuner: Tuner, sink: _Callbacks) -> None:
        self.tuner, self.sink = tuner, sink
        self.proposed: set[Frozen] = {tuner.space.points.default.key}

    def next_batch(self, count: int) -> list[Point]:
        for _ in range(_ATTEMPTS):
            configs = self.tuner.next_batch(count) if self.tuner.has_next() else []
            points = {p.key: p for p in (self.tuner.space.points.point(c.choice) for c in configs or ())}
            fresh = [point for key, point in points.items() if key not in self.proposed][:count]
            self.proposed.update(point.key for point in fresh)
            if fresh or not configs:
                return fresh
        return []

    def update(self, results: Iterable[Result]) -> None:
        pairs = self.sink.taken()
        if pairs:
            self.tuner.update([inp for inp, _ in pairs], [result for _, result in pairs])


class _Known(Tuner):
    """A tuner of `relaylang.tune` under its name in TVM."""

    #: Its name in `relaylang.tune`.
    name = ""

    def __init__(self, task: Task, **options: Any) -> None:
        super().__init__(task, **options)
        self.options: dict[str, Any] = options
        self.transfer: list[tuple[Sequence[float], float]] = []
        self._inner: Any = None

    @property
    def inner(self) -> Any:
        """The tuner that chooses. Raises `RelayError` (R0645), for instance where XGBoost is missing."""
        if self._inner is None:
            more = {**self.options, **({"transfer": self.transfer} if self.transfer else {})}
            self._inner = tuner_named(self.name, self.space.points, **more)
        return self._inner

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        return [self.space.entity(point) for point in self.inner.next_batch(batch_size)]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        ratios = [result.record.ratio if result.record is not None and not result.error_no else None for result in results]
        points = [self.space.points.point(inp.config.choice) for inp in inputs]
        self.inner.update([Result(point, ratio) for point, ratio in zip(points, ratios)])


class GridSearchTuner(_Known):
    """Every point in order. A `range_idx` of numbers is refused (R0645)."""

    name = "grid"

    def __init__(self, task: Task, range_idx: tuple[int, int] | None = None) -> None:
        _without_range(range_idx)
        super().__init__(task)


class RandomTuner(_Known):
    """Random points, each once. A `range_idx` of numbers is refused (R0645)."""

    name = "random"

    def __init__(self, task: Task, range_idx: tuple[int, int] | None = None) -> None:
        _without_range(range_idx)
        super().__init__(task)


def _without_range(range_idx: tuple[int, int] | None) -> None:
    if range_idx is not None:
        raise refused("a tuner searches the whole space, and no range of numbers", "leave range_idx out")


class GATuner(_Known):
    """A genetic search: the fastest `elite_num` points have children, of which each knob changes with `mutation_prob`."""

    name = "ga"

    def __init__(self, task: Task, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1) -> None:
        super().__init__(task, pop_size=pop_size, elite_num=elite_num, mutation_prob=mutation_prob)


class XGBTuner(_Known):
    """A model of the results (XGBoost) proposes the points that it expects to be fast.

    The loss "reg" models times, "rank" and "rank-binary" their order. The features "itervar" and "curve" are those of the
    loops with the knobs' values, "knob" the values alone. The other arguments have no effect.
    """

    name = "xgb"
    _LOSSES = {"reg": "reg", "rank": "rank", "rank-binary": "rank"}
    _FEATURES = {"itervar": "itervar", "curve": "itervar", "knob": "knob"}

    def __init__(
        self,
        task: Task,
        plan_size: int = 64,
        feature_type: str = "itervar",
        loss_type: str = "reg",
        num_threads: int | None = None,
        optimizer: Any = "sa",
        diversity_filter_ratio: float | None = None,
        log_interval: int = 50,
    ) -> None:
        for what, value, known in (("loss", loss_type, self._LOSSES), ("feature", feature_type, self._FEATURES)):
            if value not in known:
                raise refused(f"XGBTuner has no {what} {value}", ", ".join(known))
        super().__init__(task, loss_type=self._LOSSES[loss_type], feature_type=self._FEATURES[feature_type])

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Learn from earlier measurements, of this task and of others, where there are `min_seed_records` or more."""
        records = [r for r in records_of(data_set) if r.ratio is not None and r.failure is None and r.features]
        if len(records) < min_seed_records:
            text = f"{len(records)} records are fewer than min_seed_records={min_seed_records}: nothing is learned from them"
            warnings.warn(text, stacklevel=2)
            return
        self.transfer += [(record.features, record.ratio) for record in records if record.ratio is not None]
        self._inner = None


__all__ = ["GATuner", "GridSearchTuner", "RandomTuner", "Tuner", "XGBTuner"]
