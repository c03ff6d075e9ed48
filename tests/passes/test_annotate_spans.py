"""AnnotateSpans: places in the program's own text."""

from __future__ import annotations

from relaylang.syntax import astext
from tests.passes.texts import made, main, module


def test_annotated_spans_are_places_in_the_text() -> None:
    mod = made("AnnotateSpans")(module(main("exp(%x)")))
    assert mod["main"].body.span.text == "exp(%x)" and "exp(%x)" in astext(mod)
