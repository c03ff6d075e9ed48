"""Databases of records: `tvm.meta_schedule.database`. A file of records is a log of `relay tune`."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from relaylang.backends.cpu.tuning_log import Log, Record
from relaylang.tvm.tuning import Applied, loaded, refused

#: The file of records in a working directory, as TVM names it.
_RECORDS = "database_tuning_record.json"


class Workload(NamedTuple):
    """A kernel: its key in logs and its operators."""

    key: str
    name: str


class TuningRecord(NamedTuple):
    """A measurement: the values of knobs, seconds of a run (none for a failure), the kernel."""

    trace: dict[str, Any]
    workload: Workload
    run_secs: list[float] | None


class Database(Applied):
    """Records in memory. Programs in its `with` block are built with the best of them."""

    def __init__(self, module_equality: str = "structural") -> None:
        super().__init__([], "the database")

    def append(self, record: Record) -> None:
        """Add a record of a search."""
        assert self.records is not None
        self.records.append(record)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Every measurement but those of default schedules."""
        records = [record for record in self.records or () if not record.is_default]
        return [
            TuningRecord(dict(r.choice), Workload(r.key, r.operators), [r.seconds] if r.seconds is not None else None) for r in records
        ]

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest measurements of a kernel."""
        mine = [r for r in self.get_all_tuning_records() if r.workload == workload and r.run_secs]
        return sorted(mine, key=lambda r: r.run_secs or [])[:top_k]

    def __len__(self) -> int:
        return len(self.get_all_tuning_records())

    @staticmethod
    def create(kind: str = "json", *args: Any, **options: Any) -> Database:
        """A database: "json" or "memory". Raises `RelayError` (R0645) for another kind."""
        kinds = {"json": JSONDatabase, "memory": MemoryDatabase}
        if kind not in kinds:
            raise refused(f"there is no database of the kind {kind}", ", ".join(kinds))
        return kinds[kind](*args, **options)


class MemoryDatabase(Database):
    """Records in memory."""


class JSONDatabase(Database):
    """Records in a file, which is a log: `path_tuning_record`, or a file in `work_dir`. Raises `RelayError` (R0645).

    `path_workload` has no effect: a record holds its kernel.
    """

    def __init__(
        self,
        path_workload: str | None = None,
        path_tuning_record: str | None = None,
        *,
        work_dir: str | None = None,
        allow_missing: bool = True,
        module_equality: str = "structural",
    ) -> None:
        super().__init__(module_equality)
        if path_tuning_record is None:
            if work_dir is None:
                raise refused("JSONDatabase needs work_dir, or the path of its records")
            path_tuning_record = os.path.join(work_dir, _RECORDS)
        self.path = self.source = os.fspath(path_tuning_record)
        if os.path.exists(self.path) or not allow_missing:
            self.records = loaded(self.path)

    def append(self, record: Record) -> None:
        with Log(self.path) as log:
            log.append(record)
        super().append(record)


__all__ = ["Database", "JSONDatabase", "MemoryDatabase", "TuningRecord", "Workload"]
