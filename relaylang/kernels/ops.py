"""The operations of the kernel language: a row for each, with its meaning in numpy and its C.

An operation takes values of element types and gives one of the type that its node names. C's operators widen short
integers; `cut` says that a result may have to be cut back to its type (`ALWAYS`: that C gives it another one). Rows
whose C differs by type have it by the type of the first operand: `float32`, `float64`, or "" for all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.kernels.dtypes import CTYPES

Meaning = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its meaning on arrays of the operands' types, and its C with `{0}`, `{1}` ... for operands.

    `vectors` has its C on vectors of float32 and int32 (`{v}` is the suffix of helpers), where there is one. `lazy`
    operations compute only some of their operands: `select` one of two values.
    """

    name: str
    meaning: Meaning
    c: Mapping[str, str]
    vectors: Mapping[str, str]
    cut: str = ""
    lazy: bool = False

    def form(self, dtype: str, operand: str) -> str:
        """The C for a result of `dtype` and a first operand of the type `operand`."""
        text = self.c.get(dtype if self.name == "saturate" else operand) or self.c[""]
        return f"({CTYPES.get(dtype, 'long')}){text}" if self.cut == ALWAYS or (self.cut and dtype in SHORT) else text

    def on_vectors(self, dtype: str) -> str | None:
        """The C for vectors of a type; None where there is none."""
        return self.vectors.get(dtype) or (self.c[""] if self.name in ("add", "sub", "mul", "neg") else None)


#: Which results are cut back to their type: those of short integers, or all.
SHORT_ONES, ALWAYS = "short", "always"
#: Types that C computes with as `int`, and the suffix of their helpers.
SHORT: Mapping[str, str] = {"int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16"}


def _truncated(x: Any, y: Any) -> Any:
    """A quotient of integers towards zero; 0 by zero. The least number by -1 wraps."""
    safe = np.where(y == 0, 1, y)
    quotient = x // safe
    return np.where(y == 0, 0, quotient + ((x % safe != 0) & ((x < 0) != (y < 0))))


def _remainder(x: Any, y: Any) -> Any:
    return np.where(y == 0, 0, x - _truncated(x, y) * y)


def _floored(x: Any, y: Any) -> tuple[Any, Any]:
    """The quotient that is rounded down, and its remainder."""
    rest = _remainder(x, y)
    off = (rest != 0) & ((rest < 0) != (y < 0))
    return _truncated(x, y) - off, np.where(off, rest + y, rest)


def _shift(left: bool) -> Meaning:
    def meaning(x: Any, n: Any) -> Any:
        bits = 8 * x.dtype.itemsize
        inside = (n >= 0) & (n < bits)
        places = np.where(inside, n, 0).astype(x.dtype)
        beyond = 0 if left else np.where(x < 0, -1, 0).astype(x.dtype)
        return np.where(inside, x << places if left else x >> places, beyond)

    return meaning


def _power(x: Any, n: Any) -> Any:
    """A power of integers, which wraps; a negative one is 0 but for 1 and -1."""
    negative = n < 0
    own, left, out = x.astype(np.uint64), np.where(negative, n & 1, n).astype(np.uint64), np.ones(np.broadcast(x, n).shape, np.uint64)
    while left.any():
        out = np.where(left & np.uint64(1), out * own, out)
        own, left = own * own, left >> np.uint64(1)
    return np.where(negative & (x != 1) & (x + 1 != 0), np.uint64(0), out)


def _rounded(x: Any) -> Any:
    """The nearest whole number; halves away from zero."""
    truncated = np.trunc(x)
    return np.where(np.abs(x - truncated) >= 0.5, truncated + np.copysign(1.0, x).astype(x.dtype), truncated)


def _fixed(x: Any, significand: Any, half: Any, right: Any, *_: Any) -> Any:
    return (x.astype(np.int64) * significand + half) >> right


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _parts(m: Any) -> tuple[Any, Any]:
    """The significand of 31 bits and the exponent of numbers; halves of the last bit are rounded away from zero."""
    fraction, shift = np.frexp(m)
    significand = _rounded(fraction * 2.0**31).astype(np.int64)
    over = significand == 1 << 31
    return np.where(over, significand // 2, significand), np.where(over, shift + 1, shift).astype(np.int64)


def _fixed_right(m: Any) -> Any:
    shift = _parts(m)[1]
    return np.where(shift > 30, 0, np.where(shift > -32, 31 - shift, 63))


def _fixed_low(m: Any) -> Any:
    significand, shift = _parts(m)
    return significand.astype(np.uint64) << np.clip(shift - 31, 0, 32).astype(np.uint64)


def _fixed_multiply(nearest: bool) -> Meaning:
    def meaning(x: Any, significand: Any, shift: Any) -> Any:
        left = np.clip(shift, 0, 63)
        right = np.where(shift > 0, 31, np.where(shift > -32, 31 - shift, 63))
        product = (x.astype(np.uint64) << left.astype(np.uint64)).astype(np.int64) * significand
        half = np.int64(1) << (right - 1)
        return (product + (half if not nearest else np.where(product >= 0, half, half - 1))) >> right

    return meaning


def _taps(at: Any, step: Any, size: Any, extent: Any) -> Any:
    low = np.where(at < 0, (step - 1 - at) // step, 0)
    high = np.minimum(np.where(extent > at, (extent - at + step - 1) // step, 0), size)
    return np.maximum(high - low, 1)


def _row(
    name: str,
    meaning: Meaning,
    c: str,
    *,
    f32: str = "",
    f64: str = "",
    vi: str = "",
    vf: str = "",
    cut: str = "",
    lazy: bool = False,
    more: Mapping[str, str] = {},
) -> Operation:
    forms = {"": c, "float32": f32, "float64": f64}
    lanes = {"int32": vi, "float32": vf, **more}
    return Operation(name, meaning, {k: v for k, v in forms.items() if v}, {k: v for k, v in lanes.items() if v}, cut, lazy)


def _of_floats(name: str, meaning: Meaning, f32: str, f64: str, vf: str = "") -> Operation:
    return Operation(name, meaning, {"float32": f32, "float64": f64}, {"float32": vf} if vf else {})


def _libm(name: str, meaning: Meaning) -> Operation:
    return _of_floats(name, meaning, f"{name}f({{0}})", f"{name}({{0}})")


def _builtin(name: str, c: str, meaning: Meaning) -> Operation:
    return _of_floats(name, meaning, f"__builtin_{c}f({{0}})", f"__builtin_{c}({{0}})")


_ROWS = (
    _row("add", np.add, "({0} + {1})", vi="({0} + {1})", vf="({0} + {1})", cut=SHORT_ONES),
    _row("sub", np.subtract, "({0} - {1})", vi="({0} - {1})", vf="({0} - {1})", cut=SHORT_ONES),
    _row("mul", np.multiply, "({0} * {1})", vi="({0} * {1})", vf="({0} * {1})", cut=SHORT_ONES),
    _row("neg", np.negative, "(-{0})", cut=SHORT_ONES),
    # Integers divided by zero give zero, and nothing traps.
    _row("div", lambda x, y: x / y if x.dtype.kind == "f" else _truncated(x, y), "r_div({0}, {1})",
         f32="({0} / {1})", f64="({0} / {1})", vf="({0} / {1})", cut=SHORT_ONES),
    _row("mod", lambda x, y: np.fmod(x, y) if x.dtype.kind == "f" else _remainder(x, y), "r_mod({0}, {1})",
         f32="fmodf({0}, {1})", f64="fmod({0}, {1})"),
    _row("floor_div", lambda x, y: np.floor(x / y) if x.dtype.kind == "f" else _floored(x, y)[0],
         "r_floor_div({0}, {1})", f32="__builtin_floorf({0} / {1})", f64="__builtin_floor({0} / {1})", cut=SHORT_ONES),
    _row("floor_mod", lambda x, y: x - np.floor(x / y) * y if x.dtype.kind == "f" else _floored(x, y)[1], "r_floor_mod({0}, {1})",
         f32="({0} - __builtin_floorf({0} / {1}) * {1})", f64="({0} - __builtin_floor({0} / {1}) * {1})", cut=SHORT_ONES),
    _row("pow", lambda x, y: np.power(x, y) if x.dtype.kind == "f" else _power(x, y), "r_pow_int({0}, {1})",
         f32="powf({0}, {1})", f64="pow({0}, {1})", cut=SHORT_ONES),
    # Of integers whose second operand is positive, towards zero.
    _row("quotient", _truncated, "({0} / {1})"),
    _row("remainder", _remainder, "({0} % {1})"),
    _row("abs", np.abs, "({0} < 0 ? -{0} : {0})", f32="__builtin_fabsf({0})", f64="__builtin_fabs({0})", cut=SHORT_ONES),
    # 0 of a nan.
    _row("sign", lambda x: (x > 0) * 1 - (x < 0), "(({0} > 0) - ({0} < 0))", cut=ALWAYS),
    # The second operand where it is greater (less) than the first, else the first: a nan beside it is passed over.
    _row("max", lambda x, y: np.where(x < y, y, x), "({0} < {1} ? {1} : {0})",
         vi="r_greater_vi({1}, {0})", vf="r_greater_vf({1}, {0})"),
    _row("min", lambda x, y: np.where(x > y, y, x), "({0} > {1} ? {1} : {0})",
         vi="r_lesser_vi({1}, {0})", vf="r_lesser_vf({1}, {0})"),
    # A nan in either operand is the result.
    _row("peak", lambda x, y: np.where((y > x) | (y != y), y, x), "({1} > {0} || {1} != {1} ? {1} : {0})",
         vf="r_peak_vf({1}, {0})", more={"int8": "r_peak_vq({1}, {0})", "uint8": "r_peak_vuq({1}, {0})"}),
    _row("trough", lambda x, y: np.where((y < x) | (y != y), y, x), "({1} < {0} || {1} != {1} ? {1} : {0})"),
    # The first operand; the second where that is a nan.
    _row("number", lambda x, y: np.where(x == x, x, y), "({0} == {0} ? {0} : {1})", vf="r_number_vf({0}, {1})"),
    _row("clamp", lambda x, low, high: np.where(x < low, low, np.where(x > high, high, x)), "r_clamp_index({0}, {1}, {2})",
         f32="({0} < {1} ? {1} : {0} > {2} ? {2} : {0})", f64="({0} < {1} ? {1} : {0} > {2} ? {2} : {0})", cut=ALWAYS),
    # Of two floats, the number where one is a nan.
    _of_floats("fmax", np.fmax, "fmaxf({0}, {1})", "fmax({0}, {1})"),
    _of_floats("fmin", np.fmin, "fminf({0}, {1})", "fmin({0}, {1})"),
    _row("select", np.where, "({0} ? {1} : {2})", lazy=True),
    _row("lt", np.less, "({0} < {1})"),
    _row("le", np.less_equal, "({0} <= {1})"),
    _row("gt", np.greater, "({0} > {1})"),
    _row("ge", np.greater_equal, "({0} >= {1})"),
    _row("eq", np.equal, "({0} == {1})"),
    _row("ne", np.not_equal, "({0} != {1})"),
    _row("and", np.bitwise_and, "({0} & {1})", vi="({0} & {1})"),
    _row("or", np.bitwise_or, "({0} | {1})", vi="({0} | {1})"),
    _row("xor", np.bitwise_xor, "({0} ^ {1})"),
    Operation("not", np.bitwise_not, {"": "(~{0})", "bool": "(!{0})"}, {}, SHORT_ONES),
    # By as many places as an int has at most; what leaves is lost.
    _row("shl", np.left_shift, "({0} << {1})", vi="({0} << {1})", cut=SHORT_ONES),
    _row("shr", np.right_shift, "({0} >> {1})", vi="({0} >> {1})"),
    # By any number of places.
    _row("left_shift", _shift(True), "r_left_shift({0}, {1})", cut=SHORT_ONES),
    _row("right_shift", _shift(False), "r_right_shift({0}, {1})"),
    _of_floats("exp", np.exp, "r_exp_f32({0})", "exp({0})", "r_exp_vf({0})"),
    _of_floats("log", np.log, "r_log_f32({0})", "log({0})"),
    # The C library's, for random numbers that come again to the bit.
    _of_floats("libm_log", np.log, "logf({0})", "log({0})"),
    _libm("log2", np.log2),
    _libm("log10", np.log10),
    _builtin("sqrt", "sqrt", np.sqrt),
    _of_floats("rsqrt", lambda x: 1 / np.sqrt(x), "(1.0f / __builtin_sqrtf({0}))", "(1.0 / __builtin_sqrt({0}))"),
    _of_floats("tanh", np.tanh, "r_tanh_f32({0})", "tanh({0})"),
    _of_floats("atanh", np.arctanh, "r_atanh_f32({0})", "atanh({0})"),
    _of_floats("sigmoid", lambda x: 1 / (1 + np.exp(-x)), "r_sigmoid_f32({0})", "(1.0 / (1.0 + exp(-{0})))"),
    _of_floats("erf", _erf, "r_erf_f32({0})", "erf({0})"),
    _builtin("floor", "floor", np.floor),
    _builtin("ceil", "ceil", np.ceil),
    _builtin("trunc", "trunc", np.trunc),
    _of_floats("round", _rounded, "r_round_f32({0})", "round({0})", "r_round_vf({0})"),
    _builtin("round_even", "rint", np.rint),
    _libm("sin", np.sin), _libm("cos", np.cos), _libm("tan", np.tan), _libm("sinh", np.sinh), _libm("cosh", np.cosh),
    _libm("asin", np.arcsin), _libm("acos", np.arccos), _libm("atan", np.arctan), _libm("asinh", np.arcsinh),
    _libm("acosh", np.arccosh),
    # A float32 rounded to the nearest float16.
    _row("round_half", lambda x: x.astype(np.float16).astype(np.float32), "r_round_f16({0})"),
    # An int32 times a number in fixed point: significand, half and shift to the right of the product in int64. The
    # operands after these serve vectors (`vectors`).
    _row("fixed", _fixed, "r_fixed({0}, {1}, {2}, {3})"),
    # The same on vectors of int32: value, significand and its neighbour, half and shift of the upper 32 bits.
    _row("fixed_lanes", lambda x, significand, _, half, right: ((x.astype(np.int64) * significand >> 32) + half) >> right, "",
         vi="r_fixed_vi({0}, {1}, {2}, {3}, {4})"),
    # The same of small numbers, in int32.
    _row("fixed_short", lambda x, factor, half, right: (x * factor + half) >> right, "(({0} * {1} + {2}) >> {3})",
         vi="(({0} * {1} + {2}) >> {3})"),
    # Of a factor that arrives when the program runs: its parts, and products with them.
    _row("fixed_significand", lambda m: _parts(m)[0], "r_fixed_significand({0})"),
    _row("fixed_shift", lambda m: _parts(m)[1], "r_fixed_shift({0})"),
    _row("fixed_right", _fixed_right, "r_fixed_right({0})"),
    _row("fixed_low", _fixed_low, "r_fixed_low({0})"),
    _row("fixed_multiply", _fixed_multiply(False), "r_fixed_multiply({0}, {1}, {2})"),
    _row("fixed_multiply_nearest", _fixed_multiply(True), "r_fixed_multiply_nearest({0}, {1}, {2})"),
    # A quotient whose nearest whole number counts: x, the divisor, and both parts of its reciprocal.
    _row("near_quotient", lambda x, divisor, high, low: x / divisor, "r_quotient_f32({0}, {1}, {2}, {3})",
         vf="r_quotient_vf({0}, {1}, {2}, {3})"),
    # The bits of a value as another type of the same size (`bitcast_form`); the type is not the meaning's to know.
    Operation("bitcast", lambda x: x, {}, {}),
    # An int32 as a shorter integer, the nearest that there is.
    Operation("saturate", lambda x: x, {t: f"r_saturate_{suffix}({{0}})" for t, suffix in SHORT.items()}, {}),
    # Whether the system lets the program use tiles of bytes.
    _row("amx", lambda: 0, "r_amx()"),
    # 0 and 1 in turns, each time that a thread comes by.
    _row("alternate", lambda: 0, "({{ static _Thread_local int way_; way_ ^= 1; }})"),
    # How many of `size` places, the first at `at` and each `step` after the one before, lie in 0..extent; 1 at least.
    _row("taps", _taps, "(int32_t)r_taps({0}, {1}, {2}, {3})"),
)  # fmt: skip
#: Operations by name.
OPERATIONS: Mapping[str, Operation] = {row.name: row for row in _ROWS}
#: How texts show operations of two operands, and negation.
INFIX: Mapping[str, str] = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "quotient": "/",
    "remainder": "%",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
}
#: Results of these are bool, whatever the operands are.
TESTS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
_BITS = {("float32", "int32"): "r_bits_f32({0})", ("int32", "float32"): "r_f32_bits({0})"}


def bitcast_form(source: str, dtype: str) -> str:
    """The C of a value's bits as another type."""
    held = f"{CTYPES[dtype]} to_; const {CTYPES[source]} from_ = {{0}}; memcpy(&to_, &from_, sizeof to_);"
    return _BITS.get((source, dtype)) or f"({{{{ {held} to_; }}}})"


_HALVES = {"float16": "f16", "bfloat16": "bf16"}


def cast_form(source: str, dtype: str) -> str:
    """The C of a conversion: floats are cut to integers, integers wrap, anything but zero is True."""
    if source in _HALVES and dtype == "float32":
        return f"r_{_HALVES[source]}_f32({{0}})"
    if dtype in _HALVES and source == "float32":
        return f"r_f32_{_HALVES[dtype]}({{0}})"
    if (source, dtype) == ("float64", "float16"):
        return "r_f64_f16({0})"
    if dtype == "bool" and source != "bool":
        # A nan is False.
        return "(({0} < 0) | ({0} > 0))" if source.startswith("float") else "({0} != 0)"
    if source in ("float32", "float64") and dtype not in ("float32", "float64"):
        # C leaves the conversion of a float that does not fit undefined. Others go through the type that x86 converts to.
        conversion = f"r_whole_{'i64' if dtype in ('index', 'int64', 'uint32', 'uint64') else 'i32'}_{source}({{0}})"
        return conversion if dtype in ("index", "int32", "int64") else f"(({CTYPES[dtype]}){conversion})"
    return ""


def helper_of(form: str) -> list[str]:
    """The function of `csrc/` that a form of this table calls, if there is one."""
    start = form.find("r_")
    return [form[start : form.index("(", start)]] if start >= 0 else []


#: Intrinsics: how many operands each has; 0 stands for any number. Those of `DOTS` add the products of neighbours to each
#: lane of their last operand. `splat_pair` and `splat_quad` repeat so many elements, from an address on. `two_rows` are
#: half a vector of each of two rows. `square` multiplies two rows by two columns, and adds to four sums. `mix` picks
#: lanes of two vectors, by their numbers. `lane` is one of a vector's, `low` are the first of a name's vector. `madd` takes
#: each int32 for two int16, and adds the products of both.
INTRINSICS = {
    "splat": 1,
    "splat_pair": 1,
    "splat_quad": 1,
    "fma": 3,
    "sum": 1,
    "dot_pair": 3,
    "dot_halves": 3,
    "dot_bfloat": 3,
    "dot_quad": 3,
    "dot_signed": 3,
    "two_rows": 2,
    "square": 3,
    "square_mixed": 3,
    "square_unsigned": 3,
    "mix": 0,
    "lane": 2,
    "low": 1,
    "madd": 3,
}
#: Of sums of products: the element types of both factors, and how many neighbours are added up.
DOTS = {
    "dot_pair": ("int16", "int16", 2),
    "dot_halves": ("int16", "int16", 2),
    "dot_bfloat": ("bfloat16", "bfloat16", 2),
    "dot_quad": ("uint8", "int8", 4),
    "dot_signed": ("int8", "int8", 4),
    "square": ("int8", "int8", 4),
    "square_mixed": ("uint8", "int8", 4),
    "square_unsigned": ("uint8", "uint8", 4),
}
