"""`relay run FILE --compare PROGRAM` names the operation of a stream that first gives other numbers than the program."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang.backends import ethosu
from relaylang.backends.ethosu.comparison import Output, Value, difference_of, matched
from relaylang.backends.ethosu.stream import read_stream
from relaylang.syntax import parse
from tests.backends.ethosu.simulator.test_tflite import DATA, compiled
from tests.cli.command import relay
from tests.shared import ROOT, few

Caps = pytest.CaptureFixture[str]
BARS = str(ROOT / "examples/ethosu_bars.relay")


def archive(path: Path, accelerator: str, change: tuple[str, int] | None = None) -> str:
    """The example compiled, with another number in the last command of a name."""
    artifact = ethosu.compile(parse(Path(BARS).read_text(), BARS).module, {"accelerator": accelerator})
    ((name, region),) = artifact.regions.items()
    if change is not None:
        commands = read_stream(region.command_stream, name).commands
        at = [command.at for command in commands if command.name == change[0]][-1]
        content = bytearray(region.command_stream)
        content[at + 2 : at + 4] = struct.pack("<H", change[1])
        artifact.regions[name] = replace(region, command_stream=bytes(content))
    artifact.save(path / "bars.tar")
    return str(path / "bars.tar")


def ran(capsys: Caps, *args: str) -> tuple[int, list[str]]:
    status, out, _ = relay(capsys, "run", *args)
    return status, out.splitlines()


@pytest.mark.parametrize("accelerator", few(("ethos-u55-128", "ethos-u65-512", "ethos-u85-256"), "ethos-u55-128"))
def test_a_stream_that_is_right(tmp_path: Path, capsys: Caps, accelerator: str) -> None:
    status, lines = ran(capsys, archive(tmp_path, accelerator), "--random-params", "0", "--compare", BARS)
    assert status == 0 and lines[-1].startswith("result: the same numbers as in")
    assert all(" = %" in line for line in lines[:-1])
    assert {word for line in lines for word in ("conv2d line 19", "max_pool2d at", "line 23") if word in line} == {
        "conv2d line 19",
        "max_pool2d at",
        "line 23",
    }


@pytest.mark.parametrize("accelerator", few(("ethos-u55-128", "ethos-u65-512", "ethos-u85-256"), "ethos-u55-128"))
def test_the_first_difference_of_a_stream(tmp_path: Path, capsys: Caps, accelerator: str) -> None:
    path = archive(tmp_path, accelerator, ("SET_OFM_ZERO_POINT", 3))
    status, lines = ran(capsys, path, "--random-params", "0", "--compare", BARS)
    assert status == 1 and lines[-1].startswith("result: 3 of 3")
    wrong = [line for line in lines if " ! %" in line]
    assert wrong and all("line 20" in line and "nn.max_pool2d at" in line and "by up to 3" in line for line in wrong)
    assert lines[-3].startswith("first difference: ethos_u") and "the command at byte 0x" in lines[-3]


def test_a_difference_does_not_hide_what_is_behind(tmp_path: Path, capsys: Caps) -> None:
    """The convolution has another zero point than the program; pool and dense layer are right."""
    other = tmp_path / "other.relay"
    other.write_text(Path(BARS).read_text().replace("0.02f, -128, axis=1", "0.02f, -126, axis=1"))
    status, lines = ran(capsys, archive(tmp_path, "ethos-u85-256"), "--random-params", "0", "--compare", str(other))
    assert status == 1 and ["!" in line for line in lines[:3]] == [True, False, False]
    assert "by up to 2, first at [0, 0, 0, 0]: " in lines[0]


def test_a_file_of_velas(tmp_path: Path, capsys: Caps) -> None:
    """Layers round some halves twice. The mean and the layers behind it are equal."""
    original = DATA / "keywords_int8.tflite"
    path = tmp_path / "net_vela.tflite"
    path.write_bytes(compiled(original.read_bytes(), "ethos-u85-256"))
    status, lines = ran(capsys, str(path), "--random-params", "3", "--compare", str(original))
    assert status == 0 and lines[-1].startswith("result: the same numbers as in")
    assert all("by up to 1, " in line for line in lines if " ! %" in line)
    assert sum(" = %" in line for line in lines) >= 3 and sum(" ! %" in line for line in lines) >= 8


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((BARS, "--fill", "ones", "--compare", BARS), "--compare is for programs compiled for an Ethos-U"),
        (("{archive}", "--fill", "ones", "--compare", "nothing.relay"), "nothing.relay"),
    ],
)
def test_wrong_calls(tmp_path: Path, capsys: Caps, args: tuple[str, ...], says: str) -> None:
    path = archive(tmp_path, "ethos-u55-128")
    status, out, err = relay(capsys, "run", *[arg.format(archive=path) for arg in args])
    assert status != 0 and says in out + err


def test_a_program_of_other_results(tmp_path: Path, capsys: Caps) -> None:
    other = tmp_path / "other.relay"
    other.write_text('#[version = "0.0.5"]\ndef @main(%y: Tensor[(1, 1, 8, 8), float32]) { nn.relu(%y) }\n')
    status, lines = ran(capsys, archive(tmp_path, "ethos-u55-128"), "--random-params", "0", "--compare", str(other))
    assert status == 1 and "the results have the shapes" in lines[-1]
    assert all("no value of" in line for line in lines[:-1])


def found(value: np.ndarray, *outputs: np.ndarray) -> list[str]:
    """How outputs differ from a value."""
    matches = matched([Output("s", 0, "OP", "", out.astype(np.int64)) for out in outputs], [Value("%v", "", value)])
    array = value.copy()
    return ["none" if m.value is None else str(m.put(array)) for m in matches]


def test_parts_and_orders_of_values() -> None:
    value = np.random.default_rng(0).integers(-128, 128, (2, 6, 7, 9)).astype("int8")
    assert found(value, value[1, 2:5], value[0, :, 3:5], value[0, :, :, 4:]) == ["None"] * 3
    channels_first = value.transpose(0, 2, 3, 1)
    assert found(value, channels_first[1], channels_first[0, 2:4]) == ["None"] * 2
    wrong = value[1].copy()
    wrong[4, 2, 1] ^= 1
    assert "1 of 378 by up to 1, first at [1, 4, 2, 1]" in found(value, wrong)[0]
    assert found(value, np.arange(378).reshape(6, 7, 9), np.zeros((6, 7, 9)), np.zeros((0, 1, 1))) == ["none"] * 3
    unsigned = (value.astype(int) + 128).astype("uint8")
    assert found(unsigned, value[0, 1:4]) == ["None"]


def test_differences_of_real_numbers() -> None:
    x = np.array([[1.0, np.nan]], np.float32)
    assert difference_of(x, x.copy()) is None
    assert str(difference_of(x + 1, x)) == "1 of 2 by up to 1, first at [0, 0]: 2 instead of 1"
