"""One page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A code: its short title, the text that explains it in paragraphs, and two examples.

    The example `wrong` raises the code; `right` is the same example, mended. `kind` names the form of both:

    - "relay": texts for `relay check`
    - "lint": texts for `relay check --lint`
    - "run": texts for `relay run`
    - "shell": calls
    - "session": lines of a session
    - "python": statements
    - "text": an example that needs a tool or a file of its own

    The hundreds of a code name the part that raises it:

    - 00 files, 01 syntax, 02 names, 03 types
    - 04 evaluation, 05 passes, 06 backends
    - 07 the command line and the session, 08 the import of networks, 09 faults of relaylang
    - 10 lints, which are warnings
    """

    code: str
    title: str
    text: str
    wrong: str
    right: str
    kind: str = "relay"
