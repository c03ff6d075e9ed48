"""StableHLO's operators on windows and indices, and those that apply another graph."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.tflite.families.shape import grid
from relaylang.frontends.tflite.families.stablehlo import padded
from relaylang.frontends.tflite.families.volume import windows
from relaylang.frontends.tflite.node import Node
from relaylang.frontends.tflite.reader import Operator, Subgraph
from relaylang.ir import Expr

#: What a graph of one layer joins two elements with: the operator, the reduction, the mode of scatter_nd.
_JOINS = {
    "ADD": ("add", "sum", "add"),
    "MULTIPLY": ("multiply", "prod", "mul"),
    "MUL": ("multiply", "prod", "mul"),
    "MAXIMUM": ("maximum", "max", "max"),
    "MINIMUM": ("minimum", "min", "min"),
    "AND": ("logical_and", "all", ""),
    "LOGICAL_AND": ("logical_and", "all", ""),
    "OR": ("logical_or", "any", ""),
    "LOGICAL_OR": ("logical_or", "any", ""),
}


def _graph(n: Node, option: str) -> Subgraph:
    graphs, index = n.importer.model.subgraphs, n.options[option]
    if not 0 <= index < len(graphs):
        raise Unsupported(f"it calls the graph {index} of {len(graphs)}")
    return graphs[index]


def _only(n: Node, graph: Subgraph) -> Operator:
    if len(graph.operators) != 1:
        raise Unsupported(f"its graph has {len(graph.operators)} layers, not one")
    return graph.operators[0]


def _join(n: Node, option: str) -> tuple[str, str, str]:
    """How the graph of an option joins its two operands."""
    graph = _graph(n, option)
    if not graph.operators and graph.outputs == graph.inputs[1:]:
        return "", "", "update"
    layer = _only(n, graph)
    found = _JOINS.get(layer.name.removeprefix("STABLEHLO_"))
    if found is None or set(layer.inputs) != set(graph.inputs):
        raise Unsupported(f"its graph has the layer {layer.name}")
    if n.outs[0].dtype == "bool" and found[0] in ("add", "maximum", "multiply", "minimum"):
        return _JOINS["OR" if found[0] in ("add", "maximum") else "AND"]
    return found


def reduce_(n: Node) -> Any:
    """Operands: data, the first value."""
    b = n.b
    if len(n) != 2:
        raise Unsupported("it reduces several tensors at once")
    op, whole, _ = _join(n, "body_subgraph_index")
    if not op:
        raise Unsupported("its graph leaves out an operand")
    made = b.op(whole, n.x(0), axis=tuple(n.options["dimensions"]), keepdims=False)
    return b.op(op, made, b.scalar(n.x(1)))


def reduce_window(n: Node) -> Any:
    """Operands: data, the first value, which also fills the padding and the gaps."""
    b, o = n.b, n.options
    op, _, _ = _join(n, "body_subgraph_index")
    if not op:
        raise Unsupported("its graph leaves out an operand")
    size, rank = o["window_dimensions"], len(o["window_dimensions"])
    strides, gaps, inner = (o[k] or [1] * rank for k in ("window_strides", "window_dilations", "base_dilations"))
    pads = o["padding"] or [0] * (2 * rank)
    start = b.scalar(n.x(1))
    x = padded(n, n.x(0), start, pads[::2], pads[1::2], [i - 1 for i in inner])
    return reduce(lambda made, part: b.op(op, made, part), windows(n, x, size, strides, gaps), start)


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


def _rows(n: Node, indices: Expr, axis: int) -> tuple[Expr, list[int]]:
    """Start indices with their vector first, (k, batch ...), and the extents of the batch."""
    b = n.b
    if axis == b.rank(indices):
        indices = b.unsqueeze(indices, [axis])
    order = [axis, *[i for i in range(b.rank(indices)) if i != axis]]
    rows = b.cast(b.transpose(indices, order), "int32")
    return rows, [b.extent(rows, i) for i in range(1, b.rank(rows))]


def _places(n: Node, rows: Expr, batch: list[int], axes: list[int], sizes: list[int], held: tuple[int, ...] | None = None) -> Expr:
    """The position of each element of each window, (rank, batch ..., window ...).

    `axes` are the axes that the start indices belong to, `held` the extents where windows are moved inwards.
    """
    b, rank = n.b, len(sizes)
    parts = []
    for axis in range(rank):
        part = grid(b, sizes, axis, front=len(batch))
        if axis in axes:
            start = b.squeeze(b.slice(rows, [axes.index(axis)], [axes.index(axis) + 1], [0]), [0])
            if held is not None:
                start = b.op("clip", start, a_min=0.0, a_max=float(held[axis] - sizes[axis]))
            part = b.op("add", b.reshape(start, [*batch, *[1] * rank]), part)
        parts.append(b.op("broadcast_to", part, shape=(*batch, *sizes)))
    return b.op("stack", b.tuple(parts), axis=0)


def gather(n: Node) -> Any:
    """A window at each start index; `offset_dims` are the places of the windows' axes in the result."""
    b, o, x = n.b, n.options, n.x(0)
    rows, batch = _rows(n, n.x(1), o["index_vector_dim"])
    sizes, gone = n.listed("slice_sizes", b.rank(x)), n.axes("collapsed_slice_dims", b.rank(x))
    n.axes("start_index_map", b.rank(x))
    made = b.op("gather_nd", x, _places(n, rows, batch, o["start_index_map"], sizes, b.static_shape(x)))
    made = b.squeeze(made, [len(batch) + a for a in gone])
    count = b.rank(made)
    offsets = n.axes("offset_dims", count, count - len(batch))
    inner, outer = iter(range(len(batch), count)), iter(range(len(batch)))
    return b.transpose(made, [next(inner) if a in offsets else next(outer) for a in range(count)])


def scatter(n: Node) -> Any:
    """Windows of updates are joined with the data. A window that is not inside the data changes nothing."""
    b, o, x, updates = n.b, n.options, n.x(0), n.x(2)
    mode = _join(n, "update_computation_subgraph_index")[2]
    if not mode:
        raise Unsupported("its graph joins bools")
    rows, batch = _rows(n, n.x(1), o["index_vector_dim"])
    extents = b.static_shape(x)
    windows = n.axes("update_window_dims", b.rank(updates), b.rank(updates) - len(batch))
    axes, gone = n.axes("scatter_dims_to_operand_dims", len(extents)), n.axes("inserted_window_dims", len(extents))
    if len(gone) + len(windows) != len(extents):
        raise Malformed(f"the options update_window_dims and inserted_window_dims must name {len(extents)} axes in all")
    order = [i for i in range(b.rank(updates)) if i not in windows] + windows
    updates = b.transpose(updates, order)
    window = iter(b.static_shape(updates)[len(batch) :])
    sizes = [1 if a in gone else next(window) for a in range(len(extents))]
    updates = b.reshape_exactly(updates, [*batch, *sizes])
    places = _places(n, rows, batch, axes, sizes)
    limits = np.array([extents[a] - sizes[a] for a in axes], "int32").reshape([-1] + [1] * len(batch))
    fits = b.op("logical_and", b.op("greater_equal", rows, 0), b.op("less_equal", rows, b.const(limits)))
    fits = b.reshape(b.op("all", fits, axis=(0,)), [1, *batch, *[1] * len(sizes)])
    # One more row takes the windows that do not fit.
    beside = b.const(np.array([extents[0], *[0] * (len(extents) - 1)], "int32").reshape([-1] + [1] * (b.rank(places) - 1)))
    whole = b.op("nn.pad", x, b.const(0, b.dtype(x)), pad_width=[[0, 1], *[[0, 0]] * (len(extents) - 1)])
    made = b.op("scatter_nd", whole, b.op("where", fits, places, beside), updates, mode=mode)
    return b.slice(made, [0], [extents[0]], [0])


def convolution(n: Node) -> Any:
    """Any order of axes; they become batch, channels, space."""
    b, o = n.b, n.options
    spatial = o["input_spatial_dimensions"]
    rank = len(spatial)
    if rank not in (1, 2, 3) or o["batch_group_count"] > 1:
        raise Unsupported("it has groups of batches" if rank in (1, 2, 3) else f"it has {rank} axes of space")
    orders = []
    for side, first, second in (
        ("input", "batch", "feature"),
        ("kernel", "output_feature", "input_feature"),
        ("output", "batch", "feature"),
    ):
        order = [o[f"{side}_{first}_dimension"], o[f"{side}_{second}_dimension"], *o[f"{side}_spatial_dimensions"]]
        if sorted(order) != list(range(rank + 2)):
            raise Malformed(f"the options {side}_..._dimension name the axes {order}; they must name each of {rank + 2} once")
        orders.append(order)
    x, weights = b.transpose(b.of_rank(n.x(0), rank + 2), orders[0]), b.transpose(b.of_rank(n.x(1), rank + 2), orders[1])
    for axis, turned in enumerate(o["window_reversal"] or []):
        weights = b.op("reverse", weights, axis=axis + 2) if turned else weights
    ones = [1] * rank
    strides, gaps, inner = (n.listed(k, rank, ones) for k in ("window_strides", "rhs_dilation", "lhs_dilation"))
    pads = n.listed("padding", 2 * rank, [0] * (2 * rank))
    x = padded(n, x, b.const(0, b.dtype(x)), [0, 0, *pads[::2]], [0, 0, *pads[1::2]], [0, 0, *[i - 1 for i in inner]])
    shape, letters = b.static_shape(weights, "the weights"), "DHW"[3 - rank :]
    made = b.op(
        f"nn.conv{rank}d",
        x,
        weights,
        strides=strides,
        dilation=gaps,
        padding=[0] * (2 * rank),
        groups=o["feature_group_count"],
        channels=shape[0],
        kernel_size=shape[2:],
        data_layout=f"NC{letters}",
        kernel_layout=f"OI{letters}",
    )
    return b.transpose(made, [orders[2].index(a) for a in range(rank + 2)])


RULES = (
    Rule("STABLEHLO_CONVOLUTION", convolution),
    Rule("STABLEHLO_GATHER", gather),
    Rule("STABLEHLO_REDUCE", reduce_),
    Rule("STABLEHLO_REDUCE_WINDOW", reduce_window),
    Rule("STABLEHLO_SCATTER", scatter),
    Rule("STABLEHLO_SORT", sort),
)
