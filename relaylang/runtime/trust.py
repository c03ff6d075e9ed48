"""Whether this process may run code that a file holds. A call of `relay test` may not, unless the user trusts the tests."""

from __future__ import annotations

import os
from pathlib import Path

from relaylang.diagnostics import RelayError, error

#: Set in the calls of tests that nobody vouches for: the folder of the files that the test makes.
MADE = "RELAY_TEST_MADE"


def check_trusted(what: str, path: str | os.PathLike[str] = "") -> None:
    """Raise `RelayError` (R0764) where a test that nobody vouches for would run code; `what` names it.

    A file that the test itself made, at a `path` below its temporary folder, holds code of relaylang's own compiler.
    """
    trusted = os.environ.get(MADE)
    if trusted is None or (os.fspath(path) and Path(path).resolve().is_relative_to(Path(trusted).resolve())):
        return
    notes = ["if you trust these tests: relay test --trust"]
    raise RelayError(error("R0764", f"a RUN line runs no code of a file: {what}", notes=notes))


__all__ = ["MADE", "check_trusted"]
