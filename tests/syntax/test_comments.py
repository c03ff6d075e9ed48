"""Comments in any place and with any content: the reader skips them. Tokens are always cut alike."""

from __future__ import annotations

from itertools import product

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import MetaRef, scalar_type, structural_equal
from relaylang.lsp.analysis import Analysis
from relaylang.syntax import astext, canonical, parse, parse_expr, reader
from relaylang.syntax.format import format_text
from relaylang.syntax.symbols import SymbolTable

#: Where a comment may stand, `{}`.
PLACES = [
    "1 {}",
    "{} 1",
    "(1, {} 2)",
    "add(%x {}, 2) {}",
    "add(%x, %layer-1 {})",
    "nn.softmax(%x, {} axis=1 {})",
    "reshape(%x, newshape=[1, {} 2])",
    "fn (%a: Tensor[(1, {} 2), float32] {}) {{ %a {} }}",
    "meta[relay.Constant][0] {}",
    "meta[relay.Constant][0] {} {}",
    "/* a /* b */ c */ add({} %x, 1)",
    "let %a = 1; {}\n%a",
    "def @f() {} {{ 1 {} }} {}",
]
KINDS = ["ty=", "span=", "", " ty=", " span=", " ty=int32 span="]
WORDS = [
    "int32*",
    "a*b.py:1:2",
    "*",
    "**",
    "* /",
    "/",
    "//",
    "/ *",
    '"',
    "'",
    "}",
    "#",
    "#[metadata]",
    "Tensor[(",
    "Tensor[(1, */ /*), int8]",
    "/* int32 */",
    "/* a */ * b",
    "int32 span=*/ /* ty=*",
    "\n",
    "%x-1",
    "ty=",
    "-",
    "é",
    "\0",
    "Tensor[(2), float32]",
]
NONE = object()
FEW = [(kind, word) for kind in KINDS[:3] for word in WORDS[:9]]
ALL = list(product(KINDS, WORDS))
sweep = pytest.mark.parametrize("said", [FEW, pytest.param(ALL, marks=pytest.mark.sweep)], ids=["few", "all"])


def meaning(text: str) -> object:
    """What a text means, or `NONE` where it is refused."""
    try:
        return parse(text).value
    except RelayError as wrong:
        assert all(d.span is not None for d in wrong.diagnostics)
        return NONE


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the loop was begun for one text."""
    begun = [0]
    run = reader.run

    def counted(*args: object) -> object:
        begun[0] += 1
        assert begun[0] <= 3
        return run(*args)

    monkeypatch.setattr(reader, "run", counted)
    monkeypatch.setattr(canonical, "run", counted)
    monkeypatch.setattr(reader, "_type_of", lambda text, scope: None)
    return begun


@sweep
@pytest.mark.parametrize("place", PLACES)
def test_no_text_is_cut_twice_in_one_way(place: str, said: list[tuple[str, str]], cuts: list[int]) -> None:
    for kind, word in said:
        text = place.format(*[f"/*{kind}{word} */"] * place.count("{}"))
        for read in (meaning, reader.is_complete, lambda text: Analysis(text, "net.relay").diagnostics):
            cuts[0] = 0
            read(text)


@pytest.mark.sample(3)
@sweep
@pytest.mark.parametrize("place", PLACES)
def test_a_comment_says_nothing_but_a_type(place: str, said: list[tuple[str, str]]) -> None:
    bare = meaning(place.format(*[""] * place.count("{}")))
    assert bare is not NONE
    for kind, word in said:
        text = place.format(*[f"/*{kind}{word} */"] * place.count("{}"))
        if word in ("Tensor[(1, */ /*), int8]", "int32 span=*/ /* ty=*") and "meta" not in place:
            continue
        found = meaning(text)
        if "/*" not in word and "*/" not in word:
            assert found is not NONE and structural_equal(found, bare, map_free_vars=True), text  # type: ignore[arg-type]
        if found is not NONE:
            made = format_text(text)
            assert format_text(made) == made
            assert structural_equal(parse(made).value, found, map_free_vars=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "comment", ["/* ty=int32* */", "/* span=a*b.py:1:2 */", "/* ty=int32 span=a*b.py:1:2 */", "/***/", "/* ** */"]
)
def test_a_star_ends_no_comment(comment: str) -> None:
    assert astext(parse(f"1 {comment}").value).splitlines()[1] == "1"
    typed = parse_expr(f"meta[relay.Constant][0] {comment}")
    assert isinstance(typed, MetaRef)
    assert typed.type_annotation == (scalar_type("int32") if comment == "/* ty=int32 span=a*b.py:1:2 */" else None)
    assert [t.text for t in SymbolTable(f"1 {comment} 2").tokens] == ["1", comment, "2"]


def test_nested_comments_in_the_editor() -> None:
    text = "add(%x, /* a /* b */ %no */ 1) // /* c\n%y /* open /* */ %z"
    assert [t.text for t in SymbolTable(text).tokens if t.kind == "local"] == ["%x", "%y"]
