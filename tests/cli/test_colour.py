"""Programs in colour on a terminal, and only there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.cli.command import relay

TEXT = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}\n'
CALLS = [
    ["print"],
    ["print", "--no-types"],
    ["opt", "--passes", "FoldConstant"],
    ["fmt"],
    ["fmt", "--diff"],
]

Caps = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "a.relay"
    file.write_text(TEXT.replace("%x: Tensor", "%x:Tensor") + "\n\n")
    return file


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_terminal_shows_colours(capsys: Caps, monkeypatch: pytest.MonkeyPatch, file: Path, call: list[str]) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    call = [call[0], str(file), *call[1:]]
    plain = relay(capsys, *call).out
    assert "nn.relu" in plain and "\x1b" not in plain
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda stream: True)
    shown = relay(capsys, *call).out
    assert "\x1b[" in shown and re.sub(r"\x1b\[[\d;]*m", "", shown) == plain
    assert "\x1b" not in relay(capsys, *call, "--color", "never").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert relay(capsys, *call).out == plain
    assert relay(capsys, *call, "--color", "always").out == shown


def test_a_file_gets_no_colours(capsys: Caps, file: Path, tmp_path: Path) -> None:
    relay(capsys, "print", file, "--no-types", "--color", "always", "-o", tmp_path / "out.relay")
    assert (tmp_path / "out.relay").read_text() == TEXT
    relay(capsys, "fmt", "--write", file, "--color", "always")
    assert file.read_text() == TEXT


def test_lines_of_a_difference(capsys: Caps, file: Path) -> None:
    lines = relay(capsys, "fmt", "--diff", file, "--color", "always").out.splitlines()
    assert lines[0].startswith("\x1b[1m---") and lines[1].startswith("\x1b[1m+++") and lines[2].startswith("\x1b[36m@@")
    assert "\x1b[31m-def @main(%x:Tensor[(2), float32]) {\x1b[0m" in lines
    assert "\x1b[32m+def @main(%x: Tensor[(2), float32]) {\x1b[0m" in lines
    assert "   nn.relu(%x)" in lines
