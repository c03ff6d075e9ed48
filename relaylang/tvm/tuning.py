"""What the faces of TVM's tuners share: the kernels of a program, logs, limits of a measurement, programs built with a log."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from relaylang.backends.cpu.tuning_log import History, LogError, Record, applied, load, tuning_notes
from relaylang.backends.registry import with_options
from relaylang.diagnostics import RelayError, error
from relaylang.ops import OPS
from relaylang.runtime.machine import usable_cpus
from relaylang.tune.task import Task, extract_tasks, target_of
from relaylang.tvm.arrays import arrays_by_name
from relaylang.tvm.target.chosen import targets_of

#: The keys of a line in logs of TVM's tuners.
_TVMS = ({"input", "config"}, {"i", "r"})


def refused(what: str, *notes: str) -> RelayError:
    """The error for a wrong call of a tuner (R0645)."""
    return RelayError(error("R0645", what, notes=notes))


def kernels_of(mod: Any, params: Mapping[str, Any] | None, target: Any, ops: Iterable[Any] | None = None) -> list[Task]:
    """The kernels with knobs of a module or a function, those with the most work first.

    They are measured with as many threads as the built program has: `-num-threads`, else TVM_NUM_THREADS, else all
    processors. `ops` are operators, their names or their functions. Raises `RelayError`.
    """
    targets = targets_of(target)
    chosen = next((t for t in targets if t.name == "c"), targets[0])
    if target_of(chosen).options.get("num-threads") is None:
        threads = os.environ.get("TVM_NUM_THREADS", "")
        chosen = with_options(chosen, {"num-threads": int(threads) if threads.isdecimal() and int(threads) else usable_cpus()})
    names = None if ops is None else [_name(op) for op in ops]
    return [t for t in extract_tasks(mod, chosen, arrays_by_name(params or {}), ops=names) if t.tunable]


def _name(op: Any) -> str:
    """The name of an operator, of which there is the name, the operator or the function that makes calls of it."""
    if isinstance(op, str):
        return op
    name = getattr(op, "name", None)
    if isinstance(name, str):
        return name
    last = str(getattr(op, "__name__", op))
    module = str(getattr(op, "__module__", "")).rpartition(".")[2]
    return f"{module}.{last}" if f"{module}.{last}" in OPS else last


def tensors_of(task: Task) -> tuple[tuple[str, tuple[int, ...], str], ...]:
    """The parameters of a kernel, each as ("TENSOR", shape, dtype)."""
    types: list[Any] = [p.checked_type for p in task.function.params]
    return tuple(("TENSOR", tuple(int(extent) for extent in ty.shape), ty.dtype) for ty in types)


def loaded(path: Any) -> list[Record]:
    """The records of a log. A log of TVM's tuners has none, with a warning, and so have lines that are left out.

    Raises `RelayError` (R0645) for other files.
    """
    path = os.fspath(path)
    try:
        records, notes = load(path)
    except LogError:
        if not _is_tvms(path):
            raise
        warnings.warn(f"relaylang does not read logs of TVM's tuners, such as {path}: the default schedules are used", stacklevel=3)
        return []
    for note in notes:
        warnings.warn(note.title, stacklevel=3)
    return records


def _is_tvms(path: str) -> bool:
    """Whether a file begins as a log of TVM's tuners does."""
    try:
        with open(path, "rb") as file:
            first = json.loads(file.readline(1 << 20))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, list) or (isinstance(first, dict) and any(keys <= set(first) for keys in _TVMS))


class Applied:
    """A `with` block whose programs are built with the best records. At its end, warnings name kernels without one."""

    def __init__(self, records: Sequence[Record] | None = None, source: str = "the given records") -> None:
        self.records = None if records is None else list(records)
        self.source = source
        self._stack = ExitStack()
        self._notes: list[Any] = []

    def __enter__(self) -> Any:
        history = History(self.records, self.source) if self.records else None
        self._notes = self._stack.enter_context(tuning_notes())
        self._stack.enter_context(applied(history))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for title in dict.fromkeys(note.title for note in self._notes):
            warnings.warn(title, stacklevel=2)


def sources_of(records: Any) -> Iterator[Any]:
    """The logs and records among what a script gives: a path, an open file, records, or a list of these."""
    if records is None:
        return
    if isinstance(records, (str, bytes, os.PathLike)) or hasattr(records, "read") or isinstance(records, (tuple, Record)):
        yield records
        return
    for item in records:
        yield from sources_of(item)


def limits_of(build: float, run: float, repeat: int, min_repeat_ms: float) -> dict[str, float]:
    """The limits of a measurement (`relaylang.tune.worker.LIMITS`), from the arguments of TVM's builders and runners.

    Candidate and default run by turns, and each turn takes the least of four means. So a turn of `min_repeat_ms` has means
    of a quarter of it. There are `repeat` turns, or as many as an interval needs.
    """
    pairs = max(int(repeat), 4)
    milliseconds = max(float(min_repeat_ms) / 4, 1.0)
    seconds = max(2.0, 2 * pairs * float(min_repeat_ms) / 1e3)
    return {
        "build": float(build),
        "run": max(float(run), seconds),
        "pairs": pairs,
        "milliseconds": milliseconds,
        "seconds": seconds,
    }


__all__ = ["Applied", "kernels_of", "limits_of", "loaded", "refused", "sources_of", "tensors_of"]
