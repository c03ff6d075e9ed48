"""The one tokeniser: fine tokens of any text, and its agreement with the parser's coarse ones."""

from __future__ import annotations

import pytest

from relaylang.grammar import compiled, literals, patterns, text
from relaylang.syntax import tokens
from relaylang.syntax.reader import tables
from relaylang.syntax.tokeniser import comment_end, is_blank, keywords, metadata_start, tokenise
from relaylang.syntax.tokens import TokenSource, TokenWalk
from relaylang.testing.hostile import SMALL, TEXTS
from tests.shared import ROOT


def kinds(of: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokenise(of)]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("%x @f nn.relu", [("local", "%x"), ("global", "@f"), ("name", "nn.relu")]),
        ('%"a b" @"c d" "e"', [("local", '%"a b"'), ("global", '@"c d"'), ("string", '"e"')]),
        ("@f-g.h", [("global", "@f-g.h")]),
        ("let True float32 Tensor", [("keyword", "let"), ("constant", "True"), ("type", "float32"), ("type", "Tensor")]),
        ("1 1f 1e-05f 3i64 inff", [("number", n) for n in ("1", "1f", "1e-05f", "3i64", "inff")]),
        ("custom[posit]32", [("type", "custom[posit]32")]),
        ("meta[relay.Constant][0] /* ty=int8 */", [("reference", "meta[relay.Constant][0]"), ("comment", "/* ty=int8 */")]),
        ("meta[relay.", [("keyword", "meta"), ("mark", "["), ("name", "relay"), ("mark", ".")]),
        ("-> => == <= =", [("arrow", "->"), ("arrow", "=>"), ("arrow", "=="), ("arrow", "<="), ("mark", "=")]),
        ('#[version = "0.0.5"]', [("header", '#[version = "0.0.5"]')]),
        ("# a\n// b\n/* c /* d */ e */", [("comment", "# a"), ("comment", "// b"), ("comment", "/* c /* d */ e */")]),
        ('1\n#[metadata]\n{"%x": 1}', [("number", "1"), ("metadata", '#[metadata]\n{"%x": 1}')]),
    ],
)
def test_kinds(written: str, wanted: list[tuple[str, str]]) -> None:
    assert kinds(written) == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ('"open\n%x', [("string", '"open'), ("local", "%x")]),
        ('%"open\n%x', [("local", "%"), ("string", '"open'), ("local", "%x")]),
        ("/* open %x", [("comment", "/* open %x")]),
        ("/* a /* b */ %x", [("comment", "/* a /* b */ %x")]),
        ("% @ \0 é", [("local", "%"), ("global", "@"), ("mark", "\0"), ("mark", "é")]),
    ],
)
def test_unfinished_texts(written: str, wanted: list[tuple[str, str]]) -> None:
    assert kinds(written) == wanted


def test_a_name_with_dashes_is_one_where_the_text_binds_it() -> None:
    assert kinds("%layer-1")[0] == ("local", "%layer")
    assert ("local", "%layer-1") in kinds("let %layer-1 = 1; %layer-1")
    assert kinds("%t.0.1") == [("local", "%t"), ("mark", "."), ("number", "0.1")]
    assert kinds("%features.0_weight") == [("local", "%features.0_weight")]
    assert kinds("free_var %t.0; %t.0.1")[3:] == [("local", "%t.0"), ("mark", "."), ("number", "1")]


@pytest.mark.parametrize("name", [*TEXTS, *SMALL])
def test_every_character_of_any_text_is_in_one_token(name: str) -> None:
    of = SMALL[name] if name in SMALL else TEXTS[name](50)
    at = 0
    for token in tokenise(of):
        assert of[at : token.start].strip() == "" and token.text and of.startswith(token.text, token.start)
        at = token.end
    assert of[at:].strip() == ""


def test_fine_tokens_divide_the_coarse_ones() -> None:
    for file in sorted((ROOT / "examples").glob("*.relay")):
        of = file.read_text()
        of = of[: metadata_start(of)]
        source = TokenSource(file.name, of, tables())
        fine = {token.start for token in tokenise(of)}
        coarse = [source.start_of(i) for i, token in enumerate(source.tokens()) if token]
        assert [of[at : at + 20] for at in coarse if at not in fine] == []


def test_a_long_text_is_cut_stretch_by_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_STRETCH", 200)
    line = "  %1 = add(%0, %x);\n"
    for hazard in (
        '  %2 = f("a;\n b;\n", %x);\n',
        "/* a;\n b;\n */",
        "// a;\n// b;\n",
        "/* a;\n */ // b;\n/* c;\n */ %4;\n",
        "# a;\n",
        '  %"a;\n";\n',
        '@"b;\n"();\n',
        "meta[relay.Constant][0] /* ty=int8;\n */;\n",
        '"never closed;\n',
        "/* never closed;\n",
        "/* a /* b;\n */ c;\n */",
        "'a;\n",
        ";\n;;\n",
    ):
        for before in range(6, 14):
            written = line * before + hazard + line * 30
            source = TokenSource("<test>", written, tables())
            walk = source.tokens()
            assert isinstance(walk, TokenWalk)
            cut = tables().tokens.findall(written)
            assert list(iter(walk)) == [*filter(None, cut), ""], (hazard, before)
            assert len(walk) == len(source.places()[0]) - cut[:-1].count("") and walk[-2:] == [walk[-2], ""]
    source = TokenSource("<test>", line * 1000, tables())
    assert max(len(stretch) for stretch in source.stretches()) <= 7 * 11  # 200 characters are ten lines


def test_blank_texts() -> None:
    assert is_blank("") and is_blank(" // a\n# b\n/* c /* d */ */")
    assert not is_blank("#[version]") and not is_blank("/* a */ b")


def test_comments_end_behind_those_inside_them() -> None:
    assert comment_end("/* a /* b */ c */ d", 0, 19) == 17
    assert comment_end("/* a /* b */", 0, 12) is None


def test_the_terminals_are_those_of_the_grammar() -> None:
    table = {name for name, *_ in tables().data["terminals"]}
    assert table == {*patterns(), *literals()} - {"BLOCK_COMMENT", "LINE_COMMENT"}
    assert {"def", "let", "ref_read", "meta"} <= keywords() and "Tensor" not in keywords()
    assert all(f"{name}" in text() for name in patterns())
    found = compiled("STRING", "LOCAL").search('f(%x, "s")')
    assert found is not None and found.lastgroup == "LOCAL"
