"""Operators that move elements: shapes, slices, joins, tensors of one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import cuts, mirrored, permutation, result, shape_of, slices
from relaylang.export.onnx.emitter import Emitter
from relaylang.export.onnx.kernels import carrier
from relaylang.export.walk import Value
from relaylang.ir import Call

_END = 2**63 - 1
#: The element types of onnxruntime's DepthToSpace and SpaceToDepth.
_BLOCKS = ("float32", "float64", "float16", "int8", "uint8")


def extents(call: Call) -> list[int] | None:
    """The result's shape with -1 for its one open extent; None where more are open."""
    shape = [n if isinstance(n, int) else -1 for n in result(call).shape]
    return shape if shape.count(-1) <= 1 and not (-1 in shape and 0 in shape) else None


def reshape(e: Emitter, call: Call, x: Value, *_: Value) -> Value:
    shape = extents(call)
    if shape is None:
        return e.op("Reshape", x, _by_codes(e, call, x), allowzero=0)
    return e.op("Reshape", x, e.ints(shape), allowzero=1 if 0 in shape else None)


def _by_codes(e: Emitter, call: Call, x: Value) -> Value:
    """The new shape, of which several extents are open, from the data's shape and the codes of `newshape`."""
    parts: list[Value] = []
    at = 0
    codes = [int(n) for n in getattr(call.attrs, "newshape", ())]
    if not codes or getattr(call.attrs, "allowzero", False):
        raise Unsupported("more than one extent of the result is open")

    def taken(count: int) -> Value:
        return e.op("Shape", x, start=at, end=at + count)

    while codes:
        code = codes.pop(0)
        if code == -2:
            parts.append(taken(x.rank - at))
            at = x.rank
        elif code == -3:
            parts.append(e.op("ReduceProd", taken(2), e.ints([0], "axes"), keepdims=1))
            at += 2
        elif code == -4:
            left, right = codes.pop(0), codes.pop(0)
            if left == -1 and right == -1:
                raise Unsupported("an extent is split in two open ones")
            known = e.ints([right if left == -1 else left])
            other = e.op("Div", taken(1), known)
            parts += [other, known] if left == -1 else [known, other]
            at += 1
        else:
            parts.append(taken(1) if code == 0 else e.ints([code]))
            at += 1
    return e.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


def dyn_reshape(e: Emitter, call: Call, x: Value, shape: Value) -> Value:
    return e.op("Reshape", x, e.cast(shape, "int64"))


def reshape_like(e: Emitter, call: Call, x: Value, like: Value) -> Value:
    attrs: Any = call.attrs
    if extents(call) is not None:
        return reshape(e, call, x)

    def ends(begin: int, end: int | None, rank: int) -> tuple[int, int]:
        last = rank if end is None else end
        return begin + rank * (begin < 0), last + rank * (last < 0)

    (a, b), (p, q) = ends(attrs.lhs_begin, attrs.lhs_end, x.rank), ends(attrs.rhs_begin, attrs.rhs_end, like.rank)
    parts = [e.op("Shape", v, start=m, end=n) for v, m, n in ((x, 0, a), (like, p, q), (x, b, x.rank)) if n > m]
    return e.op("Reshape", x, e.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0], allowzero=1)


def transpose(e: Emitter, call: Call, x: Value) -> Value:
    return e.op("Transpose", x, perm=permutation(call, x.rank)) if x.rank else e.op("Identity", x)


def expand_dims(e: Emitter, call: Call, x: Value, *_: Value) -> Value:
    attrs: Any = call.attrs
    axis = int(attrs.axis)
    rank = x.rank + attrs.num_newaxis
    begin = axis if axis >= 0 else axis + x.rank + 1
    return e.op("Unsqueeze", x, e.ints([begin + i for i in range(rank - x.rank)], "axes"))


def squeeze(e: Emitter, call: Call, x: Value, *given: Value) -> Value:
    attrs: Any = call.attrs
    if given:
        return e.op("Squeeze", x, e.cast(given[0], "int64"))
    axes = attrs.axis
    if axes is None:
        axes = [i for i, n in enumerate(x.static()) if n == 1]
    return e.op("Squeeze", x, e.ints([int(a) % x.rank for a in axes], "axes")) if len(axes) else e.op("Identity", x)


def tile(e: Emitter, call: Call, x: Value, *_: Value) -> Value:
    attrs: Any = call.attrs
    reps = [int(n) for n in attrs.reps]
    rank = max(len(reps), x.rank)
    x = e.unsqueeze(x, list(range(rank - x.rank)))
    return e.op("Tile", x, e.ints([1] * (rank - len(reps)) + reps, "repeats"))


def dyn_tile(e: Emitter, call: Call, x: Value, reps: Value) -> Value:
    count = reps.extent(0)
    x = e.unsqueeze(x, list(range(count - x.rank))) if count > x.rank else x
    repeats = e.cast(reps, "int64")
    if count < x.rank:
        repeats = e.op("Concat", e.ints([1] * (x.rank - count)), repeats, axis=0)
    return e.op("Tile", x, repeats)


def dyn_pad(e: Emitter, call: Call, x: Value, widths: Value, value: Value) -> Value:
    attrs: Any = call.attrs
    flat = e.reshape(e.op("Transpose", e.cast(widths, "int64"), perm=[1, 0]), [-1])
    return e.op("Pad", x, flat, e.cast(value, x.dtype), mode=attrs.pad_mode)


def repeat(e: Emitter, call: Call, x: Value) -> Value:
    attrs: Any = call.attrs
    rank, axis = x.rank, 0
    if attrs.axis is None:
        x, rank = e.reshape(x, [-1]), 1
    else:
        axis = attrs.axis % rank
    sides = []
    if axis:
        sides.append(e.op("Shape", x, end=axis))
    sides.append(e.ints([-1]))
    if axis < rank - 1:
        sides.append(e.op("Shape", x, start=axis + 1))
    shape = e.op("Concat", *sides, axis=0) if len(sides) > 1 else sides[0]
    repeats = [attrs.repeats if i == axis + 1 else 1 for i in range(rank + 1)]
    return e.op("Reshape", e.op("Tile", e.unsqueeze(x, [axis + 1]), e.ints(repeats, "repeats")), shape, allowzero=0)


def reverse(e: Emitter, call: Call, x: Value) -> Value:
    attrs: Any = call.attrs
    return e.op("Slice", x, e.ints([-1]), e.ints([-_END]), e.ints([attrs.axis % x.rank]), e.ints([-1]))


def reverse_sequence(e: Emitter, call: Call, x: Value, lengths: Value) -> Value:
    attrs: Any = call.attrs
    time, batch = attrs.seq_axis % x.rank, attrs.batch_axis % x.rank
    if sorted((time, batch)) == [0, 1]:
        return e.op("ReverseSequence", x, e.cast(lengths, "int64"), time_axis=time, batch_axis=batch)
    axes = [time, batch, *[a for a in range(x.rank) if a not in (time, batch)]]
    turned = e.op("ReverseSequence", e.transpose(x, axes), e.cast(lengths, "int64"), time_axis=0, batch_axis=1)
    return e.op("Transpose", turned, perm=[axes.index(a) for a in range(x.rank)])


def broadcast_to(e: Emitter, call: Call, x: Value, *_: Value) -> Value:
    return e.op("Expand", x, e.ints(shape_of(call)))


def broadcast_like(e: Emitter, call: Call, x: Value, like: Value) -> Value:
    return e.op("Expand", x, e.op("Shape", like))


def zeros(value: float) -> Any:
    def rule(e: Emitter, call: Call, *shape: Value) -> Value:
        number = e.scalar(value, result(call).dtype)
        return e.op("Expand", number, e.cast(shape[0], "int64") if shape else e.ints(shape_of(call)))

    return rule


def full(e: Emitter, call: Call, value: Value, *shape: Value) -> Value:
    number = e.cast(value, result(call).dtype)
    return e.op("Expand", number, e.cast(shape[0], "int64") if shape else e.ints(shape_of(call)))


def arange(e: Emitter, call: Call, start: Value, stop: Value, step: Value) -> Value:
    dtype = result(call).dtype
    return e.op("Range", *[e.cast(v, dtype) for v in (start, stop, step)])


def one_hot(e: Emitter, call: Call, indices: Value, on: Value, off: Value) -> Value:
    attrs: Any = call.attrs
    return _hot(e, call, indices, on, off, e.ints([attrs.depth], "depth"))


def _hot(e: Emitter, call: Call, indices: Value, on: Value, off: Value, depth: Value) -> Value:
    """OneHot counts negative indices from the end. Relay has no hot element for them: they move beyond `depth`.

    onnxruntime has OneHot of int64; its result chooses between the values.
    """
    attrs: Any = call.attrs
    dtype = result(call).dtype
    axis = attrs.axis % (indices.rank + 1)
    wide = e.cast(indices, "int64")
    if not indices.rank:
        wide, axis = e.unsqueeze(wide, [0]), 1
    within = e.op("Where", e.op("Less", wide, e.scalar(0, "int64")), depth, wide)  # `depth` itself is beyond
    hot = e.op("OneHot", within, depth, e.ints([0, 1], "values"), axis=axis)
    encoded = e.op("Where", e.cast(hot, "bool", "int64"), e.cast(on, dtype), e.cast(off, dtype))
    return encoded if indices.rank else e.op("Squeeze", encoded, e.ints([0], "axes"))


def extents_of(e: Emitter, call: Call, x: Value) -> Value:
    if not x.rank:
        raise Unsupported("a scalar has no extents")
    return e.cast(e.op("Shape", x), result(call).dtype, "int64")


def ndarray_size(e: Emitter, call: Call, x: Value) -> Value:
    return e.cast(e.op("Size", x), result(call).dtype, "int64")


def concatenate(e: Emitter, call: Call, parts: list[Value]) -> Value:
    attrs: Any = call.attrs
    return e.op("Concat", *parts, axis=attrs.axis)


def stack(e: Emitter, call: Call, parts: list[Value]) -> Value:
    attrs: Any = call.attrs
    axis = attrs.axis % (parts[0].rank + 1)
    return e.op("Concat", *[e.unsqueeze(p, [axis]) for p in parts], axis=axis)


def split(e: Emitter, call: Call, x: Value) -> list[Value]:
    attrs: Any = call.attrs
    axis = attrs.axis % x.rank
    sizes = [b - a for a, b in cuts(call, x.extent(axis))]
    parts = e.op("Split", x, e.ints(sizes, "sizes"), axis=axis, outputs=len(sizes))
    return parts if isinstance(parts, list) else [parts]


def strided_slice(e: Emitter, call: Call, x: Value) -> Value:
    axes, begin, end, strides = [], [], [], []
    for axis, first, last, stride in slices(call, x.rank):
        axes.append(axis)
        begin.append((0 if stride > 0 else _END) if first is None else first)
        end.append((_END if stride > 0 else -_END) if last is None else max(min(last, _END), -_END))
        strides.append(stride)
    return e.op("Slice", x, e.ints(begin, "begin"), e.ints(end, "end"), e.ints(axes, "axes"), e.ints(strides, "strides"))


def dyn_strided_slice(e: Emitter, call: Call, x: Value, begin: Value, end: Value, strides: Value) -> Value:
    attrs: Any = call.attrs
    if attrs.slice_mode != "end":
        raise Unsupported("the slice mode is not end")
    axes = [a % x.rank for a in attrs.axes] if attrs.axes else list(range(begin.extent(0)))
    if x.name in e.padded and axes == [0, 1] and _to_count(e, begin, end, strides, e.padded[x.name][1]):
        return e.padded[x.name][0]
    first, last, by = [e.cast(v, "int64") for v in (begin, end, strides)]
    return e.op("Slice", x, first, last, e.ints(axes, "axes"), by)


def _to_count(e: Emitter, begin: Value, end: Value, strides: Value, count: Value) -> bool:
    """Whether a slice takes the first `count` rows of three columns."""
    layer = e.origin(end.name, ())
    if begin.data is None or begin.data.any() or strides.data is None or (strides.data != 1).any():
        return False
    if layer is None or layer.op_type != "Concat" or len(layer.input) != 2:
        return False
    columns = next((v.data for v in e.numbers.values() if v.name == layer.input[1]), None)
    rows = layer.input[0]
    maker = e.origin(rows, ("Reshape", "Cast", "Identity"))
    return maker is not None and count.name in maker.output and columns is not None and columns.tolist() == [3]


def slice_like(e: Emitter, call: Call, x: Value, like: Value) -> Value:
    attrs: Any = call.attrs
    axes = [a % x.rank for a in attrs.axes] if attrs.axes else list(range(like.rank))
    ends = [like.extent(a) for a in axes]
    return e.op("Slice", x, e.ints([0] * len(axes)), e.ints(ends, "end"), e.ints(axes, "axes"))


def pad(e: Emitter, call: Call, x: Value, value: Value) -> Value:
    attrs: Any = call.attrs
    widths = [int(a) for a, _ in attrs.pad_width] + [int(b) for _, b in attrs.pad_width]
    if attrs.pad_mode != "constant" and min(widths, default=0) < 0:
        raise Unsupported(f"it crops in the mode {attrs.pad_mode}")
    if int(np.prod(value.static("its value"))) != 1:
        raise Unsupported("it has several values to pad with")
    if not x.rank:  # onnxruntime pads no scalar
        return x
    return e.op("Pad", x, e.ints(widths, "widths"), e.cast(value, x.dtype), mode=attrs.pad_mode)


def mirror_pad(e: Emitter, call: Call, x: Value) -> Value:
    attrs: Any = call.attrs
    pairs = [(int(a), int(b)) for a, b in attrs.pad_width]
    if attrs.mode == "SYMMETRIC":
        for axis, (a, b) in enumerate(pairs):
            if a or b:
                indices = mirrored(x.extent(axis), a, b, "symmetric")
                x = e.op("Gather", x, e.array(indices, "indices"), axis=axis, ty=x.type)
        return x
    return e.op("Pad", x, e.ints([a for a, _ in pairs] + [b for _, b in pairs], "widths"), mode="reflect")


def batch_flatten(e: Emitter, call: Call, x: Value) -> Value:
    return e.op("Flatten", x, axis=1)


def depth_to_space(e: Emitter, call: Call, x: Value) -> Value:
    """onnxruntime has few kernels of it; transposed blocks are the same for all element types."""
    attrs: Any = call.attrs
    size, first = attrs.block_size, attrs.mode == "DCR"
    x, back = channels_first(e, x, attrs.layout)
    if carrier("DepthToSpace", x.dtype) in _BLOCKS:
        return back(e.op("DepthToSpace", x, blocksize=size, mode="DCR" if first else "CRD"))
    n, c, h, w = x.static()
    kept = c // size**2
    blocks = e.reshape(x, [n, size, size, kept, h, w] if first else [n, kept, size, size, h, w])
    moved = e.op("Transpose", blocks, perm=[0, 3, 4, 1, 5, 2] if first else [0, 1, 4, 2, 5, 3])
    return back(e.reshape(moved, [n, kept, h * size, w * size]))


def space_to_depth(e: Emitter, call: Call, x: Value) -> Value:
    attrs: Any = call.attrs
    size = attrs.block_size
    x, back = channels_first(e, x, attrs.layout)
    if carrier("SpaceToDepth", x.dtype) in _BLOCKS:
        return back(e.op("SpaceToDepth", x, blocksize=size))
    n, c, h, w = x.static()
    blocks = e.reshape(x, [n, c, h // size, size, w // size, size])
    moved = e.op("Transpose", blocks, perm=[0, 3, 5, 1, 2, 4])
    return back(e.reshape(moved, [n, c * size**2, h // size, w // size]))


def channels_first(e: Emitter, x: Value, layout: str, out_layout: str = "") -> tuple[Value, Any]:
    """Data as (N, C, space), and what brings a result back. Raises `Unsupported` for layouts with blocks."""
    plain = "NC" + "".join(c for c in layout if c not in "NC")
    if sorted(plain) != sorted(layout) or (out_layout and sorted(out_layout) != sorted(plain)):
        raise Unsupported(f"the layout {out_layout or layout} is not one of N, C and space")
    if not layout.isalpha() or not layout.isupper() or (out_layout and not out_layout.isalpha()):
        raise Unsupported(f"the layout {layout} has blocks")
    axes = [layout.index(c) for c in plain]
    out = out_layout or layout
    return e.transpose(x, axes), lambda y: e.transpose(y, [plain.index(c) for c in out])


RULES = {
    "reshape": reshape,
    "contrib_reverse_reshape": reshape,
    "dyn.reshape": dyn_reshape,
    "vm.reshape_tensor": dyn_reshape,
    "reshape_like": reshape_like,
    "transpose": transpose,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "dyn.squeeze": squeeze,
    "tile": tile,
    "dyn.tile": dyn_tile,
    "dyn.nn.pad": dyn_pad,
    "dyn.one_hot": lambda e, call, indices, on, off, depth: _hot(e, call, indices, on, off, e.reshape(e.cast(depth, "int64"), [1])),
    "repeat": repeat,
    "reverse": reverse,
    "reverse_sequence": reverse_sequence,
    "broadcast_to": broadcast_to,
    "dyn.broadcast_to": lambda e, call, x, shape: e.op("Expand", x, e.cast(shape, "int64")),
    "broadcast_to_like": broadcast_like,
    "zeros": zeros(0),
    "ones": zeros(1),
    "dyn.zeros": zeros(0),
    "dyn.ones": zeros(1),
    "full": full,
    "dyn.full": full,
    "arange": arange,
    "one_hot": one_hot,
    "shape_of": extents_of,
    "vm.shape_of": extents_of,
    "ndarray_size": ndarray_size,
    "concatenate": concatenate,
    "stack": stack,
    "split": split,
    "strided_slice": strided_slice,
    "dyn.strided_slice": dyn_strided_slice,
    "slice_like": slice_like,
    "nn.pad": pad,
    "nn.mirror_pad": mirror_pad,
    "nn.batch_flatten": batch_flatten,
    "nn.depth_to_space": depth_to_space,
    "nn.space_to_depth": space_to_depth,
}

__all__ = ["RULES", "channels_first", "extents"]
