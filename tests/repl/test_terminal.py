"""The session at a real terminal, and as a script."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from relaylang.syntax.tables import cache_directory
from tests.shared import PATIENCE, ROOT, wait_for_work

COMMAND = [sys.executable, "-m", "relaylang", "repl"]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07|\r")


class Terminal:
    """A session in a pseudo terminal."""

    def __init__(self, home: Path, *arguments: str) -> None:
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "RELAYLANG_CACHE": str(cache_directory()),
        }
        self.child = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], *arguments],
            env=env,
            cwd=str(home),
            encoding="utf-8",
            timeout=PATIENCE,
            dimensions=(40, 120),
        )

    def wait(self, text: str) -> str:
        """Everything up to a text that the session shows, without what steers the terminal."""
        seen = ""
        deadline = time.monotonic() + PATIENCE
        while text not in ESCAPES.sub("", seen):
            assert time.monotonic() < deadline, f"no {text!r} in {ESCAPES.sub('', seen)!r}"
            try:
                seen += self.child.read_nonblocking(10_000, timeout=1)
            except pexpect.TIMEOUT:
                continue
        return ESCAPES.sub("", seen)

    def ask(self, line: str, answer: str) -> str:
        """Type a line; returns the screen's text until the answer has come."""
        self.child.send(line + "\r")
        return self.wait(answer)

    def quit(self) -> int:
        self.child.send(":quit\r")
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus or 0)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    made.wait("relay> ")
    yield made
    made.child.close(force=True)


def test_values_definitions_and_errors(terminal: Terminal) -> None:
    terminal.ask("let %a = add(20, 22)", "%a = 42 : int32")
    terminal.ask("%a * 2", "84 : int32")
    terminal.ask("nn.rellu(%a)", "error[R0202]")
    terminal.ask("%a + 1", "43 : int32")
    terminal.ask(":type %a", "int32")
    terminal.ask(":help", "Ctrl-D leaves")
    assert terminal.quit() == 0


@pytest.mark.sweep
def test_a_definition_over_several_lines(terminal: Terminal) -> None:
    terminal.ask("def @twice(%n: int32) -> int32 {", "...>")
    terminal.ask("%n * 2", "...>")
    terminal.ask("}", "@twice : fn (int32) -> int32")
    terminal.ask("@twice(21)", "42 : int32")


@pytest.mark.sweep
def test_ctrl_c_stops_an_evaluation_and_keeps_the_session(terminal: Terminal) -> None:
    terminal.ask("def @f(%n: int32) -> int32 { @f(%n) }", "@f : fn (int32) -> int32")
    terminal.child.send("@f(1)\r")
    wait_for_work(terminal.child.pid, 1.5)
    terminal.child.sendintr()
    terminal.wait("interrupted")
    terminal.ask("1 + 2", "3 : int32")


@pytest.mark.sweep
def test_ctrl_c_drops_the_line_and_ctrl_d_leaves(terminal: Terminal) -> None:
    terminal.child.send("this is not finished (")
    terminal.wait("finished (")
    terminal.child.sendintr()
    terminal.wait("relay> ")
    terminal.ask("1 + 3", "4 : int32")
    terminal.child.send("\x04")
    terminal.child.expect(pexpect.EOF)
    terminal.child.close()
    assert terminal.child.exitstatus == 0


@pytest.mark.sweep
def test_completion(terminal: Terminal) -> None:
    terminal.child.send("nn.soft\t")
    terminal.wait("nn.softmax")
    terminal.child.sendintr()
    terminal.wait("relay> ")
    terminal.ask("let %velocity = 3f", "%velocity = 3.0 : float32")
    terminal.child.send("%velo\t")
    terminal.wait("%velocity")
    terminal.child.send(" + 1f\r")
    terminal.wait("4.0 : float32")


@pytest.mark.sweep
def test_highlighting(terminal: Terminal) -> None:
    terminal.child.send("def @f")
    seen = ""
    while "@f" not in ESCAPES.sub("", seen):
        seen += terminal.child.read_nonblocking(10_000, timeout=PATIENCE)
    assert re.search(r"\x1b\[[0-9;]*m(\x1b\[[0-9;]*m)*d", seen), seen


@pytest.mark.sweep
def test_history_is_kept(tmp_path: Path) -> None:
    first = Terminal(tmp_path)
    first.wait("relay> ")
    first.ask("40 + 2", "42 : int32")
    first.quit()
    second = Terminal(tmp_path)
    second.wait("relay> ")
    second.child.send("\x1b[A")
    second.wait(":quit")
    second.child.send("\x1b[A")
    second.wait("40 + 2")
    second.child.send("\r")
    second.wait("42 : int32")
    second.child.close(force=True)


@pytest.mark.sweep
def test_a_history_that_cannot_be_read_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ".local/state/relaylang"
    folder.mkdir(parents=True)
    (folder / "history").write_bytes(b"\xff\xfe\0broken")
    made = Terminal(tmp_path)
    made.wait("relay> ")
    made.ask("1 + 1", "2 : int32")
    assert made.quit() == 0
    assert (folder / "history").read_bytes() == b"\xff\xfe\0broken"


@pytest.mark.sweep
def test_a_file_to_begin_with(tmp_path: Path) -> None:
    made = Terminal(tmp_path, str(ROOT / "examples/numbers.relay"))
    made.wait("relay> ")
    made.ask("@total(Two(5, 6))", "11 : int32")
    assert made.quit() == 0


def script(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], input=text, capture_output=True, text=True, timeout=PATIENCE, cwd="/")


@pytest.mark.sweep
def test_a_script() -> None:
    run = script("let %x = 20\n\n// a comment\ndef @f(%n: int32) -> int32 {\n  %n * 2\n}\n@f(%x)\n:type @f\n")
    assert run.stdout.splitlines() == [
        "%x = 20 : int32",
        "@f : fn (int32) -> int32",
        "40 : int32",
        "fn (int32) -> int32",
    ]
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.sweep
def test_a_script_goes_on_behind_an_error_and_says_so_at_its_end() -> None:
    run = script("nn.rellu(1f)\n1 + 2\n:frob\n:quit\n5\n")
    assert run.stdout == "3 : int32\n"
    assert run.returncode == 1
    assert "<input 1>:1:1: error[R0202]" in run.stderr and "error[R0720]" in run.stderr


@pytest.mark.sweep
def test_an_unfinished_script() -> None:
    run = script("add(1,\n")
    assert run.returncode == 1 and "error[R01" in run.stderr and "Traceback" not in run.stderr


@pytest.mark.sweep
def test_a_script_of_bytes_that_are_no_text() -> None:
    run = subprocess.run(COMMAND, input=b"1 + 1\n\xff\xfe\n", capture_output=True, timeout=PATIENCE, cwd="/")
    assert run.returncode == 1 and b"Traceback" not in run.stderr and b"error[R0003]" in run.stderr
