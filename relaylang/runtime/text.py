"""Reading program text from files, with what can be wrong about a file said as a diagnostic."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import SourceFile, Span


def read_bytes(path: str) -> bytes:
    """A file's contents; `-` is the standard input."""
    if not path:
        raise RelayError(error("R0001", "the path of the file is empty"))
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as e:
        raise RelayError(error("R0001", f"cannot read {path}: {reason(e)}")) from None


def reason(e: Exception) -> str:
    """What the system says about a file, in one line."""
    said = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
    return said[:1].lower() + said[1:]


def read_text(path: str) -> SourceFile:
    """A program's text. Not text (NUL bytes, not UTF-8) and empty files are errors with the place in them."""
    return text_of(read_bytes(path), path)


def text_of(data: bytes, path: str) -> SourceFile:
    """The text in a file's contents, as `read_text` gives it."""
    name = "<stdin>" if path == "-" else path
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        notes = ["Relay text is UTF-8; `iconv -f UTF-16 -t UTF-8 FILE > NEW` converts it, and editors save as UTF-8"]
        raise RelayError(error("R0003", f"{name} is UTF-16", notes=notes))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        good = SourceFile(name, data[: e.start].decode("utf-8-sig", "replace"))
        place = Span(good, len(good.text), len(good.text))
        title = f"byte {e.start} (0x{data[e.start]:02x}) is not UTF-8"
        where = place if "\0" not in good.text else None
        raise RelayError(error("R0003", _named(name, title, where), where, notes=["Relay text is UTF-8"])) from None
    if "\0" in text:
        source, at = SourceFile(name, text), text.index("\0")
        notes = ["Relay text holds no NUL; in a string it is written `\\0`"]
        raise RelayError(error("R0003", "this is not text: here is a NUL byte", Span(source, at, at + 1), notes=notes))
    if not text.strip():
        raise RelayError(error("R0002", f"{name} is empty", notes=["an empty module is written with its header only"]))
    return SourceFile(name, text)


def _named(name: str, title: str, place: Span | None) -> str:
    return title if place is not None else f"{name}: {title}"
