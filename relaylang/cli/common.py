"""What the verbs share: reading programs, showing diagnostics, writing results, the options of every printing verb."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from relaylang.diagnostics import Diagnostic, RelayError, define_codes, error, render
from relaylang.runtime.files import atomic_write
from relaylang.source import SourceFile, Span

define_codes(
    {
        "R0701": "cannot read a file",
        "R0702": "the file is empty",
        "R0703": "the file is not text",
        "R0704": "cannot write a file",
        "R0705": "wrong value for an option",
        "R0706": "a value is missing",
        "R0707": "no such function",
    }
)

#: What is wrong with the program, though the command line found it.
_PROGRAM_CODES = frozenset({"R0702", "R0703"})
#: What is wrong with the call, though a backend found it: the target string.
_CALL_CODES = frozenset({"R0601", "R0602"})


def exit_status(diagnostics: Iterable[Diagnostic]) -> int:
    """0 without errors, 2 where the call is wrong, 1 where the program is."""
    codes = [d.code for d in diagnostics if d.severity == "error"]
    if any(c in _CALL_CODES or (c.startswith("R07") and c not in _PROGRAM_CODES) for c in codes):
        return 2
    return 1 if codes else 0


def use_color(stream: TextIO) -> bool:
    """Colour on a terminal that can show it, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def report(diagnostics: Iterable[Diagnostic]) -> None:
    """Show diagnostics on stderr."""
    color = use_color(sys.stderr)
    for diagnostic in diagnostics:
        print(render(diagnostic, color), file=sys.stderr)


def read_bytes(path: str) -> bytes:
    """A file's contents; `-` is the standard input."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as e:
        raise RelayError(error("R0701", f"cannot read {path}: {reason(e)}")) from None


def reason(e: Exception) -> str:
    """What the system says about a file, in one line."""
    said = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
    return said[:1].lower() + said[1:]


def read_text(path: str) -> SourceFile:
    """A program's text. Not text (NUL bytes, not UTF-8) and empty files are errors with the place in them."""
    data = read_bytes(path)
    name = "<stdin>" if path == "-" else path
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        good = SourceFile(name, data[: e.start].decode("utf-8-sig", "replace"))
        place = Span(good, len(good.text), len(good.text))
        title = f"byte {e.start} (0x{data[e.start]:02x}) is not UTF-8"
        where = place if "\0" not in good.text else None
        raise RelayError(error("R0703", _named(name, title, where), where, notes=["Relay text is UTF-8"])) from None
    if "\0" in text:
        raise RelayError(error("R0703", f"{name} is a binary file (NUL byte at offset {text.index(chr(0))})"))
    if not text.strip():
        raise RelayError(error("R0702", f"{name} is empty", notes=["an empty module is written with its header only"]))
    return SourceFile(name, text)


def _named(name: str, title: str, place: Span | None) -> str:
    return title if place is not None else f"{name}: {title}"


def write_text(path: str | None, text: str) -> None:
    """Write a result to a file, whole or not at all, or to stdout where no file is named."""
    if path is None or path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str, data: bytes) -> None:
    """Write a file, whole or not at all."""
    check_writable(path)
    try:
        atomic_write(path, data)
    except OSError as e:
        raise RelayError(error("R0704", f"cannot write {path}: {reason(e)}")) from None


def check_writable(path: str | None) -> None:
    """Say now, before long work, that a result could not be written."""
    if path is None or path == "-":
        return
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        problem = "it is a directory"
    elif not folder.is_dir():
        problem = f"there is no directory {folder}"
    elif not os.access(folder, os.W_OK):
        problem = f"the directory {folder} is not writable"
    else:
        return
    raise RelayError(error("R0704", f"cannot write {path}: {problem}"))


def add_print_options(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that prints a program."""
    group = parser.add_argument_group("printing")
    group.add_argument(
        "--style",
        choices=["lossless", "tvm"],
        default="lossless",
        help="lossless (default): reads back bit for bit; tvm: what TVM 0.16 printed",
    )
    group.add_argument("--anf", action="store_true", help="A-normal form: every value bound by let where it is computed")
    group.add_argument("--no-types", action="store_true", help="leave the /* ty=... */ comments out")
    group.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
