"""Draws a program with relay_viz: as text, and with nodes of a script's own.

Usage:

    relay tvm examples/legacy/visualise.py
"""

import os

import tvm
from tvm import relay
from tvm.contrib import relay_viz, utils
from tvm.contrib.relay_viz.interface import DefaultVizParser, Plotter, VizGraph, VizNode
from tvm.contrib.relay_viz.terminal import TermGraph, TermPlotter, TermVizParser

data = relay.var("data", relay.TensorType((1, 3, 8, 8), "float32"))
weight = relay.var("weight", shape=(4, 3, 3, 3))
net = relay.nn.relu(relay.nn.conv2d(data, weight, channels=4, kernel_size=(3, 3)))
mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(net), relay.nn.global_avg_pool2d(net)))
folder = utils.tempdir()

# as text
viz = relay_viz.RelayVisualizer(mod, relay_param={}, plotter=TermPlotter(), parser=TermVizParser())
viz.render(folder.relpath("net.txt"))
with open(folder.relpath("net.txt")) as file:
    text = file.read()
print("the text has", sum(name in text for name in ("nn.conv2d", "nn.relu", "nn.global_avg_pool2d")), "of 3 calls")


class Short(DefaultVizParser):
    """Nodes without the name of the dialect."""

    def get_node_edges(self, node, relay_param, node_to_id):
        viz_node, edges = super().get_node_edges(node, relay_param, node_to_id)
        if viz_node is not None and isinstance(node, relay.Call):
            viz_node = VizNode(viz_node.identity, viz_node.type_name.replace("Call ", "").split(".")[-1], viz_node.detail)
        return viz_node, edges


class Listed(VizGraph):
    def __init__(self):
        self.nodes, self.edges = [], []

    def node(self, viz_node):
        self.nodes.append(viz_node.type_name)

    def edge(self, viz_edge):
        self.edges.append((viz_edge.start, viz_edge.end))


class ListPlotter(Plotter):
    def __init__(self):
        self.graphs = {}

    def create_graph(self, name):
        return self.graphs.setdefault(name, Listed())

    def render(self, filename):
        with open(filename, "w") as file:
            file.writelines(f"{name}: {' '.join(graph.nodes)}\n" for name, graph in self.graphs.items())


plotter = ListPlotter()
relay_viz.RelayVisualizer(mod, plotter=plotter, parser=Short()).render(folder.relpath("list.txt"))
(graph,) = plotter.graphs.values()
print("calls:", [name for name in graph.nodes if name in ("conv2d", "relu", "global_avg_pool2d")])
print("edges:", len(graph.edges), "and a file:", os.path.exists(folder.relpath("list.txt")))
assert isinstance(TermPlotter().create_graph("main"), TermGraph)
