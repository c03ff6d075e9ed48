"""Every example of every verb's --help runs as it is printed."""

from __future__ import annotations

import importlib.util
import io
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from relaylang.cli import VERBS
from tests.cli.command import relay
from tests.frontends.onnx.models import model, node
from tests.shared import ROOT, few

NET = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 8), float32], %w1: Tensor[(16, 8), float32], %w2: Tensor[(4, 16), float32]) {
  let %x_3 = nn.relu(nn.dense(%data, %w1, units=16));
  nn.softmax(nn.dense(%x_3, %w2, units=4))
}
"""
POWER = """#[version = "0.0.5"]
def @power(%base: float32, %n: int32) -> float32 {
  if (equal(%n, 0)) { 1f } else { multiply(%base, @power(%base, subtract(%n, 1))) }
}
"""
WRONG = "def @main() {\n  // expected-error@+1 {{unknown operator}}\n  nn.rellu(1f)\n}\n"
FOLD = "// RUN: relay opt %s --passes FoldConstant\n// CHECK: 3\nadd(1, 2)\n"
PASSES = """from relaylang.transform import function_pass

@function_pass(opt_level=0, name="MyPass")
def MyPass(func, mod, ctx):
    return func
"""
#: The codes are not 0 if nothing matches, or if a file needs formatting.
OTHER = {"match": {1}, "fmt": {0, 1}}


def elsewhere(line: str) -> bool:
    """Whether an example needs a server's client, a shell, or a program, network or data that are not on this machine."""
    return line.startswith(("relay lsp", "relay repl", "relay quantize", "source ", "D=", "relay doctor", "relay tvm")) or any(
        word in line for word in ("clang", "accelerator=", "| dot", "| less", "| source", "net-symbol.json")
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    values = {"w1": np.ones((16, 8), np.float32), "w2": np.ones((4, 16), np.float32)}
    np.savez("net.npz", **values)
    np.save("image.npy", np.ones((1, 8), np.float32))
    if importlib.util.find_spec("onnx"):
        Path("net.onnx").write_bytes(model([node("Relu", ["image"])], {"image": (1, 3, 224, 224)}))
    files = dict.fromkeys(("net", "small", "a", "b", "old", "new", "models/net"), NET)
    files |= {"loop": POWER, "wrong": WRONG, "tests/fold": FOLD}
    for name, text in files.items():
        file = tmp_path / f"{name}.relay"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    shutil.copy(ROOT / "examples/numbers.relay", tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    Path("my_passes.py").write_text(PASSES)
    return tmp_path


def examples(text: str) -> list[str]:
    found = text.split("examples:\n")[1].split("\n\n")[0]
    return [re.split(r"\s{3,}", line.strip())[0] for line in found.splitlines()]


@pytest.mark.sample(4)
@pytest.mark.parametrize("verb", few(["", *VERBS], *[verb for verb in ["", *VERBS] if verb != "test"]))
def test_examples_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path, verb: str) -> None:
    if verb in ("import", "export"):
        pytest.importorskip("onnx")
    if verb == "test":
        pytest.importorskip("filecheck")
    for line in examples(relay(capsys, *([verb] if verb else []), "--help").out):
        if elsewhere(line):
            continue
        out = ""
        for call in line.split(" && ")[0].split(" | "):
            name, *arguments = shlex.split(call)
            if name == "echo":
                out = arguments[0] + "\n"
                continue
            if name == "cat":
                out = Path(arguments[0]).read_text()
                continue
            assert name == "relay", line
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
            arguments = [str(f) for a in arguments for f in (sorted(Path().glob(a)) if "*" in a else [a])]
            ran = relay(capsys, *arguments)
            out = ran.out
            if "error[R0630]" in ran.err and "-mtriple" in line:
                break  # no compiler for another processor is here
            if "error[R0611]" in ran.err:
                break  # the packages of an extra are not here
            said = f"{line}: {ran.status}\n{ran.out[-500:]}\n{ran.err[-2000:]}"
            assert ran.status in OTHER.get(arguments[0], {0}), said
            assert "Traceback" not in ran.err, said


def test_tables_of_patterns_are_printed_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert "`var`, `%x`" in relay(capsys, "match", "--help").out


def test_quiet_leaves_out_what_is_no_error(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    ran = relay(capsys, "check", "--quiet", "numbers.relay")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
