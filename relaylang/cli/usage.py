"""Wrong calls."""

from __future__ import annotations

import re

from relaylang.diagnostics.suggest import did_you_mean


class UsageError(Exception):
    """The arguments do not go together: `UsageError(problem, the call that helps)`. Exit status 2."""


_CHOICE = re.compile(r"argument ([^:]+): invalid choice: '?(.*?)'? \(choose from (.*)\)", re.S)
_KIND = re.compile(r"argument ([^:]+): invalid (int|float) value: '?(.*?)'?", re.S)
_LACKING = re.compile(r"the following arguments are required: (.*)", re.S)
_VALUE = re.compile(r"argument ([^:]+): expected (one|at least one) arguments?")


def in_words(complaint: str) -> str:
    """argparse's complaint as a sentence, with the likely intended value."""
    match = _CHOICE.fullmatch(complaint)
    if match is not None:
        choices = [c.strip().strip("'") for c in match[3].split(",")]
        near = did_you_mean(match[2], choices)
        hint = f"did you mean {near}?" if near else f"it is one of {', '.join(choices)}"
        return f"{match[1]} cannot be `{match[2]}`; {hint}"
    match = _KIND.fullmatch(complaint)
    if match is not None:
        return f"{match[1]} wants a {'whole number' if match[2] == 'int' else 'number'}, not `{match[3]}`"
    match = _LACKING.fullmatch(complaint)
    if match is not None:
        return f"{match[1]} is missing"
    match = _VALUE.fullmatch(complaint)
    if match is not None:
        return f"{match[1]} wants a value behind it"
    return complaint
