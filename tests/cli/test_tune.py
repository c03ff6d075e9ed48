"""`relay tune`: a search into a log, which goes on; reports; programs compiled with it; wrong calls."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from signal import SIGINT, SIGKILL

import pytest

from relaylang.backends.cpu.tuning_log import Record, load
from relaylang.cli.progress import Stages
from relaylang.cli.tune import _Shown
from relaylang.tune import State, Task
from tests.cli.command import one_diagnostic, relay
from tests.shared import PATIENCE

Caps = pytest.CaptureFixture[str]
TEXT = "def @main(%x: Tensor[(4, 12), float32]) { exp(transpose(%x, axes=None)) }\n"
MANY_CHOICES = "def @main(%x: Tensor[(8, 64), float32], %w: Tensor[(64, 64), float32]) { nn.dense(%x, %w, units=None) }\n"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    file = tmp_path / "net.relay"
    file.write_text(TEXT)
    return file


@pytest.mark.sweep
def test_a_search_goes_on_and_programs_use_it(net: Path, capsys: Caps) -> None:
    log, picture, library = (net.with_name(name) for name in ("log.jsonl", "picture.svg", "net.so"))
    call = ("tune", net, "-o", log, "--tuner", "grid", "--target", "c -cflags=-O0", "--trials", "5")
    ran = relay(capsys, *call)
    assert ran.status == 0 and ran.err == "" and "all is searched; the program's kernels: " in ran.out
    first, notes = load(str(log))
    assert not notes and sum(r.is_default for r in first) == 1 and all(r.failure is None for r in first)
    ran = relay(capsys, *call)
    again, _ = load(str(log))
    assert ran.status == 0 and [r for r in again if r.pairs <= 12] == [r for r in first if r.pairs <= 12]
    ran = relay(capsys, "tune", "--report", log, "-o", picture)
    assert ran.status == 0 and "all kernels, 1 thread: " in ran.out and picture.read_text().startswith("<svg")
    ran = relay(capsys, "compile", net, "--target", "c -cflags=-O0", "--tuning", log, "-o", library)
    assert ran.status == 0 and ran.err == "" and library.exists()


@pytest.mark.sweep
@pytest.mark.parametrize("signal", [SIGINT, SIGKILL])
def test_an_ended_search_leaves_a_whole_log(net: Path, capsys: Caps, signal: int) -> None:
    """Ctrl-C and `kill -9`: the same call goes on from the records."""
    log = net.with_name("log.jsonl")
    net.write_text(MANY_CHOICES)
    call = ("tune", net, "-o", log, "--tuner", "grid", "--target", "c -cflags=-O0", "--trials", "12")
    command = [sys.executable, "-m", "relaylang", *map(str, call)]
    with subprocess.Popen(command, cwd=net.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (log.exists() and log.read_bytes().count(b"\n") >= 2):
            time.sleep(0.01)
        process.send_signal(signal)
        _, err = process.communicate(timeout=PATIENCE)
    records, notes = load(str(log))
    assert process.returncode == (130 if signal == SIGINT else -SIGKILL) and "Traceback" not in err
    assert len(records) >= 2 and not notes and log.read_bytes().endswith(b"\n")
    assert relay(capsys, *call).status == 0
    again, notes = load(str(log))
    assert again[: len(records)] == records and not notes
    assert sum(r.is_default for r in again) == 1 < len({str(r.choice) for r in again})


@pytest.mark.parametrize("columns", [80, 130])
def test_a_bar_has_the_speeds_and_the_trials(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    task = Task("k", "nn.conv2d > add > nn.relu: Tensor[(1, 9), float32]", "", "avx2", flops=1_234_000_000)
    state = State(task, None, None, default=0.01, curve=[1.0, 0.8])
    with Stages() as stages, stages.stage("tune", total=1000) as step:
        _Shown(stages, step).watch(state, [state])
        line = stages._line()
    assert ": 123.4 now, 154.2 best GFLOP/s, program 8 ms [" in line and "] 2/1000 0" in line and len(line) < columns


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform == "win32", reason="limits of files' sizes are POSIX's")
def test_a_full_disk_ends_a_search_between_records(net: Path, capsys: Caps) -> None:
    """The limit of a file's size stands for a full disk: it holds some records of another program, and half of a new one."""
    log = net.with_name("log.jsonl")
    old = Record("k", "o", {"rows": 2}, "c", "avx2", "cc", 1, "", 0.5, 0.5, 0.4, 0.6, 4, message="x" * 1_000_000).line() + "\n"
    log.write_text(old)
    code = (
        f"import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, ({len(old) + 200},) * 2)\n"
        "from relaylang.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    call = ("tune", net, "-o", log, "--tuner", "grid", "--target", "c -cflags=-O0", "--trials", "1")
    ended = subprocess.run([sys.executable, "-I", "-c", code, *map(str, call)], capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert f"error[R0645]: cannot write the log {log}: no space left on device" in ended.stderr
    assert "free some space and call again to go on" in ended.stderr
    assert log.read_text() == old
    assert relay(capsys, *call).status == 0 and log.read_text().startswith(old)


def test_logs_of_other_programs(net: Path, capsys: Caps) -> None:
    """They are no error: a note says which kernels have no record."""
    log = net.with_name("log.jsonl")
    log.write_text("")
    ran = relay(capsys, "compile", net, "--tuning", log, "--emit", "space")
    assert ran.status == 0 and "note[R0645]: 1 of 1 kernels with knobs have no record" in ran.err
    ran = relay(capsys, "tune", "--report", log)
    assert ran.status == 0 and ran.out == f"{log} has no records\n"


def test_a_program_without_knobs(tmp_path: Path, capsys: Caps) -> None:
    file = tmp_path / "net.relay"
    file.write_text("def @main(%x: Tensor[(4), float32]) { exp(%x) }\n")
    ran = relay(capsys, "tune", file, "-o", tmp_path / "log.jsonl")
    assert ran.status == 0 and "there is nothing to search" in ran.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "FILE and -o LOG are needed"),
        (["-o", "x.so"], "a log is lines of JSON"),
        (["-o", "l.jsonl", "--trials", "0"], "--trials 0 is not 1 or more"),
        (["-o", "l.jsonl", "--early-stopping", "-1"], "--early-stopping -1 is not 1 or more"),
        (["-o", "l.jsonl", "--time", "soon"], "--time soon is no time"),
        (["-o", "l.jsonl", "--threads", "0"], "--threads 0 is no list of numbers"),
        (["-o", "l.jsonl", "--threads", "1,x"], "--threads 1,x is no list of numbers"),
        (["-o", "l.jsonl", "--memory", "much"], "--memory much is no size"),
        (["-o", "l.jsonl", "--tuner", "rndom"], "rndom"),
        (["-o", "l.jsonl", "--resources", "avx2=1"], "--resources goes with --scheduler"),
        (["-o", "l.jsonl", "--target", "ethos-u"], "schedules are tuned for the target c, not for ethos-u"),
        (["-o", "l.jsonl", "--transfer", "none.jsonl"], "cannot read the log none.jsonl"),
        (["-o", "none/l.jsonl"], "cannot write the log none/l.jsonl"),
        (["--report", "none.jsonl"], "--report takes a log, and no program"),
    ],
)
def test_wrong_calls(net: Path, capsys: Caps, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str) -> None:
    monkeypatch.chdir(net.parent)
    ran = relay(capsys, "tune", "net.relay", *options)
    assert ran.status and says in ran.err and "Traceback" not in ran.err and ran.out == ""
    assert not Path("l.jsonl").exists()


def test_a_log_that_is_none(net: Path, capsys: Caps) -> None:
    """A file of another kind is not appended to."""
    log = net.with_name("log.jsonl")
    log.write_text("my notes\nof today\n")
    for call in (("tune", net, "-o", log), ("tune", "--report", log), ("compile", net, "--tuning", log, "--emit", "space")):
        one_diagnostic(relay(capsys, *call), 1, "R0645")
    assert log.read_text() == "my notes\nof today\n"
