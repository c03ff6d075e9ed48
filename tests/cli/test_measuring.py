"""`relay run --benchmark` and `--profile` of compiled programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import one_diagnostic, relay
from tests.shared import few

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(8, 16), float32]) {
  nn.relu(nn.dense(%x, %w, units=8))
}
"""
COMPILED = ("--random-params", "0", "--target", "c -cflags=-O0")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "net.relay"
    path.write_text(TEXT)
    return path


def test_a_benchmark_is_a_table(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--benchmark", "--repeat", "3", "--number", "2", "--min-repeat-ms", "0.1", "-o", tmp_path / "out.npz"]
    ran = relay(capsys, "run", program, *COMPILED, *options)
    title, names, numbers = ran.out.splitlines()
    assert (ran.status, title) == (0, "Execution time summary:")
    assert names.split() == ["mean", "(ms)", "median", "(ms)", "max", "(ms)", "min", "(ms)", "std", "(ms)"]
    _, median, most, least, _ = map(float, numbers.split())
    assert least <= median <= most
    assert (tmp_path / "out.npz").is_file()


def test_a_profile_is_a_table_by_kernel(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = relay(capsys, "run", program, *COMPILED)
    trace = tmp_path / "trace.json"
    ran = relay(capsys, "run", program, *COMPILED, "--profile", trace, "--repeat", "2")
    assert (ran.status, ran.out) == (0, plain.out)
    row = ran.err.splitlines()[1]
    # The weights are bound, and count once.
    assert row.startswith("nn.dense > nn.relu") and row.endswith(f"{program}:3:11") and " 0.001 " in row
    (event,) = json.loads(trace.read_text())["traceEvents"]
    assert (event["name"], event["args"]["macs"]) == ("nn.dense > nn.relu", 4 * 8 * 16)


@pytest.mark.parametrize("more", few([[], ["--executor", "cpu"]], []))
def test_profiles_as_json(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    given = ["--random-params", "0", *more, "--profile"]
    ran = relay(capsys, "run", program, *given, "--profile-format", "json")
    (rows,) = [value for key, value in json.loads(ran.err).items() if key in ("kernels", "operators")]
    assert "dense" in json.dumps(rows)
    path = tmp_path / "profile"
    for form, begin in (("json", "{"), ("table", "kernel" if more else "operator"), ("trace", '{"traceEvents"')):
        again = relay(capsys, "run", program, *given, path, "--profile-format", form)
        assert path.read_text().startswith(begin) and again.err.split()[0] == ("kernel" if more else "operator")


def test_a_profile_of_the_vm(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "profile.json"
    ran = relay(capsys, "run", program, "--random-params", "0", "--executor", "vm", "--profile", path)
    rows = ran.err.splitlines()
    assert ran.status == 0 and rows[0].split()[:3] == ["kernel", "calls", "us"]
    assert rows[1].startswith("k0") and f"{program}:3:" in rows[1]
    assert json.loads(path.read_text())["kernels"][0]["calls"] == 1
    refused = relay(capsys, "run", program, "--random-params", "0", "--executor", "vm", "--profile", "--profile-format", "trace")
    one_diagnostic(refused, 2, "R0705")
    assert "not for those of the VM" in refused.err


@pytest.mark.parametrize(
    "options",
    [
        ["--benchmark"],
        ["--executor", "cpu", "--repeat", "3"],
        ["--executor", "cpu", "--benchmark", "--profile"],
        ["--profile-format", "json"],
        ["--executor", "cpu", "--profile", "--number", "3"],
        ["--profile", "--repeat", "3"],
        ["--executor", "vm", "--profile", "--repeat", "3"],
    ],
)
def test_options_that_do_not_go_together(program: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    one_diagnostic(relay(capsys, "run", program, "--random-params", "0", *options), 2, "R0700")


@pytest.mark.parametrize("option", ["--repeat=0", "--number=-1", "--min-repeat-ms=-1", "--min-repeat-ms=nan"])
def test_numbers_that_are_none(program: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    one_diagnostic(relay(capsys, "run", program, *COMPILED, "--benchmark", option), 2, "R0705")


def test_the_memory_of_a_program(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["compile", program, "--random-params", "0", "-t", "c -cflags=-O0", "-o", tmp_path / "net.so"]
    (line,) = relay(capsys, *given).out.splitlines()
    memory, last = relay(capsys, *given, "--report").out.splitlines()
    assert last == line and memory.startswith("memory: 0.000 MB for a run (0.000 MB in use at once), 0.001 MB prepared")
