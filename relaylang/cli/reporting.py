"""Writes the diagnostics of every verb: to stderr or a file, as text, JSON lines or a SARIF log.

The command calls `begin` before a verb and `end` after it. In between, all diagnostics go through `report`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from relaylang.diagnostics import Diagnostic, first_ones, render
from relaylang.runtime.files import atomic_write

FORMATS = ("text", "json", "sarif")
COLORS = ("auto", "always", "never")
#: Verbs with a `--report` of their own.
OWN_REPORT = ("compile", "partition", "tune")


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """The options of every verb."""
    group = parser.add_argument_group("diagnostics")
    if "--format" not in parser._option_string_actions:  # `relay export` has formats of its own beside these
        group.add_argument(
            "--format",
            choices=FORMATS,
            default="text",
            help="how errors and notes are written to stderr: text (default), json (an object a line), sarif (one log)",
        )
    group.add_argument(
        "--color",
        choices=COLORS,
        default="auto",
        help="auto (default): on a terminal, unless NO_COLOR is set",
    )
    if "--report" not in parser._option_string_actions:  # see OWN_REPORT
        group.add_argument("--report", metavar="FILE", help="write errors and notes to FILE instead of stderr")


def given_early(arguments: Sequence[str]) -> dict[str, str | None]:
    """The common options in arguments that may have other errors."""
    options: dict[str, str | None] = {"format": "text", "color": "auto", "report": None}
    wanted = {"format": FORMATS, "color": COLORS, "report": None}
    if arguments[:1] and arguments[0] in OWN_REPORT:
        del wanted["report"]
    for i, argument in enumerate(arguments):
        if argument == "--":
            break
        name, equals, value = argument.partition("=")
        key = name[2:] if name.startswith("--") else ""
        if key not in wanted:
            continue
        if not equals:
            value = arguments[i + 1] if i + 1 < len(arguments) else ""
        allowed = wanted[key]
        if value and (allowed is None or value in allowed):
            options[key] = value
    return options


class Output:
    """Where diagnostics go, and in which form."""

    def __init__(self, format: str = "text", color: str = "auto", path: str | None = None) -> None:
        self.format = format
        self.color = color
        self.path = path
        self.kept: list[Diagnostic] = []
        self.texts: list[str] = []

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        diagnostics = first_ones(diagnostics)
        if self.format == "sarif":
            self.kept += diagnostics
        elif self.format == "json":
            from relaylang.diagnostics.export import json_lines

            self._write(json_lines(diagnostics))
        else:
            color = self.path is None and use_color(sys.stderr)
            self._write("".join(render(d, color) + "\n" for d in diagnostics))

    def _write(self, text: str) -> None:
        if self.path is not None:
            self.texts.append(text)
        elif text:
            sys.stderr.write(text)

    def close(self, status: int) -> None:
        """Write the end of the report. Raises `OSError` if the report's file cannot be written."""
        if self.format == "sarif":
            from importlib.metadata import version  # takes a tenth of the time of `relay check`

            from relaylang.diagnostics.export import sarif_text

            self._write(sarif_text(self.kept, version("relaylang"), status))
        if self.path == "-":
            sys.stdout.write("".join(self.texts))
            sys.stdout.flush()
        elif self.path is not None:
            atomic_write(self.path, "".join(self.texts))


_output = Output()


def begin(arguments: Sequence[str]) -> None:
    """Take the common options of a call, and forget those of the one before."""
    global _output
    early = given_early(arguments)
    _output = Output(early["format"] or "text", early["color"] or "auto", early["report"])


def end(status: int) -> None:
    """Finish the report of a call that ends with this status. Raises `OSError` where its file cannot be written."""
    global _output
    output, _output = _output, Output()
    output.close(status)


def report(diagnostics: Iterable[Diagnostic]) -> None:
    """Say diagnostics, as the call's options ask for it."""
    _output.add(list(diagnostics))


def results_format() -> str:
    """The call's `--format`, for verbs whose results are diagnostics, too."""
    return _output.format


class _Kept(Output):
    """Diagnostics that are said to nobody."""

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.kept += diagnostics


@contextmanager
def collecting() -> Iterator[list[Diagnostic]]:
    """Keep the diagnostics of the block instead of writing them."""
    global _output
    before, kept = _output, _Kept(_output.format, _output.color)
    _output = kept
    try:
        yield kept.kept
    finally:
        _output = before


def use_color(stream: TextIO) -> bool:
    """Whether to colour the output to a stream: by --color, else on a capable terminal without NO_COLOR."""
    if _output.color != "auto":
        return _output.color == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
