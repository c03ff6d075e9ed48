"""Search the fastest schedules of a program's kernels: candidates are compiled, run and compared with the default.

Each measurement is a line of the log (-o). A call with a log goes on where it ended: Ctrl-C loses nothing. Then
`relay compile --tuning LOG` takes the best schedule of each kernel. `--report LOG` shows what a log has.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterable, Sequence

from relaylang.backends.cpu.tuning_log import Log, Record, load
from relaylang.backends.registry import ignored_options, parse_target, with_options
from relaylang.cli.arguments import load_files
from relaylang.cli.common import check_ending, check_writable, report, write_text
from relaylang.cli.compile import add_program_options, bound, inputs_of
from relaylang.cli.inputs import bad_value, stated_types
from relaylang.cli.limits import duration, memory_size
from relaylang.cli.models import FILE_HELP, import_options
from relaylang.cli.program import check
from relaylang.cli.program import load as load_program
from relaylang.cli.progress import Stages, clock
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import error
from relaylang.runtime.artifact import MAX_THREADS
from relaylang.tune.farm import FarmMeasurer
from relaylang.tune.measure import LocalMeasurer
from relaylang.tune.report import rows, svg, table
from relaylang.tune.search import TUNERS, State, search
from relaylang.tune.task import Task, extract_tasks, machine_of, target_of

EPILOG = """\
examples:
  relay tune examples/convnet.relay --random-params 0 --trials 4 --tuner ga -o log.jsonl
  relay tune --report log.jsonl -o picture.svg
  relay compile examples/convnet.relay --random-params 0 --tuning log.jsonl -o net.so

longer searches:
  relay tune net.relay --params net.npz -o log.jsonl --trials 300 --tuner ga --time 30min
  relay tune net.relay --params net.npz -o log.jsonl --threads 1,2 --early-stopping 50
  relay tune net.relay --params net.npz -o log.jsonl --scheduler tcp://host:8786 --resources avx2=1

tuners:
  xgb     what a model of the results expects to be the fastest (needs pip install 'relaylang[tune]')
  ga      a genetic search: the fastest are crossed and mutated
  random  random points
  grid    every point in order
"""

#: The letters of a bar with the trials and the time.
_BAR = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help=FILE_HELP)
    parser.add_argument("-o", "--output", metavar="FILE", help="the log, which grows; of --report, a picture (.svg)")
    parser.add_argument("--report", metavar="LOG", help="print a table of a log's kernels instead of a search")
    parser.add_argument("-t", "--target", default="c", help="what to compile for: c with options (default: c)")
    parser.add_argument(
        "--trials", type=int, default=1000, metavar="N", help="measurements, those in the log included (default: 1000)"
    )
    parser.add_argument("--tuner", choices=[*TUNERS], help="how points are chosen, see below (default: xgb, or ga without XGBoost)")
    parser.add_argument("--early-stopping", type=int, metavar="N", help="leave a kernel after N trials without a gain")
    parser.add_argument("--time", metavar="TIME", help="end the search after so long: 30min, 2h")
    parser.add_argument("--threads", metavar="N[,N]", help="the threads that kernels run with: a search for each (default: 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the tuner (default: 0)")
    parser.add_argument("--ops", metavar="NAME[,NAME]", help="tune only kernels with one of these operators")
    parser.add_argument(
        "--transfer", action="append", default=[], metavar="LOG", help="a log of other programs, from which xgb learns"
    )
    limits = parser.add_argument_group("limits of a measurement")
    limits.add_argument("--build-timeout", metavar="TIME", help="for the compilation (default: 60s)")
    limits.add_argument("--run-timeout", metavar="TIME", help="for the runs (default: 20s)")
    limits.add_argument("--memory", metavar="SIZE", help="memory of the process (default: 4G)")
    farm = parser.add_argument_group("a farm of machines (needs pip install 'relaylang[farm]')")
    farm.add_argument("--scheduler", metavar="ADDRESS", help="the Dask scheduler whose workers measure: tcp://host:8786")
    farm.add_argument("--resources", metavar="NAME=N", help="take only workers with this resource, as dask worker --resources has it")
    add_program_options(parser)


def _check_options(args: argparse.Namespace) -> None:
    """Raises `UsageError` and `RelayError` for options that are wrong or do not go together."""
    if args.file is None or args.output is None:
        raise UsageError("relay tune: FILE and -o LOG are needed, or --report LOG", "relay tune --help")
    for name in ("trials", "early_stopping"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise bad_value(f"--{name.replace('_', '-')} {value} is not 1 or more")
    if args.resources is not None and args.scheduler is None:
        raise UsageError("relay tune: --resources goes with --scheduler", "relay tune --help")


def _records(paths: Iterable[str]) -> list[Record]:
    """The records of logs. Reports the notes about them."""
    records: list[Record] = []
    for path in paths:
        own, notes = load(path)
        report(notes)
        records += own
    return records


def run(args: argparse.Namespace) -> int:
    if args.report is not None:
        return _report(args)
    _check_options(args)
    seconds = duration(args.time, "--time") if args.time is not None else None
    threads, limits = _threads(args.threads), _limits(args)
    check_ending("tune", args.output, "a log is lines of JSON", (".jsonl", ".json", ".log"))
    older, others = _records(filter(os.path.exists, [args.output])), _records(args.transfer)
    load_files(args)
    targets = parse_target(args.target)
    target = target_of(targets[0])
    report(ignored_options(targets[:1]))
    with Stages() as stages:
        with stages.stage("read"):
            program = load_program(args.file, options=import_options(args))
        names, types = inputs_of(args.input)
        with stages.stage("check"):
            check(program, stated_types(program.free_vars, types))
        report(program.notes)
        mod, params = bound(program.module, args, names)
        with stages.stage("kernels"):
            ops = args.ops.split(",") if args.ops else None
            entry = args.entry.removeprefix("@")
            tasks = [t for n in threads for t in extract_tasks(mod, with_options(target, {"num-threads": n}), params, entry, ops)]
        machine = machine_of(target.options) if args.scheduler is None else None
        if not any(t.tunable for t in tasks):
            title = "no kernel of the program has knobs" + (f" and one of the operators {args.ops}" if ops else "")
            report([error("R0645", title + ": there is nothing to search", severity="note")])
            return 0
        _say_others(older, tasks, machine.cpu if machine is not None else None, args.output)
        tuner = args.tuner or _default_tuner()
        measurer = LocalMeasurer(limits) if args.scheduler is None else FarmMeasurer(args.scheduler, args.resources, limits)
        with measurer, Log(args.output) as log, stages.stage("tune", total=args.trials) as step:
            shown = _Shown(stages, step)
            outcome = search(
                tasks,
                measurer,
                log,
                args.trials,
                tuner,
                args.early_stopping,
                seconds,
                args.seed,
                known=older,
                transfer=others,
                watch=shown.watch,
                machine=machine,
            )
    for state in outcome.states:
        print(_line(state))
    print(f"{outcome.reason}; the program's kernels: {clock(outcome.default_seconds)} before, {clock(outcome.seconds)} after")
    return 0


def _default_tuner() -> str:
    try:
        import xgboost  # noqa: F401
    except ImportError:
        return "ga"
    return "xgb"


def _threads(text: str | None) -> list[int]:
    """The numbers of threads. Raises `RelayError` (R0705)."""
    words = (text or "1").split(",")
    if not all(w.isdecimal() and 1 <= int(w) <= MAX_THREADS for w in words):
        raise bad_value(f"--threads {text} is no list of numbers from 1 to {MAX_THREADS}", ["--threads 1,2"])
    return list(dict.fromkeys(map(int, words)))


def _limits(args: argparse.Namespace) -> dict[str, float]:
    out: dict[str, float] = {}
    if args.build_timeout is not None:
        out["build"] = duration(args.build_timeout, "--build-timeout")
    if args.run_timeout is not None:
        out["run"] = duration(args.run_timeout, "--run-timeout")
    if args.memory is not None:
        out["memory"] = memory_size(args.memory, "--memory")
    return out


def _say_others(records: Sequence[Record], tasks: Sequence[Task], cpu: str | None, path: str) -> None:
    """Notes about records of a log that the search does not go on from."""
    keys = {task.key for task in tasks}
    strange = sum(r.key not in keys for r in records)
    if records and strange == len(records):
        report([error("R0645", f"{path} has no record of this program's kernels: new ones are added", severity="note")])
    elsewhere = sorted({r.cpu for r in records if r.key in keys and r.cpu != cpu} if cpu is not None else ())
    if elsewhere:
        title = f"records of {path} that were measured on another processor do not count as trials"
        report([error("R0645", title, notes=elsewhere, severity="note")])


class _Shown:
    """The progress of a search on the terminal."""

    def __init__(self, stages: Stages, step: object) -> None:
        self.stages, self.step, self.done = stages, step, 0

    def watch(self, state: State, states: Sequence[State]) -> None:
        done = sum(s.trials for s in states)
        self.step(done - self.done)  # type: ignore[operator]
        self.done = done
        now = state.last.seconds if state.last is not None else state.default
        speeds = [f"{speed:.1f}" if (speed := state.gflops(time)) is not None else clock(time or 0) for time in (now, state.seconds)]
        unit = " GFLOP/s" * (state.task.flops > 0)
        total = sum(s.total for s in states)
        figures = f": {speeds[0]} now, {speeds[1]} best{unit}, program {clock(total)}"
        room = shutil.get_terminal_size().columns - len(figures) - _BAR
        self.stages.rename(state.task.operators.partition(":")[0][: min(24, max(9, room))] + figures)


def _line(state: State) -> str:
    """A task in a line."""
    failed = sum(state.failures.values())
    words = [f"{state.task.key} {state.task.operators}"]
    if state.default is not None and state.seconds is not None:
        words.append(f"{clock(state.default)} -> {clock(state.seconds)} ({1 / state.ratio:.2f} x)")
        speed = state.gflops(state.seconds)
        words += [f"{speed:.1f} GFLOP/s"] if speed is not None else []
    words.append(f"{state.trials} trials" + (f", {failed} failed" if failed else ""))
    words += [f"runs {state.task.count} times"] if state.task.count > 1 else []
    words += [f"{state.task.threads} threads"] if state.task.threads > 1 else []
    words += [state.done] if state.done else []
    return ", ".join(words)


def _report(args: argparse.Namespace) -> int:
    if args.file is not None:
        raise UsageError("relay tune: --report takes a log, and no program", "relay tune --help")
    check_ending("tune", args.output, "--report draws a picture", (".svg",))
    check_writable(args.output)
    records, notes = load(args.report)
    report(notes)
    bars = rows(records)
    print(table(bars) if bars else f"{args.report} has no records")
    if args.output is not None:
        write_text(args.output, svg(bars))
    return 0
