"""The .pyi files: that they are current, and that mypy knows the functions by them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import relaylang as relay
from relaylang import nn

x = relay.var("x", shape=(1, 3, 8, 8))
w = relay.var("w", shape=(4, 3, 3, 3))
y: relay.Call = nn.conv2d(x, w, strides=(2, 2), padding=1, kernel_size=(3, 3), channels=4, out_dtype="float32")
left, right = relay.split(relay.nn.relu(y), 2, axis=1)
z = relay.add(left, right) * 2.0 - relay.const(1.0)
mod = relay.IRModule.from_expr(relay.Function([x, w], relay.reshape(z, newshape=(0, -1))))
q: relay.Call = relay.qnn.op.quantize(z, relay.const(0.5), relay.const(0), out_dtype="uint8")
print(relay.astext(relay.transform.InferType()(mod)), q, relay.image.resize2d(x, (4, 4)), relay.op.vision)
"""


def test_stubs_are_current() -> None:
    run = subprocess.run([sys.executable, "scripts/make_stubs.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr + "run: python scripts/make_stubs.py"


@pytest.mark.sweep
def test_mypy_knows_the_functions(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(
        PROGRAM + 'nn.conv2d(x, w, strides="2")\nnn.conv2d(x, w, stride=2)\nnn.conv4d(x)\n'
    )
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--follow-imports=silent"]
    run = subprocess.run(
        [*command, "--ignore-missing-imports", "right.py", "wrong.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    said = [line for line in run.stdout.splitlines() if ": error:" in line]
    assert len(said) == 3, run.stdout + run.stderr
    assert all(line.startswith("wrong.py:") for line in said)
    assert 'Argument "strides" to "conv2d"' in said[0] and '"stride" for "conv2d"' in said[1] and "conv4d" in said[2]
