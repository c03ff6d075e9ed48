"""Logs of measured schedules: a JSON object in each line, a measurement of one choice for one kernel.

A record is appended by one write, so that a log survives the end of its writer. A line that is not whole is left out,
with a note. `best` picks the choices of a log for this machine, and `schedule_of` makes the schedule of a target's
options from them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from typing import Any

from relaylang.backends.cpu.cc import Compiler, compiler_named
from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.origin import describe
from relaylang.backends.cpu.schedule_space import Choice, Schedule, read, winograd_of
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.runtime.machine import usable_cpus
from relaylang.runtime.peaks import processor
from relaylang.runtime.text import reason

#: The format of a log's lines.
VERSION = 1
#: The first field of a line.
_MARK = "relay-tune"
#: The most kernels that a note lists.
_SHOWN = 12

#: How a measurement failed: what `Record.failure` holds.
FAILURES = ("compiler", "crash", "timeout", "memory", "wrong result", "error")


@dataclass(frozen=True)
class Record:
    """A measurement of one choice for one kernel.

    `ratio` is the time beside the default schedule's, measured by turns with it, and lies between `low` and `high`.
    `seconds` is the time of a run, from the ratio. A measurement that failed has `failure`, one of `FAILURES`, and a
    `message`. `space` is a digest of the kernel's knobs.
    """

    key: str
    operators: str
    choice: Mapping[str, Any]
    cpu: str
    isa: str
    compiler: str
    threads: int
    space: str
    seconds: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    flops: int = 0
    count: int = 1
    failure: str | None = None
    message: str = ""
    tuner: str = ""
    time: float = 0.0
    relaylang: str = ""
    features: Sequence[float] = ()

    @property
    def is_faster(self) -> bool:
        """Whether the choice surely beats the default schedule. Less than 1 % may be where the code lies in memory."""
        return self.failure is None and self.high is not None and self.high < 0.99

    @property
    def is_default(self) -> bool:
        """Whether it measures the default schedule."""
        return self.tuner == "default"

    def line(self) -> str:
        """The record as a line of a log."""
        return json.dumps({_MARK: VERSION, **asdict(self)}, separators=(",", ":"))


_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("key", "operators", "cpu", "isa", "compiler", "space", "message", "tuner", "relaylang"), (str,)),
    **dict.fromkeys(("seconds", "ratio", "low", "high"), (float, int, type(None))),
    **dict.fromkeys(("threads", "pairs", "flops", "count"), (int,)),
    "time": (float, int),
    "failure": (str, type(None)),
    "choice": (dict,),
    "features": (tuple,),
}
_NAMES = [f.name for f in fields(Record)]


def record_of(row: Any) -> Record | None:
    """The record of a line's object; None where it is none."""
    if not isinstance(row, dict):
        return None
    values = {name: row[name] for name in _NAMES if name in row}
    if isinstance(values.get("features"), list):
        values["features"] = tuple(values["features"])
    try:
        record = Record(**values)
    except TypeError:
        return None
    right = all(isinstance(value, _TYPES[name]) and not isinstance(value, bool) for name, value in values.items())
    times = (record.seconds, record.ratio, record.low, record.high)
    right = right and all(isinstance(v, (str, int)) for v in record.choice.values())
    right = right and all(t is None or (math.isfinite(t) and t > 0) for t in times)
    right = right and all(isinstance(v, (int, float)) for v in record.features)
    return record if right and (record.failure is not None or None not in times) else None


class LogError(RelayError):
    """A log that cannot be read or written (R0645)."""


def _wrong(what: str, notes: Sequence[str] = ()) -> LogError:
    return LogError(error("R0645", what, notes=notes))


class Log:
    """A log that is open to be appended to. Each record is one write. A half line at the log's end is ended first."""

    def __init__(self, path: str) -> None:
        """Open or create a log. Raises `RelayError` (R0645)."""
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                self._write(b"\n")
        except OSError as e:
            raise _wrong(f"cannot write the log {path}: {reason(e)}") from None

    def append(self, record: Record) -> None:
        """Add a record. Raises `RelayError` (R0645) where it cannot be written whole, on a full disk for instance."""
        try:
            self._write(record.line().encode() + b"\n")
        except OSError as e:
            notes = ["the records before it are whole; free some space and call again to go on"]
            raise _wrong(f"cannot write the log {self.path}: {reason(e)}", notes) from None

    def _write(self, content: bytes) -> None:
        size = os.fstat(self._file).st_size
        written = os.write(self._file, content)
        if written != len(content):
            os.ftruncate(self._file, size)
            raise OSError(28, "no space left on device")

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


def load(path: str) -> tuple[list[Record], list[Diagnostic]]:
    """The records of a log, and notes about lines that are left out. Raises `RelayError` (R0645) for other files."""
    records: list[Record] = []
    wrong: list[int] = []
    versions: set[Any] = set()
    half, count = False, 0
    try:
        with open(path, "rb") as file:
            for count, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    half = not line.endswith(b"\n")
                    if line.strip():
                        wrong.append(count)
                    continue
                version = row.get(_MARK) if isinstance(row, dict) else None
                if version is not None and version != VERSION:
                    versions.add(version)
                    continue
                record = record_of(row) if version is not None else None
                if record is None:
                    wrong.append(count)
                else:
                    records.append(record)
    except OSError as e:
        raise _wrong(f"cannot read the log {path}: {reason(e)}") from None
    if not records and (versions or [n for n in wrong if n != count or not half]):
        notes = ["relay tune net.relay -o log.jsonl writes one"]
        if versions:
            notes = [f"it has the version {', '.join(map(str, sorted(versions, key=str)))}, and this relaylang reads {VERSION}"]
        raise _wrong(f"{path} is no log of relay tune", notes)
    return records, list(_notes(path, wrong, half, versions))


def _notes(path: str, wrong: Sequence[int], half: bool, versions: Iterable[Any]) -> Iterator[Diagnostic]:
    if half:
        yield _note(f"the last line of {path} is not whole, and is left out")
        wrong = wrong[:-1]
    if wrong:
        lines = ", ".join(map(str, wrong[:8])) + (", ..." if len(wrong) > 8 else "")
        yield _note(f"{path}: {len(wrong)} line{'s' * (len(wrong) > 1)} that hold no record are left out: {lines}")
    if versions:
        yield _note(f"{path}: records of the version {', '.join(map(str, versions))} are left out")


def _note(title: str, notes: Sequence[str] = ()) -> Diagnostic:
    return error("R0645", title, severity="note", notes=notes)


def frozen(choice: Choice) -> tuple[tuple[str, Any], ...]:
    """A choice as a key of a table."""
    return tuple(sorted(choice.items()))


def confirmed(records: Iterable[Record]) -> list[Record]:
    """For each choice of each kernel its most thorough measurement, of equal ones the last."""
    confirmed_records: dict[tuple[Any, ...], Record] = {}
    for record in records:
        name = (record.key, record.cpu, record.threads, frozen(record.choice))
        if name not in confirmed_records or record.pairs >= confirmed_records[name].pairs:
            confirmed_records[name] = record
    return list(confirmed_records.values())


def best(records: Iterable[Record]) -> dict[str, Record]:
    """The best record of each kernel: of the choices that are surely faster than the default the fastest, else the default."""
    out: dict[str, Record] = {}
    for record in confirmed(records):
        if record.failure is not None or record.ratio is None or not (record.is_default or record.is_faster):
            continue
        known = out.get(record.key)
        if known is None or known.ratio is None or record.ratio < known.ratio:
            out[record.key] = record
    return out


_NOTES: ContextVar[list[Diagnostic] | None] = ContextVar("tuning_notes", default=None)


@contextmanager
def tuning_notes() -> Iterator[list[Diagnostic]]:
    """Notes about the logs of compilations inside the block: kernels without a record, records that are left out."""
    notes: list[Diagnostic] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


class Tuned(Schedule):
    """The schedule with the best choices of a log, and the notes about them."""

    def __init__(
        self, choices: Mapping[str, Choice], winograd: int, path: str, records: Mapping[str, Record], notes: list[Diagnostic]
    ):
        super().__init__(choices, winograd, tuned={key: record.choice for key, record in records.items()})
        self.path = path
        self.records = records
        self.notes = notes

    def report(self, kernels: Iterable[Kernel]) -> None:
        """Add the notes about the kernels of a program to those that somebody gathers (`tuning_notes`)."""
        gathered = _NOTES.get()
        if gathered is None:
            return
        gathered += self.notes
        every = {k.key: k for k in kernels if k.space.knobs}
        without = [k for k in every.values() if k.key not in self.records]
        if without:
            title = f"{len(without)} of {len(every)} kernels with knobs have no record in {self.path}: they keep the default schedule"
            gathered.append(_note(title, _listed(without)))
        stale = [every[key] for key in sorted(self.stale) if key in every]
        if stale:
            title = f"records of {self.path} fit the knobs of {len(stale)} kernels no more: they keep the default schedule"
            gathered.append(_note(title, _listed(stale)))


def _listed(kernels: Sequence[Kernel]) -> list[str]:
    lines = [f"{k.key} {describe(k.source.function) if k.source else ''}".strip() for k in kernels[:_SHOWN]]
    return lines + [f"... and {len(kernels) - _SHOWN} more"] * (len(kernels) > _SHOWN)


@dataclass(frozen=True)
class History:
    """Records that programs are compiled with, where they are from, and notes about them."""

    records: Sequence[Record]
    source: str
    notes: Sequence[Diagnostic] = ()


def _loaded(path: str) -> History:
    records, notes = load(path)
    return History(records, path, notes)


_HISTORY: ContextVar[History | None] = ContextVar("tuning_history", default=None)


@contextmanager
def applied(history: History | None) -> Iterator[None]:
    """Programs compiled inside the block take the best of these records, unless their options name a log."""
    token = _HISTORY.set(history)
    try:
        yield
    finally:
        _HISTORY.reset(token)


def schedule_of(options: Mapping[str, Any]) -> Schedule:
    """The schedule that a target's options ask for: `-schedule`, and with less weight `-tuning` or the `applied` records.

    Raises `RelayError`.
    """
    winograd, choices = winograd_of(options), read(options.get("schedule"))
    path = options.get("tuning")
    history = _loaded(path) if path is not None else _HISTORY.get()
    if history is None:
        return Schedule(choices, winograd)
    records, source, notes = list(history.records), history.source, list(history.notes)
    if not any(options.get(key) for key in ("mtriple", "mcpu", "march", "cross-compiler")):
        own = processor()
        others = sorted({r.cpu for r in records if r.failure is None} - {own})
        if others:
            notes.append(_note(f"records of {source} that were measured on another processor are left out", others[:_SHOWN]))
        records = [r for r in records if r.cpu == own]
        compiler = compiler_named(Compiler(options), options)
        foreign = sorted({r.compiler for r in records if r.failure is None} - {compiler})
        if foreign:
            notes.append(_note(f"records of {source} were measured with another compiler than {compiler}", foreign[:_SHOWN]))
    threads = int(options.get("num-threads") or usable_cpus())
    chosen = best(r for r in records if r.threads != threads) | best(r for r in records if r.threads == threads)
    return Tuned(choices, winograd, source, chosen, notes)


def report(schedule: Schedule, kernels: Iterable[Kernel]) -> None:
    """Gather what there is to say about a log, for a program with some kernels."""
    if isinstance(schedule, Tuned):
        schedule.report(kernels)
