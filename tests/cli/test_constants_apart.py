"""Constants of more than a megabyte leave a text for a file beside it, where the verbs find them."""

from __future__ import annotations

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relaylang as relay
from tests.cli.command import relay as command

Caps = pytest.CaptureFixture[str]
VALUES = np.arange(300_000, dtype="float32")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A program with 1.2 MB of constants in its text."""
    x = relay.var("x", shape=(1,))
    body = relay.sum(relay.add(relay.const(VALUES), relay.cast(relay.const(VALUES.astype(ml_dtypes.bfloat16)), "float32")))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.add(x, body)))
    (tmp_path / "net.relay").write_text(relay.astext(mod))
    return tmp_path / "net.relay"


def test_they_stand_beside_the_text_and_are_read_from_there(net: Path, capsys: Caps, tmp_path: Path) -> None:
    out = tmp_path / "apart.relay"
    ran = command(capsys, "print", str(net), "-o", str(out))
    assert ran.status == 0 and "note[R0709]" in ran.err and "apart.relay.params" in ran.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["apart.relay", "apart.relay.params", "net.relay"]
    assert out.stat().st_size < 2000
    values = [command(capsys, "run", str(file), "--input", "x=[1]").out for file in (net, out)]
    assert values[0] == values[1] != ""
    again = tmp_path / "again.relay"
    assert command(capsys, "opt", str(out), "--passes", "InferType", "-o", str(again)).status == 0
    assert again.read_text() == out.read_text()
    assert Path(f"{again}.params").read_bytes() == Path(f"{out}.params").read_bytes()
    assert command(capsys, "diff", str(net), str(again)).status == 0


@pytest.mark.parametrize("more", [["--style", "tvm"], ["--constants", "own.npz"], []])
def test_other_ways_make_no_file_beside_the_text(net: Path, more: list[str], capsys: Caps, tmp_path: Path) -> None:
    out = tmp_path / "out.relay"
    place = [] if not more else ["-o", str(out)]
    more = [str(tmp_path / m) if m.endswith(".npz") else m for m in more]
    ran = command(capsys, "print", str(net), *more, *place)
    assert ran.status == 0 and "R0709" not in ran.err and not Path(f"{out}.params").exists()


def test_a_few_constants_stay_in_the_text(capsys: Caps, tmp_path: Path) -> None:
    (tmp_path / "net.relay").write_text(relay.astext(relay.IRModule.from_expr(relay.const(VALUES[:1000]))))
    assert command(capsys, "print", str(tmp_path / "net.relay"), "-o", str(tmp_path / "out.relay")).err == ""
    assert not (tmp_path / "out.relay.params").exists()


def test_what_is_no_regular_file_is_not_read(net: Path, capsys: Caps, tmp_path: Path) -> None:
    out = tmp_path / "apart.relay"
    assert command(capsys, "print", str(net), "-o", str(out)).status == 0
    os.unlink(f"{out}.params")
    os.mkfifo(f"{out}.params")
    assert "R0151" in command(capsys, "check", str(out)).err


def test_a_damaged_file_is_named(net: Path, capsys: Caps, tmp_path: Path) -> None:
    out = tmp_path / "apart.relay"
    assert command(capsys, "print", str(net), "-o", str(out)).status == 0
    Path(f"{out}.params").write_bytes(b"damaged")
    ran = command(capsys, "check", str(out))
    assert ran.status != 0 and "R0012" in ran.err and "apart.relay.params" in ran.err


def test_nothing_is_written_where_one_file_cannot_be(net: Path, capsys: Caps, tmp_path: Path) -> None:
    out = tmp_path / "apart.relay"
    Path(f"{out}.params").mkdir()
    assert command(capsys, "print", str(net), "-o", str(out)).status == 2
    assert not out.exists()
