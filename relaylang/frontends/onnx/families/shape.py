"""Operators on shapes: reshape, transpose, constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.texts import constant as texts
from relaylang.ir import Expr
from relaylang.ir.types import Dim


def constant(n: Node) -> Any:
    """A Constant has its value in one of eight attributes."""
    b = n.b
    if n.has("value") and n.holds_texts("value"):
        return [n.importer.texts_of(n.attributes["value"].t)]
    if n.has("value"):
        return b.weight(n.outputs[0], n.tensor("value"))
    if n.has("value_float"):
        return b.const(n.float("value_float"), "float32")
    if n.has("value_int"):
        return b.const(n.int("value_int"), "int64")
    if n.has("value_floats"):
        return b.const(np.array(n.floats("value_floats"), "float32"))
    if n.has("value_ints"):
        return b.const(np.array(n.ints("value_ints"), "int64"))
    if n.has("value_string"):
        return [texts(b, [n.string("value_string")], ())]
    if n.has("value_strings"):
        return [texts(b, n.strings("value_strings"))]
    raise Unsupported("Relay has no sparse tensors")


def reshape(n: Node, x: Expr, shape: Expr) -> Any:
    return n.b.reshape_to(x, shape, allow_zero=bool(n.int("allowzero", 0)))


def shape(n: Node, x: Expr) -> Any:
    b = n.b
    rank = b.rank(x)
    begin, end, _ = slice(n.int("start", 0), n.int("end", rank)).indices(rank)
    extents = b.shape_of(x)
    return extents if (begin, end) == (0, rank) else b.slice(extents, [begin], [max(begin, end)], [0])


def transpose(n: Node, x: Expr) -> Any:
    return n.b.transpose(x, n.ints("perm", list(range(n.b.rank(x)))[::-1]))


def squeeze(n: Node, x: Expr, axes: Expr | None = None) -> Any:
    b = n.b
    known = b.known(axes) if axes is not None else []
    if axes is not None and (known is None or None in known):
        return b.op("dyn.squeeze", x, axes, axis=None)
    return _squeezed(n, x, [a for a in known or () if a is not None])


def _squeezed(n: Node, x: Expr, axes: list[int]) -> Any:
    """Without axes, all of extent 1 go."""
    if not axes:
        axes = [i for i, d in enumerate(n.b.static_shape(x, "the data of Squeeze without axes")) if d == 1]
    return [n.b.squeeze(x, axes)]


def unsqueeze(n: Node, x: Expr, axes: Expr) -> Any:
    return [n.b.unsqueeze(x, n.b.need_ints(axes, "the axes of Unsqueeze"))]


def _count(extents: Sequence[Dim]) -> int | None:
    """The number of elements; None where it is not known."""
    known = [int(d) for d in extents if isinstance(d, int)]
    return math.prod(known) if len(known) == len(extents) else None


def flatten(n: Node, x: Expr) -> Any:
    """Two axes: those before `axis`, and the others."""
    b, rank = n.b, n.b.rank(x)
    axis = n.int("axis", 1)
    axis = axis + rank if axis < 0 else axis
    shape = b.shape(x)
    front, back = _count(shape[:axis]), _count(shape[axis:])
    if front is not None and back is not None:
        return b.reshape_exactly(x, [front, back])
    if front is not None:
        return b.reshape(x, [front, -1])
    if back is not None:
        return b.reshape(x, [-1, back])
    for _ in range(rank - axis - 1):
        x = b.op("reshape", x, newshape=[*[0] * axis, -3, -2])
    return nn.flatten_front(b, x, axis)


def expand(n: Node, x: Expr, shape: Expr) -> Any:
    """Both shapes broadcast: an extent of 1 yields to the other one."""
    b = n.b
    count = b.extent(shape, 0, "the rank of the result")
    x = b.unsqueeze(x, list(range(count - b.rank(x)))) if count > b.rank(x) else x
    lead = b.rank(x) - count
    have = b.shape(x)
    known: list[int | None] = [*[1] * lead, *(b.known(shape) or [None] * count)]
    parts: list[Expr] = []
    for i, (d, wanted) in enumerate(zip(have, known)):
        own = b.slice(b.shape_of(x), [i], [i + 1], [0])
        if wanted == 1 or (isinstance(d, int) and d != 1):
            parts.append(own)
        elif wanted is not None and d == 1:
            parts.append(b.const(np.array([wanted], np.int64)))
        else:
            extent = b.cast(b.slice(shape, [i - lead], [i - lead + 1], [0]), "int64")
            parts.append(extent if d == 1 else b.op("where", b.op("equal", own, 1), extent, own))
    if not parts:
        return [x]
    target = b.concat(parts, 0)
    extents = b.known(target) or [None]
    return [x] if list(have) == extents else nn.broadcast_to(b, x, target)


def constant_of_shape(n: Node, shape: Expr) -> Any:
    b = n.b
    value = n.tensor("value").reshape(()) if n.has("value") else np.zeros((), np.float32)
    fill, dtype = b.const(value), value.dtype.name
    if b.shape(shape)[0] == 0:
        return fill
    known = b.known(shape)
    if known is not None and None not in known:
        return b.op("full", fill, shape=[int(d or 0) for d in known], dtype=dtype)
    filled = b.op("dyn.full", fill, shape, shape=None, dtype=dtype)
    return filled if known is None else b.refine(filled, known)


def range_(n: Node, start: Expr, limit: Expr, delta: Expr) -> Any:
    b = n.b
    values = [value for v in (start, limit, delta) if (value := b.value(v)) is not None]
    if len(values) == 3:
        if any(np.size(v) != 1 for v in values):
            raise Malformed("its operands must have one element each")
        first, last, step = (np.asarray(v).reshape(()) for v in values)
        if not step or not all(np.isfinite(float(v)) for v in (first, last, step)):
            raise Malformed(f"it counts from {first} to {last} by steps of {step}")
        count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
        if count <= 1 << 16:
            return b.const((first + b.arrays.arange(count) * step).astype(first.dtype))
    numbers = [b.scalar(v) for v in (start, limit, delta)]
    return b.op("arange", *numbers, start=numbers[0], stop=numbers[1], step=numbers[2], dtype=b.dtype(start))


def size(n: Node, x: Expr) -> Any:
    b = n.b
    extents = b.shape(x)
    count = _count(extents)
    if count is not None:
        return b.const(np.int64(count))
    return b.op("prod", b.shape_of(x), axis=[0])


RULES = (
    Rule("Constant", constant),
    Rule("ConstantOfShape", constant_of_shape),
    Rule("Expand", expand),
    Rule("Flatten", flatten),
    Rule("Range", range_),
    Rule("Reshape", lambda n, x: n.b.reshape(x, n.ints("shape")), until=4),
    Rule("Reshape", reshape, since=5),
    Rule("Shape", shape),
    Rule("Size", size),
    Rule("Squeeze", lambda n, x: _squeezed(n, x, n.ints("axes", [])), until=12),
    Rule("Squeeze", squeeze, since=13),
    Rule("Transpose", transpose),
    Rule("Unsqueeze", lambda n, x: n.b.unsqueeze(x, n.ints("axes")), until=12),
    Rule("Unsqueeze", unsqueeze, since=13),
)
