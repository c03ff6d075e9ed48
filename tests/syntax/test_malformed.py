"""Wrong programs and their exact errors: place, code, sentence and suggested repair.

`malformed.txt` holds programs, each with the lines `! LINE:COLUMN CODE title ~ 'replacement'` behind it, and `---` between.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.diagnostics import Diagnostic, RelayError, render
from relaylang.syntax import parse
from relaylang.syntax.reader import tables
from tests.shared import check_each

TABLE = Path(__file__).with_name("malformed.txt").read_text("utf-8")
CASES = [case.strip("\n").split("\n! ") for case in TABLE.split("\n---") if case.strip()]


def said(text: str) -> list[Diagnostic]:
    try:
        parse(text, "f")
    except RelayError as wrong:
        return wrong.diagnostics
    return []


def line(d: Diagnostic) -> str:
    assert d.span is not None
    fix = f" ~ {d.fix.replacement!r}" if d.fix is not None else ""
    return f"{d.span.line}:{d.span.column} {d.code} {d.title}{fix}"


def is_said(case: list[str]) -> None:
    text, *expected = case
    assert [line(d) for d in said(text)] == expected


def test_what_is_said() -> None:
    check_each(is_said, CASES)


def has_places_and_no_token_names(case: list[str]) -> None:
    terminals = {t[0] for t in tables().data["terminals"]} - {"A", "B"}
    for d in said(case[0]):
        for label in d.labels:
            assert 0 <= label.span.start <= label.span.end <= len(case[0])
        words = set(render(d).replace("`", " ").split()) - set(case[0].split())
        assert not words & terminals


def test_every_error_has_a_place_in_its_text_and_no_token_names() -> None:
    check_each(has_places_and_no_token_names, CASES)


def test_repairs_lead_to_programs_that_read() -> None:
    """Where every error suggests an edit, making all of them leaves no error of syntax, but for strings as expressions."""
    tried, wrong = 0, []
    for text, *_ in CASES:
        found = said(text)
        fixes = [d.fix for d in found if d.fix is not None]
        if len(fixes) != len(found) or "string is never closed" in found[0].title:  # the text behind it was not
            continue
        tried += 1
        for fix in sorted(fixes, key=lambda f: -f.span.start):
            text = fix.apply(text)
        if any(d.code < "R0200" and d.code not in ("R0103", "R0106") for d in said(text)):
            wrong.append(text)
    assert wrong == []
    assert tried > 120


@pytest.mark.sweep
def test_twenty_are_shown_and_the_others_counted() -> None:
    found = said("".join(f"def @f{i}() {{\n  add(1 2)\n}}\n" for i in range(57)))
    assert [d.severity for d in found] == ["error"] * 20 + ["note"]
    assert (found[-1].code, found[-1].title) == ("R0090", "and 37 more errors")
    found = said("def @f(" + "%x," * 3000 + ") {\n" + "1 2;\n" * 3000 + "1}")
    assert len(found) == 21 and found[-1].title.startswith("and more than ")
    unknown = said("def @f() { (" + ", ".join(f"%x{i}" for i in range(33)) + ") }")
    assert len(unknown) == 21 and unknown[-1].title == "and 13 more errors"


def test_one_error_in_each_function_is_told_in_each() -> None:
    good = "def @g{i}(%x: int32) -> int32 {{\n  let %y = add(%x, 1);\n  %y\n}}\n"
    bad = "def @b{i}(%x: int32) -> int32 {{\n  let %y = add(%x, ;;)) =;\n  %y\n}}\n"
    text = "".join((bad if i % 3 == 0 else good).format(i=i) for i in range(30))
    lines = {d.span.line for d in said(text) if d.span is not None}
    assert lines == {4 * i + 2 for i in range(0, 30, 3)}


def test_names_are_looked_up_in_the_definitions_that_are_sound() -> None:
    text = """type Num { One, Two }
def @a() { nn.rellu(1f) }
def @b(%x: int32 { %x }
def @c() { @b(1); @d(2); @nowhere(3); Tow() }
def @d(%n: int32) { add(%n 1) }
def @e() { %unknown }
"""
    found = [(d.span.line, d.code) for d in said(text) if d.span is not None]
    assert found == [(2, "R0202"), (3, "R0102"), (4, "R0206"), (4, "R0202"), (5, "R0112"), (6, "R0201")]
    broken_type = "type Num { One( }\ndef @a(%n: Num[]) { (One(), Two(), %y) }\n"
    assert [(d.span.line, d.code) for d in said(broken_type) if d.span] == [(1, "R0102"), (2, "R0201")]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "piece",
    [
        "(",
        "[",
        "{",
        ")",
        "]",
        "}",
        ",",
        "=",
        "=>",
        "%",
        "@",
        "let ",
        "def ",
        "if (",
        "match (",
        "1 ",
        "Tensor[",
        "fn (",
        "%x: ",
        "\\",
        "'",
        "? ",
        "-> ",
        "type ",
        "Cons(",
        "meta[",
    ],
)
def test_long_rubbish_is_told_quickly(piece: str) -> None:
    found = said(piece * 5_000)
    assert 1 <= sum(d.severity == "error" for d in found) <= 20
