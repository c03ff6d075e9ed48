"""`relay import`, and networks in the place of Relay text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.cli.command import relay
from tests.frontends.onnx.models import model, node

Caps = pytest.CaptureFixture[str]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    weights = {"w": np.arange(12, dtype="float32").reshape(3, 4)}
    nodes = [node("Add", ["x", "w"], ["a"], name="block/add"), node("Relu", ["a"], ["y"])]
    path = tmp_path / "net.onnx"
    path.write_bytes(model(nodes, {"x": ("n", 4)}, weights=weights))
    return path


def test_a_network_becomes_text(net: Path, capsys: Caps) -> None:
    ran = relay(capsys, "import", str(net))
    assert ran.status == 0 and ran.err == ""
    assert "def @main(%x: Tensor[(?, 4), float32]" in ran.out and "nn.relu(%0)" in ran.out


def test_the_text_reads_back_with_its_constants_apart(net: Path, capsys: Caps) -> None:
    text, constants = net.with_suffix(".relay"), net.with_suffix(".npz")
    ran = relay(capsys, "import", str(net), "--shape", "x=3x4", "-o", str(text), "--constants", str(constants))
    assert ran.status == 0 and "b64ndarrays" not in text.read_text()
    same = relay(capsys, "print", str(text), "--params", str(constants))
    whole = relay(capsys, "import", str(net), "--shape", "x=3x4")
    assert same.out == whole.out


def test_weights_as_parameters(net: Path, capsys: Caps) -> None:
    text, weights = net.with_suffix(".relay"), net.with_suffix(".npz")
    assert relay(capsys, "import", str(net), "--no-freeze", "-o", str(text), "--constants", str(weights)).status == 0
    assert "%w: Tensor[(3, 4), float32]" in text.read_text()
    assert list(np.load(weights)) == ["w"]
    ran = relay(capsys, "run", str(text), "--params", str(weights), "--input", "x=[[1f, 1f, 1f, 1f]]")
    assert ran.status == 0, ran.err


def test_places_name_the_layers(net: Path, capsys: Caps) -> None:
    assert f"{net}:2:1" in relay(capsys, "import", str(net), "--spans").out


@pytest.mark.parametrize("verb", ["check", "print", "viz", "diff"])
def test_other_verbs_take_networks(net: Path, capsys: Caps, verb: str) -> None:
    files = [str(net)] * (2 if verb == "diff" else 1)
    ran = relay(capsys, verb, *files)
    assert ran.status == 0, ran.err


def test_a_network_runs_and_compiles(net: Path, capsys: Caps) -> None:
    ran = relay(capsys, "run", str(net), "--shape", "x=1x4", "--input", "x=[[1f, -20f, 0f, 0f]]")
    assert ran.status == 0 and "9" in ran.out
    out = net.with_suffix(".so")
    assert relay(capsys, "compile", str(net), "--shape", "x=3x4", "-o", str(out)).status == 0 and out.exists()


def test_what_is_wrong_is_said(net: Path, tmp_path: Path, capsys: Caps) -> None:
    ran = relay(capsys, "import", str(net), "--shape", "y=1x4")
    assert ran.status == 1 and "R0804" in ran.err
    ran = relay(capsys, "import", str(net), "--shape", "x=axb")
    assert ran.status == 2 and "--shape wants" in ran.err
    other = tmp_path / "other.bin"
    other.write_bytes(bytes(range(256)))
    ran = relay(capsys, "import", str(other))
    assert ran.status == 1 and "not a network of a known format" in ran.err
    kept = tmp_path / "kept.relay"
    kept.write_text("kept")
    assert relay(capsys, "import", str(other), "-o", str(kept)).status == 1 and kept.read_text() == "kept"
