"""Formatting by small edits, of a whole text and of some lines."""

from __future__ import annotations

import pytest

from relaylang.lsp.analysis import Analysis
from relaylang.lsp.formatting import Edit, edits, edits_of_lines
from relaylang.syntax.format import format_text

TEXT = """\
#[version = "0.0.5"]
type Tree { Leaf(int32), Fork(Tree,Tree), }
def @f(%x: int32) -> int32 {
  let %a = add(%x,1);
  let %b = add(%a, 2);
  let %c = add(%b,3);
  %c
}

// of 漢字 and 🎉
def @g(%x:int32) -> int32 { @f( %x) }
"""


def applied(text: str, found: list[Edit] | None) -> str:
    assert found is not None
    for begin, end, new in sorted(found, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def lines(text: str, first: int, last: int) -> str:
    """The text with the edits from one line to another."""
    analysis = Analysis(text, "net.relay")
    offset = analysis.lines.offset
    return applied(text, edits_of_lines(analysis, offset(first, 0), offset(last, 10_000)))


def test_edits_change_what_differs_only() -> None:
    found = edits(Analysis(TEXT, "net.relay"))
    assert applied(TEXT, found) == format_text(TEXT, "net.relay")
    assert found is not None and len(found) == 3 and min(edit.begin for edit in found) == TEXT.index("Tree)")


def test_windows_lines_stay() -> None:
    text = TEXT.replace("\n", "\r\n")
    canonical = format_text(TEXT, "net.relay")
    assert canonical is not None
    assert applied(text, edits(Analysis(text, "net.relay"))) == canonical.replace("\n", "\r\n")
    assert lines(text, 3, 3) == text.replace("(%x,1)", "(%x, 1)")


def test_lines() -> None:
    assert lines(TEXT, 3, 3) == TEXT.replace("(%x,1)", "(%x, 1)")
    assert lines(TEXT, 4, 4) == TEXT
    assert lines(TEXT, 3, 5) == TEXT.replace("(%x,1)", "(%x, 1)").replace("(%b,3)", "(%b, 3)")
    assert lines(TEXT, 9, 9) == TEXT
    assert lines(TEXT, 0, 11) == format_text(TEXT, "net.relay")


@pytest.mark.parametrize("text", ["def @f(%x: int32) { add(%x, ", "def @f() { %nothing }", "let %a = 1; %a +"])
def test_wrong_texts_stay(text: str) -> None:
    assert edits(Analysis(text, "net.relay")) in (None, [])


def test_an_expression() -> None:
    assert applied("add( 1,2 )", edits(Analysis("add( 1,2 )", "net.relay"))) == format_text("add( 1,2 )", "net.relay")


@pytest.mark.sweep
def test_a_long_definition_is_one_edit() -> None:
    body = "\n".join(f"  let %v{i} = add(%x,{i});" for i in range(3000))
    text = f'#[version = "0.0.5"]\ndef @f(%x: int32) -> int32 {{\n{body}\n  %x\n}}\n'
    assert lines(text, 5, 5) == format_text(text, "net.relay")
