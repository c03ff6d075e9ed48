"""One page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """What a code means.

    `title` is the code's title in `diagnostics.CODES`. `text` explains it in paragraphs. `wrong` is an example that has this
    error, `right` the same with the error repaired. `kind` says what they are: "relay" texts for `relay check`, "run" ones
    for `relay run`, "shell" calls, "python" statements; "text" where an example needs what not every machine has.
    """

    code: str
    title: str
    text: str
    wrong: str
    right: str
    kind: str = "relay"
