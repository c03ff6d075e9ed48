"""The farm's table of `make bench-tune`: the time of a trial here, on one worker, and on two workers of this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from relaylang.tune import FarmMeasurer, LocalMeasurer, Measurer, Point, RandomTuner, Task, space_of

#: The trials that are timed, and those of each worker before, which start its processes.
TRIALS, FIRST = 64, 4
HEAD = """\
| farm | trials | here, ms a trial | 1 worker | 2 workers | the farm's own, ms a trial | trials a minute, 2 workers to 1 |
|---|---|---|---|---|---|---|"""


@contextmanager
def workers(count: int, limits: Mapping[str, float]) -> Iterator[Measurer]:
    """A farm of some workers, each a process of this machine."""
    from distributed import LocalCluster

    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=count, **settings) as cluster, FarmMeasurer(cluster.scheduler_address, limits=limits) as farm:
        yield farm


def milliseconds(measurer: Measurer, task: Task, points: Sequence[Point]) -> float:
    """The time of a trial."""
    before = 2 * FIRST
    list(measurer.measure(task, points[:before]))
    begin = time.perf_counter()
    failures = [m.message for m in measurer.measure(task, points[before:]) if m.failure is not None]
    assert not failures, failures
    return 1e3 * (time.perf_counter() - begin) / (len(points) - before)


def row(name: str, task: Task, limits: Mapping[str, float]) -> str:
    """A row of the table."""
    points = RandomTuner(space_of(task), seed=0).next_batch(TRIALS + 2 * FIRST)
    with LocalMeasurer(limits, builders=1) as measurer:
        here = milliseconds(measurer, task, points)
    times = []
    for count in (1, 2):
        with workers(count, limits) as farm:
            times.append(milliseconds(farm, task, points))
    one, two = times
    return f"| {name} | {TRIALS} | {here:.0f} | {one:.0f} | {two:.0f} | {one - here:.0f} | {one / two:.2f} |"
