"""Repeated measurements of a run."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import RelayError
from relaylang.runtime import benchmark
from relaylang.runtime.benchmark import BenchmarkResult, timed


class Clock:
    """A clock that only runs move, and the runs."""

    def __init__(self, seconds: list[float]) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.runs = 0

    def __call__(self) -> float:
        return self.now

    def run(self) -> None:
        self.now += self.seconds[min(self.runs, len(self.seconds) - 1)]
        self.runs += 1


def test_each_result_is_the_mean_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([99, 1, 3, 5, 5, 2, 8])
    monkeypatch.setattr(benchmark, "perf_counter", clock)
    assert timed(clock.run, repeat=3, number=2).results == (2, 5, 5)
    assert clock.runs == 7


def test_short_measurements_are_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([0.001])
    monkeypatch.setattr(benchmark, "perf_counter", clock)
    found = timed(clock.run, repeat=2, number=1, min_repeat_ms=49.5)
    assert found.results == pytest.approx((0.001, 0.001))
    assert clock.runs == 1 + 1 + 2 * 50
    still = Clock([0])
    monkeypatch.setattr(benchmark, "perf_counter", still)
    assert timed(still.run, repeat=1, number=1).results == (0,)


def test_a_result_is_its_summary() -> None:
    found = BenchmarkResult((0.001, 0.002, 0.006))
    assert (found.mean, found.median, found.max, found.min) == pytest.approx((0.003, 0.002, 0.006, 0.001))
    assert found.std == pytest.approx(0.00216024689)
    assert [line.split() for line in str(found).splitlines()[2:]] == [["3.0000", "2.0000", "6.0000", "1.0000", "2.1602"]]


@pytest.mark.parametrize("wrong", [{"repeat": 0}, {"number": 0}, {"min_repeat_ms": -1}])
def test_numbers_that_measure_nothing(wrong: dict[str, int]) -> None:
    with pytest.raises(RelayError, match="of a benchmark must be"):
        timed(lambda: None, **wrong)  # type: ignore[arg-type]
