"""The session at a terminal: editing, highlighting, completion; and the session that reads a script from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.shortcuts import CompleteStyle

from relaylang.diagnostics import Diagnostic, RelayError, error, render
from relaylang.repl.commands import Quit
from relaylang.repl.completer import suggestions
from relaylang.repl.lexer import RelayLexer
from relaylang.repl.session import Session
from relaylang.syntax import is_complete

_PROMPT = "relay> "
_MORE = "  ...> "


class RelayCompleter(Completer):
    """The session's suggestions for prompt_toolkit. A fault in completing never ends the session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        try:
            found = list(suggestions(document.text_before_cursor, self._session))
        except Exception:
            return
        for s in found:
            yield Completion(s.text, start_position=-s.length, display_meta=s.says[:80])


def ready(text: str) -> bool:
    """Whether Enter ends the input: a command, a complete text, or nothing at all."""
    stripped = text.strip()
    return not stripped or stripped.startswith(":") or is_complete(text)


def _bindings() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if ready(buffer.text) or (buffer.document.is_cursor_at_the_end and buffer.text.endswith("\n\n")):
            buffer.validate_and_handle()
        else:
            line = buffer.document.current_line_before_cursor
            indent = len(line) - len(line.lstrip()) + (2 if line.rstrip().endswith(("{", "(", "[")) else 0)
            buffer.insert_text("\n" + " " * indent)

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _history() -> History:
    """Kept across sessions where the home directory allows it."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "relaylang"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "history"
        with open(file, "a+b"):
            pass
        file.read_bytes().decode("utf-8")
    except (OSError, ValueError, RuntimeError):
        return InMemoryHistory()
    return FileHistory(str(file))


class Shell:
    """Runs inputs in a session and shows what comes of them; no error ends it. `failed` says whether one occurred."""

    def __init__(self, session: Session, out: TextIO, err: TextIO, color: bool) -> None:
        self.session = session
        self.failed = False
        self._out = out
        self._err = err
        self._color = color

    def handle(self, text: str) -> bool:
        """Run one input. False where it was `:quit`."""
        try:
            shown = self.session.execute(text)
        except Quit:
            return False
        except RelayError as wrong:
            self.failed = True
            self._report(wrong.diagnostics)
        except KeyboardInterrupt:
            self.failed = True
            print("interrupted", file=self._err)
        except BrokenPipeError:
            raise
        except Exception as ours:
            self.failed = True
            if os.environ.get("RELAY_TRACEBACK"):
                sys.excepthook(type(ours), ours, ours.__traceback__)
            says = " ".join(f"{type(ours).__name__}: {ours}".split())[:300]
            self._report(
                [
                    error(
                        "R0900",
                        f"internal error of relaylang: {says}",
                        notes=["the session goes on; please report this", "RELAY_TRACEBACK=1 shows the traceback"],
                    )
                ]
            )
        else:
            self._report(self.session.take_notes())
            if shown:
                print(shown, file=self._out, flush=True)
        return True

    def _report(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            print(render(diagnostic, self._color), file=self._err, flush=True)


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
    prompt: PromptSession[str] = PromptSession(
        message=ANSI(f"\x1b[1;34m{_PROMPT}\x1b[0m") if color else _PROMPT,
        prompt_continuation=lambda width, number, wrapped: _MORE[-width:] if width else "",
        multiline=True,
        lexer=PygmentsLexer(RelayLexer) if color else None,
        completer=RelayCompleter(shell.session),
        complete_style=CompleteStyle.COLUMN,
        complete_while_typing=False,
        history=_history(),
        key_bindings=_bindings(),
        color_depth=None if color else ColorDepth.DEPTH_1_BIT,
        enable_open_in_editor=True,
    )
    while True:
        try:
            text = prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip() and not shell.handle(text):
            return
