"""A file's suffix selects the format of results. Contradictions are errors, which name the verb for other formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.runtime.params import load_params
from tests.cli.command import relay

NET = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 2), float32], %w: Tensor[(2, 2), float32]) {\n  add(%x, %w)\n}\n'


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.relay"
    path.write_text(NET)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_results_have_the_format_of_their_suffix(net: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = net.with_suffix(suffix)
    relay(capsys, "run", str(net), "--random-params", "0", "-o", str(path))
    assert {name: x.shape for name, x in load_params(path).items()} == {"output": (2, 2)}


@pytest.mark.parametrize(("verb", "says"), [
    (["run", "--random-params", "0", "-o", "x.onnx"], "x.onnx is not a .npz or .safetensors file"),
    (["viz", "-o", "x.jpg"], "has a suffix that names no format"),
    (["viz", "-o", "x.jpeg"], "has a suffix that names no format"),
    (["export", "--format", "stablehlo", "-o", "x.onnx"], "ends as onnx does, but --format says stablehlo"),
])  # fmt: skip
def test_a_suffix_that_contradicts(net: Path, verb: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = relay(capsys, verb[0], str(net), *verb[1:-1], str(net.parent / verb[-1]))
    assert done.status and says in done.err and not (net.parent / verb[-1]).exists()


@pytest.mark.parametrize(("name", "says"), [
    ("net.h5", "from_keras_model"), ("net.keras", "Keras"), ("net.pb", "tf2onnx"), ("saved", "--saved-model"),
    ("net.caffemodel", "Caffe"), ("net.safetensors", "weights alone"),
])  # fmt: skip
def test_the_way_in_for_other_formats(tmp_path: Path, name: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    if path.suffix:
        path.write_bytes(b"\x89HDF\r\n\x1a\n, or other bytes")
    else:
        path.mkdir()
        (path / "saved_model.pb").touch()
    done = relay(capsys, "import", str(path))
    assert done.status and says in done.err


def test_a_text_of_sixteen_bits_says_how_to_convert_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.relay"
    path.write_bytes(NET.encode("utf-16"))
    done = relay(capsys, "check", str(path))
    assert "is UTF-16" in done.err and "iconv" in done.err


def test_a_word_of_a_page_finds_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert "R0301" in relay(capsys, "explain", "shape").out
