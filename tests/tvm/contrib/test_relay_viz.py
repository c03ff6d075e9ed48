"""`tvm.contrib.relay_viz`: texts, DOT, and parsers and plotters of a script's own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import relaylang as relay
from relaylang.ir import Expr, Var
from relaylang.tvm.contrib import relay_viz
from relaylang.tvm.contrib.relay_viz.interface import Plotter, VizEdge, VizGraph, VizNode
from relaylang.tvm.contrib.relay_viz.terminal import TermGraph

PROGRAM = """
def @half(%b: Tensor[(2, 3), float32]) { (multiply(%b, 0.5f), %b) }
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], %c: bool) {
  let %y = if (%c) { nn.dense(%x, %w, units=4) } else { nn.dense(%x, %w) };
  add(%y, %y)
}
"""


def test_text_has_operands_below_their_calls(capsys: pytest.CaptureFixture[str]) -> None:
    relay_viz.RelayVisualizer(relay.parse(PROGRAM)).render()
    assert (
        capsys.readouterr().out
        == """\
@main([%x, %w, %c])
`--Let (var, val, body)
   |--Var(Input) name_hint: y
   |--If (cond, true, false)
   |  |--Var(Input) name_hint: c, shape: (), dtype: bool
   |  |--Call
   |  |  |--nn.dense
   |  |  |--Var(Input) name_hint: x, shape: (2, 3), dtype: float32
   |  |  `--Var(Input) name_hint: w, shape: (4, 3), dtype: float32
   |  `--Call
   |     |--nn.dense
   |     |--Var(Input) name_hint: x, shape: (2, 3), dtype: float32
   |     `--Var(Input) name_hint: w, shape: (4, 3), dtype: float32
   `--Call
      |--add
      |--Var(Input) name_hint: y
      `--Var(Input) name_hint: y
@half([%b])
`--Tuple
   |--Call
   |  |--multiply
   |  |--Var(Input) name_hint: b, shape: (2, 3), dtype: float32
   |  `--Const shape: (), dtype: float32
   `--Var(Input) name_hint: b, shape: (2, 3), dtype: float32
"""
    )


class _Kept(VizGraph):
    def __init__(self) -> None:
        self.nodes: list[VizNode] = []
        self.edges: list[VizEdge] = []

    def node(self, viz_node: VizNode) -> None:
        self.nodes.append(viz_node)

    def edge(self, viz_edge: VizEdge) -> None:
        self.edges.append(viz_edge)


class _Keeping(Plotter):
    def __init__(self) -> None:
        self.graphs: dict[str, _Kept] = {}

    def create_graph(self, name: str) -> _Kept:
        graph = self.graphs[name] = _Kept()
        return graph

    def render(self, filename: str | None) -> None:
        self.filename = filename


def test_a_plotter_gets_nodes_edges_and_attributes() -> None:
    plotter = _Keeping()
    made = relay_viz.RelayVisualizer(relay.parse(PROGRAM), {"w": 1}, plotter, relay_viz.DotVizParser())
    made.render("net")
    assert plotter.filename == "net" and list(plotter.graphs) == ["main", "half"]
    nodes = [node for graph in plotter.graphs.values() for node in graph.nodes]
    assert len({node.identity for node in nodes}) == len(nodes)
    kinds = [node.type_name for node in plotter.graphs["main"].nodes]
    assert kinds.count("Var(Param)") == 1 and kinds.count("Call nn.dense") == 2 and kinds[-1].startswith("Func")
    dense = next(node for node in nodes if node.type_name == "Call nn.dense")
    assert "units: 4" in dense.detail.splitlines()
    names = {node.identity: node for node in plotter.graphs["main"].nodes}
    assert [names[e.start].detail.split("\n")[0] for e in plotter.graphs["main"].edges if e.end == dense.identity] == [
        "name_hint: x",
        "name_hint: w",
    ]


def test_a_parser_of_ones_own() -> None:
    class Parser(relay_viz.VizParser):
        def get_node_edges(
            self, node: Expr, relay_param: dict[str, object], node_to_id: dict[Expr, str]
        ) -> tuple[VizNode | None, list[VizEdge]]:
            if isinstance(node, Var):
                return VizNode(node_to_id[node], "Mine", node.name_hint), []
            return relay_viz.TermVizParser().get_node_edges(node, relay_param, node_to_id)

    plotter = relay_viz.TermPlotter()
    relay_viz.RelayVisualizer(relay.parse("def @main(%x: int32) { negative(%x) }"), plotter=plotter, parser=Parser())
    assert isinstance(plotter._name_to_graph["main"], TermGraph)
    assert plotter._name_to_graph["main"].render().endswith("`--Mine x")


def test_shared_values_are_written_once(tmp_path: Path) -> None:
    x: Expr = relay.var("x", shape=(2,))
    body = x
    for _ in range(30):
        body = relay.add(body, body)
    for _ in range(1500):
        body = relay.negative(body)
    relay_viz.RelayVisualizer(relay.IRModule.from_expr(relay.Function([x], body))).render(str(tmp_path / "out.txt"))
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert len(lines) == 1 + 2 * 1500 + 3 * 30 + 1


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not there")
def test_dot_draws(tmp_path: Path) -> None:
    def color(node: VizNode) -> dict[str, str]:
        return {"color": "green"} if "dense" in node.type_name else {}

    plotter = relay_viz.DotPlotter({"rankdir": "LR"}, {"shape": "box"}, None, color, {"format": "svg", "cleanup": False})
    relay_viz.RelayVisualizer(relay.parse(PROGRAM), plotter=plotter, parser=relay_viz.DotVizParser()).render(str(tmp_path / "net"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net", "net.svg"]
    assert (tmp_path / "net.svg").read_text().count('stroke="green"') == 2
    assert 'label="Call nn.dense' in (tmp_path / "net").read_text()


def test_pictures_without_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    plotter = relay_viz.DotPlotter(render_kwargs={"format": "svg"})
    relay_viz.RelayVisualizer(relay.parse(PROGRAM), plotter=plotter, parser=relay_viz.DotVizParser()).render(str(tmp_path / "net"))
    texts = re.findall(r"<text[^>]*>(.*?)</text>", (tmp_path / "net.svg").read_text())
    said = [" ".join(re.sub("<[^>]*>", " ", text).split()) for text in texts]
    assert said.count("Call nn.dense") == 2 and said.count("Call add") == 1 and said.count("Var(Input)") == 5
    assert "name_hint: w" in said and "shape: (4, 3)" in said and {"main", "half"} <= set(said)


@pytest.mark.sweep
def test_pdf_without_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("svglib")
    monkeypatch.setenv("PATH", "/nowhere")
    relay_viz.RelayVisualizer(relay.parse(PROGRAM), plotter=relay_viz.DotPlotter()).render(str(tmp_path / "net"))
    assert (tmp_path / "net.pdf").read_bytes().startswith(b"%PDF")
