"""A farm of processes on this machine: a killed worker, a scheduler that starts again, and addresses of something else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relaylang.backends.cpu.tuning_log import Log, load
from relaylang.diagnostics import RelayError
from relaylang.syntax import parse
from relaylang.tune import FarmMeasurer, Task, extract_tasks, search
from relaylang.tune.farm import resources_of
from tests.shared import PATIENCE

#: Dask waits 30 seconds for connections to a lost worker, and doubts a task after three lost workers.
CONFIG = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "20s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10",
}
TRIALS = 10
LIMITS = {"pairs": 1, "milliseconds": 0.01, "build": 300.0, "run": 300.0}


def test_resources() -> None:
    assert resources_of("avx2=1, big=2.5 gpu") == {"avx2": 1.0, "big": 2.5, "gpu": 1.0} and resources_of(None) == {}
    with pytest.raises(RelayError, match="`avx2=many` is no resource"):
        resources_of("avx2=many")


@pytest.mark.sweep
def test_addresses_of_no_scheduler() -> None:
    pytest.importorskip("distributed", reason="the extra `farm` brings Dask")
    for address in ("tcp://127.0.0.1:9", "nonsense://x", "http//"):
        with pytest.raises(RelayError, match="no Dask scheduler answers at") as caught:
            FarmMeasurer(address)
        assert caught.value.diagnostics[0].code == "R0645"


@pytest.mark.sweep
def test_a_tracker_of_tvm_is_named() -> None:
    """It closes the connection of whoever does not begin as its clients do, and answers these with the same number."""
    pytest.importorskip("distributed", reason="the extra `farm` brings Dask")
    number = (0x2F271).to_bytes(4, "little")

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                if connection.recv(4) == number:
                    connection.sendall(number)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(RelayError, match="a tracker of TVM answers at"):
            FarmMeasurer(f"tcp://127.0.0.1:{server.getsockname()[1]}")


def test_other_versions_are_named() -> None:
    pytest.importorskip("distributed", reason="the extra `farm` brings Dask")

    def about(relaylang: str | None, distributed: str = "1") -> dict[str, Any]:
        return {"packages": {"relaylang": relaylang, "distributed": distributed}}

    class Client:
        def get_versions(self, packages: list[str]) -> dict[str, Any]:
            return {
                "client": about("2"),
                "scheduler": about(None),
                "workers": {"one": about("2"), "two": about("1", "3"), "three": about(None)},
            }

    with pytest.raises(RelayError, match="the farm has other versions of its packages") as caught:
        FarmMeasurer(Client())
    assert caught.value.diagnostics[0].notes == (
        "the worker two has distributed 3, and this process 1",
        "the worker two has relaylang 1, and this process 2",
        "the worker three has relaylang not installed, and this process 2",
    )


class Farm:
    """A scheduler and two workers, as processes with files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker(number) for number in range(2)]

    def start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-m", f"distributed.cli.{module}", "--no-dashboard", *arguments]
        with (self.folder / f"{len(self.processes)}.txt").open("wb") as log:
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env={**os.environ, **CONFIG})
        self.processes.append(process)
        return process

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        return self.start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port))

    def start_worker(self, number: int) -> subprocess.Popen[bytes]:
        resources = ["--resources", f"avx2=1 number{number}=1", "--local-directory", str(self.folder)]
        return self.start("dask_worker", self.address, "--no-nanny", "--nthreads", "1", *resources)

    def wait(self) -> None:
        """Wait until both workers are there."""
        import distributed

        with distributed.Client(self.address, timeout=PATIENCE, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=PATIENCE)

    def end(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    pytest.importorskip("distributed", reason="the extra `farm` brings Dask")
    made = Farm(tmp_path)
    try:
        made.wait()
        yield made
    finally:
        made.end()


def product() -> Task:
    """A kernel with more points than are measured."""
    text = "def @main(%x: Tensor[(16, 48), float32], %w: Tensor[(8, 48), float32]) { nn.dense(%x, %w, units=8) }"
    mod = parse(text).module
    assert mod is not None
    return extract_tasks(mod, "c -cflags=-O0", ["w"])[0]


def searched(farm: Farm, disturb: Callable[[], None]) -> None:
    """Measure trials on the farm, and disturb it after the first one."""
    calls: list[bool] = []

    def watch(state: Any, states: Any) -> None:
        if state.trials == 1 and not calls:
            calls.append(True)
            disturb()

    path = str(farm.folder / "log.jsonl")
    with FarmMeasurer(farm.address, "avx2=1", LIMITS) as measurer, Log(path) as log:
        assert measurer.batch == 8
        outcome = search([product()], measurer, log, trials=TRIALS, tuner="grid", watch=watch)
    records, notes = load(path)
    assert calls and not notes and outcome.states[0].trials == TRIALS
    assert all(r.failure is None and r.cpu for r in records), records
    assert len({tuple(sorted(r.choice.items())) for r in records}) == TRIALS + 1


@pytest.mark.sweep
def test_a_lost_worker_loses_no_record(farm: Farm) -> None:
    with pytest.raises(RelayError, match="the farm has no worker with amx=1"):
        FarmMeasurer(farm.address, "amx=1")
    searched(farm, lambda: os.kill(farm.workers[1].pid, signal.SIGKILL))


@pytest.mark.sweep
def test_a_scheduler_that_starts_again_loses_no_record(farm: Farm) -> None:
    def disturb() -> None:
        for process in farm.processes:
            process.kill()
            process.wait()
        farm.start_scheduler()
        for number in range(2):
            farm.start_worker(number)

    searched(farm, disturb)
