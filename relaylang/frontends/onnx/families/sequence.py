"""Sequences and optionals. While its length is known, a sequence is a list of expressions, and costs nothing.

Others are lists and options of the Prelude.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported, lists
from relaylang.frontends.common.lists import NOTHING, is_list, is_option
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.slices import slice_computed
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr, TensorType


def _items(n: Node, value: Any) -> Any:
    """A sequence: a Python list, or an expression of a list."""
    return value if isinstance(value, list) else lists.as_list(n.b, value)


def _place(n: Node, position: Expr | None, count: int, default: int) -> int | None:
    """A position in a sequence of known length; None where it is computed."""
    if position is None:
        return default
    known = n.b.known(position)
    if known is None or known[0] is None:
        return None
    return known[0] + count if known[0] < 0 else known[0]


def _computed(n: Node, position: Expr, xs: Expr) -> Expr:
    """A position in a list as an int32 that is not negative."""
    b = n.b
    place = b.cast(b.scalar(position), "int32")
    known = b.known(position)
    if known is not None and known[0] is not None and known[0] >= 0:
        return place
    from_end = b.op("add", place, lists.length(b, xs))
    return from_end if b.value(place) is not None else b.op("where", b.op("less", place, 0), from_end, place)


def empty(n: Node) -> Any:
    return [[]]


def at(n: Node, sequence: Any, position: Expr) -> Any:
    items = _items(n, sequence)
    place = _place(n, position, len(items), 0) if isinstance(items, list) else None
    if place is not None:
        return [items[place]]
    xs = lists.as_list(n.b, items)
    return [lists.call(n.b, "nth", [xs, _computed(n, position, xs)], lists.element(xs))]


def insert(n: Node, sequence: Any, item: Expr, position: Expr | None = None) -> Any:
    items = _items(n, sequence)
    place = _place(n, position, len(items), len(items)) if isinstance(items, list) else None
    if place is not None:
        return [[*items[:place], item, *items[place:]]]
    if items == []:
        return [[item]]
    xs = lists.as_list(n.b, items)
    return [lists.append(n.b, xs, item) if position is None else lists.insert(n.b, xs, _computed(n, position, xs), item)]


def erase(n: Node, sequence: Any, position: Expr | None = None) -> Any:
    items = _items(n, sequence)
    place = _place(n, position, len(items), len(items) - 1) if isinstance(items, list) else None
    if place is not None:
        return [[x for i, x in enumerate(items) if i != range(len(items))[place]]]
    xs = lists.as_list(n.b, items)
    last = n.b.const(-1, "int64") if position is None else position
    return [lists.call(n.b, "erase_at", [xs, _computed(n, last, xs)], lists.list_of(n.b, lists.element(xs)))]


def length(n: Node, sequence: Any) -> Any:
    items = _items(n, sequence)
    return n.b.const(len(items), "int64") if isinstance(items, list) else n.b.cast(lists.length(n.b, items), "int64")


def split(n: Node, x: Expr, parts: Expr | None = None) -> Any:
    """`SplitToSequence`: parts of one length, of given lengths, or single slices."""
    b = n.b
    axis, keep = n.int("axis", 0) % b.rank(x), bool(n.int("keepdims", 1))
    extent = b.shape(x)[axis]
    if parts is None:
        if not isinstance(extent, int):
            return [_chunks(b, x, axis, None, keep)]
        items = _cut(b, x, axis, [1] * b.arrays.reserve(extent))
        return [items if keep else [b.squeeze(i, [axis]) for i in items]]
    lengths, count = b.known(parts), b.shape(parts)
    known = [v for v in lengths or [None] if v is not None]
    if lengths is not None and len(known) == len(lengths) and (count or isinstance(extent, int)):
        size = extent if isinstance(extent, int) else 0
        return [_cut(b, x, axis, known if count else [min(known[0], size - i) for i in range(0, size, known[0])])]
    if count and isinstance(count[0], int):
        bounds = _bounds(b, x, axis, parts)
        pairs = [[b.slice(v, [i], [i + 1], [0]) for v in bounds] for i in range(count[0])]
        return [[slice_computed(b, x, first, last, [axis], None) for first, last in pairs]]
    return [_chunks(b, x, axis, parts, keep)]


def _cut(b: Builder, x: Expr, axis: int, lengths: list[int]) -> list[Expr]:
    """Parts of known lengths."""
    ends = np.cumsum(lengths).tolist()
    return [b.slice(x, [e - size], [e], [axis]) for e, size in zip(ends, lengths)]


def _extent(b: Builder, x: Expr, axis: int) -> Expr:
    return b.scalar(b.slice(b.shape_of(x), [axis], [axis + 1], [0]))


def _bounds(b: Builder, x: Expr, axis: int, parts: Expr) -> tuple[Expr, Expr]:
    """Vectors of where parts begin, and where they end."""
    parts = b.cast(parts, "int64")
    if b.rank(parts):
        ends = b.op("cumsum", parts, axis=0)
        return b.op("subtract", ends, parts), ends
    extent = _extent(b, x, axis)
    begins = b.arange(b.const(0, "int64"), extent, parts, "int64")
    return begins, b.op("minimum", b.op("add", begins, parts), extent)


def _chunks(b: Builder, x: Expr, axis: int, parts: Expr | None, keep: bool) -> Expr:
    """The list of the parts, made from the last one on."""
    if parts is None:
        count = _extent(b, x, axis)
    else:
        begins, ends = _bounds(b, x, axis, parts)
        count = _extent(b, ends, 0)

    def part(i: Expr) -> Expr:
        if parts is None:
            row = b.op("take", x, i, axis=axis)
            return b.unsqueeze(row, [axis]) if keep else row
        first, last = [b.unsqueeze(b.op("take", v, i, axis=0), [0]) for v in (begins, ends)]
        return slice_computed(b, x, first, last, [axis], None)

    def turn(v: list[Expr]) -> list[Expr]:
        left = b.op("subtract", v[0], b.const(1, "int64"))
        return [left, lists.cons(b, part(left), v[1])]

    inner = part(b.variable("left", TensorType((), "int64"))).checked_type
    assert inner is not None
    start = [count, lists.nil(b, inner)]
    return while_loop(b, lambda v: b.op("greater", v[0], b.const(0, "int64")), turn, start, ["left", "parts"], "split")[1]


def concat(n: Node, sequence: Any) -> Any:
    b, items, axis, new = n.b, _items(n, sequence), n.int("axis"), n.int("new_axis", 0)
    if not isinstance(items, list):
        return lists.concat(b, items, axis, bool(new))
    return b.op("stack", b.tuple(items), axis=axis) if new else b.concat(items, axis)


def map_(n: Node, sequence: Any, *others: Any) -> Any:
    """`SequenceMap`: the body over the items of sequences; a tensor beside them is the same for all."""
    body = n.body("body")
    operands = [_items(n, sequence), *(lists.get(n.b, o) if is_option(o) else o for o in others)]
    if any(is_list(x) for x in operands):
        return _mapped(n, operands)
    turns = [body.convert([o[i] if isinstance(o, list) else o for o in operands]) for i in range(len(operands[0]))]
    return [list(column) for column in zip(*turns)] if turns else [[] for _ in n.outputs]


def _mapped(n: Node, operands: list[Any]) -> Any:
    """The body as a function over a list, or over a list of tuples."""
    b = n.b
    sequences = [lists.as_list(b, x) for x in operands if isinstance(x, list) or is_list(x)]
    xs = lists.zipped(b, sequences)
    item = b.variable("item", lists.element(xs))
    values = iter(lists.unzipped(b, item, len(sequences)))
    results = n.body("body").convert([next(values) if isinstance(x, list) or is_list(x) else x for x in operands])
    if not all(isinstance(r, Expr) for r in results):
        raise Unsupported("its body gives a sequence")
    mapped = _map(b, item, results[0] if len(results) == 1 else b.tuple(results), xs)
    if len(results) == 1:
        return [mapped]
    row = b.variable("row", lists.element(mapped))
    return [_map(b, row, b.field(row, i), mapped) for i in range(len(results))]


def _map(b: Builder, item: Any, result: Expr, xs: Expr) -> Expr:
    assert result.checked_type is not None
    return lists.call(b, "map", [b.function([item], result), xs], lists.list_of(b, result.checked_type))


def optional(n: Node, value: Any = None) -> Any:
    return [NOTHING if value is None else value]


def get_element(n: Node, value: Any = NOTHING) -> Any:
    if value is NOTHING:
        raise Unsupported("the optional is empty")
    return [lists.get(n.b, value) if is_option(value) else value]


RULES = (
    Rule("ConcatFromSequence", concat),
    Rule("Optional", optional),
    Rule("OptionalGetElement", get_element),
    Rule(
        "OptionalHasElement",
        lambda n, value=NOTHING: lists.has(n.b, value) if is_option(value) else n.b.const(value not in (None, NOTHING), "bool"),
    ),
    Rule("SequenceAt", at),
    Rule("SequenceConstruct", lambda n, *items: [list(items)]),
    Rule("SequenceEmpty", empty),
    Rule("SequenceErase", erase),
    Rule("SequenceInsert", insert),
    Rule("SequenceLength", length),
    Rule("SequenceMap", map_),
    Rule("SplitToSequence", split),
)
