from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import one_diagnostic, relay, relay_process

MESSY = "def @main(%x:int32){%x+1}\n"
CLEAN = '#[version = "0.0.5"]\ndef @main(%x: int32) { %x + 1 }\n'


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    path = tmp_path / "a.relay"
    path.write_text(MESSY)
    return path


def test_one_file_goes_to_stdout(capsys: pytest.CaptureFixture[str], messy: Path) -> None:
    assert relay(capsys, "fmt", messy) == (0, CLEAN, "")
    assert messy.read_text() == MESSY


@pytest.mark.sweep
def test_stdin() -> None:
    ran = relay_process("fmt", "-", stdin=MESSY)
    assert (ran.status, ran.out, ran.err) == (0, CLEAN, "")
    one_diagnostic(relay_process("fmt", "--write", "-", stdin=MESSY), 2, "R0700")


def test_write_and_check(capsys: pytest.CaptureFixture[str], messy: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.relay").write_text(CLEAN)
    assert relay(capsys, "fmt", "--check", tmp_path) == (1, f"{messy}\n", "")
    assert relay(capsys, "fmt", "--write", tmp_path) == (0, f"{messy}\n", "")
    assert messy.read_text() == CLEAN
    assert relay(capsys, "fmt", "--check", tmp_path) == (0, "", "")
    assert [p.name for p in tmp_path.iterdir()] != [] and not list(tmp_path.glob(".*"))


def test_diff(capsys: pytest.CaptureFixture[str], messy: Path) -> None:
    ran = relay(capsys, "fmt", "--diff", messy)
    assert ran.status == 0 and "-def @main(%x:int32){%x+1}\n" in ran.out and "+def @main(%x: int32) { %x + 1 }" in ran.out
    assert relay(capsys, "fmt", "--diff", "--check", messy).status == 1
    assert messy.read_text() == MESSY


def test_wrong_files_do_not_stop_the_others(capsys: pytest.CaptureFixture[str], messy: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "0.relay"
    wrong.write_text("def @f( {")
    ran = relay(capsys, "fmt", "--write", tmp_path)
    assert ran.status == 1 and "R01" in ran.err and messy.read_text() == CLEAN
    assert wrong.read_text() == "def @f( {"
    assert relay(capsys, "fmt", tmp_path).status == 2
    assert relay(capsys, "fmt", "--check", tmp_path / "none.relay").status == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    one_diagnostic(relay(capsys, "fmt", "--check", empty), 2, "R0001")


def test_other_line_ends_and_a_byte_order_mark_go(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.relay"
    path.write_bytes(b"\xef\xbb\xbf" + CLEAN.replace("\n", "\r\n").encode())
    assert relay(capsys, "fmt", "--write", path).out == f"{path}\n"
    assert path.read_bytes() == CLEAN.encode()


def test_diff_of_two_programs(capsys: pytest.CaptureFixture[str], messy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.relay"
    other.write_text("def @main(%y: int32) { add(%y, 1) }")
    assert relay(capsys, "diff", messy, other) == (0, "", "")
    other.write_text("def @main(%y: int32) { add(%y, 2) }")
    ran = relay(capsys, "diff", messy, other)
    assert ran.status == 1 and "at @main.body.args[1]: the constant 1 of int32 on the left" in ran.out
    assert relay(capsys, "diff", "-q", messy, other) == (1, "", "")
    assert relay(capsys, "diff", messy, tmp_path / "none").status == 2
