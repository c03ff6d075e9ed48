"""The .pyi files: that an installation has them, and that mypy knows the functions by them."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import relaylang

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


def test_an_installation_has_the_stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(relaylang.__file__).parent.parent
    if folder == ROOT:
        pytest.skip("the checkout has no stubs: they are made with a wheel")
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script puts the sources in front of the installed package
    for name, text in runpy.run_path(str(ROOT / "scripts" / "make_stubs.py"))["stubs"]().items():
        assert (folder / name).read_text(encoding="utf-8") == text, name


#: What mypy must find for expressions of a program that uses the interface.
TYPES = {
    'relay.parse("1")': "relaylang.ir.module.IRModule",
    'mod["main"]': "relaylang.ir.expr.Function",
    'mod["main"].body': "relaylang.ir.expr.Expr",
    'mod["main"].params': "tuple[relaylang.ir.expr.Var, ...]",
    'mod[relay.GlobalTypeVar("List")]': "relaylang.ir.expr.TypeData",
    "relay.transform.InferType()(mod)": "relaylang.ir.module.IRModule",
    'relay.build(mod, target="c")': "relaylang.tvm.runtime.program.ExecutorFactoryModule",
    'load("net.so")': "relaylang.runtime.artifact.Artifact",
    'relay.create_executor("debug", mod)': "relaylang.tvm.executor.Executor",
    'relay.create_executor("debug", mod).evaluate()': "def (*Any, **Any) -> Any",
    "relay.split(x, 2)": "relaylang.tvm.op.build.TupleWrapper",
    "relay.split(x, 2)[0]": "relaylang.ir.expr.TupleGetItem",
    "relay.qnn.op.quantize(x, 0.5, 0)": "relaylang.ir.expr.Call",
    "relu(x) + 1.0": "relaylang.ir.expr.Expr",
    'is_op("nn.relu")(wildcard())': "relaylang.patterns.language.CallPattern",
    "free_vars(x)": "list[relaylang.ir.expr.Var]",
    "FuseOps()(mod)": "relaylang.ir.module.IRModule",
    "function_pass(lambda func, mod, ctx: func, opt_level=1)": "relaylang.passes.manager.FunctionPass",
    'relay.op.get("add")': "relaylang.ops.record.Op",
    "bind_params_by_name(mod['main'], {})": "relaylang.ir.expr.Function",
}
IMPORTS = """
import relaylang.op.contrib
import relaylang.prelude
import relaylang as relay
from relaylang.analysis import free_vars
from relaylang.build_module import bind_params_by_name
from relaylang.dataflow_pattern import is_op, wildcard
from relaylang.expr_functor import ExprMutator
from relaylang.op.contrib import get_pattern_table, partition_for_dnnl
from relaylang.op.nn import relu
from relaylang.qnn.op import requantize
from relaylang.qnn.transform import CanonicalizeOps
from relaylang.runtime.artifact import load
from relaylang.transform import FuseOps, function_pass

x = relay.var("x", shape=(1, 4))
mod = relay.parse("1")
"""


def mypy(folder: Path, *files: str, strict: bool = False) -> str:
    """The output of mypy for files of a user, who has installed relaylang."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "--follow-imports=silent"]
    command += ["--no-implicit-reexport"] * strict
    run = subprocess.run(
        [*command, "--ignore-missing-imports", *files],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert not run.stderr, run.stderr
    return run.stdout


@pytest.mark.sweep
def test_mypy_knows_the_types(tmp_path: Path) -> None:
    lines = [f"reveal_type({expression})" for expression in TYPES]
    (tmp_path / "program.py").write_text(IMPORTS + "\n".join(lines) + "\n")
    said = mypy(tmp_path, "program.py", strict=True)
    assert ": error:" not in said, said
    assert dict(zip(TYPES, re.findall(r'Revealed type is "(.*)"', said))) == TYPES


@pytest.mark.sweep
def test_mypy_knows_the_functions(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(PROGRAM)
    wrong = ('nn.conv2d(x, w, strides="2")', "nn.conv2d(x, w, stride=2)", "nn.conv4d(x)", 'nn.relu("x")')
    (tmp_path / "wrong.py").write_text(PROGRAM + "\n".join(wrong) + "\n")
    said = [line for line in mypy(tmp_path, "right.py", "wrong.py").splitlines() if ": error:" in line]
    assert len(said) == 4, said
    assert all(line.startswith("wrong.py:") for line in said)
    assert 'Argument "strides" to "conv2d"' in said[0] and '"stride" for "conv2d"' in said[1] and "conv4d" in said[2]
    assert 'Argument 1 to "relu"' in said[3]
