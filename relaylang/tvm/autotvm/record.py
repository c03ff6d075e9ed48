"""Logs of tuning as TVM's functions read and write them: `tvm.autotvm.record`. The lines are those of `relay tune`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from relaylang.backends.cpu.tuning_log import Record, best, record_of
from relaylang.runtime.files import atomic_write
from relaylang.tvm.autotvm.measure import MeasureInput, MeasureResult
from relaylang.tvm.autotvm.task import pair_of
from relaylang.tvm.tuning import loaded, refused, sources_of

Pair = tuple[MeasureInput, MeasureResult]


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """A measurement as a line of a log, without its end. Raises `RelayError` (R0645) for what no tuner has measured."""
    if protocol != "json":
        raise refused(f"a log is lines of JSON, and not of the protocol {protocol}")
    record = getattr(result, "record", None)
    if record is None:
        raise refused("the result is of no search: it lacks the time of the default schedule")
    return str(record.line())


def decode(row: str, protocol: str = "json") -> Pair | None:
    """The measurement of a line; None for a line of another version or kind. Raises `RelayError` (R0645) for no JSON."""
    if protocol != "json":
        raise refused(f"a log is lines of JSON, and not of the protocol {protocol}")
    try:
        record = record_of(json.loads(row))
    except (ValueError, RecursionError):
        raise refused("the line of a log is no JSON") from None
    return pair_of(record) if record is not None else None


def load_from_buffer(file: Iterable[str]) -> Iterator[Pair]:
    """The measurements of an open log. Comments (#) and lines of other kinds are left out."""
    for row in file:
        pair = decode(row) if row.strip() and not row.startswith("#") else None
        if pair is not None:
            yield pair


def load_from_file(filepath: str | bytes | os.PathLike[str]) -> Iterator[Pair]:
    """The measurements of a log. Raises `RelayError` (R0645) for another file."""
    for record in loaded(filepath):
        yield pair_of(record)


def records_of(given: Any) -> list[Record]:
    """The records among what scripts give: a path, an open file, measurements, or several of them. Raises `RelayError`."""
    records: list[Record] = []
    for item in sources_of(given):
        if isinstance(item, Record):
            records.append(item)
        elif isinstance(item, tuple):
            result = item[1] if len(item) > 1 else None
            records += [result.record] if isinstance(result, MeasureResult) and result.record is not None else []
        elif hasattr(item, "read"):
            records += [result.record for _, result in load_from_buffer(item) if result.record is not None]
        else:
            records += loaded(item)
    return records


def pick_best(in_file: str | os.PathLike[str], out_file: Any) -> None:
    """Write the best record of each kernel to another log, with the default's; an `out_file` with records counts, too.

    `out_file` is a path or an open file. Raises `RelayError` (R0645).
    """
    records = loaded(in_file)
    is_path = isinstance(out_file, (str, os.PathLike))
    if is_path and os.path.isfile(out_file) and os.path.getsize(out_file):
        records += loaded(out_file)
    lines = "".join(record.line() + "\n" for record in bests(records))
    if is_path:
        atomic_write(out_file, lines)
    else:
        out_file.write(lines)


def bests(records: Sequence[Record]) -> list[Record]:
    """For each kernel, processor and number of threads the default's record and the best one."""
    groups: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record.key, record.cpu, record.threads), []).append(record)
    kept = []
    for group in groups.values():
        defaults = [record for record in group if record.is_default][-1:]
        winners = [record for record in best(group).values() if not record.is_default]
        kept += [*defaults, *winners]
    return kept


__all__ = ["bests", "decode", "encode", "load_from_buffer", "load_from_file", "pick_best", "records_of"]
