"""Writes the messages into docs/mistakes.md, behind the programs of the page.

    python scripts/mistakes_page.py

A program stands in a block `relay-wrong`. The block behind it gets the errors of `relay check`.
"""

from __future__ import annotations

import re
from pathlib import Path

import relaylang as relay
from relaylang.stdlib.library import read
from relaylang.typing.partial import all_errors

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mistakes.md"
CASE = re.compile(r"(?<=^```relay-wrong\n)(?P<program>.*?)^```\n(?:\n```relay-console\n(?P<message>.*?)^```\n)?", re.M | re.S)


def message(program: str) -> str:
    """The errors of a program, as `relay check net.relay` shows them."""
    try:
        said = relay.infer(read(program, "net.relay").value)
    except relay.RelayError as wrong:
        said = all_errors(wrong)
    return "".join(f"{d}\n" for d in said if d.severity == "error")


def page(text: str) -> str:
    """The page with the messages of its programs."""
    return CASE.sub(lambda found: f"{found['program']}```\n\n```relay-console\n{message(found['program'])}```\n", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE.name)
