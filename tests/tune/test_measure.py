"""Measuring: drift cancels, failures are named, nothing that a candidate does ends the search."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.program import Run
from relaylang.ir import IRModule
from relaylang.runtime.processes import apart
from relaylang.syntax import parse
from relaylang.tune import LocalMeasurer, Task, extract_tasks, space_of
from relaylang.tune.measure import Process
from relaylang.tune.task import target_of, task_of
from relaylang.tune.worker import LIMITS, answered, compare, difference, interval

SECONDS = {"build": 60.0, "run": 60.0}


def module() -> IRModule:
    mod = parse("def @main(%x: Tensor[(4, 12), float32]) { exp(transpose(%x, axes=None)) }").module
    assert mod is not None
    return mod


def one_task() -> Task:
    return extract_tasks(module(), "c -cflags=-O0")[0]


def programs(ratio: float) -> tuple[Callable[[int], float], Callable[[int], float], Callable[[], float]]:
    """A candidate and a reference on a machine that slows down to a tenth, and its clock."""
    calls = count(1)

    def reference(number: int) -> float:
        return 1e-3 * (1 + next(calls) / 3)

    return lambda number: ratio * reference(number), reference, lambda: 0.0


@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.0, 1.7])
def test_drift_cancels(ratio: float) -> None:
    candidate, reference, clock = programs(ratio)
    found = compare(candidate, reference, {**LIMITS, "pairs": 40}, best=1.0, clock=clock)
    assert found["low"] <= found["ratio"] <= found["high"] and found["ratio"] == pytest.approx(ratio, rel=0.05)


def test_what_is_clearly_slower_is_soon_left() -> None:
    pairs = [compare(*programs(r)[:2], LIMITS, best=0.8, clock=lambda: 0.0)["pairs"] for r in (9.0, 2.0, 0.8)]
    assert pairs == [1, LIMITS["least"], LIMITS["pairs"]]


def test_disturbances_do_not_count() -> None:
    ratio, low, high = interval([0.8, 0.81, 0.79, 0.8, 7.0, 0.8, 0.1, 0.8])
    assert ratio == pytest.approx(0.8) and low < 0.8 < high and high - low < 0.03


@pytest.mark.parametrize(
    ("ours", "theirs", "wrong"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), None),
        (np.float32([1, 2.00001]), np.float32([1, 2]), None),
        (np.float32([1, 2.01]), np.float32([1, 2]), "differs by 0.01"),
        (np.float32([1, np.nan]), np.float32([1, 2]), "infinite values or nans"),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), None),
        (np.float32([np.inf]), np.float32([-np.inf]), "infinite values or nans"),
        (np.int8([1, 2]), np.int8([1, 2]), None),
        (np.int8([1, 3]), np.int8([1, 2]), "1 other values"),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), None),
    ],
)
def test_results_are_compared(ours: np.ndarray, theirs: np.ndarray, wrong: str | None) -> None:
    found = difference([ours], [theirs])
    assert found is None if wrong is None else wrong in (found or "")


def test_a_fork_answers_and_ends() -> None:
    assert apart(lambda say: {"is": os.getpid() != parent}, SECONDS, "build").answer == {"is": True}


parent = os.getpid()


def crash(say: Callable[[str], None]) -> dict[str, Any]:
    say("run")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def hang(say: Callable[[str], None]) -> dict[str, Any]:
    say("run")
    time.sleep(1000)
    return {}


def test_a_crash_and_a_hang_are_named() -> None:
    ended = apart(crash, SECONDS, "build")
    assert (ended.answer, ended.phase, ended.how, ended.late) == (None, "run", "SIGKILL", False)
    ended = apart(hang, {"build": 60.0, "run": 0.05}, "build")
    assert (ended.answer, ended.phase, ended.late) == (None, "run", True)
    assert apart(lambda say: 1 / 0, SECONDS, "build").how == "status 1"  # type: ignore[arg-type, return-value]


def test_memory_has_a_limit() -> None:
    def much(say: Callable[[str], None]) -> dict[str, Any]:
        try:
            return {"got": len(bytearray(1 << 30))}
        except MemoryError:
            return {"got": 0}

    assert apart(much, SECONDS, "build", 100 << 20).answer == {"got": 0}


def test_a_task_is_data() -> None:
    task = one_task()
    again = task_of(task.json())
    assert again == task and again.lower().key == task.key and again.tunable
    kernel = again.lower({"loops0.tile": 8, "nonsense": 3})
    assert "nonsense" not in kernel.space.choice


def test_a_task_is_lowered_as_in_its_program() -> None:
    """For the instruction set with all of its features: products of bytes depend on them."""
    text = """def @main(%x: Tensor[(1, 6, 6, 32), int8], %w: Tensor[(3, 3, 32, 32), int8]) {
      qnn.conv2d(%x, %w, 3, 0, 0.1f, 0.1f, channels=32, kernel_size=[3, 3],
        data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32")
    }"""
    mod = parse(text).module
    assert mod is not None
    for processor, has in (("skylake-avx512", False), ("icelake-server", True)):
        target = f"c -mcpu={processor}"
        (task,) = (t for t in extract_tasks(mod, target, ["w"]) if t.tunable)
        options = target_of(target).options
        (run,) = (
            i for i in lower_module(mod, "main", ["w"], Compiler(options).isa).run if isinstance(i, Run) and i.kernel.key == task.key
        )
        kernel = task_of(task.json()).lower()
        assert ("vnni" in task.features) is has
        assert kernel.space.knobs == run.kernel.space.knobs and kernel.space.choice == run.kernel.space.choice
        assert [(p.target.size, p.target.dtype) for p in kernel.packs] == [(p.target.size, p.target.dtype) for p in run.kernel.packs]


@pytest.fixture
def process() -> Iterator[Process]:
    found = Process()
    yield found
    found.close()


@pytest.mark.sweep
def test_a_worker_that_was_killed_starts_again(process: Process) -> None:
    request = {"task": one_task().json(), "choice": {}, "phase": "build"}
    assert process.answer(request)["built"]
    os.kill(process._process.pid, signal.SIGKILL)
    assert process.answer(request)["built"]


@pytest.mark.sweep
def test_every_point_of_a_space_is_measured() -> None:
    task = one_task()
    space = space_of(task)
    with LocalMeasurer({"pairs": 1, "milliseconds": 0.01}, builders=1) as measurer:
        found = list(measurer.measure(task, list(space.enumerate())))
    assert len(found) == space.size() > 1 and all(m.failure is None and m.ratio and m.machine for m in found), found


def test_what_fails_is_said() -> None:
    task = one_task()
    other = "avx512" if task.isa != "avx512" else "avx2"
    request = {"task": task.json().replace(f'"isa": "{task.isa}"', f'"isa": "{other}"'), "choice": {}}
    found = answered(request)
    assert found["failure"] == "error" and "label the workers" in found["message"]
    found = answered({"task": replace(task, features=("none",)).json(), "choice": {}})
    assert found["failure"] == "error" and f"lowered for {task.isa} with none" in found["message"]
    broken = task.json().replace("-O0", "-fno-such-flag")
    assert answered({"task": broken, "choice": {}})["failure"] in ("compiler", "error")
    late = answered({"task": task.json(), "choice": {}, "limits": {"build": 0.0}})
    assert late == {"failure": "timeout", "message": "the compilation takes more than 0 seconds"}
