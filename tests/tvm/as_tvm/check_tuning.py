"""Scripts that tune: autotvm, auto_scheduler and meta_schedule. `tests/tvm/test_as_tvm.py` runs this file.

Measurements are made up, so that nothing is compiled but the programs that take a log.
"""

from __future__ import annotations

import io
import json
import logging
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import auto_scheduler, autotvm, relay
from tvm import meta_schedule as ms
from tvm.auto_scheduler.task_scheduler import LogEstimatedLatency, PrintTableInfo, TaskSchedulerCallback
from tvm.autotvm.graph_tuner import DPTuner
from tvm.autotvm.measure import MeasureErrorNo
from tvm.autotvm.tuner import GATuner, GridSearchTuner, RandomTuner, Tuner, XGBTuner

from relaylang.runtime.peaks import processor
from relaylang.tune.measure import Measurement
from relaylang.tune.task import Machine

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(16, 48), float32], %w: Tensor[(8, 48), float32], %v: Tensor[(8, 8), float32]) {
  %0 = nn.relu(nn.dense(%x, %w, units=8));
  nn.dense(%0, %v, units=8)
}
"""
PARAMS = {name: np.ones(shape, "float32") for name, shape in (("w", (8, 48)), ("v", (8, 8)))}


class Fake:
    """Times that the values of knobs decide. Some points fail."""

    batch = 4

    def __init__(self, limits: dict[str, float] | None = None, builders: int | None = None) -> None:
        self.limits = limits or {}

    def measure(self, task: Any, points: Sequence[Any], best: float = 1.0, thorough: bool = False) -> Iterator[Measurement]:
        for point in points:
            number = zlib.crc32(json.dumps(sorted(point.choice.items())).encode()) % 100
            if number == 7:
                yield Measurement(point, failure="timeout", message="the kernel takes more than 1 seconds")
                continue
            ratio, pairs = 0.5 + number / 100, 30 if thorough else 10
            machine = Machine(processor(), task.isa, "a compiler")
            yield Measurement(point, ratio, ratio * 0.99, ratio * 1.01, pairs, 1e-3, machine=machine)

    def close(self) -> None:
        """Nothing was started."""

    def __enter__(self) -> Fake:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was started."""


@pytest.fixture(autouse=True)
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("relaylang.tvm.autotvm.measure", "relaylang.tvm.meta_schedule.relay_integration"):
        monkeypatch.setattr(f"{module}.LocalMeasurer", Fake)


@pytest.fixture
def mod() -> Any:
    return relay.parse(TEXT)


@pytest.fixture
def tasks(mod: Any) -> list[Any]:
    found = autotvm.task.extract_from_program(mod["main"], target="llvm", params=PARAMS, ops=(relay.op.get("nn.dense"),))
    return list(found)


OPTION = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner(number=1, repeat=1))


def test_tasks_have_names_arguments_and_a_space(tasks: list[Any]) -> None:
    assert [task.name for task in tasks] == ["nn.dense > nn.relu", "nn.dense"] and tasks[0].flop == 2 * 16 * 48 * 8
    assert tasks[0].args[0] == ("TENSOR", (16, 48), "float32") and tasks[0].workload == (tasks[0].name, *tasks[0].args)
    space = tasks[0].config_space
    points = [space.get(n) for n in range(len(space))]
    assert len(points) > 4 and {space.entity(p.point).choice == p.choice for p in points} == {True}
    every = {p.key for p in space.points.enumerate()}
    assert {p.point.key for p in points} == every
    for number in (-1, 10**9):
        with pytest.raises(IndexError, match="no"):
            space.get(number)
    entity = points[1]
    assert autotvm.ConfigEntity.from_json_dict(json.loads(json.dumps(entity.to_json_dict()))) == entity
    name, value = next(iter(entity.choice.items()))
    assert entity[name].val == value and len(entity.get_flatten_feature()) and f"{name}: " in repr(space)


@pytest.mark.parametrize("op", ["nn.dense", relay.nn.dense, relay.op.nn.dense, relay.op.get("nn.dense")])
def test_operators_are_named_in_any_way(mod: Any, op: Any) -> None:
    assert len(autotvm.task.extract_from_program(mod, params=PARAMS, target=tvm.target.Target("llvm"), ops=[op])) == 2
    assert autotvm.task.extract_from_program(mod, params=PARAMS, target="llvm", ops=["nn.conv2d"]) == []


def test_tasks_are_created_by_name(tasks: list[Any]) -> None:
    again = autotvm.task.create(tasks[0].name, tasks[0].args, target="llvm", template_key="direct")
    assert again.kernel is tasks[0].kernel and again.target == "llvm"
    tensors = [("TENSOR", (16, 48), "float32"), ((8, 48), "float32")]
    own = autotvm.create("nn.dense", [*tensors, {"units": 8}], target="llvm")
    assert own.name == "nn.dense" and len(own.config_space) > 1
    with pytest.raises(tvm.TVMError, match=r"there is no task nn\.dens with these arguments") as wrong:
        autotvm.task.create("nn.dens", tensors, target="llvm")
    assert "did you mean nn.dense?" in str(wrong.value)
    with pytest.raises(tvm.TVMError, match="3 is no tensor"):
        autotvm.task.create("nn.dense", [3, 4], target="llvm")
    with pytest.raises(tvm.TVMError, match="not for ethos-u"):
        autotvm.task.extract_from_program(relay.parse(TEXT), params=PARAMS, target="ethos-u")


@pytest.mark.parametrize("make", [GATuner, RandomTuner, GridSearchTuner, XGBTuner])
def test_tuners_write_logs_that_programs_take(mod: Any, tasks: list[Any], make: Any, tmp_path: Path, capsys: Any) -> None:
    if make is XGBTuner:
        pytest.importorskip("xgboost", reason="the extra `tune` brings XGBoost")
    log, best, text = tmp_path / "all.log", str(tmp_path / "best.log"), io.StringIO()
    seen: list[int] = []
    monitor = autotvm.callback.Monitor()
    for task in tasks:
        tuner = make(task)
        callbacks = [
            autotvm.callback.progress_bar(6, prefix="[Task]"),
            autotvm.callback.log_to_file(log),
            autotvm.callback.log_to_file(text),
            monitor,
            lambda tuner, inputs, results: seen.append(len(inputs)),
        ]
        tuner.tune(n_trial=6, early_stopping=None, measure_option=OPTION, callbacks=callbacks)
        assert tuner.best_config.choice == tuner.best_measure_pair[0].config.choice and tuner.best_flops > 0
    assert seen == [1] * 12 and len(monitor.trial_scores()) == 12 and log.read_text() == text.getvalue()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and all("GFLOPS | Progress: (6/6)" in line and line.endswith("Done.") for line in lines)
    pairs = list(autotvm.record.load_from_file(log))
    assert len(pairs) >= 14 and {inp.task.name for inp, _ in pairs} == {task.name for task in tasks}
    errors = {result.error_no for _, result in pairs}
    assert errors <= {MeasureErrorNo.NO_ERROR, MeasureErrorNo.RUN_TIMEOUT}
    autotvm.record.pick_best(str(log), best)
    kept = list(autotvm.record.load_from_file(best))
    assert len(kept) == 4 and [autotvm.record.decode(autotvm.record.encode(*pair))[0].config for pair in kept] == [
        inp.config for inp, _ in kept
    ]
    x = np.ones((16, 48), "float32")
    wanted = relay.build(mod, "llvm", params=PARAMS).run(x=x)
    for given in (best, Path(best), [best], pairs, io.StringIO(text.getvalue()), [str(log), best]):
        with autotvm.apply_history_best(given) as context:
            assert autotvm.DispatchContext.current is context
            choice = context.query(tasks[0].target, tasks[0].workload).choice
            lib = relay.build(mod, "llvm", params=PARAMS)
        assert choice and np.allclose(lib.run(x=x), wanted)
    assert autotvm.DispatchContext.current is None


def test_programs_take_the_best_records_inside_of_the_block(mod: Any, tasks: list[Any], tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    default = relay.build(mod, "llvm -num-threads=1", params=PARAMS).lib.get_source()
    for task in tasks:
        GridSearchTuner(task).tune(10**6, OPTION, callbacks=[autotvm.callback.log_to_file(log)])

    def source() -> str:
        return str(relay.build(mod, "llvm -num-threads=1", params=PARAMS).lib.get_source())

    with autotvm.apply_history_best(log):
        tuned = source()
        with autotvm.FallbackContext():
            inner = source()
        with tvm.autotvm.tophub.context("llvm"):
            assert source() == default
        with auto_scheduler.ApplyHistoryBest(log, n_lines=0):
            assert source() == default
        again = source()
    assert tuned == again != default == inner == source()


def test_logs_that_are_none(mod: Any, tmp_path: Path) -> None:
    log, other = tmp_path / "tvm.log", tmp_path / "notes"
    log.write_text('{"input": ["llvm", "dense", [], {}], "config": {}, "result": [[1.0], 0, 1.0, 1.0], "version": 0.2}\n')
    other.write_text("my notes\n")
    for block in (autotvm.apply_history_best, auto_scheduler.ApplyHistoryBest, autotvm.apply_graph_best):
        with pytest.warns(UserWarning, match="does not read logs of TVM's tuners"), block(str(log)):
            assert relay.build(mod, target="llvm", params=PARAMS)
        for path, says in ((other, "is no log"), (tmp_path / "none", "cannot read the log")):
            with pytest.raises(tvm.TVMError, match=says):
                block(str(path))
    with pytest.raises(tvm.TVMError, match="the line of a log is no JSON"):
        autotvm.record.decode("nonsense")


def test_kernels_without_a_record_are_named(mod: Any, tasks: list[Any], tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    RandomTuner(tasks[0]).tune(2, OPTION, callbacks=[autotvm.callback.log_to_file(log)])
    with pytest.warns(UserWarning, match="1 of 2 kernels with knobs have no record"), autotvm.apply_history_best(log):
        relay.build(mod, "llvm", params=PARAMS)


def test_a_tuner_of_a_script(tasks: list[Any]) -> None:
    class Odd(Tuner):  # type: ignore[misc, valid-type]
        """Proposes every second point, the first one over and over."""

        def __init__(self, task: Any) -> None:
            super().__init__(task)
            self.next, self.results = 1, list[Any]()

        def has_next(self) -> bool:
            return self.next < 12

        def next_batch(self, batch_size: int) -> list[Any]:
            self.next += 2
            return [self.task.config_space.get(n) for n in (1, self.next)]

        def update(self, inputs: Any, results: Any) -> None:
            self.results += results

    tuner = Odd(tasks[0])
    tuner.tune(n_trial=100, measure_option=OPTION, early_stopping=50)
    assert len(tuner.results) >= 5 and tuner.best_cost == min(r.costs[0] for r in tuner.results if not r.error_no)
    with pytest.raises(tvm.TVMError, match="Tuner proposes no points"):
        Tuner(tasks[0]).tune(1, OPTION)


def test_wrong_arguments_of_tuners(tasks: list[Any]) -> None:
    for call, says in (
        (lambda: autotvm.measure_option("remote", "local"), "takes a builder"),
        (lambda: autotvm.measure_option("local", 3), "takes a runner"),
        (lambda: autotvm.LocalBuilder(build_func="nvcc"), "no build_func nvcc"),
        (lambda: XGBTuner(tasks[0], loss_type="best"), "no loss best"),
        (lambda: RandomTuner(tasks[0], range_idx=(0, 3)), "no range"),
    ):
        with pytest.raises(tvm.TVMError, match=says):
            call()
    with pytest.raises(ValueError, match="there is no prefix"):
        autotvm.callback.progress_bar(3, si_prefix="X")
    with pytest.raises(AttributeError, match="register_compute"):
        autotvm.template  # noqa: B018


def test_runners_of_a_farm(tasks: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is a resource of Dask's workers."""
    calls: list[tuple[Any, ...]] = []

    def farm(*arguments: Any) -> Fake:
        calls.append(arguments)
        return Fake()

    monkeypatch.setattr("relaylang.tvm.autotvm.measure.FarmMeasurer", farm)
    for runner in (autotvm.RPCRunner("rpi4", "host", 9190), auto_scheduler.RPCRunner("rpi4", host="host", port=9190)):
        RandomTuner(tasks[0]).tune(2, autotvm.measure_option(autotvm.LocalBuilder(timeout=7), runner))
    assert [call[:2] for call in calls] == [("tcp://host:9190", {"rpi4": 1.0})] * 2 and calls[0][2]["build"] == 7


def test_a_model_learns_from_a_log(tasks: list[Any], tmp_path: Path) -> None:
    pytest.importorskip("xgboost", reason="the extra `tune` brings XGBoost")
    log = str(tmp_path / "log")
    GridSearchTuner(tasks[0]).tune(20, OPTION, callbacks=[autotvm.callback.log_to_file(log)])
    tuner = XGBTuner(tasks[1], loss_type="rank")
    with pytest.warns(UserWarning, match="fewer than min_seed_records=500"):
        tuner.load_history(autotvm.record.load_from_file(log))
    tuner.load_history(autotvm.record.load_from_file(log), min_seed_records=5)
    tuner.tune(4, OPTION)
    assert tuner.transfer and tuner.best_config is not None


def test_the_graph_tuner_keeps_the_best_records(mod: Any, tasks: list[Any], tmp_path: Path) -> None:
    log, best = str(tmp_path / "log"), str(tmp_path / "graph.log")
    for task in tasks:
        RandomTuner(task).tune(4, OPTION, callbacks=[autotvm.callback.log_to_file(log)])
    executor = DPTuner(mod["main"], {"x": (16, 48)}, log, [relay.op.get("nn.dense")], "llvm")
    executor.benchmark_layout_transform(min_exec_num=2)
    executor.run()
    executor.write_opt_sch2record_file(best)
    with autotvm.apply_graph_best(best):
        assert relay.build(mod, "llvm", params=PARAMS)


class Turns(TaskSchedulerCallback):  # type: ignore[misc, valid-type]
    """Gathers which task's trials begin and end."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def pre_tune(self, task_scheduler: Any, task_id: int) -> None:
        self.calls.append(("pre", task_id))

    def post_tune(self, task_scheduler: Any, task_id: int) -> None:
        self.calls.append(("post", task_id))


@pytest.mark.parametrize("policy", ["default", "sketch.random", "policies"])
def test_the_auto_scheduler_searches_all_tasks(mod: Any, policy: Any, tmp_path: Path, capsys: Any) -> None:
    log, latency = str(tmp_path / "log.json"), str(tmp_path / "latency.tsv")
    tasks, weights = auto_scheduler.extract_tasks(mod["main"], PARAMS, tvm.target.Target("llvm"))
    assert weights == [1, 1] and all("nn.dense" in str(task.compute_dag) and task.compute_dag.flop_ct for task in tasks)
    if policy == "policies":
        policy = [auto_scheduler.SketchPolicy(t, program_cost_model=auto_scheduler.RandomModel()) for t in tasks]
    turns, context = Turns(), auto_scheduler.LocalRPCMeasureContext(min_repeat_ms=300)
    tuner = auto_scheduler.TaskScheduler(tasks, weights, callbacks=[PrintTableInfo(), LogEstimatedLatency(latency), turns])
    options = auto_scheduler.TuningOptions(
        num_measure_trials=12, runner=context.runner, measure_callbacks=[auto_scheduler.RecordToFile(log)]
    )
    tuner.tune(options, search_policy=policy)
    assert tuner.ct == 12 and tuner.cur_score == pytest.approx(sum(tuner.best_costs)) and max(tuner.best_costs) <= 1e-3
    assert turns.calls[::2] == [("pre", n) for _, n in turns.calls[1::2]] and "EstimatedLatency(ms)" in Path(latency).read_text()
    assert "Estimated total latency" in capsys.readouterr().out
    inp, result = auto_scheduler.load_best_record(log, tasks[0].workload_key)
    assert result.costs[0] == pytest.approx(tuner.best_costs[0]) and tasks[0].apply_best(log) == inp.state
    assert " = " in tasks[0].print_best(log) and len(list(auto_scheduler.load_records(log))) >= 14
    resumed = auto_scheduler.TaskScheduler(tasks, weights, load_log_file=log, callbacks=[])
    resumed.tune(auto_scheduler.TuningOptions(num_measure_trials=12, verbose=0))
    assert resumed.ct == 12 and resumed.best_costs == pytest.approx(tuner.best_costs)
    other = tmp_path / "other.json"
    other.write_text(Path(log).read_text().replace(json.dumps(processor()), '"another processor"'))
    again = auto_scheduler.TaskScheduler(tasks, weights, load_log_file=str(other), callbacks=[])
    again.tune(auto_scheduler.TuningOptions(num_measure_trials=4, verbose=0))
    assert again.ct == 4
    config = {"relay.backend.use_auto_scheduler": True}
    with auto_scheduler.ApplyHistoryBest(log), tvm.transform.PassContext(opt_level=3, config=config):
        assert auto_scheduler.is_auto_scheduler_enabled()
        assert relay.build(mod, target="llvm", params=PARAMS)


def test_wrong_calls_of_the_auto_scheduler(mod: Any, tmp_path: Path) -> None:
    tasks, _ = auto_scheduler.extract_tasks(mod, PARAMS, "llvm")
    for call, says in (
        (lambda: auto_scheduler.SearchTask(func=len, args=(1,), target="llvm"), "no tensor expressions"),
        (lambda: auto_scheduler.TaskScheduler(tasks, [1]), "1 weights for 2 tasks"),
        (lambda: auto_scheduler.RecordToFile(str(tmp_path / "none" / "log")), "cannot write the log"),
        (lambda: auto_scheduler.TaskScheduler(tasks).tune(auto_scheduler.TuningOptions(1), "best"), "no search policy 'best'"),
        (lambda: auto_scheduler.TaskScheduler(tasks).tune(auto_scheduler.TuningOptions(1, runner="far")), "takes a runner"),
        (lambda: tasks[0].apply_best(str(tmp_path / "none")), "cannot read the log"),
    ):
        with pytest.raises(tvm.TVMError, match=says):
            call()
    with pytest.raises(AttributeError, match="register_compute"):
        auto_scheduler.register_workload  # noqa: B018


@pytest.mark.parametrize("backend", ["graph", "vm"])
def test_meta_schedule_tunes_and_compiles(mod: Any, backend: str, tmp_path: Path) -> None:
    with ms.Profiler() as profiler:
        database = ms.relay_integration.tune_relay(
            mod, PARAMS, "llvm", work_dir=str(tmp_path / "work"), max_trials_global=10, max_trials_per_task=6
        )
    assert set(profiler.get()) == {"TaskExtraction", "Search", "Total"} and "Search" in profiler.table()
    records = database.get_all_tuning_records()
    assert len(database) == len(records) >= 10
    again = ms.database.JSONDatabase(work_dir=str(tmp_path / "work"))
    assert again.get_all_tuning_records() == records
    fastest = again.get_top_k(records[0].workload, 2)
    assert len(fastest) == 2 and fastest[0].run_secs <= fastest[1].run_secs
    lib = ms.relay_integration.compile_relay(again, mod, "llvm", PARAMS, backend=backend)
    x = np.ones((16, 48), "float32")
    wanted = relay.build(mod, "llvm", params=PARAMS).run(x=x)
    run = lib.run(x=x) if backend == "graph" else relay.vm.VirtualMachine(lib, tvm.cpu()).invoke("main", x).numpy()
    assert np.allclose(run, wanted)


def test_meta_schedule_in_memory_and_wrong_calls(mod: Any, tmp_path: Path) -> None:
    tune = ms.relay_integration.tune_relay
    found = tune(mod, PARAMS, "llvm", str(tmp_path), 3, database="memory", cost_model="random", seed=3)
    assert len(found) >= 3 and not list(tmp_path.iterdir())
    for options, says in (({"runner": "rpc"}, "runner='rpc' is not here"), ({"database": "union"}, "no database of the kind union")):
        with pytest.raises(tvm.TVMError, match=says):
            tune(mod, PARAMS, "llvm", str(tmp_path), 3, **options)
    with pytest.raises(tvm.TVMError, match="there is no backend aot"):
        ms.relay_integration.compile_relay(found, mod, "llvm", PARAMS, backend="aot")


def test_scripts_may_set_the_state_and_the_logger() -> None:
    logging.getLogger("autotvm").setLevel(logging.WARNING)
    autotvm.GLOBAL_SCOPE.silent = True
    assert autotvm.env.GLOBAL_SCOPE is autotvm.GLOBAL_SCOPE and autotvm.tophub.load_reference_log("x86", "x", "y") == []
