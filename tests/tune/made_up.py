"""Made-up spaces and measurers for tests of the search: no clock, no compiler."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.schedule_space import Space
from relaylang.tune.measure import Measurement
from relaylang.tune.space import Point, SearchSpace
from relaylang.tune.task import Machine, Task

MACHINE = Machine("a processor", "avx2", "a compiler")


def lowering(space: Space) -> None:
    """What a lowering asks: another kind has other knobs."""
    kind = space.pick("kind", ("blocks", "squares"), "blocks")
    if kind == "blocks":
        space.pick("rows", tuple(range(1, 9)), 4)
        width = space.pick("width", (1, 2, 4), 2)
        if width == 4:
            space.pick("wide", ("a", "b"), "b")
    else:
        space.pick("edge", (2, 4, 8), 8)


#: blocks: 8 rows, of width 1, 2, and 4 in two ways; and three squares.
POINTS = 8 * 4 + 3


def time_of(choice: Mapping[str, Any]) -> float:
    """The time of a point: the best is 8 rows, width 4, wide a."""
    if choice["kind"] == "squares":
        return 2.0 / choice["edge"] + 1.0
    wide = {"a": 0.5, "b": 0.9}[choice["wide"]] if "wide" in choice else 1.0
    return wide * 8 / choice["rows"] / math.sqrt(choice["width"])


BEST = {"kind": "blocks", "rows": 8, "width": 4, "wide": "a"}


def space(asks: Callable[[Space], None] = lowering) -> SearchSpace:
    def resolve(choice: Mapping[str, Any]) -> Point:
        found = Space(choice, lenient=True)
        asks(found)
        found.finish()
        values = [float(v) for v in found.choice.values() if not isinstance(v, str)]
        return Point(dict(found.choice), dict(found.knobs), (*values[:2], *[0.0] * (2 - len(values[:2]))))

    return SearchSpace(resolve)


def task(key: str, count: int = 1) -> Task:
    return Task(key, f"operator {key}", "", "avx2", flops=1000, count=count)


class Fake:
    """A measurer with times from a function of key and choice; an exception's text is a failure."""

    batch = 4

    def __init__(self, times: Callable[[str, Mapping[str, Any]], float | str]) -> None:
        self.times = times
        self.calls: list[tuple[str, int, bool]] = []

    def measure(self, task: Task, points: Sequence[Point], best: float = 1.0, thorough: bool = False) -> Iterator[Measurement]:
        self.calls.append((task.key, len(points), thorough))
        default = self.times(task.key, {"kind": "blocks", "rows": 4, "width": 2})
        assert isinstance(default, float)
        for point in points:
            found = self.times(task.key, point.choice)
            if isinstance(found, str):
                yield Measurement(point, failure="crash", message=found)
                continue
            ratio = found / default
            pairs = 30 if thorough else 10
            yield Measurement(point, ratio, ratio * 0.99, ratio * 1.01, pairs, default, machine=MACHINE)

    def close(self) -> None:
        pass
