"""Operators on elements: arithmetic, comparisons, conversions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from relaylang import ops
from relaylang.frontends.common import Malformed, Rule, Unsupported, hlo, nn, special
from relaylang.frontends.common.complexes import Complex, absolute, conjugate, product, quotient
from relaylang.frontends.common.quantized import round_even
from relaylang.frontends.stablehlo.names import COMPARED, ONE, TWO
from relaylang.frontends.stablehlo.node import Node
from relaylang.frontends.stablehlo.program import Resource, Splat, Tensor
from relaylang.ir import Expr

_DIRECTIONS = {way: op for op, way in COMPARED.items()}
#: Constants of more elements are not written out where all of them are the same.
_LARGEST = 1 << 16


def named(op: str, logical: str = "", integer: str = "") -> Callable[[Node], Any]:
    """An operator of Relay; another one for bools, another one for integers. Broadcasts are left to Relay."""
    count = len(ops.get(op).args)

    def convert(n: Node) -> Any:
        xs = hlo.unspread(n.b, n.of(count))
        dtype = n.b.dtype(xs[0])
        name = logical if logical and dtype == "bool" else integer if integer and "int" in dtype else op
        return n.b.op(name, *xs)

    return convert


def computed(function: Callable[..., Any]) -> Callable[[Node], Any]:
    """A function of the builder and the operands."""
    count = len(signature(function).parameters) - 1
    return lambda n: function(n.b, *n.of(count))


def maximum(n: Node) -> Any:
    """The greatest of a tensor and 0 is `nn.relu`."""
    b = n.b
    xs = hlo.unspread(b, n.of(2))
    if "float" in b.dtype(xs[0]):
        for x, other in (xs, xs[::-1]):
            value = b.value(other)
            if value is not None and b.value(x) is None and value.size == 1 and b.rank(other) <= b.rank(x) and not value.any():
                return b.op("nn.relu", x)
    return b.op("logical_or" if b.dtype(xs[0]) == "bool" else "maximum", *xs)


def multiply(n: Node) -> Any:
    left, right = n.any(0), n.any(1)
    if isinstance(left, Complex) and isinstance(right, Complex):
        return product(n.b, left, right)
    return named("multiply", "logical_and")(n)


def divide(n: Node) -> Any:
    left, right = n.any(0), n.any(1)
    if isinstance(left, Complex) and isinstance(right, Complex):
        return quotient(n.b, left, right)
    return named("divide", integer="trunc_divide")(n)


def magnitude(n: Node) -> Any:
    x = n.any(0)
    if isinstance(x, Complex):
        return absolute(n.b, x)
    return n.x(0) if n.b.dtype(n.x(0)).startswith("uint") else n.b.op("abs", n.x(0))


def power(n: Node) -> Any:
    b = n.b
    x, y = hlo.unspread(b, n.of(2))
    if "float" in b.dtype(x):
        return b.op("power", x, y)
    known = b.value(y)
    if known is not None and known.size == 1 and 0 <= int(known.reshape(-1)[0]) <= 64:
        return _raised(n, x, int(known.reshape(-1)[0]))
    raise Unsupported("it raises whole numbers to a computed power")


def _raised(n: Node, x: Expr, exponent: int) -> Expr:
    accumulated, square = n.b.op("ones_like", x), x
    while exponent:
        if exponent & 1:
            accumulated = n.b.op("multiply", accumulated, square)
        square, exponent = n.b.op("multiply", square, square), exponent >> 1
    return accumulated


def compare(n: Node) -> Any:
    b, way = n.b, n.word("comparison_direction")
    if way not in _DIRECTIONS:
        raise Malformed(f"its attribute comparison_direction is {way[:20]}; it must be one of {', '.join(_DIRECTIONS)}")
    xs = hlo.unspread(b, n.of(2))
    if n.word("compare_type") == "TOTALORDER" and "float" in b.dtype(xs[0]):
        xs = [_ranked(n, x) for x in xs]
    elif b.dtype(xs[0]) == "bool" and way not in ("EQ", "NE"):
        xs = [b.cast(x, "uint8") for x in xs]
    return b.op(_DIRECTIONS[way], *xs)


def _ranked(n: Node, x: Expr) -> Expr:
    """Whole numbers that have the total order of real ones: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    b = n.b
    size = np.dtype(b.dtype(x)).itemsize * 8
    bits = b.op("reinterpret", x, dtype=f"int{size}")
    magnitude = b.op("bitwise_and", bits, b.const((1 << (size - 1)) - 1, f"int{size}"))
    return b.op("where", b.op("less", bits, b.const(0, f"int{size}")), b.op("subtract", b.op("negative", magnitude), 1), magnitude)


def select(n: Node) -> Any:
    """A scalar condition chooses for all elements."""
    return n.b.op("where", *hlo.unspread(n.b, n.of(3)))


def clamp(n: Node) -> Any:
    """Operands: the least number, data, the largest."""
    b = n.b
    low, x, high = hlo.unspread(b, n.of(3))
    return b.op("minimum", b.op("maximum", x, low), high)


def convert(n: Node) -> Any:
    x, out = n.any(0), n.out()
    if isinstance(x, Complex):
        return x.each(lambda part: n.b.cast(part, out.dtype)) if out.is_complex else n.b.cast(x.real, out.dtype)
    converted = n.b.cast(_held(n, n.x(0), out.dtype), out.dtype)
    return Complex(converted, n.b.op("zeros_like", converted)) if out.is_complex else converted


def _held(n: Node, x: Expr, dtype: str) -> Expr:
    """Real numbers inside the range of a type of whole numbers, as XLA converts them."""
    if "float" not in n.b.dtype(x) or dtype not in ("int8", "uint8", "int16", "uint16", "uint32", "uint64"):
        return x
    if dtype in ("uint32", "uint64"):
        clamped: Expr = n.b.op("maximum", x, 0.0)
        return clamped
    info = np.iinfo(np.dtype(dtype))
    clamped = n.b.op("clip", x, a_min=float(info.min), a_max=float(info.max))
    return clamped


def bitcast(n: Node) -> Any:
    return hlo.bitcast(n.b, n.x(0), n.out().dtype)


def shift(side: str, logical: bool) -> Callable[[Node], Any]:
    """A shift. By as many bits as there are, or by more, nothing is left but the sign of an arithmetic one."""

    def convert(n: Node) -> Any:
        b = n.b
        x, by = hlo.unspread(b, n.of(2))
        dtype = b.dtype(x)
        size = np.dtype(dtype).itemsize * 8
        wanted = f"uint{size}" if logical and side == "right" else f"int{size}" if side == "right" else dtype
        known = b.value(by)
        amounts = by if known is not None and ((known >= 0) & (known < size)).all() else b.op("clip", by, a_min=0.0, a_max=size - 1.0)
        if wanted != dtype:
            x, amounts = b.op("reinterpret", x, dtype=wanted), b.cast(amounts, wanted)
        shifted = b.op(f"{side}_shift", x, amounts)
        shifted = shifted if wanted == dtype else b.op("reinterpret", shifted, dtype=dtype)
        if amounts is by or (known is not None and ((known >= 0) & (known < size)).all()):
            return shifted
        inside = b.op("less", b.op("reinterpret", by, dtype=f"uint{size}"), b.const(size, f"uint{size}"))
        if side == "right" and not logical:
            rest = b.op("right_shift", x, b.const(size - 1, wanted))
            rest = rest if wanted == dtype else b.op("reinterpret", rest, dtype=dtype)
        else:
            rest = b.const(0, dtype)
        return b.op("where", inside, shifted, rest)

    return convert


def leading_zeros(n: Node) -> Any:
    """The number of bits that are 0 before the first one that is 1."""
    b = n.b
    bits, size = hlo.bits_of(b, n.x(0))
    reach = 1
    while reach < size:
        bits = b.op("bitwise_or", bits, b.op("right_shift", bits, b.const(reach, f"uint{size}")))
        reach *= 2
    significant = b.cast(special.ones_of(b, bits), b.dtype(n.x(0)))
    return b.op("subtract", b.const(size, b.dtype(n.x(0))), significant)


def sign(n: Node) -> Any:
    x = n.x(0)
    return n.b.op("sign", x)


def infinite(n: Node) -> Any:
    return n.b.op("isinf", n.x(0))


def one_infinity(value: float) -> Callable[[Node], Any]:
    return lambda n: n.b.op("equal", n.x(0), n.b.const(value, n.b.dtype(n.x(0))))


def reduce_precision(n: Node) -> Any:
    """Real numbers that have the precision of another type of Relay's."""
    b, x = n.b, n.x(0)
    own = {"float64": (11, 52), "float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7)}
    wanted = n.int("exponent_bits"), n.int("mantissa_bits")
    have = own.get(b.dtype(x), (0, 0))
    if wanted[0] >= have[0] and wanted[1] >= have[1]:
        return x
    for dtype, bits in own.items():
        if bits == wanted:
            return b.cast(b.cast(x, dtype), b.dtype(x))
    raise Unsupported(f"Relay has no real numbers of {wanted[0]} and {wanted[1]} bits")


def constant(n: Node) -> Any:
    value, out = n.attributes.get("value"), n.out()
    b, name = n.b, n.importer.program.names[n.op.results[0]][1:] if n.op.results else "constant"
    if isinstance(value, Resource):
        held, data = value.type, n.importer.program.resources.get(value.name)
        if data is None or not isinstance(held, Tensor) or None in held.shape:
            raise Malformed(f"the file has no bytes of the resource {value.name[:40]}")
        kind = np.dtype(("complex64" if held.dtype == "float32" else "complex128") if held.is_complex else held.dtype)
        count = int(np.prod([int(d or 0) for d in held.shape], dtype=object))
        if len(data) != count * kind.itemsize:
            raise Malformed(f"the resource {value.name[:40]} has {len(data)} bytes, and its type {count * kind.itemsize}")
        value = np.frombuffer(data, kind).reshape([int(d or 0) for d in held.shape])
    if isinstance(value, Splat):
        return _spread(n, value)
    if not isinstance(value, np.ndarray):
        value = np.asarray(value) if isinstance(value, (int, float)) else None
    if value is None:
        raise Malformed("its attribute value must be a constant")
    if np.iscomplexobj(value):
        return Complex(b.const(np.ascontiguousarray(value.real)), b.const(np.ascontiguousarray(value.imag)))
    if value.dtype != np.dtype(out.dtype):
        raise Malformed(f"its value is {value.dtype}, and the program states {out.dtype}")
    b.budget.take_bytes(0, "reading its constants")
    return b.weight(name, value)


def _spread(n: Node, value: Splat) -> Any:
    """A constant of equal elements, which is written out where it is small."""
    b = n.b

    def real(element: Any) -> Expr:
        one = b.const(np.asarray(element))
        shape = [int(d) for d in value.shape]
        size = int(np.prod(shape, dtype=object))
        if size > _LARGEST:
            broadcasted = b.unfolded("broadcast_to", one, shape=shape)
        else:
            broadcasted = b.const(b.arrays.full(shape, element))
        b.notes[broadcasted] = one
        return broadcasted

    element: Any = value.element
    return Complex(real(element.real), real(element.imag)) if np.iscomplexobj(element) else real(element)


def of_complex(part: str) -> Callable[[Node], Any]:
    def convert(n: Node) -> Any:
        x = n.any(0)
        if isinstance(x, Complex):
            return getattr(x, part)
        return n.x(0) if part == "real" else n.b.op("zeros_like", n.x(0))

    return convert


def uniform_quantize(n: Node) -> Any:
    q, own = n.out().quantised, n.type(0)
    if q is None:
        raise Malformed("its result must be quantised")
    x = n.x(0)
    if isinstance(own, Tensor) and own.quantised is not None:
        x = n.importer.dequantised(x, own.quantised)
    return n.importer.quantised(x, q)


def uniform_dequantize(n: Node) -> Any:
    own = n.type(0)
    if not isinstance(own, Tensor) or own.quantised is None:
        raise Malformed("its operand must be quantised")
    return n.b.cast(n.importer.dequantised(n.x(0), own.quantised), n.out().dtype)


_LOGICAL = {"add": "logical_or", "multiply": "logical_and", "minimum": "logical_and"}
_PLAIN: dict[str, Callable[[Node], Any]] = {
    **{hlo_name: named(op) for op, hlo_name in ONE.items() if "logical" not in op and "bitwise" not in op},
    **{hlo_name: named(op, _LOGICAL.get(op, "")) for op, hlo_name in TWO.items() if "logical" not in op and "bitwise" not in op},
    **{name: named(f"bitwise_{name}", f"logical_{name}") for name in ("and", "or", "xor", "not")},
    "abs": magnitude,
    "atan2": computed(nn.angle),
    "bitcast_convert": bitcast,
    "cbrt": computed(hlo.cube_root),
    "ceil": named("ceil"),
    "clamp": clamp,
    "compare": compare,
    "complex": lambda n: Complex(n.x(0), n.x(1)),
    "constant": constant,
    "convert": convert,
    "count_leading_zeros": leading_zeros,
    "divide": divide,
    "exponential_minus_one": computed(nn.expm1),
    "floor": named("floor"),
    "imag": of_complex("imaginary"),
    "is_finite": named("isfinite"),
    "log_plus_one": computed(nn.log1p),
    "logistic": named("sigmoid"),
    "maximum": maximum,
    "multiply": multiply,
    "popcnt": lambda n: n.b.cast(special.ones_of(n.b, n.x(0)), n.b.dtype(n.x(0))),
    "power": power,
    "real": of_complex("real"),
    "reduce_precision": reduce_precision,
    "round_nearest_afz": named("round"),
    "round_nearest_even": computed(round_even),
    "select": select,
    "shift_left": shift("left", logical=True),
    "shift_right_arithmetic": shift("right", logical=False),
    "shift_right_logical": shift("right", logical=True),
    "sign": sign,
    "tan": named("tan"),
    "uniform_dequantize": uniform_dequantize,
    "uniform_quantize": uniform_quantize,
    "chlo.conj": lambda n: conjugate(n.b, x) if isinstance(x := n.any(0), Complex) else x,
    "chlo.digamma": computed(special.digamma),
    "chlo.erf_inv": computed(special.erf_inv),
    "chlo.erfc": computed(special.erfc),
    "chlo.is_inf": infinite,
    "chlo.is_neg_inf": one_infinity(-np.inf),
    "chlo.is_pos_inf": one_infinity(np.inf),
    "chlo.lgamma": computed(special.lgamma),
    "chlo.square": lambda n: n.b.op("multiply", n.x(0), n.x(0)),
}
#: CHLO's operators that broadcast -> those of StableHLO.
_BROADCAST = (
    "add",
    "and",
    "atan2",
    "compare",
    "divide",
    "maximum",
    "minimum",
    "multiply",
    "or",
    "power",
    "remainder",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "subtract",
    "xor",
)
_ALL = {name if "." in name else f"stablehlo.{name}": function for name, function in _PLAIN.items()}
_ALL |= {f"chlo.broadcast_{name}": _ALL[f"stablehlo.{name}"] for name in _BROADCAST}
#: Operations that a region of scalars may have where it is applied to tensors.
ELEMENTWISE = frozenset(_ALL) | {"stablehlo.return", "func.return"}
RULES = tuple([Rule(name, function) for name, function in _ALL.items()])
