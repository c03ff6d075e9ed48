"""The tables of runtimes: `relay compile` and `relay run` refuse each option that belongs to another runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.cli.run import _REFUSED
from relaylang.cli.runtimes import RUNTIMES
from tests.cli.command import relay
from tests.shared import check_each

#: How an option of the tables is written in a call.
WORDS = {
    "emit": ["--emit", "c"],
    "module_name": ["--module-name", "net"],
    "workspace_limit": ["--workspace-limit", "0"],
    "threads": ["--threads", "2"],
    "compare": ["--compare", "other.relay"],
    "breaks": ["--break", "@main"],
    "save_intermediates": ["--save-intermediates", "all.npz"],
    "expr": ["-e", "1"],
    "target": ["--target", "c"],
    "entry": ["--entry", "other"],
    "executor": ["--executor", "cpu"],
}
#: How `relay run` is called for each runtime.
CALLS = {
    "interpreter": ["net.relay"],
    "graph": ["net.relay", "--executor", "cpu"],
    "vm": ["net.relay", "--executor", "vm"],
    "vm file": ["net.vm"],
    "file": ["net.so"],
}


def _words(option: str) -> list[str]:
    return WORDS.get(option, [f"--{option.replace('_', '-')}"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.relay").write_text("def @main(%x: float32) -> float32 { %x }")
    (tmp_path / "net.so").write_bytes(b"\x7fELF")
    (tmp_path / "net.vm").write_bytes(b"\x7fELF")
    return tmp_path


def test_an_option_of_another_runtime_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [(own, option, other) for own, row in RUNTIMES.items() for option in row.options for other in RUNTIMES if other != own]

    def refused(own: str, option: str, other: str) -> None:
        ran = relay(capsys, "compile", "net.relay", "--runtime", other, "-o", "net.tar", *_words(option))
        assert ran.status == 2, ran
        assert f"{_words(option)[0]} goes with --runtime {own}" in ran.err, ran.err

    check_each(lambda case: refused(*case), cases)
    assert not (folder / "net.tar").exists()


def test_what_runs_a_program_refuses_the_options_of_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(runtime: str, option: str) -> None:
        ran = relay(capsys, "run", *CALLS[runtime], *_words(option))
        assert ran.status == 2, ran
        assert _REFUSED[runtime][option].format(file=CALLS[runtime][0]) in ran.err, ran.err

    check_each(lambda case: refused(*case), [(runtime, option) for runtime, row in _REFUSED.items() for option in row])


def test_what_the_interpreter_computed_is_shown_or_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "net.relay").write_text("def @main(%x: Tensor[(2), float32]) { (exp(%x), argwhere(%x)) }")
    call = ["run", "net.relay", "--executor", "vm", "--random-params", "0"]
    shown = relay(capsys, *call, "--fallbacks")
    assert shown.status == 0 and "fell back 1 time: argwhere: the result's shape is known only when" in shown.err
    assert "net.relay:1:" in shown.err and "argwhere(%x)" in shown.err
    refused = relay(capsys, *call, "--no-fallback")
    assert refused.status == 1 and "error[R0646]" in refused.err
    (folder / "net.relay").write_text("def @main(%x: Tensor[(2), float32]) { exp(%x) }")
    assert "compiled code has computed all kernels" in relay(capsys, *call, "--fallbacks", "--no-fallback").err
