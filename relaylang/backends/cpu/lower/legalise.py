"""Operators composed of other operators: transposed convolutions, blocks, layouts, losses, quantised products.

Each is replaced, before fusion, by the operators that compute it. So these are fused and scheduled like any others, and
values of bound weights alone are computed once. Integers come out the same to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.lower.blocks import CONVOLUTIONS, PLAIN, POOLS, convolution, layout_transform, plain, pool
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


def shape_of(x: Expr) -> tuple[int, ...] | None:
    """The shape of a typed tensor, None where an extent is not known."""
    ty = x.checked_type
    if not isinstance(ty, TensorType) or not all(isinstance(d, int) for d in ty.shape):
        return None
    return tuple(ty.shape)  # type: ignore[arg-type]


def dtype_of(x: Expr) -> str:
    assert isinstance(x.checked_type, TensorType)
    return x.checked_type.dtype


def _known(x: Expr) -> tuple[int, ...]:
    shape = shape_of(x)
    assert shape is not None
    return shape


def _make(name: str, args: Sequence[Expr], shape: Sequence[int], dtype: str | None = None, /, **attrs: Any) -> Expr:
    return op_call(name, list(args), TensorType(tuple(shape), dtype or dtype_of(args[0])), **attrs)


def reshape(x: Expr, shape: Sequence[int]) -> Expr:
    return _make("reshape", [x], shape, newshape=list(shape))


def transpose(x: Expr, axes: Sequence[int]) -> Expr:
    old = _known(x)
    return _make("transpose", [x], [old[a] for a in axes], axes=list(axes))


def cast(x: Expr, dtype: str) -> Expr:
    return x if dtype_of(x) == dtype else _make("cast", [x], _known(x), dtype, dtype=dtype)


def total(x: Expr, axes: Sequence[int], keepdims: bool = False, how: str = "sum") -> Expr:
    left = [1 if d in axes else n for d, n in enumerate(_known(x)) if keepdims or d not in axes]
    return _make(how, [x], left, axis=list(axes), keepdims=keepdims) if axes else x


def two(name: str, a: Expr, b: Expr) -> Expr:
    """A function of two tensors of one dtype that broadcast."""
    left, right = _known(a), _known(b)
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    return _make(name, [a, b], [n if m == 1 else m for n, m in zip(left, right)])


def _less(x: Expr, zero: Expr, axis: int) -> Expr:
    """Quantised data less their zero point (a vector lies along `axis`), as int32."""
    x, zero = cast(x, "int32"), cast(zero, "int32")
    if isinstance(zero, Constant) and not zero.data.any():
        return x
    extents = _known(zero)
    if extents and extents[0] > 1:
        rank = len(_known(x))
        zero = reshape(zero, [extents[0] if d == axis % rank else 1 for d in range(rank)])
    elif extents:
        zero = reshape(zero, [])
    return two("subtract", x, zero)


# Transposed convolutions


def _pairs(values: Any, count: int) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return [int(v) for v in (values * count if len(values) == 1 else values)]


def _transposed(call: Call, data: Expr, weight: Expr) -> Expr | None:
    """A convolution at stride 1 with the kernel turned round. Strides make phases, or zeros between the elements."""
    attrs = call.attrs
    layout, kernel_layout = attrs.data_layout, attrs.kernel_layout
    space = [c for c in layout if c in "DHW"]
    count = len(space)
    plain = "NC" + "".join(space)
    if sorted(layout) != sorted(plain) or sorted(kernel_layout) != sorted("IO" + "".join(space)):
        return None
    if attrs.out_layout not in ("", layout):
        return None
    # TVM's IOHW names the data's channels first; weights come as (groups, in, out, ...) and leave as (out, in, ...).
    order = [kernel_layout.index(c) for c in ("I", "O", *space)]
    weight = transpose(weight, order) if order != sorted(order) else weight
    inputs, outputs, *kernel = _known(weight)
    groups = attrs.groups
    split = reshape(weight, [groups, inputs // groups, outputs, *kernel])
    turned = transpose(split, [0, 2, 1, *range(3, 3 + count)])
    if max(_pairs(attrs.strides, count)) > 1 and layout in (plain, f"N{''.join(space)}C"):
        phases = _phases(call, data, turned)
        if phases is not None:
            return phases
    weight = reshape(turned, [groups * outputs, inputs // groups, *kernel])
    for axis in range(2, 2 + count):
        if kernel[axis - 2] > 1:
            weight = _make("reverse", [weight], _known(weight), axis=axis)
    strides, dilation = _pairs(attrs.strides, count), _pairs(attrs.dilation, count)
    extra = _pairs(attrs.output_padding[:count], count)
    pads = _pairs(attrs.padding, count)
    pads = pads * 2 if len(pads) == count else pads
    if any(s > 1 for s in strides):
        by = [strides[space.index(c)] if c in space else 1 for c in layout]
        wide = [(n - 1) * s + 1 for n, s in zip(_known(data), by)]
        data = _make("nn.dilate", [data], wide, strides=by, dilation_value=0.0)
    widths = []
    for number, (k, d) in enumerate(zip(kernel, dilation)):
        reach = (k - 1) * d
        widths.append((reach - pads[number], reach - pads[count + number] + extra[number]))
    if any(a < 0 or b < 0 for a, b in widths):
        begin, end = [0] * len(layout), list(_known(data))
        for c, (a, b) in zip(space, widths):
            begin[layout.index(c)] = max(-a, 0)
            end[layout.index(c)] -= max(-b, 0)
        left = [e - b for b, e in zip(begin, end)]
        data = _make("strided_slice", [data], left, begin=begin, end=end, strides=[1])
    padding = [max(a, 0) for a, _ in widths] + [max(b, 0) for _, b in widths]
    assert isinstance(call.checked_type, TensorType)
    return op_call(
        f"nn.conv{count}d",
        [data, weight],
        call.checked_type,
        strides=[1] * count,
        padding=padding,
        dilation=dilation,
        groups=groups,
        channels=groups * outputs,
        kernel_size=kernel,
        data_layout=layout,
        kernel_layout="OI" + "".join(space),
        out_dtype=call.checked_type.dtype,
    )


def _phases(call: Call, data: Expr, weight: Expr) -> Expr | None:
    """A transposed convolution as one convolution whose channels are the phases of its strides, set side by side behind.

    Along an axis of stride `s`, result `s * a + r` is made of the elements up to `a`. It uses every s-th tap from `r` on.
    `weight` is (groups, out, in, ...). With dilation there is none.
    """
    attrs = call.attrs
    assert isinstance(call.checked_type, TensorType)
    dtype = call.checked_type.dtype
    groups, outputs, inputs, *kernel = _known(weight)
    count = len(kernel)
    strides, pads = _pairs(attrs.strides, count), _pairs(attrs.padding, count)
    layout = attrs.data_layout
    space = [c for c in layout if c in "DHW"]
    if any(d > 1 for d in _pairs(attrs.dilation, count)):
        return None
    last = f"N{''.join(space)}C"
    channels, batch = _known(data)[layout.index("C")], _known(data)[0]
    size = [_known(data)[layout.index(c)] for c in space]
    out = [_known(call)[layout.index(c)] for c in space]
    if layout != last:
        data = _make("layout_transform", [data], [batch, *size, channels], src_layout=layout, dst_layout=last)
    # The kernel as (taps of a phase, phases) along each axis, its taps turned round.
    taps = [-(-k // s) for k, s in zip(kernel, strides)]
    widths = [[0, 0]] * 3 + [[0, t * s - k] for t, s, k in zip(taps, strides, kernel)]
    if any(b for _, b in widths):
        wide = [groups, outputs, inputs, *[t * s for t, s in zip(taps, strides)]]
        weight = _make("nn.pad", [weight, scalar(0, dtype_of(weight))], wide, pad_width=widths, pad_mode="constant")
    cut = [groups, outputs, inputs, *[n for t, s in zip(taps, strides) for n in (t, s)]]
    weight = reshape(weight, cut)
    for axis in range(count):
        if taps[axis] > 1:
            weight = _make("reverse", [weight], cut, axis=3 + 2 * axis)
    weight = transpose(weight, [0, *range(4, 4 + 2 * count, 2), 1, 2, *range(3, 3 + 2 * count, 2)])
    total = groups * outputs * math.prod(strides)
    weight = reshape(weight, [total, inputs, *taps])
    first = [p // s for p, s in zip(pads[:count], strides)]
    rows = [(p + n - 1) // s + 1 - a for p, n, s, a in zip(pads[:count], out, strides, first)]
    before = [t - 1 - a for t, a in zip(taps, first)]
    behind = [a + m - n for a, m, n in zip(first, rows, size)]
    data = _cropped(data, [0, *[max(-b, 0) for b in before], 0], [0, *[max(-b, 0) for b in behind], 0])
    data = op_call(
        f"nn.conv{count}d",
        [data, weight],
        TensorType([batch, *rows, total], dtype),
        strides=[1] * count,
        padding=[max(b, 0) for b in [*before, *behind]],
        dilation=[1] * count,
        groups=groups,
        channels=total,
        kernel_size=taps,
        data_layout=last,
        kernel_layout="OI" + "".join(space),
        out_dtype=dtype,
    )
    split = reshape(data, [batch, *rows, groups, *strides, outputs])
    order = [0, *[d for n in range(count) for d in (1 + n, 2 + count + n)], 1 + count, 2 + 2 * count]
    woven = reshape(transpose(split, order), [batch, *[m * s for m, s in zip(rows, strides)], groups * outputs])
    start = [p - a * s for p, a, s in zip(pads[:count], first, strides)]
    end = [m * s - b - n for m, s, b, n in zip(rows, strides, start, out)]
    result = _cropped(woven, [0, *start, 0], [0, *end, 0])
    if layout != last:
        result = _make("layout_transform", [result], _known(call), src_layout=last, dst_layout=layout)
    return result


def _cropped(x: Expr, before: Sequence[int], behind: Sequence[int]) -> Expr:
    """A tensor without so many elements at both ends of each axis."""
    if not any(before) and not any(behind):
        return x
    end = [n - b for n, b in zip(_known(x), behind)]
    left = [b - a for a, b in zip(before, end)]
    return _make("strided_slice", [x], left, begin=list(before), end=end, strides=[1])


def _conv_transpose(call: Call, args: list[Expr]) -> Expr | None:
    return _transposed(call, *args)


def _qnn_conv_transpose(call: Call, args: list[Expr]) -> Expr | None:
    data, weight, in_zero, weight_zero = args[:4]
    attrs = call.attrs
    if "C" not in attrs.data_layout or "O" not in attrs.kernel_layout:
        return None
    return _transposed(
        call, _less(data, in_zero, attrs.data_layout.index("C")), _less(weight, weight_zero, attrs.kernel_layout.index("O"))
    )


def _qnn_batch_matmul(call: Call, args: list[Expr]) -> Expr | None:
    x, y, x_zero, y_zero = args[:4]
    assert isinstance(call.checked_type, TensorType)
    if call.checked_type.dtype != "int32":
        return None
    return op_call(
        "nn.batch_matmul",
        [_less(x, x_zero, 0), _less(y, y_zero, 0)],
        call.checked_type,
        out_dtype="int32",
        transpose_a=call.attrs.transpose_a,
        transpose_b=call.attrs.transpose_b,
    )


def _dense_pack(call: Call, args: list[Expr]) -> Expr | None:
    """A product with weights in blocks of (inputs, units[, inputs]), which become rows again."""
    x, weight = args[:2]
    a, b, c, d = (*_known(weight), 1)[:4]
    rows = reshape(transpose(reshape(weight, [a, b, c, d]), [0, 2, 1, 3]), [a * c, b * d])
    if len(args) > 2:
        x, rows = _less(x, args[2], 0), _less(rows, args[3], 0)
    assert isinstance(call.checked_type, TensorType)
    return op_call("nn.dense", [x, rows], call.checked_type, units=a * c, out_dtype=call.checked_type.dtype)


# Blocks and layouts


def _space_to_batch(call: Call, args: list[Expr]) -> Expr | None:
    data = args[0]
    attrs = call.attrs
    blocks = [int(b) for b in attrs.block_shape]
    count = len(blocks)
    old = _known(data)
    widths = [(0, 0), *[(int(a), int(b)) for a, b in attrs.paddings]]
    widths += [(0, 0)] * (len(old) - len(widths))
    padded = [n + a + b for n, (a, b) in zip(old, widths)]
    if padded != list(old):
        data = _make(
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
    old = _known(data)
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
    return _make("strided_slice", [whole], left, begin=[a for a, _ in crops], end=end, strides=[1])


def _yolo_reorg(call: Call, args: list[Expr]) -> Expr | None:
    """Each batch as (C / s**2, H * s, W * s), whose pixels of one phase become one channel."""
    s = call.attrs.stride
    n, channels, height, width = _known(args[0])
    split = reshape(args[0], [n, channels // (s * s), height, s, width, s])
    return reshape(transpose(split, [0, 3, 5, 1, 2, 4]), [n, channels * s * s, height // s, width // s])


def _fifo_buffer(call: Call, args: list[Expr]) -> Expr | None:
    data, buffer = args
    held, new = _known(buffer), _known(data)
    axis = call.attrs.axis % len(held)
    both = [n + m if d == axis else n for d, (n, m) in enumerate(zip(held, new))]
    whole = op_call("concatenate", [typed_tuple([buffer, data])], TensorType(both, dtype_of(data)), axis=axis)
    begin = [new[axis] if d == axis else 0 for d in range(len(held))]
    return _make("strided_slice", [whole], held, begin=begin, end=both, strides=[1])


def _upsampling(call: Call, args: list[Expr]) -> Expr | None:
    attrs, shape = call.attrs, _known(call)
    letters = [letter for letter, _ in split_layout(attrs.layout)]
    size = [shape[letters.index(c)] for c in "DHW" if c in letters]
    if hasattr(attrs, "coordinate_transformation_mode"):
        mode = attrs.coordinate_transformation_mode
    else:
        mode = "align_corners" if attrs.align_corners else "asymmetric"
    return _make(
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
        length = math.prod(_known(part))
        line = reshape(part, [length if d == axis else 1 for d in range(rank)])
        out.append(_make("broadcast_to", [line], own.shape, shape=list(own.shape)))  # type: ignore[arg-type]
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
        powers = x if logits else _make("log", [x], _known(x))
        whole = total(two("multiply", powers, y), range(len(_known(x))))
        return two("divide", _make("negative", [whole], []), scalar(max(_known(x)[0], 1), dtype))

    return rewrite


# Quantised functions


def _qnn_softmax(call: Call, args: list[Expr]) -> Expr | None:
    """The integer softmax of the interpreter's kernel, operator by operator."""
    x, in_scale, in_zero, scale, zero = args
    axis = call.attrs.axis % len(_known(x))
    if _known(in_scale) or _known(in_zero):
        return None

    def number(value: int) -> Expr:
        return scalar(value, "int32")

    unit = cast(_make("round", [two("divide", scalar(1.0, "float32"), in_scale)], []), "int32")
    minus = _make("negative", [unit], [])
    shifted = _less(x, in_zero, 0)
    apart = two("subtract", shifted, total(shifted, [axis], True, "max"))
    power = two("add", apart, two("right_shift", apart, number(1)))
    power = two("subtract", power, two("right_shift", apart, number(4)))
    whole = two("floor_divide", two("subtract", power, two("trunc_mod", power, minus)), minus)
    whole = _make("clip", [whole], _known(whole), a_min=0.0, a_max=20.0)
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
    shape = _known(x)
    real = _make("qnn.dequantize", [x, in_scale, in_zero], shape, "float32", axis=-1, out_dtype="float32")
    gate = _make("clip", [two("add", real, scalar(3.0, "float32"))], shape, a_min=0.0, a_max=6.0)
    real = two("divide", two("multiply", real, gate), scalar(6.0, "float32"))
    return _make("qnn.quantize", [real, scale, zero], shape, dtype_of(x), axis=-1, out_dtype=dtype_of(x))


#: Sums of products of their first two operands.
PRODUCTS = frozenset({Trait.CONV, Trait.CONV_TRANSPOSE, Trait.MATMUL})
REWRITES: dict[str, Rewrite] = {
    **{f"nn.conv{n}d_transpose": _conv_transpose for n in (1, 2, 3)},
    "qnn.conv2d_transpose": _qnn_conv_transpose,
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
