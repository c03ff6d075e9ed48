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
    found = _CHOICE.fullmatch(complaint)
    if found is not None:
        choices = [c.strip().strip("'") for c in found[3].split(",")]
        near = did_you_mean(found[2], choices)
        hint = f"did you mean {near}?" if near else f"it is one of {', '.join(choices)}"
        return f"{found[1]} cannot be `{found[2]}`; {hint}"
    found = _KIND.fullmatch(complaint)
    if found is not None:
        return f"{found[1]} wants a {'whole number' if found[2] == 'int' else 'number'}, not `{found[3]}`"
    found = _LACKING.fullmatch(complaint)
    if found is not None:
        return f"{found[1]} is missing"
    found = _VALUE.fullmatch(complaint)
    if found is not None:
        return f"{found[1]} wants a value behind it"
    return complaint
