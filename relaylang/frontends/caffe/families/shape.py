"""Layers that move, join and select elements, and sums of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from relaylang.frontends.caffe.node import LARGEST, Node, product
from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.ir import ANY, Expr, is_static


def concat(n: Node, *operands: Expr) -> Any:
    if not operands:
        raise Malformed("it has no operand")
    return n.b.concat(operands, n.axis(n.params("concat_param"), operands[0], old="concat_dim"))


def slices(n: Node, x: Expr) -> Any:
    """Parts of an axis, that end at the layer's points or have one extent."""
    b, p = n.b, n.params("slice_param")
    axis = n.axis(p, x, old="slice_dim")
    extent, points = b.extent(x, axis), [int(v) for v in p.slice_point]
    if not points and n.results and extent % n.results == 0:
        points = [extent // n.results * i for i in range(1, n.results)]
    ends = [0, *points, extent]
    if len(points) != n.results - 1 or any(low >= high for low, high in pairwise(ends)):
        raise Malformed(f"its points {points[:20]} do not part {extent} elements into {n.results} results")
    return b.fields(b.op("split", x, indices_or_sections=points, axis=axis)) if points else x


def split(n: Node, x: Expr) -> Any:
    """The operand several times."""
    return [x] * n.results


def reshape(n: Node, x: Expr) -> Any:
    """Other extents for some axes: 0 keeps one, and -1 takes the elements that are left."""
    b, p = n.b, n.params("reshape_param")
    have, rank = list(b.shape(x)), b.rank(x)
    first = p.axis if p.axis >= 0 else rank + p.axis + 1
    last = rank if p.num_axes == -1 else first + p.num_axes
    if not 0 <= first <= last <= rank:
        raise Malformed(f"it shapes {p.num_axes} axes from {p.axis} on, and its operand has {rank}")
    target: list[Any] = []
    for at, extent in enumerate(p.shape.dim):
        if extent == 0 and first + at >= last:
            raise Malformed(f"its extent {at} is that of an axis that it does not shape")
        if extent < -1 or extent >= LARGEST:
            raise Malformed(f"its extents are {list(p.shape.dim)[:20]}")
        target.append(have[first + at] if extent == 0 else int(extent))
    if target.count(-1) > 1:
        raise Malformed(f"its extents {target[:20]} leave more than one open")
    if -1 in target:
        inner, others = product(have[first:last]), product([d for d in target if d != -1])
        if not is_static(inner) or not is_static(others):
            target[target.index(-1)] = ANY
        elif others == 0 or inner % others:
            raise Malformed(f"its {inner} elements do not fit the extents {target[:20]}")
        else:
            target[target.index(-1)] = inner // others
    return n.reshape(x, [*have[:first], *target, *have[last:]])


def flatten(n: Node, x: Expr) -> Any:
    b, p = n.b, n.params("flatten_param")
    have, first, last = list(b.shape(x)), n.axis(p, x), n.axis(p, x, "end_axis")
    if last < first:
        raise Malformed(f"it joins the axes {p.axis} to {p.end_axis}")
    if first == 1 and last == b.rank(x) - 1:
        return b.op("nn.batch_flatten", x) if b.rank(x) > 2 else x
    return n.reshape(x, [*have[:first], product(have[first : last + 1]), *have[last + 1 :]])


def permute(n: Node, x: Expr) -> Any:
    """The axes in another order; those that the layer does not name come behind the others."""
    order, rank = [int(v) for v in n.params("permute_param").order], n.b.rank(x)
    if len(set(order)) != len(order) or any(axis >= rank for axis in order):
        raise Malformed(f"its order {order[:20]} is none of {rank} axes")
    return n.b.transpose(x, [*order, *[axis for axis in range(rank) if axis not in order]])


def crop(n: Node, x: Expr, like: Expr) -> Any:
    """The part of the first operand that has the extents of the second, from `axis` on."""
    b, p = n.b, n.params("crop_param")
    axes = list(range(n.axis(p, x), b.rank(x)))
    offsets = [int(v) for v in p.offset] or [0]
    offsets = offsets * len(axes) if len(offsets) == 1 else offsets
    if len(offsets) != len(axes) or b.rank(like) != b.rank(x):
        raise Malformed(f"it has {len(offsets)} offsets for {len(axes)} axes")
    ends = [offset + b.extent(like, axis) for offset, axis in zip(offsets, axes)]
    if any(end > b.extent(x, axis) for end, axis in zip(ends, axes)):
        raise Malformed("its second operand is larger than what it crops")
    return b.slice(x, offsets, ends, axes)


def tile(n: Node, x: Expr) -> Any:
    b, p = n.b, n.params("tile_param")
    axis, rank = n.axis(p, x), b.rank(x)
    if not 0 < p.tiles < LARGEST:
        raise Malformed(f"it repeats its operand {p.tiles} times")
    return b.op("tile", x, reps=[p.tiles if i == axis else 1 for i in range(rank)])


def reduction(n: Node, x: Expr) -> Any:
    """A sum or mean over all axes from `axis` on, times a number."""
    b, p = n.b, n.params("reduction_param")
    axes = list(range(n.axis(p, x), b.rank(x)))
    data = {2: lambda: b.op("abs", x), 3: lambda: b.op("multiply", x, x)}.get(p.operation, lambda: x)()
    reduced = b.op("mean" if p.operation == 4 else "sum", data, axis=axes)
    factor = n.float(p, "coeff")
    return reduced if factor == 1 else b.op("multiply", reduced, factor)


def argmax(n: Node, x: Expr) -> Any:
    """The places of the largest elements along an axis or of each example, as real numbers; or the elements with them.

    Of equal elements, Caffe takes the last one first.
    """
    b, p = n.b, n.params("argmax_param")
    along, count = p.HasField("axis"), p.top_k
    data = x if along or b.rank(x) == 2 else b.op("nn.batch_flatten", x)
    axis = n.axis(p, x) if along else 1
    extent = b.extent(data, axis)
    if not 1 <= count <= extent:
        raise Malformed(f"it takes {count} of {extent} elements")
    last = b.const(extent - 1, "int32")
    top = b.op("topk", b.op("reverse", data, axis=axis), k=count, axis=axis, ret_type="both", is_ascend=False, dtype="int32")
    values, places = b.fields(top)
    places = b.cast(b.op("subtract", last, places), b.dtype(x))
    if along:
        return values if p.out_max_val else places
    parts = [b.unsqueeze(part, [1]) for part in ([places, values] if p.out_max_val else [places])]
    joined = b.concat(parts, 1)
    return b.unsqueeze(joined, list(range(3, b.rank(x)))) if b.rank(x) > 3 else joined


def shuffle(n: Node, x: Expr) -> Any:
    """Channels of groups in turn."""
    b, groups = n.b, n.params("shuffle_channel_param").group
    shape = b.static_shape(x, rank=4)
    if not groups or shape[1] % groups:
        raise Malformed(f"its {shape[1]} channels do not form {groups} groups")
    parts = b.reshape_exactly(x, [shape[0], groups, shape[1] // groups, *shape[2:]])
    return b.reshape_exactly(b.transpose(parts, [0, 2, 1, 3, 4]), shape)


def parameter(n: Node) -> Any:
    """A weight."""
    return n.weight(n.array(0, [int(d) for d in n.params("parameter_param").shape.dim], "value"), "value")


def dummy(n: Node) -> Any:
    """Tensors of one number."""
    b, p = n.b, n.params("dummy_data_param")
    shapes = [tuple(s.dim) for s in p.shape] or list(zip(p.num, p.channels, p.height, p.width))
    fillers = list(p.data_filler)
    if not shapes or any(len(parts) not in (1, n.results) for parts in (shapes, fillers or [0])):
        raise Malformed(f"it has {len(shapes)} shapes and {len(fillers)} fillers for {n.results} results")
    if any(f.type != "constant" for f in fillers):
        raise Unsupported("random numbers differ from call to call")
    shapes, values = (parts * n.results if len(parts) == 1 else parts for parts in (shapes, [f.value for f in fillers] or [0.0]))
    return [b.const(b.arrays.full(shape, value, np.float32)) for shape, value in zip(shapes, values)]


RULES = (
    Rule("ArgMax", argmax),
    Rule("BatchReindex", lambda n, x, order: n.b.op("take", x, n.b.cast(n.b.of_rank(order, 1), "int32"), axis=0)),
    Rule("Concat", concat),
    Rule("Crop", crop),
    Rule("DummyData", dummy),
    Rule("Flatten", flatten),
    Rule("Parameter", parameter),
    Rule("Permute", permute),
    Rule("Reduction", reduction),
    Rule("Reshape", reshape),
    Rule("ShuffleChannel", shuffle),
    Rule("Silence", lambda n, *operands: []),
    Rule("Slice", slices),
    Rule("Split", split),
    Rule("Tile", tile),
)
