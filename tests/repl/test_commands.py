"""The session's commands, without a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ops import OPS
from relaylang.repl.calls import OpenCall, function_signature, op_signature, open_call
from relaylang.repl.commands import COMMANDS
from relaylang.repl.completer import suggestions
from relaylang.repl.opdoc import doc_text, example
from relaylang.repl.session import Session
from relaylang.syntax import parse
from relaylang.typing import infer


def session(*inputs: str) -> Session:
    made = Session()
    for text in inputs:
        made.execute(text)
    return made


def code(made: Session, text: str) -> str:
    with pytest.raises(RelayError) as wrong:
        made.execute(text)
    return wrong.value.diagnostics[-1].code


F = "def @f(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, %x)) }"
A = 'let %a = ones(shape=[2, 3], dtype="float32")'


def test_undo_and_reset() -> None:
    made = session("let %x = 1", "let %y = 2", "let %x = 3")
    assert made.execute(":undo") == "back: %x"
    assert made.execute("%x + %y") == "3 : int32"
    assert made.execute(":undo") == "gone: %y"
    made.execute(":reset")
    assert made.execute(":names") == "nothing is defined yet"
    made.execute(":undo")
    assert made.execute("%x") == "1 : int32"
    made.execute(":undo")
    assert code(made, ":undo") == "R0726"


def test_a_wrong_input_is_nothing_to_take_back() -> None:
    made = session("let %x = 1")
    code(made, "let %x = nn.rellu(1f)")
    assert made.execute("%x") == "1 : int32"
    made.execute(":undo")
    assert made.execute(":names") == "nothing is defined yet"


def test_save_and_load_bring_everything_back(tmp_path: Path) -> None:
    file = tmp_path / "s.relay"
    made = session(
        F,
        A,
        "type T { A(int32), B, }",
        "let %t = (A(3), (B, 2f))",
        '%0 = cast(1.5f, dtype="float16")',
        'let %"data" = (True,)',
        "let %g = fn (%x: int32) { %x }",
        "let %n = ()",
    )
    before = {k: str(v) for k, v in made._values.items() if k != "g"}
    said = made.execute(f":save {file}")
    assert said.startswith(f"{file}: 1 function, 1 type, 6 variables") and "not kept" not in said
    again = Session()
    again.load(str(file))
    assert {k: str(v) for k, v in again._values.items() if k != "g"} == before and again.execute("%g(4)") == "4 : int32"
    assert again.execute("@f(%a)") == made.execute("@f(%a)")
    assert made.execute(f":save {file}")
    assert code(again, f":save {tmp_path}") == "R0725"
    other = tmp_path / "other.relay"
    other.write_text("theirs")
    assert code(made, f":save {other}") == "R0725" and other.read_text() == "theirs"
    made.execute(f":save! {other}")
    assert "@f" in other.read_text()
    assert code(made, f":save {tmp_path}/no/such/folder.relay") == "R0725"


def test_the_prelude_is_imported_as_files_import_it(tmp_path: Path) -> None:
    file = tmp_path / "p.relay"
    file.write_text('import "prelude.rly"\ndef @two() -> List[int32] { Cons(1, Cons(2, Nil)) }\n')
    made = session(f":load {file}")
    assert made.execute("@length(@two())") == "2 : int32"
    made = Session()
    assert "@map" in made.execute('import "prelude.rly"')
    assert made.execute("@length(Cons(1, Nil))") == "1 : int32"
    assert code(made, 'import "no.rly"') == "R0221"


def test_functions_and_references_are_saved(tmp_path: Path) -> None:
    made = session(
        "def @f(%x: int32) -> int32 { %x + 1 }",
        "let %g = @f",
        "let %k = 3",
        "let %h = fn (%y: int32) { %y * %k + @f(1) }",
        "let %k = 100",
        "let %r = ref(5)",
        "let %pair = (%r, %h)",
        "let %nested = fn (%y: int32) { ref_write(%r, %y); %h(%y) }",
        "let %inner = (ref(1), 2)",
        "let %again = %inner.0",
        "let %old = @f",
    )
    said = made.execute(f":save {tmp_path}/s.relay")
    assert said.endswith("1 function, 0 types, 8 variables; not kept, as no text can hold them: %again"), said
    other = session(f":load {tmp_path}/s.relay")
    for text in ("%g(1)", "%h(5)", "%pair.1(6)", "%nested(7)", "ref_read(%r)", "ref_read(%pair.0)", "%old(2)"):
        assert other.execute(text) == made.execute(text), text
    assert other.execute("ref_read(%r)") == "7 : int32"
    made.execute("def @f(%x: int32) -> int32 { %x + 2 }")
    assert "%g, %again, %old" in made.execute(f":save! {tmp_path}/s.relay")
    loop = session("let %loop = fn (%n: int32) -> int32 { %loop(%n) }")
    assert "%loop" in loop.execute(f":save {tmp_path}/loop.relay")


def test_reload_reads_the_file_again(tmp_path: Path) -> None:
    file = tmp_path / "f.relay"
    file.write_text("def @f() -> int32 { 1 }")
    made = session(f":load {file}")
    file.write_text("def @f() -> int32 { 2 }")
    assert made.execute("@f()") == "1 : int32"
    made.execute(":reload")
    assert made.execute("@f()") == "2 : int32"
    file.unlink()
    assert code(made, ":reload") == "R0001" and made.execute("@f()") == "2 : int32"
    assert code(Session(), ":reload") == "R0721"


def test_passes() -> None:
    made = session(F, A)
    fused = made.execute(":passes FuseOps(fuse_opt_level=2) @f")
    assert "Primitive=1" in fused and "def @f" in fused
    anf = made.execute(":passes ToANormalForm, DeadCodeElimination add(%a, multiply(%a, %a))")
    assert anf.startswith("fn (%a") and "def " not in anf and "multiply" in anf
    assert "FuseOps" in made.execute(":passes")
    assert code(made, ":passes NoSuchPass @f").startswith("R05")
    assert made.execute(":names").count("@") == 1


@pytest.mark.sweep
def test_time_profile_and_targets() -> None:
    made = session(F, A, "type T { A(int32), B, }", "let %t = B")
    assert "(interpreter)" in made.execute(":time @f(%a)")
    table = made.execute(":profile @f(%a)")
    assert "nn.relu" in table and "between operators" in table
    wanted = made.execute("@f(%a)")
    assert made.execute(":target c") == "target c"
    assert made.execute("@f(%a)") == wanted
    assert code(made, "%t").startswith("R06")
    assert made.execute(":target") == "target c"
    assert code(made, ":target arm64") == "R0601"
    made.execute(":target interpreter")
    assert made.execute("%t") == "B : T[]"


def test_compile(tmp_path: Path) -> None:
    made = session(F)
    assert "inputs: %x" in made.execute(":compile @f")
    assert "kB for c" in made.execute(f":compile @f {tmp_path}/f.so") and (tmp_path / "f.so").exists()
    assert "lines of C" in made.execute(f":compile f {tmp_path}/f.c")
    assert code(made, ":compile @g") == "R0721"
    assert code(made, f":compile @f {tmp_path}/no/f.c") in ("R0725", "R0704", "R0013")


def test_viz_doc_explain() -> None:
    made = session(F, A)
    assert "●  %1 = nn.relu(%0) : 2×3" in made.execute(":viz @f")
    assert made.execute(":viz add(%a, %a)").startswith("fn(%a")
    assert "def" not in made.execute(":viz")
    said = made.execute(":doc nn.conv2d")
    for text in ("arguments:\n  data\n  weight", "groups ", "whole number; default 1", "example:", ": Tensor[(1, 4, 6, 6), float32]"):
        assert text in said
    assert code(made, ":doc nn.conv2e") == "R0721"
    assert made.execute(":explain R0202").startswith("R0202: ")
    assert code(made, ":explain R9999") == "R0721"
    assert code(made, ":explain") == "R0721"


def test_every_command_has_help_and_says_what_is_wrong() -> None:
    made = Session()
    shown = made.execute(":help")
    for name, command in COMMANDS.items():
        assert name in shown
        if command.needed:
            assert code(made, name) == "R0721"
        if command.takes == "nothing" and name != ":quit":
            assert code(made, f"{name} x") == "R0721"
    assert code(made, ":frob") == "R0720" and code(made, ":re") == "R0720"


@pytest.mark.sweep
def test_every_operator_has_a_page_and_an_example_that_checks() -> None:
    assert [name for name, op in OPS.items() if example(op) is None] == []
    for op in OPS.values():
        shown = example(op)
        assert shown is not None
        if shown.language == "relay":
            result = parse(shown.text)
            found = infer(result.module if result.module is not None else result.value)
            assert f"{op.name}(" in shown.text and not [d for d in found if d.severity == "error"], op.name
        assert doc_text(op).startswith(op.name + "(")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("nn.dense(%x, %w, units=", OpenCall("nn.dense", 2, "units", (), 8)),
        ("nn.dense(", OpenCall("nn.dense", 0, None, (), 8)),
        ("f(a, [1, 2", OpenCall("f", 1, None, (), 1)),
        ("nn.conv2d(%x, add(1, 2), strides=[1, 1], pa", OpenCall("nn.conv2d", 3, None, ("strides",), 9)),
        ("@f (%x", OpenCall("@f", 0, None, (), 3)),
        ("add(%x == 1, ", OpenCall("add", 1, None, (), 3)),
        ("(1, ", None),
        ("add(1, 2)", None),
        ("def @f(%x: int32) { ", None),
        ("x" * 1_000_000, None),
    ],
)
def test_the_open_call(text: str, wanted: OpenCall | None) -> None:
    assert open_call(text) == wanted


def test_signatures() -> None:
    dense = op_signature(OpenCall("nn.dense", 1, None, (), 0))
    assert dense is not None and dense.parts()[3] == (True, "weight")
    units = op_signature(OpenCall("nn.dense", 2, "units", (), 0))
    assert units is not None and (True, "units: int | None") in units.parts()
    f = function_signature(OpenCall("@f", 1, None, (), 0), "fn (Tensor[(2, 3), float32], (int32, bool)) -> int32")
    assert (f.parameters, f.active, f.result) == (("Tensor[(2, 3), float32]", "(int32, bool)"), 1, " -> int32")
    assert op_signature(OpenCall("frob", 0, None, (), 0)) is None


def names(made: Session, text: str) -> dict[str, str]:
    return {s.text: s.says for s in suggestions(text, made)}


def test_completion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = session(F, A, "type T { Apple(int32), B, }")
    found = names(made, "nn.conv2d(%a, %w, ")
    assert found["groups="] == "whole number; default 1" and "strides=" in found
    assert "groups=" not in names(made, "nn.conv2d(%a, %w, groups=2, gr")
    assert names(made, "nn.soft")["nn.softmax"].startswith("nn.softmax(data")
    assert names(made, "@")["@f"].startswith("fn (")
    assert names(made, "App") == {"Apple": "Apple(int32) -> T"}
    assert names(made, "let %größe = 1; %g").keys() == {"%größe"}
    assert ":compile" in names(made, ":com") and ":save!" in names(made, ":sa")
    assert "R0301" in names(made, ":explain R03") and "nn.dense" in names(made, ":doc nn.d")
    assert names(made, ":passes FoldConstant,Fuse").keys() == {"FuseOps"}
    assert {"c", "ethos-u"} <= names(made, ":target ").keys() and names(made, ":keys v").keys() == {"vi"}
    (tmp_path / "net.relay").write_text("1")
    monkeypatch.chdir(tmp_path)
    assert names(made, ":load n").keys() == {"net.relay"}


def test_names_are_shown_as_they_are_typed() -> None:
    made = session()
    assert made.execute('let %"größe 🙂" = 3') == '%"größe 🙂" = 3 : int32'
    assert made.execute("let %größe = 4") == "%größe = 4 : int32"
    assert made.execute('def @"a b"(%x: int32) { %x }').startswith('@"a b" : fn')
    assert made.execute(":names").splitlines()[0].startswith('@"a b" : fn')
    for begun in ("%gr", '%"gr', '%"größe '):
        assert '%"größe 🙂"' in names(made, begun)
    assert names(made, '@"a').keys() == {'@"a b"'}
    assert made.execute(":undo") == 'gone: @"a b"'


def test_sentences_are_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    for command in (":doc nn.batch_matmul", ":explain R0301"):
        lines = session().execute(command).splitlines()
        prose = [line for line in lines if line[:4] != "    " and "%" not in line and "default" not in line]
        assert len(prose) > 5 and max(map(len, prose)) <= 48 and any(len(line) > 30 for line in prose)


def test_undo_brings_the_type_back_with_the_definition() -> None:
    session = Session()
    session.execute("def @f(%x: float32) -> float32 { %x }")
    session.execute("def @f(%x: int32) -> int32 { %x }")
    assert session.execute("@f(3)") == "3 : int32"
    session.execute(":undo")
    with pytest.raises(RelayError) as wrong:
        session.execute("@f(3)")
    assert wrong.value.diagnostics[0].code == "R0302"
    assert session.execute("@f(3f)") == "3.0 : float32"


def test_a_redefinition_that_a_user_does_not_fit_names_it() -> None:
    made = session("def @fact(%n: int32) -> int32 { %n }", "def @g(%n: int32) -> int32 { @fact(%n) }")
    with pytest.raises(RelayError) as wrong:
        made.execute("def @fact(%n: float32) -> float32 { %n }")
    note = "@g uses @fact as it was: define both in one input, or keep the type of @fact"
    assert wrong.value.diagnostics[0].notes[-1] == note
    made.execute("def @fact(%n: float32) -> float32 { %n }\ndef @g(%n: float32) -> float32 { @fact(%n) }")
    assert made.execute("@g(2f)") == "2.0 : float32"
