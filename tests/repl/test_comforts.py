"""The last value, questions, hints, tensors from files, pictures and pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.repl.commands import COMMANDS
from relaylang.repl.inputs import inputs, ready
from relaylang.repl.last import with_last
from relaylang.repl.questions import hint, question
from relaylang.repl.session import Session
from relaylang.runtime.params import save_params


def session(*texts: str) -> Session:
    made = Session()
    for text in texts:
        made.execute(text)
    return made


def wrong(made: Session, text: str) -> str:
    with pytest.raises(RelayError) as found:
        made.execute(text)
    return str(found.value.diagnostics[-1].code)


def test_the_last_value() -> None:
    made = session()
    assert wrong(made, "_") == "R0722"
    made.execute("let %a = 20")
    assert made.execute("_ + 22") == "42 : int32"
    assert made.execute("add(_, %_)") == "84 : int32"
    assert wrong(made, "nn.rellu(_)") == "R0202"
    assert made.execute(":type (_, 1f)") == "(int32, float32)"
    assert made.execute("let %_ = 5") == "%_ = 5 : int32"
    assert made.execute("_") == "5 : int32" and "%_" not in made.execute(":names")
    made.execute("type T { A(int32), B, }")
    assert made.execute("match (A(_)) { A(_) => _, B => 0 }") == "5 : int32"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("_", "%_"),
        ("add(_, 1)", "add(%_, 1)"),
        ("match (_) { _ => _, A(_, %x) => 1, }", "match (%_) { _ => %_, A(_, %x) => 1, }"),
        ("let %x: _ = _; _", "let %x: _ = %_; %_"),
        ('%_ + @_ + f._ + x_ + _x + "_" // _', '%_ + @_ + f._ + x_ + _x + "_" // _'),
    ],
)
def test_where_the_last_value_stands(text: str, wanted: str) -> None:
    assert with_last(text) == wanted


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("?nn.relu", "nn.relu"), ("nn.relu?", "nn.relu"), (" ? %x ", "%x"), ("?", ""), ('%"a b"?', '%"a b"'), (":save!?", ":save!")),
        *(("Tensor[(?, 3), float32]", None), ("let %x: Tensor[(?)", None), ("nn.relu(%x)", None), ("a b?", None)),
    ],
)
def test_questions(text: str, name: str | None) -> None:
    assert question(text) == name
    assert name is None or ready(text)


def test_answers() -> None:
    made = session("def @f(%x: int32) { %x }", "type T { A(int32), B, }", "let %t = B")
    made.execute('let %w = ones(shape=[2, 3], dtype="float32")')
    assert made.execute("nn.relu?").startswith("nn.relu(data)")
    assert "def @f(%x: int32" in made.execute("?@f")
    assert made.execute("%w?") == "%w : Tensor[(2, 3), float32]\nleast 1, mean 1, greatest 1"
    assert made.execute("?%t") == "%t : T[]"
    assert made.execute("?A") == made.execute("?T") == "type T {\n  A(int32),\n  B,\n}"
    assert made.execute("?:vi").startswith(":viz [EXPR|@NAME]\n")
    assert made.execute("?") == made.execute(":help")
    assert made.execute("R0301?") == made.execute(":explain R0301")
    assert wrong(made, "?nn.rellu") == "R0721" and wrong(made, "?@g") == "R0721" and wrong(made, "?:frob") == "R0720"


def test_words_of_other_sessions() -> None:
    for text in ("help", "help()", " exit ", "quit();"):
        assert str(hint(text)) == session().execute(text) and ready(text) and ":" in str(hint(text))
    assert hint("helper") is None and hint("exit(1)") is None
    assert inputs("exit\n1 + 1\n") == ["exit\n1 + 1\n"]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("print(%w)", "R0202", ":print"),
        ("dir()", "R0202", ":names"),
        ("import numpy as np", "R0111", ":load FILE"),
        ("from os import path", "R0111", ":load FILE"),
        ("nn.rellu(%w)", "R0202", None),
    ],
)
def test_words_of_python_have_advice(text: str, code: str, says: str | None) -> None:
    with pytest.raises(RelayError) as found:
        session("let %w = 1f").execute(text)
    notes = [note for d in found.value.diagnostics if d.code == code for note in d.notes]
    assert any(says in note for note in notes) if says is not None else not any(":" in note for note in notes)


@pytest.mark.parametrize("width", [30, 50, 80, 120])
def test_values_and_help_fit_the_terminal(width: int) -> None:
    made = session()
    made.style = replace(made.style, width=width)
    for text in ('let %r = ones(shape=[3, 40], dtype="float32")', "(%r, 1)"):
        shown = made.execute(text).splitlines()
        assert max(len(line.partition(" : ")[0]) for line in shown) <= width
    lines = made.execute(":help").splitlines()
    assert max(len(line) for line in lines if not line.startswith("  let")) < max(width, 50)
    assert [line.split()[0] for line in lines if line.startswith("  :")] == list(COMMANDS)


@pytest.mark.parametrize("suffix", ["npz", "params", "safetensors"])
def test_tensors_of_a_file(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"weights.{suffix}"
    save_params(file, {"w": np.ones((2, 3), "float32"), "conv1.weight": np.zeros(3, "int8")})
    made = session()
    assert set(made.execute(f":load {file}").splitlines()) == {"%w : Tensor[(2, 3), float32]", "%conv1.weight : Tensor[(3), int8]"}
    assert made.execute("sum(%w)") == "6.0 : float32" and made.execute("%conv1.weight").endswith("Tensor[(3), int8]")
    save_params(file, {"w": np.zeros((2, 3), "float32")})
    made.execute(":reload")
    assert made.execute("sum(%w)") == "0.0 : float32"
    made.execute(":undo")
    assert made.execute("sum(%w)") == "6.0 : float32"
    file.write_bytes(b"broken")
    assert wrong(made, f":load {file}") == "R0012"


def test_a_large_file_is_listed_in_part(tmp_path: Path) -> None:
    file = tmp_path / "weights.npz"
    save_params(file, {f"w{i}": np.zeros(2) for i in range(30)})
    said = session().execute(f":load {file}").splitlines()
    assert len(said) == 21 and said[-1] == "and 10 more; :names lists them"


def test_plots() -> None:
    made = session('let %v = arange(0f, 8f, 1f, start=0f, stop=8f, step=1f, dtype="float32")')
    assert made.execute(":plot %v") == "least 0, mean 3.5, greatest 7\n▁▂▃▄▅▆▇█"
    assert made.execute(":plot (%v, %v)") == "\n".join([made.execute(":plot %v")] * 2)
    assert wrong(made, ":plot fn () { 1 }") == "R0721" and wrong(made, ":plot ()") == "R0721" and wrong(made, ":plot") == "R0721"


def test_the_page_of_a_graph() -> None:
    made = session("def @f(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }")
    drawn = made.execute(":viz @f")
    assert drawn == made.execute(":draw @f") and "nn.relu" in drawn
    opened: list[str] = []
    made.browse = opened.append
    said = made.execute(":viz @f")
    (address,) = opened
    page = Path(address.removeprefix("file://"))
    assert str(page) in said and "nn.relu" in page.read_text(encoding="utf-8")
    made.execute(":viz")
    assert len(set(opened)) == 2
