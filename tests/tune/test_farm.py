"""A farm: processes of Dask's worker on this machine, one of which is killed in the middle of its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relaylang.backends.cpu.tuning_log import Log, load
from relaylang.diagnostics import RelayError
from relaylang.tune import FarmMeasurer, search
from relaylang.tune.farm import resources_of
from tests.shared import PATIENCE
from tests.tune.test_measure import one_task


def test_resources() -> None:
    assert resources_of("avx2=1, big=2.5 gpu") == {"avx2": 1.0, "big": 2.5, "gpu": 1.0} and resources_of(None) == {}
    with pytest.raises(RelayError, match="`avx2=many` is no resource"):
        resources_of("avx2=many")


def test_nobody_answers() -> None:
    pytest.importorskip("distributed", reason="the extra `farm` brings Dask")
    for address in ("tcp://127.0.0.1:9", "nonsense://x", "http//"):
        with pytest.raises(RelayError, match="no Dask scheduler answers at") as caught:
            FarmMeasurer(address)
        assert caught.value.diagnostics[0].code == "R0645"


class Farm:
    """A scheduler and workers, as processes with files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", module, *arguments]
        log = (self.folder / f"{len(self.processes)}.txt").open("wb")
        environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10"}
        process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=environment)
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    pytest.importorskip("distributed", reason="the extra `farm` brings Dask")
    found = Farm(tmp_path)
    file = tmp_path / "scheduler.json"
    try:
        found.start(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
        )
        workers = [
            found.start(
                "distributed.cli.dask_worker",
                "--scheduler-file",
                str(file),
                "--no-nanny",
                "--no-dashboard",
                "--nthreads",
                "1",
                "--resources",
                f"avx2=1 number{n}=1",
                "--local-directory",
                str(tmp_path),
            )
            for n in range(2)
        ]
        found.workers = workers  # type: ignore[attr-defined]
        found.file = str(file)  # type: ignore[attr-defined]
        yield found
    finally:
        found.end()


@pytest.mark.sweep
def test_a_farm_loses_a_worker_and_no_record(farm: Any, tmp_path: Path) -> None:
    import distributed

    with distributed.Client(scheduler_file=farm.file, timeout=PATIENCE, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        with pytest.raises(RelayError, match="the farm has no worker with amx=1"):
            FarmMeasurer(client, "amx=1")
        task = one_task()
        killed = []

        def watch(state: Any, states: Any) -> None:
            if state.trials == 1 and not killed:
                killed.append(True)
                os.kill(farm.workers[1].pid, signal.SIGKILL)

        path = str(tmp_path / "log.jsonl")
        with FarmMeasurer(client, "avx2=1", {"pairs": 1, "milliseconds": 0.01}) as measurer, Log(path) as log:
            assert measurer.batch == 4
            outcome = search([task], measurer, log, tuner="grid", watch=watch)
        records, notes = load(path)
    space_size = len({tuple(sorted(r.choice.items())) for r in records})
    assert killed and not notes and all(r.failure is None and r.cpu for r in records)
    assert outcome.reason == "all is searched" and space_size == outcome.states[0].trials + 1
