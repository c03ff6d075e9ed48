"""The session at a terminal: editing, highlighting, completion; and the session that reads a script from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import completion_is_selected, is_searching
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import HighlightMatchingBracketProcessor
from prompt_toolkit.lexers import DynamicLexer, PygmentsLexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.shortcuts import CompleteStyle

from relaylang.diagnostics import Diagnostic, RelayError, render
from relaylang.diagnostics.internal import internal
from relaylang.diagnostics.rendering import COLUMNS, prose_width
from relaylang.repl.calls import Signature, function_signature, op_signature, open_call
from relaylang.repl.commands import Quit
from relaylang.repl.completer import suggestions
from relaylang.repl.config import Settings, history, settings
from relaylang.repl.inputs import inputs, ready
from relaylang.repl.lexer import RelayLexer
from relaylang.repl.session import Session
from relaylang.runtime.processes import browser

_PROMPT = "relay> "
_MORE = "  ...> "


class RelayCompleter(Completer):
    """The session's suggestions for prompt_toolkit. A fault in completing never ends the session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        if len(document.text) > _LONGEST_SHOWN:
            return
        try:
            found = suggestions(document.text_before_cursor, self._session, document.text_after_cursor[:1])
        except Exception:
            return
        for s in found:
            yield Completion(s.text, start_position=-s.length, display_meta=s.says[:80])


def _bindings() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected & ~is_searching)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if ready(buffer.text) or (buffer.document.is_cursor_at_the_end and buffer.text.endswith("\n\n")):
            buffer.validate_and_handle()
        else:
            line = buffer.document.current_line_before_cursor
            indent = len(line) - len(line.lstrip()) + (2 if line.rstrip().endswith(("{", "(", "[")) else 0)
            buffer.insert_text("\n" + " " * indent)

    @keys.add("}")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line_before_cursor.isspace():
            buffer.delete_before_cursor(min(2, len(buffer.document.current_line_before_cursor)))
        buffer.insert_text("}")

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


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


#: Texts longer than this are not coloured while they are edited, and nothing is completed in them.
_LONGEST_SHOWN = 100_000


class Editor:
    """The prompt: keys, colours, completion, the signature of the call at the cursor in the line at the bottom."""

    def __init__(self, shell: Shell, color: bool, wish: Settings, past: History) -> None:
        self._shell = shell
        self._color = color
        self._wish = wish
        colored = PygmentsLexer(RelayLexer) if color and wish.highlight else None
        self.prompt: PromptSession[str] = PromptSession(
            message=self._message,
            prompt_continuation=self._continuation,
            multiline=True,
            lexer=DynamicLexer(lambda: colored if self._short() else None),
            completer=RelayCompleter(shell.session),
            complete_style=CompleteStyle.COLUMN,
            complete_while_typing=wish.complete_while_typing,
            history=past,
            auto_suggest=AutoSuggestFromHistory() if color and wish.suggestions else None,
            key_bindings=_bindings(),
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
            enable_open_in_editor=True,
            search_ignore_case=True,
            editing_mode=_mode(shell.session.keys),
            input_processors=[HighlightMatchingBracketProcessor("()[]{}")] if color else [],
            include_default_pygments_style=True,
        )
        if wish.signatures:
            self.prompt.default_buffer.on_text_changed += self._look
            self.prompt.default_buffer.on_cursor_position_changed += self._look

    def read(self) -> str:
        self.prompt.bottom_toolbar = None
        self.prompt.editing_mode = _mode(self._shell.session.keys)
        session = self._shell.session
        session.style = replace(session.style, width=max(20, self._columns()), color=self._color)
        return self.prompt.prompt()

    def _short(self) -> bool:
        return len(self.prompt.default_buffer.text) <= _LONGEST_SHOWN

    def _columns(self) -> int:
        return self.prompt.app.output.get_size().columns

    def _message(self) -> AnyFormattedText:
        text = _PROMPT if self._columns() >= _NARROW else "> "
        return ANSI(f"\x1b[1;34m{text}\x1b[0m") if self._color else text

    def _continuation(self, width: int, number: int, wrapped: int) -> AnyFormattedText:
        return _MORE[-width:] if width else ""

    def _look(self, buffer: Buffer) -> None:
        """Bring the line at the bottom up to date. A fault in it never ends the session."""
        try:
            self.prompt.bottom_toolbar = self._signature(buffer)
        except Exception:
            self.prompt.bottom_toolbar = None

    def _signature(self, buffer: Buffer) -> AnyFormattedText:
        found = signature(buffer.document.text_before_cursor[-_SEEN:], self._shell.session)
        if found is None:
            return None
        pieces = found.parts()
        room = max(20, self._columns()) - 1
        if sum(len(text) for _, text in pieces) > room:
            pieces = _around(pieces, room)
        strong = "bold underline" if self._color else "bold"
        return [(strong if active else "", text) for active, text in pieces]


#: Terminals with fewer columns get a short prompt.
_NARROW = 40
#: How much of the text in front of the cursor is looked at for a signature.
_SEEN = 8000


def _around(pieces: list[tuple[bool, str]], room: int) -> list[tuple[bool, str]]:
    """The pieces that fit: the callee, and the parameters from a little in front of the active one."""
    at = next((i for i, (active, _) in enumerate(pieces) if active), 1)
    head = [pieces[0], *([(False, "…, ")] if at > 1 else [])]
    out, used = [], sum(len(t) for _, t in head)
    for active, text in pieces[max(1, at) :]:
        if used + len(text) > room:
            out.append((active, text[: max(0, room - used - 1)] + "…"))
            break
        out.append((active, text))
        used += len(text)
    return head + out


def signature(before: str, names: Session) -> Signature | None:
    """The signature of the call that is open at the end of a text."""
    call = open_call(before)
    if call is None:
        return None
    if call.name.startswith("@"):
        says = names.global_names().get(call.name[1:])
        return function_signature(call, says) if says is not None else None
    return op_signature(call) or names.constructor_signature(call)


def _mode(keys: str) -> EditingMode:
    return EditingMode.VI if keys == "vi" else EditingMode.EMACS


def run_terminal(shell: Shell, color: bool) -> None:
    """Read from the terminal until Ctrl-D or `:quit`."""
    wish = settings()
    shell.session.browse = browser()
    shell.session.keys = wish.keys
    past, problem = history(wish.history)
    shell.report([*wish.said, *([problem] if problem is not None else [])])
    editor = Editor(shell, color, wish, past)
    while True:
        try:
            text = editor.read()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip() and not shell.handle(text):
            return
