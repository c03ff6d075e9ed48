"""The search of several tasks: `tvm.auto_scheduler.task_scheduler`. `relaylang.tune.search` gives the trials to the tasks."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from relaylang.backends.cpu.tuning_log import Record
from relaylang.runtime.text import reason
from relaylang.tune.farm import FarmMeasurer
from relaylang.tune.search import State, search
from relaylang.tune.task import machine_of
from relaylang.tvm.auto_scheduler.measure import MeasureCallback, MeasureInput, RecordToFile, measurer_of, result_of
from relaylang.tvm.auto_scheduler.search_policy import SketchPolicy
from relaylang.tvm.auto_scheduler.search_task import SearchTask, TuningOptions
from relaylang.tvm.tuning import loaded, refused


class TaskSchedulerCallback:
    """Watches a search: its methods are called before and after the trials that a task gets in a row."""

    def pre_tune(self, task_scheduler: Any, task_id: int) -> None:
        """Called before a task's trials. A callback has its own."""

    def post_tune(self, task_scheduler: Any, task_id: int) -> None:
        """Called after a task's trials. A callback has its own."""


class PrintTableInfo(TaskSchedulerCallback):
    """Prints a table of the tasks, unless `verbose` is 0."""

    def pre_tune(self, task_scheduler: Any, task_id: int) -> None:
        if task_scheduler.tune_option is not None and task_scheduler.tune_option.verbose >= 1:
            print(task_scheduler.table())


class LogEstimatedLatency(TaskSchedulerCallback):
    """Appends the estimated time of a run to a file, which it begins anew."""

    def __init__(self, log_file: str) -> None:
        self.log_file = log_file
        self._write("w", "")

    def post_tune(self, task_scheduler: Any, task_id: int) -> None:
        known = all(cost < 1e9 for cost in task_scheduler.best_costs)
        latency = f"{1e3 * task_scheduler.cur_score:.3f}" if known else "N/A"
        seconds = time.monotonic() - task_scheduler.begin
        self._write("a", f"ElapsedTime(s)\t{seconds:.0f}\tEstimatedLatency(ms)\t{latency}\tTrials\t{task_scheduler.ct}\n")

    def _write(self, mode: str, text: str) -> None:
        try:
            with open(self.log_file, mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as e:
            raise refused(f"cannot write {self.log_file}: {reason(e)}") from None


class TaskScheduler:
    """Searches tasks. The trials go where they are expected to save the most of the sum of times by `task_weights`.

    `load_log_file` is a log to go on from: its records of this processor count as trials. `objective_func` computes `cur_score`
    from the tasks' times in seconds; the search minimises the weighted sum. `strategy`, `load_model_file` and the numbers
    behind them have no effect.
    """

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        task_weights: Sequence[int] | None = None,
        objective_func: Callable[[Sequence[float]], float] | None = None,
        strategy: str = "gradient",
        load_model_file: str | None = None,
        load_log_file: str | None = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Iterable[TaskSchedulerCallback] | None = None,
    ) -> None:
        self.tasks = list(tasks)
        self.weights = [1] * len(self.tasks) if task_weights is None else list(task_weights)
        if len(self.weights) != len(self.tasks):
            raise refused(f"there are {len(self.weights)} weights for {len(self.tasks)} tasks")
        self.objective_func = objective_func or (lambda costs: sum(c * w for c, w in zip(costs, self.weights)))
        self.load_log_file = load_log_file
        self.callbacks = [PrintTableInfo()] if callbacks is None else list(callbacks)
        self.tune_option: TuningOptions | None = None
        self.begin = time.monotonic()
        self._states: Sequence[State] = ()

    @property
    def best_costs(self) -> list[float]:
        """The time of each task's best point, in seconds; 1e10 where none is known."""
        return [s.seconds if s.seconds is not None else 1e10 for s in self._states] or [1e10] * len(self.tasks)

    @property
    def task_cts(self) -> list[int]:
        """The trials of each task."""
        return [s.trials for s in self._states] or [0] * len(self.tasks)

    @property
    def ct(self) -> int:
        """All trials."""
        return sum(self.task_cts)

    @property
    def cur_score(self) -> float:
        """The estimated time of a run, in seconds."""
        return self.objective_func(self.best_costs)

    def table(self) -> str:
        """A line for each task, and the estimated time of a run."""
        lines = ["|  ID  | Latency (ms) | Speed (GFLOPS) | Trials | Task Description"]
        for n, (task, cost, count) in enumerate(zip(self.tasks, self.best_costs, self.task_cts)):
            known = cost < 1e9
            latency = f"{1e3 * cost:.3f}" if known else "-"
            speed = f"{task.compute_dag.flop_ct / cost / 1e9:.2f}" if known else "-"
            lines.append(f"| {n:4d} | {latency:>12} | {speed:>14} | {count:6d} | {task.desc}")
        total = f"{1e3 * self.cur_score:.3f}" if all(cost < 1e9 for cost in self.best_costs) else "-"
        return "\n".join([*lines, f"Estimated total latency: {total} ms\tTrials: {self.ct}"])

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: Any = "default",
        search_policy_params: Any = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> None:
        """Search. The policy "sketch.random" draws points; others have a model, where XGBoost is installed.

        Raises `RelayError`.
        """
        self.tune_option = tune_option
        kernels = [replace(task.kernel, count=int(weight)) for task, weight in zip(self.tasks, self.weights)]
        log = self.load_log_file
        known = loaded(log) if log is not None and os.path.exists(log) else []
        policies = search_policy if isinstance(search_policy, (list, tuple)) else [search_policy]
        for policy in policies:
            known += policy.records() if isinstance(policy, SketchPolicy) else []
        stops = [n for n in (tune_option.early_stopping, per_task_early_stopping) if n]
        measurer = measurer_of(tune_option.builder, tune_option.runner)
        turns = _Turns(self)
        here = bool(kernels) and not isinstance(measurer, FarmMeasurer)
        try:
            self._states = search(
                kernels,
                measurer,
                _Records(self, tune_option.measure_callbacks),
                tune_option.num_measure_trials,
                _tuner_of(policies[0] if policies else "default"),
                min(stops, default=None),
                known=known,
                transfer=known,
                watch=turns.watch,
                machine=machine_of(kernels[0].options) if here else None,
            ).states
        finally:
            measurer.close()
        turns.leave()


def _tuner_of(policy: Any) -> str:
    """The tuner for a policy."""
    if isinstance(policy, SketchPolicy):
        return policy.tuner
    if policy not in ("default", "sketch.xgb", "sketch.random"):
        raise refused(f"there is no search policy {policy!r}", "default, sketch.xgb, sketch.random, or a SketchPolicy for each task")
    if policy == "sketch.random":
        return "random"
    return "xgb" if importlib.util.find_spec("xgboost") is not None else "ga"


class _Records:
    """The sink of a search that calls a script's callbacks."""

    def __init__(self, scheduler: TaskScheduler, callbacks: Sequence[MeasureCallback]) -> None:
        self.tasks = {task.kernel.key: task for task in scheduler.tasks}
        self.callbacks = callbacks

    def append(self, record: Record) -> None:
        for callback in self.callbacks:
            if isinstance(callback, RecordToFile):
                callback.append(record)
            elif not record.is_default:
                callback.callback(None, [MeasureInput(self.tasks.get(record.key), dict(record.choice))], [result_of(record)])


class _Turns:
    """Calls a scheduler's callbacks where another task gets the trials."""

    def __init__(self, scheduler: TaskScheduler) -> None:
        self.scheduler = scheduler
        self.task: int | None = None

    def watch(self, state: State, states: Sequence[State]) -> None:
        self.scheduler._states = states
        if state.last is None:
            return  # the default schedule
        now = next(n for n, other in enumerate(states) if other is state)
        if now != self.task:
            self.leave()
            self.task = now
            for callback in self.scheduler.callbacks:
                callback.pre_tune(self.scheduler, now)

    def leave(self) -> None:
        """The task's trials are over."""
        if self.task is not None:
            for callback in self.scheduler.callbacks:
                callback.post_tune(self.scheduler, self.task)
        self.task = None


__all__ = ["LogEstimatedLatency", "PrintTableInfo", "TaskScheduler", "TaskSchedulerCallback"]
