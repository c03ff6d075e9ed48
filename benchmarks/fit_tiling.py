"""Fit the constants of the cost model that chooses blocks of contractions (`tiling.Costs`) to logs of several machines.

    python benchmarks/fit_tiling.py --measure benchmarks/logs/zen4-avx512.jsonl
    python benchmarks/fit_tiling.py --measure benchmarks/logs/zen4-avx2.jsonl --march x86-64-v3
    python benchmarks/fit_tiling.py benchmarks/logs/*.jsonl

`--measure` writes a log: the times of blocks (vectors by rows) of some kernels beside the default's. They are all blocks that the
model chooses with values that the fit tries. The fit changes one or two constants at a time, as long as the blocks that the
model then chooses are faster in the logs. It prints what the model loses
to the best block of each kernel, with today's constants and with the fitted ones. The constants in the sources stay as
they are: change them by hand where networks gain, too (`make bench-cpu`).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.tune import conv, dense, narrowed, task_for
from relaylang.backends.cpu.lower import contraction
from relaylang.backends.cpu.tiling import COSTS, Costs, choose
from relaylang.backends.cpu.tuning_log import Log, Record, confirmed, load
from relaylang.kernels.sizes import usual
from relaylang.tune import LocalMeasurer, Point, SearchSpace, Task, search
from relaylang.tune.task import machine_of
from relaylang.tune.tuners import GridTuner

LIMITS = {"pairs": 30, "least": 30, "seconds": 3.0, "milliseconds": 1.0}
#: Programs with a contraction each, and the operator of its kernel.
PROGRAMS = [
    *[(conv(*shape), "nn.conv2d") for shape in ((64, 56, 256, 1), (256, 14, 1024, 1), (512, 7, 2048, 1), (96, 28, 24, 1))],
    (conv(128, 56, 128, 3, 2), "nn.conv2d"),
    (conv(256, 14, 1024, 1, dtype="int8"), "qnn.conv2d"),
    *[(dense(*shape), "nn.dense") for shape in ((16, 1024, 1024), (128, 768, 768))],
]
#: The values that a fit tries.
VALUES: Mapping[str, Sequence[float]] = {
    "loads": (1, 1.5, 2, 3),
    "latency": (4, 5, 6, 8),
    "second": (12, 16, 24, 32, 48, 64),
    "block": (5, 10, 20, 30, 45, 60, 90),
    "store": (0.5, 1, 2, 4, 8),
    "load": (0, 0.05, 0.1, 0.2, 0.4),
}

Block = tuple[int, int]


@dataclass(frozen=True)
class Case:
    """A kernel on a machine: the arguments of `choose`, and the time of each block beside the default's."""

    name: str
    arguments: tuple[Any, ...]
    times: Mapping[Block, float]

    def loss(self, costs: Costs) -> float:
        """The time of the model's block beside the best one's; the worst one's for a block without a time."""
        tiling = choose(*self.arguments, costs=costs)
        return self.times.get((tiling.vectors, tiling.rows), max(self.times.values())) / min(self.times.values())


def tasks_of(march: str | None) -> list[Task]:
    return [task_for(*program, "c -num-threads=1" + (f" -march={march}" if march else "")) for program in PROGRAMS]


def arguments_of(task: Task) -> tuple[tuple[Any, ...], Block]:
    """The arguments of `choose` for a kernel, and the block that it has by default."""
    with mock.patch.object(contraction, "picked", wraps=contraction.picked) as seen:
        default = task.lower().space.choice
    return tuple(usual(a) if isinstance(a, int) else a for a in seen.call_args.args[1:]), (default["vectors"], default["rows"])


def trials() -> Iterable[Costs]:
    """The constants that a fit tries first: today's, with one or two other values."""
    for one, other in combinations_with_replacement(VALUES, 2):
        for x, y in product(VALUES[one], VALUES[other]):
            yield replace(COSTS, **{other: y, one: x})


class Blocks(SearchSpace):
    """The blocks that the model chooses with some constants."""

    def __init__(self, task: Task) -> None:
        super().__init__(narrowed(task, ("vectors", "rows")).point)
        arguments, _ = arguments_of(task)
        self.blocks = {(t.vectors, t.rows): t for t in (choose(*arguments, costs=costs) for costs in trials())}

    def enumerate(self) -> Iterator[Point]:
        return (self.point({"vectors": vectors, "rows": rows}) for vectors, rows in self.blocks)


def measured(path: Path, march: str | None) -> None:
    """Measure blocks of the programs' kernels, and go on from the log that is there."""
    tasks = tasks_of(march)
    known = load(str(path))[0] if path.exists() else []
    path.parent.mkdir(exist_ok=True)
    with LocalMeasurer(LIMITS) as measurer, Log(str(path)) as log:
        machine = machine_of(tasks[0].options)
        search(
            tasks,
            measurer,
            _Lean(log),
            10**6,
            GridTuner,
            known=known,
            machine=machine,
            spaces=Blocks,
        )


class _Lean:
    """A log whose records have no features, which the fit does not read."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def append(self, record: Record) -> None:
        self.log.append(replace(record, features=()))


def cases_of(path: Path) -> Iterable[Case]:
    """The kernels of a log that are those of the programs."""
    records, notes = load(str(path))
    for note in notes:
        print(note.title, file=sys.stderr)
    march = {"avx2": "x86-64-v3", "generic": "x86-64"}
    for isa, cpu in dict.fromkeys((r.isa, r.cpu) for r in records):
        for task in tasks_of(march.get(isa)):
            own = confirmed(r for r in records if (r.key, r.isa, r.cpu) == (task.key, isa, cpu) and r.ratio is not None)
            if not own:
                continue
            times = {(r.choice["vectors"], r.choice["rows"]): float(r.ratio or 0.0) for r in own if "rows" in r.choice}
            arguments, default = arguments_of(task)
            yield Case(f"{path.stem} {task.operators}", arguments, {**times, default: 1.0})


def mean_loss(cases: Sequence[Case], costs: Costs) -> float:
    """The geometric mean of the cases' losses."""
    return math.exp(sum(math.log(case.loss(costs)) for case in cases) / len(cases))


def fitted(cases: Sequence[Case]) -> Costs:
    """The constants with the least mean loss, found by changes of one or two at a time."""
    best, least = COSTS, mean_loss(cases, COSTS)
    gains = True
    while gains:
        gains = False
        for one in VALUES:
            for other in VALUES:
                for x in VALUES[one]:
                    for y in VALUES[other] if other != one else (x,):
                        costs = replace(best, **{one: x, other: y})
                        loss = mean_loss(cases, costs)
                        if loss < least - 1e-6:
                            best, least, gains = costs, loss, True
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", type=Path, help="logs to fit to")
    parser.add_argument("--measure", type=Path, metavar="LOG", help="measure the blocks of this machine")
    parser.add_argument("--march", help="of --measure: the processor, as the compiler names it")
    args = parser.parse_args()
    if args.measure:
        measured(args.measure, args.march)
    cases = [case for path in args.logs for case in cases_of(path)]
    if not cases:
        return 0
    best = fitted(cases)
    print("| kernel | blocks | loss | fitted |\n|---|---|---|---|")
    for case in cases:
        print(f"| {case.name} | {len(case.times)} | {case.loss(COSTS):.3f} | {case.loss(best):.3f} |")
    print(f"| all | | {mean_loss(cases, COSTS):.3f} | {mean_loss(cases, best):.3f} |")
    print(f"today: {asdict(COSTS)}\nfitted: {asdict(best)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
