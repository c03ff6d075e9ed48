"""`relay compile --emit`: the text of every step, as golden files for x86-64-v3."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from relaylang.backends import parse_target
from relaylang.backends.cpu import STEPS, emit, emit_c, pipeline
from relaylang.backends.cpu.bisect import bisect
from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.pipeline import GRAPH
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Function, IRModule
from relaylang.ops import OPS
from relaylang.runtime.random import random_params
from relaylang.syntax import astext, parse, parse_expr
from relaylang.testing.directives import read_test
from relaylang.testing.matching import FileCheck
from relaylang.typing import check, infer
from tests.cli.command import relay

FILES = Path(__file__).parent / "emit"
Caps = pytest.CaptureFixture[str]
TEXT = "def @main(%x: Tensor[(4, 5), float32], %w: Tensor[(3, 5), float32]) { nn.relu(nn.dense(%x, %w, units=3)) }"


def module(text: str = TEXT, name: str = "net.relay") -> IRModule:
    mod = parse(text, name).module
    assert mod is not None
    return mod


@pytest.mark.parametrize("name", sorted(file.stem for file in FILES.glob("*.relay")))
def test_golden_files(capsys: Caps, name: str) -> None:
    """As `relay test` does, in this process."""
    pytest.importorskip("filecheck", reason="golden files need filecheck: pip install 'relaylang[golden]'")
    if Compiler({"march": "x86-64-v3"}).isa.name != "avx2":
        pytest.skip("the C compiler does not compile for x86-64-v3")
    test = read_test(str(FILES / f"{name}.relay"))
    assert test.runs
    for line in test.runs:
        (command,) = line.commands
        ran = relay(capsys, *[word.replace("%s", test.source.name) for word in command.words])
        assert ran.status == 0 and FileCheck().miss(test.source.text, [test.source.name], ran.out) is None, ran


def test_every_step_after_fusion_has_a_golden_file() -> None:
    assert set(STEPS) - {file.stem.split("-")[0] for file in FILES.glob("*.relay")} == {s.name for s in GRAPH[:-1]} - {"relay"}


def test_steps_are_relay_text_until_there_are_loops() -> None:
    for step in [s.name for s in GRAPH]:
        text = emit(module(), step)
        read = parse_expr(text)
        assert infer(read) == [] and astext(read, show_meta_data=False).startswith(text.strip())
    assert "Primitive=1" in emit(module(), "fused") and "Primitive" not in emit(module(), "relay")


def test_a_kernel_shows_the_lines_of_all_its_calls() -> None:
    text = (
        "def @main(%x: Tensor[(4, 5), float32]) {\n"
        "  %0 = annotation.stop_fusion(exp(%x));\n  %1 = annotation.stop_fusion(exp(%0));\n  exp(%1)\n}"
    )
    for step, sign in (("loops", "  #"), ("c", "//")):
        shown = emit(module(text), step)
        assert [line for line in shown.splitlines() if "net.relay" in line] == [f"{sign} net.relay:{n}: exp" for n in (2, 3, 4)]


def test_a_comment_is_a_comment_whatever_the_file_is_called() -> None:
    mod = module(name="a\n#error \\")
    assert "// a?#error ?:1: nn.dense, nn.relu\n" in emit(mod, "c")


def test_the_lines_are_no_part_of_what_is_compiled() -> None:
    """A line inserted in the program leaves the object files valid."""
    moved = emit_c(module("\n\n" + TEXT), ["w"])
    own = emit_c(module(), ["w"])
    assert moved != own
    assert [line for line in moved.splitlines() if "net.relay" not in line] == [
        line for line in own.splitlines() if "net.relay" not in line
    ]


def test_loops_name_what_they_read() -> None:
    body = "if (less(sum(%x), 0f)) { add(%x, %w) } else { %w }"
    text = emit(module(f"def @main(%x: Tensor[(4), float32], %w: Tensor[(4), float32]) {{ {body} }}"), "loops", ["w"])
    assert "(%x, %w) -> " in text and "\n  if arena+" in text and "\n  else\n" in text and "copy(%w) -> " in text


def test_other_targets_have_no_steps(capsys: Caps, tmp_path: Path) -> None:
    file = tmp_path / "a.relay"
    file.write_text(TEXT)
    ran = relay(capsys, "compile", file, "--target", "ethos-u", "--emit", "loops")
    assert ran.status == 2 and "--emit loops goes with target c, not ethos-u" in ran.err


def test_assembly_that_cannot_be_made() -> None:
    with pytest.raises(RelayError) as caught:
        emit(module(), "asm", options={"cflags": "-fno-such-flag"})
    assert caught.value.diagnostics[0].code == "R0631"


def test_results_agree_after_every_stage() -> None:
    mod = module()
    values = random_params(0, mod["main"].params)
    found = list(bisect(mod, parse_target("c")[0], {}, "main", values))
    assert [d.stage for d in found] == [*(s.name for s in GRAPH), "loops", "library"] and not any(d.is_fault for d in found)


def test_a_stage_that_changes_results_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [replace(s, run=lambda graph, s: _doubled(graph)) if s.name == "plain" else s for s in GRAPH]
    monkeypatch.setattr(pipeline, "GRAPH", tuple(wrong))
    mod = module()
    differences = bisect(mod, parse_target("c")[0], {}, "main", random_params(0, mod["main"].params))
    assert next(d.stage for d in differences if d.is_fault) == "plain"


def _doubled(graph: Function) -> Function:
    made = Function(graph.params, Call(OPS["add"], [graph.body, graph.body]))
    check(IRModule.from_expr(made))
    return made


def test_the_command_times_and_bisects(capsys: Caps, tmp_path: Path) -> None:
    file = tmp_path / "net.relay"
    file.write_text("def @main(%x: Tensor[(4, 5), float32]) { exp(%x) }\n")
    assert "library" in relay(capsys, "compile", str(file), "-o", str(tmp_path / "net.so"), "--time").err
    assert relay(capsys, "compile", str(file), "--bisect").out.endswith("results agree after every stage\n")
    assert relay(capsys, "compile", str(file), "--bisect", "--runtime", "vm").status == 2
