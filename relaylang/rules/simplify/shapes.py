"""SimplifyExpr's rules of shapes, layouts and element types: several moves or conversions become one."""

from __future__ import annotations

import re
from math import ceil, floor, inf, prod

import numpy as np

from relaylang.ir import Call, Constant, Expr, TensorType
from relaylang.ir.tensors import static_shape, tensor_type
from relaylang.ir.typed import typed_constant
from relaylang.ops import Trait, having
from relaylang.ops.build import op_call
from relaylang.rules.simplify.numbers import is_float, is_whole, name_of

_RESHAPES = frozenset(having(Trait.RESHAPE, without=[Trait.DYNAMIC, Trait.LIKE]))


def reshape(call: Call, ty: TensorType) -> Expr | None:
    """A reshape of a reshape, and a reshape to the shape that is there already."""
    x = call.args[0]
    if static_shape(ty) is None:
        return None
    if tensor_type(x) == ty:
        return x
    # An extent of 0 would mean the operand's in the new shape.
    if name_of(x) in _RESHAPES and isinstance(x, Call) and 0 not in ty.shape:
        return op_call("reshape", [x.args[0]], ty, newshape=list(ty.shape))
    return None


# ---- transposes and layouts


def _axes(call: Call, rank: int) -> list[int]:
    axes = call.attrs.axes
    return [a % rank for a in axes] if axes else list(reversed(range(rank)))


def _parts(layout: str) -> list[str]:
    return re.findall(r"\d*[A-Za-z]", layout)


def transpose(call: Call, ty: TensorType) -> Expr | None:
    """Two transposes as one. One behind a change of layout becomes part of it, and one that moves nothing goes."""
    rank = len(ty.shape)
    axes, x = _axes(call, rank), call.args[0]
    if axes == list(range(rank)):
        return x
    if name_of(x) == "transpose" and isinstance(x, Call):
        inner = _axes(x, rank)
        return op_call("transpose", [x.args[0]], ty, axes=[inner[a] for a in axes])
    if name_of(x) == "layout_transform" and isinstance(x, Call):
        parts = _parts(x.attrs.dst_layout)
        return _moved(x.args[0], _parts(x.attrs.src_layout), [parts[a] for a in axes], ty)
    return None


def layout(call: Call, ty: TensorType) -> Expr | None:
    """A change of layout behind another or behind a transpose as one, and one that changes nothing left out."""
    source, target, x = call.attrs.src_layout, call.attrs.dst_layout, call.args[0]
    if source == target:
        return x
    if name_of(x) == "transpose" and isinstance(x, Call):
        parts = _parts(source)
        axes = _axes(x, len(parts))
        before = [""] * len(parts)
        for part, axis in zip(parts, axes):
            before[axis] = part
        return _moved(x.args[0], before, _parts(target), ty)
    if name_of(x) != "layout_transform" or not isinstance(x, Call) or x.attrs.dst_layout != source:
        return None
    shape = static_shape(tensor_type(x.args[0]))
    first = _parts(x.attrs.src_layout)
    if shape is None or not all(_divides(first, shape, _parts(p)) for p in (source, target)):
        return None
    return _moved(x.args[0], first, _parts(target), ty)


def _divides(parts: list[str], shape: tuple[int, ...], wanted: list[str]) -> bool:
    """Whether the blocks of a layout are all full."""
    extents: dict[str, int] = {}
    for part, extent in zip(parts, shape):
        extents[part[-1].upper()] = extents.get(part[-1].upper(), 1) * extent
    return all(
        extents.get(letter, 1) % prod([int(p[:-1]) for p in wanted if p[-1] == letter.lower() and p[:-1]]) == 0 for letter in extents
    )


def _moved(x: Expr, source: list[str], target: list[str], ty: TensorType) -> Expr | None:
    """A tensor from one layout to another, by a transpose where that is all."""
    if source == target:
        return x if tensor_type(x) == ty else None
    if len(set(source)) == len(source) and sorted(source) == sorted(target):
        return op_call("transpose", [x], ty, axes=[source.index(p) for p in target])
    return op_call("layout_transform", [x], ty, src_layout="".join(source), dst_layout="".join(target))


# ---- element types


_WIDTH = {"bool": 1, "bfloat16": 16}
_MANTISSA = {"float16": 11, "float32": 24, "float64": 53, "bfloat16": 8}


def _bits(dtype: str) -> int:
    return _WIDTH.get(dtype) or int("".join(c for c in dtype if c.isdigit()) or 0)


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of one element type is one of another."""
    if wide == narrow or narrow == "bool":
        return True
    kinds = [d.rstrip("0123456789") for d in (wide, narrow)]
    if kinds[0] == kinds[1]:
        return _bits(wide) >= _bits(narrow)
    if kinds == ["int", "uint"]:
        return _bits(wide) > _bits(narrow)
    if kinds == ["float", "bfloat"]:
        return _bits(wide) >= 32
    return is_float(wide) and is_whole(narrow) and _MANTISSA.get(wide, 0) >= _bits(narrow)


def _clipped(expr: Expr) -> tuple[float, float]:
    """The least and the greatest whole number of a clipped tensor. A cast to whole numbers cuts floats to these."""
    if name_of(expr) != "clip" or not isinstance(expr, Call):
        return -inf, inf
    low, high = expr.attrs.a_min, expr.attrs.a_max
    return (float(floor(low)), float(ceil(high))) if -inf < low <= high < inf else (-inf, inf)


def _within(dtype: str, low: float, high: float) -> bool:
    """Whether an element type has all whole numbers between two."""
    if is_whole(dtype):
        info = np.iinfo(dtype)
        return info.min <= low and high <= info.max
    if dtype == "bool":
        return low >= 0 and high <= 1
    most = 2.0 ** _MANTISSA.get(dtype, 0)
    return -most <= low and high <= most


def cast(call: Call, ty: TensorType) -> Expr | None:
    """A cast to the present type goes, and so does the inner of two casts where it loses nothing.

    A clip in front limits the numbers that must survive. A clipped nan need not survive a cast to whole numbers.
    """
    x = call.args[0]
    source = tensor_type(x)
    if source is not None and source.dtype == ty.dtype:
        return x
    if name_of(x) != "cast" or not isinstance(x, Call) or source is None:
        return None
    inner = x.args[0]
    first = tensor_type(inner)
    if first is None:
        return None
    alike = is_whole(first.dtype) or (is_whole(source.dtype) and is_whole(ty.dtype))
    limits = _clipped(inner)
    fits = alike and _within(source.dtype, *limits) and (is_whole(first.dtype) or _within(ty.dtype, *limits))
    if not fits and not _holds(source.dtype, first.dtype):
        return None
    return inner if first.dtype == ty.dtype else op_call("cast", [inner], ty, dtype=ty.dtype)


def clip(call: Call, ty: TensorType) -> Expr | None:
    """Two clips in one, and one to the range that the element type has anyway."""
    low, high, x = call.attrs.a_min, call.attrs.a_max, call.args[0]
    if is_whole(ty.dtype):
        info = np.iinfo(ty.dtype)
        if low <= info.min and high >= info.max:
            return x
    elif low == -inf and high == inf:
        return x
    if name_of(x) == "clip" and isinstance(x, Call):
        inner_low, inner_high = x.attrs.a_min, x.attrs.a_max
        if inner_low <= inner_high and low <= high and max(low, inner_low) <= min(high, inner_high):
            limits = {"a_min": max(low, inner_low), "a_max": min(high, inner_high)}
            return op_call("clip", [x.args[0]], ty, **limits)
    return None


# ---- operators that read only the shape of a tensor


def like(call: Call, ty: TensorType) -> Expr | None:
    """The same with the shape itself, where it is known."""
    name, shape = name_of(call), static_shape(ty)
    if name == "cast_like":
        return op_call("cast", [call.args[0]], ty, dtype=ty.dtype)
    if shape is None:
        return None
    if name in ("zeros_like", "ones_like"):
        return op_call(name.removesuffix("_like"), [], ty, shape=list(shape), dtype=ty.dtype)
    if name == "full_like":
        return op_call("full", [call.args[1]], ty, shape=list(shape), dtype=ty.dtype)
    if name == "reshape_like":
        return op_call("reshape", [call.args[0]], ty, newshape=list(shape)) if 0 not in shape else None
    if name == "broadcast_to_like":
        return op_call("broadcast_to", [call.args[0]], ty, shape=list(shape))
    extents = typed_constant(np.asarray(shape, "int32"), "int32")
    return op_call("collapse_sum_to", [call.args[0], extents], ty, shape=list(shape))


# ---- orders of elements, found on the tensor before it is dequantized


def of_dequantized(call: Call, ty: TensorType) -> Expr | None:
    """argmax, argmin and argsort of a dequantized tensor, computed on the tensor itself.

    The scale must be positive, and the float32 numbers as far apart as the whole ones.
    """
    x = call.args[0]
    if name_of(x) != "qnn.dequantize" or not isinstance(x, Call) or tensor_type(x) is None:
        return None
    data, (scale, zero) = tensor_type(x.args[0]), x.args[1:]
    if data is None or _bits(data.dtype) > 16 or tensor_type(x).dtype != "float32":  # type: ignore[union-attr]
        return None
    if not isinstance(scale, Constant) or not isinstance(zero, Constant) or scale.data.size != 1 or zero.data.size != 1:
        return None
    factor, shift = float(scale.data.reshape(-1)[0]), abs(int(zero.data.reshape(-1)[0]))
    if not 1e-30 < factor < 1e30 or shift > 1 << 20:
        return None
    return Call(call.op, [x.args[0]], call.attrs, call.type_args, call.span)
