"""Lists of tensors: TensorArrays, whose flow has the elements here, and TensorLists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.tensorflow import items
from relaylang.frontends.tensorflow.items import Handle, Items
from relaylang.frontends.tensorflow.node import Node, Value, need_tensor
from relaylang.ir import ANY, Expr
from relaylang.ir.types import Dim


def _list(x: Value) -> Items:
    if not isinstance(x, Items):
        raise Unsupported("an operand is no list of tensors")
    return x


def _number(n: Node, x: Value) -> Expr:
    return n.b.scalar(need_tensor(x))


# ---- TensorArrays


def array(n: Node, size: Value) -> Any:
    """The handle, and the flow."""
    dtype = n.dtype("dtype")
    storage = items.reserved(n.b, dtype, n.shape("element_shape"), _number(n, size), n.bool("dynamic_size"))
    return [Handle(dtype), storage]


# ---- TensorLists


def _shape(n: Node, x: Value) -> tuple[Dim, ...] | None:
    """The shape of elements, an operand: -1 alone is unknown, and an extent of -1 is."""
    b, x = n.b, need_tensor(x)
    known = b.known(x)
    if b.rank(x) == 0 or known is None:
        return None
    return tuple([d if d is not None and d >= 0 else ANY for d in known])


def reserve(n: Node, shape: Value, count: Value) -> Any:
    return [items.reserved(n.b, n.dtype("element_dtype"), _shape(n, shape), _number(n, count), grows=True)]


def empty(n: Node, shape: Value, most: Value) -> Any:
    return [Items(n.dtype("element_dtype"), _shape(n, shape), 0, (), grows=True)]


def get_item(n: Node, xs: Value, at: Value, shape: Value) -> Any:
    xs, stated = _list(xs), _shape(n, shape)
    return [items.get(n.b, xs if xs.shape is not None else replace(xs, shape=stated), _number(n, at))]


def push(n: Node, xs: Value, value: Value) -> Any:
    return [items.pushed(n.b, _list(xs), need_tensor(value))]


def pop(n: Node, xs: Value, shape: Value) -> Any:
    return list(items.popped(n.b, _list(xs)))


def stack(n: Node, xs: Value, shape: Value) -> Any:
    xs, stated = _list(xs), _shape(n, shape)
    stacked = items.stacked(n.b, xs if xs.shape is not None else replace(xs, shape=stated))
    return [n.b.refine(stacked, [None, *[d if isinstance(d, int) else None for d in stated]]) if stated is not None else stacked]


def length(n: Node, xs: Value) -> Any:
    return [items.length(n.b, _list(xs))]


def element_shape(n: Node, xs: Value) -> Any:
    shape = _list(xs).shape
    if shape is None:
        return [n.b.const(-1, n.dtype("shape_type"))]
    return [n.b.const(np.array([d if isinstance(d, int) else -1 for d in shape], n.dtype("shape_type")))]


def gather(n: Node, xs: Value, places: Value, shape: Value) -> Any:
    return [items.gathered(n.b, _list(xs), need_tensor(places))]


def scatter(n: Node, x: Value, places: Value, shape: Value, count: Any = None) -> Any:
    """A new list of rows at places; a count of -1 is as long as the places need."""
    b, places = n.b, need_tensor(places)
    at = n.ints_of(places, "the places")
    known = n.ints_of(count, "the number of elements")[0] if count is not None else -1
    size = known if known >= 0 else max(at, default=-1) + 1
    if min(at, default=0) < 0:
        raise Malformed(f"it puts an element at the place {min(at)}")
    xs = items.reserved(b, b.dtype(need_tensor(x)), _shape(n, shape), b.const(size, "int32"), grows=True)
    return [items.scattered(b, xs, places, need_tensor(x))]


def concat(n: Node, xs: Value, *others: Value) -> Any:
    return list(items.joined(n.b, _list(xs)))


def split(n: Node, x: Value, shape: Value, lengths: Value) -> Any:
    x = need_tensor(x)
    return [items.split(n.b, Items(n.b.dtype(x), None, 0, (), grows=True), x, need_tensor(lengths))]


def resize(n: Node, xs: Value, count: Value) -> Any:
    xs, size = _list(xs), n.ints_of(count, "the number of elements")[0]
    if xs.rows is None or size < 0:
        raise Unsupported("the length of its list is not known")
    rows = xs.rows[:size] + (None,) * (n.b.arrays.reserve(size) - len(xs.rows))
    return [replace(xs, rows=rows, count=size)]


def zeros_like(n: Node, x: Value) -> Any:
    """Zeros; of a list, a list of zeros."""
    if isinstance(x, Items):
        return [items.of_tensor(n.b, n.b.op("zeros_like", items.stacked(n.b, x)))]
    return [n.b.op("zeros_like", need_tensor(x))]


RULES = (
    Rule("EmptyTensorList", empty),
    Rule("TensorArrayCloseV3", lambda n, handle: []),
    Rule("TensorArrayConcatV3", lambda n, handle, flow: list(items.joined(n.b, _list(flow)))),
    Rule("TensorArrayGatherV3", lambda n, handle, places, flow: [items.gathered(n.b, _list(flow), need_tensor(places))]),
    Rule("TensorArrayReadV3", lambda n, handle, at, flow: [items.get(n.b, _list(flow), _number(n, at))]),
    Rule(
        "TensorArrayScatterV3",
        lambda n, handle, places, value, flow: [items.scattered(n.b, _list(flow), need_tensor(places), need_tensor(value))],
    ),
    Rule("TensorArraySizeV3", lambda n, handle, flow: [items.length(n.b, _list(flow))]),
    Rule(
        "TensorArraySplitV3",
        lambda n, handle, value, lengths, flow: [items.split(n.b, _list(flow), need_tensor(value), need_tensor(lengths))],
    ),
    Rule("TensorArrayV3", array),
    Rule("TensorArrayWriteV3", lambda n, handle, at, value, flow: [items.put(n.b, _list(flow), _number(n, at), need_tensor(value))]),
    Rule("TensorListConcat", concat),
    Rule("TensorListConcatV2", concat),
    Rule("TensorListElementShape", element_shape),
    Rule("TensorListFromTensor", lambda n, x, shape: [replace(items.of_tensor(n.b, need_tensor(x)), grows=True)]),
    Rule("TensorListGather", gather),
    Rule("TensorListGetItem", get_item),
    Rule("TensorListLength", length),
    Rule("TensorListPopBack", pop),
    Rule("TensorListPushBack", push),
    Rule("TensorListReserve", reserve),
    Rule("TensorListResize", resize),
    Rule("TensorListScatter", scatter),
    Rule("TensorListScatterV2", scatter),
    Rule("TensorListSetItem", lambda n, xs, at, value: [items.put(n.b, _list(xs), _number(n, at), need_tensor(value))]),
    Rule("TensorListSplit", split),
    Rule("TensorListStack", stack),
    Rule("ZerosLike", zeros_like),
)
