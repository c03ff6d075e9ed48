"""The `relay` command: `command.py` finds the verb, each verb is one file beside it."""

from relaylang.cli.command import VERBS, main

__all__ = ["VERBS", "main"]
