"""Arm's tools, which are optional: how they are found, and the message if they are missing.

    pip install "relaylang[ethosu]"

brings both: `ethos-u-vela` (the compiler) and `tosa-tools` (the format, the reference model).
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from relaylang.diagnostics import RelayError, error

PIP = 'pip install "relaylang[ethosu]"'
_PACKAGES = {
    "ethosu.regor": "ethos-u-vela",
    "tosa.Op": "tosa-tools",
    "tosa_reference_model": "tosa-tools",
    "flatbuffers": "flatbuffers",
}


def load(module: str, purpose: str) -> ModuleType:
    """An optional module, or a diagnostic with the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        package = _PACKAGES[module]
        raise RelayError(
            error(
                "R0611",
                f"{purpose} needs the package {package}, which cannot be imported",
                notes=[f"install it with: {PIP}", f"Python says: {problem}"],
            )
        ) from None


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Hold back what native code writes to the process's standard output and error, and give it as a text.

    The list gets one text when the block ends. Python's own streams are flushed first, so nothing of theirs is lost.
    """
    said: list[str] = []
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with tempfile.TemporaryFile() as sink:
        kept = [os.dup(1), os.dup(2)]
        try:
            os.dup2(sink.fileno(), 1)
            os.dup2(sink.fileno(), 2)
            yield said
        finally:
            for number, copy in zip((1, 2), kept):
                os.dup2(copy, number)
                os.close(copy)
            sink.seek(0)
            said.append(sink.read().decode("utf-8", "replace"))
