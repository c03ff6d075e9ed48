"""Element-wise and broadcasting operators: a C expression for each, chosen by dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.kernel import Kernel, Number, Recipe, Tensor, Value
from relaylang.backends.cpu.lower.common import broadcast_at, clamp, result_type
from relaylang.ir import Call, TupleType
from relaylang.kernels import ir
from relaylang.kernels.dtypes import int_range, is_float
from relaylang.kernels.nest import Index, Nest, Scalar

#: Functions of one float -> the operation.
FLOAT_UNARY: Mapping[str, str] = {
    **{name: name for name in ("exp", "log", "log2", "log10", "sqrt", "rsqrt", "tanh", "atanh", "sigmoid", "erf", "floor", "ceil",
                               "trunc", "round", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh")},
    "fast_exp": "exp", "fast_tanh": "tanh", "fast_erf": "erf",
}  # fmt: skip
#: Operators whose result is their operand.
SAME = (
    "copy",
    "identity",
    "device_copy",
    "on_device",
    *(
        f"annotation.{mark}"
        for mark in (
            "bitpack_start",
            "bitpack_end",
            "cast_hint",
            "checkpoint",
            "compiler_begin",
            "compiler_end",
            "stop_fusion",
            "with_funcid",
        )
    ),
)
#: Functions of two numbers -> the operation.
BINARY: Mapping[str, str] = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "trunc_divide": "div",
    "floor_divide": "floor_div",
    "floor_mod": "floor_mod",
    "mod": "mod",
    "trunc_mod": "mod",
    "power": "pow",
    "maximum": "max",
    "minimum": "min",
    "left_shift": "left_shift",
    "right_shift": "right_shift",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}
#: Tests, whose result is a bool -> the operation.
COMPARE: Mapping[str, str] = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "logical_and": "and",
    "logical_or": "or",
    "logical_xor": "xor",
}
TESTS: Mapping[str, Callable[[Scalar], Scalar]] = {
    "isnan": lambda x: x.ne(x),
    "isfinite": lambda x: (x - x).eq(0),
    "isinf": lambda x: (x - x).ne(0) & x.eq(x),
}


def elementwise(shape: Sequence[int], dtype: str, args: Sequence[Tensor], make: Callable[[Nest, list[Scalar]], Scalar]) -> Recipe:
    """A tensor made element by element from operands that broadcast to its shape."""

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        return make(nest, [broadcast_at(a, nest, index, shape) for a in args])

    return Recipe(shape, dtype, at)


def unary(name: str, nest: Nest, x: Scalar) -> Scalar:
    """One function of one number, in the dtype of its operand."""
    dtype = x.type
    if name in FLOAT_UNARY:
        if is_float(dtype):
            return x.op(FLOAT_UNARY[name])
        return x if name in ("floor", "ceil", "trunc", "round") else unary(name, nest, x.cast("float64")).cast(dtype)
    if name == "nn.relu":
        return nest.const(0, dtype).op("max", x)  # a nan becomes zero
    if name in SAME or (name == "abs" and dtype.startswith("u")) or (dtype == "bool" and name in ("abs", "negative")):
        return x
    return x.op({"negative": "neg"}.get(name, name))


def binary(name: str, nest: Nest, a: Scalar, b: Scalar) -> Scalar:
    """One function of two numbers of one dtype."""
    dtype = a.type
    if dtype == "bool" and name in ("left_shift", "right_shift"):
        return a & b.eq(0)
    if dtype == "bool" and name in ("add", "subtract"):
        name = "bitwise_xor"
    if name == "maximum":
        return b.op("max", a)  # where one is a nan, the second
    if name == "minimum":
        return b.op("min", a)
    value = a.op(BINARY[name], b)
    return value.op("trunc") if name == "trunc_divide" and is_float(dtype) else value


def _unary(name: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        if isinstance(call.checked_type, TupleType):  # a mark of several tensors
            value: Value = args[0]
            return value
        shape, dtype = result_type(call)
        return elementwise(shape, dtype, args, lambda nest, xs: unary(name, nest, xs[0]))

    return lower


def _binary(name: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        return elementwise(shape, dtype, args, lambda nest, xs: binary(name, nest, xs[0], xs[1]))

    return lower


def _test(name: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        logical = name.startswith("logical_")

        def make(nest: Nest, xs: list[Scalar]) -> Scalar:
            return ir.op(COMPARE[name], *([x.ne(0) for x in xs] if logical else xs), type="bool")

        return elementwise(shape, dtype, args, make)

    return lower


def _float_test(name: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        if not is_float(args[0].dtype):
            return Number(name == "isfinite", "bool", shape)
        return elementwise(shape, dtype, args, lambda nest, xs: TESTS[name](xs[0]))

    return lower


def _cast(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    return elementwise(shape, dtype, args[:1], lambda nest, xs: xs[0].cast(dtype))


def _not(bits: bool) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        return elementwise(shape, dtype, args, lambda nest, xs: xs[0].op("not") if bits and dtype != "bool" else xs[0].eq(0))

    return lower


def _clip(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    low, high = call.attrs.a_min, call.attrs.a_max

    def make(nest: Nest, xs: list[Scalar]) -> Scalar:
        value = xs[0]
        least, most = low, high
        if not is_float(dtype):
            # Bounds beyond the type do not cut anything.
            type_low, type_high = int_range(dtype)
            least = type_low if least <= type_low else int(least)
            most = type_high if most >= type_high else int(most)
            if least > type_low:
                value = value.op("max", least)
            if most < type_high:
                value = value.op("min", most)
            return value
        return clamp(value, least, most)

    return elementwise(shape, dtype, args, make)


def _where(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    return elementwise(shape, dtype, args, lambda nest, xs: xs[0].select(xs[1], xs[2]))


def _filled(value: float) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        return Number(value, dtype, shape)

    return lower


def _full(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    fill = args[-1]
    return Recipe(shape, dtype, lambda nest, index: fill.at(nest, []).cast(dtype))


def _reinterpret(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    source = args[0].dtype
    if source == dtype:
        return args[0]  # type: ignore[no-any-return]
    return elementwise(shape, dtype, args, lambda nest, xs: ir.op("bitcast", *xs, type=dtype))


RECIPES: dict[str, Any] = {
    **{name: _unary(name) for name in [*FLOAT_UNARY, *SAME, "negative", "nn.relu", "sign", "abs"]},
    **{name: _binary(name) for name in BINARY},
    **{name: _test(name) for name in COMPARE},
    **{name: _float_test(name) for name in TESTS},
    "cast": _cast,
    "cast_like": _cast,
    "logical_not": _not(False),
    "bitwise_not": _not(True),
    "clip": _clip,
    "where": _where,
    "zeros": _filled(0),
    "ones": _filled(1),
    "zeros_like": _filled(0),
    "ones_like": _filled(1),
    "full": _full,
    "full_like": _full,
    "reinterpret": _reinterpret,
}
