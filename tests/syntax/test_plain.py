"""Long texts are read as short ones are: statements that bind calls of plain names, whose reading is one loop, and all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import post_order
from relaylang.syntax import parse, tokens
from relaylang.syntax.actions.plain import PlainStatements
from relaylang.syntax.actions.statements import Block
from relaylang.syntax.printer import astext

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.relay"))
HEAD = "def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {\n  %0 = add(%x, %y);\n  let %a = tanh(%0);\n"
#: The statements behind the head, and the function's end.
BODIES = {
    "plain": "  %1 = add(%0, %a);\n  let %b = subtract(%1, %x);\n  %2 = tanh(%b);\n  let %c = add(%2, %1);\n  %c\n}",
    "shadowed": "  let %a = add(%a, %a);\n  let %b = tanh(%a);\n  let %b = add(%b, %a);\n  %b\n}",
    "bound twice": "  %1 = add(%x, %x);\n  %1 = tanh(%x);\n  %2 = tanh(%1);\n  %2\n}",
    "let and graph": "  %1 = add(%x, %x);\n  let %1 = tanh(%x);\n  %2 = tanh(%1);\n  %2\n}",
    "unknown name": "  %1 = add(%x, %z);\n  %2 = add(%1, %1);\n  %2\n}",
    "unknown operator": "  %1 = added(%x, %y);\n  %2 = add(%1, %1);\n  %2\n}",
    "no attributes": "  %1 = transpose(%x);\n  %2 = transpose(%1);\n  %3 = reshape(%2);\n  %4 = reshape(%3);\n  %4\n}",
    "attributes": "  %1 = sum(%x, axis=[0]);\n  %2 = sum(%x);\n  %3 = sum(%y);\n  %4 = (%1, %2, %3);\n  %4\n}",
    "numbers": "  %1 = add(%x, 1f);\n  %2 = add(2f, %1);\n  %3 = tanh(%2);\n  %4 = tanh(%3);\n  %4\n}",
    "line ends": "  %1 = add(%x, %y)\n  %2 = add(%1, %1)\n  %3 = tanh(%2);\n  %4 = tanh(%3);\n  %4\n}",
    "comments": "  %1 = add(%x, %y); // one\n  %2 = add(%1 /* two */, %1);\n  /* a /* b */ */\n  %3 = tanh(%2);\n  %3\n}",
    "no value": "  %1 = add(%x, %y);\n  %2 = add(%1, %1);\n}",
    "dashes": "  let %a-1 = add(%x, %y);\n  %1 = tanh(%a-1);\n  %2 = add(%1, %x);\n  %2\n}",
    "quoted": '  let %"b" = add(%x, %y);\n  %1 = tanh(%b);\n  let %"1" = add(%1, %1);\n  %2 = add(%1, %x);\n  %2\n}',
    "sequence": "  %1 = tanh((%2 = add(%x, %y); %3 = tanh(%2); %3));\n  %4 = tanh(%1);\n  %4\n}",
    "branches": "  %1 = if (True) {\n %2 = add(%x, %y);\n %3 = tanh(%2);\n %3\n} else {\n %x\n};\n  %4 = tanh(%1);\n  %4\n}",
    "functions": "  %1 = fn (%z) {\n %2 = add(%z, %y);\n let %a = tanh(%2);\n %a\n};\n  %3 = %1(%a);\n  %4 = tanh(%3);\n  %4\n}",
    "open bracket": "  %1 = add(%x, %y;\n  %2 = tanh(%1);\n  %2\n}",
    "unknown values": "  %1 = add(%x, %z);\n  %2 = nn.rellu(%1);\n  %3 = tanh(%2);\n  %4 = Conss(%3);\n  %5 = tanh(%4);\n  %5\n}",
    "old names": "  %1 = nn.batch_flatten(%x);\n  %2 = nn.batch_flatten(%1);\n  %3 = contrib_reverse_reshape(%2);\n  %3\n}",
}


def read(text: str) -> tuple[object, ...]:
    """The module's text, the place of each node, and the diagnostics."""
    try:
        result = parse(text)
    except RelayError as wrong:
        return tuple(map(str, wrong.diagnostics))
    assert result.module is not None
    places = [
        (type(node).__name__, node.span.first, node.span.last)
        for function in result.module.functions.values()
        for node in post_order(function)
        if node.span is not None
    ]
    return astext(result.module), places, list(map(str, result.notes))


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tokens of each run of plain statements."""
    counts: list[int] = []
    plain = PlainStatements.read

    def counted(self: PlainStatements, words: list[str], at: int, first: int, block: Block) -> int:
        counts.append(plain(self, words, at, first, block))
        return counts[-1]

    monkeypatch.setattr(PlainStatements, "read", counted)
    return counts


@pytest.mark.parametrize("stretch", [1, 100])
@pytest.mark.parametrize("name", BODIES)
def test_long_texts_are_read_as_short_ones(name: str, stretch: int, count: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    text = '#[version = "0.0.5"]\n' + HEAD + BODIES[name] + "\n"
    short = read(text)
    assert not count
    monkeypatch.setattr(tokens, "_STRETCH", stretch)
    assert read(text) == short
    # once more, as the operators are known now
    assert read(text) == short
    if name == "plain" and stretch == 100:
        assert any(count)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_as_long_texts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text(encoding="utf-8")
    short = read(text)
    monkeypatch.setattr(tokens, "_STRETCH", 200)
    assert read(text) == short
