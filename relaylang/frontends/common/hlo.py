"""StableHLO's operators on elements and shapes (https://openxla.org/stablehlo/spec), for the formats that have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.common.nn import broadcast_to
from relaylang.frontends.common.places import counted, grid
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def axes_in(axes: Sequence[int], rank: int, what: str) -> list[int]:
    """Axes of so many, all different and counted from the first. Raises `Malformed` for others."""
    if any(not 0 <= a < rank for a in axes) or len(set(axes)) != len(axes):
        raise Malformed(f"{what} is {list(axes)}; it must have different axes of {rank}")
    return list(axes)


def placed(b: Builder, x: Expr, axes: Sequence[int], rank: int) -> Expr:
    """A tensor whose axes are those of a result of more axes; the others have the extent 1."""
    if len(axes) != b.rank(x):
        raise Malformed(f"it places {len(axes)} axes of an operand that has {b.rank(x)}")
    axes = axes_in(axes, rank, "the axes that the operand becomes")
    x = b.transpose(x, [int(i) for i in np.argsort(axes)])
    return b.unsqueeze(x, [a for a in range(rank) if a not in axes]) if len(axes) < rank else x


def broadcast(b: Builder, x: Expr, axes: Sequence[int], shape: Sequence[int]) -> Expr:
    """Each axis of the operand becomes one of the result's."""
    x = placed(b, x, axes, len(shape))
    if b.shape(x) == tuple(shape):
        return x
    broadcasted: Expr = b.op("broadcast_to", x, shape=list(shape))
    b.notes[broadcasted] = x
    return broadcasted


def broadcast_computed(b: Builder, x: Expr, axes: Sequence[int], shape: Expr) -> Expr:
    """As `broadcast`, to a computed shape."""
    known = b.known(shape)
    if known is not None and None not in known:
        return broadcast(b, x, axes, [int(d) for d in known if d is not None])
    x = placed(b, x, axes, b.extent(shape, 0, "the rank of the result"))
    broadcasted = broadcast_to(b, x, shape)
    if known is not None:
        broadcasted = b.refine(broadcasted, known)
    b.notes[broadcasted] = x
    return broadcasted


def unspread(b: Builder, xs: Sequence[Expr]) -> list[Expr]:
    """Operands of one shape, without their broadcasts where another operand has the whole shape."""
    spread = [isinstance(b.notes.get(x), Expr) for x in xs]
    return [b.notes[x] if is_ and not all(spread) else x for x, is_ in zip(xs, spread)]


def padded(b: Builder, x: Expr, value: Expr, low: Sequence[int], high: Sequence[int], inner: Sequence[int]) -> Expr:
    """Gaps of a value between the elements, and at the ends; negative widths cut elements off."""
    rank = len(low)
    if b.rank(x) != rank or len(high) != rank or len(inner) != rank or any(i < 0 for i in inner):
        raise Malformed(f"the widths {list(low)}, {list(high)} and {list(inner)} do not fit {b.rank(x)} axes")
    if any(inner):
        x = b.op("nn.dilate", x, strides=[i + 1 for i in inner], dilation_value=float(b.need(value, "the value of gaps")))
    if any(p > 0 for p in (*low, *high)):
        x = b.op("nn.pad", x, b.scalar(value), pad_width=[[max(i, 0), max(j, 0)] for i, j in zip(low, high)])
    for axis, (i, j) in enumerate(zip(low, high)):
        if i < 0 or j < 0:
            extent = b.extent(x, axis) if j < 0 else (1 << 31) - 1
            x = b.slice(x, [max(-i, 0)], [extent - max(-j, 0)], [axis])
    return x


def iota(b: Builder, shape: Sequence[int], axis: int, dtype: str) -> Expr:
    """The index along an axis."""
    if not 0 <= axis < len(shape):
        raise Malformed(f"it counts along the axis {axis} of {len(shape)}")
    kind = dtype if dtype != "bool" and "int4" not in dtype else "int32"
    indices: Expr = b.cast(b.op("broadcast_to", grid(b, shape, axis, kind), shape=list(shape)), dtype)
    b.notes[indices] = Iota(axis)
    return indices


class Iota:
    """What `Builder.notes` has for a tensor of the indices along an axis."""

    def __init__(self, axis: int) -> None:
        self.axis = axis


def starts_in(b: Builder, x: Expr, starts: Sequence[Expr], sizes: Sequence[int]) -> list[Expr]:
    """Scalars for the first place along each axis, held to where a part of some size fits."""
    if not len(starts) == len(sizes) == b.rank(x):
        raise Malformed(f"it has {len(starts)} places and {len(sizes)} extents for {b.rank(x)} axes")
    first_places = []
    for axis, (start, size) in enumerate(zip(starts, sizes)):
        start, extent = b.scalar(start), b.shape(x)[axis]
        if b.dtype(start).startswith("uint"):
            start = b.cast(start, "int64")
        if isinstance(extent, int):
            if not 0 <= size <= extent:
                raise Malformed(f"the part has the extent {size} along an axis of {extent}")
            first_places.append(b.op("clip", start, a_min=0.0, a_max=float(extent - size)))
        else:
            last = b.op("subtract", b.cast(b.scalar(b.slice(b.shape_of(x), [axis], [axis + 1], [0])), b.dtype(start)), size)
            first_places.append(b.op("minimum", b.op("maximum", start, 0), last))
    return first_places


def dynamic_slice(b: Builder, x: Expr, starts: Sequence[Expr], sizes: Sequence[int]) -> Expr:
    """A part of known extents at a computed place."""
    for axis, start in enumerate(starts_in(b, x, starts, sizes)):
        size = sizes[axis]
        if size == b.shape(x)[axis]:
            continue
        known = b.value(start)
        if known is not None:
            x = b.slice(x, [int(known)], [int(known) + size], [axis])
        elif size == 1:
            x = b.op("expand_dims", b.op("take", x, start, axis=axis), axis=axis)
        else:
            x = b.op("take", x, b.op("add", counted(b, size, b.dtype(start)), start), axis=axis)
    return x


def dynamic_update_slice(b: Builder, x: Expr, update: Expr, starts: Sequence[Expr]) -> Expr:
    """A tensor with a part replaced at a computed place."""
    sizes = list(b.static_shape(update, "the update"))
    first_places = starts_in(b, x, starts, sizes)
    moved = [a for a in range(len(sizes)) if sizes[a] != b.shape(x)[a]]
    if not moved:
        return update
    # Rows of the leading axes: a transposition would copy the whole tensor.
    part = sizes[: moved[-1] + 1]
    rows = []
    for axis in range(len(part)):
        places = grid(b, part, axis, b.dtype(first_places[moved[0]]))
        places = b.op("add", places, b.cast(first_places[axis], b.dtype(places))) if axis in moved else places
        rows.append(b.op("broadcast_to", places, shape=part))
    updated: Expr = b.op("scatter_nd", x, b.op("stack", b.tuple(rows), axis=0), update, mode="update")
    return updated


def dot_general(b: Builder, x: Expr, y: Expr, batching: Sequence[Sequence[int]], contracting: Sequence[Sequence[int]]) -> Expr:
    """Batch axes first, then the left operand's other axes, then the right one's."""
    names = iter(_LETTERS)
    ranks = [b.rank(x), b.rank(y)]
    if sum(ranks) > len(_LETTERS):
        raise Malformed(f"its operands have {sum(ranks)} axes in all")
    left, right = [""] * ranks[0], [""] * ranks[1]
    for first, second in (batching, contracting):
        if len(first) != len(second):
            raise Malformed(f"it joins the axes {list(first)} with the axes {list(second)}")
        for i, j in zip(axes_in(first, ranks[0], "the left axes"), axes_in(second, ranks[1], "the right axes")):
            left[i] = right[j] = next(names)
    batch = "".join(left[i] for i in batching[0])
    free = []
    for term in (left, right):
        open_ = [i for i, letter in enumerate(term) if not letter]
        for i in open_:
            term[i] = next(names)
        free.append("".join(term[i] for i in open_))
    return einsum(b, f"{''.join(left)},{''.join(right)}->{batch}{free[0]}{free[1]}", [x, y])


def cube_root(b: Builder, x: Expr) -> Expr:
    """Of negative numbers, too."""
    root: Expr = b.op("multiply", b.op("sign", x), b.op("power", b.op("abs", x), 1 / 3))
    return root


def bits_of(b: Builder, x: Expr) -> tuple[Expr, int]:
    """The bits of each element as an unsigned number, and how many they are."""
    dtype = b.dtype(x)
    size = np.dtype(dtype).itemsize * 8
    if dtype == "bool" or "int4" in dtype:
        raise Unsupported(f"the bits of {dtype} have no form in Relay")
    kind = f"uint{size}"
    return (x if dtype == kind else b.op("reinterpret", x, dtype=kind)), size


def bitcast(b: Builder, x: Expr, dtype: str) -> Expr:
    """The same bits as elements of another type. A last axis has the parts of larger elements, the lowest bits first."""
    if b.dtype(x) == dtype:
        return x
    bits, size = bits_of(b, x)
    wanted = np.dtype(dtype).itemsize * 8
    if dtype == "bool" or "int4" in dtype:
        raise Unsupported(f"the bits of {dtype} have no form in Relay")
    if size > wanted:
        places = b.const(np.arange(0, size, wanted).astype(f"uint{size}"))
        parts = b.op("right_shift", b.op("expand_dims", bits, axis=int(b.rank(bits))), places)
        bits = b.cast(b.op("bitwise_and", parts, b.const((1 << wanted) - 1, f"uint{size}")), f"uint{wanted}")
    elif size < wanted:
        last = b.rank(bits) - 1
        if last < 0 or b.shape(bits)[last] * size != wanted:
            raise Malformed(f"its last axis must have {wanted // size} elements")
        places = b.const(np.arange(0, wanted, size).astype(f"uint{wanted}"))
        bits = b.op("sum", b.op("left_shift", b.cast(bits, f"uint{wanted}"), places), axis=[last])
    return bits if dtype == f"uint{wanted}" else b.op("reinterpret", bits, dtype=dtype)


__all__ = [
    "Iota",
    "axes_in",
    "bitcast",
    "bits_of",
    "broadcast",
    "broadcast_computed",
    "cube_root",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "iota",
    "padded",
    "placed",
    "starts_in",
    "unspread",
]
