"""The syntax tree: its leaves are the text, its nodes nest, and its rules are the grammar's."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from relaylang.syntax.symbols import SymbolTable
from relaylang.syntax.tables import data
from relaylang.syntax.tree import LISTS, Tree, cut
from relaylang.testing import hostile
from tests.growth import assert_linear
from tests.shared import GOLDEN, check_each

ROOT = Path(__file__).resolve().parents[2]
TEXTS = sorted([*ROOT.glob("examples/**/*.relay"), *ROOT.glob("tests/**/*.relay"), *ROOT.glob("tests/**/malformed.txt")])
HOSTILE = [
    *(
        "",
        " ",
        "\n",
        "\ufeff",
        "def",
        "def @",
        "{" * 2000,
        "}" * 2000,
        "(" * 2000 + ")" * 1999,
        "%",
        "@",
        '"',
        "'",
        "/*",
        "*/",
        "/* /*",
    ),
    *("#[", "#[metadata]", "#[metadata]\n{", "METADATA:", "def def def", "%%%@@@", "\x00\x01", "%a-1", "%a-b-1", "let %x = ;" * 300),
    *('def @"a b', 'def @f() { "\n', "def @f(/* def @g() {} */) { // }\n 1 }", "match (%x) { A => ", "é %é = 1", "1\r\n2\r3"),
    *("/* a /* b */ c */ 1", "%0 /* of the /* first */ */ = 1; %0", "-" * 3000, "a." * 3000, "fn (" * 1000, "def @f() {" * 500),
]


def check(text: str) -> None:
    """The tree of a text is whole, and so are the definitions that the text is cut into."""
    tree = Tree(text)
    assert "".join(tree.leaves()) == text
    pieces = [piece.text for piece in cut(text)[0]]
    assert "".join(pieces) == text
    ends = -1
    for node, rule in enumerate(tree.rules):
        first, last = tree.firsts[node], tree.lasts[node]
        assert 0 <= first <= last < len(tree.code), rule
        assert last >= ends, "nodes stand in the order in which they end"
        ends = last
        inside = tree.children(node)
        assert all(tree.lasts[a] < tree.firsts[b] for a, b in pairwise(inside)), rule
        assert all(first <= tree.firsts[n] and tree.lasts[n] <= last for n in inside), rule
    table = SymbolTable(text)
    starts = {token.start for token in table.tokens}
    assert all(place.start in starts for symbol in table.symbols for place in symbol.places())


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def test_trees_of_texts() -> None:
    check_each(lambda path: check(read(path)[:10_000]), TEXTS)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_trees_of_hostile_texts(text: str) -> None:
    check(text)


@pytest.mark.sweep
def test_trees_of_all_texts() -> None:
    check_each(lambda path: check(read(path)), [*TEXTS, *sorted(GOLDEN.glob("*.relay"))])
    check_each(lambda name: check(hostile.TEXTS[name](300)), hostile.TEXTS)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(20))
def test_trees_of_changed_texts(seed: int) -> None:
    chance = random.Random(seed)
    text = read(chance.choice(TEXTS))[:4000]
    for _ in range(10):
        begin = chance.randrange(len(text))
        end = begin + chance.choice((0, 1, 2, 10, 200))
        piece = chance.choice(("", "", "{", "}", "(", '"', "/*", "def ", "let %z = ", ";", "=>", "%0 = ", text[:begin][-30:]))
        check(text[:begin] + piece + text[end:])
        check(text[:end])


def test_every_list_is_a_rule_of_the_grammar() -> None:
    rules = {alias for _, _, alias in data()["rules"]}
    assert rules >= LISTS


def test_nodes_of_a_call() -> None:
    tree = Tree("nn.dense(add(%x, 1), %w, units=4)")
    call = max(range(len(tree.rules)), key=lambda node: (tree.lasts[node], -tree.firsts[node]))
    assert tree.rules[call] == "call_attrs"
    assert [tree.rules[node] for node in tree.children(call)] == ["open_name", "call_last", "var"]


def test_errors_are_nodes() -> None:
    assert any("error" in rule for rule in Tree("def @f() { let = 3 4 5; 1 }").rules)


def test_a_tree_grows_as_its_text() -> None:
    assert_linear(lambda n: lambda: Tree("def @f(%x) { " + "%x + (" * n + "1" + ")" * n + " }"))
    assert_linear(lambda n: lambda: SymbolTable("def @f(%x) { " + "let %y = add(%x, 1);\n" * n + "%y }").symbols)
