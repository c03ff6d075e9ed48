"""A file's suffix selects the format of results. Contradictions are errors, which name the verb for other formats."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("verb", "says"),
    [
        (["run", "--random-params", "0", "-o", "x.onnx"], "x.onnx is not a .npz or .safetensors file"),
        (["viz", "-o", "x.jpg"], "has a suffix that names no format"),
        (["viz", "-o", "x.jpeg"], "has a suffix that names no format"),
        (["export", "--format", "stablehlo", "-o", "x.onnx"], "ends as onnx does, but --format says stablehlo"),
        (["export", "--format", "onnx", "-o", "x.so"], "another format: --format says onnx"),
        (["viz", "--as", "svg", "-o", "x.html"], "another format: --as svg"),
        (["viz", "--as", "html", "-o", "x.relay"], "another format: --as html"),
        (["print", "-o", "x.onnx"], "another format: the result is Relay text"),
        (["opt", "-o", "x.html"], "another format: the result is Relay text"),
        (["opt", "--viz", "x.svg"], "another format: --viz writes a page of HTML"),
        (["partition", "-t", "dnnl", "-o", "x.so"], "another format: the result is Relay text"),
        (["partition", "-t", "dnnl", "--report", "-o", "x.relay"], "another format: --report writes a table"),
        (["partition", "-t", "dnnl", "--report-format", "json", "-o", "x.txt"], "another format: --report-format json"),
        (["run", "--random-params", "0", "--profile", "x.html"], "another format: --profile writes JSON"),
        (["run", "--random-params", "0", "--save-intermediates", "x.json"], "another format: --save-intermediates"),
        (["compile", "--emit", "c", "-o", "x.relay"], "another format: --emit c writes text"),
        (["compile", "--emit", "space", "-o", "x.c"], "another format: --emit space writes text"),
        (["compile", "-o", "x.svg"], "another format: the result is a library"),
        (["compile", "--runtime", "aot", "-o", "x.so"], "C goes to FILE.c, FILE.tar or FOLDER/"),
        (["compile", "--runtime", "bare-metal", "-o", "x.c"], "another format: --runtime bare-metal"),
        (["test", "--junit", "x.json"], "another format: --junit writes XML"),
        (["disasm", "-o", "x.so"], "another format: the result is text"),
    ],
)
def test_a_suffix_that_contradicts(net: Path, verb: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = relay(capsys, verb[0], str(net), *verb[1:-1], str(net.parent / verb[-1]))
    assert done.status and says in done.err and not (net.parent / verb[-1]).exists()


def test_an_imported_program_is_no_model(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing overwrites the model, where somebody takes -o for the file that is read."""
    model = net.with_suffix(".onnx")
    model.write_bytes(b"a model")
    done = relay(capsys, "import", str(model), "-o", str(model))
    assert done.status == 2 and "the result is Relay text" in done.err and model.read_bytes() == b"a model"


def test_endings_without_a_format_and_those_of_texts_are_taken(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (["print"], ["opt"], ["viz", "--as", "dot"], ["partition", "-t", "dnnl", "--report"], ["export", "--format", "relax"]):
        for name in ("made", "made.v2", "made.txt"):
            done = relay(capsys, verb[0], str(net), *verb[1:], "-o", str(net.with_name(name)))
            assert done.status == 0 and net.with_name(name).read_text(), (verb, name, done.err)


def test_the_ending_selects_the_format_of_a_report(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = relay(capsys, "partition", str(net), "-t", "dnnl", "--report", "-o", str(net.with_name("made.json")))
    assert done.status == 0 and json.loads(net.with_name("made.json").read_text())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("saved", "is empty"),
        ("net.caffemodel", "Caffe"),
        ("net.safetensors", "weights alone"),
    ],
)
def test_the_way_in_for_other_formats(tmp_path: Path, name: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    if path.suffix:
        path.write_bytes(b"\x89XYZ\r\n\x1a\n, or other bytes")
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
