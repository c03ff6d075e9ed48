"""--time-limit and --memory-limit with every executor. The programs have no end, so nothing depends on the machine's speed."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.cli.limits import duration
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.interpreter.time_limit import OutOfTime, time_limit
from relaylang.syntax import parse
from tests.cli.command import one_diagnostic, relay, relay_process

#: Programs without an end, by what they do all the time.
ENDLESS = {
    "scalars": "def @main(%n: int32) -> int32 {\n  @main(add(%n, 1))\n}\n",
    "tensors": "def @main(%n: Tensor[(200, 200), float32]) -> Tensor[(200, 200), float32] {\n"
    "  @main(nn.dense(%n, %n, units=None))\n}\n",
    "closures": "def @go(%f: fn (int32) -> int32, %n: int32) -> int32 {\n  @go(%f, %f(%n))\n}\n"
    "def @main(%n: int32) -> int32 { @go(fn (%y: int32) -> int32 { add(%y, 1) }, %n) }\n",
    "branches": "def @main(%n: int32) -> int32 {\n  if (less(%n, 0)) { @main(1) } else { @main(subtract(0, %n)) }\n}\n",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("executor", ["interpreter", "vm"])
def test_a_program_without_an_end(name: str, executor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.relay"
    path.write_text(ENDLESS[name])
    given = ["--random-params", "0"] if name == "tensors" else ["--input", "n=1"]
    ran = relay(capsys, "run", path, *given, "--executor", executor, "--time-limit", "100ms")
    one_diagnostic(ran, 1, "R0413")
    assert "longer than the 0.1 s that it may take" in ran.err
    assert f"{path}:" in ran.err  # a place


def test_after_a_limit_the_program_runs_again() -> None:
    text = "def @loop(%n: int32) -> int32 { @loop(%n) }\ndef @main(%n: int32) -> int32 { if (less(%n, 0)) { @loop(%n) } else { %n } }"
    made = compile_vm(parse(text).module, entries=["main"])  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(RelayError, match="R0413"):
            made.call("main", (-1,), time_limit=0.05)
        assert made.call("main", (7,), time_limit=1000) == 7
        assert made.call("main", (7,)) == 7


def test_threads_have_limits_of_their_own() -> None:
    """The exception comes in the thread that evaluates."""
    mod = parse(ENDLESS["scalars"]).module
    found: list[str] = []

    def work(seconds: float) -> None:
        try:
            evaluate(mod, 0, time_limit=seconds)
        except RelayError as failed:
            found.append(failed.diagnostics[0].title)

    threads = [threading.Thread(target=work, args=(seconds,)) for seconds in (0.05, 0.1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [f"the program takes longer than the {s} s that it may take" for s in ("0.05", "0.1")]


def test_a_limit_that_is_not_reached(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert evaluate(parse("add(1, 2)").expr, time_limit=1000) == 3
    assert evaluate(parse("add(1, 2)").expr, time_limit=float("inf")) == 3
    path = tmp_path / "p.relay"
    path.write_text("def @main(%x: Tensor[(2), float32]) { add(%x, %x) }\n")
    for executor in ("interpreter", "vm", "cpu"):
        limits = ["--time-limit", "1h", "--memory-limit", "8GiB"]
        ran = relay(capsys, "run", path, "--random-params", "0", "--executor", executor, *limits)
        assert ran.status == 0 and "float32" in ran.out, ran
    ran = relay(capsys, "run", path, "-e", "add(1, 2)", "--time-limit", "1h")
    assert ran.status == 0 and ran.out == "3 : int32\n"


def test_the_exception_is_of_the_block_alone() -> None:
    with pytest.raises(OutOfTime), time_limit(0.001):
        while True:
            pass
    for _ in range(200):  # the time runs out about where the block ends
        try:
            with time_limit(1e-5):
                sum(range(10))
        except OutOfTime:
            pass
    for _ in range(1000):
        sum(range(100))


#: A product that takes hours in compiled code, which looks at nothing meanwhile.
LONG = """def @main(%x: Tensor[(1, 8, 4000, 4000), float32], %w: Tensor[(8, 8, 99, 99), float32]) {
  nn.conv2d(%x, %w, padding=[49, 49, 49, 49], channels=8, kernel_size=[99, 99])
}
"""


@pytest.mark.sweep
def test_compiled_code_ends(tmp_path: Path) -> None:
    path = tmp_path / "p.relay"
    path.write_text(LONG)
    ran = relay_process("run", path, "--fill", "ones", "--executor", "cpu", "--time-limit", "200ms")
    one_diagnostic(ran, 1, "R0413")
    ran = relay_process("run", path, "--fill", "ones", "--executor", "cpu", "--memory-limit", "30M", "--format", "json")
    assert ran.status == 1 and '"R0408"' in ran.err and ran.out == ""


@pytest.mark.sweep
def test_sessions_have_both_limits(tmp_path: Path) -> None:
    path = tmp_path / "p.relay"
    path.write_text(ENDLESS["scalars"])
    ran = relay_process("repl", path, "--time-limit", "100ms", stdin="@main(1)\nadd(1, 2)\n")
    assert ran.status == 1 and ran.out == "3 : int32\n" and "R0413" in ran.err


@pytest.mark.parametrize(("text", "seconds"), [("10", 10), ("1.5s", 1.5), ("500ms", 0.5), ("2 min", 120), ("1h", 3600)])
def test_times(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-5", "soon", "5 days", "1e9", "nan", "inf"])
def test_times_that_are_none(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.relay"
    path.write_text("1\n")
    one_diagnostic(relay(capsys, "run", path, f"--time-limit={text}"), 2, "R0705")


def test_arrays_of_the_interpreter_are_whole_after_a_limit() -> None:
    x = np.ones((200, 200), np.float32)
    with pytest.raises(RelayError, match="R0413"):
        evaluate(parse(ENDLESS["tensors"]).module, x, time_limit=0.05)
    assert (x == 1).all()
