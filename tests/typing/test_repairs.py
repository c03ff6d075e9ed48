"""What a type error suggests makes the program right."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.ir import IRModule
from relaylang.syntax import parse
from relaylang.typing import infer
from relaylang.typing.partial import all_errors

HEAD = "def @main(%x: Tensor[(2, 3), float32], %h: Tensor[(2, 3), float16], %n: Tensor[(2, 3), int64]) "


def errors(text: str) -> list[Diagnostic]:
    try:
        module = parse(text).module
    except RelayError as wrong:
        return all_errors(wrong)
    assert isinstance(module, IRModule)
    return [d for d in infer(module) if d.severity == "error"]


@pytest.mark.parametrize(
    ("body", "repaired"),
    [
        ("%x * 2", "%x * 2f"),
        ("2 * %x", "2f * %x"),
        ("%x + -2", "%x + -2f"),
        ("maximum(%h, 1f)", "maximum(%h, 1f16)"),
        ("%n + 1", "%n + 1i64"),
        ("concatenate(%x, %x)", "concatenate((%x, %x))"),
        ("concatenate(%x, nn.relu(%x), axis=1)", "concatenate((%x, nn.relu(%x)), axis=1)"),
        ("stack(%x, %x, axis=0)", "stack((%x, %x), axis=0)"),
        ("nn.softmax(%x, 1)", "nn.softmax(%x, axis=1)"),
        ("sum(%x, (0, 1), True)", "sum(%x, axis=[0, 1], keepdims=True)"),
        ("sum(%x, keepdims=true)", "sum(%x, keepdims=True)"),
    ],
)
def test_the_repair(body: str, repaired: str) -> None:
    text = f"{HEAD}{{ {body} }}"
    (said,) = errors(text)
    assert said.fix is not None
    made = said.fix.apply(text)
    assert made == f"{HEAD}{{ {repaired} }}"
    assert errors(made) == []


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("def @f(%x: float32) { %x }\ndef @main() { @f(1) }", "def @f(%x: float32) { %x }\ndef @main() { @f(1f) }"),
        ("def @main() { let %y: int64 = 1; %y }", "def @main() { let %y: int64 = 1i64; %y }"),
        ("def @main() -> float16 { -2.5 }", "def @main() -> float16 { -2.5f16 }"),
        ("def @main(%r: ref(float64)) { ref_write(%r, 2) }", "def @main(%r: ref(float64)) { ref_write(%r, 2f64) }"),
        ("type P { P(uint8), }\ndef @main() { P(7) }", "type P { P(uint8), }\ndef @main() { P(7u8) }"),
    ],
)
def test_a_number_in_the_type_of_its_place(text: str, repaired: str) -> None:
    (said,) = errors(text)
    assert said.fix is not None and said.fix.apply(text) == repaired
    assert errors(repaired) == []


@pytest.mark.parametrize(
    "text",
    [
        "def @f(%x: Tensor[(2), float32]) { %x }\ndef @main() { @f(1) }",
        "def @main() -> uint8 { 300 }",
        "def @main() -> bool { 1 }",
    ],
)
def test_a_number_that_its_place_does_not_take(text: str) -> None:
    (said,) = errors(text)
    assert said.fix is None


@pytest.mark.parametrize("body", ["%n + 1.5f", "%x + %n", "add(%x, 1, 2)", "nn.relu(%x, %x)", "less(1, 2f)"])
def test_where_nothing_can_be_suggested(body: str) -> None:
    (said,) = errors(f"{HEAD}{{ {body} }}")
    assert said.fix is None


def test_an_unknown_type_is_told_once() -> None:
    found = errors("def @main(%x: Foo, %y: Foo) -> Foo { %x }\ndef @f(%x: Foo[int32]) { @main(%x, %x) }")
    assert [(d.code, d.title) for d in found] == [("R0207", "unknown type `Foo`")]


@pytest.mark.parametrize("text", ["def @f() {\n  let %y: Tensor\n  %y\n}", "def @f() { let %y: Tensor", "let %y: Tensor;;; %y"])
def test_an_unfinished_type_is_told_once(text: str) -> None:
    assert [d.code for d in errors(text)].count("R0107") == 1
