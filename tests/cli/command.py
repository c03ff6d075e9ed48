"""Running the `relay` command in tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from relaylang.cli import main
from tests.shared import PATIENCE


class Ran(NamedTuple):
    status: int
    out: str
    err: str


def relay(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ran:
    """Run the command in this process."""
    capsys.readouterr()
    try:
        status = main([str(a) for a in arguments])
    except SystemExit as end:
        status = int(end.code or 0)
    out, err = capsys.readouterr()
    return Ran(status, out, err)


def relay_process(*arguments: str | Path, stdin: str | bytes = b"", env: dict[str, str] | None = None) -> Ran:
    """Run the command in a process of its own."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    command = [sys.executable, "-m", "relaylang", *map(str, arguments)]
    run = subprocess.run(command, input=data, capture_output=True, env=env, cwd=Path(sys.executable).parent, timeout=PATIENCE)
    return Ran(run.returncode, run.stdout.decode(), run.stderr.decode())


def one_diagnostic(ran: Ran, status: int, code: str) -> None:
    """The run ended with this status, said nothing on stdout, and one error of this code on stderr."""
    assert ran.status == status, ran
    assert "Traceback" not in ran.err
    assert ran.err.count("error[") == 1, ran.err
    assert f"error[{code}]" in ran.err, ran.err
    assert ran.out == ""
