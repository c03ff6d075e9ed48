"""Wrong input to every verb: one clear diagnostic, status 1 or 2, no traceback, no half-written output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends.cpu import toolchain
from relaylang.cli import main
from relaylang.ir import IRModule, Tuple, const
from relaylang.syntax import astext
from tests.cli.command import one_diagnostic, relay, relay_process
from tests.shared import PATIENCE, ROOT, few, wait_for_work

MLP = ROOT / "examples" / "mlp.relay"
NUMBERS = ROOT / "examples" / "numbers.relay"
LOOP = ROOT / "examples" / "loop.relay"
Caps = pytest.CaptureFixture[str]

VERB_CALLS = {
    "check": ["check"],
    "print": ["print"],
    "run": ["run", "--random-params", "0"],
    "compile": ["compile", "--emit", "c"],
    "repl": ["repl"],
}


@pytest.fixture(params=list(VERB_CALLS))
def verb(request: pytest.FixtureRequest) -> list[str]:
    return VERB_CALLS[request.param]


def test_missing_file(capsys: Caps, verb: list[str], tmp_path: Path) -> None:
    one_diagnostic(relay(capsys, *verb, tmp_path / "none.relay"), 2, "R0001")


def test_directory(capsys: Caps, verb: list[str], tmp_path: Path) -> None:
    one_diagnostic(relay(capsys, *verb, tmp_path), 2, "R0001")


@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
def test_empty_file(capsys: Caps, verb: list[str], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.relay").write_bytes(content)
    one_diagnostic(relay(capsys, *verb, tmp_path / "f.relay"), 1, "R0002")


@pytest.mark.parametrize("content", [b"\x7fELF\0\0\0\1", b"def @main() { 1 }\xff", os.urandom(2000) + b"\xff\0"])
def test_binary_file(capsys: Caps, verb: list[str], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.relay").write_bytes(content)
    one_diagnostic(relay(capsys, *verb, tmp_path / "f.relay"), 1, "R0003")


def test_the_place_of_a_byte_that_is_not_text(capsys: Caps, tmp_path: Path) -> None:
    (tmp_path / "f.relay").write_bytes(b"def @main() {\n  1 \xff\n}")
    assert relay(capsys, "check", tmp_path / "f.relay").err.startswith(f"{tmp_path}/f.relay:2:5: error[R0003]")


def test_syntax_error(capsys: Caps, verb: list[str], tmp_path: Path) -> None:
    (tmp_path / "f.relay").write_text("def @main() {\n  add(1, ]\n}\n")
    ran = relay(capsys, *verb, tmp_path / "f.relay")
    assert (ran.status, ran.out) == (1, "")
    assert "f.relay:2:10: error[R01" in ran.err


def test_unknown_operator(capsys: Caps, verb: list[str], tmp_path: Path) -> None:
    (tmp_path / "f.relay").write_text("def @main(%x: Tensor[(2), float32]) { nn.rellu(%x) }")
    ran = relay(capsys, *verb, tmp_path / "f.relay")
    one_diagnostic(ran, 1, "R0202")
    assert "nn.relu" in ran.err


def test_type_error(capsys: Caps, verb: list[str], tmp_path: Path) -> None:
    (tmp_path / "f.relay").write_text("def @main(%x: Tensor[(2), float32]) { %x + 1 }")
    ran = relay(capsys, *verb, tmp_path / "f.relay")
    assert (ran.status, ran.out) == (1, "")
    assert "f.relay:1:" in ran.err and "error[R03" in ran.err


@pytest.mark.parametrize(
    "call",
    [
        ["run"],
        ["frobnicate", "x"],
        ["run", "x.relay", "--frobnicate"],
        ["print", "x.relay", "--style", "fancy"],
        ["run", "x.relay", "--random-params", "many"],
        ["compile", str(MLP)],
        ["run", str(MLP), "-e", "1", "--executor", "cpu"],
    ],
    ids=" ".join,
)
def test_wrong_arguments(capsys: Caps, call: list[str]) -> None:
    one_diagnostic(relay(capsys, *call), 2, "R0700")


@pytest.mark.parametrize(
    ("inputs", "status", "code"),
    [
        (["image=[1, 2]"], 2, "R0705"),
        (["image=1.0"], 2, "R0705"),
        (["imag=1.0"], 2, "R0705"),
        (["image"], 2, "R0705"),
        (["image="], 2, "R0705"),
        (["image=nothing.npy"], 2, "R0001"),
        (["image=float64.npy"], 2, "R0705"),
        (["image=shape.npy"], 2, "R0705"),
        (["image=text.npy"], 2, "R0705"),
        (["image=add(1, ]"], 1, "R0101"),
        (["image=1f", "image=2f"], 2, "R0705"),
    ],
)
@pytest.mark.parametrize("executor", ["interpreter", "cpu"])
def test_wrong_inputs(
    capsys: Caps,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    inputs: list[str],
    status: int,
    code: str,
    executor: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("float64.npy", np.zeros((1, 1, 28, 28)))
    np.save("shape.npy", np.zeros((1, 28, 28), np.float32))
    Path("text.npy").write_text("no array")
    options = [o for i in inputs for o in ("--input", i)]
    before = sorted(tmp_path.iterdir())
    ran = relay(capsys, "run", MLP, "--random-params", "0", "--executor", executor, "-o", "out.npz", *options)
    one_diagnostic(ran, status, code)
    assert sorted(tmp_path.iterdir()) == before


def test_missing_parameters(capsys: Caps) -> None:
    ran = relay(capsys, "run", MLP)
    one_diagnostic(ran, 2, "R0706")
    assert "w1: Tensor[(64, 784), float32]" in ran.err and "--random-params" in ran.err


@pytest.mark.parametrize("name", ["p.npz", "p.params", "p.safetensors", "p.bin"])
@pytest.mark.parametrize("content", [None, b"", b"rubbish", b"PK\3\4rubbish", b"\xf7\xe5\x8d\x4f" * 10])
def test_wrong_parameter_files(capsys: Caps, tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ran = relay(capsys, "run", MLP, "--params", tmp_path / name)
    assert ran.status in (1, 2) and ran.err.count("error[") == 1 and "Traceback" not in ran.err
    assert name in ran.err and "R0900" not in ran.err


def test_wrong_shapes_in_a_parameter_file(capsys: Caps, tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", w1=np.zeros((2, 2), np.float32))
    ran = relay(capsys, "run", MLP, "--random-params", "0", "--params", tmp_path / "p.npz")
    one_diagnostic(ran, 2, "R0705")
    assert "(2, 2)" in ran.err and "Tensor[(64, 784), float32]" in ran.err


def test_names_of_a_parameter_file_that_no_parameter_has(capsys: Caps, tmp_path: Path) -> None:
    net, params = tmp_path / "net.relay", tmp_path / "p.npz"
    net.write_text("def @main(%w_1: Tensor[(2), float32]) { exp(%w_1) }")
    np.savez(params, weight=np.zeros(2, np.float32), w_l=np.zeros(2, np.float32))
    ran = relay(capsys, "run", net, "--params", params)
    one_diagnostic(ran, 2, "R0706")
    assert f"{params} has weight, w_l, which no parameter is called" in ran.err
    ran = relay(capsys, "run", net, "--params", params, "--input", "w_1=[1, 2]")
    assert ran.status == 0 and "note[R0705]" in ran.err and "did you mean w_1 for w_l?" in ran.err


def test_a_variable_of_an_expression_has_a_way_to_a_value(capsys: Caps) -> None:
    ran = relay(capsys, "run", NUMBERS, "-e", "add(%x, 1)")
    one_diagnostic(ran, 2, "R0722")
    assert "give it one: --input x=VALUE, such as --input x=1" in ran.err
    assert relay(capsys, "run", NUMBERS, "-e", "add(%x, 1)", "--input", "x=1").out == "2 : int32\n"


def test_errors_come_by_place_and_notes_after_them(capsys: Caps, tmp_path: Path) -> None:
    net = tmp_path / "net.relay"
    net.write_text("""def @a(%x: Tensor[(2), float32]) { @c(%x) }
def @b(%x: Tensor[(2), float32]) -> int32 {
  let %t = (%x, %x).3;
  add(%x, 1)
}
def @c(%x: int32) {
  @b(%x)
}
""")
    places = re.findall(r"net.relay:(\d+):\d+: (\w+)", relay(capsys, "check", net).err)
    assert places == [("1", "error"), ("3", "error"), ("4", "error"), ("7", "error"), ("1", "note")]
    net.write_text("def @a(%x: Tensor[(2), float32]) {\n  add(%x, 1)\n}\ndef @b() {\n  nn.rellu(1f)\n}\n")
    assert re.findall(r"net.relay:(\d+)", relay(capsys, "check", net).err) == ["2", "5"]


def test_a_value_that_the_section_lacks_is_one_error(capsys: Caps, tmp_path: Path) -> None:
    net = tmp_path / "net.relay"
    text = astext(IRModule.from_expr(Tuple([const(np.ones(3, np.float32)), const(np.zeros(3, np.float32))])))
    net.write_text(text.replace("[relay.Constant][1]", "[relay.Constant][3]"))
    ran = relay(capsys, "check", net)
    one_diagnostic(ran, 1, "R0304")
    assert "its section has 2 of this kind, numbered from 0" in ran.err and "note[" not in ran.err


def test_unknown_entry(capsys: Caps) -> None:
    ran = relay(capsys, "run", LOOP, "--entry", "powr")
    one_diagnostic(ran, 2, "R0707")
    assert "did you mean @power?" in ran.err


@pytest.mark.parametrize("expr", ["@total(", "@totl(Two(1, 2))", "@total(One(1f))", "@total(Two(1))", "%nowhere", "def @f() { 1 }"])
def test_wrong_expressions(capsys: Caps, expr: str) -> None:
    ran = relay(capsys, "run", NUMBERS, "-e", expr)
    assert ran.status in (1, 2) and ran.out == "" and "error[R0" in ran.err and "R0900" not in ran.err


@pytest.mark.parametrize("target", ["frob", "", "c -frob=1", "c -num-threads=many", "ethos-u -accelerator=ethos-u99"])
def test_wrong_targets(capsys: Caps, tmp_path: Path, target: str) -> None:
    ran = relay(capsys, "compile", MLP, "--target", target, "-o", tmp_path / "net.tar")
    assert ran.status in (1, 2), ran
    assert ran.err.count("error[R06") == 1 and "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


def test_no_c_compiler(tmp_path: Path, capsys: Caps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(toolchain, "_zig", list)
    for call in (
        ["compile", MLP, "-o", tmp_path / "net.so"],
        ["run", MLP, "--random-params", "0", "--executor", "cpu"],
    ):
        ran = relay(capsys, *call)
        assert ran.status in (1, 2) and ran.err.count("error[R06") == 1, ran
        assert "compiler" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_is_not_there(tmp_path: Path, capsys: Caps) -> None:
    ran = relay(capsys, "compile", MLP, "--cc", "/nowhere/cc", "-o", tmp_path / "net.so")
    assert ran.status in (1, 2) and ran.err.count("error[R06") == 1 and "/nowhere/cc" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_no_vela(tmp_path: Path, capsys: Caps, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["ethosu", "ethosu.regor", *(m for m in sys.modules if m.startswith("ethosu."))]:
        monkeypatch.setitem(sys.modules, name, None)
    call = ["compile", ROOT / "examples/quantized.relay", "--target", "ethos-u, c", "--random-params", "0"]
    ran = relay(capsys, *call, "-o", tmp_path / "net.tar")
    assert ran.status in (1, 2) and "Traceback" not in ran.err
    assert "relaylang[ethosu]" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", [["print", MLP], ["run", MLP, "--random-params", "0"], ["compile", MLP]], ids=lambda c: c[0])
def test_unwritable_output(capsys: Caps, tmp_path: Path, call: list[str]) -> None:
    for place in (tmp_path / "no" / "such" / "out", tmp_path):
        one_diagnostic(relay(capsys, *call, "-o", place), 2, "R0704")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m relaylang print {MLP} | head -c 10"
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, cwd="/")
    assert run.stderr == ""


@pytest.mark.parametrize("verb", few([["check", MLP], ["viz", MLP], ["doctor"]], ["check", MLP]), ids=lambda c: c[0])
def test_a_closed_stdout_is_said(verb: list[str]) -> None:
    command = [sys.executable, "-m", "relaylang", *verb]
    run = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], stderr=-1, cwd="/")
    assert (run.returncode, run.stderr) == (2, b"error[R0704]: the standard input or output is closed\n")


def test_a_full_disk_is_said() -> None:
    with open("/dev/full", "w") as nowhere:
        run = subprocess.run([sys.executable, "-m", "relaylang", "print", MLP], stdout=nowhere, stderr=-1, cwd="/")
    assert run.returncode == 2
    assert run.stderr.startswith(b"error[R0704]") and b"Traceback" not in run.stderr


def test_ctrl_c_ends_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "f.relay").write_text("def @f(%n: int32) -> int32 { @f(%n) }\ndef @main() -> int32 { @f(1) }")
    run = subprocess.Popen([sys.executable, "-m", "relaylang", "run", tmp_path / "f.relay"], stderr=-1, stdout=-1, cwd="/")
    wait_for_work(run.pid)
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=PATIENCE)
    assert (run.returncode, out, err.decode().splitlines()[-1]) == (130, b"", "interrupted")
    assert b"Traceback" not in err


def test_an_error_of_ours_says_so(capsys: Caps, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("on\npurpose")

    monkeypatch.setattr("relaylang.cli.program.read", broken)
    ran = relay(capsys, "check", MLP)
    one_diagnostic(ran, 1, "R0900")
    assert "ZeroDivisionError: on purpose" in ran.err and "RELAY_TRACEBACK=1" in ran.err
    monkeypatch.setenv("RELAY_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["check", str(MLP)])


def test_a_deep_program_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "f.relay").write_text("def @main() { " + "(" * 20_000 + "1" + ")" * 20_000 + " }")
    assert relay_process("check", tmp_path / "f.relay").status == 0
