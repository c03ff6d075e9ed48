"""The `relay` command: `command.py` finds the verb, each verb is one file beside it."""

from __future__ import annotations

import atexit
import importlib
from collections.abc import Sequence
from typing import Any

from relaylang._start import end, end_at_once, ignore


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status. Never raises but for what argparse's `--help` does (SystemExit).

    Without `argv` the process is a call of `relay`. Ctrl-C ends it with 130, also before and after the verb's work.
    """
    if argv is None:
        end_at_once()
    try:
        status: int = importlib.import_module("relaylang.cli.command").main(argv)
    except KeyboardInterrupt:  # in what the command itself does after an interruption
        if argv is not None:
            raise
        end()
    finally:
        if argv is None:
            end_at_once()
            atexit.register(ignore)
    return status


def __getattr__(name: str) -> Any:
    if name == "VERBS":
        return importlib.import_module("relaylang.cli.command").VERBS
    raise AttributeError(f"module 'relaylang.cli' has no attribute {name!r}")


__all__ = ["VERBS", "main"]
