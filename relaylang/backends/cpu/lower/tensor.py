"""Element-wise and broadcasting operators: a C expression for each, chosen by dtype."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.backends.cpu.dtypes import CTYPES, int_range, is_float
from relaylang.backends.cpu.kernel import Kernel, Number, Recipe, Tensor, Value
from relaylang.backends.cpu.lower.common import broadcast_at, convert, result_type, typed
from relaylang.backends.cpu.scalar import Index, Nest, Scalar
from relaylang.ir import Call

#: Functions of one float. A pair is (float32, float64).
FLOAT_UNARY: dict[str, tuple[str, str]] = {
    "exp": ("r_exp_f32({0})", "exp({0})"),
    "fast_exp": ("r_exp_f32({0})", "exp({0})"),
    "log": ("r_log_f32({0})", "log({0})"),
    "log2": ("log2f({0})", "log2({0})"),
    "log10": ("log10f({0})", "log10({0})"),
    "sqrt": ("__builtin_sqrtf({0})", "__builtin_sqrt({0})"),
    "rsqrt": ("(1.0f / __builtin_sqrtf({0}))", "(1.0 / __builtin_sqrt({0}))"),
    "tanh": ("r_tanh_f32({0})", "tanh({0})"),
    "atanh": ("r_atanh_f32({0})", "atanh({0})"),
    "fast_tanh": ("r_tanh_f32({0})", "tanh({0})"),
    "sigmoid": ("r_sigmoid_f32({0})", "(1.0 / (1.0 + exp(-{0})))"),
    "erf": ("r_erf_f32({0})", "erf({0})"),
    "fast_erf": ("r_erf_f32({0})", "erf({0})"),
    "floor": ("__builtin_floorf({0})", "__builtin_floor({0})"),
    "ceil": ("__builtin_ceilf({0})", "__builtin_ceil({0})"),
    "trunc": ("__builtin_truncf({0})", "__builtin_trunc({0})"),
    "round": ("r_round_f32({0})", "round({0})"),
    **{f: (f"{f}f({{0}})", f"{f}({{0}})") for f in ("sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan",
                                                    "asinh", "acosh")},
}  # fmt: skip
#: Functions of one number of any type.
UNARY: dict[str, str] = {
    "negative": "-{0}",
    "copy": "{0}",
    "identity": "{0}",
    "device_copy": "{0}",
    **{f"annotation.{mark}": "{0}" for mark in ("bitpack_start", "bitpack_end", "cast_hint", "checkpoint",
                                                "compiler_begin", "compiler_end", "stop_fusion", "with_funcid")},
    "on_device": "{0}",
    # A nan becomes zero.
    "nn.relu": "{0} > 0 ? {0} : 0",
    "sign": "({0} > 0) - ({0} < 0)",
}
#: Functions of two numbers: (floats, integers).
BINARY: dict[str, tuple[str, str]] = {
    "add": ("{0} + {1}", "{0} + {1}"),
    "subtract": ("{0} - {1}", "{0} - {1}"),
    "multiply": ("{0} * {1}", "{0} * {1}"),
    "divide": ("{0} / {1}", "r_div({0}, {1})"),
    "trunc_divide": ("TRUNC({0} / {1})", "r_div({0}, {1})"),
    "floor_divide": ("FLOOR({0} / {1})", "r_floor_div({0}, {1})"),
    "floor_mod": ("{0} - FLOOR({0} / {1}) * {1}", "r_floor_mod({0}, {1})"),
    "mod": ("FMOD({0}, {1})", "r_mod({0}, {1})"),
    "trunc_mod": ("FMOD({0}, {1})", "r_mod({0}, {1})"),
    "power": ("POW({0}, {1})", "r_pow_int({0}, {1})"),
    "maximum": ("{0} > {1} ? {0} : {1}", "{0} > {1} ? {0} : {1}"),
    "minimum": ("{0} < {1} ? {0} : {1}", "{0} < {1} ? {0} : {1}"),
    "left_shift": ("", "r_left_shift({0}, {1})"),
    "right_shift": ("", "r_right_shift({0}, {1})"),
    "bitwise_and": ("", "{0} & {1}"),
    "bitwise_or": ("", "{0} | {1}"),
    "bitwise_xor": ("", "{0} ^ {1}"),
}
#: Tests, whose result is a bool.
COMPARE: dict[str, str] = {
    "equal": "({0} == {1})",
    "not_equal": "({0} != {1})",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "logical_and": "(({0} != 0) & ({1} != 0))",
    "logical_or": "(({0} != 0) | ({1} != 0))",
    "logical_xor": "(({0} != 0) ^ ({1} != 0))",
}
TESTS: dict[str, tuple[str, str]] = {
    "isnan": ("({0} != {0})", "0"),
    "isfinite": ("(({0} - {0}) == 0)", "1"),
    "isinf": ("((({0} - {0}) != 0) & ({0} == {0}))", "0"),
}
_MACROS = {"TRUNC": "__builtin_trunc", "FLOOR": "__builtin_floor", "FMOD": "fmod", "POW": "pow"}


def _float_template(pair: tuple[str, str], dtype: str) -> str:
    return pair[1] if dtype == "float64" else pair[0]


def _suffixed(template: str, dtype: str) -> str:
    for macro, name in _MACROS.items():
        template = template.replace(f"{macro}(", f"{name}(" if dtype == "float64" else f"{name}f(")
    return template


def elementwise(shape: Sequence[int], dtype: str, args: Sequence[Tensor],
                make: Callable[[Nest, list[Scalar]], Scalar]) -> Recipe:  # fmt: skip
    """A tensor made element by element from operands that broadcast to its shape."""

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        return make(nest, [broadcast_at(a, nest, index) for a in args])

    return Recipe(shape, dtype, at)


def unary(name: str, nest: Nest, x: Scalar) -> Scalar:
    """One function of one number, in the dtype of its operand."""
    dtype = x.dtype
    if name in FLOAT_UNARY:
        if not is_float(dtype):
            if name in ("floor", "ceil", "trunc", "round"):
                return x
            return convert(nest, unary(name, nest, convert(nest, x, "float64")), dtype)
        return nest.op(_float_template(FLOAT_UNARY[name], dtype), [x], dtype)
    if name == "abs":
        if is_float(dtype):
            template = {"float32": "__builtin_fabsf({0})", "float64": "__builtin_fabs({0})"}.get(
                dtype, "({0} < 0 ? -{0} : {0})"
            )
            return nest.op(template, [x], dtype)
        return x if dtype.startswith("u") or dtype == "bool" else nest.op(typed("{0} < 0 ? -{0} : {0}", dtype), [x], dtype)
    if dtype == "bool" and name == "negative":
        return x
    return nest.op(typed(UNARY[name], dtype), [x], dtype)


def binary(name: str, nest: Nest, a: Scalar, b: Scalar) -> Scalar:
    """One function of two numbers of one dtype."""
    dtype = a.dtype
    if dtype == "bool" and name in ("add", "subtract"):
        name = "bitwise_xor"
    if dtype == "bool" and name in ("left_shift", "right_shift"):
        return nest.op("({0} & !{1})", [a, b], dtype)
    template = _suffixed(BINARY[name][0], dtype) if is_float(dtype) else BINARY[name][1]
    return nest.op(typed(template, dtype), [a, b], dtype)


def _unary(name: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        return elementwise(shape, dtype, args, lambda nest, xs: unary(name, nest, xs[0]))

    return lower


def _binary(name: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        return elementwise(shape, dtype, args, lambda nest, xs: binary(name, nest, xs[0], xs[1]))

    return lower


def _test(template: str) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        return elementwise(shape, dtype, args, lambda nest, xs: nest.op(f"(uint8_t){template}", xs, "bool"))

    return lower


def _float_test(pair: tuple[str, str]) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        template = pair[0] if is_float(args[0].dtype) else pair[1]
        shape, dtype = result_type(call)
        return elementwise(shape, dtype, args, lambda nest, xs: nest.op(f"(uint8_t){template}", xs, "bool"))

    return lower


def _cast(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    return elementwise(shape, dtype, args[:1], lambda nest, xs: convert(nest, xs[0], dtype))


def _logical_not(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    return elementwise(shape, dtype, args, lambda nest, xs: nest.op("(uint8_t)({0} == 0)", xs, "bool"))


def _bitwise_not(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    template = "(uint8_t)({0} == 0)" if dtype == "bool" else typed("~{0}", dtype)
    return elementwise(shape, dtype, args, lambda nest, xs: nest.op(template, xs, dtype))


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
                value = nest.op("({0} < {1} ? {1} : {0})", [value, nest.const(least, dtype)], dtype)
            if most < type_high:
                value = nest.op("({0} > {1} ? {1} : {0})", [value, nest.const(most, dtype)], dtype)
            return value
        value = nest.op("({0} < {1} ? {1} : {0})", [value, nest.const(least, dtype)], dtype)
        return nest.op("({0} > {1} ? {1} : {0})", [value, nest.const(most, dtype)], dtype)

    return elementwise(shape, dtype, args, make)


def _where(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    return elementwise(shape, dtype, args, lambda nest, xs: nest.op("({0} ? {1} : {2})", xs, dtype))


def _filled(value: float) -> Any:
    def lower(kernel: Kernel, call: Call, args: list[Any]) -> Value:
        shape, dtype = result_type(call)
        return Number(value, dtype, shape)

    return lower


def _full(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    fill = args[-1]
    return Recipe(shape, dtype, lambda nest, index: convert(nest, fill.at(nest, []), dtype))


def _reinterpret(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    shape, dtype = result_type(call)
    source = args[0].dtype
    if source == dtype:
        return args[0]  # type: ignore[no-any-return]
    helper = {("float32", "int32"): "r_bits_f32({0})", ("int32", "float32"): "r_f32_bits({0})",
              ("float32", "uint32"): "(uint32_t)r_bits_f32({0})",
              ("uint32", "float32"): "r_f32_bits((int32_t){0})"}.get((source, dtype))  # fmt: skip
    if helper is None:
        held = f"{CTYPES[dtype]} to_; const {CTYPES[source]} from_ = {{0}}; memcpy(&to_, &from_, sizeof to_);"
        helper = f"({{{{ {held} to_; }}}})"
    return elementwise(shape, dtype, args, lambda nest, xs: nest.op(helper, xs, dtype))


RECIPES: dict[str, Any] = {
    **{name: _unary(name) for name in [*FLOAT_UNARY, *UNARY, "abs"]},
    **{name: _binary(name) for name in BINARY},
    **{name: _test(template) for name, template in COMPARE.items()},
    **{name: _float_test(pair) for name, pair in TESTS.items()},
    "cast": _cast,
    "cast_like": _cast,
    "logical_not": _logical_not,
    "bitwise_not": _bitwise_not,
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
