"""Integer forms of the operators of real numbers.

Where the result's scale follows from the operands', a rule uses that one. Else it uses the scale of the quantize that
the result flows to. Without either, it uses whole numbers of 32 bits at a fine scale, or leaves the call alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from relaylang.ir import Call, Constant, Expr, Tuple
from relaylang.ir.tensors import static_shape, tensor_type
from relaylang.ops import get, make_attrs
from relaylang.ops.build import op_call
from relaylang.rules.fake_quantization.affine import (
    Affine,
    Rule,
    Wanted,
    affine,
    again,
    at,
    const,
    in_dtype,
    less_zero,
    parts,
    quantized_at,
    quantized_constant,
    spread,
    together,
)


def _rank(expr: Expr) -> int:
    ty = tensor_type(expr)
    return len(ty.shape) if ty is not None else 0


def _out(wanted: Wanted) -> list[Expr]:
    return [const(wanted.scale, "float32"), const(wanted.zero, "int32")]


def _as_wanted(ints: Expr, wanted: Wanted, dtype: str) -> Affine:
    return affine(ints, wanted.scale, wanted.zero, dtype)


# ---- operators that move elements


def identity(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x = operands[0]
    if x is None:
        return None
    if not x.plain:  # a scale for each channel, which may not be an axis of the result
        if wanted is None:
            return None
        x = at(x, wanted.scale, wanted.zero, wanted.dtype)
    return replace(x, ints=again(call, [x.ints, *call.args[1:]]))


def pooled(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    """As `identity`, for operators that keep the channels."""
    x = operands[0]
    if x is not None and not _of_channels(call, x):
        return identity(call, operands, wanted)
    return None if x is None else replace(x, ints=again(call, [x.ints]))


def _of_channels(call: Call, x: Affine) -> bool:
    """Whether scales are one for all, or one a channel of the layout."""
    layout = call.attrs.layout
    return x.plain or (layout.isalpha() and x.axis % len(layout) == layout.find("C"))


def transpose(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x, rank = operands[0], _rank(call.args[0])
    if x is None or x.plain or not rank:
        return identity(call, operands, wanted)
    axes = [a % rank for a in call.attrs.axes] if call.attrs.axes else list(reversed(range(rank)))
    return replace(x, ints=again(call, [x.ints]), axis=axes.index(x.axis % rank))


def topk(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    return identity(call, operands, wanted) if call.attrs.ret_type == "values" else None


def pad(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x, value = operands[:2]
    if x is None or not x.plain:
        return None
    if call.attrs.pad_mode != "constant":
        return replace(x, ints=again(call, [x.ints, const(0, x.dtype)]))
    if value is not None:
        return None if not value.plain else replace(x, ints=again(call, [x.ints, at(value, x.scale, x.zero, x.dtype).ints]))
    fill = call.args[1]
    if not isinstance(fill, Constant) or fill.data.size != 1 or fill.data.dtype.kind != "f" or np.isnan(fill.data).any():
        return None
    info, number = np.iinfo(x.dtype), float(fill.data.reshape(-1)[0])
    if abs(number) == np.inf:  # the end of the range that the value is held to, if that is known
        if wanted is None:
            return None
        x, info = at(x, wanted.scale, wanted.zero, wanted.dtype), np.iinfo(wanted.dtype)
        return replace(x, ints=again(call, [x.ints, const(info.max if number > 0 else info.min, x.dtype)]))
    held = np.round(number / float(x.scale)) + float(x.zero)
    if info.min <= held <= info.max:
        return replace(x, ints=again(call, [x.ints, const(held, x.dtype)]))
    x = less_zero(x, _rank(call.args[0]))
    held = np.round(number / float(x.scale))
    return replace(x, ints=again(call, [x.ints, const(held, "int32")])) if abs(held) < 2**30 else None


# ---- averages


def _fine(x: Affine) -> int:
    return 8 if x.narrow else 4 if x.dtype != "int32" else 0


def average(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    """The average in int32. The zero point is subtracted first, so that padding is 0."""
    x = operands[0]
    if x is None or not _of_channels(call, x):
        return None
    fine = less_zero(x, _rank(call.args[0]), _fine(x))
    return replace(fine, ints=again(call, [fine.ints]))


def avg_pool2d(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x = operands[0]
    padded = any(call.attrs.padding) and call.attrs.count_include_pad
    wanted = in_dtype(wanted, x.dtype) if x is not None else None
    if x is None or not x.plain or not x.narrow or wanted is None:
        return average(call, operands, wanted)
    if padded and (x.zero.any() or wanted.zero.any()):
        return average(call, operands, wanted)
    kept = {name: getattr(call.attrs, name) for name in type(call.attrs).schema}
    means = op_call("qnn.avg_pool2d", [x.ints, *parts(x), *_out(wanted)], **kept)
    return _as_wanted(means, wanted, x.dtype)


def mean(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    """The sum, with a scale that divides it: nothing is lost."""
    x, shape, out = operands[0], static_shape(call.args[0].checked_type), static_shape(call.checked_type)
    if x is None or not x.plain or shape is None or out is None or 0 in shape:
        return None
    count = int(np.prod(shape)) // int(np.prod(out))
    if x.dtype == "int32":  # sums of products: so much coarser that their sum is in range
        x = at(x, x.scale * np.float32(1 << (count - 1).bit_length()), np.asarray(0), "int32")
    elif count * (np.iinfo(x.dtype).max + 1) >= 1 << 31:
        return None
    kept = {k: getattr(call.attrs, k) for k in ("axis", "keepdims", "exclude")}
    wide = x.ints if x.dtype == "int32" else op_call("cast", [x.ints], dtype="int32")
    total = op_call("sum", [wide], **kept)
    return affine(total, x.scale / count, x.zero * count, "int32")


def resize(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x, attrs = operands[0], call.attrs
    if x is None or not x.plain or attrs.coordinate_transformation_mode == "tf_crop_and_resize" or attrs.out_dtype:
        return None
    if attrs.method == "nearest_neighbor":
        return replace(x, ints=again(call, [x.ints]))
    if x.dtype == "int32":
        return None
    fine = less_zero(x, _rank(call.args[0]), 6 if x.narrow else 0)
    return replace(fine, ints=again(call, [fine.ints]))


# ---- operators that limit elements to a range


def relu(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x = operands[0]
    if x is None:
        return None
    info = np.iinfo(x.dtype)
    if x.zero.min() < info.min or x.zero.max() > info.max:
        x = less_zero(x, _rank(call.args[0]))
    if not x.zero.any():
        return replace(x, ints=again(call, [x.ints]))
    least = const(spread(x.zero, x.axis, _rank(call.args[0])), x.dtype)
    return replace(x, ints=op_call("maximum", [x.ints, least]))


def clip(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    x = operands[0]
    if x is None or np.isnan([call.attrs.a_min, call.attrs.a_max]).any():
        return None
    info, rank = np.iinfo(x.dtype), _rank(call.args[0])
    scale, zero = (spread(v, x.axis, rank).astype("float64") for v in (x.scale, x.zero))
    low, high = (np.clip(np.round(v / scale) + zero, info.min, info.max) for v in (call.attrs.a_min, call.attrs.a_max))
    if x.plain:
        return replace(x, ints=again(call, [x.ints], a_min=float(low), a_max=float(high)))
    above = op_call("maximum", [x.ints, const(low, x.dtype)])
    return replace(x, ints=op_call("minimum", [above, const(high, x.dtype)]))


# ---- products


def channel(call: Call) -> int:
    return int((call.attrs.out_layout or call.attrs.data_layout).index("C"))


def product(name: str, axis_of: Callable[[Call], int]) -> Rule:
    def rule(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
        x, w = operands[:2]
        if x is None or w is None or not x.plain or not w.narrow or not (x.narrow or _wide(name, call, x)):
            return None
        if not w.plain and not _along_outputs(call, w):
            return None
        op = get(name)
        assert op.attrs is not None
        kept = {k: getattr(call.attrs, k) for k in op.schema if hasattr(call.attrs, k)}
        args = [x.ints, w.ints, const(x.zero, "int32"), const(w.zero, "int32"), const(x.scale, "float32"), const(w.scale, "float32")]
        sums = "int32" if x.narrow or _fits(call) else "int64"
        accumulator = Call(op, args, make_attrs(op.attrs, {**kept, "out_dtype": sums}), (), call.span)
        return affine(accumulator, x.scale * w.scale, 0, sums, axis_of(call))

    return rule


def _wide(name: str, call: Call, x: Affine) -> bool:
    """Whether the data are 16-bit numbers that the product takes."""
    known = static_shape(call.args[1].checked_type) is not None and tensor_type(call) is not None
    return x.dtype == "int16" and name != "qnn.batch_matmul" and known


def _fits(call: Call) -> bool:
    """Whether sums of products with 16-bit numbers are in the range of int32."""
    shape = static_shape(call.args[1].checked_type)
    assert shape is not None
    terms = int(np.prod(shape)) // max(min(shape), 1) if hasattr(call.attrs, "kernel_layout") else shape[-1]
    return terms << 24 < 1 << 31


def _along_outputs(call: Call, weight: Affine) -> bool:
    if hasattr(call.attrs, "kernel_layout"):
        layout = call.attrs.kernel_layout
        return layout.isalpha() and weight.axis % len(layout) == layout.index("O")
    return bool(call.op.name == "nn.dense") and weight.axis % 2 == 0  # type: ignore[attr-defined]


def _with_computed_bias(call: Call, x: Affine, b: Affine) -> Affine | None:
    if x.dtype == "int64":
        return None
    if b.dtype == "int32" and np.array_equal(b.scale, x.scale) and not b.zero.any():
        return replace(x, ints=again(call, [x.ints, b.ints]))
    if x.scale.ndim or not b.plain or float(b.scale) > float(x.scale) * 2**20:
        return None
    return replace(x, ints=again(call, [x.ints, at(b, x.scale, x.zero, "int32").ints]))


def bias_add(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    """The sum in the data's 32 or 64 bits, at the scale of the data."""
    x, b = operands[:2]
    rank = _rank(call.args[0])
    if x is None or not rank:
        return None
    if x.dtype not in ("int32", "int64") or x.zero.any():
        x = less_zero(x, rank, _fine(x))
    axis = call.attrs.axis % rank
    if x.scale.ndim and x.axis % rank != axis:
        return None
    bias = call.args[1]
    if b is not None and isinstance(b.ints, Constant):
        shift, scale = (v.astype("float64") for v in (b.zero, b.scale))
        bias = const((b.ints.data.astype("float64") - shift) * scale, "float64")
        if b.dtype == x.dtype == "int32" and np.array_equal(b.scale, x.scale) and not b.zero.any():
            return replace(x, ints=again(call, [x.ints, b.ints]))
    elif b is not None:
        return _with_computed_bias(call, x, b)
    if not isinstance(bias, Constant) or bias.data.dtype.kind != "f" or not np.isfinite(bias.data).all():
        return None
    bits = 31 if x.dtype == "int32" else 39  # accelerators hold sums of 40 bits
    held = np.clip(np.round(bias.data.astype("float64") / x.scale), -(2**bits), 2**bits - 1)
    return replace(x, ints=again(call, [x.ints, const(held, x.dtype)]))


# ---- two operands


def _sides(call: Call, operands: list[Affine | None]) -> tuple[Affine, Affine] | None:
    """Both operands; a constant gets a scale of its own."""
    x, y = operands[:2]
    if x is None and y is not None and isinstance(call.args[0], Constant):
        x = quantized_constant(call.args[0], y)
    if y is None and x is not None and isinstance(call.args[1], Constant):
        y = quantized_constant(call.args[1], x)
    return (x, y) if x is not None and y is not None else None


def _same(x: Affine, y: Affine) -> bool:
    """Whether both have one scale, zero point and element type. The axis does not count."""
    return np.array_equal(x.scale, y.scale) and np.array_equal(x.zero, y.zero) and x.dtype == y.dtype


def _same_along(call: Call, x: Affine, y: Affine) -> bool:
    """Whether both are alike and lie along the same axis of the result."""
    axes = {v.axis % rank - rank for v, rank in ((x, _rank(call.args[0])), (y, _rank(call.args[1]))) if rank}
    return _same(x, y) and (x.plain or len(axes) == 1)


def _add_constant(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    """A sum in int32 and a constant, at the sum's scale where that is fine enough: mostly a bias."""
    for i in (0, 1):
        x, c = operands[i], call.args[1 - i]
        if x is None or not isinstance(c, Constant) or x.dtype != "int32" or x.zero.any():
            continue
        if tensor_type(call.args[i]) != tensor_type(call):
            return None
        held = quantized_at(c, x, _rank(call))
        if held is None:
            return None
        lost = np.abs(held.data * spread(x.scale, x.axis, _rank(call)).astype("float64") - c.data).max()
        if lost > (float(wanted.scale) / 2 if wanted is not None else np.abs(c.data).max() / 128):
            return None
        return replace(x, ints=again(call, [x.ints, held] if i == 0 else [held, x.ints]))
    return None


def _times_constant(call: Call, operands: list[Affine | None]) -> Affine | None:
    """A product with a positive number is another scale."""
    for i in (0, 1):
        x, c = operands[i], call.args[1 - i]
        if x is None or not isinstance(c, Constant) or c.data.size != 1 or tensor_type(call.args[i]) != tensor_type(call):
            continue
        factor = float(c.data.reshape(-1)[0])
        scale = x.scale.astype("float64") * factor
        if 0 < factor < np.inf and scale.min() > 1e-30 and scale.max() < 1e30:
            return replace(x, scale=scale.astype("float32"))
    return None


def binary(name: str) -> Rule:
    plain = {"qnn.add": "add", "qnn.subtract": "subtract"}.get(name)

    def rule(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
        special = _add_constant(call, operands, wanted) if plain else _times_constant(call, operands)
        if special is not None:
            return special
        sides = _sides(call, operands)
        if sides is None:
            return None
        x, y = sides
        if plain and x.dtype == "int32" and _same_along(call, x, y) and not x.zero.any():
            longer = x if _rank(call.args[0]) == _rank(call) else y
            return replace(longer, ints=op_call(plain, [x.ints, y.ints]))
        target = in_dtype(wanted, x.dtype)
        if target is not None and x.dtype == y.dtype and x.dtype != "int32":
            axes = {"lhs_axis": x.axis, "rhs_axis": y.axis}
            result = op_call(name, [x.ints, y.ints, *parts(x), *parts(y), *_out(target)], **axes)
            return _as_wanted(result, target, x.dtype)
        return _sum(plain, sides) if plain else _product(call, x, y)

    return rule


#: How much finer than its result a finer sum is.
_FINER = np.float32(256)


def finer_sum(name: str) -> Rule:
    """Sums and differences in int32 at a finer scale, so that one rounding remains.

    `qnn.add` rounds both operands to the result's scale: the error's power is up to three times that of one rounding.
    """
    usual = binary(f"qnn.{name}")

    def rule(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
        known = [x for x in operands if x is not None]
        if wanted is None or not all(x.plain and x.narrow for x in known) or all(float(x.scale) == float(wanted.scale) for x in known):
            return usual(call, operands, wanted)
        like = affine(call, wanted.scale / _FINER, 0, "int32")
        sides = []
        for x, arg in zip(operands, call.args):
            if x is not None:
                fits = float(x.scale) / float(like.scale) < 1 << 20
                side: Expr | None = at(x, like.scale, like.zero, "int32").ints if fits else None
            else:
                side = quantized_at(arg, like, _rank(call)) if isinstance(arg, Constant) else None
            if side is None or (isinstance(side, Constant) and np.abs(side.data).max() >= 1 << 29):
                return usual(call, operands, wanted)
            sides.append(side)
        return replace(like, ints=op_call(name, sides))

    return rule


def _sum(name: str, sides: tuple[Affine, Affine]) -> Affine | None:
    both = together(sides)
    return None if both is None else replace(both[0], ints=op_call(name, [v.ints for v in both]))


def _product(call: Call, x: Affine, y: Affine) -> Affine | None:
    if not x.plain or not y.plain or not (x.narrow or y.narrow) or "int32" in (x.dtype, y.dtype):
        return None
    factors = [less_zero(v, _rank(a)) for v, a in zip((x, y), call.args)]
    return affine(op_call("multiply", [v.ints for v in factors]), x.scale * y.scale, 0, "int32")


def extreme(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    for i in (0, 1):
        x, c = operands[i], call.args[1 - i]
        if x is not None and isinstance(c, Constant) and operands[1 - i] is None:
            if not x.plain:
                return None
            held = quantized_at(c, x, _rank(call))
            if held is None:
                return None
            return replace(x, ints=again(call, [x.ints, held] if i == 0 else [held, x.ints]))
    x, y = operands[:2]
    if x is None or y is None:
        return None
    if _same_along(call, x, y):
        longer = x if _rank(call.args[0]) == _rank(call) else y
        return replace(longer, ints=again(call, [x.ints, y.ints]))
    both = _at_one_scale([x, y], wanted)
    return None if both is None else replace(both[0], ints=again(call, [v.ints for v in both]))


def _at_one_scale(operands: list[Affine], wanted: Wanted | None) -> list[Affine] | None:
    """The operands at the wanted scale, or at one that is right for all."""
    if wanted is None:
        return together(operands)
    return [at(x, wanted.scale, wanted.zero, wanted.dtype) for x in operands]


def concatenate(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
    known = [x for x in operands if x is not None]
    if not known or len(known) != len(operands):
        return None
    first = known[0]
    if all(_same(x, first) for x in known) and first.plain:
        return replace(first, ints=again(call, [Tuple([x.ints for x in known])]))
    plain = all(x.plain and x.dtype == first.dtype and x.dtype != "int32" for x in known)
    if plain and wanted is not None and wanted.dtype == first.dtype:
        scales, zeros = (Tuple([parts(x)[i] for x in known]) for i in (0, 1))
        joined = Tuple([x.ints for x in known])
        concatenated = op_call("qnn.concatenate", [joined, scales, zeros, *_out(wanted)], axis=call.attrs.axis)
        return _as_wanted(concatenated, wanted, first.dtype)
    all_at = _at_one_scale(known, wanted)
    return None if all_at is None else replace(all_at[0], ints=again(call, [Tuple([x.ints for x in all_at])]))


# ---- functions


#: Functions whose results have bounds: a scale and zero point (of int8) for them.
_BOUNDED = {"qnn.sigmoid": (1 / 256, -128), "qnn.tanh": (1 / 128, 0), "qnn.erf": (1 / 128, 0)}


def function(name: str, kept: tuple[str, ...] = ()) -> Rule:
    """An operator of the qnn dialect that takes both scales."""

    def rule(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
        x = operands[0]
        if x is None or not x.plain or not x.narrow:
            return None
        target = in_dtype(wanted, x.dtype)
        if target is None and name in _BOUNDED:
            scale, zero = _BOUNDED[name]
            target = Wanted(np.float32(scale).reshape(()), np.asarray(zero + 128 * (x.dtype == "uint8")), x.dtype)
        if target is None and name == "qnn.abs":
            wide = less_zero(x, _rank(call.args[0]))
            return replace(wide, ints=op_call("abs", [wide.ints]))
        if target is None:
            return None
        attrs = {k: getattr(call.attrs, k) for k in kept}
        return _as_wanted(op_call(name, [x.ints, *parts(x), *_out(target)], **attrs), target, x.dtype)

    return rule
