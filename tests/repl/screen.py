"""A session in a pseudo terminal whose screen is kept, as a person sees it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pyte

from relaylang.syntax.tables import cache_directory
from tests.shared import PATIENCE


class Screen:
    """`relay repl` at a terminal of `columns` by `rows`; `text` is what its screen shows."""

    def __init__(self, home: Path, *arguments: str, columns: int = 100, rows: int = 30, **env: str) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.Stream(self.screen)
        self.env = env
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "relaylang", "repl", *arguments],
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(home),
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                "RELAYLANG_CACHE": str(cache_directory()),
                **env,
            },
            cwd=str(home),
            encoding="utf-8",
            timeout=PATIENCE,
            dimensions=(rows, columns),
        )

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, good: str | Callable[[str], bool], timeout: float = PATIENCE) -> str:
        """Read until the screen shows a text; the screen."""
        deadline = time.monotonic() + timeout
        while not (good in self.text if isinstance(good, str) else good(self.text)):
            assert time.monotonic() < deadline, f"no {good!r} in\n{self.text}"
            try:
                got = self.child.read_nonblocking(100_000, timeout=0.2)
            except pexpect.TIMEOUT:
                continue
            self.stream.feed(got)
            if "\x1b[6n" in got and "PROMPT_TOOLKIT_NO_CPR" not in self.env:  # the editor asks where the cursor is
                self.child.send(f"\x1b[{self.screen.cursor.y + 1};{self.screen.cursor.x + 1}R")
        return self.text

    def send(self, text: str) -> None:
        self.child.send(text)

    def ask(self, line: str, answer: str) -> str:
        self.send(line + "\r")
        return self.until(answer)

    def quit(self) -> int:
        self.child.send("\x15:quit\r")
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus or 0)

    def close(self) -> None:
        self.child.close(force=True)
