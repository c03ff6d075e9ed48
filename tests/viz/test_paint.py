"""Times of a profile and targets of a partition on pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.runtime.manifest import Step
from relaylang.runtime.peaks import SIZES, Peaks
from relaylang.runtime.profile import Profile
from relaylang.viz import as_html, as_svg, fold_repeats, graph_of
from relaylang.viz.boxes import Box, time_text
from relaylang.viz.graph import REASON, Graph
from relaylang.viz.legend import legend
from relaylang.viz.paint import paint_partition, paint_profile
from relaylang.viz.scene import Plans, scene_of
from tests.cli.command import one_diagnostic
from tests.cli.command import relay as command
from tests.shared import ROOT
from tests.viz.test_scene import assert_geometry, blocks

CONVNET = ROOT / "examples/convnet.relay"


def graph_of_text(text: str, name: str = "elsewhere/convnet.relay") -> Graph:
    mod = relay.parse(text, name)
    relay.transform.InferType()(mod)
    return graph_of(mod)


def convnet() -> Graph:
    return graph_of_text(CONVNET.read_text())


def seconds(graph: Graph) -> dict[str, float]:
    return {f"{n.label} {n.place.partition(':')[2]}": n.seconds for n in graph.nodes if n.seconds}


def boxes(graph: Graph, expand: bool = False) -> dict[str, Box]:
    scene = scene_of(Plans(graph, expand))
    assert_geometry(scene)
    return {p.box.title: p.box for p in scene.boxes}


def compiled() -> Profile:
    def step(operators: str, at: str) -> Step:
        return Step(operators, "Tensor[(1), float32]", at and f"build/convnet.relay:{at}", "", "float32", 1000, 0, 64)

    fused = step("nn.conv2d > add > nn.relu", "15:8")._replace(others=("build/convnet.relay:16:16", "build/convnet.relay:16:8 %1"))
    steps = [step("transpose", ""), fused, step("nn.max_pool2d", "17:8")]
    ends = np.array([[[0, 1000], [1000, 9000], [9000, 10000]]] * 3)
    return Profile(steps, ends, Peaks(1e9, 1e9, (1e9,) * len(SIZES)), 1)


@pytest.mark.parametrize("form", ["json", "chrome_trace"])
def test_times_of_compiled_kernels(tmp_path: Path, form: str) -> None:
    """A kernel's time stands in the box at its place, whatever the file's folder was."""
    file = tmp_path / "run.json"
    file.write_text(getattr(compiled(), form)())
    graph = convnet()
    assert paint_profile(graph, file) == "1 µs belong to no call of the program"
    assert seconds(graph) == pytest.approx({"nn.conv2d 15:8": 8e-6, "nn.max_pool2d 17:8": 1e-6})
    conv = next(n for n in graph.nodes if n.seconds > 5e-6)
    assert ("kernel", "nn.conv2d > add > nn.relu") in conv.notes and any(name == "roofline" for name, _ in conv.notes)
    shown = boxes(graph)
    assert [(r.name, r.shape) for r in shown["nn.max_pool2d"].rows] == [("1 µs", "11.1 %")]
    # the other calls of the kernel have its colour, and name the call that has its time
    inside = [p.box for p in scene_of(Plans(graph)).boxes if p.box.title in ("nn.bias_add", "nn.relu") and p.box.heat]
    assert [(b.title, b.rows[-1].name, b.rows[-1].style, b.heat) for b in inside] == [
        ("nn.bias_add", "in nn.conv2d", "time", 5),
        ("nn.relu", "in nn.conv2d", "time", 5),
    ]
    assert (shown["nn.max_pool2d"].heat, shown["nn.dense"].heat) == (2, 0)
    assert [style for style, _ in legend(graph, Plans(graph).sheets)] == ["heat5", "heat4", "heat3", "heat2", "heat1"]
    svg = as_svg(graph)
    assert 'class="box product heat5"' in svg and "≥ 4 µs" in svg and '"heat5","≥ 4 µs"' in as_html(graph)


def test_times_of_the_interpreter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, table = tmp_path / "trace.json", tmp_path / "table.json"
    assert command(capsys, "run", CONVNET, "--random-params", "0", "--profile", trace).status == 0
    done = command(capsys, "run", CONVNET, "--random-params", "0", "--profile", table, "--profile-format", "json")
    assert done.status == 0
    graph = convnet()
    assert paint_profile(graph, trace) == ""
    calls = [n for n in graph.nodes if n.kind == "op"]
    assert len(seconds(graph)) == len(calls) == 12
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["cat"] == "operator"]
    assert sum(n.seconds for n in calls) == pytest.approx(sum(e["dur"] for e in events) / 1e6)
    graph = convnet()
    assert "no places" in paint_profile(graph, table)
    rows = {row["name"]: row for row in json.loads(table.read_text())["operators"]}
    for node in graph.nodes:
        if node.kind == "op":
            assert node.seconds == pytest.approx(rows[node.label]["total"] / rows[node.label]["calls"])


def test_a_folded_box_has_the_time_of_its_inside() -> None:
    graph = graph_of_text(blocks(5))
    for node in graph.nodes:
        node.seconds = 1e-3 if node.label == "nn.dense" else 0.0
    shown = boxes(fold_repeats(graph))
    assert shown["5 × (nn.dense, nn.relu, add)"].seconds == pytest.approx(5e-3)
    assert [r.shape for r in shown["5 × (nn.dense, nn.relu, add)"].rows] == ["100.0 %"]


@pytest.mark.parametrize(
    ("value", "text"), [(2.5, "2.5 s"), (1.0, "1 s"), (0.9999, "1000 ms"), (1.234e-3, "1.23 ms"), (4e-7, "0.4 µs"), (1e4, "10000 s")]
)
def test_times_in_words(value: float, text: str) -> None:
    assert time_text(value) == text


def test_targets_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    done = command(capsys, "partition", CONVNET, "--target", "dnnl", "--report-format", "json", "-o", report)
    assert done.status == 0
    graph = convnet()
    paint_partition(graph, report)
    fate = {(n.label, n.target) for n in graph.nodes if n.kind == "op"}
    assert {("nn.conv2d", "dnnl"), ("nn.bias_add", "dnnl"), ("nn.dense", "dnnl"), ("nn.batch_flatten", "")} <= fate
    flat = next(n for n in graph.nodes if n.label == "nn.batch_flatten")
    [(name, why)] = flat.notes
    assert name == REASON and "no row of the table has nn.batch_flatten" in why
    conv = next(n for n in graph.nodes if n.label == "nn.conv2d")
    assert dict(conv.notes) == {"goes to": "tvmgen_default_dnnl_main_0", "composite": "dnnl.conv2d_bias_relu"}
    shown = boxes(graph)
    assert shown["nn.batch_flatten"].rows[-1].style == "reason" and shown["nn.conv2d"].target == "dnnl"
    assert legend(graph, Plans(graph).sheets) == [("target0", "dnnl"), ("same", "host")]
    svg = as_svg(graph)
    assert 'class="box product target0"' in svg and 'class="box same"' in svg and ">dnnl</text>" in svg


def test_a_repeated_part_for_one_target_has_its_colour() -> None:
    graph = graph_of_text(blocks(5))
    for node in graph.nodes:
        node.target = "npu" if node.label != "tanh" and node.kind == "op" else ""
    graph.partitioned = True
    shown = boxes(fold_repeats(graph), expand=True)
    assert shown["5 × (nn.dense, nn.relu, add)"].target == "npu" and shown["tanh"].target == ""


@pytest.mark.parametrize("option", ["--profile", "--partition-report"])
def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    file = tmp_path / "other.json"
    for text in (
        "",
        "[",
        "[]",
        "3",
        '{"traceEvents": [{"name": 3}]}',
        '{"target": "x", "rows": 5}',
        '{"kernels": 3, "rows": 3}',
        '{"operators": [3]}',
        "[" * 100_000,
        '{"kernels": [{"operators": "x", "seconds": "y", "place": ""}]}',
        '{"operators": [{"name": "nn.conv2d", "total": -1}]}',
        '{"kernels": [{"operators": "nn.conv2d", "seconds": NaN, "place": "convnet.relay:15:8"}]}',
    ):
        file.write_text(text)
        one_diagnostic(command(capsys, "viz", CONVNET, option, file), 2, "R0771")
    one_diagnostic(command(capsys, "viz", CONVNET, option, tmp_path / "none.json"), 2, "R0001")


def test_errors_name_the_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(RelayError, match="profile of relay run"):
        paint_profile(convnet(), tmp_path / "x.json")
    with pytest.raises(RelayError, match="--report-format json"):
        paint_partition(convnet(), tmp_path / "x.json")
