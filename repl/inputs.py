"""Divides typed lines, scripts and pasted texts into inputs."""

from __future__ import annotations

from relaylang.repl.commands import is_command
from relaylang.repl.questions import question
from relaylang.syntax import is_complete, leaves_comment


def ready(text: str) -> bool:
    """Whether Enter ends the input: a command, a question, a complete text, or nothing at all."""
    stripped = text.strip()
    return not stripped or stripped.startswith(":") or question(text) is not None or ends_with_command(text) or is_complete(text)


def ends_with_command(text: str) -> bool:
    """Whether the last line is a command. A command ends the input before it, complete or not."""
    before, _, last = text.rstrip().rpartition("\n")
    return is_command(last) and not leaves_comment(before)


def inputs(text: str) -> list[str]:
    """The inputs of a text: lines with a command, and the texts between them.

    An incomplete argument of a command continues in the next line. Comments contain no commands.
    """
    if "\n" not in text.strip():
        return [text]
    complete: list[str] = []
    gathered = ""
    for line in text.splitlines(keepends=True):
        begins = is_command(line) and not leaves_comment(gathered)
        if begins and gathered.strip():
            complete.append(gathered)
            gathered = ""
        gathered += line
        if begins and is_complete(line.strip().partition(" ")[2]):
            complete.append(gathered)
            gathered = ""
    return [part for part in [*complete, gathered] if part.strip()]
