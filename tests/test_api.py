"""The public face: TVM's names, found when they are first used."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import relaylang as relay
from relaylang._names import NAMES, PACKAGES

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %b: float32) -> Tensor[(2, 3), float32] { nn.relu(%x + %b) }
"""


@pytest.mark.parametrize("name", sorted({*NAMES, *PACKAGES, "__version__"}))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(relay, name) is not None
    assert name in dir(relay)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="frobnicate"):
        relay.frobnicate  # noqa: B018


def test_importing_loads_nothing() -> None:
    code = (
        "import sys, relaylang; print(sorted(m for m in sys.modules if m.startswith(('relaylang.', 'numpy', 'lark'))))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert run.stdout == "['relaylang._names']\n"


def test_build_a_function_by_hand() -> None:
    x = relay.var("x", shape=(2, 3), dtype="float32")
    function = relay.Function([x], relay.Call(relay.ops.get("nn.relu"), [x]))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
    assert "nn.relu(%x) /* ty=Tensor[(2, 3), float32] */" in relay.astext(mod)
    np.testing.assert_array_equal(relay.evaluate(mod, -np.ones((2, 3), np.float32)), np.zeros((2, 3)))


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_executors_agree(kind: str) -> None:
    x = np.array([[-1, 0, 1], [2, 3, 4]], np.float32)
    run = relay.create_executor(kind, relay.parse(TEXT), params={"b": np.float32(-1)}).evaluate()
    np.testing.assert_array_equal(run(x), [[0, 0, 0], [1, 2, 3]])
    np.testing.assert_array_equal(run(x=x, b=np.float32(0)), np.maximum(x, 0))


def test_wrong_calls_of_an_executor() -> None:
    run = relay.create_executor("graph", relay.parse(TEXT)).evaluate()
    x = np.zeros((2, 3), np.float32)
    for args, named in (((x,), {}), ((x, x, x), {}), ((x,), {"c": 1})):
        with pytest.raises(relay.RelayError):
            run(*args, **named)
    with pytest.raises(relay.RelayError, match="unknown executor"):
        relay.create_executor("quantum")


def test_build() -> None:
    artifact = relay.build(relay.parse(TEXT), target="llvm", params={"b": np.array(1, np.float32)})
    np.testing.assert_array_equal(artifact.run(x=np.zeros((2, 3), np.float32)), np.ones((2, 3)))


def test_passes_by_their_names() -> None:
    t = relay.transform
    mod = t.Sequential([t.SimplifyInference(), t.FuseOps(), t.ToANormalForm()])(relay.parse(TEXT))
    text = relay.astext(t.InferType()(mod))
    assert "Primitive=1" in text and "let %" in text


def test_errors_are_values() -> None:
    with pytest.raises(relay.RelayError) as caught:
        relay.transform.InferType()(relay.parse("def @main(%x: int32) { %x + 1f }"))
    assert caught.value.diagnostics[0].code.startswith("R03")
