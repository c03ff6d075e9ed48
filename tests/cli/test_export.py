"""`relay export`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.cli.command import relay

Caps = pytest.CaptureFixture[str]
NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  nn.dense(%x, %w, units=4)
}
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.relay"
    path.write_text(NET)
    np.savez(tmp_path / "net.npz", w=np.arange(12, dtype="float32").reshape(4, 3))
    return path


def test_the_ending_names_the_format(net: Path, capsys: Caps) -> None:
    for ending, first in ((".onnx", b"\x08"), (".mlir", b"module {"), (".py", b"# from tvm.script")):
        out = net.with_suffix(ending)
        ran = relay(capsys, "export", str(net), "-o", str(out))
        assert (ran.status, ran.out, ran.err) == (0, "", "") and out.read_bytes().startswith(first)


def test_an_option_names_the_format(net: Path, capsys: Caps) -> None:
    out = net.with_suffix(".txt")
    assert relay(capsys, "export", str(net), "-o", str(out), "--format", "stablehlo").status == 0
    assert "stablehlo.dot_general" in out.read_text()
    assert relay(capsys, "export", str(net), "-o", str(out)).status == 2
    ran = relay(capsys, "export", str(net.with_name("none")), "-o", str(out), "--format", "relax", "--format", "json")
    assert ran.status == 2 and ran.err.startswith("{")


def test_parameters_become_constants(net: Path, capsys: Caps) -> None:
    out, again = net.with_suffix(".onnx"), net.with_name("again.relay")
    assert relay(capsys, "export", str(net), "--params", str(net.with_suffix(".npz")), "-o", str(out)).status == 0
    assert relay(capsys, "import", str(out), "-o", str(again)).status == 0
    assert "%w" not in again.read_text()
    value = "x=[[1f, 2f, 3f], [0f, 1f, 0f]]"
    same = [relay(capsys, "run", str(file), "--params", str(net.with_suffix(".npz")), "--input", value).out for file in (net,)]
    assert same[0] == relay(capsys, "run", str(out), "--input", value).out


def test_constants_of_relax_text(net: Path, capsys: Caps) -> None:
    out, weights = net.with_suffix(".py"), net.with_name("weights.npz")
    call = ["export", str(net), "--params", str(net.with_suffix(".npz")), "-o", str(out)]
    ran = relay(capsys, *call)
    assert ran.status == 2 and "--constants" in ran.err and not out.exists()
    assert relay(capsys, *call, "--constants", str(weights)).status == 0
    assert 'num_input": 1' in out.read_text() and len(np.load(weights).files) == 1


def test_constants_beside_an_onnx_model(net: Path, capsys: Caps) -> None:
    large = net.with_name("large.npz")
    np.savez(large, w=np.linspace(0, 1, 3000, dtype="float32").reshape(1000, 3))
    net.write_text(NET.replace("(4, 3)", "(1000, 3)").replace("units=4", "units=1000"))
    out, data = net.with_suffix(".onnx"), net.with_suffix(".onnx.data")
    call = ["export", str(net), "--params", str(large), "-o", str(out), "--constants"]
    assert relay(capsys, *call, str(data)).status == 0
    assert data.stat().st_size == 12288 and out.stat().st_size < 1000
    value = "x=[[1f, 2f, 3f], [0f, 1f, 0f]]"
    wanted = relay(capsys, "run", str(net), "--params", str(large), "--input", value).out
    assert relay(capsys, "run", str(out), "--input", value).out == wanted
    elsewhere = relay(capsys, *call, str(net.parent.parent / "elsewhere.data"))
    assert elsewhere.status == 2 and "is not below" in elsewhere.err


def test_what_is_missing_is_told_and_nothing_is_written(net: Path, capsys: Caps) -> None:
    net.write_text("def @main(%k: Tensor[(10), uint64]) { random.threefry_split(%k) }")
    out = net.with_suffix(".onnx")
    out.write_text("kept")
    ran = relay(capsys, "export", str(net), "-o", str(out))
    assert ran.status == 1 and "R0806" in ran.err and "random.threefry_split" in ran.err and out.read_text() == "kept"


def test_the_first_parameter_stays_open(net: Path, capsys: Caps) -> None:
    for params in ([], ["--params", str(net.with_suffix(".npz"))]):
        out = net.with_suffix(".mlir")
        assert relay(capsys, "export", str(net), *params, "--random-params", "0", "-o", str(out)).status == 0
        assert "@main(%x: tensor<2x3xf32>) ->" in out.read_text()


def test_the_result_goes_to_the_standard_output(net: Path, capfd: Caps) -> None:
    ran = relay(capfd, "export", str(net), "-o", "-", "--format", "stablehlo")
    assert ran.status == 0 and ran.out.startswith("module {")
