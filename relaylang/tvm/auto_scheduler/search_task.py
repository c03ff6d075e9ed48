"""Tasks and options of a search: `tvm.auto_scheduler.search_task`, and `extract_tasks`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.schedule_space import Choice
from relaylang.backends.cpu.tuning_log import best
from relaylang.passes.context import PassContext
from relaylang.tune import task as kernels
from relaylang.tvm.auto_scheduler.measure import MeasureCallback
from relaylang.tvm.target import Target
from relaylang.tvm.tuning import kernels_of, loaded, refused


class HardwareParams:
    """What a script says of a machine. It has no effect: the compiler knows the machine."""

    def __init__(
        self,
        num_cores: int | None = None,
        vector_unit_bytes: int | None = None,
        cache_line_bytes: int | None = None,
        max_shared_memory_per_block: int | None = None,
        max_local_memory_per_block: int | None = None,
        max_threads_per_block: int | None = None,
        max_vthread_extent: int | None = None,
        warp_size: int | None = None,
        target: Any = None,
        target_host: Any = None,
    ) -> None:
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})


class TuningOptions:
    """How long a search lasts (`num_measure_trials`; no gain in `early_stopping` of them), and how it measures.

    `verbose` 0 prints nothing. `num_measures_per_round` has no effect.
    """

    def __init__(
        self,
        num_measure_trials: int = 0,
        early_stopping: int | None = None,
        num_measures_per_round: int = 64,
        verbose: int = 1,
        builder: Any = "local",
        runner: Any = "local",
        measure_callbacks: Sequence[MeasureCallback] | None = None,
    ) -> None:
        self.num_measure_trials, self.early_stopping = num_measure_trials, early_stopping
        self.num_measures_per_round, self.verbose = num_measures_per_round, verbose
        self.builder, self.runner = builder, runner
        self.measure_callbacks = list(measure_callbacks or ())


class ComputeDAG:
    """What a kernel computes: `str` gives its Relay text. `flop_ct` are its operations."""

    def __init__(self, kernel: kernels.Task) -> None:
        self.kernel = kernel
        self.flop_ct = float(kernel.flops)

    def __str__(self) -> str:
        return self.kernel.text


class SearchTask:
    """A kernel to tune. `workload_key` is its key in logs, `desc` its operators, `kernel` the task of `relaylang.tune`.

    `extract_tasks` finds the tasks of a program. Functions of TVM's tensor expressions are refused (R0645).
    """

    def __init__(
        self,
        func: Any = None,
        args: Any = None,
        compute_dag: ComputeDAG | None = None,
        workload_key: str | None = None,
        target: Any = None,
        target_host: Any = None,
        hardware_params: HardwareParams | None = None,
        layout_rewrite_option: Any = None,
        task_inputs: Any = None,
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ) -> None:
        if compute_dag is None:
            raise refused("SearchTask takes no tensor expressions", "auto_scheduler.extract_tasks finds the tasks of a program")
        self.compute_dag, self.kernel = compute_dag, compute_dag.kernel
        self.workload_key = workload_key if workload_key is not None else self.kernel.key
        self.target = target if isinstance(target, Target) or target is None else Target(target)
        self.target_host, self.hardware_params, self.desc = target_host, hardware_params, desc

    def apply_best(self, log_file: Any, include_compatible: bool = False, layout_rewrite_option: Any = None) -> Choice:
        """The best values of a log for the task's knobs, as -schedule takes them. Raises `RelayError` (R0645) without any."""
        record = best(r for r in loaded(log_file) if r.key == self.kernel.key).get(self.kernel.key)
        if record is None:
            raise refused(f"{os.fspath(log_file)} has no record of {self.desc}")
        return dict(record.choice)

    def print_best(self, log_file: Any, print_mode: str = "schedule") -> str:
        """The best values of a log as text; for another mode than "schedule" the kernel's C. Raises `RelayError` (R0645)."""
        choice = self.apply_best(log_file)
        if print_mode == "schedule":
            return "".join(f"{name} = {value}\n" for name, value in choice.items())
        return str(getattr(self.kernel.compile(choice), "source", ""))

    def __repr__(self) -> str:
        return f"SearchTask({self.desc})"


def extract_tasks(
    mod: Any,
    params: Mapping[str, Any] | None,
    target: Any,
    target_host: Any = None,
    hardware_params: HardwareParams | None = None,
    include_simple_tasks: bool = False,
    dump_workload_to_dag_log: str | None = None,
    opt_level: int = 3,
    other_targets: Any = None,
) -> tuple[list[SearchTask], list[int]]:
    """The kernels with knobs of a module or function, those with the most work first, and how often a run has each.

    Without `include_simple_tasks`, only those with products, if there are any. `opt_level` and the arguments behind it have
    no effect. Raises `RelayError`.
    """
    tunable = kernels_of(mod, params, target)
    complex_ones = [kernel for kernel in tunable if kernel.flops]
    chosen = tunable if include_simple_tasks or not complex_ones else complex_ones
    tasks = [SearchTask(None, None, ComputeDAG(k), k.key, target, target_host, hardware_params, desc=k.operators) for k in chosen]
    return tasks, [kernel.count for kernel in chosen]


def is_auto_scheduler_enabled() -> bool:
    """Whether the current `PassContext` asks for the auto scheduler. A log is taken without it, too."""
    return bool(PassContext.current().config.get("relay.backend.use_auto_scheduler", False))


__all__ = ["ComputeDAG", "HardwareParams", "SearchTask", "TuningOptions", "extract_tasks", "is_auto_scheduler_enabled"]
