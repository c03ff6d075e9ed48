"""Sequences and optionals. While its length is known, a sequence is a list of expressions, and costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.onnx.node import NOTHING, Node
from relaylang.ir import Expr


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Unsupported("the length of a sequence is not known")
    return value


def _position(n: Node, at: Expr | None, length: int, default: int) -> int:
    if at is None:
        return default
    index = n.b.need_ints(at, "the position in a sequence")[0]
    return index + length if index < 0 else index


def construct(n: Node, *items: Expr) -> Any:
    return [list(items)]


def empty(n: Node) -> Any:
    return [[]]


def at(n: Node, sequence: Any, position: Expr) -> Any:
    items = _items(sequence)
    return [items[_position(n, position, len(items), 0)]]


def insert(n: Node, sequence: Any, item: Expr, position: Expr | None = None) -> Any:
    items = list(_items(sequence))
    items.insert(_position(n, position, len(items), len(items)), item)
    return [items]


def erase(n: Node, sequence: Any, position: Expr | None = None) -> Any:
    items = list(_items(sequence))
    del items[_position(n, position, len(items), len(items) - 1)]
    return [items]


def length(n: Node, sequence: Any) -> Any:
    return n.b.const(len(_items(sequence)), "int64")


def split(n: Node, x: Expr, parts: Expr | None = None) -> Any:
    """`SplitToSequence`: parts of one length, of given lengths, or single slices."""
    b = n.b
    axis = n.int("axis", 0) % b.rank(x)
    extent = b.extent(x, axis)
    if parts is None:
        lengths = [1] * extent
    else:
        given = b.need_ints(parts, "the lengths of the parts")
        whole = b.rank(parts) == 0
        lengths = [min(given[0], extent - i) for i in range(0, extent, given[0])] if whole else given
    ends = np.cumsum(lengths).tolist()
    items = [b.slice(x, [e - size], [e], [axis]) for e, size in zip(ends, lengths)]
    if parts is None and not n.int("keepdims", 1):
        items = [b.squeeze(i, [axis]) for i in items]
    return [items]


def concat(n: Node, sequence: Any) -> Any:
    b, items, axis = n.b, _items(sequence), n.int("axis")
    if n.int("new_axis", 0):
        return b.op("stack", b.tuple(items), axis=axis)
    return b.concat(items, axis)


def map_(n: Node, sequence: Any, *others: Any) -> Any:
    """`SequenceMap`: the body over the items of sequences; a tensor beside them is the same for all."""
    body = n.body("body")
    items = _items(sequence)
    turns = [body.convert([x, *(o[i] if isinstance(o, list) else o for o in others)]) for i, x in enumerate(items)]
    return [list(column) for column in zip(*turns)] if turns else [[] for _ in n.outputs]


def optional(n: Node, value: Any = None) -> Any:
    return [NOTHING if value is None else value]


def get_element(n: Node, value: Any) -> Any:
    if value is NOTHING:
        raise Unsupported("the optional is empty")
    return [value]


def has_element(n: Node, value: Any = NOTHING) -> Any:
    return n.b.const(value is not None and value is not NOTHING, "bool")


RULES = (
    Rule("ConcatFromSequence", concat),
    Rule("Optional", optional),
    Rule("OptionalGetElement", get_element),
    Rule("OptionalHasElement", has_element),
    Rule("SequenceAt", at),
    Rule("SequenceConstruct", construct),
    Rule("SequenceEmpty", empty),
    Rule("SequenceErase", erase),
    Rule("SequenceInsert", insert),
    Rule("SequenceLength", length),
    Rule("SequenceMap", map_),
    Rule("SplitToSequence", split),
)
