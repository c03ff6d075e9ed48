"""The shape of a text: folding, selections, imports, calls, defaults; and settings."""

from __future__ import annotations

from itertools import pairwise

import pytest

from relaylang.lsp import structure
from relaylang.lsp.analysis import Analysis
from relaylang.lsp.settings import Settings

TEXT = """\
import "prelude.rly"
import "nat.rly"
// a comment
// of two lines
def @f(
  %x: Tensor[(2, 3), float32],
) {
  let %y = nn.dense(
    %x, %x
  );
  /* a block
     of two lines */
  if (True) {
    nn.softmax(%y)
  } else { %y }
}
def @g(%x: Tensor[(2, 3), float32]) { @f(add(%x, @f(%x))) }
def @h(%x: Tensor[(2, 3), float32]) { @g(%x) }
"""


def analysis(text: str = TEXT) -> Analysis:
    return Analysis(text, "net.relay")


def test_folds() -> None:
    assert structure.folds(analysis()) == [
        (0, 1, "imports"),
        (2, 3, "comment"),
        (4, 5, ""),
        (6, 14, ""),
        (7, 8, ""),
        (10, 11, "comment"),
        (12, 13, ""),
    ]
    assert structure.folds(analysis("def @f() {\n(((\n")) == []
    assert structure.folds(analysis('def @f() { 1 }\n#[metadata]\n{\n"a": 1\n}\n')) == [(1, 4, "region")]


@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        (
            "def @f(%x: int32) { let %y = nn.relu(add(%|x, 1)); %y }",
            ["%x", "%x, 1", "(%x, 1)", "add(%x, 1)", "(add(%x, 1))", "nn.relu(add(%x, 1))", "let %y = nn.relu(add(%x, 1))"],
        ),
        ("def @f() { add(1, nn.relu|(2)) }", ["nn.relu", "nn.relu(2)", "1, nn.relu(2)", "(1, nn.relu(2))", "add(1, nn.relu(2))"]),
        ("def @f() { f(a=[1, |2]) }", ["2", "1, 2", "[1, 2]", "a=[1, 2]", "(a=[1, 2])", "f(a=[1, 2])"]),
        ("def @f() { (|) }", ["()"]),
    ],
)
def test_selections_grow(marked: str, wanted: list[str]) -> None:
    at = marked.index("|")
    text = marked.replace("|", "")
    found = [text[start:end].strip() for start, end in structure.selections(analysis(text), at)]
    assert [part for part in found if part in wanted] == wanted
    assert found[-1] == text and all(inner in outer for inner, outer in pairwise(found))


@pytest.mark.parametrize("text", ["", "(((", ")))", "def", "\n\n", "{ ( ] }", "add(%x"])
def test_selections_in_unfinished_texts(text: str) -> None:
    for at in range(len(text) + 1):
        found = structure.selections(analysis(text), at)
        assert found[-1] == (0, len(text)) and all(start <= at <= end for start, end in found)


def test_links_lead_to_the_library() -> None:
    found = [(TEXT[start:end], path.rpartition("/")[2]) for start, end, path in structure.links(analysis())]
    assert found == [("prelude.rly", "prelude.relay"), ("nat.rly", "nat.relay")]
    assert list(structure.links(analysis('import "none.rly"\n'))) == []


def test_calls() -> None:
    made = analysis()
    assert {name: len(places) for name, places in structure.callers(made, "@f").items()} == {"@g": 2}
    assert {name: len(places) for name, places in structure.callees(made, "@g").items()} == {"@f": 2}
    assert structure.callers(made, "@h") == {} and list(structure.callees(made, "@h")) == ["@g"]
    assert structure.callers(made, "@none") == {} and structure.callees(made, "@none") == {}


def test_defaults() -> None:
    text = 'nn.softmax(nn.leaky_relu(%x, alpha=1f)) + nn.batch_flatten(%x) + zeros(shape=[2, 3], dtype="int8")'
    found = [(text[:at][-9:], short, whole) for at, short, whole in structure.defaults(analysis(text), 0, len(text))]
    assert found == [("alpha=1f)", ", axis=-1", "axis=-1")]
    (pool,) = structure.defaults(analysis("nn.max_pool2d(%x)"), 0, 99)
    assert pool[1].endswith(", …") and pool[1].count("=") == 4 and pool[2].count("=") > 4
    assert list(structure.defaults(analysis(text), 0, 10)) == []


def test_settings() -> None:
    made = Settings()
    assert (made.types, made.defaults, made.lenses) == (True, False, True)
    made.take({"relay": {"hints": {"types": False, "defaults": True}, "lenses": False}})
    assert (made.types, made.defaults, made.lenses) == (False, True, False)
    made.take({"hints": {"types": True}})
    for wrong in (None, [], {"relay": 3}, {"hints": []}, {"lenses": "no"}, {"other": True}):
        made.take(wrong)
    assert (made.types, made.defaults, made.lenses) == (True, True, False)
