"""Layers that move elements: reshaping, padding, cropping, repeating."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.resample import resample, stretch
from relaylang.frontends.common.resize import Method
from relaylang.frontends.keras.node import Node, Tensor, plain
from relaylang.ir import Expr


def flatten(n: Node, x: Expr) -> Any:
    """All axes behind the batch in one; channels go last before."""
    b = n.b
    rank = b.rank(x)
    if rank == 1:
        return b.unsqueeze(x, [1])
    if n.channels_first() and rank > 2:
        x = b.transpose(x, [0, *range(2, rank), 1])
    return b.op("nn.batch_flatten", x) if rank > 2 else x


def reshape(n: Node, x: Expr) -> Any:
    """`target_shape` leaves the batch out; one extent may be -1."""
    shape = n.ints("target_shape", least=-1)
    return reshape_rest(n, x, shape)


def reshape_rest(n: Node, x: Expr, shape: list[int]) -> Any:
    """A reshape of all axes behind the batch."""
    b = n.b
    if shape.count(-1) > 1:
        raise Malformed(f"it reshapes to {shape}")
    batch, rest = b.shape(x)[0], b.shape(x)[1:]
    if all(isinstance(d, int) for d in rest):
        size = math.prod(int(d) for d in rest if isinstance(d, int))
        other = math.prod(d for d in shape if d != -1)
        if -1 in shape:
            if not other or size % other:
                raise Malformed(f"it reshapes {size} elements to {shape}")
            shape = [size // other if d == -1 else d for d in shape]
        elif size != other:
            raise Malformed(f"it reshapes {size} elements to {shape}")
        if isinstance(batch, int):
            return b.reshape_exactly(x, [int(batch), *shape])
        if 0 in shape:
            raise Unsupported("it has no elements, and the batch is not known")
        return b.reshape(x, [-1, *shape])
    if isinstance(batch, int) and 0 not in shape:
        return b.reshape(x, [int(batch), *shape])
    if -1 in shape:
        raise Unsupported("the extents of its operand are not known; --shape gives them")
    return b.reshape(x, [-1, *shape])


def permute(n: Node, x: Expr) -> Any:
    """`dims` count from 1; the batch stays."""
    order = n.ints("dims")
    if sorted(order) != list(range(1, n.b.rank(x))):
        raise Malformed(f"its dims are {order}, and its operand has {n.b.rank(x)} axes")
    return n.b.transpose(x, [0, *order])


def pairs(n: Node, key: str, rank: int) -> list[tuple[int, int]]:
    """Pairs of numbers, one for each spatial axis: a number for all, one for each, or two for each."""
    value = plain(n.value(key, 1))
    rows = [value] * rank if type(value) is int else value
    rows = [plain(r) for r in rows] if isinstance(rows, (list, tuple)) else []
    if rank == 1 and list(map(type, rows)) == [int, int]:
        rows = [rows]
    if n.spec.major == 1 and rank == 2 and len(rows) == 4:
        rows = [rows[:2], rows[2:]]
    sides = [tuple(r) if isinstance(r, (list, tuple)) else (r, r) for r in rows]
    numbers = [v for pair in sides for v in pair if type(v) is int and 0 <= v < 1 << 31]
    if [len(pair) for pair in sides] != [2] * rank or len(numbers) != 2 * rank:
        raise Malformed(f"its {key} is {repr(value)[:60]}, and it must be {rank} pairs of numbers from 0 on")
    return [(int(p[0]), int(p[1])) for p in sides]


def padding(rank: int) -> Callable[[Node, Expr], Any]:
    """Zeros around the spatial axes."""

    def convert(n: Node, x: Expr) -> Any:
        b = n.b
        b.of_rank(x, rank + 2)
        widths = [[*p] for p in pairs(n, "padding", rank)]
        shape = b.shape(x)
        widths = [[0, 0], [0, 0], *widths] if n.channels_first() else [[0, 0], *widths, [0, 0]]
        b.arrays.reserve([int(d) + sum(w) for d, w in zip(shape, widths) if isinstance(d, int)], "padding its operand", 0)
        return b.op("nn.pad", x, b.const(0, b.dtype(x)), pad_width=widths)

    return convert


def cropping(rank: int) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        b = n.b
        b.of_rank(x, rank + 2)
        cuts = pairs(n, "cropping", rank)
        axes = [i + (2 if n.channels_first() else 1) for i in range(rank)]
        for (begin, end), axis in zip(cuts, axes):
            have = b.shape(x)[axis]
            if isinstance(have, int) and begin + end >= have:
                raise Malformed(f"it crops {begin} and {end} elements of an axis that has {have}")
            if begin or end:
                x = b.slice(x, [begin], [have - end if isinstance(have, int) else -end if end else (1 << 31) - 1], [axis])
        return x

    return convert


def up_sampling(rank: int) -> Callable[[Node, Expr], Any]:
    """Each element as often as `size` says, or the spatial axes resized."""

    def convert(n: Node, x: Expr) -> Any:
        b = n.b
        b.of_rank(x, rank + 2)
        scale = n.ints("size", rank, 2, 1)
        how = n.choice("interpolation", "nearest", tuple(KINDS))
        axes = [i + (2 if n.channels_first() else 1) for i in range(rank)]
        if how == "nearest":
            for axis, times in zip(axes, scale):
                x = b.op("repeat", x, repeats=times, axis=axis) if times > 1 else x
            return x
        sizes = [b.extent(x, axis, "the extents of its operand") * times for axis, times in zip(axes, scale)]
        return resized(n, n.real(x), axes, sizes, how)

    return convert


#: Keras's kinds of interpolation -> how to resample.
KINDS = {
    "nearest": Method("nearest", "tf_half_pixel_for_nn", "floor"),
    "bilinear": Method("linear", "half_pixel"),
    "bicubic": Method("cubic", "half_pixel", a=-0.5, exclude_outside=True),
}


def resized(n: Node, x: Expr, axes: list[int], sizes: list[int], how: str, antialias: bool = False) -> Any:
    """Some axes with other extents, as TensorFlow's `image.resize` makes them."""
    b = n.b
    kind = KINDS[how]
    if antialias and how != "nearest":
        kind = Method(kind.kind, kind.coordinates, a=kind.a, exclude_outside=True, antialias=True)
    if how == "bilinear" and not antialias and axes == [1, 2] and b.rank(x) == 4:
        b.arrays.reserve(sizes, "resizing its operand", 1)
        return b.op(
            "image.resize2d", x, size=sizes, roi=[0.0] * 4, layout="NHWC", method="linear", coordinate_transformation_mode="half_pixel"
        )
    if how == "bicubic" and not antialias:
        for axis, size in zip(axes, sizes):
            x = _cubic(n, x, axis, size)
        return x
    return resample(b, x, {axis: stretch(b, x, axis, size=size) for axis, size in zip(axes, sizes)}, kind)


#: TensorFlow rounds the places between two elements to so many parts.
_PARTS = 1024


def _cubic(n: Node, x: Expr, axis: int, size: int) -> Expr:
    """One axis resized with TensorFlow's cubic kernel, whose weights are those of rounded places."""
    b = n.b
    have = b.extent(x, axis, "the extents of its operand")
    b.arrays.reserve((4, size))
    at = ((b.arrays.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(have / size) - np.float32(0.5)).astype(np.float32)
    low = np.floor(at)
    share = np.rint((at - low) * _PARTS) / _PARTS
    distance = np.abs(np.arange(-1, 3)[:, None] - share)
    near = (1.5 * distance - 2.5) * distance**2 + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    places = low + np.arange(-1, 3)[:, None]
    weights = np.where((places < 0) | (places >= have), 0, np.where(distance <= 1, near, far))
    weights /= weights.sum(0)
    shape = [-1 if i == axis else 1 for i in range(b.rank(x))]
    total = None
    for place, weight in zip(np.clip(places, 0, have - 1).astype(np.int32), weights):
        part = b.op("multiply", b.op("take", x, b.const(place), axis=axis), b.const(weight.reshape(shape), b.dtype(x)))
        total = part if total is None else b.op("add", total, part)
    assert total is not None
    return total


def masking(n: Node, x: Expr) -> Any:
    """Steps whose elements all are `mask_value` are 0, and do not count."""
    b = n.b
    x = n.real(x)
    differs = b.op("not_equal", x, n.float("mask_value", 0.0))
    kept = b.op("any", differs, axis=[-1], keepdims=True)
    masked = b.op("multiply", x, b.cast(kept, b.dtype(x)))
    return Tensor(masked, b.squeeze(kept, [-1]))


RULES = (
    Rule("Flatten", flatten),
    Rule("Reshape", reshape),
    Rule("Permute", permute),
    Rule("RepeatVector", lambda n, x: n.b.op("repeat", n.b.unsqueeze(n.b.of_rank(x, 2), [1]), repeats=n.int("n", least=1), axis=1)),
    Rule("Masking", masking),
    *(Rule(f"ZeroPadding{rank}D", padding(rank)) for rank in (1, 2, 3)),
    *(Rule(f"Cropping{rank}D", cropping(rank)) for rank in (1, 2, 3)),
    *(Rule(f"UpSampling{rank}D", up_sampling(rank)) for rank in (1, 2, 3)),
)
