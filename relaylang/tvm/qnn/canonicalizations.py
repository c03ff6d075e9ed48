"""Functions of quantized tensors as tables: `tvm.relay.qnn.op.canonicalizations`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import Call, Constant, Expr, Function, IRModule
from relaylang.tvm import op
from relaylang.tvm.qnn import op as qnn
from relaylang.typing import check


def run_const_expr(expr: Expr) -> np.ndarray:
    """The value of an expression without free variables. Raises `RelayError`."""
    mod = IRModule.from_expr(Function((), expr))
    check(mod)
    return np.asarray(Evaluator(mod).call("main", (), {}))


def create_integer_lookup_table(
    floating_point_func: Callable[[np.ndarray], np.ndarray],
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    in_axis: int = -1,
    out_axis: int = -1,
    in_dtype: str = "uint8",
    out_dtype: str = "uint8",
) -> np.ndarray:
    """The results of a function for all values of `in_dtype`, in the order of their bits as an unsigned number.

    Raises `ValueError` for an element type that is not one of integers.
    """
    for dtype in (in_dtype, out_dtype):
        if not np.issubdtype(np.dtype(dtype), np.integer):
            raise ValueError(f"a table is one of integers, not of {dtype}")
    bits = np.iinfo(in_dtype).bits
    every = Constant(np.arange(1 << bits, dtype=f"uint{bits}").view(in_dtype))
    values = run_const_expr(qnn.dequantize(every, input_scale, input_zero_point, axis=in_axis))
    results = Constant(np.asarray(floating_point_func(values)).astype("float32"))
    return run_const_expr(qnn.quantize(results, output_scale, output_zero_point, axis=out_axis, out_dtype=out_dtype))


def create_integer_lookup_op(
    input_arg: Expr,
    floating_point_func: Callable[[np.ndarray], np.ndarray],
    in_scale: Constant,
    in_zero_point: Constant,
    out_scale: Constant,
    out_zero_point: Constant,
    in_axis: int = -1,
    out_axis: int = -1,
    in_dtype: str = "uint8",
    out_dtype: str = "uint8",
) -> Call:
    """A function of a quantized tensor, element by element, as a `take` of its table."""

    def scalar(value: Constant, dtype: str) -> Constant:
        return Constant(np.asarray(value.data, dtype).reshape(()))

    table = create_integer_lookup_table(
        floating_point_func,
        scalar(in_scale, "float32"),
        scalar(in_zero_point, "int32"),
        scalar(out_scale, "float32"),
        scalar(out_zero_point, "int32"),
        in_axis,
        out_axis,
        in_dtype,
        out_dtype,
    )
    places = op.reinterpret(input_arg, f"uint{np.iinfo(in_dtype).bits}")
    taken: Call = op.take(Constant(table), places, axis=0, mode="fast")
    return taken


def hardswish_func(x: np.ndarray) -> np.ndarray:
    """`x * relu6(x + 3) / 6`."""
    product: np.ndarray = x * np.clip(x + 3.0, 0.0, 6.0) / 6.0
    return product


__all__ = ["create_integer_lookup_op", "create_integer_lookup_table", "hardswish_func", "run_const_expr"]
