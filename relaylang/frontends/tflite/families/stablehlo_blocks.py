"""StableHLO's operators on windows and indices, and those that apply another graph."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Rule, Unsupported, hlo_indices, hlo_windows
from relaylang.frontends.common.hlo_indices import Numbers
from relaylang.frontends.common.hlo_joins import Join, join_of, reduce_axes, replacing
from relaylang.frontends.tflite.node import Node
from relaylang.frontends.tflite.reader import Operator, Subgraph


def _graph(n: Node, option: str) -> Subgraph:
    graphs, index = n.importer.model.subgraphs, n.options[option]
    if not 0 <= index < len(graphs):
        raise Unsupported(f"it calls the graph {index} of {len(graphs)}")
    return graphs[index]


def _only(n: Node, graph: Subgraph) -> Operator:
    if len(graph.operators) != 1:
        raise Unsupported(f"its graph has {len(graph.operators)} layers, not one")
    return graph.operators[0]


def _join(n: Node, option: str) -> Join:
    """How the graph of an option joins its two operands."""
    graph = _graph(n, option)
    if not graph.operators and graph.outputs == graph.inputs[1:]:
        return replacing()
    layer = _only(n, graph)
    kind = layer.name.removeprefix("STABLEHLO_").removeprefix("LOGICAL_").lower()
    join = join_of(n.b, {"mul": "multiply"}.get(kind, kind), n.outs[0].dtype)
    if join is None or set(layer.inputs) != set(graph.inputs):
        raise Unsupported(f"its graph has the layer {layer.name}")
    return join


def reduce_(n: Node) -> Any:
    """Operands: data, the first value."""
    if len(n) != 2:
        raise Unsupported("it reduces several tensors at once")
    join = _join(n, "body_subgraph_index")
    if not join.op:
        raise Unsupported("its graph leaves out an operand")
    return reduce_axes(n.b, [n.x(0)], [n.x(1)], n.options["dimensions"], join)


def reduce_window(n: Node) -> Any:
    """Operands: data, the first value, which also fills the padding and the gaps."""
    o = n.options
    join = _join(n, "body_subgraph_index")
    if not join.op:
        raise Unsupported("its graph leaves out an operand")
    size, rank = o["window_dimensions"], len(o["window_dimensions"])
    strides, gaps, inner = (list(o[k]) or [1] * rank for k in ("window_strides", "window_dilations", "base_dilations"))
    pads = list(o["padding"]) or [0] * (2 * rank)
    pairs = list(zip(pads[::2], pads[1::2]))
    return hlo_windows.reduce_window(n.b, [n.x(0)], [n.x(1)], list(size), strides, gaps, inner, pairs, join)


def sort(n: Node) -> Any:
    """By the order of one operand, which the graph compares; the others go along."""
    b, axis = n.b, n.options["dimension"]
    graph = _graph(n, "comparator_subgraph_index")
    layer = _only(n, graph)
    direction = layer.options.get("comparison_direction", {"LESS": 5, "GREATER": 3}.get(layer.name, -1))
    places = [graph.inputs.index(i) if i in graph.inputs else -1 for i in layer.inputs]
    if direction not in (2, 3, 4, 5) or sorted(places) != [places[0] // 2 * 2, places[0] // 2 * 2 + 1]:
        raise Unsupported("its graph compares something else than two elements")
    up = (direction >= 4) == (places[0] % 2 == 0)
    order = b.op("argsort", n.x(places[0] // 2), axis=axis, is_ascend=up, dtype="int32")
    return [b.op("gather", n.x(i), order, axis=axis) for i in range(len(n))]


def _numbers(n: Node, window: str, gone: str, starts: str) -> Numbers:
    o = n.options
    return Numbers(o[window], o[gone], o[starts], o["index_vector_dim"])


def gather(n: Node) -> Any:
    sizes = n.listed("slice_sizes", n.b.rank(n.x(0)))
    return hlo_indices.gather(n.b, n.x(0), n.x(1), sizes, _numbers(n, "offset_dims", "collapsed_slice_dims", "start_index_map"))


def scatter(n: Node) -> Any:
    mode = _join(n, "update_computation_subgraph_index").mode
    if not mode:
        raise Unsupported("its graph joins bools")
    numbers = _numbers(n, "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    return hlo_indices.scatter(n.b, n.x(0), n.x(1), n.x(2), mode, numbers)


def convolution(n: Node) -> Any:
    """Any order of axes."""
    o = n.options
    rank = len(o["input_spatial_dimensions"])
    orders = {}
    for side, first, second in (
        ("input", "batch", "feature"),
        ("kernel", "output_feature", "input_feature"),
        ("output", "batch", "feature"),
    ):
        orders[side] = [o[f"{side}_{first}_dimension"], o[f"{side}_{second}_dimension"], *o[f"{side}_spatial_dimensions"]]
    ones = [1] * rank
    strides, gaps, inner = (n.listed(k, rank, ones) for k in ("window_strides", "rhs_dilation", "lhs_dilation"))
    pads = n.listed("padding", 2 * rank, [0] * (2 * rank))
    turned = n.listed("window_reversal", rank, [False] * rank)
    groups = o["feature_group_count"], o["batch_group_count"]
    pairs = list(zip(pads[::2], pads[1::2]))
    return hlo_windows.convolution(n.b, n.x(0), n.x(1), orders, strides, pairs, inner, gaps, [bool(t) for t in turned], *groups)


RULES = (
    Rule("STABLEHLO_CONVOLUTION", convolution),
    Rule("STABLEHLO_GATHER", gather),
    Rule("STABLEHLO_REDUCE", reduce_),
    Rule("STABLEHLO_REDUCE_WINDOW", reduce_window),
    Rule("STABLEHLO_SCATTER", scatter),
    Rule("STABLEHLO_SORT", sort),
)
