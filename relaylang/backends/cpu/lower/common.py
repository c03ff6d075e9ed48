"""Helpers of the lowerings: broadcasting, conversions, templates chosen by dtype."""
from __future__ import annotations

from collections.abc import Sequence

from relaylang.backends.cpu.dtypes import CTYPES, int_range, is_float
from relaylang.backends.cpu.index import ZERO, Affine
from relaylang.backends.cpu.kernel import Tensor, static_shape
from relaylang.backends.cpu.loops.vectors import SATURATE
from relaylang.backends.cpu.scalar import Index, Nest, Scalar
from relaylang.backends.cpu.sizes import Size
from relaylang.ir import Expr, TensorType, TupleType

#: Floats of 16 bits, and their names in C's helpers.
HALVES = {"float16": "f16", "bfloat16": "bf16"}


def result_type(call: Expr) -> tuple[tuple[int, ...], str]:
    """The shape and dtype of a call's tensor."""
    shape = static_shape(call.checked_type, call)
    assert isinstance(call.checked_type, TensorType)
    return shape, call.checked_type.dtype


def result_types(call: Expr) -> list[tuple[tuple[int, ...], str]]:
    """The shapes and dtypes of a call's tuple of tensors."""
    ty = call.checked_type
    fields = ty.fields if isinstance(ty, TupleType) else (ty,)
    return [(static_shape(f, call), f.dtype) for f in fields]  # type: ignore[union-attr]


def broadcast_at(tensor: Tensor, nest: Nest, index: Sequence[Index]) -> Scalar:
    """The element of an operand that belongs to an index of the broadcast result."""
    rank = len(tensor.shape)
    own = index[len(index) - rank :] if rank else ()
    return tensor.at(nest, [ZERO if e == 1 else i for i, e in zip(own, tensor.shape)])


def convert(nest: Nest, value: Scalar, dtype: str) -> Scalar:
    """A value as another dtype: floats are cut to integers, integers wrap, anything but zero is True."""
    if value.dtype == dtype:
        return value
    if value.dtype in HALVES:
        return convert(nest, nest.op(f"r_{HALVES[value.dtype]}_f32({{0}})", [value], "float32"), dtype)
    if (value.dtype, dtype) == ("float64", "float16"):
        return nest.op("r_f64_f16({0})", [value], dtype)
    if dtype in HALVES:
        return nest.op(f"r_f32_{HALVES[dtype]}({{0}})", [convert(nest, value, "float32")], dtype)
    if dtype == "bool":
        # A nan is False.
        test = "(({0} < 0) | ({0} > 0))" if is_float(value.dtype) else "({0} != 0)"
        return nest.op(f"(uint8_t){test}", [value], "bool")
    if is_float(value.dtype) and not is_float(dtype):
        # C leaves the conversion of a float that does not fit undefined. Others go through the type that x86 converts to.
        whole = "r_whole_i64" if dtype in ("int64", "uint32", "uint64") else "r_whole_i32"
        return nest.op(f"{whole}({{0}})" if dtype in ("int32", "int64") else f"({CTYPES[dtype]}){whole}({{0}})", [value], dtype)
    return nest.op(f"({CTYPES[dtype]})({{0}})", [value], dtype)


def number_of(nest: Nest, value: int, dtype: str) -> Scalar:
    """A number, which may be a size."""
    if isinstance(value, Size):
        return convert(nest, nest.op(f"(int64_t){value}", [], "int64"), dtype)
    return nest.const(float(value) if is_float(dtype) else value, dtype)


def typed(template: str, dtype: str) -> str:
    """A template whose result C may have widened (small integers), cut back to its type."""
    if dtype in ("float32", "float64", "int32", "int64", "uint32", "uint64", "bool"):
        return f"({template})"
    return f"({CTYPES[dtype]})({template})"


def clamp(nest: Nest, value: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """`min(max(value, low), high)`; a nan stays a nan."""
    value = nest.op("({0} < {1} ? {1} : {0})", [value, low], value.dtype)
    return nest.op("({0} > {1} ? {1} : {0})", [value, high], value.dtype)


def saturate(nest: Nest, value: Scalar, dtype: str) -> Scalar:
    """An integer as a narrower type; a value out of range becomes the nearest one in it."""
    if value.dtype == "int32" and dtype in SATURATE:
        return nest.op(SATURATE[dtype], [value], dtype)
    low, high = int_range(dtype)
    own_low, own_high = int_range(value.dtype)
    low, high = max(low, own_low), min(high, own_high)
    return convert(nest, clamp(nest, value, nest.const(low, value.dtype), nest.const(high, value.dtype)), dtype)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis + rank if axis < 0 else axis


def only_affine(index: Sequence[Index]) -> list[Affine]:
    """An index all of whose parts are affine (that of a nest's own loops)."""
    return [i for i in index if isinstance(i, Affine)]
