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
    assert "def @main[n](%x: Tensor[(n, 4), float32]" in ran.out and "nn.relu(%" in ran.out


def test_an_extent_gets_a_number(net: Path, capsys: Caps) -> None:
    ran = relay(capsys, "import", str(net), "--shape", "n=3")
    assert ran.status == 0 and "def @main(%x: Tensor[(3, 4), float32]" in ran.out
    ran = relay(capsys, "import", str(net), "--shape", "m=3")
    assert ran.status == 2 and "has no input m" in ran.err


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
    assert ran.status == 2 and "R0804" in ran.err
    ran = relay(capsys, "import", str(net), "--shape", "x=axb")
    assert ran.status == 2 and "--shape wants" in ran.err
    other = tmp_path / "other.bin"
    other.write_bytes(bytes(range(256)))
    ran = relay(capsys, "import", str(other))
    assert ran.status == 1 and "not a network of a known format" in ran.err
    kept = tmp_path / "kept.relay"
    kept.write_text("kept")
    assert relay(capsys, "import", str(other), "-o", str(kept)).status == 1 and kept.read_text() == "kept"


def test_options_that_do_not_fit_are_wrong_calls(net: Path, capsys: Caps) -> None:
    for given, said in (
        (["--shape", "y=1x4"], "has no input y"),
        (["--shape", "x=1"], "has 2 axes, not 1"),
        (["--shape", "x="], "--shape wants extents"),
        (["--dtype", "x=float17"], "`float17` is not an element type"),
        (["--value", "x=[1, 2, 3]"], "has 2 axes, not 1"),
        (["--value", "x=[[1, 2, 3]]"], "has the shape (?, 4), and its value (1, 3)"),
        (["--constants", "net.txt"], "is not a .npz"),
        (["--constants", str(net) + ".npz", "-o", str(net) + ".npz"], "cannot both be"),
    ):
        ran = relay(capsys, "import", str(net), *given)
        assert ran.status == 2 and said in ran.err and not ran.out, ran.err


def test_a_value_takes_the_element_type_of_its_input(net: Path, capsys: Caps) -> None:
    ran = relay(capsys, "run", str(net), "--value", "x=[[1, -20, 0, 0], [1, -20, 0, 0], [0, 0, 0, 0]]")
    assert ran.status == 0 and "Tensor[(3, 4), float32]" in ran.out


def test_operands_that_do_not_fit_are_shown(net: Path, capsys: Caps) -> None:
    ran = relay(capsys, "check", str(net), "--dtype", "x=float16")
    assert ran.status == 1 and "block/add" in ran.err and "float16" in ran.err


def test_options_of_networks_are_not_for_text(net: Path, tmp_path: Path, capsys: Caps) -> None:
    text = tmp_path / "net.relay"
    assert relay(capsys, "import", str(net), "--shape", "x=3x4", "-o", str(text)).status == 0
    ran = relay(capsys, "check", str(text), "--shape", "x=3x4")
    assert ran.status == 2 and "is Relay text" in ran.err
    assert relay(capsys, "diff", str(net), str(text), "--shape", "x=3x4").status == 0
    assert relay(capsys, "diff", str(net), str(text), "--shape", "x=2x4").status == 1
    assert relay(capsys, "diff", str(text), str(text), "--shape", "x=2x4").status == 2


def test_reports_name_the_layers(net: Path, tmp_path: Path, capsys: Caps) -> None:
    shape = ["--shape", "x=3x4"]
    assert f"{net}:2:1 block/add" in relay(capsys, "partition", str(net), *shape, "-t", "dnnl", "--report").out
    assert "block/add" in relay(capsys, "viz", str(net), *shape, "--as", "html").out
    profile = tmp_path / "profile.json"
    ran = relay(capsys, "run", str(net), *shape, "--random-params", "0", "--trace", "--profile", str(profile))
    assert "block/add" in ran.err and "block/add" in profile.read_text()


def test_files_that_are_no_networks(tmp_path: Path, capsys: Caps) -> None:
    empty, cut, other = tmp_path / "empty.onnx", tmp_path / "cut.pt", tmp_path / "other.bin"
    empty.write_bytes(b"")
    cut.write_bytes(b"PK\3\4" + bytes(26) + b"net/data.pkl" + bytes(range(200, 256)))
    other.write_bytes(b"\x07other" + bytes(40))
    assert "is empty" in relay(capsys, "import", str(empty)).err
    for verb in ("import", "check"):
        ran = relay(capsys, verb, str(cut))
        assert ran.status == 1 and "zip archive" in ran.err
    ran = relay(capsys, "check", str(other))
    assert ran.status == 1 and "nor is it a network of a known format" in ran.err
