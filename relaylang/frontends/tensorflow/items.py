"""TensorArrays and TensorLists: tensors of one type by number.

Where the numbers are known, they are single expressions. In loops they are one tensor with a further first axis, whose
elements a write replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Unsupported
from relaylang.frontends.tensorflow.tensors import numpy_dtype
from relaylang.ir import Expr, is_static
from relaylang.ir.types import Dim

#: Lists of known length up to this one are single expressions.
_SINGLE = 1024


@dataclass(frozen=True)
class Items:
    """A list of tensors: `rows` one by one (None: not written yet), or `whole` with their axis first.

    `shape` are the extents of an element, None where nothing is known of them yet. `count` is the length, a number or a
    scalar of int32. A list that `grows` takes writes behind its end.
    """

    dtype: str
    shape: tuple[Dim, ...] | None
    count: int | Expr
    rows: tuple[Expr | None, ...] | None = None
    whole: Expr | None = None
    grows: bool = False


@dataclass(frozen=True)
class Handle:
    """The handle of a TensorArray; its elements are in the flow."""

    dtype: str


def reserved(b: Builder, dtype: str, shape: tuple[Dim, ...] | None, count: Expr, grows: bool = False) -> Items:
    """A list of a length without elements."""
    known = b.known(count)
    number = known[0] if known else None
    if number is None:
        return Items(dtype, shape, b.cast(b.scalar(count), "int32"), grows=grows)
    if number < 0:
        raise Malformed(f"its list has {number} elements")
    if number > _SINGLE:
        return Items(dtype, shape, number, grows=grows)
    return Items(dtype, shape, number, (None,) * number, grows=grows)


def of_tensor(b: Builder, x: Expr) -> Items:
    """The list of a tensor's rows."""
    shape = b.shape(x)
    if not shape:
        raise Malformed("its operand is a scalar, which has no rows")
    count = shape[0]
    length: int | Expr = int(count) if isinstance(count, int) else b.cast(b.scalar(b.slice(b.shape_of(x), [0], [1], [0])), "int32")
    return Items(b.dtype(x), tuple(shape[1:]), length, None, x)


def _index(b: Builder, at: Expr) -> int | None:
    known = b.known(at)
    return known[0] if known and len(known) == 1 else None


def _element(b: Builder, xs: Items) -> tuple[Dim, ...]:
    if xs.shape is None:
        raise Unsupported("nothing gives the elements of its list a shape")
    return xs.shape


def _zero(b: Builder, xs: Items) -> Expr:
    """The value of an element that is not written."""
    shape = _element(b, xs)
    if not all(isinstance(d, int) for d in shape):
        raise Unsupported("the extents of its list's elements are not known; --shape gives those of the inputs")
    return b.const(b.arrays.zeros([int(d) for d in shape if isinstance(d, int)], numpy_dtype(xs.dtype)))


def stacked(b: Builder, xs: Items) -> Expr:
    """The list as one tensor with a further first axis."""
    if xs.whole is not None:
        return xs.whole
    if xs.rows is not None:
        if not xs.rows:
            return b.const(b.arrays.zeros([0, *[int(d) if isinstance(d, int) else 0 for d in _element(b, xs)]], numpy_dtype(xs.dtype)))
        if not any(r is not None for r in xs.rows):
            zero = _zero(b, xs)
            return b.const(b.arrays.zeros([len(xs.rows), *b.static_shape(zero)], numpy_dtype(xs.dtype)))
        rows = [_zero(b, xs) if r is None else r for r in xs.rows]
        return b.op("stack", b.tuple(rows), axis=0)
    shape = [int(d) for d in b.static_shape(_zero(b, xs))]
    if isinstance(xs.count, int):
        return b.const(b.arrays.zeros([xs.count, *shape], numpy_dtype(xs.dtype)))
    length = b.concat([b.unsqueeze(b.cast(xs.count, "int64"), [0]), b.const(np.array(shape, np.int64))], 0)
    return b.refine(b.op("dyn.zeros", length, dtype=xs.dtype), [None, *shape])


def get(b: Builder, xs: Items, at: Expr) -> Expr:
    """An element by its number, a scalar."""
    index = _index(b, at)
    if xs.rows is not None and index is not None:
        if not 0 <= index < len(xs.rows):
            raise Malformed(f"it takes the element {index} of a list of {len(xs.rows)}")
        row = xs.rows[index]
        return _zero(b, xs) if row is None else row
    return b.op("take", stacked(b, xs), b.scalar(at), axis=0, mode="clip")


def _shaped(b: Builder, xs: Items, value: Expr) -> Items:
    """The list with what a value shows of the shape of its elements."""
    shape = tuple(b.shape(value))
    if b.dtype(value) != xs.dtype:
        raise Malformed(f"it puts {b.dtype(value)} into a list of {xs.dtype}")
    if xs.shape is not None:
        if len(xs.shape) != len(shape):
            raise Unsupported("the elements of its list have different numbers of axes")
        shape = tuple([e if is_static(e) else d for d, e in zip(shape, xs.shape)])
    return replace(xs, shape=shape)


def put(b: Builder, xs: Items, at: Expr, value: Expr) -> Items:
    """The list with another element at a place."""
    xs, index = _shaped(b, xs, value), _index(b, at)
    if xs.rows is not None and index is not None:
        if index >= len(xs.rows) and xs.grows:
            xs = replace(xs, rows=xs.rows + (None,) * (b.arrays.reserve(index + 1) - len(xs.rows)), count=index + 1)
        rows = xs.rows or ()
        if not 0 <= index < len(rows):
            raise Malformed(f"it writes the element {index} of a list of {len(rows)}")
        return replace(xs, rows=(*rows[:index], value, *rows[index + 1 :]))
    tensor = stacked(b, xs)
    if b.shape(tensor)[0] == 0 or (xs.grows and not isinstance(b.shape(tensor)[0], int)):
        raise Unsupported("its list grows by writes at computed places")
    place = b.reshape(b.cast(at, "int64"), [1, 1])
    updated = b.op("scatter_nd", tensor, place, b.unsqueeze(value, [0]), mode="update")
    return replace(xs, rows=None, whole=updated)


def pushed(b: Builder, xs: Items, value: Expr) -> Items:
    """The list with an element behind it."""
    xs = _shaped(b, xs, value)
    if xs.rows is not None and isinstance(xs.count, int):
        return replace(xs, rows=(*xs.rows, value), count=xs.count + 1)
    return of_tensor(b, b.concat([stacked(b, xs), b.unsqueeze(value, [0])], 0))


def popped(b: Builder, xs: Items) -> tuple[Items, Expr]:
    """The list without its last element, and that element."""
    if not isinstance(xs.count, int) or not xs.count:
        raise Unsupported("the length of its list is not known, or 0")
    last = get(b, xs, b.const(xs.count - 1, "int32"))
    if xs.rows is not None:
        return replace(xs, rows=xs.rows[:-1], count=xs.count - 1), last
    return of_tensor(b, b.slice(stacked(b, xs), [0], [xs.count - 1], [0])), last


def gathered(b: Builder, xs: Items, places: Expr) -> Expr:
    """The elements at places, a vector, behind each other."""
    known = b.known(places)
    if known is not None and None not in known and isinstance(xs.count, int) and known == list(range(xs.count)):
        return stacked(b, xs)
    return b.op("take", stacked(b, xs), places, axis=0)


def scattered(b: Builder, xs: Items, places: Expr, values: Expr) -> Items:
    """The list with rows of a tensor at places."""
    known = b.known(places)
    rows = b.shape(values)[0]
    if known is not None and None not in known and len(known) == rows and known == list(range(len(known))):
        if xs.count == rows or (xs.grows and isinstance(xs.count, int) and xs.count <= len(known)):
            return replace(of_tensor(b, values), grows=xs.grows)
    if known is None or None in known:
        count = b.shape(places)[0]
        if count == rows and not isinstance(count, int) and not isinstance(xs.count, int):
            # numbers of unknown extent that a TensorArray's unstacking counts from 0
            return of_tensor(b, values)
        shaped = _shaped(b, xs, b.op("take", values, b.const(0, "int32"), axis=0))
        updated = b.op("scatter_nd", stacked(b, shaped), b.unsqueeze(places, [0]), values, mode="update")
        return replace(shaped, rows=None, whole=updated)
    for row, place in enumerate(known):
        xs = put(b, xs, b.const(int(place or 0), "int32"), b.op("take", values, b.const(row, "int32"), axis=0))
    return xs


def length(b: Builder, xs: Items) -> Expr:
    """The number of elements, a scalar of int32."""
    return b.const(xs.count, "int32") if isinstance(xs.count, int) else xs.count


def joined(b: Builder, xs: Items) -> tuple[Expr, Expr]:
    """The elements behind each other on their first axis, and their lengths."""
    if xs.rows is not None:
        rows: Sequence[Expr] = [_zero(b, xs) if r is None else r for r in xs.rows]
        lengths = [b.extent(r, 0, "the length of an element") for r in rows]
        if not rows:
            raise Unsupported("its list is empty")
        return b.concat(rows, 0), b.const(np.array(lengths, np.int64))
    tensor = stacked(b, xs)
    count, extent = b.extent(tensor, 0, "the length of its list"), b.extent(tensor, 1, "the length of an element")
    rest = b.shape(tensor)[2:]
    flat = b.reshape(tensor, [count * extent, *[int(d) if isinstance(d, int) else -1 for d in rest]])
    return flat, b.const(b.arrays.full(count, extent, np.int64))


def split(b: Builder, xs: Items, values: Expr, lengths: Expr) -> Items:
    """The list of parts of a tensor by known lengths."""
    sizes = b.need_ints(lengths, "the lengths of the parts")
    ends = np.cumsum(sizes).tolist()
    rows = tuple([b.slice(values, [e - s], [e], [0]) for e, s in zip(ends, sizes)])
    return Items(xs.dtype, None, len(rows), rows, grows=xs.grows)


__all__ = [
    "Handle",
    "Items",
    "gathered",
    "get",
    "joined",
    "length",
    "of_tensor",
    "popped",
    "pushed",
    "put",
    "reserved",
    "scattered",
    "split",
    "stacked",
]
