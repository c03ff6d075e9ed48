"""Diagnostics as values, as text, as JSON and as SARIF; suggestions."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from relaylang.diagnostics import Diagnostic, Fix, Label, RelayError, did_you_mean, error, first_ones, render
from relaylang.diagnostics.export import as_json, as_sarif, json_lines, sarif_text
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.diagnostics.suggest import edits
from relaylang.ops import OPS
from relaylang.syntax import parse
from tests.growth import seconds, work


def span(text: str, piece: str, name: str = "f.relay", nth: int = 0) -> Span:
    """The place of a piece of a text."""
    start = [m.start() for m in re.finditer(re.escape(piece), text)][nth]
    return Span(SourceFile(name, text), start, start + len(piece))


def shown(text: str, piece: str, label: str = "here", **more: Any) -> list[str]:
    return render(error("R0101", "wrong", span(text, piece), label, **more)).splitlines()


# ---- text


def test_a_line_with_carets() -> None:
    assert shown("let %x = 1;\nlet %y = %z;\n", "%z", notes=["a note"]) == [
        "f.relay:2:10: error[R0101]: wrong",
        "    2 | let %y = %z;",
        "      |          ^^ here",
        "  = note: a note",
    ]


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_lines_of_the_source_fit_a_narrow_terminal(columns: int) -> None:
    text = "%x = add(" + ", ".join(f"%v{i}" for i in range(40)) + ")\n"
    lines = render(error("R0101", "wrong", span(text, "%v20")), columns=columns).splitlines()
    assert all(len(line) <= columns for line in lines[1:])
    at = lines[1].index("%v20")
    assert lines[1][at - 1] == " " and lines[2][at:] == "^" * min(4, columns - at)
    assert lines[1].endswith("…") and lines[1][8] == "…"


def test_several_labels_share_a_line_and_lines_stand_in_order() -> None:
    text = "one two\nthree\nfour\nfive six\n"
    also = [(span(text, "one"), "first"), (span(text, "two"), "second"), (span(text, "five"), "third")]
    assert shown(text, "six", also=also)[1:] == [
        "    1 | one two",
        "      | --- first",
        "      |     --- second",
        "  ...",
        "    4 | five six",
        "      |      ^^^ here",
        "      | ---- third",
    ]


def test_tabs_wide_and_combining_characters_keep_the_carets_in_place() -> None:
    assert shown("\tab", "b")[1:] == ["    1 |     ab", "      |      ^ here"]
    assert shown("x\ty", "y")[1:] == ["    1 | x   y", "      |     ^ here"]
    assert shown("日本 x", "x")[1:] == ["    1 | 日本 x", "      |      ^ here"]
    assert shown("日本 x", "本")[1:] == ["    1 | 日本 x", "      |   ^^ here"]
    assert shown("e\u0301e\u0301 x", "x")[1:] == ["    1 | e\u0301e\u0301 x", "      |    ^ here"]


def test_control_characters_cannot_steer_a_terminal() -> None:
    lines = shown("\x1b[31m x \u202e y\x00", "x", "la\x1bbel")
    assert lines[1:] == ["    1 | \\x1b[31m x \\u202e y\\x00", "      |          ^ la\\x1bbel"]
    assert "\x1b" not in render(error("R0101", "a\x1b[2Jb", Span(SourceFile("\x1bname", "x"), 0, 1)))


def test_long_lines_are_cut_around_the_place() -> None:
    text = "a" * 5000 + " HERE " + "b" * 5000
    lines = shown(text, "HERE")
    assert lines[0].startswith("f.relay:1:5002:")
    assert len(lines[1]) < 130 and lines[1].startswith("    1 | …aaa") and lines[1].endswith("bbb…")
    at = lines[1].index("HERE")
    assert lines[2][at : at + 9] == "^^^^ here"
    two = render(error("R0101", "wrong", span(text, "HERE"), also=[(Span(SourceFile("f.relay", text), 0, 3), "there")]))
    assert two.splitlines()[3].startswith("    1 | aaa") and two.splitlines()[4] == "      | --- there"


def test_a_label_over_several_lines_marks_its_first_and_its_last() -> None:
    text = "f(one,\n  two,\n  three)\nrest"
    assert shown(text, "(one,\n  two,\n  three)")[1:] == [
        "    1 | f(one,",
        "      |  ^^^^^",
        "  ...",
        "    3 |   three)",
        "      |   ^^^^^^ here",
    ]
    assert shown("ab\ncd\n", "ab\n")[1:] == ["    1 | ab", "      | ^^ here"]


def test_the_text_s_end_and_empty_spans_have_a_caret() -> None:
    source = SourceFile("f", "ab\n")
    assert render(error("R0101", "t", Span(source, 3, 3), "end")).splitlines()[1:] == ["    2 |", "      | ^ end"]
    assert render(error("R0101", "t", Span(SourceFile("f", "ab"), 2, 2), "x")).splitlines()[2] == "      |   ^ x"


def test_other_files_come_behind_with_their_places() -> None:
    other = SourceFile("lib.relay", "def @f() { 1 }")
    d = error("R0205", "twice", span("def @f() { 2 }", "@f"), "again", also=[(Span(other, 4, 6), "first")])
    assert render(d).splitlines() == [
        "f.relay:1:5: error[R0205]: twice",
        "    1 | def @f() { 2 }",
        "      |     ^^ again",
        "  in lib.relay:1:5:",
        "    1 | def @f() { 1 }",
        "      |     -- first",
    ]


def test_fixes_are_shown_as_the_line_they_leave() -> None:
    text = "add(1 2)"
    at = Span(SourceFile("f.relay", text), 5, 5)
    assert shown(text, "1", fix=Fix(at, ",", "put `,` here"))[3:] == [
        "  = help: put `,` here",
        "    1 | add(1, 2)",
        "      |      +",
    ]
    change = Fix(span(text, "add"), "nn.relu")
    assert shown(text, "add", fix=change)[3:] == ["  = help: write `nn.relu`", "    1 | nn.relu(1 2)", "      | ~~~~~~~"]
    assert change.apply(text) == "nn.relu(1 2)"
    assert shown(text, "1", fix=Fix(span(text, "1"), "", "leave it out"))[3:] == ["  = help: leave it out"]


def test_colours() -> None:
    d = error("R0101", "t", span("ab", "b"), "l", notes=["n"], severity="warning")
    painted = render(d, color=True)
    assert "\x1b[1;33mwarning[R0101]\x1b[0m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render(d)


def test_an_error_without_a_place_is_one_line() -> None:
    assert render(Diagnostic("R0001", "cannot read x")) == "error[R0001]: cannot read x"
    assert str(RelayError(Diagnostic("R0001", "cannot read x"))) == "error[R0001]: cannot read x"


@pytest.mark.sweep
def test_a_line_of_ten_megabytes_is_shown_at_once() -> None:
    def render_one(length: int) -> Callable[[], object]:
        source = SourceFile("f", "x" * length)
        return lambda: render(error("R0101", "t", Span(source, length // 2, length // 2 + 1)))

    assert work(render_one(10_000_000)) <= work(render_one(10_000)) + 10
    assert seconds(render_one(10_000_000)) < 1000 * 4 * max(seconds(render_one(10_000)), 1e-4)


def test_twenty_errors_and_a_count() -> None:
    many = [error("R0301", str(i)) for i in range(25)] + [error("R0150", "n", severity="note")]
    kept = first_ones(many)
    assert [d.title for d in kept] == [*map(str, range(20)), "n", "and 5 more errors"]
    assert first_ones(many[:20]) == many[:20]


# ---- for other programs


def example() -> list[Diagnostic]:
    text = "def @f(%x: int32) {\n  ädd(%x\n}\n"
    other = SourceFile("/lib/a b.relay", "x")
    place, spot = span(text, "ädd"), span(text, "%x", nth=1)
    end = Span(spot.source, spot.end, spot.end)
    return [
        error("R0202", "unknown", place, "here", also=[(Span(other, 0, 1), "there")], notes=["n"], fix=Fix(end, ")", "put `)`")),
        error("R0150", "no header", severity="note"),
    ]


def test_json_is_an_object_a_line() -> None:
    lines = json_lines(example()).splitlines()
    assert [json.loads(line) for line in lines] == [as_json(d) for d in example()]
    first = json.loads(lines[0])
    assert list(first) == ["version", "severity", "code", "title", "labels", "notes", "fix"]
    assert first["labels"][0] == {
        "file": "f.relay",
        "start": {"line": 2, "column": 3, "offset": 22},
        "end": {"line": 2, "column": 6, "offset": 25},
        "text": "here",
        "primary": True,
    }
    assert first["labels"][1]["file"] == "/lib/a b.relay" and not first["labels"][1]["primary"]
    assert first["fix"]["replacement"] == ")" and first["fix"]["start"] == first["fix"]["end"]
    assert json.loads(lines[1])["labels"] == [] and json.loads(lines[1])["fix"] is None


def check_sarif(log: dict[str, Any]) -> None:
    """The rules of the SARIF 2.1.0 schema that this log can break."""
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert isinstance(driver["name"], str) and isinstance(driver["version"], str)
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)
        assert all(isinstance(rule["shortDescription"]["text"], str) for rule in driver["rules"])
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        for invocation in run["invocations"]:
            assert isinstance(invocation["executionSuccessful"], bool) and isinstance(invocation["exitCode"], int)
        for result in run["results"]:
            assert isinstance(result["message"]["text"], str)
            assert result["level"] in ("none", "note", "warning", "error")
            assert ids[result["ruleIndex"]] == result["ruleId"]
            related = result.get("relatedLocations", [])
            assert len({place["id"] for place in related}) == len(related)
            for place in result.get("locations", []) + related:
                check_place(place["physicalLocation"])
            for fix in result.get("fixes", []):
                assert isinstance(fix["description"]["text"], str) and fix["artifactChanges"]
                for change in fix["artifactChanges"]:
                    check_uri(change["artifactLocation"]["uri"])
                    assert change["replacements"]
                    for replacement in change["replacements"]:
                        check_region(replacement["deletedRegion"])
                        assert isinstance(replacement["insertedContent"]["text"], str)


def check_uri(uri: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+", uri)


def check_place(place: dict[str, Any]) -> None:
    check_uri(place["artifactLocation"]["uri"])
    check_region(place["region"])


def check_region(region: dict[str, Any]) -> None:
    assert all(isinstance(n, int) for n in region.values())
    assert region["startLine"] >= 1 and region["startColumn"] >= 1 and region["endLine"] >= region["startLine"]
    assert region["charOffset"] >= 0 and region["charLength"] >= 0
    if region["startLine"] == region["endLine"]:
        assert region["endColumn"] >= region["startColumn"]


def test_sarif() -> None:
    log = as_sarif(example(), "1.2", 1)
    check_sarif(log)
    run = log["runs"][0]
    assert [r["ruleId"] for r in run["results"]] == ["R0202", "R0150"]
    result = run["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"]["startColumn"] == 3
    assert result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///lib/a%20b.relay"
    assert "locations" not in run["results"][1]
    assert json.loads(sarif_text(example(), "1.2")) == as_sarif(example(), "1.2")
    check_sarif(as_sarif([], "1"))


def test_what_the_reader_says_is_valid_in_every_form() -> None:
    with pytest.raises(RelayError) as wrong:
        parse("def @f(%x: int32 {\n  let %y = ;\n  add(1 2\n", "ä b.relay")
    check_sarif(as_sarif(wrong.value.diagnostics, "1"))
    for line in json_lines(wrong.value.diagnostics).splitlines():
        assert json.loads(line)["labels"]


# ---- suggestions


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nn.rellu", "nn.relu"),
        ("relu", "nn.relu"),
        ("nn.add", "add"),
        ("conv2d", "nn.conv2d"),
        ("nn.con2d", "nn.conv2d"),
        ("NN.Conv2D", "nn.conv2d"),
        ("nn.maxpool2d", "nn.max_pool2d"),
        ("concatanate", "concatenate"),
        ("tranpose", "transpose"),
        ("mutliply", "multiply"),
        ("softmax", "nn.softmax"),
        ("nn.bacth_norm", "nn.batch_norm"),
        ("sigmiod", "sigmoid"),
        ("qnn.quantise", "qnn.quantize"),
        ("strided_slise", "strided_slice"),
    ],
)
def test_operators_that_were_meant(name: str, meant: str) -> None:
    assert did_you_mean(name, OPS) == meant


@pytest.mark.parametrize("name", ["xyzzy", "f", "x", "go", "foo", "my_function", "helper", "main_block", "q", "", "z" * 300])
def test_nothing_silly_is_suggested(name: str) -> None:
    assert did_you_mean(name, OPS) is None


def test_names_that_differ_in_digits_are_different_names() -> None:
    assert did_you_mean("weight12", ["weight11", "weight13"]) is None
    assert did_you_mean("weigth12", ["weight11", "weight12"]) == "weight12"


def test_edits() -> None:
    assert edits("kitten", "sitting", 3) == 3 and edits("ab", "ba", 2) == 1 and edits("", "abc", 3) == 3
    assert edits("kitten", "sitting", 2) == 3 and edits("same", "same", 0) == 0


@pytest.mark.sweep
def test_ten_thousand_names_are_quick() -> None:
    rng = random.Random(0)
    names = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz_") for _ in range(rng.randrange(4, 20))) for _ in range(10_000)]

    def ask() -> None:
        for name in names[:20]:
            assert did_you_mean(name[:2] + name[3:] if len(name) > 6 else name + "e", names) is not None

    assert work(ask) < 20 * 10_000 * 20  # a few steps a name: most are set aside by length and letters


def test_a_program_s_labels_are_its_own() -> None:
    label = Label(Span(SourceFile("f", "x"), 0, 1))
    assert Diagnostic("R0101", "t", (label,)).span is label.span
