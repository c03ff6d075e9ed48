"""What a search of schedules gains: `make bench-tune`.

The first table has kernels of networks, each with a search of its own on one thread. After it the winner is measured once
more beside the default schedule, by turns. The second table has spaces that are small enough to measure every point. There
the tuner xgb gets the times of these measurements, and the table says after how many trials it is near the best one.
The third table (`NAMES=farm`) has the time of a trial on farms of one and of two workers.

`--networks mobilenet,encoder --minutes 60` searches the kernels of networks of `make bench-cpu` instead, and times each network
before and after, beside onnxruntime and OpenVINO.

`--write` writes the tables to benchmarks/results/tune.md. `--logs FOLDER` keeps the logs, and goes on from those there.
Needs xgboost and distributed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import tune_farm
from benchmarks.cpu_networks import NETWORKS
from benchmarks.cpu_peers import PEERS, in_onnxruntime, in_openvino, ours, times
from benchmarks.machine import model as machine
from relaylang.backends import compile_module
from relaylang.backends.cpu.tuning_log import Log, Record, best, confirmed, frozen, load
from relaylang.syntax import parse
from relaylang.tune import LocalMeasurer, Point, Result, SearchSpace, State, Task, extract_tasks, search, space_of, tuner_named
from relaylang.tune.space import Frozen
from relaylang.tune.task import machine_of

RESULTS = Path(__file__).parent / "results" / "tune.md"
#: A measurement's limits: turns, and seconds of them.
LIMITS = {"pairs": 8, "least": 3, "seconds": 0.5, "milliseconds": 0.5}
#: How near to the best point xgb must come, the points that it measures at a time, and the seeds.
NEAR, BATCH, SEEDS = 1.05, 4, range(5)


def conv(channels: int, extent: int, results: int, taps: int, stride: int = 1, groups: int = 1, dtype: str = "float32") -> str:
    """A convolution of an image with channels first, as importers make it."""
    data = f"%x: Tensor[(1, {channels}, {extent}, {extent}), {dtype}]"
    weight = f"%w: Tensor[({results}, {channels // groups}, {taps}, {taps}), {dtype}]"
    pad = ", ".join([str(taps // 2)] * 4)
    rest = f"strides=[{stride}, {stride}], padding=[{pad}], groups={groups}, channels={results}, kernel_size=[{taps}, {taps}]"
    if dtype == "float32":
        return f"def @main({data}, {weight}) {{ nn.conv2d(%x, %w, {rest}) }}"
    return f'def @main({data}, {weight}) {{ qnn.conv2d(%x, %w, 3, 0, 0.1f, 0.1f, {rest}, out_dtype="int32") }}'


def dense(rows: int, columns: int, depth: int) -> str:
    types = f"%x: Tensor[({rows}, {depth}), float32], %w: Tensor[({columns}, {depth}), float32]"
    return f"def @main({types}) {{ nn.dense(%x, %w, units={columns}) }}"


def _of_one(types: str, body: str) -> str:
    return f"def @main(%x: Tensor[{types}, float32]) {{ {body} }}"


#: Kernels by name: the program, and the operator of the kernel that is tuned.
KERNELS = {
    "1x1 convolution, 256 to 1024, 14x14": (conv(256, 14, 1024, 1), "nn.conv2d"),
    "3x3 convolution, 128 to 128, 28x28": (conv(128, 28, 128, 3), "nn.conv2d"),
    "7x7 convolution, 3 to 64, 224x224": (conv(3, 224, 64, 7, 2), "nn.conv2d"),
    "depthwise 3x3, 144, 56x56": (conv(144, 56, 144, 3, 1, 144), "nn.conv2d"),
    "dense 1024x1024x1024": (dense(1024, 1024, 1024), "nn.dense"),
    "dense of 16 rows, 1024x1024": (dense(16, 1024, 1024), "nn.dense"),
    "dense of 1 row, 1024x1024": (dense(1, 1024, 1024), "nn.dense"),
    "softmax, 384x384": (_of_one("(384, 384)", "nn.softmax(%x)"), "nn.softmax"),
    "int8 3x3 convolution, 128 to 128, 28x28": (conv(128, 28, 128, 3, dtype="int8"), "qnn.conv2d"),
}
#: Kernels, the operators, and some of their knobs, which have few points.
SMALL = {
    "1x1 convolution, 512 to 512, 14x14": (conv(512, 14, 512, 1), "nn.conv2d", ("vectors", "rows", "order")),
    "dense of 128 rows, 768x768": (dense(128, 768, 768), "nn.dense", ("vectors", "rows", "order")),
    "depthwise 3x3, 576, 14x14": (conv(576, 14, 576, 3, 1, 576), "nn.conv2d", ("tile", "channels")),
}
#: The kernel of the farm's trials.
FARM = {"farm, dense of 16 rows, 256x256": (dense(16, 256, 256), "nn.dense")}


def task_for(text: str, operator: str, target: str) -> Task:
    """The kernel of a program that has an operator."""
    mod = parse(text).module
    assert mod is not None
    (task,) = extract_tasks(mod, target, ["w"], ops=[operator])
    return task


def narrowed(task: Task, names: Sequence[str]) -> SearchSpace:
    """The space of some of a task's knobs; the others have their defaults."""
    every = space_of(task)

    def resolve(choice: Mapping[str, Any]) -> Point:
        point = every.point({name: value for name, value in choice.items() if name in names})
        knobs = {name: values for name, values in point.knobs.items() if name in names}
        return replace(point, choice={name: point.choice[name] for name in knobs}, knobs=knobs)

    return SearchSpace(resolve)


def _state(task: Task, tuner: str, trials: int, path: Path, spaces: Callable[[Task], SearchSpace] = space_of) -> State:
    """The end of a search, whose measurements are in a log."""
    known: list[Record] = load(str(path))[0] if path.exists() else []
    with LocalMeasurer(LIMITS) as measurer, Log(str(path)) as log:
        found = search([task], measurer, log, trials, tuner, known=known, machine=machine_of(task.options), spaces=spaces)
    return found.states[0]


def _count(space: SearchSpace, most: int = 5000) -> str:
    size = space.size(most)
    return f"{size}" if size < most else f"over {most - 1}"


def gains(name: str, target: str, tuner: str, trials: int, path: Path) -> str:
    """A row of the first table."""
    task = task_for(*KERNELS[name], target)
    if not task.tunable:
        return f"| {name} | no knobs | | | | | | |"
    state = _state(task, tuner, trials, path)
    winner = best(state.results).get(task.key)
    ratio, low, high = 1.0, 1.0, 1.0
    changed = "the default"
    if winner is not None and state.space is not None:
        point = state.space.point(winner.choice)
        with LocalMeasurer({**LIMITS, "pairs": 16, "seconds": 1.5}, builders=1) as measurer:
            (again,) = measurer.measure(task, [point], thorough=True)
        assert again.ratio is not None and again.low is not None and again.high is not None, again
        ratio, low, high = again.ratio, again.low, again.high
        default = state.space.default.choice
        changed = ", ".join(f"{k} {v}" for k, v in winner.choice.items() if default.get(k) != v)
    assert state.default is not None
    speed = state.gflops(state.default)
    cells = [
        name,
        _count(space_of(task)),
        f"{state.trials}" + (f", {sum(state.failures.values())} failed" if state.failures else ""),
        f"{1e3 * state.default:.3f}",
        f"{speed:.0f}" if speed is not None else "",
        f"{1 / ratio:.3f}",
        f"{1 / high:.3f} to {1 / low:.3f}",
        changed,
    ]
    return f"| {' | '.join(cells)} |"


def trials_needed(space: SearchSpace, times: dict[Frozen, float | None], seed: int) -> int:
    """The trials of xgb until it is near the best of some times."""
    tuner = tuner_named("xgb", space, seed)
    aim = NEAR * min(t for t in times.values() if t is not None)
    count = 0
    while points := tuner.next_batch(BATCH):
        for point in points:
            count += 1
            time_of = times.get(point.key)
            if time_of is not None and time_of <= aim:
                return count
        tuner.update([Result(p, times.get(p.key)) for p in points])
    return count


def enumerated(name: str, target: str, path: Path) -> str:
    """A row of the second table."""
    text, operator, names = SMALL[name]
    task = task_for(text, operator, target)
    state = _state(task, "grid", 100_000, path, lambda task: narrowed(task, names))
    times: dict[Frozen, float | None] = {frozen(r.choice): r.ratio for r in confirmed(state.results)}
    times[narrowed(task, names).default.key] = 1.0
    needed = [trials_needed(narrowed(task, names), times, seed) for seed in SEEDS]
    fastest = min(t for t in times.values() if t is not None)
    middle, most = statistics.median(needed), max(needed)
    share = f"{100 * middle / len(times):.1f} | {100 * most / len(times):.1f}"
    near = sum(t is not None and t <= NEAR * fastest for t in times.values())
    return f"| {name}: {', '.join(names)} | {len(times)} | {near} | {1 / fastest:.3f} | {middle:g} | {most} | {share} |"


def tuned(name: str, target: str, minutes: float, path: Path) -> str:
    """A row of the third table: a network before and after a search, beside its peers. All run by turns in one process."""
    case = NETWORKS[name]()
    tasks = [task for task in extract_tasks(case.module, target, case.params) if task.tunable]
    known: list[Record] = load(str(path))[0] if path.exists() else []
    with LocalMeasurer(LIMITS) as measurer, Log(str(path)) as log:
        found = search(tasks, measurer, log, 1_000_000, "xgb", seconds=60 * minutes, known=known, machine=machine_of(tasks[0].options))
    runs = {
        "before": ours(compile_module(case.module, target, case.params), case.inputs, 1),
        "after": ours(compile_module(case.module, target, case.params, tuning=str(path)), case.inputs, 1),
        **({"onnxruntime": in_onnxruntime(case, 1)} if PEERS["onnxruntime"] else {}),
        **({"openvino": in_openvino(case, 1)} if PEERS["openvino"] else {}),
    }
    least = {who: min(every) for who, every in times(runs, 15, time.perf_counter).items()}
    peer = min(least[who] for who in PEERS if who in least)
    trials = sum(state.trials for state in found.states)
    figures = [f"{least[who]:.2f}" if who in least else "-" for who in ("before", "after", *PEERS)]
    ratios = [f"{least[who] / peer:.2f}" for who in ("before", "after")]
    return f"| {' | '.join([name, f'{len(tasks)}', f'{trials}', *figures, *ratios])} |"


FIRST = """\
| kernel | points | trials | default ms | GFLOP/s | gain | gain's interval | the winner's knobs |
|---|---|---|---|---|---|---|---|"""
SECOND = """\
| kernel | points | within 5 % of the best | gain | trials, median | most | % of points, median | most |
|---|---|---|---|---|---|---|---|"""

NETWORKS_HEAD = "## Networks"
THIRD = """\
| network | kernels | trials | default ms | tuned ms | onnxruntime | OpenVINO | default / peer | tuned / peer |
|---|---|---|---|---|---|---|---|---|"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="words of the kernels' names, by default all kernels")
    parser.add_argument("--trials", type=int, default=300, help="measurements of a kernel (default: 300)")
    parser.add_argument("--tuner", default="xgb", help="of the first table (default: xgb)")
    parser.add_argument("--march", help="the processor, as the compiler names it")
    parser.add_argument("--networks", default="", help="networks with commas between, instead of kernels")
    parser.add_argument("--minutes", type=float, default=60, help="the time of a network's search (default: 60)")
    parser.add_argument("--logs", type=Path, help="the folder of logs, one for each kernel")
    parser.add_argument("--write", action="store_true", help="write the tables to benchmarks/results/tune.md")
    args = parser.parse_args()
    target = "c -num-threads=1" + (f" -march={args.march}" if args.march else "")
    begin, load_before = time.perf_counter(), os.getloadavg()[0]
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    def chosen(table: Iterable[str]) -> Sequence[str]:
        return [name for name in table if not args.names or any(word in name for word in args.names)]

    with tempfile.TemporaryDirectory() as temporary:
        folder = args.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)

        def path(name: str) -> Path:
            words = "".join(c if c.isalnum() else "-" for c in name)
            return folder / f"{words}{'-' + args.march if args.march else ''}.jsonl"

        def rows(head: str, table: Iterable[str], row: Callable[[str], str]) -> None:
            names = chosen(table)
            for line in chain(head.splitlines(), map(row, names), [""]) if names else ():
                say(line)

        if args.networks:
            for line in chain(THIRD.splitlines(), (tuned(n, target, args.minutes, path(n)) for n in args.networks.split(","))):
                say(line)
            if args.write:
                kernels = RESULTS.read_text(encoding="utf-8").partition(NETWORKS_HEAD)[0].rstrip()
                about = f"{machine()}. {args.minutes:g} min of search for a network. Least times of a whole call, one thread."
                RESULTS.write_text("\n".join([kernels, "", NETWORKS_HEAD, "", about, "", *lines, ""]), encoding="utf-8")
            return 0
        rows(FIRST, KERNELS, lambda name: gains(name, target, args.tuner, args.trials, path(name)))
        rows(SECOND, SMALL, lambda name: enumerated(name, target, path(name)))
        rows(tune_farm.HEAD, FARM, lambda name: tune_farm.row(name, task_for(*FARM[name], target), LIMITS))
    seconds = time.perf_counter() - begin
    about = machine_of(dict([("march", args.march)] if args.march else []))
    load = os.getloadavg()[0]
    if args.write:
        more = " and earlier calls" if args.logs else ""
        text = f"""# Tuning

{machine()}, {about.isa}, {about.compiler}.
{args.trials} trials a kernel by {args.tuner}, {seconds / 60:.0f} min{more}. One thread measures on {os.cpu_count()} processors.
The load was {load_before:.1f} at the beginning, and {load:.1f} at the end.
Other processes disturb both schedules of a measurement. An interval has the ratio in about 95 of 100 cases.

A gain is the default schedule's time beside the winner's. It is measured anew after the search. Where nothing is surely faster,
the default schedule stays, and the gain is 1. A gain below 1 is a winner that the second measurement does not confirm.
The second table has the times of all points of a space. xgb searches these times with {len(SEEDS)} seeds until a point is within
{100 * NEAR - 100:.0f} % of the best.

""" + "\n".join(lines)
        networks = "".join(RESULTS.read_text(encoding="utf-8").partition(NETWORKS_HEAD)[1:]) if RESULTS.exists() else ""
        RESULTS.write_text(text.rstrip() + "\n" + (f"\n{networks}" if networks else ""), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
