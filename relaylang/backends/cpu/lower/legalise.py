"""Operators composed of other operators: transposed convolutions, blocks, layouts, losses, quantised products.

Each is replaced, before fusion, by the operators that compute it. So these are fused and scheduled like any others, and
values of bound weights alone are computed once. Integers come out the same to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np

from relaylang.backends.cpu.lower.blocks import CONVOLUTIONS, PLAIN, POOLS, convolution, layout_transform, plain, pool
from relaylang.backends.cpu.lower.calls import (
    cast,
    dtype_of,
    less_zero,
    made_call,
    reshape,
    shape_known,
    shape_of,
    total,
    transpose,
    two,
)
from relaylang.backends.cpu.lower.conv_transpose import conv_transpose, qnn_conv_transpose
from relaylang.ir import Call, Constant, Expr, TensorType, Tuple, TupleType, children, post_order, rebuild
from relaylang.ir.typed import retype, typed, typed_tuple
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.sizes import has_sizes
from relaylang.ops.build import op_call, scalar
from relaylang.ops.image import METHODS
from relaylang.ops.record import Op
from relaylang.ops.shapes import split_layout
from relaylang.ops.traits import Trait

Rewrite = Callable[[Call, list[Expr]], "Expr | None"]


def _qnn_batch_matmul(call: Call, args: list[Expr]) -> Expr | None:
    x, y, x_zero, y_zero = args[:4]
    assert isinstance(call.checked_type, TensorType)
    if call.checked_type.dtype != "int32":
        return None
    return op_call(
        "nn.batch_matmul",
        [less_zero(x, x_zero, 0), less_zero(y, y_zero, 0)],
        call.checked_type,
        out_dtype="int32",
        transpose_a=call.attrs.transpose_a,
        transpose_b=call.attrs.transpose_b,
    )


def _dense_pack(call: Call, args: list[Expr]) -> Expr | None:
    """A product with weights in blocks of (inputs, units[, inputs]), which become rows again."""
    x, weight = args[:2]
    a, b, c, d = (*shape_known(weight), 1)[:4]
    rows = reshape(transpose(reshape(weight, [a, b, c, d]), [0, 2, 1, 3]), [a * c, b * d])
    if len(args) > 2:
        x, rows = less_zero(x, args[2], 0), less_zero(rows, args[3], 0)
    assert isinstance(call.checked_type, TensorType)
    return op_call("nn.dense", [x, rows], call.checked_type, units=a * c, out_dtype=call.checked_type.dtype)


# Blocks and layouts


def _space_to_batch(call: Call, args: list[Expr]) -> Expr | None:
    data = args[0]
    attrs = call.attrs
    blocks = [int(b) for b in attrs.block_shape]
    count = len(blocks)
    old = shape_known(data)
    widths = [(0, 0), *[(int(a), int(b)) for a, b in attrs.paddings]]
    widths += [(0, 0)] * (len(old) - len(widths))
    padded = [n + a + b for n, (a, b) in zip(old, widths)]
    if padded != list(old):
        data = made_call(
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
    old = shape_known(data)
    batch, space, rest = old[0] // math.prod(blocks), old[1 : 1 + count], old[1 + count :]
    cut = reshape(data, [*blocks, batch, *space, *rest])
    order = [count, *[a for i in range(count) for a in (count + 1 + i, i)], *range(2 * count + 1, 2 * count + 1 + len(rest))]
    joined = [batch, *[n * b for n, b in zip(space, blocks)], *rest]
    whole = reshape(transpose(cut, order), joined)
    crops = [(0, 0), *[(int(a), int(b)) for a, b in call.attrs.crops]]
    crops += [(0, 0)] * (len(joined) - len(crops))
    if not any(a or b for a, b in crops):
        return whole
    end = [n - b for n, (_, b) in zip(joined, crops)]
    left = [e - a for e, (a, _) in zip(end, crops)]
    return made_call("strided_slice", [whole], left, begin=[a for a, _ in crops], end=end, strides=[1])


def _yolo_reorg(call: Call, args: list[Expr]) -> Expr | None:
    """Each batch as (C / s**2, H * s, W * s), whose pixels of one phase become one channel."""
    s = call.attrs.stride
    n, channels, height, width = shape_known(args[0])
    split = reshape(args[0], [n, channels // (s * s), height, s, width, s])
    return reshape(transpose(split, [0, 3, 5, 1, 2, 4]), [n, channels * s * s, height // s, width // s])


def _fifo_buffer(call: Call, args: list[Expr]) -> Expr | None:
    data, buffer = args
    held, new = shape_known(buffer), shape_known(data)
    axis = call.attrs.axis % len(held)
    both = [n + m if d == axis else n for d, (n, m) in enumerate(zip(held, new))]
    whole = op_call("concatenate", [typed_tuple([buffer, data])], TensorType(both, dtype_of(data)), axis=axis)
    begin = [new[axis] if d == axis else 0 for d in range(len(held))]
    return made_call("strided_slice", [whole], held, begin=begin, end=both, strides=[1])


def _upsampling(call: Call, args: list[Expr]) -> Expr | None:
    attrs, shape = call.attrs, shape_known(call)
    letters = [letter for letter, _ in split_layout(attrs.layout)]
    size = [shape[letters.index(c)] for c in "DHW" if c in letters]
    if hasattr(attrs, "coordinate_transformation_mode"):
        mode = attrs.coordinate_transformation_mode
    else:
        mode = "align_corners" if attrs.align_corners else "asymmetric"
    return made_call(
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
    given = args[0]
    ty = call.checked_type
    if not isinstance(given, Tuple) or not isinstance(ty, TupleType):
        return None
    out = []
    for number, (part, own) in enumerate(zip(given.fields, ty.fields)):
        assert isinstance(own, TensorType)
        rank = len(own.shape)
        axis = 1 - number if call.attrs.indexing == "xy" and number < 2 and rank > 1 else number
        length = math.prod(shape_known(part))
        line = reshape(part, [length if d == axis else 1 for d in range(rank)])
        out.append(made_call("broadcast_to", [line], own.shape, shape=list(own.shape)))  # type: ignore[arg-type]
    return typed(Tuple(out), ty)


def _collapse_sum(call: Call, args: list[Expr]) -> Expr | None:
    ty = call.checked_type
    old = shape_of(args[0])
    if not isinstance(ty, TensorType) or old is None or not all(isinstance(d, int) for d in ty.shape):
        return None
    behind = len(old) - len(ty.shape)
    axes = [d for d, n in enumerate(old) if d < behind or (ty.shape[d - behind] == 1 and n != 1)]
    if ty.dtype != "bool":
        return reshape(total(args[0], axes), ty.shape)  # type: ignore[arg-type]
    # Of truth values, this sum is modulo 2.
    rest = two("bitwise_and", total(cast(args[0], "int32"), axes), scalar(1, "int32"))
    return reshape(cast(rest, "bool"), ty.shape)  # type: ignore[arg-type]


# Losses


def _cross_entropy(logits: bool) -> Rewrite:
    def rewrite(call: Call, args: list[Expr]) -> Expr | None:
        x, y = args
        dtype = dtype_of(x)
        powers = x if logits else made_call("log", [x], shape_known(x))
        whole = total(two("multiply", powers, y), range(len(shape_known(x))))
        return two("divide", made_call("negative", [whole], []), scalar(max(shape_known(x)[0], 1), dtype))

    return rewrite


# Quantised functions


def _qnn_softmax(call: Call, args: list[Expr]) -> Expr | None:
    """The integer softmax of the interpreter's kernel, operator by operator."""
    x, in_scale, in_zero, scale, zero = args
    axis = call.attrs.axis % len(shape_known(x))
    if shape_known(in_scale) or shape_known(in_zero):
        return None

    def number(value: int) -> Expr:
        return scalar(value, "int32")

    unit = cast(made_call("round", [two("divide", scalar(1.0, "float32"), in_scale)], []), "int32")
    minus = made_call("negative", [unit], [])
    shifted = less_zero(x, in_zero, 0)
    apart = two("subtract", shifted, total(shifted, [axis], True, "max"))
    power = two("add", apart, two("right_shift", apart, number(1)))
    power = two("subtract", power, two("right_shift", apart, number(4)))
    whole = two("floor_divide", two("subtract", power, two("trunc_mod", power, minus)), minus)
    whole = made_call("clip", [whole], shape_known(whole), a_min=0.0, a_max=20.0)
    rest = two("add", power, two("multiply", whole, unit))
    left = two("subtract", total(whole, [axis], True, "max"), whole)
    powers = two("left_shift", two("add", two("right_shift", rest, number(1)), unit), left)
    sums = total(powers, [axis], True)
    output = two("right_shift", two("multiply", two("floor_divide", number(1 << 30), sums), powers), number(23))
    return op_call(
        "qnn.requantize", [output, scalar(1 / 128, "float32"), number(0), scale, zero], call.checked_type, axis=0, out_dtype="int8"
    )


def _qnn_hardswish(call: Call, args: list[Expr]) -> Expr | None:
    x, in_scale, in_zero, scale, zero = args
    shape = shape_known(x)
    real = made_call("qnn.dequantize", [x, in_scale, in_zero], shape, "float32", axis=-1, out_dtype="float32")
    gate = made_call("clip", [two("add", real, scalar(3.0, "float32"))], shape, a_min=0.0, a_max=6.0)
    real = two("divide", two("multiply", real, gate), scalar(6.0, "float32"))
    return made_call("qnn.quantize", [real, scale, zero], shape, dtype_of(x), axis=-1, out_dtype=dtype_of(x))


#: Sums of products of their first two operands.
PRODUCTS = frozenset({Trait.CONV, Trait.CONV_TRANSPOSE, Trait.MATMUL})
REWRITES: dict[str, Rewrite] = {
    **{f"nn.conv{n}d_transpose": conv_transpose for n in (1, 2, 3)},
    "qnn.conv2d_transpose": qnn_conv_transpose,
    "qnn.batch_matmul": _qnn_batch_matmul,
    "nn.contrib_dense_pack": _dense_pack,
    "qnn.contrib_dense_pack": _dense_pack,
    "qnn.softmax": _qnn_softmax,
    "qnn.hardswish": _qnn_hardswish,
    "nn.space_to_batch_nd": _space_to_batch,
    "nn.batch_to_space_nd": _batch_to_space,
    "layout_transform": layout_transform,
    **dict.fromkeys(CONVOLUTIONS, convolution),
    **dict.fromkeys(POOLS, pool),
    **dict.fromkeys(PLAIN, plain),
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


def legalise(expr: Expr, keep: Container[str] = (), rewrites: Mapping[str, Rewrite] = REWRITES) -> Expr:
    """A typed expression without the operators of `rewrites`, where their shapes and layouts allow it.

    The operators that `keep` names stay as they are.
    """
    done: dict[int, Expr] = {}
    for old in post_order(expr):
        new = retype(rebuild(old, tuple([done[id(c)] for c in children(old)])), old)
        if isinstance(new, Call) and isinstance(new.op, Op):
            rewrite = None if new.op.name in keep else rewrites.get(new.op.name)
            if (nothing := _nothing(new)) is not None:
                new = nothing
            elif rewrite is not None and all(_static(a.checked_type) for a in (*new.args, new)):
                found = rewrite(new, list(new.args))
                if found is not None:
                    new = _placed(found, old)
        done[id(old)] = new
    return done[id(expr)]


def _nothing(call: Call) -> Expr | None:
    """The result of a call that has no elements, or whose elements are sums of no products; else None."""
    ty = call.checked_type
    fields = ty.fields if isinstance(ty, TupleType) else [ty]
    if not all(_static(f) and f.dtype in CTYPES for f in fields):  # type: ignore[union-attr]
        return None
    shapes = [f.shape for f in fields]  # type: ignore[union-attr]
    empty = all(0 in shape for shape in shapes)
    product = isinstance(call.op, Op) and not PRODUCTS.isdisjoint(call.op.traits)
    if not (empty and fields) and not (product and any(0 in (shape_of(a) or ()) for a in call.args[:2])):
        return None
    # A constant has no sizes. Without elements it may, but numpy takes extents only up to a product.
    if any(map(has_sizes, shapes)) and not (empty and all(math.prod(filter(None, shape)) < 2**59 for shape in shapes)):
        return None
    made = [typed(Constant(np.zeros(f.shape, np.dtype(f.dtype))), f) for f in fields]  # type: ignore[union-attr, arg-type]
    return typed(Tuple(made), ty) if isinstance(ty, TupleType) else made[0]


def _placed(new: Expr, old: Expr) -> Expr:
    """Give the new expression the span of the expression that it replaces."""
    stack = [new] if old.span is not None else []
    while stack:
        node = stack.pop()
        if node.span is None and isinstance(node, (Call, Tuple)) and node is not old:
            node.span = old.span
            stack.extend(children(node))
    return new


def _static(ty: Any) -> bool:
    fields = ty.fields if isinstance(ty, TupleType) else [ty]
    return all(isinstance(f, TensorType) and all(isinstance(d, int) for d in f.shape) for f in fields)


__all__ = ["REWRITES", "legalise"]
