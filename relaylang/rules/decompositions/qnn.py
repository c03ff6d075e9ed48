"""Quantised products and functions as integer arithmetic. The integers are the same to the bit."""

from __future__ import annotations

from relaylang.ir import Call, Expr, TensorType
from relaylang.ops.build import op_call, scalar
from relaylang.rules.decompositions.common import Decomposition, cast, dtype_of, known, less, make, reshape, total, transpose, two


def _qnn_batch_matmul(call: Call, args: list[Expr]) -> Expr | None:
    x, y, x_zero, y_zero = args[:4]
    assert isinstance(call.checked_type, TensorType)
    if call.checked_type.dtype != "int32":
        return None
    return op_call(
        "nn.batch_matmul",
        [less(x, x_zero, 0), less(y, y_zero, 0)],
        call.checked_type,
        out_dtype="int32",
        transpose_a=call.attrs.transpose_a,
        transpose_b=call.attrs.transpose_b,
    )


def _dense_pack(call: Call, args: list[Expr]) -> Expr | None:
    """A product with weights in blocks of (inputs, units[, inputs]), which become rows again."""
    x, weight = args[:2]
    a, b, c, d = (*known(weight), 1)[:4]
    rows = reshape(transpose(reshape(weight, [a, b, c, d]), [0, 2, 1, 3]), [a * c, b * d])
    if len(args) > 2:
        x, rows = less(x, args[2], 0), less(rows, args[3], 0)
    assert isinstance(call.checked_type, TensorType)
    return op_call("nn.dense", [x, rows], call.checked_type, units=a * c, out_dtype=call.checked_type.dtype)


def _qnn_softmax(call: Call, args: list[Expr]) -> Expr | None:
    """The integer softmax of the interpreter's kernel, operator by operator."""
    x, in_scale, in_zero, scale, zero = args
    axis = call.attrs.axis % len(known(x))
    if known(in_scale) or known(in_zero):
        return None

    def number(value: int) -> Expr:
        return scalar(value, "int32")

    unit = cast(make("round", [two("divide", scalar(1.0, "float32"), in_scale)], []), "int32")
    minus = make("negative", [unit], [])
    shifted = less(x, in_zero, 0)
    apart = two("subtract", shifted, total(shifted, [axis], True, "max"))
    power = two("add", apart, two("right_shift", apart, number(1)))
    power = two("subtract", power, two("right_shift", apart, number(4)))
    exponent = two("floor_divide", two("subtract", power, two("trunc_mod", power, minus)), minus)
    exponent = make("clip", [exponent], known(exponent), a_min=0.0, a_max=20.0)
    rest = two("add", power, two("multiply", exponent, unit))
    left = two("subtract", total(exponent, [axis], True, "max"), exponent)
    powers = two("left_shift", two("add", two("right_shift", rest, number(1)), unit), left)
    sums = total(powers, [axis], True)
    output = two("right_shift", two("multiply", two("floor_divide", number(1 << 30), sums), powers), number(23))
    return op_call(
        "qnn.requantize", [output, scalar(1 / 128, "float32"), number(0), scale, zero], call.checked_type, axis=0, out_dtype="int8"
    )


def _qnn_hardswish(call: Call, args: list[Expr]) -> Expr | None:
    x, in_scale, in_zero, scale, zero = args
    shape = known(x)
    real = make("qnn.dequantize", [x, in_scale, in_zero], shape, "float32", axis=-1, out_dtype="float32")
    gate = make("clip", [two("add", real, scalar(3.0, "float32"))], shape, a_min=0.0, a_max=6.0)
    real = two("divide", two("multiply", real, gate), scalar(6.0, "float32"))
    return make("qnn.quantize", [real, scale, zero], shape, dtype_of(x), axis=-1, out_dtype=dtype_of(x))


RULES: dict[str, Decomposition] = {
    "qnn.batch_matmul": _qnn_batch_matmul,
    "nn.contrib_dense_pack": _dense_pack,
    "qnn.contrib_dense_pack": _dense_pack,
    "qnn.softmax": _qnn_softmax,
    "qnn.hardswish": _qnn_hardswish,
}
