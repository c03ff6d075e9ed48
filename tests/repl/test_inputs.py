"""Where one input ends and the next one begins."""

from __future__ import annotations

import io

import pytest

from relaylang.repl.app import Shell, run_script
from relaylang.repl.inputs import inputs, ready
from relaylang.repl.session import Session

OPEN = "fn (%x: float32) {\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1 + 2\n3", ["1 + 2\n3"]),
        (OPEN + ":type 3", [OPEN, ":type 3"]),
        (":type 1\n:type 2\n", [":type 1\n", ":type 2\n"]),
        (":type 1\nadd(1, 2)", [":type 1\n", "add(1, 2)"]),
        (f":type {OPEN}%x }}\n:names", [f":type {OPEN}%x }}\n", ":names"]),
        ("1 /*\n:names\n*/ + 2", ["1 /*\n:names\n*/ + 2"]),
        ("fn (%x\n: int32) { %x }", ["fn (%x\n: int32) { %x }"]),
        ("fn (%x\n:Tensor[(2), int32]) { %x }", ["fn (%x\n:Tensor[(2), int32]) { %x }"]),
        ("", [""]),
    ],
)
def test_a_command_is_an_input_of_its_own(text: str, parts: list[str]) -> None:
    assert inputs(text) == parts


def test_a_command_ends_an_open_text() -> None:
    assert not ready(OPEN) and ready(OPEN + ":names") and not ready("1 /*\n:names")


@pytest.mark.parametrize("enter", ["at once", "by lines"])
def test_a_command_behind_a_fragment_runs(enter: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    shell = Shell(Session(), out, err, False)
    text = f"let %a = 1\n:type %a\n{OPEN}:type 2f\n:names\n:quit\n:help\n"
    if enter == "at once":
        assert not shell.handle(text)
    else:
        run_script(shell, text.splitlines(keepends=True))
    assert out.getvalue().splitlines() == ["%a = 1 : int32", "int32", "float32", "%a : int32"]
    assert err.getvalue().count("error[") == 1 and "error[R0102]: this `{` is never closed" in err.getvalue()
