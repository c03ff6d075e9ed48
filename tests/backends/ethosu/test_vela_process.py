"""Crashes of Vela's native part: the call stays on the host with a note, and the user's process goes on."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.backends.ethosu import vela
from relaylang.backends.ethosu.vela_process import Failure, compiled
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.syntax import fromtext

REGOR = pytest.importorskip("ethosu.regor").__file__
#: A module in Vela's place that ends its process at graphs with a pool, and else calls Vela.
FAKE = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("ethosu.regor", {real!r})
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
def compile(architecture, model, *args, **named):
    if b"maxpool2d" in model:
        print("about to end", file=sys.stderr, flush=True)
        {end}
    return real.compile(architecture, model, *args, **named)
"""
SUM = "qnn.add(%x, %x, 0.05f, 3, 0.02f, 1, 0.05f, -12)"


def program(body: str) -> IRModule:
    return fromtext(f"def @main(%x: Tensor[(1, 4, 6, 8), int8]) {{ {body} }}", "net.relay")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a module in Vela's place that ends as a statement says."""

    def place(end: str) -> None:
        folder = tmp_path / "ethosu"
        folder.mkdir()
        (folder / "regor.py").write_text(FAKE.format(real=REGOR, end=end), encoding="utf-8")
        (folder / "config_files").symlink_to(Path(REGOR).parent / "config_files")
        monkeypatch.setattr(vela, "load", lambda *_: SimpleNamespace(__file__=str(folder / "regor.py")))

    return place


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals")
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_crash_leaves_the_call_on_the_host(fake: Any, name: str) -> None:
    fake(f"os.kill(os.getpid(), {int(getattr(signal, name))})")
    mod = program(f"%0 = {SUM}; %1 = nn.max_pool2d(%0, pool_size=[2, 2]); clip(%1, a_min=-9f, a_max=90f)")
    artifact = ethosu.compile(mod, {"accelerator": "ethos-u55-128"})
    (note,) = [note for note in artifact.details["stays_on_host"] if "max_pool2d" in str(note)]
    assert f"the Ethos-U compiler says: it crashes with {name}: about to end" in note["why"]
    assert artifact.details["operations"]["accelerator"] > 0
    x = np.random.default_rng(0).integers(-128, 128, (1, 4, 6, 8)).astype("int8")
    np.testing.assert_array_equal(artifact.run(x), evaluate(mod, x))


def test_an_end_without_a_signal(fake: Any) -> None:
    fake("os._exit(3)")
    with pytest.raises(RelayError, match=r"R0614") as nothing:
        ethosu.compile(program("nn.max_pool2d(%x, pool_size=[2, 2])"), {})
    assert "its process ends with the status 3: about to end" in str(nothing.value)


def test_other_errors_of_vela(fake: Any) -> None:
    fake("raise KeyError('x')")
    with pytest.raises(RelayError, match="the Ethos-U compiler says: KeyError: 'x'"):
        ethosu.compile(program("nn.max_pool2d(%x, pool_size=[2, 2])"), {})


def test_a_package_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"its process ends with the status 1: ModuleNotFoundError: No module named 'ethosu'"):
        compiled(tmp_path, "EthosU55", b"", "TOSA", "", "")


def test_threads() -> None:
    """They take turns, and each gets what it asked for."""
    accelerators = ["ethos-u55-32", "ethos-u55-256", "ethos-u65-512", "ethos-u85-256"] * 3

    def stream(accelerator: str) -> bytes:
        (code,) = ethosu.compile(program(SUM), {"accelerator": accelerator}).regions.values()
        return code.command_stream

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(stream, accelerators)) == [stream(accelerator) for accelerator in accelerators]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    (before,) = ethosu.compile(program(SUM), {}).regions.values()
    child = os.fork()
    if not child:
        status = 1
        try:
            (code,) = ethosu.compile(program(SUM), {}).regions.values()
            status = int(code.command_stream != before.command_stream)
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    (behind,) = ethosu.compile(program(SUM), {}).regions.values()
    assert behind.command_stream == before.command_stream
