"""Compiled programs in long-lived processes: forks, unloading, signals, numbers of threads, copies."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.runtime import cpu, machine
from relaylang.runtime.artifact import load
from relaylang.runtime.cpu import CpuArtifact
from relaylang.syntax import parse

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads and mappings are counted as Linux shows them"),
    # Python 3.12 warns of forks in processes with threads: this module tests them
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

NETWORK = """#[version = "0.0.5"]
def @main(%x: Tensor[(40, 60), float32], %w: Tensor[(50, 60), float32]) { nn.relu(nn.dense(%x, %w, units=50)) }
"""
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 60)).astype("f4")
W = RNG.standard_normal((50, 60)).astype("f4")


def network(text: str = NETWORK) -> IRModule:
    mod = parse(text).module
    assert mod is not None
    return mod


def compiled(target: str = "c", threads: int | None = None) -> CpuArtifact:
    # Every kernel of more than one unit wakes threads, however short it is.
    artifact = compile_module(network(), target, {"w": W}, {"cflags": "-O1 -DR_WAKE=1 -DR_HAND=1"})
    assert isinstance(artifact, CpuArtifact)
    artifact.threads = threads  # type: ignore[assignment]
    return artifact


WANTED = evaluate(network(), X, W)


def right(found: Any) -> bool:
    return bool(np.allclose(found, WANTED, rtol=1e-5, atol=1e-5))


def tasks() -> int:
    return len(os.listdir("/proc/self/task"))


def in_child(work: Callable[[], bool], seconds: int = 60) -> bool:
    """Whether a forked process finds something true; False where it hangs or dies."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(seconds)
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


# Forks


def test_a_fork_behind_a_run_has_threads_of_its_own() -> None:
    artifact = compiled(threads=3)
    assert right(artifact.run(X))

    def work() -> bool:
        before = tasks()
        good = all(right(artifact.run(X)) for _ in range(20))
        # Also where it forks again.
        return good and tasks() == before + 2 and in_child(lambda: right(artifact.run(X)))

    assert in_child(work)
    assert right(artifact.run(X))


@pytest.mark.sweep
def test_a_fork_while_other_threads_run() -> None:
    artifact = compiled(threads=3)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            artifact.run(X)

    others = [threading.Thread(target=work) for _ in range(2)]
    for thread in others:
        thread.start()
    try:
        for _ in range(10):
            assert in_child(lambda: right(artifact.run(X)) and right(artifact.run(X)))
    finally:
        stop.set()
        for thread in others:
            thread.join()
    assert right(artifact.run(X))


def test_first_runs_of_a_forked_process_on_several_threads() -> None:
    artifact = compiled(threads=2)
    artifact.run(X)

    def work() -> bool:
        found: list[bool] = []
        threads = [threading.Thread(target=lambda: found.append(right(artifact.run(X)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return found == [True] * 4

    assert in_child(work)


def test_a_forked_process_may_unload() -> None:
    held = [compiled(threads=3)]
    assert right(held[0].run(X))

    def work() -> bool:
        again = pickle.loads(pickle.dumps(held.pop()))
        gc.collect()
        return right(again.run(X))

    assert in_child(work)
    assert right(held[0].run(X))


_SHARED: CpuArtifact | None = None


def _run_shared(_: int) -> bool:
    assert _SHARED is not None
    return right(_SHARED.run(X))


def _run_given(artifact: CpuArtifact) -> bool:
    return right(artifact.run(X))


def test_pools_of_processes() -> None:
    global _SHARED
    _SHARED = compiled(threads=2)
    try:
        _SHARED.run(X)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map_async(_run_shared, range(8)).get(60) == [True] * 8
            assert pool.map_async(_run_given, [_SHARED] * 4).get(60) == [True] * 4
    finally:
        _SHARED = None


# Unloading


def mappings() -> int:
    """The mappings of libraries that were loaded from memory."""
    return sum("relay-" in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_threads_and_code_go_with_the_last_reference() -> None:
    gc.collect()
    before, threads = mappings(), tasks()
    artifact = compiled(threads=3)
    for _ in range(40):
        again = pickle.loads(pickle.dumps(artifact))
        assert right(again.run(X))
        assert mappings() > before and tasks() <= threads + 4
    del again, artifact
    assert (mappings(), tasks()) == (before, threads)


def test_what_outlives_a_program() -> None:
    """Results, views of them, weights, and a method that outlives everything else."""
    gc.collect()
    before = mappings()
    artifact = compiled(threads=2)
    found = artifact.run(X)
    view, weights, run = found[::-1].T, artifact.params["w"], artifact.run
    same, own = copy.copy(artifact), copy.deepcopy(artifact)
    del artifact, found
    assert mappings() > before
    assert right(run(X)) and right(same.run(X))
    del run, same
    assert mappings() > before
    assert right(own.run(X))
    del own
    assert mappings() == before
    assert right(view.T[::-1])
    np.testing.assert_array_equal(weights, W)


def test_a_program_that_goes_while_it_runs() -> None:
    """The last reference is that of a run in another thread."""
    artifact = [compiled(threads=2)]
    found: list[bool] = []
    begun = threading.Event()

    def work(run: Callable[..., Any]) -> None:
        begun.set()
        found.append(all(right(run(X)) for _ in range(50)))

    thread = threading.Thread(target=work, args=(artifact[0].run,))
    thread.start()
    begun.wait()
    artifact.clear()
    thread.join()
    assert found == [True]


# Signals


def test_threads_take_no_signals() -> None:
    artifact = compiled(threads=3)
    before = set(os.listdir("/proc/self/task"))
    artifact.run(X)
    new = set(os.listdir("/proc/self/task")) - before
    assert len(new) == 2
    for task in new:
        status = Path(f"/proc/self/task/{task}/status").read_text()
        blocked = int(status.partition("SigBlk:")[2].split()[0], 16)
        assert all(blocked >> (n - 1) & 1 for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGALRM))
    own = Path("/proc/self/status").read_text().partition("SigBlk:")[2].split()[0]
    assert int(own, 16) == 0


# Numbers of threads


def woken() -> dict[str, int]:
    """How often each thread of the process has slept."""
    out = {}
    for task in os.listdir("/proc/self/task"):
        status = Path(f"/proc/self/task/{task}/status").read_text()
        out[task] = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return out


def test_the_number_of_threads_is_chosen_when_it_is_loaded_or_run(tmp_path: Path) -> None:
    artifact = compiled()
    assert artifact.threads == machine.usable_cpus()
    for name in ("net.so", "net.tar"):
        artifact.save(tmp_path / name)
        before = tasks()
        again = load(tmp_path / name, threads=4)
        assert again.threads == 4 and right(again.run(X)) and tasks() == before + 3
        again.threads = 1
        assert right(again.run(X))
        again.threads = None
        assert again.threads == machine.usable_cpus()
        assert load(tmp_path / name).threads == machine.usable_cpus()
        for wrong in (0, -1, 5000, 2.0, "2", True):
            with pytest.raises(RelayError, match="number of threads"):
                load(tmp_path / name, threads=wrong)  # type: ignore[arg-type]
        del again
    single = compiled("c -num-threads=1")
    before = tasks()
    assert single.threads == 1 and right(single.run(X)) and tasks() == before
    with pytest.raises(RelayError, match="compiled for one thread"):
        single.threads = 2
    for wrong_target in ("c -num-threads=0", "c -num-threads=-3"):
        with pytest.raises(RelayError, match="from 1 on"):
            compile_module(network(), wrong_target)


def test_no_more_threads_than_processors_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, asked, used in ((1, None, 1), (3, None, 3), (3, 2, 2), (3, 64, 3)):
        monkeypatch.setattr(cpu, "usable_cpus", lambda there=there: there)
        assert compiled("c" if asked is None else f"c -num-threads={asked}").threads == used


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is Linux's")
def test_affinity_counts() -> None:
    whole = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(whole)})
        assert machine.usable_cpus() == 1
        assert compiled().threads == 1
    finally:
        os.sched_setaffinity(0, whole)


def test_short_kernels_wake_nobody() -> None:
    """However many threads there are, a network of short kernels runs on the caller's."""
    text = "def @main(%x: Tensor[(8, 8), float32]) { nn.softmax(nn.relu(%x)) }"
    artifact = compile_module(network(text))
    assert isinstance(artifact, CpuArtifact)
    artifact.threads = 8
    x = np.ones((8, 8), "f4")
    before = set(os.listdir("/proc/self/task"))
    for _ in range(50):
        artifact.run(x)
    new = set(os.listdir("/proc/self/task")) - before
    assert len(new) == 7
    time.sleep(0.05)
    first = woken()
    for _ in range(500):
        artifact.run(x)
    assert sum(woken()[task] - first[task] for task in new) <= 20


def test_a_sleeping_thread_is_not_waited_for() -> None:
    """With far more threads than processors each run still ends, with the right values."""
    artifact = compiled(threads=64)
    assert all(right(artifact.run(X)) for _ in range(50))


# Copies


def test_copies_have_weights_of_their_own() -> None:
    artifact = compiled(threads=2)
    own = copy.deepcopy(artifact)
    own.set_params({"w": np.zeros_like(W)})
    assert right(artifact.run(X)) and not own.run(X).any()
    again = pickle.loads(pickle.dumps(own))
    assert again.threads == 2 and not again.run(X).any()
    assert right(copy.copy(artifact).run(X))
    assert pickle.loads(pickle.dumps(compiled())).threads == machine.usable_cpus()


def test_a_damaged_pickle() -> None:
    content = bytearray(pickle.dumps(compiled()))
    content[content.index(b"\x7fELF") + 5000] ^= 1
    with pytest.raises(RelayError, match="damaged"):
        pickle.loads(bytes(content))


if sys.platform == "linux":

    def test_a_group_s_quota_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "_GROUPS", tmp_path)
        monkeypatch.setattr(machine, "_OWN", tmp_path / "own")
        outer, inner = tmp_path / "a", tmp_path / "a" / "b"
        inner.mkdir(parents=True)
        (tmp_path / "own").write_text("0::/a/b\n")
        (inner / "cpu.max").write_text("max 100000\n")
        assert machine.cpu_quotas() == []
        (outer / "cpu.max").write_text("150000 100000\n")
        assert machine.cpu_quotas() == [2]
        (inner / "cpu.max").write_text("20000 100000\n")
        assert machine.usable_cpus() == 1
        (inner / "memory.max").write_text("max\n")
        (outer / "memory.max").write_text("1000000\n")
        (outer / "memory.current").write_text("400000\n")
        assert machine.available_memory() == 600_000
        # Version 1: a tree for each kind, and a quota of -1 where there is none.
        first = tmp_path / "cpu,cpuacct" / "c"
        first.mkdir(parents=True)
        (tmp_path / "own").write_text("4:cpu,cpuacct:/c\n2:memory:/gone\n")
        (first / "cpu.cfs_quota_us").write_text("-1\n")
        (first / "cpu.cfs_period_us").write_text("100000\n")
        assert machine.cpu_quotas() == []
        (first / "cpu.cfs_quota_us").write_text("300000\n")
        assert machine.cpu_quotas() == [3]
        (tmp_path / "own").write_bytes(b"\xff\n")
        assert machine.cpu_quotas() == []


DEEP = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 33, 31), float32], %w: Tensor[(24, 8, 3, 3), float32], %v: Tensor[(37, 24), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=24, kernel_size=[3, 3]));
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
  %2 = nn.dense(mean(%1, axis=[2, 3]), %v, units=37);
  (nn.softmax(%2), sum(%1, axis=[1]), cumsum(%0, axis=2))
}
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", ["c", "c -march=generic"])
def test_results_do_not_depend_on_the_number_of_threads(target: str) -> None:
    shapes = {"x": (1, 8, 33, 31), "w": (24, 8, 3, 3), "v": (37, 24)}
    values = {name: RNG.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    x = values.pop("x")
    artifact = compile_module(network(DEEP), target, values, {"cflags": "-O1 -DR_WAKE=1 -DR_HAND=1 -DR_SHARE=1"})
    assert isinstance(artifact, CpuArtifact)
    results = []
    for threads in (1, 2, 3, 5, 2):
        artifact.threads = threads
        results += [[part.tobytes() for part in artifact.run(x)] for _ in range(20)]
    assert all(result == results[0] for result in results)


def test_idle_threads_use_no_processor() -> None:
    artifact = compiled(threads=4)
    for _ in range(50):
        artifact.run(X)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    # A thread that looked out all the while would take half a second.
    assert time.process_time() - before < 0.1


def test_more_threads_than_share_a_kernel() -> None:
    artifact = compiled(threads=400)
    for _ in range(3):
        assert right(artifact.run(X))
