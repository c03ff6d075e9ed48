"""The Pygments lexer: every character is taken, and kinds of names look different."""

from __future__ import annotations

from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Generic, Keyword, Name, Number, String

from relaylang.repl.lexer import RelayConsoleLexer, RelayLexer
from tests.shared import FRAGMENTS, ROOT, golden

FILES = sorted((ROOT / "examples").glob("*.relay")) + golden("typed") + golden("anf") + sorted(FRAGMENTS.glob("*.relay"))


def kinds(text: str) -> dict[str, object]:
    return {value: kind for kind, value in RelayLexer().get_tokens(text) if value.strip()}


@pytest.mark.sample(3)
@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_whole_files_have_no_unknown_character(file: Path) -> None:
    text = file.read_text()
    tokens = list(RelayLexer(ensurenl=False, stripnl=False).get_tokens(text))
    assert "".join(value for _, value in tokens) == text
    assert [value for kind, value in tokens if kind is Error] == []


def test_kinds_of_names() -> None:
    found = kinds("def @main(%x: Tensor[(1, ?), float32]) { nn.conv2d(%features.0.0_weight, padding=[1, 1]) }")
    assert found["def"] is Keyword.Declaration
    assert found["@main"] is Name.Function
    assert found["%x"] is Name.Variable
    assert found["%features.0.0_weight"] is Name.Variable
    assert found["nn.conv2d"] is Name.Builtin
    assert found["padding"] is Name.Attribute
    assert found["float32"] is Keyword.Type


def test_literals_and_comments() -> None:
    found = kinds('#[version = "0.0.5"]\n# hash\n0.0186579f 1e-05f inff -3i64 "a\\n" /* outer /* inner */ outer */')
    assert found['#[version = "0.0.5"]'] is Comment.Preproc
    assert found["# hash"] is Comment.Single
    assert found["0.0186579f"] is found["1e-05f"] is found["inff"] is Number.Float
    assert found["3i64"] is Number.Integer
    assert found["\\n"] is String.Escape
    assert found[" outer "] is Comment.Multiline


def test_an_unfinished_text_ends() -> None:
    for text in ("/* never closed", '"never closed', '#[metadata]\n{"root": 1', "%", "@", "\0"):
        assert "".join(value for _, value in RelayLexer(ensurenl=False, stripnl=False).get_tokens(text)) == text


def test_registered_with_pygments() -> None:
    assert isinstance(get_lexer_by_name("relay"), RelayLexer)


CONSOLE = """$ relay check a.relay
a.relay:3:18: error[R0203]: `nn.softmax` has no attribute `axes`
    3 |   nn.softmax(%x, axes=1)
      |                  ^^^^ not known here
  = help: did you mean `axis`?
#[version = "0.0.5"]
%0 = add(%x, 1f);
5 passed
relay> %0
"""


def test_a_terminal_has_prompts_messages_and_relay_text() -> None:
    tokens = list(RelayConsoleLexer(stripnl=False).get_tokens(CONSOLE))
    assert "".join(value for _, value in tokens) == CONSOLE
    assert [value for kind, value in tokens if kind is Generic.Prompt] == ["$ ", "relay> "]
    assert [value for kind, value in tokens if kind is Generic.Error] == [
        "error[R0203]",
        "                 ^^^^ not known here\n",
    ]
    assert [value for kind, value in tokens if kind is Name.Variable] == ["%x", "%0", "%x", "%0"]
    assert [value for kind, value in tokens if kind is Comment.Preproc] == ['#[version = "0.0.5"]']
    assert (Generic.Output, "5 passed\n") in tokens
