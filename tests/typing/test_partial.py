"""Wrong names, attributes and types in one program: one check reports all of them, and nothing that follows from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import Var, post_order
from relaylang.stdlib.library import read
from relaylang.syntax import ParseResult
from relaylang.typing.partial import all_errors
from tests.cli.command import relay


def errors(text: str) -> list[str]:
    """The errors of a text that the reader does not take."""
    with pytest.raises(RelayError) as wrong:
        read(text, "f")
    return [f"{d.span.line} {d.code}" for d in all_errors(wrong.value) if d.span and d.severity == "error"]


BROKEN = "def @a(%x: Tensor[(2), float32]) { nn.softmax(%x, axes=1) }\n"
TYPED = "def @a(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { nn.softmax(%x, axes=1) }\n"


def test_all_functions_are_checked() -> None:
    text = BROKEN + "def @b(%x: Tensor[(2), float32]) { sum(%x, axis=9) }\ndef @c(%x: int32) { nn.relu(%x, %x) }"
    assert errors(text) == ["1 R0203", "2 R0301", "3 R0303"]


def test_calls_of_a_wrong_function_are_checked_by_its_header() -> None:
    assert errors(TYPED + "def @b() { @a(1) }") == ["1 R0203", "2 R0302"]
    assert errors(TYPED + "def @b(%y: Tensor[(2), float32]) { @a(%y).0 }") == ["1 R0203", "2 R0306"]
    assert errors(BROKEN + "def @b(%y: Tensor[(2), float32]) { @a(%y).0 }\ndef @c(%y: Tensor[(3), float32]) { @a(%y) }") == [
        "1 R0203",
        "3 R0302",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "nn.rellu(%x)",  # an operator, a variable, a function, a constructor
        "exp(%z)",
        "@nowhere(%x)",
        "Conss(%x)",
        "nn.softmax(%x, axes=1)",  # attributes: unknown, of a wrong kind, missing, twice
        "nn.softmax(%x, axis=1.5)",
        "clip(%x, a_min=1f)",
        "sum(%x, axis=1, axis=2)",
        "9999999999999999999",  # a number, a string, a metadata value
        '"text"',
        "(fn (%p: Nowhere) { %p })(%x)",
        "(fn (%p: Tensor[(2), floot32]) { %p })(%x)",
        "match (%x) { Conss(%h, %t) => add(%h, 1), _ => nowhere(), }",
    ],
)
def test_what_depends_on_an_unknown_value_is_right_and_everything_else_is_checked(value: str) -> None:
    text = f"""def @main(%x: Tensor[(2), float32]) {{
  let %y = {value};
  let %z1 = %y + 1f;
  let %z2 = @f(%y).3;
  let %z3 = if (%y) {{ %z1 }} else {{ 2i64 }};
  add(%x, 1)
}}
def @f(%p: int32) {{ (%p, %p, %p, %q) }}"""
    found = errors(text)
    assert [line for line in found if line[:1] != "2"] == ["6 R0301", "8 R0201"], found
    assert any(line[:1] == "2" for line in found) or "axis=2" in value


def test_a_type_that_an_unknown_value_may_say_is_not_missed() -> None:
    assert errors("def @a() { nn.softmax(@b(%x), axes=1) }\ndef @b(%y) { @c(%y) }\ndef @c(%z) { %z }") == ["1 R0203", "1 R0201"][::-1]
    assert errors("def @b(%y) { nn.rellu(%y) }\ndef @d(%z) { %z }") == ["1 R0202", "2 R0304"]


def test_a_second_definition_is_checked_too() -> None:
    assert errors("def @b() { 1 + 1f }\ndef @b() { 2 + 2f }\ndef @c() { @b() }") == ["1 R0301", "2 R0205", "2 R0301"]


def test_an_expression_is_checked() -> None:
    assert errors("let %x = nowhere(1); (%x, add(1, 1f))") == ["1 R0202", "1 R0301"]
    assert errors("def @f(%x: int32) { %x }\n(@f(1f), nowhere(1))") == ["2 R0302", "2 R0202"]


def test_types_stand_beside_errors() -> None:
    with pytest.raises(RelayError) as wrong:
        read("def @f(%x: int32) { let %y = add(%x, 1); nowhere(%y) }", "f")
    all_errors(wrong.value, beside_errors=True)
    assert isinstance(wrong.value.partial, ParseResult) and wrong.value.partial.module is not None
    nodes = {n.name_hint: n.checked_type for n in post_order(wrong.value.partial.module["f"]) if isinstance(n, Var)}
    assert str(nodes["y"]) == "int32" and nodes["nowhere"] is None


def test_with_the_library() -> None:
    assert errors('import "prelude.rly"\n' + BROKEN + "def @b(%l: List[int32]) { @hd(%l) + 1f }") == ["2 R0203", "3 R0301"]


def test_the_command_says_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.relay"
    path.write_text("def @b() { 1 + 1f }\n" + BROKEN)
    done = relay(capsys, "check", path)
    assert done.status == 1 and done.err.index("R0301") < done.err.index("R0203")


@pytest.mark.parametrize(
    "wrong",
    [
        "let %y = add(%x 1f);",
        "let %y = nn.relu(;",
        "let %y add(%x, 1f);",
        "let y = nn.relu(%x);",
        "%0 = nn.relu(%x; let %y = %0;",
        "let %y = exp %x;",
        "let %y = nn.softmax(%x, axis=%x);",
        "let %y = reshape(%x, [3, 2]);",
        "let %y = fn (%p: int32) { add(%p, = };",
        "let %y = match (%x) { Some(1) => %x, };",
        "let %y = if (True) { ) } else { %x };",
        "let %y = concatenate([%x, %x], axis=0);",
        "let %y = %x && %x;",
    ],
)
def test_a_piece_of_syntax_is_an_unknown_value(wrong: str) -> None:
    text = f"""def @main(%x: Tensor[(2), float32]) {{
  {wrong}
  let %z = nn.rellu(%x);
  let %a = add(%x, 1);
  (%y, %z)
}}
def @f(%x: Tensor[(3), float32]) {{ @main(%x) }}"""
    found = errors(text)
    assert found[-3:] == ["3 R0202", "4 R0301", "7 R0302"] and set(found[:-3]) <= {
        "2 R0101",
        "2 R0102",
        "2 R0112",
        "2 R0113",
        "2 R0114",
    }


@pytest.mark.parametrize(
    ("header", "codes"),
    [
        ("def @f(%x int32) -> int32 {", ["1 R0112"]),
        ("def @f(%x: int32 -> int32 {", ["1 R0102"]),
        ("def @f(%x: int32) int32 {", ["1 R0112"]),
        ("def f(%x: int32) -> int32 {", ["1 R0114"]),
        ("def @f(=) {", ["1 R0101"]),
        ("def @f[A(%x: int32) -> int32 {", ["1 R0102"]),
    ],
)
def test_a_function_with_a_wrong_header_is_known(header: str, codes: list[str]) -> None:
    assert errors(f"{header}\n  let %x = 1;\n  add(%x, 1f)\n}}\ndef @g() {{ @f(1) }}") == [*codes, "3 R0301"]


def test_definitions_in_what_cannot_be_read_are_not_missed() -> None:
    assert errors("type Num { One( }\ndef @a(%n: Num[]) { (One(), Two(), %y) }\n") == ["1 R0102", "2 R0201"]
    assert errors("def @a( = { %x }\ndef @b() { (@a(1), @c()) }\n") == ["1 R0101", "2 R0206"]


@pytest.mark.parametrize("call", ["add(%x,", "add(", "add(%x, nn.relu(%x),", "concatenate((%x,"])
def test_an_unfinished_call_ends_where_the_next_statement_begins(call: str) -> None:
    text = f"def @f(%x: int32) {{\n  let %y = {call}\n  let %z = 1;\n  add(%z, 1f)\n}}\ndef @g() {{ add(1, 1f) }}"
    assert errors(text) == ["2 R0102", "4 R0301", "6 R0301"]
    graph = f"def @f(%x: int32) {{\n  %0 = {call}\n  %1 = 1;\n  add(%1, 1f)\n}}\ndef @g() {{ add(1, 1f) }}"
    assert errors(graph) == ["2 R0102", "4 R0301", "6 R0301"]


@pytest.mark.parametrize("value", ["%p + nn.rellu(1)", "nn.rellu(1) + %p", "%p + ", "where(%p, nn.rellu(1), %p)"])
def test_a_parameter_beside_an_unknown_value_needs_no_type(value: str) -> None:
    assert len(errors(f"def @f(%p) {{ {value} }}")) == 1
