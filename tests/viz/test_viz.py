"""Graphs of programs: their nodes, and each form that they are drawn in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import relaylang as relay
from relaylang.ir import IRModule
from relaylang.viz import as_dot, as_html, as_svg, as_text, fold_repeats, graph_of
from relaylang.viz.graph import shape_text
from tests.cli.command import one_diagnostic
from tests.cli.command import relay as command
from tests.growth import assert_linear, seconds
from tests.shared import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.relay"))


def checked(text: str) -> IRModule:
    mod = relay.parse(text)
    relay.transform.InferType()(mod)
    return mod


def fused(text: str) -> IRModule:
    mod = relay.transform.FuseOps(2)(relay.transform.SimplifyInference()(checked(text)))
    relay.transform.InferType()(mod)
    return mod


CONVNET = (ROOT / "examples/convnet.relay").read_text()
SKIP = """
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = nn.relu(%x);
  %1 = exp(%0);
  add(%0, %1)
}
"""


BRANCHES = """
type List[A] { Cons(A, List[A]), Nil, }
def @sum(%l: List[int32], %by: int32) -> int32 {
  match (%l) { Cons(%h, %t) => add(multiply(%h, %by), @sum(%t, %by)), Nil => 0 }
}
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3, 3), float32], %n: int32) {
  let %y = nn.dense(%x, %w);
  let %z = if (less(%n, 3)) { let %a = nn.relu(%y); add(%a, %x) } else { if (equal(%n, 7)) { %y } else { tanh(%y) } };
  (%z, @sum(Cons(%n, Nil), %n))
}
"""


def chain(calls: int) -> str:
    lines = ["%0 = nn.relu(%x);", *(f"%{i} = add(%{i - 1}, {'%x' if i % 7 else f'%{i - 5}'});" for i in range(1, calls))]
    return "def @main(%x: Tensor[(2, 3), float32]) {\n" + "\n".join(lines) + f"\n%{calls - 1}\n}}\n"


def test_lanes() -> None:
    assert as_text(graph_of(checked(SKIP))).splitlines()[1:] == [
        "  ●    %0 = nn.relu(%x) : 2×3",
        "  ├─●  %1 = exp(%0) : 2×3",
        "  ●─╯  %2 = add(%0, %1) : 2×3",
    ]
    plain = as_text(graph_of(checked(SKIP)), ascii_only=True)
    assert plain.isascii() and "+-o" in plain and "o-+" in plain
    assert max(map(len, as_text(graph_of(checked(SKIP)), width=20).splitlines())) == 20


def test_lines_keep_types_and_fit_wide_letters() -> None:
    names = [f"%a_long_name_of_a_value_{i}" for i in range(5)]
    params = ", ".join(f"{name}: Tensor[(2, 30), float32]" for name in names)
    text = f"def @main({params}) {{ concatenate(({', '.join(names)}), axis=1) }}"
    lines = as_text(graph_of(checked(text)), 60).splitlines()
    assert lines[-1].endswith("…) : 2×150") and len(lines[-1]) == 60 and "concatenate((%a_long_name_of_a_value_0, " in lines[-1]
    x = relay.var("名前" * 20, shape=(2, 3), dtype="float32")
    for line in as_text(graph_of(relay.Function([x], relay.nn.relu(x))), 40).splitlines():
        assert 38 <= sum(2 if c in "名前" else 1 for c in line) <= 40


def test_types_in_short() -> None:
    def tuples(depth: int) -> relay.Type:
        ty: relay.Type = relay.TensorType((2, 3), "int8")
        for _ in range(depth):
            ty = relay.TupleType([ty, ty])
        return ty

    assert [shape_text(tuples(d)) for d in range(4)] == ["2×3 i8", "(2×3 i8, 2×3 i8)", "((2×3 i8, 2×3 i8), (2×3 i8, 2×3 i8))", ""]
    assert shape_text(relay.TensorType((), "float32")) == "f32" and shape_text(None) == ""


def test_what_is_fused_is_one_line_until_it_is_expanded() -> None:
    graph = graph_of(fused(CONVNET))
    folded, expanded = as_text(graph, 200), as_text(graph, 200, expand=True)
    assert "[nn.conv2d + nn.bias_add + nn.relu](%data, %w1, %b1)" in folded and "nn.bias_add(%0, %p2)" not in folded
    assert "nn.bias_add(%0, %p2)" in expanded and "Primitive=1" in expanded


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda p: p.stem)
def test_every_example_in_every_form(file: Path) -> None:
    graph = graph_of(checked(file.read_text()))
    assert all(i < n.id for n in graph.nodes for i in n.inputs)
    assert as_text(graph).startswith("@")
    dot = as_dot(graph, expand=True)
    assert dot.count("{") == dot.count("}") and "digraph" in dot
    assert "__DATA__" not in as_html(graph, file.name)


def test_recursion_closures_and_matches() -> None:
    text = """
type List[A] { Cons(A, List[A]), Nil, }
def @sum(%l: List[int32]) -> int32 { match (%l) { Cons(%h, %t) => add(%h, @sum(%t)), Nil => 0 } }
def @main(%n: int32) -> int32 {
  let %f = fn (%i: int32) -> int32 { if (equal(%i, 0)) { 0 } else { %f(subtract(%i, 1)) } };
  let %r = ref(%f(%n));
  ref_write(%r, 1);
  ref_read(%r)
}
"""
    shown = as_text(graph_of(checked(text)), 200)
    assert "match(%l)" in shown and "Cons(%h, %t):" in shown and "@sum(%t)" in shown
    assert "if(%0)" in shown and "0\n" in shown and "then:" in shown and "else:" in shown and "%f(%0)" in shown and "ref_read" in shown


@pytest.mark.sweep
def test_large_programs_take_linear_time() -> None:
    def prepare(calls: int) -> Callable[[], None]:
        mod = relay.parse(chain(calls))

        def run() -> None:
            graph = graph_of(mod)
            as_text(graph)
            as_dot(graph)
            as_svg(graph)
            as_html(fold_repeats(graph))
            assert len(graph.nodes) > calls

        return run

    assert_linear(prepare)
    assert seconds(prepare(8_000), 1) < 8 * 4 * seconds(prepare(1_000))


def test_deep_nests_do_not_recurse() -> None:
    depth = 1200
    text = "def @main(%x: int32) { " + "if (True) { " * depth + "%x" + " } else { 1 }" * depth + " }"
    assert len(graph_of(relay.parse(text)).nodes) >= depth
    assert as_text(graph_of(relay.parse(text)))


def test_names_are_escaped_everywhere() -> None:
    mod = checked('def @main(%"</script><b>": int32, %"a\\"b": int32) { add(%"</script><b>", %"a\\"b") }')
    page = as_html(graph_of(mod), "<i>&")
    assert "<b>" not in page and "<i>" not in page
    data = re.search(r'type="application/json">(.*?)</script>', page, re.S)
    assert data is not None and json.loads(data[1])[0]["nodes"][0][1] == "%</script><b>"
    assert '%a\\"b' in as_dot(graph_of(mod)) and "&lt;/script&gt;&lt;b&gt;" in as_svg(graph_of(mod))
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!data:)|https?://(?!www\.w3\.org/2000/svg)|@import|url\(", page)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not on this machine")
def test_graphviz_reads_what_is_drawn() -> None:
    for graph in (graph_of(checked(SKIP)), graph_of(fused(CONVNET)), graph_of(checked(BRANCHES))):
        for expand in (False, True):
            done = subprocess.run(["dot", "-Tcanon"], input=as_dot(graph, expand).encode(), capture_output=True)
            assert (done.returncode, done.stderr) == (0, b"")


def test_the_verb(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "skip.relay"
    file.write_text(SKIP)
    assert "├─●  %1 = exp(%0)" in command(capsys, "viz", file).out
    assert command(capsys, "viz", file, "--as", "dot").out.startswith("digraph")
    assert command(capsys, "viz", file, "-o", tmp_path / "a.html").status == 0
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert command(capsys, "viz", file, "-o", tmp_path / "a.svg").status == 0
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    one_diagnostic(command(capsys, "viz", file, "--as", "png"), 2, "R0700")
    one_diagnostic(command(capsys, "viz", file, "--entry", "mian"), 2, "R0700")
    one_diagnostic(command(capsys, "viz", file, "-o", tmp_path / "no/a.html"), 2, "R0704")
    file.write_text("add(%x, nn.dense(1f, 2f, units=3))")
    wrong = command(capsys, "viz", file)
    assert wrong.status == 1 and "`relay viz --no-types` draws the program all the same" in wrong.err
    assert "nn.dense" in command(capsys, "viz", file, "--no-types").out
