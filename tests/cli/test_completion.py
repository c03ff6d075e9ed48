"""Completion scripts, in the shells themselves."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pexpect
import pytest

from relaylang.cli import VERBS
from relaylang.cli.command import make_parser
from relaylang.cli.completion import SHELLS, verbs
from tests.cli.command import one_diagnostic, relay
from tests.shared import PATIENCE

Caps = pytest.CaptureFixture[str]


def script(tmp_path: Path, shell: str) -> Path:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    file = tmp_path / ("_relay" if shell == "zsh" else f"relay.{shell}")
    file.write_text(SHELLS[shell](verbs(VERBS, make_parser)))
    (tmp_path / "my net.relay").write_text("1")
    return file


def test_the_call(capsys: Caps) -> None:
    ran = relay(capsys, "completion", "bash")
    assert ran.status == 0 and "complete -F _relay relay" in ran.out
    one_diagnostic(relay(capsys, "completion", "tcsh"), 2, "R0700")
    one_diagnostic(relay(capsys, "completion"), 2, "R0700")


def test_every_verb_and_option_is_in_every_script() -> None:
    table = verbs(VERBS, make_parser)
    assert [v.name for v in table] == list(VERBS)
    for shell, make in SHELLS.items():
        text = make(table)
        for verb in table:
            assert verb.name in text
            for option in verb.options:
                assert all((n if shell != "fish" else n.lstrip("-")) in text for n in option.names)
    run = next(v for v in table if v.name == "compile")
    target = next(o for o in run.options if "--target" in o.names)
    assert target.value is not None and {"c", "ethos-u"} <= set(target.value.words)
    assert run.arguments.files


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("relay ch", ["check"]),
        ("relay check --qu", ["--quiet"]),
        ("relay print --style ", ["lossless", "tvm"]),
        ("relay compile --target ", ["c", "cmsis-nn", "ethos-u", "vta"]),
        ("relay --ver", ["--version"]),
        ("relay check my", ["my net.relay"]),
        ("relay opt x --passes FoldC", ["FoldConstant"]),
        ("relay opt x --passes InferType,FoldC", ["InferType,FoldConstant"]),
    ],
)
def test_bash(tmp_path: Path, line: str, wanted: list[str]) -> None:
    file = script(tmp_path, "bash")
    words = line.split(" ")
    code = f"""
source {file}
COMP_WORDS=({" ".join(f"'{w}'" for w in words)})
COMP_CWORD={len(words) - 1}
_relay
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    assert (sorted(ran.stdout.splitlines()), ran.stderr) == (sorted(wanted), "")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("relay ch", ["check"]),
        ("relay check --qu", ["--quiet"]),
        ("relay print --style ", ["lossless", "tvm"]),
        ("relay compile --target ", ["c", "cmsis-nn", "ethos-u", "vta"]),
        ("relay check my", ["my net.relay"]),
        ("relay opt x --passes FoldC", ["FoldConstant"]),
        ("relay opt x --passes InferType,FoldC", ["InferType,FoldConstant"]),
    ],
)
def test_fish(tmp_path: Path, line: str, wanted: list[str]) -> None:
    file = script(tmp_path, "fish")
    code = f"source {file}; complete -C '{line}'"
    ran = subprocess.run(
        ["fish", "--no-config", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=PATIENCE,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    found = [row.split("\t")[0].replace("\\ ", " ") for row in ran.stdout.splitlines()]
    assert (sorted(found), ran.stderr) == (sorted(wanted), "")


@pytest.mark.sweep
def test_zsh(tmp_path: Path) -> None:
    file = script(tmp_path, "zsh")
    assert subprocess.run(["zsh", "-n", str(file)], capture_output=True, timeout=PATIENCE).stderr == b""
    child = pexpect.spawn(
        "zsh",
        ["-f", "-i"],
        cwd=str(tmp_path),
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TERM": "dumb", "PS1": "> "},
        encoding="utf-8",
        timeout=PATIENCE,
        dimensions=(40, 160),
    )
    child.sendline(f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -D; echo rea''dy")
    child.expect("ready")
    for typed, shown in (
        ("relay ch\t", "relay check"),
        ("relay check --qu\t", "--quiet"),
        ("relay compile --target e\t", "ethos-u"),
        ("relay check my\t", r"my\ net.relay"),
        ("relay opt x --passes InferType,FoldC\t", "InferType,FoldConstant"),
    ):
        child.send(typed)
        seen = ""
        deadline = time.monotonic() + PATIENCE
        while shown not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x08", "", seen):
            assert time.monotonic() < deadline, seen
            try:
                seen += child.read_nonblocking(4096, timeout=1)
            except pexpect.TIMEOUT:
                continue
        child.send("\x15")
    child.close(force=True)
