"""Layouts: no box overlaps another, no edge crosses a box, every edge of the program is drawn."""

from __future__ import annotations

import random
from bisect import bisect_left
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import IRModule
from relaylang.ops import OPS
from relaylang.testing.generators.any_ir import AnyPrograms
from relaylang.viz import as_text, difference
from relaylang.viz.boxes import letters
from relaylang.viz.families import family
from relaylang.viz.graph import Graph, graph_of
from relaylang.viz.repeats import fold_repeats
from relaylang.viz.scene import Plans, Scene, scene_of
from tests.shared import few, golden
from tests.viz.test_viz import BRANCHES, CONVNET, SKIP, chain, checked, fused

#: Golden networks for `parametrize`.
KINDS = ("typed", "fused", "simplified", "anf")
NETWORKS = few(
    [path for kind in KINDS for path in golden(kind)],
    *[p for p in golden("typed") if p.name.startswith(("lstm", "resnet18"))],
)


def typed(path: Path) -> IRModule:
    return checked(path.read_text())


def edges(scene: Scene) -> set[tuple[str, str]]:
    return {(line.start, line.end) for line in scene.lines if line.end}


def wanted(scene: Scene) -> set[tuple[str, str]]:
    """The edges that boxes say they have."""
    found = set()
    by_group: dict[str, list[str]] = {}
    for placed in scene.boxes:
        by_group.setdefault(placed.key[: placed.key.rfind(".")], []).append(placed.key)
    for placed in scene.boxes:
        beside = by_group[placed.key[: placed.key.rfind(".")]]
        found |= {(beside[e.source], placed.key) for e in placed.box.edges}
    return found


def assert_geometry(scene: Scene) -> None:
    assert_apart(scene)
    assert edges(scene) == wanted(scene)
    assert_labels_beside(scene)


def assert_labels_beside(scene: Scene) -> None:
    """No label of an edge stands on a box."""
    leaves = sorted((p for p in scene.boxes if not p.open), key=lambda p: p.y)
    tops, tallest = [p.y for p in leaves], max((p.h for p in leaves), default=0)
    for label in scene.labels:
        if label.kind in ("shape", "path") and label.text:
            right, high, low = label.x + 5.3 * letters(label.text), label.y - 7, label.y + 2
            near = leaves[bisect_left(tops, high - tallest) : bisect_left(tops, low)]
            on = [p.key for p in near if p.y + p.h > high and p.x < right and p.x + p.w > label.x]
            assert not on, (label, on)


def assert_apart(scene: Scene) -> None:
    """No box overlaps another, but those inside it, and no edge crosses a box."""
    boxes = {p.key: p for p in scene.boxes}
    for placed in scene.boxes:
        assert placed.x >= 0 and placed.y >= 0
        assert placed.x + placed.w <= scene.width and placed.y + placed.h <= scene.height
    leaves = [p for p in scene.boxes if not p.open]
    around = {p.key for p in scene.boxes if p.open}
    by_row = sorted(scene.boxes, key=lambda p: p.y)
    for i, a in enumerate(by_row):
        for b in by_row[i + 1 :]:
            if b.y >= a.y + a.h:
                break
            inside = a.key.startswith(f"{b.key}/") or b.key.startswith(f"{a.key}/")
            if inside:
                outer, inner = (a, b) if b.key.startswith(f"{a.key}/") else (b, a)
                assert outer.x < inner.x and inner.x + inner.w < outer.x + outer.w
                assert outer.y < inner.y and inner.y + inner.h < outer.y + outer.h
            else:
                assert a.x + a.w <= b.x or b.x + b.w <= a.x, (a.key, b.key)
    for line in scene.lines:
        for (x0, y0), (x1, y1) in zip(line.points, line.points[1:]):
            left, right, top, bottom = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
            for placed in leaves:
                apart = right <= placed.x or left >= placed.x + placed.w or bottom <= placed.y or top >= placed.y + placed.h
                assert apart, (line, placed.key)
            for key in around - {line.start, line.end}:
                placed = boxes[key]
                mine = line.start.startswith(f"{key}/")
                apart = right <= placed.x or left >= placed.x + placed.w or bottom <= placed.y or top >= placed.y + placed.h
                assert apart or mine, (line, key)


def test_texts_fit() -> None:
    """Pictures are as wide as their texts, and boxes as wide as wide letters need."""
    text = "def @a_function_with_a_long_name(%x: Tensor[(1, 3, 224, 224), float32]) { nn.relu(%x) }"
    scene = scene_of(Plans(graph_of(checked(text))))
    for label in scene.labels:
        assert label.x + 6.0 * letters(label.text) < scene.width
    assert letters("nnnn") == 4 and letters("MW名") > 4 and letters("ill.") < 3 and letters("e\u0301") == letters("e")
    empty = scene_of(Plans(graph_of(IRModule({}))))
    assert (empty.boxes, [label.text for label in empty.labels]) == ([], ["The program has no functions."])
    assert empty.width > 200 and empty.height > 20
    assert as_text(graph_of(IRModule({}))) == "The program has no functions.\n"


PROGRAMS = {"skip": SKIP, "branches": BRANCHES, "long": chain(120)}


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_geometry(name: str, expand: bool) -> None:
    graph = graph_of(checked(PROGRAMS[name]))
    assert_geometry(scene_of(Plans(graph, expand)))
    assert_geometry(scene_of(Plans(graph, expand, nodes=True)))


@pytest.mark.parametrize("expand", [False, True])
def test_geometry_of_fused_functions(expand: bool) -> None:
    assert_geometry(scene_of(Plans(graph_of(fused(CONVNET)), expand)))


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("path", NETWORKS, ids=lambda p: p.stem)
def test_geometry_of_networks(path: Path, expand: bool) -> None:
    graph = graph_of(typed(path))
    assert_geometry(scene_of(Plans(graph, expand)))
    assert_geometry(scene_of(Plans(fold_repeats(graph), expand)))


def test_rows_say_what_a_scalar_is() -> None:
    """A constant has the argument's name. The data of a function is no weight, also where it is a vector."""
    text = """def @twice(%f: fn (Tensor[(2), float32]) -> Tensor[(2), float32], %x: Tensor[(2), float32]) { %f(%f(%x)) }
    def @main(%x: Tensor[(2), int32], %k: Tensor[(2), float32]) {
      let %s = qnn.requantize(%x, 0.5f, 3, 0.25f, 7, out_dtype="int8");
      let %g = fn (%c: Tensor[(2), float32]) { multiply(%k, %c) };
      (%s, @twice(%g, %k))
    }"""
    scene = scene_of(Plans(graph_of(checked(text)), expand=True))
    rows = {p.box.title: [(row.name, row.shape) for row in p.box.rows] for p in scene.boxes}
    assert rows["qnn.requantize"] == [
        ("input_scale", "0.5 f32"),
        ("input_zero_point", "3 i32"),
        ("output_scale", "0.25 f32"),
        ("output_zero_point", "7 i32"),
    ]
    assert rows["call"] == [] and rows["multiply"] == [("%k", "2 f32")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("qnn.requantize", "quantised"),
        ("expand_dims", "move"),
        ("dyn.tile", "move"),
        ("zeros", "data"),
        ("sum", "pool"),
        ("nn.bias_add", "element"),
        ("nn.softmax", "norm"),
        ("nn.dense", "product"),
    ],
)
def test_colours_of_operators(name: str, expected: str) -> None:
    assert family(OPS[name]) == expected


def ends(scene: Scene, title: str) -> dict[str, float]:
    """Where edges meet the box with a title, from its middle, by the titles of their sources."""
    (box,) = (p for p in scene.boxes if p.box.title == title)
    named = {p.key: p.box.title for p in scene.boxes}
    return {named[line.start]: line.points[-1][0] - box.x - box.w / 2 for line in scene.lines if line.end == box.key}


def test_edges_meet_a_box_side_by_side() -> None:
    """They keep their order and do not cross. Where a side has no room for so many, they share a place."""
    params = ", ".join(f"%x{i}: Tensor[(2, 3), float32]" for i in range(5))
    scene = scene_of(Plans(graph_of(checked(f"def @main({params}) {{ concatenate((%x0, %x1, %x2, %x3, %x4)) }}"))))
    assert_geometry(scene)
    found = ends(scene, "concatenate")
    places = [found[f"%x{i}"] for i in range(5)]
    assert places == sorted(set(places)) and max(map(abs, places)) < 50
    spans = [(min(x0, x1), max(x0, x1), y) for line in scene.lines for (x0, y), (x1, _) in [line.points[1:3]] if x0 != x1]
    drops = [(x, min(y0, y1), max(y0, y1)) for line in scene.lines for (x, y0), (_, y1) in (line.points[:2], line.points[2:])]
    assert not [1 for left, right, y in spans for x, top, low in drops if left < x < right and top < y < low]
    names = [f"%x{i}" for i in range(200)]
    params = ", ".join(f"{name}: Tensor[(2, 3), float32]" for name in names)
    scene = scene_of(Plans(graph_of(checked(f"def @main({params}) {{ concatenate(({', '.join(names)})) }}"))))
    assert_geometry(scene)
    assert len(set(ends(scene, "concatenate").values())) < 9 and scene.height < 250


def test_labels_stand_beside_tall_neighbours() -> None:
    text = """def @main(%x: Tensor[(1, 8, 64, 64), float32], %weight: Tensor[(8, 4, 3, 3), float32]) {
      let %p = split(%x, indices_or_sections=2, axis=1);
      let %b = concatenate((%p.0, %p.1), axis=1);
      let %c = nn.conv2d(%p.0, %weight, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
      RESULT
    }"""
    for result in ("(%b, %c)", "(%c, %b)"):
        scene = scene_of(Plans(graph_of(checked(text.replace("RESULT", result)))))
        assert_geometry(scene)
        assert {label.text for label in scene.labels if label.kind == "path"} == {".0, .1", ".0 1×4×64×64"}


def test_values_of_lets_are_edges_and_weights_are_rows() -> None:
    graph = graph_of(checked(BRANCHES))
    scene = scene_of(Plans(graph, expand=True))
    title = {p.key: p.box.title for p in scene.boxes}
    joined = {(title[a], title[b]) for a, b in edges(scene)}
    assert {("%x", "nn.dense"), ("nn.dense", "if"), ("less", "if"), ("if", "( , )"), ("%y", "nn.relu"), ("%h", "multiply")} <= joined
    dense = next(p.box for p in scene.boxes if p.box.title == "nn.dense")
    assert [(row.name, row.shape) for row in dense.rows] == [("%w", "3×3 f32")]
    assert {label.text for label in scene.labels} >= {"then", "else", "Cons(%h, %t)", "Nil", "2×3"}


def test_branches_that_give_a_value_from_around() -> None:
    text = """def @main(%x: Tensor[(3, 3), float32], %c: bool, %w: Tensor[(3, 3), float32]) {
      let %y = nn.dense(%x, %w);
      if (%c) { %y } else { if (%c) { %w } else { nn.relu(%y) } }
    }"""
    scene = scene_of(Plans(graph_of(checked(text)), expand=True))
    assert_geometry(scene)
    title = {p.key: p.box.title for p in scene.boxes}
    inside = [(p.key.count("/"), p.box.title, p.result) for p in scene.boxes if "/" in p.key]
    assert (1, "%y", True) in inside and (2, "%w", True) in inside and (2, "nn.relu", True) in inside
    assert ("nn.dense", "if") in {(title[a], title[b]) for a, b in edges(scene)}


def test_constants_have_the_names_of_their_arguments() -> None:
    x, numbers = relay.var("x", shape=(1, 4), dtype="float32"), relay.const(np.ones((2, 4), "float32"))
    bias = relay.const(np.ones(2, "float32"))
    body = relay.add(relay.nn.bias_add(relay.nn.dense(x, numbers), bias), bias)
    boxes = [p.box for p in scene_of(Plans(graph_of(IRModule.from_expr(relay.Function([x], body))))).boxes]
    assert {b.title: [r.name for r in b.rows] for b in boxes if b.rows} == {
        "nn.dense": ["weight"],
        "nn.bias_add": ["bias"],
        "add": ["constant"],
    }


def test_each_projection_has_a_label() -> None:
    text = """def @main(%x: Tensor[(2, 4), float32], %y: Tensor[(2, 4), float32]) {
      let %a = split(%x, indices_or_sections=2, axis=1);
      let %b = split(%y, indices_or_sections=2, axis=1);
      add(multiply(%a.0, %a.1), maximum(%a.1, %b.0))
    }"""
    found = [(label.text, label.x, label.y) for label in scene_of(Plans(graph_of(checked(text)))).labels if label.kind == "path"]
    assert sorted(text for text, _, _ in found) == [".0 2×2", ".0, .1", ".1 2×2"]
    assert len({(x, y) for _, x, y in found}) == 3


def test_no_line_crosses_a_label_of_its_box() -> None:
    """A label stands at the right of the edges that meet its box beside its own."""
    text = """def @main(%x: Tensor[(2, 4), float32], %y: Tensor[(2, 2), float32]) {
      let %a = split(%x, indices_or_sections=2, axis=1);
      add(%a.0, exp(%y))
    }"""
    scene = scene_of(Plans(graph_of(checked(text))))
    (label,) = (label for label in scene.labels if label.kind == "path")
    assert label.x > max(line.points[-1][0] for line in scene.lines if line.end == scene.boxes[-1].key)


BLOCK = """
%{b}0 = nn.dense(%{x}, %layer{i}_weight, units=8);
%{b}1 = nn.relu(%{b}0);
%{b}2 = add(%{b}1, %{x});
"""


def blocks(count: int) -> str:
    params = "".join(f", %layer{i}_weight: Tensor[(8, 8), float32]" for i in range(count))
    lines = "".join(BLOCK.format(b=i + 1, i=i, x=f"{i}2" if i else "x") for i in range(count))
    return f"def @main(%x: Tensor[(1, 8), float32]{params}) {{\n{lines}tanh(%{count}2)\n}}"


def test_parts_are_called_by_their_parameters_layers_or_operators() -> None:
    def labels(graph: Graph) -> list[str]:
        return [g.label for g in fold_repeats(graph).groups if g.kind == "repeat" and "×" not in g.label]

    with_one_weight = graph_of(checked(blocks(3)))
    assert labels(with_one_weight) == [f"nn.dense, nn.relu, add ({i})" for i in (1, 2, 3)]
    with_layers = graph_of(checked(blocks(3)))
    for number, node in enumerate(n for n in with_layers.nodes if n.kind == "op"):
        node.place = f"net.onnx:1 /stage{number // 3}/layer{number % 3}"
    assert labels(with_layers) == [f"/stage{i}/layer" for i in range(3)]


def test_equal_blocks_fold_into_one_box_with_a_count() -> None:
    graph = fold_repeats(graph_of(checked(blocks(5))))
    folded = scene_of(Plans(graph))
    assert [p.box.title for p in folded.boxes] == ["%x", "5 × (nn.dense, nn.relu, add)", "tanh"]
    assert {(a.split(".")[1], b.split(".")[1]) for a, b in edges(folded)} == {
        (str(a.box.node), str(b.box.node)) for a, b in zip(folded.boxes, folded.boxes[1:])
    }
    unfolded = scene_of(Plans(graph, expand=True))
    assert_geometry(unfolded)
    assert sum(p.box.title == "nn.dense" for p in unfolded.boxes) == 5
    assert [(p.box.rows[0].name, p.box.rows[0].shape) for p in unfolded.boxes if p.box.title == "nn.dense"] == [
        (f"%layer{i}_weight", "8×8 f32") for i in reversed(range(5))
    ]
    assert all(i < n.id for n in graph.nodes for i in n.inputs)
    again = graph_of(checked(blocks(5)))
    assert len(scene_of(Plans(again)).boxes) == 1 + 3 * 5 + 1


def test_short_parts_and_parts_that_share_values_do_not_fold() -> None:
    for text in (SKIP, "def @main(%x: int32) { %0 = exp(%x); %1 = exp(%0); exp(%1) }"):
        graph = graph_of(checked(text.replace("int32", "float32")))
        count = len(graph.nodes)
        assert len(fold_repeats(graph).nodes) == count


def test_a_function_inside_itself_unfolds_once() -> None:
    text = "def @f(%n: int32) -> int32 { @g(%n) } def @g(%n: int32) -> int32 { @f(add(%n, 1)) } def @main() { @f(1) }"
    assert len(scene_of(Plans(graph_of(checked(text)), expand=True)).boxes) < 20


@pytest.mark.sweep
def test_boxes_that_double_stay_folded() -> None:
    """Each function calls the one before it twice: 2^20 boxes."""
    functions = [f"def @f{i}(%x: int32) -> int32 {{ add(@f{i - 1}(%x), @f{i - 1}(%x)) }}" for i in range(1, 21)]
    text = "\n".join(["def @f0(%x: int32) -> int32 { %x }", *functions])
    mod = checked(text)
    only = IRModule({v: f for v, f in mod.functions.items()}, {}, mod.attrs)
    assert len(scene_of(Plans(graph_of(only), expand=True)).boxes) < 100_000


def test_main_ways_are_straight() -> None:
    """Blocks with a skip connection each stand in one column, the skips beside it."""
    scene = scene_of(Plans(graph_of(checked(blocks(6)))))
    assert_geometry(scene)
    assert len({p.x + p.w / 2 for p in scene.boxes}) == 1
    across = [line for line in scene.lines if line.points[0][0] != line.points[-1][0]]
    assert len(across) == 2 * 6


def weighted(count: int) -> str:
    """A chain of products whose weights are computed, as batch normalisations are where they are simplified."""
    lines, last = [], "%x"
    for i in range(count):
        lines += [f"%a{i} = add(%variance_of_layer{i}, 1e-5f);", f"%b{i} = sqrt(%a{i});", f"%c{i} = divide(1f, %b{i});"]
        lines += [f"%d{i} = multiply(%c{i}, %c{i});", f"%e{i} = expand_dims(%d{i}, axis=0);"]
        lines += [f"%f{i} = negative(%variance_of_layer{i});"]
        lines += [f"%g{i} = multiply(%f{i}, %d{i});", f"%h{i} = expand_dims(%g{i}, axis=0);", f"%k{i} = nn.relu({last});"]
        lines += [f"%l{i} = multiply(%k{i}, %e{i});", f"%m{i} = add(%l{i}, %h{i});"]
        last = f"%m{i}"
    params = "".join(f", %variance_of_layer{i}: Tensor[(8), float32]" for i in range(count))
    return f"def @main(%x: Tensor[(1, 8), float32]{params}) {{\n" + "\n".join(lines) + f"\n{last}\n}}"


def test_computed_weights_stand_beside_their_users() -> None:
    """They go down to the calls that take them, and longer networks do not become wider."""
    few, many = (Plans(graph_of(checked(weighted(count)))) for count in (6, 30))
    scene = scene_of(many)
    assert_geometry(scene)
    assert scene.width < 1.5 * scene_of(few).width
    plan = next(iter(many.plans.values()))
    ranks, boxes = plan.layout.ranks, plan.sheet.boxes
    first = [ranks[n] for n, box in enumerate(boxes) if box.title == "add" and any("variance" in row.name for row in box.rows)]
    assert len(first) == 30 and max(first) > 60
    for number, box in enumerate(boxes):
        if box.title in ("sqrt", "divide"):
            assert ranks[number] == 1 + max(ranks[e.source] for e in box.edges)
    lengths = [ranks[n] - ranks[e.source] for n, box in enumerate(boxes) for e in box.edges]
    assert sum(lengths) < 2 * len(lengths)
    main = {p.x + p.w / 2 for p in scene.boxes[100:] if p.box.title == "nn.relu"}
    assert len(main) == 1


def test_repeats_of_fused_functions_fold() -> None:
    """Functions with equal insides count as equal, whichever parameters they take."""
    graph = fold_repeats(graph_of(fused(blocks(5).replace("nn.relu", "nn.softmax"))))
    titles = [p.box.title for p in scene_of(Plans(graph)).boxes]
    assert titles == ["%x", "4 × (nn.dense, nn.softmax + add)", "nn.dense", "nn.softmax + add + tanh"]
    one_box = fold_repeats(graph_of(fused(blocks(5))))
    assert not any(n.kind == "repeat" for n in one_box.nodes)
    assert_geometry(scene_of(Plans(graph, expand=True)))


@pytest.mark.parametrize("seed", few(range(400, 480), 421))
def test_geometry_of_any_program(seed: int) -> None:
    """Random programs, right and wrong ones. In 421, a function calls itself alone, and holds a function that holds itself."""
    mod = AnyPrograms(random.Random(seed)).module(random.Random(seed).randint(2, 7))
    for expand in (False, True):
        assert_geometry(scene_of(Plans(graph_of(mod), expand)))
        assert_geometry(scene_of(Plans(fold_repeats(graph_of(mod)), expand)))


def random_chain(seed: int) -> str:
    """Calls of one or two earlier values, near or far, some in branches and functions."""
    rng = random.Random(seed)
    names, lines, far = ["%x", "%y"], [], rng.random()

    def value() -> str:
        return rng.choice(names if rng.random() < far else names[-3:])

    for i in range(rng.randint(1, 60)):
        kind = rng.randrange(10)
        if kind < 5:
            lines.append(f"let %v{i} = add({value()}, {value()});")
        elif kind < 7:
            lines.append(f"let %v{i} = exp({value()});")
        elif kind == 7:
            lines.append(f"let %t{i} = ({value()}, {value()}); let %v{i} = add(%t{i}.0, %t{i}.1);")
        elif kind == 8:
            lines.append(f"let %v{i} = if (less(mean({value()}), 1f)) {{ let %q{i} = tanh({value()}); %q{i} }} else {{ {value()} }};")
        else:
            lines.append(f"let %f{i} = fn (%a{i}: Tensor[(2, 3), float32]) {{ add(%a{i}, {value()}) }}; let %v{i} = %f{i}({value()});")
        names.append(f"%v{i}")
    body = "\n".join([*lines, names[-1]])
    return f"def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {{\n{body}\n}}"


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", few(range(100), 0))
def test_geometry_of_random_chains(seed: int) -> None:
    old, new = (graph_of(checked(random_chain(s))) for s in (seed, seed + 1))
    for graph in (fold_repeats(graph_of(checked(random_chain(seed)))), difference(old, new)):
        for expand in (False, True):
            assert_geometry(scene_of(Plans(graph, expand)))
