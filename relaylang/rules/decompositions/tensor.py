"""Blocks, buffers, enlargements, grids and losses as reshapes, slices, sums and arithmetic."""

from __future__ import annotations

import math

from relaylang.ir import Call, Expr, TensorType, Tuple, TupleType
from relaylang.ir.typed import typed, typed_tuple
from relaylang.ops.build import op_call, scalar
from relaylang.ops.image import METHODS
from relaylang.ops.shapes import split_layout
from relaylang.rules.decompositions.common import Decomposition, cast, dtype_of, known, make, reshape, shape_of, total, transpose, two


def _space_to_batch(call: Call, args: list[Expr]) -> Expr | None:
    data = args[0]
    attrs = call.attrs
    blocks = [int(b) for b in attrs.block_shape]
    count = len(blocks)
    old = known(data)
    widths = [(0, 0), *[(int(a), int(b)) for a, b in attrs.paddings]]
    widths += [(0, 0)] * (len(old) - len(widths))
    padded = [n + a + b for n, (a, b) in zip(old, widths)]
    if padded != list(old):
        data = make(
            "nn.pad", [data, scalar(attrs.pad_value, dtype_of(data))], padded, pad_width=[list(w) for w in widths], pad_mode="constant"
        )
    space, rest = padded[1 : 1 + count], padded[1 + count :]
    cut = reshape(data, [old[0], *[m for n, b in zip(space, blocks) for m in (n // b, b)], *rest])
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, 1 + 2 * count + len(rest))]
    return reshape(transpose(cut, order), [old[0] * math.prod(blocks), *[n // b for n, b in zip(space, blocks)], *rest])


def _batch_to_space(call: Call, args: list[Expr]) -> Expr | None:
    data = args[0]
    blocks = [int(b) for b in call.attrs.block_shape]
    count = len(blocks)
    old = known(data)
    batch, space, rest = old[0] // math.prod(blocks), old[1 : 1 + count], old[1 + count :]
    cut = reshape(data, [*blocks, batch, *space, *rest])
    order = [count, *[a for i in range(count) for a in (count + 1 + i, i)], *range(2 * count + 1, 2 * count + 1 + len(rest))]
    joined = [batch, *[n * b for n, b in zip(space, blocks)], *rest]
    image = reshape(transpose(cut, order), joined)
    crops = [(0, 0), *[(int(a), int(b)) for a, b in call.attrs.crops]]
    crops += [(0, 0)] * (len(joined) - len(crops))
    if not any(a or b for a, b in crops):
        return image
    end = [n - b for n, (_, b) in zip(joined, crops)]
    left = [e - a for e, (a, _) in zip(end, crops)]
    return make("strided_slice", [image], left, begin=[a for a, _ in crops], end=end, strides=[1])


def _yolo_reorg(call: Call, args: list[Expr]) -> Expr | None:
    """Each batch as (C / s**2, H * s, W * s), whose pixels of one phase become one channel."""
    s = call.attrs.stride
    n, channels, height, width = known(args[0])
    split = reshape(args[0], [n, channels // (s * s), height, s, width, s])
    return reshape(transpose(split, [0, 3, 5, 1, 2, 4]), [n, channels * s * s, height // s, width // s])


def _fifo_buffer(call: Call, args: list[Expr]) -> Expr | None:
    data, buffer = args
    held, new = known(buffer), known(data)
    axis = call.attrs.axis % len(held)
    both = [n + m if d == axis else n for d, (n, m) in enumerate(zip(held, new))]
    joined = op_call("concatenate", [typed_tuple([buffer, data])], TensorType(both, dtype_of(data)), axis=axis)
    begin = [new[axis] if d == axis else 0 for d in range(len(held))]
    return make("strided_slice", [joined], held, begin=begin, end=both, strides=[1])


def _upsampling(call: Call, args: list[Expr]) -> Expr | None:
    attrs, shape = call.attrs, known(call)
    letters = [letter for letter, _ in split_layout(attrs.layout)]
    size = [shape[letters.index(c)] for c in "DHW" if c in letters]
    if hasattr(attrs, "coordinate_transformation_mode"):
        mode = attrs.coordinate_transformation_mode
    else:
        mode = "align_corners" if attrs.align_corners else "asymmetric"
    return make(
        f"image.resize{len(size)}d",
        args,
        shape,
        size=size,
        roi=[0.0] * (2 * len(size)),
        layout=attrs.layout,
        method=METHODS.get(attrs.method, attrs.method),
        coordinate_transformation_mode=mode,
        rounding_method="",
    )


def _meshgrid(call: Call, args: list[Expr]) -> Expr | None:
    vectors = args[0]
    ty = call.checked_type
    if not isinstance(vectors, Tuple) or not isinstance(ty, TupleType):
        return None
    out = []
    for number, (part, own) in enumerate(zip(vectors.fields, ty.fields)):
        assert isinstance(own, TensorType)
        rank = len(own.shape)
        axis = 1 - number if call.attrs.indexing == "xy" and number < 2 and rank > 1 else number
        length = math.prod(known(part))
        line = reshape(part, [length if d == axis else 1 for d in range(rank)])
        out.append(make("broadcast_to", [line], own.shape, shape=list(own.shape)))  # type: ignore[arg-type]
    return typed(Tuple(out), ty)


def _collapse_sum(call: Call, args: list[Expr]) -> Expr | None:
    ty = call.checked_type
    old = shape_of(args[0])
    if not isinstance(ty, TensorType) or old is None or not all(isinstance(d, int) for d in ty.shape):
        return None
    shape: list[int] = []
    axes: list[int] = []
    for own, extent in zip((*[1] * (len(old) - len(ty.shape)), *ty.shape), old):
        if own != extent:
            axes.append(len(shape) + (own != 1))
        # One that a run knows may be 1, or the data's.
        shape += [extent] if own in (1, extent) else [own, extent // own]  # type: ignore[list-item, operator]
    data = args[0] if len(shape) == len(old) else reshape(args[0], shape)
    if ty.dtype != "bool":
        return reshape(total(data, axes), ty.shape)  # type: ignore[arg-type]
    # Of truth values, this sum is modulo 2.
    rest = two("bitwise_and", total(cast(data, "int32"), axes), scalar(1, "int32"))
    return reshape(cast(rest, "bool"), ty.shape)  # type: ignore[arg-type]


def _cross_entropy(logits: bool) -> Decomposition:
    """The mean of the rows' losses."""

    def rewrite(call: Call, args: list[Expr]) -> Expr | None:
        x, y = args
        powers = x if logits else make("log", [x], known(x))
        losses = total(two("multiply", powers, y), range(1, len(known(x))))
        return make("negative", [total(losses, [0], how="mean")], [])

    return rewrite


RULES: dict[str, Decomposition] = {
    "nn.space_to_batch_nd": _space_to_batch,
    "nn.batch_to_space_nd": _batch_to_space,
    "vision.yolo_reorg": _yolo_reorg,
    "nn.fifo_buffer": _fifo_buffer,
    "nn.upsampling": _upsampling,
    "nn.upsampling3d": _upsampling,
    "meshgrid": _meshgrid,
    "collapse_sum_like": _collapse_sum,
    "collapse_sum_to": _collapse_sum,
    "nn.cross_entropy": _cross_entropy(logits=False),
    "nn.cross_entropy_with_logits": _cross_entropy(logits=True),
}
