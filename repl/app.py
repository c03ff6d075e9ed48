"""The session at a terminal, and the session that reads a script from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from relaylang.diagnostics import Diagnostic, RelayError, render
from relaylang.diagnostics.internal import internal
from relaylang.diagnostics.rendering import COLUMNS, prose_width
from relaylang.repl.commands import Quit
from relaylang.repl.config import history, settings
from relaylang.repl.editor import Editor
from relaylang.repl.inputs import inputs, ready
from relaylang.repl.session import Session
from relaylang.runtime.processes import browser


class Shell:
    """Runs inputs in a session and shows their results. An error does not end it, but sets `failed`."""

    def __init__(self, session: Session, out: TextIO, err: TextIO, color: bool) -> None:
        self.session = session
        self.failed = False
        self._out = out
        self._err = err
        self._color = color

    def handle(self, text: str) -> bool:
        """Run one or several inputs. Returns False for `:quit`."""
        return all(map(self._one, inputs(text)))

    def _one(self, text: str) -> bool:
        try:
            shown = self.session.execute(text)
        except Quit:
            return False
        except RelayError as wrong:
            self.failed = True
            codes = [d.code for d in wrong.diagnostics if d.severity == "error"]
            if codes and not (text.lstrip().startswith(":") and codes[0].startswith("R072")):
                self.session.last_error = codes[0]
            self.report(wrong.diagnostics)
        except KeyboardInterrupt:
            self.failed = True
            print("interrupted", file=self._err)
        except BrokenPipeError:
            raise
        except Exception as ours:
            self.failed = True
            if os.environ.get("RELAY_TRACEBACK"):
                sys.excepthook(type(ours), ours, ours.__traceback__)
            self.report([internal(ours, "", None, "the session goes on")])
        else:
            self.report(self.session.take_notes())
            if shown:
                print(shown, file=self._out, flush=True)
        return True

    def report(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            print(render(diagnostic, self._color, prose_width(COLUMNS)), file=self._err, flush=True)


def run_script(shell: Shell, lines: Iterable[str]) -> None:
    """Run a script: each input ends with the line that completes it."""
    gathered = ""
    for line in lines:
        gathered += line if line.endswith("\n") else line + "\n"
        if not gathered.strip():
            gathered = ""
        elif ready(gathered):
            if not shell.handle(gathered):
                return
            gathered = ""
    if gathered.strip():
        shell.handle(gathered)


def run_terminal(shell: Shell, color: bool) -> None:
    """Read from the terminal until Ctrl-D or `:quit`."""
    wish = settings()
    shell.session.browse = browser()
    shell.session.keys = wish.keys
    past, problem = history(wish.history)
    shell.report([*wish.said, *([problem] if problem is not None else [])])
    editor = Editor(shell.session, color, wish, past)
    while True:
        try:
            text = editor.read()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip() and not shell.handle(text):
            return
