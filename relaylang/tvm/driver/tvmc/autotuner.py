"""Tunes networks for tvmc: its spelling of tuners and tasks, the search of `relaylang.tune`."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relaylang.backends.cpu.tuning_log import Log
from relaylang.cli.common import report
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir.binding import bind_params
from relaylang.tune.search import search, tuner_named
from relaylang.tune.space import SearchSpace
from relaylang.tune.task import Task, machine_of
from relaylang.tune.tuners import Tuner
from relaylang.tvm.autotvm.measure import LocalBuilder, LocalRunner
from relaylang.tvm.driver.tvmc.compiler import offloaded, refused, transformed
from relaylang.tvm.driver.tvmc.model import TVMCModel
from relaylang.tvm.tuning import kernels_of, loaded

#: tvmc's names of tuners -> ours, with the options of XGBoost's.
TUNERS: dict[str, tuple[str, dict[str, str]]] = {
    "ga": ("ga", {}),
    "gridsearch": ("grid", {}),
    "random": ("random", {}),
    **{
        f"xgb{loss}{feature}": ("xgb", {"loss_type": kind, "feature_type": features})
        for loss, kind in (("", "reg"), ("_rank", "rank"), ("_rank_binary", "rank"))
        for feature, features in (("", "itervar"), ("_knob", "knob"), ("_itervar", "itervar"), ("_curve", "itervar"))
    },
}


def filter_tasks(tasks: Sequence[Task], expr: str) -> tuple[list[Task], bool]:
    """The tasks of an expression (`all`, `0,2`, `3-5`, `3-`), and whether `list` is in it. Raises `RelayError` (R0707)."""
    chosen: set[int] = set()
    words = [word.strip() for word in expr.split(",")]
    for word in words:
        if word in ("list", "help"):
            continue
        match = re.fullmatch(r"(\d*)(-?)(\d*)", word)
        if word == "all":
            chosen.update(range(len(tasks)))
        elif match is None or not (match[1] or match[3]):
            raise RelayError(error("R0707", f"--tasks {word} names no tasks", notes=["write all, list, 0,2 or 3-5"]))
        else:
            first = int(match[1] or 0)
            last = int(match[3] or len(tasks) - 1) if match[2] else first
            if not first <= last < len(tasks):
                notes = [f"there are {len(tasks)} tasks, from 0 on: --tasks list"]
                raise RelayError(error("R0707", f"--tasks {word} is out of range", notes=notes))
            chosen.update(range(first, last + 1))
    only_list = all(word in ("list", "help") for word in words)
    return list(tasks) if only_list else [tasks[n] for n in sorted(chosen)], any(word in ("list", "help") for word in words)


def gen_task_list(tasks: Sequence[Task], enable_autoscheduler: bool = False) -> str:
    """The tasks as text, each with its number."""
    rows = [f"  {n}. {task.operators}"[:100] for n, task in enumerate(tasks)]
    return "\n".join(["Available Tasks for tuning:", *rows])


def tune_model(
    tvmc_model: TVMCModel,
    target: str,
    tuning_records: str | None = None,
    prior_records: str | None = None,
    enable_autoscheduler: bool = False,
    rpc_key: str | None = None,
    hostname: str | None = None,
    port: int | str | None = 9090,
    trials: int = 10000,
    target_host: str | None = None,
    tuner: str = "xgb",
    min_repeat_ms: int | None = None,
    early_stopping: int | None = None,
    timeout: int = 10,
    repeat: int = 1,
    number: int = 10,
    parallel: int = 4,
    hardware_params: Any = None,
    include_simple_tasks: bool = False,
    log_estimated_latency: bool = False,
    additional_target_options: Mapping[str, Mapping[str, Any]] | None = None,
    tasks_filter: str = "all",
    desired_layout: Sequence[str] | str | None = None,
    desired_layout_ops: Sequence[str] | None = None,
    mixed_precision: bool = False,
    mixed_precision_ops: Sequence[str] | None = None,
    mixed_precision_calculation_type: str | None = None,
    mixed_precision_acc_type: str | None = None,
) -> str | None:
    """Search the schedules of a model with up to `trials` measurements in all. Returns the path of the log, a new one by default.

    The search goes on from records of `tuning_records`, and learns from `prior_records`. None where `tasks_filter` lists the
    tasks. Only `min_repeat_ms`, `timeout` and `repeat` change a measurement; a log estimates no latency. Raises `RelayError`.
    """
    if tuner not in TUNERS:
        near = did_you_mean(tuner, TUNERS)
        raise RelayError(error("R0707", f"unknown tuner {tuner}", notes=[f"did you mean {near or 'xgb'}?"]))
    if rpc_key or hostname:
        raise refused("tuning on another machine", "relay tune there writes a log; --tuning-records takes it here")
    layouts = [desired_layout] if isinstance(desired_layout, str) else list(desired_layout or ())
    mixed = (mixed_precision_calculation_type or "float16") if mixed_precision else ""
    mod = bind_params(tvmc_model.mod, tvmc_model.params) if layouts or mixed else tvmc_model.mod
    mod = transformed(mod, layouts, list(desired_layout_ops or ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")), mixed)
    mod, targets, _ = offloaded(mod, tvmc_model.params, target)
    main = {p.name_hint for p in mod["main"].params}
    tasks = kernels_of(mod, {name: value for name, value in tvmc_model.params.items() if name in main}, targets)
    if not tasks:
        report([error("R0645", "no kernel of the network has knobs: there is nothing to search", severity="note")])
    tasks, listed = filter_tasks(tasks, tasks_filter)
    if listed:
        print(gen_task_list(tasks))
        return None
    path = tuning_records or str(Path(tempfile.mkdtemp(prefix="relay-")) / "tuning_records.jsonl")
    known = loaded(path) if os.path.exists(path) else []
    prior = loaded(prior_records) if prior_records else []
    measurer = LocalRunner(timeout, number, repeat, min_repeat_ms or 0).measurer(LocalBuilder(timeout))
    others = [(r.features, r.ratio) for r in (*prior, *known) if r.features and r.ratio is not None]

    def chosen(space: SearchSpace) -> Tuner:
        name, options = TUNERS[tuner]
        if name == "xgb" and importlib.util.find_spec("xgboost") is None:
            name, options = "ga", {}
        more: dict[str, Any] = {**options, **({"transfer": others} if name == "xgb" and others else {})}
        return tuner_named(name, space, **more)

    machine = machine_of(tasks[0].options) if tasks else None
    try:
        with Log(path) as log:
            search(tasks, measurer, log, trials, chosen, early_stopping, known=known, machine=machine)
    finally:
        measurer.close()
    return path


__all__ = ["TUNERS", "filter_tasks", "gen_task_list", "tune_model"]
