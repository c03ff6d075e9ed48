"""Wrong names in one function and wrong types in others: one check reports both."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.stdlib.library import read
from relaylang.typing.rest import check_rest
from tests.cli.command import relay


def rest(text: str) -> list[str]:
    """The diagnostics about functions that the reader's errors do not touch."""
    with pytest.raises(RelayError) as wrong:
        read(text, "f")
    partial = wrong.value.partial
    if not isinstance(partial, IRModule):
        return []
    return [f"{d.span.line} {d.code} {d.title}" for d in check_rest(partial, wrong.value.diagnostics) if d.span]


BROKEN = "def @a(%x: Tensor[(2), float32]) { nn.softmax(%x, axes=1) }\n"
TYPED = "def @a(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { nn.softmax(%x, axes=1) }\n"


def test_other_functions_are_checked() -> None:
    text = BROKEN + "def @b(%x: Tensor[(2), float32]) { sum(%x, axis=9) }\ndef @c(%x: int32) { nn.relu(%x, %x) }"
    assert rest(text) == [
        "2 R0301 `sum`: axis=9 is out of range for a tensor of 1 dimension: its axes are -1 to 0",
        "3 R0303 `nn.relu` takes 1 argument, not 2",
    ]


def test_calls_of_a_wrong_function_are_checked_by_its_header() -> None:
    assert rest(TYPED + "def @b() { @a(1) }") == ["2 R0302 argument 1 of `@a` must be `Tensor[(2), float32]`, not `int32`"]
    assert rest(TYPED + "def @b(%y: Tensor[(2), float32]) { @a(%y).0 }")[0].startswith("2 R0306")


def test_what_depends_on_a_result_that_is_not_known_is_left_out() -> None:
    text = BROKEN + "def @b(%y: Tensor[(2), float32]) { @a(%y) }\ndef @c(%y: Tensor[(2), float32]) { @b(%y).0 }"
    assert rest(text) == []
    assert len(rest(text + "\ndef @d() { 1 + 1f }")) == 1


def test_a_type_that_a_wrong_function_may_say_is_not_missed_elsewhere() -> None:
    wrong = "def @a(%x: Tensor[(2), float32]) { nn.softmax(@b(%x), axes=1) }\n"
    assert rest(wrong + "def @b(%y) { @c(%y) }\ndef @c(%z) { %z }") == []
    assert rest(wrong + "def @b(%y) { %y }\ndef @d(%z) { %z }") == ["3 R0304 the type of `%z` is not known"]


@pytest.mark.parametrize(
    "text",
    [
        "type T { A(Nowhere), }\ndef @b() { 1 + 1f }",
        "def @b(%x: Nowhere) { %x }\ndef @c() { @b(1) }",
        "def @b() { 1 + 1f }\ndef @b() { 2 }",
        "let %x = nowhere(1); %x",
    ],
)
def test_what_is_not_known_is_not_guessed(text: str) -> None:
    assert rest(text) == []


def test_with_the_library() -> None:
    text = 'import "prelude.rly"\n' + BROKEN + "def @b(%l: List[int32]) { @hd(%l) + 1f }"
    assert [said[:7] for said in rest(text)] == ["3 R0301"]


def test_the_command_says_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.relay"
    path.write_text(BROKEN + "def @b() { 1 + 1f }\n")
    done = relay(capsys, "check", path)
    assert done.status == 1 and "R0203" in done.err and "R0301" in done.err
