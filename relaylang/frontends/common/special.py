"""Functions that Relay has no operator for, by series of what it has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from relaylang.frontends.common import nn
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.hlo import bits_of
from relaylang.ir import Expr

#: Giles, "Approximating the erfinv function": the middle, and the tails.
_ERF_INV = (
    (
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ),
    (
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ),
)
#: Cephes, `erfcf`: between 1 and 2, and beyond.
_ERFC = (
    (0.0232681997, -0.138703939, 0.36874247, -0.582473303, 0.621000462, -0.494451532, 0.340487994, -0.274112703, 0.563825943),
    (-10.477664, 12.97719955, -7.49551872, 2.92101902, -1.01526528, 0.421846336, -0.282076744, 0.564189507),
)
#: Lanczos's sum for the gamma function, for g = 7.
_LANCZOS = (
    0.99999999999980993227684700473478,
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
_G = 7.0


def polynomial(b: Builder, x: Expr, factors: Sequence[float]) -> Expr:
    """The polynomial with these factors, that of the highest power first."""
    total: Expr = b.op("full_like", x, b.const(factors[0], b.dtype(x)))
    for factor in factors[1:]:
        total = b.op("add", b.op("multiply", total, x), factor)
    return total


def erf_inv(b: Builder, x: Expr) -> Expr:
    """The number whose error function is x."""
    w = b.op("negative", nn.log1p(b, b.op("negative", b.op("multiply", x, x))))
    middle = polynomial(b, b.op("subtract", w, 2.5), _ERF_INV[0])
    tail = polynomial(b, b.op("subtract", b.op("sqrt", b.op("maximum", w, 0.0)), 3.0), _ERF_INV[1])
    root = b.op("multiply", b.op("where", b.op("less", w, 5.0), middle, tail), x)
    for _ in range(2 if b.dtype(x) == "float64" else 0):
        slope = b.op("multiply", b.op("exp", b.op("negative", b.op("multiply", root, root))), 2 / math.sqrt(math.pi))
        root = b.op("subtract", root, b.op("divide", b.op("subtract", b.op("erf", root), x), slope))
    ends = b.op("multiply", x, math.inf)
    return b.op("where", b.op("equal", b.op("abs", x), 1.0), ends, root)


def erfc(b: Builder, x: Expr) -> Expr:
    """1 - erf(x), which keeps its precision where it is small."""
    size = b.op("maximum", b.op("abs", x), 1.0)
    inverse = b.op("divide", b.const(1.0, b.dtype(x)), size)
    y = b.op("multiply", inverse, inverse)
    near, far = (polynomial(b, y, factors) for factors in _ERFC)
    part = b.op("multiply", b.op("exp", b.op("negative", b.op("multiply", size, size))), inverse)
    tail = b.op("multiply", part, b.op("where", b.op("less", size, 2.0), near, far))
    tail = b.op("where", b.op("less", x, 0.0), b.op("subtract", b.const(2.0, b.dtype(x)), tail), tail)
    direct = b.op("subtract", b.const(1.0, b.dtype(x)), b.op("erf", x))
    return b.op("where", b.op("less", b.op("abs", x), 1.0), direct, tail)


def _lanczos(b: Builder, x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Whether x is below 1/2, then the reflected z, the sum, and the logarithm of z + g + 1/2."""
    small = b.op("less", x, 0.5)
    z = b.op("where", small, b.op("negative", x), b.op("subtract", x, 1.0))
    total: Expr = b.op("full_like", x, b.const(_LANCZOS[0], b.dtype(x)))
    for i, factor in enumerate(_LANCZOS[1:], 1):
        total = b.op("add", total, b.op("divide", b.const(factor, b.dtype(x)), b.op("add", z, float(i))))
    log = b.op("add", nn.log1p(b, b.op("divide", z, _G + 0.5)), math.log(_G + 0.5))
    return small, z, total, log


def lgamma(b: Builder, x: Expr) -> Expr:
    """The logarithm of the absolute gamma function."""
    small, z, total, log = _lanczos(b, x)
    t = b.op("add", z, _G + 0.5)
    share = b.op("subtract", b.op("add", z, 0.5), b.op("divide", t, log))
    logarithm = b.op("add", b.op("add", b.op("multiply", share, log), math.log(2 * math.pi) / 2), b.op("log", total))
    size = b.op("abs", x)
    part = b.op("subtract", size, b.op("floor", size))
    part = b.op("where", b.op("greater", part, 0.5), b.op("subtract", b.const(1.0, b.dtype(x)), part), part)
    wave = b.op("log", b.op("sin", b.op("multiply", part, math.pi)))
    turned = b.op("subtract", b.op("subtract", b.const(math.log(math.pi), b.dtype(x)), wave), logarithm)
    poles = b.op("where", b.op("isfinite", wave), turned, b.op("negative", wave))
    return b.op("where", b.op("isinf", x), size, b.op("where", small, poles, logarithm))


def digamma(b: Builder, x: Expr) -> Expr:
    """The derivative of `lgamma`."""
    small, z, total, log = _lanczos(b, x)
    slope: Expr | None = None
    for i, factor in enumerate(_LANCZOS[1:], 1):
        place = b.op("add", z, float(i))
        term = b.op("divide", b.const(-factor, b.dtype(x)), b.op("multiply", place, place))
        slope = term if slope is None else b.op("add", slope, term)
    assert slope is not None
    t = b.op("add", z, _G + 0.5)
    derivative = b.op("subtract", b.op("add", log, b.op("divide", slope, total)), b.op("divide", b.const(_G, b.dtype(x)), t))
    part = b.op("multiply", b.op("subtract", x, b.op("floor", b.op("add", x, 0.5))), math.pi)
    wave = b.op("multiply", b.op("divide", b.op("cos", part), b.op("sin", part)), math.pi)
    pole = b.op("logical_and", b.op("less_equal", x, 0.0), b.op("equal", x, b.op("floor", x)))
    turned = b.op("where", pole, b.const(math.nan, b.dtype(x)), b.op("subtract", derivative, wave))
    return b.op("where", small, turned, derivative)


def ones_of(b: Builder, x: Expr) -> Expr:
    """How many bits of each whole number are 1, as an unsigned number."""
    bits, size = bits_of(b, x)
    dtype = f"uint{size}"

    def mask(pattern: int) -> Expr:
        return b.const(int.from_bytes(bytes([pattern]) * (size // 8), "big"), dtype)

    def moved(value: Expr, by: int) -> Expr:
        shifted: Expr = b.op("right_shift", value, b.const(by, dtype))
        return shifted

    bits = b.op("subtract", bits, b.op("bitwise_and", moved(bits, 1), mask(0x55)))
    bits = b.op("add", b.op("bitwise_and", bits, mask(0x33)), b.op("bitwise_and", moved(bits, 2), mask(0x33)))
    bits = b.op("bitwise_and", b.op("add", bits, moved(bits, 4)), mask(0x0F))
    return moved(b.op("multiply", bits, mask(0x01)), size - 8)


__all__ = ["digamma", "erf_inv", "erfc", "lgamma", "ones_of", "polynomial"]
