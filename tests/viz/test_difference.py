"""Differences of graphs: how nodes pair, and how pictures, pages and texts show what changed."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.viz import as_dot, as_svg, as_text, difference, fold_repeats, graph_of
from relaylang.viz.align import align
from relaylang.viz.difference import changes, changes_text
from relaylang.viz.graph import Graph
from relaylang.viz.scene import Plans, scene_of
from tests.cli.command import relay as command
from tests.growth import assert_linear
from tests.shared import few, golden
from tests.viz.test_scene import assert_geometry, typed
from tests.viz.test_viz import BRANCHES, CONVNET, SKIP, chain, checked, fused

OTHER = SKIP.replace("nn.relu(%x)", "tanh(%x)").replace("add(%0, %1)", "add(%0, multiply(%1, 2f))")


def between(before: str, after: str) -> Graph:
    return difference(graph_of(checked(before)), graph_of(checked(after)))


def marked(graph: Graph) -> set[tuple[str, str]]:
    return {(n.change, n.label) for n in graph.nodes if n.change}


def longest(a: str, b: str) -> int:
    """The length of a longest common subsequence, by the table."""
    row = [0] * (len(b) + 1)
    for x in a:
        last, row = row, [0]
        for j, y in enumerate(b):
            row.append(last[j] + 1 if x == y else max(last[j + 1], row[j]))
    return row[-1]


def test_common_subsequences_are_longest() -> None:
    """One key a letter, with few anchors: the rest is a longest common subsequence."""
    choose = random.Random(1)
    for _ in range(500):
        a, b = ("".join(choose.choices("ab", k=choose.randrange(12))) for _ in range(2))
        pairs = align([(x,) for x in f"{a}{a}"], [(x,) for x in f"{b}{b}"])
        assert all(f"{a}{a}"[i] == f"{b}{b}"[j] for i, j in pairs)
        assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
        if min((a + a).count(c) for c in "ab") > 1 < min((b + b).count(c) for c in "ab"):
            assert len(pairs) == longest(a + a, b + b)


def test_exact_keys_pair_before_loose_ones() -> None:
    left = [("a1", "a"), ("a2", "a"), ("b", "b")]
    right = [("a2", "a"), ("a3", "a"), ("b", "b")]
    assert align(left, right) == [(1, 0), (2, 2)]
    assert align(left[:1], right[:1]) == [(0, 0)] and align([], right) == align(left, []) == []


def test_sides_without_common_items_end() -> None:
    assert align([(i,) for i in range(3000)], [(-i - 1,) for i in range(3000)]) == []


def test_added_removed_and_changed_calls() -> None:
    graph = between(SKIP, OTHER)
    assert marked(graph) == {("removed", "nn.relu"), ("added", "tanh"), ("added", "multiply"), ("added", "2.0")}
    assert changes_text(graph) == "3 added, 1 removed"
    assert all(i < n.id for n in graph.nodes for i in n.inputs)
    label = {n.id: n.label for n in graph.nodes}
    add = next(n for n in graph.nodes if n.label == "add")
    assert [label[i] for i in add.taken] == ["tanh", "multiply"] and add.fresh == {0, 1}
    assert [label[i] for i in add.inputs[len(add.taken) :]] == ["nn.relu", "exp"]


def test_a_program_has_no_difference_from_itself() -> None:
    for text in (SKIP, BRANCHES, CONVNET, chain(300)):
        graph = between(text, text)
        assert changes(graph) == {} and changes_text(graph) == "nothing changed"
        assert not any(n.lost or n.fresh for n in graph.nodes)
    renamed = SKIP.replace("%x", "%input").replace("%0", "%first")
    assert changes(between(SKIP, renamed)) == {}


def test_notes_name_attributes_and_types() -> None:
    graph = between(CONVNET, CONVNET.replace("pool_size=[2, 2], strides=[2, 2]", "pool_size=[4, 4], strides=[2, 2]"))
    pool = next(n for n in graph.nodes if n.label == "nn.max_pool2d")
    assert pool.change == "changed" and ("pool_size", "[2, 2] → [4, 4]") in pool.notes
    assert ("type", "Tensor[(1, 16, 16, 16), float32] → Tensor[(1, 16, 15, 15), float32]") in pool.notes


def test_values_of_constants_count() -> None:
    def program(last: int) -> Graph:
        x = relay.var("x", shape=(20,), dtype="float32")
        value = np.arange(20, dtype="float32")
        value[-1] = last
        return graph_of(relay.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(value)))))

    assert changes(difference(program(19), program(19))) == {}
    graph = difference(program(19), program(20))
    assert marked(graph) == {("changed", "constant")}
    [box] = [p.box for p in scene_of(Plans(graph)).boxes if p.box.rows]
    assert (box.title, box.change, box.rows[0].style) == ("~ add", "changed", "changed")


def test_branches_clauses_and_functions() -> None:
    after = BRANCHES.replace("nn.relu(%y)", "sigmoid(%y)").replace("Nil => 0", "Nil => 1")
    graph = between(BRANCHES, after)
    assert {("removed", "nn.relu"), ("added", "sigmoid"), ("changed", "1")} == marked(graph)
    scene = scene_of(Plans(graph, expand=True))
    assert_geometry(scene)
    assert next(p.box.change for p in scene.boxes if p.box.title == "if") == "inside"
    gone = between(
        "def @main(%x: int32) { @f(%x) } def @f(%x: int32) -> int32 { exp(%x) }".replace("int32", "float32"),
        "def @main(%x: float32) { exp(%x) }",
    )
    assert [(g.label, g.change) for g in gone.groups] == [("@main", ""), ("@f", "removed")]
    assert ("removed", "@f") in marked(gone)
    assert next(n for n in gone.nodes if n.label == "exp").notes == [("moved", "from @f")]


def test_a_call_that_moves_into_a_recursive_function() -> None:
    """The removed call's operand stands in a function that stands inside itself: the edge is left out."""
    recursive = "def @a(%n: float32) -> float32 { if (less(%n, 0f)) { BODY } else { @a(subtract(%n, 1f)) } }"
    before = recursive.replace("BODY", "%n") + "def @main(%x: float32) { tanh(cosh(%x)) }"
    after = recursive.replace("BODY", "cosh(%n)") + "def @main(%x: float32) { %x }"
    graph = between(before, after)
    tanh = next(n for n in graph.nodes if n.label == "tanh")
    assert (tanh.change, tanh.inputs) == ("removed", [])
    assert ("moved", "from @main") in next(n for n in graph.nodes if n.label == "cosh").notes
    assert_geometry(scene_of(Plans(graph, expand=True)))


def test_fusion_moves_calls_without_a_change() -> None:
    before = relay.transform.SimplifyInference()(checked(CONVNET))
    graph = difference(graph_of(before), graph_of(fused(CONVNET)), same_text=True)
    assert {change for change, _ in marked(graph)} == {"added"}
    assert not any(n.change for n in graph.nodes if n.kind == "op")
    assert_geometry(scene_of(Plans(graph)))
    assert_geometry(scene_of(Plans(graph, expand=True)))


LSTM = [p for p in golden("typed") if p.name.startswith("lstm")]


@pytest.mark.sweep
@pytest.mark.parametrize("path", few(golden("typed"), *LSTM), ids=lambda p: p.stem)
def test_networks_before_and_after_passes(path: Path) -> None:
    before = graph_of(typed(path))
    for kind in ("anf", "simplified", "fused"):
        after = graph_of(typed(path.with_name(path.name.replace(".typed.", f".{kind}."))))
        graph = difference(before, after)
        kept = [n for n in graph.nodes if n.change not in ("added", "removed")]
        assert len(graph.nodes) == len(before.nodes) + len(after.nodes) - len(kept)
        assert kind != "anf" or changes(graph) == {}
        for shown in (graph, fold_repeats(graph)):
            assert_geometry(scene_of(Plans(shown)))
            assert_geometry(scene_of(Plans(shown, expand=True)))


def test_pictures_and_texts_of_a_difference() -> None:
    graph = between(SKIP, OTHER)
    assert as_text(graph).splitlines() == [
        "  @main(%x: 2×3)",
        "−   ●    %0 = nn.relu(%x) : 2×3",
        "+   ●    %1 = tanh(%x) : 2×3",
        "    ├─●  %2 = exp(%1) : 2×3",
        "+   │ ●  %3 = multiply(%2, 2.0) : 2×3",
        "    ●─╯  %4 = add(%1, %3) : 2×3",
    ]
    assert "\x1b[32m+" in as_text(graph, color=True) and "\x1b[31m−" in as_text(graph, color=True)
    svg = as_svg(graph)
    assert 'class="box element added"' in svg and 'class="box element removed"' in svg and 'class="box same"' in svg
    assert 'class="line removed"' in svg and 'class="line added"' in svg and ">removed</text>" in svg
    assert "+ tanh" in as_dot(graph)
    large = between(chain(60), chain(60).replace("%30 = add", "%30 = multiply"))
    lines = as_text(large).splitlines()
    assert len(lines) < 15 and sum("⋮" in line for line in lines) == 2


def test_the_verb_draws_differences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    a, b, out = tmp_path / "a.relay", tmp_path / "b.relay", tmp_path / "diff.html"
    a.write_text(SKIP)
    b.write_text(OTHER)
    assert "+   " in command(capsys, "viz", a, b).out
    assert command(capsys, "viz", a, b, "-o", out).status == 0
    assert "a.relay → b.relay" in out.read_text() and "3 added, 1 removed" in out.read_text()
    done = command(capsys, "opt", a, "--passes", "InferType,SimplifyExpr", "--viz", out)
    assert done.status == 0 and "nn.relu" in done.out
    assert '"name":"SimplifyExpr","says":"nothing changed"' in out.read_text()


def test_a_difference_in_a_notebook() -> None:
    picture = relay.viz(checked(OTHER), before=checked(SKIP))
    assert changes(picture.graph) == {"added": 3, "removed": 1}
    assert "3 added, 1 removed" in picture._repr_html_()


@pytest.mark.sweep
def test_large_differences_take_linear_time() -> None:
    def prepare(calls: int) -> Callable[[], None]:
        before = graph_of(relay.parse(chain(calls)))
        after = graph_of(relay.parse(chain(calls).replace("7 = add", "7 = multiply")))

        def run() -> None:
            found = changes(difference(before, after))
            assert found.get("added") == found.get("removed")

        return run

    assert_linear(prepare)
