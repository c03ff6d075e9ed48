"""Characters that nobody sees: one error each, at the character."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import RelayError
from relaylang.syntax import parse

INVISIBLE = {"right-to-left": "\u202e", "zero width space": "\u200b", "joiner": "\u200d", "mark": "\ufeff"}


@pytest.mark.parametrize("text", ["|fn (%x: int32) { %x }", "fn (%x: int32) { nn.|softmax(%x) }", "fn (%x: int32) { %|x }"])
@pytest.mark.parametrize("name", INVISIBLE)
def test_an_invisible_character_is_one_error(name: str, text: str) -> None:
    at = text.index("|")
    with pytest.raises(RelayError) as wrong:
        parse(" " + text.replace("|", INVISIBLE[name]))
    (found,) = [d for d in wrong.value.diagnostics if d.severity == "error"]
    assert found.code == "R0101" and f"U+{ord(INVISIBLE[name]):04X}" in found.title
    assert found.span is not None and (found.span.start, found.span.end) == (at + 1, at + 2)
