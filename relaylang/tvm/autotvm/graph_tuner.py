"""The search of layouts over a whole graph: `tvm.autotvm.graph_tuner`. The compiler chooses layouts itself, so no search is left."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.runtime.files import atomic_write
from relaylang.tvm.autotvm.record import bests, records_of


class DPTuner:
    """Takes the records of a search, and writes the best of each kernel. Layouts cost no time of a search."""

    def __init__(
        self,
        graph: Any,
        input_shapes: Mapping[str, Sequence[int]],
        records: Any,
        target_ops: Sequence[Any],
        target: Any,
        max_sch_num: int = 20,
        dtype: str = "float32",
        verbose: bool = True,
        log_file: str = "graph_tuner.log",
        log_level: int = 10,
        name: str = "graph_tuner",
    ) -> None:
        self.records = records_of(records)

    def benchmark_layout_transform(self, *args: Any, **options: Any) -> None:
        """Does nothing: the compiler's cost models know what a layout costs."""

    def run(self, **options: Any) -> None:
        """Does nothing: layouts are chosen when the program is compiled."""

    def get_optimal_records(self) -> list[Any]:
        """The best record of each kernel, with the default's."""
        return list(bests(self.records))

    def write_opt_sch2record_file(self, record_file: str | os.PathLike[str] = "graph_opt_schedule.log") -> None:
        """Write these records to a log, which `apply_graph_best` takes. Raises `OSError`."""
        atomic_write(record_file, "".join(record.line() + "\n" for record in bests(self.records)))


class PBQPTuner(DPTuner):
    """The same: TVM has two ways to search layouts."""


__all__ = ["DPTuner", "PBQPTuner"]
