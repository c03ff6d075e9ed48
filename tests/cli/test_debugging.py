"""`relay run` as a debugger: trace, breaks, intermediate values, NaN watch, profile, memory limit, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import Ran, one_diagnostic, relay, relay_process
from tests.shared import PATIENCE, wait_for_work

PROGRAM = """#[version = "0.0.5"]
def @main(%n: int32, %x: Tensor[(2, 3), float32]) {
  %0 = nn.relu(%x);
  let %s = @sum(%n);
  let %t = (log(%0), %s);
  let %q = if (less(%s, 3)) { 1 } else { @sum(2) };
  (%t, %q, %t.0)
}
def @sum(%n: int32) -> int32 {
  if (equal(%n, 0)) { 0 } else { add(%n, @sum(subtract(%n, 1))) }
}
"""
LOOP = """#[version = "0.0.5"]
def @main(%n: int32, %acc: int64) -> int64 {
  if (equal(%n, 0)) { %acc } else { @main(subtract(%n, 1), add(%acc, 1i64)) }
}
"""
GIVEN = ("--input", "n=2", "--input", "x=[[0, 1, 2], [3, 4, 5]]")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.relay"
    path.write_text(PROGRAM)
    return path


def lines(text: str) -> list[str]:
    """Lines without their times."""
    return [re.sub(r"^ *[\d.]+ (us|ms|s)", "", line).strip() for line in text.splitlines()]


def test_a_trace_shows_each_binding_with_type_value_time_and_place(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = relay(capsys, "run", program, *GIVEN, "--trace")
    assert ran.status == 0 and "3 : int32," in ran.out
    said = lines(ran.err)
    assert said[0] == "@main(%n = 2, %x = 0 .. 5, mean 2.5)"
    assert said[1] == "@sum(%n = 2)"
    assert f"%s : int32 = 3   @sum at {program}:4:12" in said
    assert f"%x_0 : Tensor[(2, 3), float32] = 0 .. 5, mean 2.5   nn.relu at {program}:3:8" in said
    assert f"%q : int32 = 3   if at {program}:6:12" in said
    assert sum(line.startswith("@sum(") for line in said) == 6
    assert sum(bool(re.match(r" *[\d.]+ (us|ms|s)  +%", line)) for line in ran.err.splitlines()) == len(said) - 7


def test_the_names_are_those_of_a_normal_form(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = relay(capsys, "print", program, "--anf", "--no-types").out
    traced = relay(capsys, "run", program, *GIVEN, "--trace").err
    main = printed.split("def @sum")[0]
    for name, what in re.findall(r"%(x_\d+) : [^=]*= .*   (nn\.relu|log|less) at", traced):
        assert f"let %{name} = {what}(" in main


def stopped(program: Path, commands: list[str], *options: str) -> Ran:
    return relay_process("run", program, *GIVEN, *options, stdin="\n".join(commands) + "\n")


@pytest.mark.sweep
def test_a_break_stops_at_a_variable_and_shows_what_is_there(program: Path) -> None:
    ran = stopped(program, ["vars", "%x", "add(%s, %n)", "p @sum(%s)", "where", "c"], "--break", "%s")
    assert ran.status == 0 and "3 : int32," in ran.out
    said = ran.err.splitlines()
    assert said[0] == f"%s : int32 = 3   @sum at {program}:4:12"
    assert "%n : int32 = 2" in said and "%x : Tensor[(2, 3), float32] = 0 .. 5, mean 2.5" in said
    assert "[[0. 1. 2.]" in said
    assert "5 : int32" in said and "6 : int32" in said
    assert said[-1] == f"in @main at {program}:4:12"


@pytest.mark.sweep
def test_a_break_at_a_function_shows_the_arguments_and_the_callers(program: Path) -> None:
    ran = stopped(program, ["c", "where", "d", "c"], "--break", "@sum")
    said = ran.err.splitlines()
    assert said[:4] == [f"in @sum, {program}:9:1", "  %n : int32 = 2", f"in @sum, {program}:9:1", "  %n : int32 = 1"]
    assert [line.split(" at ")[0] for line in said[4:]] == ["in @sum", "in @sum", "in @main"]


@pytest.mark.sweep
@pytest.mark.parametrize("where", ["nn.relu", "3"])
def test_operators_and_lines_are_places_too(program: Path, where: str) -> None:
    ran = stopped(program, ["c"], "--break", where)
    assert ran.err.splitlines() == [f"%x_0 : Tensor[(2, 3), float32] = 0 .. 5, mean 2.5   nn.relu at {program}:3:8"]


@pytest.mark.sweep
def test_steps(program: Path) -> None:
    ran = stopped(program, ["n", "n", "s", "s", "q"], "--break", "x_0")
    names = [line.split(" ")[0] for line in ran.err.splitlines()]
    assert names[:4] == ["%x_0", "%x_1", "%t", "%x_3"]
    assert len(names) == 6 and ran.err.endswith("ended at a break\n") and ran.out == ""
    assert ran.status == 0


@pytest.mark.sweep
def test_what_is_wrong_at_the_prompt_is_told_and_it_goes_on(program: Path) -> None:
    ran = stopped(program, ["add(%s, %nope)", "add(%s", "b %nope", "divide(1, subtract(%s, 3))", "help", "c"], "--break", "%s")
    assert [code for code in re.findall(r"error\[(R\d+)\]", ran.err) if code[:3] != "R01"] == [
        "R0722",
        "R0724",
        "R0404",
    ]
    assert "division by zero" in ran.err and "go on to the next stop" in ran.err
    assert "Traceback" not in ran.err
    assert ran.status == 0 and "3 : int32," in ran.out


@pytest.mark.sweep
def test_the_end_of_the_commands_lets_the_program_end(program: Path) -> None:
    ran = relay_process("run", program, *GIVEN, "--break", "@sum")
    assert ran.status == 0 and "3 : int32," in ran.out and ran.err.count("in @sum") == 1


def test_an_unknown_place(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = relay(capsys, "run", program, *GIVEN, "--break", "@summ")
    assert ran.status != 0 and "error[R0724]" in ran.err and "did you mean @sum?" in ran.err


def test_intermediate_values_are_saved_by_name(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "all.npz"
    assert relay(capsys, "run", program, *GIVEN, "--save-intermediates", path).status == 0
    with np.load(path) as file:
        arrays = dict(file)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(arrays["x_0"], x)
    with np.errstate(divide="ignore"):
        assert np.array_equal(arrays["x_1"], np.log(x))
    assert arrays["s"] == 3 and arrays["q"] == 3
    assert [int(arrays[n]) for n in ("@sum/x_6", "@sum/x_6#2")] == [1, 3]


def test_intermediate_values_are_saved_up_to_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, path = tmp_path / "p.relay", tmp_path / "all.npz"
    source.write_text("def @main(%n: int32) { let %a = add(%n, 1); let %b = divide(%a, %n); add(%b, 1) }")
    ran = relay(capsys, "run", source, "--input", "n=0", "--save-intermediates", path)
    assert ran.status == 1 and "error[R0404]" in ran.err
    with np.load(path) as file:
        assert {n: int(v) for n, v in file.items() if n in "ab"} == {"a": 1}


def test_where_nan_comes_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.relay"
    path.write_text("""#[version = "0.0.5"]
def @main(%x: Tensor[(3), float32]) {
  let %a = exp(%x);
  let %b = log(subtract(%a, 1f));
  let %c = multiply(%b, 0f);
  add(%c, %c)
}""")
    ran = relay(capsys, "run", path, "--input", "x=[0, 1, -1]", "--watch-nan")
    assert ran.status == 0
    assert ran.err.count("warning[R0412]") == 1
    assert "log: %b is Tensor[(3), float32] with 1 NaN, 1 Inf, from finite operands" in ran.err
    assert f"{path}:4:12" in ran.err
    assert relay(capsys, "run", path, "--input", "x=[1, 2, 3]", "--watch-nan").err == ""


def test_a_profile_is_a_table_by_operator(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = relay(capsys, "run", program, *GIVEN, "--profile")
    rows = {line.split()[0]: line.split() for line in ran.err.splitlines()}
    assert ran.err.splitlines()[0].split()[:3] == ["operator", "calls", "total"]
    assert {name: int(rows[name][1]) for name in ("equal", "subtract", "add", "log", "nn.relu", "all")} == {
        "equal": 6,
        "subtract": 4,
        "add": 4,
        "log": 1,
        "nn.relu": 1,
        "all": 17,
    }
    assert float(rows["log"][2]) <= float(rows["all"][2])


def test_a_profile_for_chrome(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    assert relay(capsys, "run", program, *GIVEN, "--profile", path).status == 0
    events = json.loads(path.read_text())["traceEvents"]
    assert all(e["ph"] == "X" and e["dur"] >= 0 and e["ts"] >= 0 for e in events)
    assert [e["ts"] for e in events] == sorted(e["ts"] for e in events)
    assert sum(e["cat"] == "operator" for e in events) == 17
    assert sum(e["name"] == "@sum" for e in events) == 6 and sum(e["name"] == "@main" for e in events) == 1
    (relu,) = [e for e in events if e["name"] == "nn.relu"]
    assert relu["args"] == {"binding": "%x_0", "type": "Tensor[(2, 3), float32]", "in": "@main", "at": f"{program}:3:8"}
    main = next(e for e in events if e["name"] == "@main")
    assert main["ts"] <= relu["ts"] and relu["ts"] + relu["dur"] <= main["ts"] + main["dur"]


@pytest.mark.sweep
def test_all_at_once(program: Path, tmp_path: Path) -> None:
    options = ["--trace", "--watch-nan", "--profile", tmp_path / "t.json", "--save-intermediates", tmp_path / "i.npz"]
    ran = relay_process("run", program, *GIVEN, *options, "--break", "%q", "--memory-limit", "100M", stdin="%s\nc\n")
    assert ran.status == 0 and "3 : int32\n" in ran.err
    assert (tmp_path / "t.json").is_file() and (tmp_path / "i.npz").is_file()


def test_a_limit_stops_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.relay"
    path.write_text("""#[version = "0.0.5"]
def @main(%x: float32) { @big(%x) }
def @big(%x: float32) { let %a = zeros(shape=[1000, 1000000], dtype="float32"); sum(add(%a, %x)) }
""")
    ran = relay(capsys, "run", path, "--input", "x=1", "--memory-limit", "1GB")
    one_diagnostic(ran, 1, "R0408")
    assert "needs more than the 1.0 GB" in ran.err
    assert "the value is Tensor[(1000, 1000000), float32], 4.0 GB" in ran.err
    assert f"in @big at {path}:3:34" in ran.err
    path.write_text('def @main(%x: float32) { add(zeros(shape=[100], dtype="float32"), %x) }')
    assert relay(capsys, "run", path, "--input", "x=1", "--memory-limit", "1M").status == 0


def test_a_limit_stops_recursion(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = relay(capsys, "run", program, "--input", "n=1000000", "--random-params", "0", "--memory-limit", "2MiB")
    one_diagnostic(ran, 1, "R0408")
    assert "more calls" in ran.err and f"in @main at {program}:4:12" in ran.err


@pytest.mark.sweep
def test_a_session_goes_on_behind_what_does_not_fit(program: Path) -> None:
    ran = relay_process("repl", program, "--memory-limit", "2MB", stdin="@sum(1000000)\n@sum(10)\nzeros(shape=[1000, 1000])\n")
    assert ran.status == 1 and ran.out == "55 : int32\n"
    assert re.findall(r"error\[(R\d+)\]", ran.err)[0] == "R0408"
    ran = relay_process("run", program, "-e", "@sum(1000000)", "--memory-limit", "2MB")
    one_diagnostic(ran, 1, "R0408")


@pytest.mark.parametrize("text", ["", "-5", "lots", "5 apples", "0"])
def test_limits_that_are_none(program: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    one_diagnostic(relay(capsys, "run", program, *GIVEN, f"--memory-limit={text}"), 2, "R0705")


@pytest.mark.parametrize(
    "more",
    [["--executor", "cpu", "--trace"], ["-e", "@sum(3)", "--profile"]],
)
def test_calls_that_are_wrong(program: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    one_diagnostic(relay(capsys, "run", program, *more), 2, "R0700")


def test_a_program_from_stdin_leaves_no_room_for_commands(capsys: pytest.CaptureFixture[str]) -> None:
    one_diagnostic(relay(capsys, "run", "-", "--break", "x"), 2, "R0700")


@pytest.mark.sweep
@pytest.mark.parametrize("options", [[], ["--profile"]])
def test_ctrl_c_stops(tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "p.relay"
    path.write_text(LOOP)
    command = [sys.executable, "-m", "relaylang", "run", str(path), "--input", "n=1000000000", "--input", "acc=0"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_work(process.pid, 5)  # of which the start takes up to two on a slow machine
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == "" and err.endswith("interrupted\n") and "Traceback" not in err
    assert bool(options) == ("subtract" in err)
