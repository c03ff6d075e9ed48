"""Operators that move elements: they work on stored values, without arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.common.nn import broadcast_to
from relaylang.frontends.common.places import at_place
from relaylang.frontends.tflite.integers import STORED, is_whole
from relaylang.frontends.tflite.node import Node
from relaylang.ir import Expr

#: A shape may have so many axes.
_DEEPEST = 64


def moved(n: Node, made: Expr) -> Any:
    """A result of stored elements. Where the result has other scales, it is quantised anew."""
    q = n.q(0)
    if n.same_scales() or q is None:
        return made
    return n.result(n.dequantized(made, q), activation=False)


def reshape(n: Node) -> Any:
    """The new shape is the second operand, or an option."""
    b = n.b
    if len(n) > 1 and n.has(1) and b.rank(n.x(1)) == 1:
        return moved(n, n.refined(b.reshape_to(n.x(0), n.x(1))))
    return moved(n, b.reshape(n.x(0), n.options.get("new_shape") or n.out_shape()))


def squeeze(n: Node) -> Any:
    b, x = n.b, n.x(0)
    axes = n.options.get("squeeze_dims") or [i for i, d in enumerate(b.shape(x)) if d == 1]
    return moved(n, b.squeeze(x, [a % b.rank(x) for a in axes]))


def expand_dims(n: Node) -> Any:
    return moved(n, n.b.unsqueeze(n.x(0), n.ints(1, "the axis")))


def transpose(n: Node) -> Any:
    return moved(n, n.b.transpose(n.x(0), n.ints(1, "the order of axes")))


def concatenation(n: Node) -> Any:
    """Operands stored alike are joined as they are."""
    b, count = n.b, len(n)
    axis = n.options["axis"]
    if all(n.same_scales(i) for i in range(count)):
        joined = n.refined(b.concat([n.x(i) for i in range(count)], axis))
        return n.activated(joined) if n.q_out() is None else joined
    if is_whole(n, *range(count), dtypes=STORED):
        quant, out = [n.pair(q) for i in range(count) if (q := n.q(i)) is not None], n.q_out()
        assert out is not None
        pairs = [b.tuple([p[k] for p in quant]) for k in (0, 1)]
        return n.held(b.op("qnn.concatenate", b.tuple([n.x(i) for i in range(count)]), *pairs, *n.pair(out), axis=axis))
    return n.result(b.concat([n.real(i) for i in range(count)], axis))


def pack(n: Node) -> Any:
    b = n.b
    alike = all(n.same_scales(i) for i in range(len(n)))
    stacked = b.op("stack", b.tuple([n.x(i) if alike else n.real(i) for i in range(len(n))]), axis=n.options["axis"])
    return stacked if alike else n.result(stacked, activation=False)


def _results(n: Node, option: str) -> int:
    """The number of results, which an option states, too."""
    count: int = n.options[option]
    if count != len(n.outs):
        raise Unsupported(f"it has {len(n.outs)} results, and its option says {count}")
    return count


def unpack(n: Node) -> Any:
    b, x = n.b, n.x(0)
    axis = n.options["axis"] % b.rank(x)
    return [b.squeeze(b.slice(x, [i], [i + 1], [axis]), [axis]) for i in range(_results(n, "num"))]


def split(n: Node) -> Any:
    """The axis is the first operand."""
    b, count = n.b, _results(n, "num_splits")
    axis = n.ints(0, "the axis")[0] % b.rank(n.x(1))
    size = b.extent(n.x(1), axis) // count
    return [b.slice(n.x(1), [i * size], [(i + 1) * size], [axis]) for i in range(count)]


def split_v(n: Node) -> Any:
    b, x = n.b, n.x(0)
    axis = n.ints(2, "the axis")[0] % b.rank(x)
    sizes = n.ints(1, "the extents of the parts")
    if -1 in sizes:
        sizes[sizes.index(-1)] = b.extent(x, axis) - sum(s for s in sizes if s >= 0)
    ends = np.cumsum(sizes).tolist()
    return [b.slice(x, [e - s], [e], [axis]) for e, s in zip(ends, sizes)]


def pad(n: Node) -> Any:
    """PAD and PADV2: the value of the padding is real 0, or the third operand."""
    b = n.b
    widths = _pairs(n)
    q = n.q(0)
    if n.has(2):
        value = n.x(2)
    else:
        zero = int(q.zero_points[0]) if q is not None else 0
        value = b.const(zero, b.dtype(n.x(0)))
    return moved(n, b.op("nn.pad", n.x(0), b.scalar(value), pad_width=widths))


def _pairs(n: Node) -> list[list[int]]:
    widths = n.ints(1, "the widths of the padding")
    return [widths[i : i + 2] for i in range(0, len(widths), 2)]


def mirror_pad(n: Node) -> Any:
    mode = "SYMMETRIC" if n.options.get("mode") else "REFLECT"
    return moved(n, n.b.op("nn.mirror_pad", n.x(0), pad_width=_pairs(n), mode=mode))


def gather(n: Node) -> Any:
    b, o = n.b, n.options
    axis = o.get("axis", 0) % b.rank(n.x(0))
    return moved(n, b.op("take", n.x(0), n.x(1), axis=axis, batch_dims=o.get("batch_dims", 0)))


def gather_nd(n: Node) -> Any:
    """Relay wants the axis of positions first."""
    b, indices = n.b, n.x(1)
    rank = b.rank(indices)
    return moved(n, b.op("gather_nd", n.x(0), b.transpose(indices, [rank - 1, *range(rank - 1)])))


def scatter_nd(n: Node) -> Any:
    """Updates with the same position are added."""
    b, indices, updates = n.b, n.x(0), n.x(1)
    rank = b.rank(indices)
    zeros = b.op("zeros", shape=n.ints(2, "the shape"), dtype=b.dtype(updates))
    return b.op("scatter_nd", zeros, b.transpose(indices, [rank - 1, *range(rank - 1)]), updates, mode="add")


def tile(n: Node) -> Any:
    b, repeats = n.b, n.x(1)
    known = b.known(repeats)
    if known is not None and None not in known:
        return moved(n, b.op("tile", n.x(0), reps=[int(r) for r in known if r is not None]))
    if b.extent(repeats, 0) > _DEEPEST:
        raise Unsupported(f"its result has {b.extent(repeats, 0)} axes")
    return moved(n, n.refined(b.op("dyn.tile", n.x(0), repeats, reps=None)))


def fill(n: Node) -> Any:
    b, dims = n.b, n.x(0)
    known = b.known(dims)
    if known is None or None in known:
        return b.op("dyn.full", n.x(1), dims, dtype=b.dtype(n.x(1)))
    return b.op("full", n.x(1), shape=[int(d) for d in known if d is not None], dtype=b.dtype(n.x(1)))


def range_(n: Node) -> Any:
    b = n.b
    start, limit, step = (b.scalar(n.x(i)) for i in range(3))
    return b.arange(start, limit, step, n.out_dtype())


def shape(n: Node) -> Any:
    return n.b.shape_of(n.x(0), n.out_dtype())


def rank(n: Node) -> Any:
    return n.b.const(n.b.rank(n.x(0)), "int32")


def zeros_like(n: Node) -> Any:
    return n.b.op("zeros_like", n.x(0))


def broadcast(n: Node) -> Any:
    return moved(n, broadcast_to(n.b, n.x(0), n.x(1)))


def broadcast_args(n: Node) -> Any:
    """The shape that two shapes broadcast to."""
    b, parts = n.b, [n.x(0), n.x(1)]
    longest = max(b.extent(p, 0) for p in parts)
    if longest > _DEEPEST:
        raise Unsupported(f"its shapes have {longest} axes")
    first, second = (_padded_shape(n, p, longest) for p in parts)
    return b.op("where", b.op("equal", first, 1), second, first)


def _padded_shape(n: Node, shape: Expr, rank: int) -> Expr:
    b, missing = n.b, rank - n.b.extent(shape, 0)
    return b.concat([b.const(b.arrays.ones(missing), b.dtype(shape)), shape], 0) if missing else shape


def space_to_depth(n: Node) -> Any:
    return moved(n, n.b.op("nn.space_to_depth", n.x(0), block_size=n.options["block_size"], layout="NHWC"))


def depth_to_space(n: Node) -> Any:
    return moved(n, n.b.op("nn.depth_to_space", n.x(0), block_size=n.options["block_size"], layout="NHWC", mode="DCR"))


def space_to_batch(n: Node) -> Any:
    q = n.q(0)
    amounts = n.ints(2, "the paddings")
    return moved(
        n,
        n.b.op(
            "nn.space_to_batch_nd",
            n.x(0),
            block_shape=n.ints(1, "the block"),
            paddings=[amounts[i : i + 2] for i in range(0, len(amounts), 2)],
            pad_value=float(q.zero_points[0]) if q else 0.0,
        ),
    )


def batch_to_space(n: Node) -> Any:
    amounts = n.ints(2, "the crops")
    crops = [amounts[i : i + 2] for i in range(0, len(amounts), 2)]
    return moved(n, n.b.op("nn.batch_to_space_nd", n.x(0), block_shape=n.ints(1, "the block"), crops=crops))


def reverse(n: Node) -> Any:
    x = n.x(0)
    for axis in n.ints(1, "the axes"):
        x = n.b.op("reverse", x, axis=axis)
    return moved(n, x)


def reverse_sequence(n: Node) -> Any:
    o = n.options
    return n.b.op("reverse_sequence", n.x(0), n.x(1), seq_axis=o["seq_dim"], batch_axis=o["batch_dim"])


def one_hot(n: Node) -> Any:
    depth = n.ints(1, "the depth")[0]
    return n.b.op(
        "one_hot", n.x(0), n.b.scalar(n.x(2)), n.b.scalar(n.x(3)), depth=depth, axis=n.options.get("axis", -1), dtype=n.out_dtype()
    )


def where(n: Node) -> Any:
    """The positions of the elements that hold, a row each."""
    return n.b.cast(n.b.op("argwhere", n.x(0)), "int64")


def matrix_diag(n: Node) -> Any:
    b, x = n.b, n.x(0)
    shape = [*b.static_shape(x), b.extent(x, b.rank(x) - 1)]
    return b.op("matrix_set_diag", b.op("zeros", shape=shape, dtype=b.dtype(x)), x)


def matrix_set_diag(n: Node) -> Any:
    return n.b.op("matrix_set_diag", n.x(0), n.x(1))


def dynamic_update_slice(n: Node) -> Any:
    """The update at a place; the place is moved inwards where the update would leave the operand."""
    b, x, update, place = n.b, n.x(0), n.x(1), n.x(2)
    limits = np.subtract(b.static_shape(x), b.static_shape(update, "the update", b.rank(x)))
    place = b.op("maximum", b.op("minimum", place, b.const(limits, b.dtype(place))), 0)
    return at_place(b, x, update, place)


RULES = (
    Rule("BATCH_TO_SPACE_ND", batch_to_space),
    Rule("BROADCAST_ARGS", broadcast_args),
    Rule("BROADCAST_TO", broadcast),
    Rule("CONCATENATION", concatenation),
    Rule("DEPTH_TO_SPACE", depth_to_space),
    Rule("DYNAMIC_UPDATE_SLICE", dynamic_update_slice),
    Rule("EMBEDDING_LOOKUP", lambda n: n.result(n.b.op("take", n.real(1), n.x(0), axis=0), activation=False)),
    Rule("EXPAND_DIMS", expand_dims),
    Rule("FILL", fill),
    Rule("GATHER", gather),
    Rule("GATHER_ND", gather_nd),
    Rule("MATRIX_DIAG", matrix_diag),
    Rule("MATRIX_SET_DIAG", matrix_set_diag),
    Rule("MIRROR_PAD", mirror_pad),
    Rule("ONE_HOT", one_hot),
    Rule("PACK", pack),
    Rule("PAD", pad),
    Rule("PADV2", pad),
    Rule("RANGE", range_),
    Rule("RANK", rank),
    Rule("RESHAPE", reshape),
    Rule("REVERSE_SEQUENCE", reverse_sequence),
    Rule("REVERSE_V2", reverse),
    Rule("SCATTER_ND", scatter_nd),
    Rule("SHAPE", shape),
    Rule("SPACE_TO_BATCH_ND", space_to_batch),
    Rule("SPACE_TO_DEPTH", space_to_depth),
    Rule("SPLIT", split),
    Rule("SPLIT_V", split_v),
    Rule("SQUEEZE", squeeze),
    Rule("TILE", tile),
    Rule("TRANSPOSE", transpose),
    Rule("UNPACK", unpack),
    Rule("WHERE", where),
    Rule("ZEROS_LIKE", zeros_like),
)
