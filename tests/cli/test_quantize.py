"""`relay quantize`: data from files, results as text and ONNX, and errors before long work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import one_diagnostic, relay
from tests.quantize.test_static import SOURCE, data, network

FUNCTION = """
import numpy as np
def batches():
    rng = np.random.default_rng(1)
    for _ in range(3):
        yield {"x": rng.normal(size=(1, 3, 8, 8)).astype("float32")}
def broken():
    return 1 / 0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("net.relay").write_text('#[version = "0.0.5"]' + SOURCE)
    np.savez("net.npz", **network()[1])
    rows = np.concatenate([b["x"] for b in data()])
    np.savez("data.npz", x=rows)
    Path("rows").mkdir()
    for i, row in enumerate(rows):
        np.save(f"rows/{i}.npy", row)
    np.savez("constant.npz", x=np.ones((2, 3, 8, 8), "float32"))
    np.savez("nan.npz", x=np.full((2, 3, 8, 8), np.nan, "float32"))
    np.savez("other.npz", y=rows)
    Path("data.py").write_text(FUNCTION)
    return tmp_path


NET = ("quantize", "net.relay", "--params", "net.npz")


def test_a_file_and_a_folder_give_the_same_program(folder: Path, capsys) -> None:
    for source, result in (("data.npz", "a.relay"), ("rows", "b.relay")):
        ran = relay(capsys, *NET, "--calibration", source, "-o", result)
        assert ran == (0, "", ""), ran
    assert Path("a.relay").read_text() == Path("b.relay").read_text() and "qnn.conv2d" in Path("a.relay").read_text()
    assert relay(capsys, "check", "a.relay").status == 0
    one_diagnostic(relay(capsys, "quantize", "a.relay", "--calibration", "data.npz", "-o", "c.relay"), 1, "R0530")


def test_a_comparison_and_a_picture(folder: Path, capsys) -> None:
    options = ("--calibrator", "mse", "--bias-correction", "--integer-io", "--compare", "p.svg")
    ran = relay(capsys, *NET, "--calibration", "data.py:batches", "--target", "ethos-u", *options, "-o", "q.relay")
    assert ran.status == 0 and "conv2d_1" in ran.out and "outputs: SQNR" in ran.out and "x: int8, scale" in ran.err
    assert Path("p.svg").read_text().startswith("<svg") and "%x: Tensor[(1, 3, 8, 8), int8]" in Path("q.relay").read_text()


@pytest.mark.parametrize("mode", ["int16x8", "float16", "bfloat16", "dynamic", "int4"])
def test_modes(folder: Path, capsys, mode: str) -> None:
    ran = relay(capsys, *NET, "--mode", mode, "--calibration", "data.npz", "-o", "q.relay")
    assert ran.status == 0, ran
    assert {"int16x8": "int16", "dynamic": "int8", "int4": "qnn.dequantize"}.get(mode, mode) in Path("q.relay").read_text()
    assert mode == "int16x8" or "outputs: SQNR" in ran.err


def test_a_model(folder: Path, capsys) -> None:
    onnx = pytest.importorskip("onnx")
    assert relay(capsys, *NET, "--calibration", "data.npz", "-o", "q.onnx").status == 0
    kinds = [n.op_type for n in onnx.load("q.onnx").graph.node]
    assert kinds.count("Conv") == 3 and "QuantizeLinear" in kinds


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ((), "R0700", "wants --calibration DATA"),
        (("--calibration", "data.npz", "--mode", "float16", "--calibrator", "mse"), "R0700", "--calibrator goes with"),
        (("--mode", "int4", "--weights-calibrator", "mse"), "R0700", "--weights-calibrator max alone"),
        (("--calibration", "data.npz", "--max-drop", "1"), "R0700", "--max-drop goes with"),
        (("--calibration", "data.npz", "--percentile", "10"), "R0700", "--percentile is"),
        (("--calibration", "data.npz", "--keep-float", "cnv2d_0"), "R0530", "did you mean conv2d_0"),
        (("--calibration", "absent.npz"), "R0001", "absent.npz"),
        (("--calibration", "data.txt"), "R0700", "--calibration wants"),
        (("--calibration", "data.py"), "R0700", "names a function"),
        (("--calibration", "data.py:batch"), "R0512", "did you mean batches"),
        (("--calibration", "data.py:broken"), "R0502", "division by zero"),
        (("--calibration", "constant.npz"), "R0530", "constant"),
        (("--calibration", "nan.npz"), "R0530", "not finite"),
        (("--calibration", "other.npz"), "R0530", "which no input is called"),
    ],
)
def test_wrong_calls(folder: Path, capsys, options: tuple[str, ...], code: str, text: str) -> None:
    ran = relay(capsys, *NET, *options, "-o", "q.relay")
    assert f"error[{code}]" in ran.err and text in ran.err and ran.status in (1, 2), ran
    assert not Path("q.relay").exists()


def test_weights_without_values_are_named(folder: Path, capsys) -> None:
    ran = relay(capsys, "quantize", "net.relay", "--calibration", "data.npz", "-o", "q.relay")
    assert "w1" in ran.err and "error[R0530]" in ran.err
