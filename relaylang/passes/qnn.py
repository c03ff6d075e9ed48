"""qnn.CanonicalizeOps: operators of the qnn dialect as the plain integer operators that they stand for.

What comes out is exact to the integer. Scales and zero points must be constants, but for quantize, dequantize and the
zero points of products; another call whose are not stays. Operators of real functions (tanh, exp, ...) are dequantized,
computed and quantized again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, IRModule, TensorType, Tuple, TupleGetItem, TupleType
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import Op
from relaylang.passes.build import op_call
from relaylang.passes.rewriting import per_function, rewrite_typed, tensor_type
from relaylang.typing import infer

Lower = Callable[[Call, TensorType], "Expr | None"]


def _array(expr: Expr) -> np.ndarray | None:
    return expr.data if isinstance(expr, Constant) else None


def _int(values: Any, dtype: str = "int32") -> Constant:
    made = Constant(np.asarray(values).astype(dtype))
    made.checked_type = TensorType(made.data.shape, dtype)
    return made


def _spread(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector along an axis of a tensor of so many dimensions; a scalar as it is."""
    if values.size == 1:
        return values.reshape(())
    return values.reshape([values.size if i == axis % rank else 1 for i in range(rank)])


def _less_zero(x: Expr, zero: np.ndarray, axis: int, rank: int) -> Expr:
    wide = op_call("cast", [x], dtype="int32")
    return op_call("subtract", [wide, _int(_spread(zero, axis, rank))]) if zero.any() else wide


def _known_or_not(expr: Expr, axis: int, rank: int, dtype: str) -> Expr | None:
    """A scale or zero point as it is applied to a tensor of so many dimensions, whether or not it is a constant."""
    if isinstance(expr, Constant):
        return Constant(_spread(expr.data, axis, rank).astype(dtype))
    ty = tensor_type(expr)
    if ty is None or len(ty.shape) > 1 or not all(isinstance(d, int) for d in ty.shape):
        return None
    made = expr if ty.dtype == dtype else op_call("cast", [expr], dtype=dtype)
    if ty.shape:
        shape = [ty.shape[0] if i == axis % rank else 1 for i in range(rank)] if ty.shape != (1,) else [1]
        made = op_call("reshape", [made], newshape=shape)
    return made


def _round_away(x: np.ndarray) -> np.ndarray:
    return np.trunc(x + np.copysign(0.5, x))


def _fixed_point(multiplier: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    fraction, shift = np.frexp(np.asarray(multiplier, np.float64))
    significand = _round_away(fraction * 2.0**31).astype(np.int64)
    over = significand == 2**31
    return np.where(over, significand // 2, significand), np.where(over, shift + 1, shift).astype(np.int64)


def _saturated(x: Expr, dtype: str) -> Expr:
    if dtype == "int32":
        return x
    info = np.iinfo(dtype)
    return op_call("cast", [op_call("clip", [x], a_min=float(info.min), a_max=float(info.max))], dtype=dtype)


def _rescaled(x: Expr, multiplier: np.ndarray, axis: int, rank: int, upward: bool) -> Expr:
    """An int32 tensor times real numbers, in fixed point."""
    significand, shift = _fixed_point(multiplier)
    if upward and significand.size == 1:
        return op_call("fixed_point_multiply", [x], multiplier=int(significand.reshape(-1)[0]), shift=int(shift.reshape(-1)[0]))
    if upward:
        left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
        return op_call(
            "fixed_point_multiply_per_axis",
            [x, _int(significand), _int(left), _int(right)],
            is_lshift_required=bool(left.any()),
            is_rshift_required=bool(right.any()),
            axes=[axis % rank],
        )
    left, total = np.maximum(shift, 0), np.maximum(-shift, 0) + 31
    wide = op_call("cast", [x], dtype="int64")
    wide = op_call("left_shift", [wide, _int(_spread(left, axis, rank), "int64")])
    product = op_call("multiply", [wide, _int(_spread(significand, axis, rank), "int64")])
    half = _spread(np.int64(1) << (total - 1), axis, rank)
    positive = op_call("greater_equal", [product, _int(0, "int64")])
    rounding = op_call("where", [positive, _int(half, "int64"), _int(half - 1, "int64")])
    summed = op_call("add", [product, rounding])
    return op_call("cast", [op_call("right_shift", [summed, _int(_spread(total, axis, rank), "int64")])], dtype="int32")


def _requantized(
    x: Expr, scales: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], dtype: str, axis: int, rank: int,
    rounding: str = "None", compute: str = "None",
) -> Expr:  # fmt: skip
    in_scale, in_zero, out_scale, out_zero = scales
    shifted = _less_zero(x, in_zero, axis, rank)
    upward = rounding in ("None", "UPWARD", "")
    multiplier = in_scale.astype(np.float64) / np.float64(out_scale.reshape(-1)[0])
    if compute in ("float32", "float64"):
        real = op_call("cast", [shifted], dtype=compute)
        factor = Constant(_spread(multiplier, axis, rank).astype(compute))
        real = op_call("multiply", [real, factor])
        real = op_call("add", [real, Constant(out_zero.reshape(-1)[0].astype(compute))])
        if upward:
            real = op_call("floor", [op_call("add", [real, Constant(np.asarray(0.5, compute))])])
        else:
            real = op_call("round", [real])
        return _saturated(op_call("cast", [real], dtype="int32"), dtype)
    made = _rescaled(shifted, multiplier, axis, rank, upward)
    if out_zero.any():
        made = op_call("add", [made, _int(out_zero.reshape(-1)[0])])
    return _saturated(made, dtype)


def _requantize(call: Call, ty: TensorType) -> Expr | None:
    values = [_array(a) for a in call.args[1:5]]
    if any(v is None for v in values):
        return None
    attrs = call.attrs
    dtype = attrs.out_dtype or "int8"
    return _requantized(call.args[0], tuple(values), dtype, attrs.axis, len(ty.shape), attrs.rounding, attrs.compute_dtype)  # type: ignore[arg-type]


def _quantize(call: Call, ty: TensorType) -> Expr | None:
    rank, info = len(ty.shape), np.iinfo(call.attrs.out_dtype)
    scale, zero = (_known_or_not(a, call.attrs.axis, rank, "float32") for a in call.args[1:3])
    if scale is None or zero is None:
        return None
    real = op_call("round", [op_call("divide", [call.args[0], scale])])
    real = op_call("add", [real, zero])
    top = float(np.float32(info.max)) if info.max < 2**24 else float(np.nextafter(np.float32(info.max), np.float32(0)))
    return op_call("cast", [op_call("clip", [real], a_min=float(info.min), a_max=top)], dtype=call.attrs.out_dtype)


def _dequantize(call: Call, ty: TensorType) -> Expr | None:
    if (call.attrs.out_dtype or "float32") != "float32":
        return None
    rank = len((tensor_type(call.args[0]) or ty).shape)
    shifted = _shifted(call.args[0], call.args[2], call.attrs.axis, rank)
    scale = _known_or_not(call.args[1], call.attrs.axis, rank, "float32")
    if shifted is None or scale is None:
        return None
    return op_call("multiply", [op_call("cast", [shifted], dtype="float32"), scale])


def _shifted(x: Expr, zero: Expr, axis: int, rank: int) -> Expr | None:
    """An integer tensor less its zero point, as int32."""
    if isinstance(zero, Constant):
        return _less_zero(x, zero.data, axis, rank)
    taken = _known_or_not(zero, axis, rank, "int32")
    return None if taken is None else op_call("subtract", [op_call("cast", [x], dtype="int32"), taken])


def _type(expr: Expr) -> TensorType | None:
    return TensorType(expr.data.shape, expr.dtype) if isinstance(expr, Constant) else tensor_type(expr)


def _product(name: str) -> Lower:
    """Convolutions and matrix products: the zero points are taken off, what is left are plain sums."""

    def lower(call: Call, ty: TensorType) -> Expr | None:
        attrs = call.attrs
        data_axis, weight_axis = 0, 0
        weight_rank = 2
        if hasattr(attrs, "kernel_layout"):
            if any(c.islower() for c in attrs.kernel_layout):
                return None
            data_axis = attrs.data_layout.index("C")
            weight_axis, weight_rank = attrs.kernel_layout.index("O"), len(attrs.kernel_layout)
            if attrs.kernel_layout == "IOHW":
                weight_axis = 1
        elif name == "nn.batch_matmul":
            if any(ty is None or ty.shape not in ((), (1,)) for ty in map(_type, call.args[2:4])):
                return None
            weight_rank = 3
        data = _shifted(call.args[0], call.args[2], data_axis, len(ty.shape))
        weight = _shifted(call.args[1], call.args[3], weight_axis, weight_rank)
        if data is None or weight is None:
            return None
        op = OPS[name]
        assert op.attrs is not None
        kept = {k: getattr(attrs, k) for k in op.schema if hasattr(attrs, k)}
        if "out_dtype" in op.schema:
            kept["out_dtype"] = attrs.out_dtype or "int32"
        if name == "nn.batch_matmul":
            kept["transpose_a"], kept["transpose_b"] = attrs.transpose_a, attrs.transpose_b
        return Call(op, [data, weight], make_attrs(op.attrs, kept), (), call.span)

    return lower


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.ndim == 0 and b.ndim == 0 and bool(a == b)


def _at_output(x: Expr, scales: tuple[np.ndarray, ...], axis: int, rank: int) -> Expr:
    if _same(scales[0], scales[2]) and _same(scales[1], scales[3]):
        return op_call("cast", [x], dtype="int32")
    return _requantized(x, scales, "int32", axis, rank)  # type: ignore[arg-type]


def _sum(name: str) -> Lower:
    def lower(call: Call, ty: TensorType) -> Expr | None:
        values = [_array(a) for a in call.args[2:8]]
        if any(v is None for v in values):
            return None
        a_scale, a_zero, b_scale, b_zero, scale, zero = (v for v in values if v is not None)
        rank = len(ty.shape)
        left = _at_output(call.args[0], (a_scale, a_zero, scale, zero), call.attrs.lhs_axis, rank)
        right = _at_output(call.args[1], (b_scale, b_zero, scale, zero), call.attrs.rhs_axis, rank)
        made = op_call(name, [left, right])
        if zero.any():
            made = op_call("subtract" if name == "add" else "add", [made, _int(zero.reshape(-1)[0])])
        return _saturated(made, ty.dtype)

    return lower


def _multiply(call: Call, ty: TensorType) -> Expr | None:
    values = [_array(a) for a in call.args[2:8]]
    if any(v is None for v in values):
        return None
    a_scale, a_zero, b_scale, b_zero, scale, zero = (v for v in values if v is not None)
    rank = len(ty.shape)
    product = op_call(
        "multiply",
        [
            _less_zero(call.args[0], a_zero, call.attrs.lhs_axis, rank),
            _less_zero(call.args[1], b_zero, call.attrs.rhs_axis, rank),
        ],
    )
    both = np.asarray(a_scale * b_scale)
    return _requantized(product, (both, np.asarray(0), scale, zero), ty.dtype, call.attrs.lhs_axis, rank)


def _concatenate(call: Call, ty: TensorType) -> Expr | None:
    parts, scales, zeros = call.args[:3]
    scale, zero = _array(call.args[3]), _array(call.args[4])
    if scale is None or zero is None or not isinstance(scales, Tuple) or not isinstance(zeros, Tuple):
        return None
    fields = _fields(parts)
    given = [(_array(s), _array(z)) for s, z in zip(scales.fields, zeros.fields)]
    if fields is None or any(s is None or z is None for s, z in given):
        return None
    held = []
    for part, (s, z) in zip(fields, given):
        assert s is not None and z is not None
        if _same(s, scale) and _same(z, zero):
            held.append(part)
        else:
            held.append(_requantized(part, (s, z, scale, zero), ty.dtype, -1, len(ty.shape)))
    return op_call("concatenate", [Tuple(held)], axis=call.attrs.axis)


def _fields(parts: Expr) -> list[Expr] | None:
    if isinstance(parts, Tuple):
        return list(parts.fields)
    if isinstance(parts.checked_type, TupleType):
        return [TupleGetItem(parts, i) for i in range(len(parts.checked_type.fields))]
    return None


def _scalars(call: Call) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Scale and zero point of the operand and of the result, where all are known single numbers."""
    values = [_array(a) for a in call.args[1:5]]
    if any(v is None or v.size != 1 for v in values):
        return None
    in_scale, in_zero, scale, zero = (v.reshape(()) for v in values if v is not None)
    return in_scale, in_zero, scale, zero


def _through_floats(f: Callable[[Expr], Expr]) -> Lower:
    def lower(call: Call, ty: TensorType) -> Expr | None:
        known = _scalars(call)
        if known is None:
            return None
        in_scale, in_zero, scale, zero = known
        real = op_call("multiply", [
            op_call("cast", [_less_zero(call.args[0], in_zero, -1, len(ty.shape))], dtype="float32"),
            Constant(in_scale.astype("float32")),
        ])  # fmt: skip
        info = np.iinfo(ty.dtype)
        made = op_call("round", [op_call("divide", [f(real), Constant(scale.astype("float32"))])])
        made = op_call("add", [made, Constant(zero.astype("float32"))])
        return op_call("cast", [op_call("clip", [made], a_min=float(info.min), a_max=float(info.max))], dtype=ty.dtype)

    return lower


def _real_function(name: str) -> Lower:
    return _through_floats(lambda x: op_call(name, [x]))


def _hardswish(x: Expr) -> Expr:
    three, six = (Constant(np.asarray(v, "float32")) for v in (3, 6))
    gate = op_call("clip", [op_call("add", [x, three])], a_min=0.0, a_max=6.0)
    return op_call("divide", [op_call("multiply", [x, gate]), six])


def _leaky_relu(call: Call, ty: TensorType) -> Expr | None:
    known = _scalars(call)
    if known is None:
        return None
    held = _at_output(call.args[0], known, -1, len(ty.shape))

    def times(x: Expr, factor: float) -> Expr:
        significand, shift = _fixed_point(np.asarray(factor))
        return op_call("fixed_point_multiply", [x], multiplier=int(significand), shift=int(shift))

    below = op_call("add", [times(held, call.attrs.alpha), times(_int(known[3]), 1 - call.attrs.alpha)])
    negative = op_call("less", [op_call("cast", [call.args[0]], dtype="int32"), _int(known[1])])
    return _saturated(op_call("where", [negative, below, held]), ty.dtype)


def _avg_pool2d(call: Call, ty: TensorType) -> Expr | None:
    known = _scalars(call)
    if known is None:
        return None
    held = _at_output(call.args[0], known, -1, len(ty.shape))
    attrs = {k: getattr(call.attrs, k) for k in OPS["nn.avg_pool2d"].schema}
    return _saturated(op_call("nn.avg_pool2d", [held], **attrs), ty.dtype)


def _softmax(call: Call, ty: TensorType) -> Expr | None:
    """The integer-only softmax of arXiv 2207.01405: exponentials as powers of two by shifts, a quotient in 30 bits."""
    known = _scalars(call)
    if known is None or ty.dtype != "int8":
        return None
    in_scale, in_zero, scale, zero = known
    rank, axis = len(ty.shape), [call.attrs.axis]
    unit = _int(_round_away(np.asarray(np.float32(1) / np.float32(in_scale))))

    def of(name: str, a: Expr, b: Expr) -> Expr:
        return op_call(name, [a, b])

    shifted = op_call("subtract", [op_call("cast", [call.args[0]], dtype="int32"), _int(in_zero)])
    apart = of("subtract", shifted, op_call("max", [shifted], axis=axis, keepdims=True))
    power = of("subtract", of("add", apart, of("right_shift", apart, _int(1))), of("right_shift", apart, _int(4)))
    whole = of("floor_divide", op_call("negative", [power]), unit)
    whole = op_call("clip", [whole], a_min=0.0, a_max=20.0)
    rest = of("add", power, of("multiply", whole, unit))
    most = op_call("max", [whole], axis=axis, keepdims=True)
    exps = of("left_shift", of("add", of("right_shift", rest, _int(1)), unit), of("subtract", most, whole))
    sums = op_call("sum", [exps], axis=axis, keepdims=True)
    output = of("right_shift", of("multiply", of("floor_divide", _int(1 << 30), sums), exps), _int(30 - 7))
    return _requantized(output, (np.asarray(1 / 128, "float32"), np.asarray(0), scale, zero), "int8", 0, rank)


LOWER: dict[str, Lower] = {
    "qnn.requantize": _requantize,
    "qnn.quantize": _quantize,
    "qnn.dequantize": _dequantize,
    "qnn.conv2d": _product("nn.conv2d"),
    "qnn.conv2d_transpose": _product("nn.conv2d_transpose"),
    "qnn.dense": _product("nn.dense"),
    "qnn.batch_matmul": _product("nn.batch_matmul"),
    "qnn.add": _sum("add"),
    "qnn.subtract": _sum("subtract"),
    "qnn.mul": _multiply,
    "qnn.concatenate": _concatenate,
    "qnn.leaky_relu": _leaky_relu,
    "qnn.avg_pool2d": _avg_pool2d,
    "qnn.softmax": _softmax,
    "qnn.hardswish": _through_floats(_hardswish),
    **{f"qnn.{n}": _real_function(n) for n in ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "log", "abs")},
}


def canonicalize_qnn(mod: IRModule) -> IRModule:
    """A typed module with its qnn operators lowered; the result's types are to be found by the checker."""

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or new.op.name not in LOWER:
            return new
        ty = tensor_type(old)
        made = LOWER[new.op.name](new, ty) if ty is not None else None
        if made is None:
            return new
        infer(made, fragment=True, module=mod)
        return made

    return per_function(mod, lambda f: rewrite_typed(f, put))
