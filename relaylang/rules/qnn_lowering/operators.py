"""Plain integer operators for the calls of the qnn dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, TensorType, Tuple, TupleGetItem, TupleType, Type
from relaylang.ops import OPS, Trait, forms, make_attrs
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.rules.qnn_lowering.numbers import Numbers, constant, fixed_point, is_zero, saturated

#: `(numbers, call, types of its operands, type of its result)` to plain operators.
Rule = Callable[[Numbers, Call, "Sequence[Type | None]", TensorType], Expr]


def _rank(ty: Type | None) -> int:
    return len(ty.shape) if isinstance(ty, TensorType) else 0


def _refuse(call: Call, what: str) -> RelayError:
    assert isinstance(call.op, Op)
    return RelayError(error("R0517", f"{call.op.name}: {what}", call.span))


def _less_zero(n: Numbers, x: Expr, zero: Expr, ty: Type | None, axis: int, rank: int) -> Expr:
    """An integer tensor less its zero point (of type `ty`), as int32."""
    wide = op_call("cast", [x], dtype="int32")
    return wide if is_zero(zero) else op_call("subtract", [wide, n.cast(n.along(zero, ty, axis, rank), "int32")])


# ---- requantize, quantize, dequantize


def _rescaled(n: Numbers, call: Call, shifted: Expr, multiplier: Expr, out_zero: Expr, dtype: str, rank: int) -> Expr:
    """An int32 tensor times real numbers, at another zero point and in another element type."""
    rounding, compute = (getattr(call.attrs, name, "None") for name in ("rounding", "compute_dtype"))
    rounding = n.rounding if rounding == "None" else rounding
    compute = n.compute_dtype if compute == "None" else compute
    if rounding not in ("UPWARD", "TONEAREST"):
        raise _refuse(call, f"rounding={rounding!r}; there are UPWARD and TONEAREST")
    if compute not in ("int64", "float32", "float64"):
        raise _refuse(call, f"compute_dtype={compute!r}; there are int64, float32 and float64")
    upward = rounding == "UPWARD"
    if compute in ("float32", "float64"):
        real = op_call("multiply", [op_call("cast", [shifted], dtype=compute), n.cast(multiplier, compute)])
        if not is_zero(out_zero):
            real = op_call("add", [real, n.cast(out_zero, compute)])
        if upward:
            real = op_call("floor", [op_call("add", [real, constant(0.5, compute)])])
        else:
            real = op_call("round", [real])
        return saturated(op_call("cast", [real], dtype="int32"), dtype)
    scaled = n.scaled(shifted, multiplier, rank, upward)
    return saturated(scaled if is_zero(out_zero) else op_call("add", [scaled, out_zero]), dtype)


def _at(n: Numbers, call: Call, x: Expr, args: Sequence[Expr], types: Sequence[Type | None], dtype: str, axis: int, rank: int) -> Expr:
    """A tensor from the scale and zero point `args[:2]` (of `types`) to those of `args[2:]`.

    Where both are known to be equal, the tensor stays, as int32 where `dtype` is int32.
    """
    if all(_same(a, b) for a, b in zip(args[:2], args[2:])):
        return op_call("cast", [x], dtype="int32") if dtype == "int32" else x
    _check_scale(call, args[2])
    shifted = _less_zero(n, x, args[1], types[1], axis, rank)
    multiplier = n.ratio(n.along(args[0], types[0], axis, rank), args[2])
    return _rescaled(n, call, shifted, multiplier, args[3], dtype, rank)


def _same(a: Expr, b: Expr) -> bool:
    known = isinstance(a, Constant) and isinstance(b, Constant) and a.data.ndim == b.data.ndim == 0
    return a is b or (known and bool(a.data == b.data))  # type: ignore[attr-defined]


def _check_scale(call: Call, scale: Expr) -> None:
    if is_zero(scale):
        raise _refuse(call, "the output's scale is 0")


def _requantize(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    x, in_scale, in_zero, out_scale, out_zero = call.args
    attrs, rank = call.attrs, len(ty.shape)
    _check_scale(call, out_scale)
    shifted = _less_zero(n, x, in_zero, types[2], attrs.axis, rank)
    multiplier = n.ratio(n.along(in_scale, types[1], attrs.axis, rank), out_scale)
    return _rescaled(n, call, shifted, multiplier, out_zero, ty.dtype, rank)


def _quantized(n: Numbers, x: Expr, scale: Expr, zero: Expr, dtype: str) -> Expr:
    real = op_call("add", [op_call("round", [op_call("divide", [x, scale])]), n.cast(zero, "float32")])
    info = np.iinfo(dtype)
    if dtype == "int32":  # whose bounds float32 does not hold; and nan is 0
        real = op_call("where", [op_call("equal", [real, real]), real, constant(0, "float32")])
        real = op_call("cast", [real], dtype="float64")
    return op_call("cast", [op_call("clip", [real], a_min=float(info.min), a_max=float(info.max))], dtype=dtype)


def _quantize(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    rank, axis = len(ty.shape), call.attrs.axis
    scale, zero = (n.along(a, t, axis, rank) for a, t in zip(call.args[1:], types[1:]))
    return _quantized(n, call.args[0], scale, zero, ty.dtype)


def _dequantize(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    x, scale, zero = call.args
    rank, axis = len(ty.shape), call.attrs.axis
    shifted = _less_zero(n, x, zero, types[2], axis, rank)
    real = op_call("multiply", [op_call("cast", [shifted], dtype="float32"), n.along(scale, types[1], axis, rank)])
    if ty.dtype == "float32":
        return real
    top = float(np.finfo(ty.dtype).max)
    return op_call("cast", [op_call("clip", [real], a_min=-top, a_max=top)], dtype=ty.dtype)


# ---- products


def _weight_zero(n: Numbers, zero: Expr, ty: Type | None, layout: str) -> Expr:
    """A zero point a channel, laid along the output channels of a kernel layout, which may be in blocks (OIHW4o)."""
    if _rank(ty) != 1 or not isinstance(ty, TensorType) or ty.shape[0] == 1:
        return n.along(zero, ty, 0, len(layout))
    axes = [c for c in layout if c.isalpha()]
    shape = [1] * len(axes)
    inner = layout.find("o")
    if inner >= 0:
        digits = ""
        while layout[inner - 1 - len(digits)].isdigit():
            digits = layout[inner - 1 - len(digits)] + digits
        shape[axes.index("o")] = int(digits)
    shape[axes.index("O")] = -1
    return n.op("reshape", zero, newshape=shape)


def _product(name: str) -> Rule:
    """Convolutions and matrix products: without their zero points, operands give plain sums of products."""

    def lower(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
        attrs = call.attrs
        data = _less_zero(n, call.args[0], call.args[2], types[2], 0, _rank(types[0]))
        weight = op_call("cast", [call.args[1]], dtype="int32")
        zero = call.args[3]
        if not is_zero(zero):
            if hasattr(attrs, "kernel_layout"):
                zero = _weight_zero(n, zero, types[3], attrs.kernel_layout)
            else:
                zero = n.along(zero, types[3], 0, _rank(types[1]))
            weight = op_call("subtract", [weight, n.cast(zero, "int32")])
        op = OPS[name]
        assert op.attrs is not None
        kept = {k: getattr(attrs, k) for k in op.schema if hasattr(attrs, k)}
        if "out_dtype" in op.schema:
            kept["out_dtype"] = attrs.out_dtype or "int32"
        return Call(op, [data, weight], make_attrs(op.attrs, kept), (), call.span)

    return lower


def _dense_pack(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    """A weight in tiles is laid out in rows first. Its shape is (N, K, n, k) in NKnk, and (N, K, n) in NCn."""
    data, weight = _less_zero(n, call.args[0], call.args[2], types[2], 0, 2), call.args[1]
    if _rank(types[1]) == 4:
        weight = op_call("transpose", [weight], axes=[0, 2, 1, 3])
    units, zero = ty.shape[1], call.args[3]
    if not isinstance(units, int):
        raise _refuse(call, "the number of units is not known")
    rows = op_call("cast", [op_call("reshape", [weight], newshape=[units, -1])], dtype="int32")
    if not is_zero(zero):
        rows = op_call("subtract", [rows, n.cast(n.along(zero, types[3], 0, 2), "int32")])
    return op_call("nn.dense", [data, rows], units=units, out_dtype=ty.dtype)


# ---- sums, products and joins of tensors with scales of their own


def _side(call: Call, types: Sequence[Type | None], side: int) -> tuple[int, int]:
    """The axis of a side's channels, and its number of dimensions."""
    rank = _rank(types[side])
    return (call.attrs.rhs_axis if side else call.attrs.lhs_axis) if rank > 1 else 0, rank


def _sum(name: str) -> Rule:
    def lower(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
        out = call.args[6:]
        sides = []
        for i in (0, 1):
            scales = slice(2 + 2 * i, 4 + 2 * i)
            axis, rank = _side(call, types, i)
            sides.append(_at(n, call, call.args[i], [*call.args[scales], *out], types[scales], "int32", axis, rank))
        total = op_call(name, sides)
        if not is_zero(out[1]):
            total = op_call("subtract" if name == "add" else "add", [total, out[1]])
        return saturated(total, ty.dtype)

    return lower


def _multiply(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    _check_scale(call, call.args[6])
    sides, scales = [], []
    for i in (0, 1):
        axis, rank = _side(call, types, i)
        scale, zero = call.args[2 + 2 * i : 4 + 2 * i]
        sides.append(_less_zero(n, call.args[i], zero, types[3 + 2 * i], axis, rank))
        scales.append(n.along(scale, types[2 + 2 * i], axis, rank))
    multiplier = n.ratio(n.op("multiply", *scales), call.args[6])
    product = op_call("multiply", sides)
    return _rescaled(n, call, product, multiplier, call.args[7], ty.dtype, len(ty.shape))


def _fields(expr: Expr, ty: Type | None) -> list[Expr]:
    if isinstance(expr, Tuple):
        return list(expr.fields)
    return [TupleGetItem(expr, i) for i in range(len(ty.fields))] if isinstance(ty, TupleType) else []


def _concatenate(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    parts, scales, zeros = (_fields(a, t) for a, t in zip(call.args[:3], types))
    unknown: list[Type | None] = [None, None]
    held = [
        _at(n, call, part, [scale, zero, *call.args[3:]], unknown, ty.dtype, -1, len(ty.shape))
        for part, scale, zero in zip(parts, scales, zeros)
    ]
    return op_call("concatenate", [Tuple(held)], axis=call.attrs.axis)


# ---- functions


def _through_floats(f: Callable[[Expr], Expr]) -> Rule:
    def lower(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
        x, in_scale, in_zero, scale, zero = call.args
        shifted = _less_zero(n, x, in_zero, None, -1, len(ty.shape))
        real = op_call("multiply", [op_call("cast", [shifted], dtype="float32"), in_scale])
        return _quantized(n, f(real), scale, zero, ty.dtype)

    return lower


def _real_function(name: str) -> Rule:
    return _through_floats(lambda x: op_call(name, [x]))


def _hardswish(x: Expr) -> Expr:
    gate = op_call("clip", [op_call("add", [x, constant(3, "float32")])], a_min=0.0, a_max=6.0)
    return op_call("divide", [op_call("multiply", [x, gate]), constant(6, "float32")])


def _leaky_relu(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    held = _at(n, call, call.args[0], call.args[1:], types[1:], "int32", -1, len(ty.shape))

    def times(x: Expr, factor: float) -> Expr:
        significand, shift = fixed_point(factor)
        return n.op("fixed_point_multiply", x, multiplier=int(significand), shift=int(shift))

    below = op_call("add", [times(held, call.attrs.alpha), times(call.args[4], 1 - call.attrs.alpha)])
    negative = op_call("less", [op_call("cast", [call.args[0]], dtype="int32"), call.args[2]])
    return saturated(op_call("where", [negative, below, held]), ty.dtype)


def _avg_pool2d(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    held = _at(n, call, call.args[0], call.args[1:], types[1:], "int32", -1, len(ty.shape))
    attrs = {k: getattr(call.attrs, k) for k in OPS["nn.avg_pool2d"].schema}
    return saturated(op_call("nn.avg_pool2d", [held], **attrs), ty.dtype)


def _softmax(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    """The integer-only softmax of arXiv 2207.01405: exponentials as powers of two by shifts, a quotient in 30 bits."""
    x, in_scale, in_zero, scale, zero = call.args
    axis = [call.attrs.axis]
    unit = n.cast(n.op("round", n.op("divide", constant(1, "float32"), in_scale)), "int32")
    if is_zero(unit):
        raise _refuse(call, "the input's scale is above 1")
    _check_scale(call, scale)

    def of(name: str, a: Expr, b: Expr) -> Expr:
        return op_call(name, [a, b])

    def number(value: int) -> Constant:
        return constant(value, "int32")

    shifted = of("subtract", op_call("cast", [x], dtype="int32"), in_zero)
    apart = of("subtract", shifted, op_call("max", [shifted], axis=axis, keepdims=True))
    power = of("subtract", of("add", apart, of("right_shift", apart, number(1))), of("right_shift", apart, number(4)))
    exponent = of("floor_divide", op_call("negative", [power]), unit)
    exponent = op_call("clip", [exponent], a_min=0.0, a_max=20.0)
    rest = of("add", power, of("multiply", exponent, unit))
    most = op_call("max", [exponent], axis=axis, keepdims=True)
    exps = of("left_shift", of("add", of("right_shift", rest, number(1)), unit), of("subtract", most, exponent))
    sums = op_call("sum", [exps], axis=axis, keepdims=True)
    output = of("right_shift", of("multiply", of("floor_divide", number(1 << 30), sums), exps), number(30 - 7))
    multiplier = n.ratio(constant(1 / 128, "float32"), scale)
    return _rescaled(n, call, output, multiplier, zero, ty.dtype, len(ty.shape))


# ---- simulated quantization: whole numbers in floats, of the element type that an operand names


_SIMULATED = {1: "int8", 2: "uint8", 3: "int32"}


def _every(n: Numbers, x: Expr, ty: Type | None, axis: int, rank: int) -> Expr:
    if isinstance(ty, TensorType) and all(d == 1 for d in ty.shape):
        return n.op("reshape", x, newshape=[]) if ty.shape else x
    return n.along(x, ty, axis, rank)


def _chosen(n: Numbers, call: Call, types: Sequence[Type | None], make_branch: Callable[[str], Expr]) -> Expr:
    """The expression made for the element type that the operand's number names; the data for other numbers."""
    code = call.args[1]
    if _rank(types[1]):
        code = n.op("take", n.op("reshape", code, newshape=[-1]), constant(0, "int32"), axis=0)
    code = n.cast(code, "int32")
    if isinstance(code, Constant):
        dtype = _SIMULATED.get(int(code.data))
        return call.args[0] if dtype is None else make_branch(dtype)
    result = call.args[0]
    for number, dtype in _SIMULATED.items():
        is_it = op_call("equal", [code, constant(number, "int32")])
        result = op_call("where", [is_it, make_branch(dtype), result])
    return result


def _simulated_quantize(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    scale, zero = (_every(n, call.args[i], types[i], call.attrs.axis, len(ty.shape)) for i in (2, 3))
    rounded = op_call("round", [op_call("divide", [call.args[0], n.cast(scale, ty.dtype)])])
    shifted = op_call("add", [rounded, n.cast(zero, ty.dtype)])

    def held(dtype: str) -> Expr:
        info = np.iinfo(dtype)
        return op_call("clip", [shifted], a_min=float(info.min), a_max=float(info.max))

    return _chosen(n, call, types, held)


def _simulated_dequantize(n: Numbers, call: Call, types: Sequence[Type | None], ty: TensorType) -> Expr:
    scale, zero = (_every(n, call.args[i], types[i], call.attrs.axis, len(ty.shape)) for i in (2, 3))
    shifted = op_call("subtract", [call.args[0], n.cast(zero, ty.dtype)])
    real = op_call("multiply", [shifted, n.cast(scale, ty.dtype)])
    return _chosen(n, call, types, lambda dtype: real)


_PRODUCTS = (Trait.CONV, Trait.CONV_TRANSPOSE, Trait.MATMUL)

# Later rows replace the rules of operators that need more than the rule of their kind.
RULES: Mapping[str, Rule] = {
    "qnn.requantize": _requantize,
    "qnn.quantize": _quantize,
    "qnn.dequantize": _dequantize,
    **{name: _product(OPS[name].of) for trait in _PRODUCTS for name in forms(Trait.QUANTISED, trait)},
    **{name: _real_function(OPS[name].of) for name in forms(Trait.QUANTISED, Trait.UNARY)},
    "qnn.contrib_dense_pack": _dense_pack,
    "qnn.add": _sum("add"),
    "qnn.subtract": _sum("subtract"),
    "qnn.mul": _multiply,
    "qnn.concatenate": _concatenate,
    "qnn.leaky_relu": _leaky_relu,
    "qnn.avg_pool2d": _avg_pool2d,
    "qnn.softmax": _softmax,
    "qnn.hardswish": _through_floats(_hardswish),
    "qnn.simulated_quantize": _simulated_quantize,
    "qnn.simulated_dequantize": _simulated_dequantize,
}
