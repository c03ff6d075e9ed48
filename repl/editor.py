"""The prompt of the session: editing, highlighting, completion, signatures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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

from relaylang.repl.calls import Signature, function_signature, op_signature, open_call
from relaylang.repl.completer import suggestions
from relaylang.repl.config import Settings
from relaylang.repl.inputs import ready
from relaylang.repl.lexer import RelayLexer
from relaylang.repl.session import Session

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
            completions = suggestions(document.text_before_cursor, self._session, document.text_after_cursor[:1])
        except Exception:
            return
        for s in completions:
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


#: Texts longer than this are not coloured while they are edited, and nothing is completed in them.
_LONGEST_SHOWN = 100_000


class Editor:
    """The prompt: keys, colours, completion, the signature of the call at the cursor in the line at the bottom."""

    def __init__(self, session: Session, color: bool, wish: Settings, past: History) -> None:
        self._session = session
        self._color = color
        self._wish = wish
        colored = PygmentsLexer(RelayLexer) if color and wish.highlight else None
        self.prompt: PromptSession[str] = PromptSession(
            message=self._message,
            prompt_continuation=self._continuation,
            multiline=True,
            lexer=DynamicLexer(lambda: colored if self._short() else None),
            completer=RelayCompleter(session),
            complete_style=CompleteStyle.COLUMN,
            complete_while_typing=wish.complete_while_typing,
            history=past,
            auto_suggest=AutoSuggestFromHistory() if color and wish.suggestions else None,
            key_bindings=_bindings(),
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
            enable_open_in_editor=True,
            search_ignore_case=True,
            editing_mode=_mode(session.keys),
            input_processors=[HighlightMatchingBracketProcessor("()[]{}")] if color else [],
            include_default_pygments_style=True,
        )
        if wish.signatures:
            self.prompt.default_buffer.on_text_changed += self._look
            self.prompt.default_buffer.on_cursor_position_changed += self._look

    def read(self) -> str:
        self.prompt.bottom_toolbar = None
        self.prompt.editing_mode = _mode(self._session.keys)
        self._session.style = replace(self._session.style, width=max(20, self._columns()), color=self._color)
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
        call_signature = signature(buffer.document.text_before_cursor[-_SEEN:], self._session)
        if call_signature is None:
            return None
        pieces = call_signature.parts()
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
