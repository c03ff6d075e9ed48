"""Completion in a session: the first offers at the end of a line."""

from __future__ import annotations

import pytest

from relaylang.repl.completer import suggestions
from relaylang.repl.session import Session


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session()
    for text in (
        "def @f(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, %x)) }",
        "type Tree { Leaf(int32), Fork(Tree, Tree), }",
        'let %a = ones(shape=[2, 3], dtype="float32")',
        'let %b = ones(shape=[4, 3], dtype="float32")',
        "let %t = Leaf(3)",
        "let %p = (1, 2f)",
        "let %c = True",
        'let %"odd name" = 3',
    ):
        made.execute(text)
    return made


#: Lines, and their first offers. An empty list: there are none.
LINES: list[tuple[str, list[str]]] = [
    ("nn.dense(%a, |", ["%b", "%a"]),
    ("let %z = nn.dense(%a, %b); nn.dense(%z, |", ["%z"]),
    ("let %z = (1, 2); %z.|", ["%z.0", "%z.1"]),
    ("@f(|", ["%a", "%z"]),
    ("@f(nn.relu(|", ['%"odd name"', "%c", "%b", "%a", "%p"]),
    ("if (|", ["%c"]),
    ("match (%t) { |", ["Leaf", "Fork", "_"]),
    ("match (%t) { Fork(_, _) => 1, |", ["Leaf", "_"]),
    ("%a + |", ["%b", "%a"]),
    ("%p.|", ["%p.0", "%p.1"]),
    ('%"o|', ['%"odd name"']),
    ("%o|", ['%"odd name"']),
    ("cast(%a, dtype=|", ['"float32"', '"int32"', '"int8"']),
    ("def @g(%x: Tensor[|", ["(4, 3)", "(2, 3)"]),
    ("def @g(%x: |", ["Tensor[(4, 3), float32]", "Tensor[(2, 3), float32]", "Tree"]),
    ("def @g(%x: Tr|", ["Tree"]),
    ("c2d|", ["nn.conv2d", "qnn.conv2d"]),
    ("let %q = @|", ["@f"]),
    ('import "|', ['"prelude.rly"']),
    ("|", ["def", "type", "import", "extern", "let"]),
    (":ty|", [":type"]),
    (":type nn.dense(%a, |", ["%b", "%a"]),
    (":doc soft|", ["nn.softmax", "qnn.softmax"]),
    (":passes FoldConstant, Fuse|", ["FuseOps"]),
    (":plot %a|", ["%a"]),
    ("?soft|", ["nn.softmax", "qnn.softmax"]),
    ("?:vi|", [":viz"]),
    ("?%a|", ["%a"]),
    ("?@|", ["@f"]),
    ("// %|", []),
    ("let %|", []),
]


@pytest.mark.parametrize(("line", "wanted"), LINES, ids=[line for line, _ in LINES])
def test_offers(session: Session, line: str, wanted: list[str]) -> None:
    before, _, after = line.partition("|")
    found = [s.text for s in suggestions(before, session, after)][:5]
    wanted = [name for name in wanted if name != "%z" or "%z" in before]
    assert found[: len(wanted)] == wanted and bool(found) == bool(wanted)


def test_a_closing_quote_stays(session: Session) -> None:
    assert [s.text for s in suggestions('take(%a, %b, mode="c', session, '")')] == ['"clip']
