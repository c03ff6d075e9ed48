"""The search for a Relay program: `tvm.meta_schedule.relay_integration`. It is that of `relaylang.tune`.

database = tune_relay(mod, params, "llvm", "work", max_trials_global=200)
lib = compile_relay(database, mod, "llvm", params)
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from relaylang.passes.context import PassContext
from relaylang.runtime.text import reason
from relaylang.tune import task as kernels
from relaylang.tune.measure import LocalMeasurer
from relaylang.tune.search import search
from relaylang.tvm.build_module import build
from relaylang.tvm.meta_schedule.database import Database, JSONDatabase
from relaylang.tvm.meta_schedule.profiler import Profiler
from relaylang.tvm.target import Target
from relaylang.tvm.tuning import kernels_of, refused
from relaylang.tvm.vm import compile as compile_vm

_CONFIG: Mapping[str, Any] = MappingProxyType({"relay.backend.use_meta_schedule": True, "relay.backend.tir_converter": "default"})


class ExtractedTask:
    """A kernel to tune: its name, how often a run has it (`weight`), and the task of `relaylang.tune` (`kernel`)."""

    def __init__(self, task_name: str, mod: Any, target: Any, dispatched: Sequence[Any], weight: int) -> None:
        self.task_name, self.mod, self.target = task_name, mod, target
        self.dispatched, self.weight = list(dispatched), weight
        self.kernel: kernels.Task = self.dispatched[0]


def extract_tasks(
    mod: Any,
    target: Any,
    params: Mapping[str, Any] | None,
    *,
    opt_level: int = 3,
    pass_config: Mapping[str, Any] = _CONFIG,
    executor: Any = None,
    runtime: Any = None,
    module_equality: str = "structural",
    disabled_pass: Any = None,
    instruments: Any = None,
) -> list[ExtractedTask]:
    """The kernels with knobs of a module, those with the most work first. Other arguments have no effect.

    Raises `RelayError`.
    """
    face = target if isinstance(target, Target) else Target(target)
    with Profiler.timeit("TaskExtraction"):
        tunable = kernels_of(mod, params, target)
    return [ExtractedTask(kernel.operators, kernel.function, face, [kernel], kernel.count) for kernel in tunable]


def tune_tasks(
    *,
    tasks: Sequence[ExtractedTask],
    task_weights: Sequence[float],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    module_equality: str = "structural",
    seed: int | None = None,
) -> Database:
    """Search tasks; returns the database of the records, a log in `work_dir` for "json". It goes on from earlier records.

    The cost model "xgb" needs XGBoost; without it, and with "mlp", the search is genetic. "random" draws points. Builders,
    runners and schedulers are those of the machine. Raises `RelayError`.
    """
    for name, value in (("builder", builder), ("runner", runner)):
        if value != "local":
            raise refused(f"meta_schedule measures on this machine: {name}={value!r} is not here", f'{name}="local"')
    log = _database(database, work_dir)
    chosen = [replace(task.kernel, count=max(1, round(weight))) for task, weight in zip(tasks, task_weights)]
    with Profiler.timeit("Search"), LocalMeasurer() as measurer:
        known = list(log.records or ())
        search(
            chosen,
            measurer,
            log,
            max_trials_global,
            _tuner_of(cost_model),
            seed=0 if seed is None else seed,
            known=known,
            transfer=known,
            machine=kernels.machine_of(chosen[0].options) if chosen else None,
            per_task=max_trials_per_task,
        )
    return log


def _database(log: Any, work_dir: str) -> Database:
    if isinstance(log, Database):
        return log
    if log != "json":
        return Database.create(log)
    try:
        os.makedirs(work_dir, exist_ok=True)
    except OSError as e:
        raise refused(f"cannot make the folder {work_dir}: {reason(e)}") from None
    return JSONDatabase(work_dir=work_dir)


def _tuner_of(cost_model: Any) -> str:
    if cost_model == "random":
        return "random"
    return "xgb" if cost_model == "xgb" and importlib.util.find_spec("xgboost") is not None else "ga"


def tune_relay(
    mod: Any,
    params: Mapping[str, Any] | None,
    target: Any,
    work_dir: str,
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    seed: int | None = None,
    module_equality: str = "structural",
    num_tuning_cores: Any = "physical",
    opt_level: int = 3,
    disabled_pass: Any = None,
    instruments: Any = None,
) -> Database:
    """Search the kernels of a module with up to `max_trials_global` measurements, as `tune_tasks` does.

    `space`, `strategy` and the arguments behind `seed` have no effect. Raises `RelayError`.
    """
    tasks = extract_tasks(mod, target, params, opt_level=opt_level)
    return tune_tasks(
        tasks=tasks,
        task_weights=[task.weight for task in tasks],
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        builder=builder,
        runner=runner,
        database=database,
        cost_model=cost_model,
        seed=seed,
    )


def compile_relay(
    database: Database,
    mod: Any,
    target: Any,
    params: Mapping[str, Any] | None,
    *,
    backend: str = "graph",
    opt_level: int = 3,
    pass_config: Mapping[str, Any] = _CONFIG,
    executor: Any = None,
    disabled_pass: Any = None,
    runtime: Any = None,
    instruments: Any = None,
) -> Any:
    """Build a module with the best records of a database: `relay.build`, or for the backend "vm" `relay.vm.compile`.

    Raises `RelayError`.
    """
    if backend not in ("graph", "vm"):
        raise refused(f"there is no backend {backend}", "graph, vm")
    with database, PassContext(opt_level=opt_level, disabled_pass=disabled_pass, instruments=instruments):
        if backend == "vm":
            return compile_vm(mod, target, params=params)
        return build(mod, target, params=params, executor=executor, runtime=runtime)


def is_meta_schedule_enabled() -> bool:
    """Whether the current `PassContext` asks for meta schedule. A database is taken without it, too."""
    return bool(PassContext.current().config.get("relay.backend.use_meta_schedule", False))


__all__ = ["ExtractedTask", "compile_relay", "extract_tasks", "is_meta_schedule_enabled", "tune_relay", "tune_tasks"]
