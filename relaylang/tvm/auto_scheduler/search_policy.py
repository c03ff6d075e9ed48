"""How points are chosen: `tvm.auto_scheduler.search_policy` and `cost_model`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.tuning_log import Record
from relaylang.tvm.auto_scheduler.search_task import SearchTask
from relaylang.tvm.tuning import loaded


class RandomModel:
    """No model: points are drawn."""

    tuner = "random"


class XGBModel:
    """A model of the results (XGBoost) chooses points. `load` and `update_from_file` take logs to learn from.

    The arguments have no effect.
    """

    tuner = "xgb"

    def __init__(
        self,
        verbose_eval: int = 25,
        num_warmup_sample: int = 100,
        seed: int | None = None,
        model_file: str | None = None,
        adaptive_training: bool = False,
    ) -> None:
        self.older: list[Record] = []

    def update_from_file(self, file_name: str, n_lines: int | None = None) -> None:
        """Learn from the first records of a log. Raises `RelayError` (R0645)."""
        self.older += loaded(file_name)[:n_lines]


class PreloadMeasuredStates:
    """The records of a log count as trials: a search goes on from them. Raises `RelayError` (R0645)."""

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        self.older = loaded(filename)


class SketchPolicy:
    """A search with a model (`XGBModel()`, `RandomModel()`), for one task. The other arguments have no effect."""

    def __init__(
        self,
        task: SearchTask,
        program_cost_model: Any = None,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        verbose: int = 1,
        init_search_callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.task, self.verbose = task, verbose
        self.model = RandomModel() if program_cost_model is None else program_cost_model
        self.callbacks = list(init_search_callbacks or ())

    @property
    def tuner(self) -> str:
        """The tuner of `relaylang.tune`."""
        return str(getattr(self.model, "tuner", "random"))

    def records(self) -> list[Record]:
        """The records of earlier searches that it has."""
        return [record for part in (self.model, *self.callbacks) for record in getattr(part, "older", ())]


__all__ = ["PreloadMeasuredStates", "RandomModel", "SketchPolicy", "XGBModel"]
