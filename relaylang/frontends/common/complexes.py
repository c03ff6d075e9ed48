"""Complex numbers and their Fourier transforms. Relay has real numbers only, so a complex tensor is a pair while it is converted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr

#: Complex element types, with that of their real and imaginary parts.
PARTS = {"complex64": "float32", "complex128": "float64"}


@dataclass(frozen=True, eq=False)
class Complex:
    """A tensor of complex numbers while it is converted: the real and the imaginary parts, of one shape.

    `pair` has both on a last axis of extent 2, where the program computes it so.
    """

    real: Expr
    imaginary: Expr
    pair: Expr | None = None

    def each(self, function: Callable[[Expr], Expr]) -> Complex:
        """A function of each part."""
        return Complex(function(self.real), function(self.imaginary))


def unpaired(b: Builder, pair: Expr) -> Complex:
    """The complex tensor of a tensor whose last axis has the real and the imaginary part."""
    last = b.rank(pair) - 1
    if last < 0 or b.shape(pair)[last] != 2:
        raise Malformed("complex numbers need a last axis of extent 2")
    real, imaginary = (b.squeeze(b.slice(pair, [i], [i + 1], [last]), [last]) for i in range(2))
    return Complex(real, imaginary, pair)


def paired(b: Builder, x: Complex) -> Expr:
    """The parts on a last axis of extent 2."""
    if x.pair is not None:
        return x.pair
    stacked: Expr = b.op("stack", b.tuple([x.real, x.imaginary]), axis=b.rank(x.real))
    return stacked


def constant(b: Builder, array: np.ndarray) -> Complex:
    """A complex constant."""
    return Complex(b.const(np.ascontiguousarray(array.real)), b.const(np.ascontiguousarray(array.imag)))


def as_complex(b: Builder, x: Any, like: Expr) -> Complex:
    """A complex tensor, a real one or a number as a complex tensor, whose parts have the element type of `like`."""
    if isinstance(x, Complex):
        return x
    if isinstance(x, Expr):
        x = x if "float" in b.dtype(x) else b.cast(x, b.dtype(like))
        return Complex(x, b.op("zeros_like", x))
    return Complex(*(b.const(part, b.dtype(like)) for part in (complex(x).real, complex(x).imag)))


def product(b: Builder, x: Complex, y: Complex, times: Callable[[Expr, Expr], Expr] | None = None) -> Complex:
    """The product of two complex tensors; `times` is that of real ones."""
    times = times or (lambda p, q: b.op("multiply", p, q))
    real = b.op("subtract", times(x.real, y.real), times(x.imaginary, y.imaginary))
    return Complex(real, b.op("add", times(x.real, y.imaginary), times(x.imaginary, y.real)))


def quotient(b: Builder, x: Complex, y: Complex) -> Complex:
    """x / y."""
    size = b.op("add", b.op("multiply", y.real, y.real), b.op("multiply", y.imaginary, y.imaginary))
    return product(b, x, conjugate(b, y)).each(lambda part: b.op("divide", part, size))


def conjugate(b: Builder, x: Complex) -> Complex:
    """The conjugate numbers."""
    return Complex(x.real, b.op("negative", x.imaginary))


def absolute(b: Builder, x: Complex) -> Expr:
    """The distance of each number from 0."""
    magnitude: Expr = b.op("sqrt", b.op("add", *(b.op("multiply", part, part) for part in (x.real, x.imaginary))))
    return magnitude


def scaled(b: Builder, x: Complex, factor: float) -> Complex:
    """A complex tensor times a real number."""
    return x if factor == 1 else x.each(lambda part: b.op("multiply", part, b.const(factor, b.dtype(part))))


# ---- transforms


def resized(b: Builder, x: Expr, axis: int, extent: int) -> Expr:
    """An axis cut, or filled with zeros behind, to an extent."""
    have = b.extent(x, axis, "the axis of a Fourier transform")
    if have > extent:
        return b.slice(x, [0], [extent], [axis])
    if have == extent:
        return x
    widths = [[0, extent - have if a == axis else 0] for a in range(b.rank(x))]
    padded: Expr = b.op("nn.pad", x, b.const(0, b.dtype(x)), pad_width=widths)
    return padded


def fourier(b: Builder, x: Complex, axis: int, inverse: bool = False) -> Complex:
    """The discrete Fourier transform along an axis. The inverse one is divided by the extent."""
    rank = b.rank(x.real)
    order = [*[a for a in range(rank) if a != axis], axis]
    turned = x.each(lambda part: b.transpose(part, order))
    transformed = b.op("dft", turned.real, turned.imaginary, inverse=inverse)
    back = [order.index(a) for a in range(rank)]
    real, imaginary = (b.transpose(part, back) for part in b.fields(transformed))
    return Complex(real, imaginary)


def half(b: Builder, x: Complex, axis: int) -> Complex:
    """The bins of a spectrum of real numbers that tell the others: n // 2 + 1 of n."""
    bins = b.extent(x.real, axis) // 2 + 1
    return x.each(lambda part: b.slice(part, [0], [bins], [axis]))


def real_inverse(b: Builder, x: Complex, axis: int, extent: int) -> Expr:
    """The real numbers of a spectrum that has the first extent // 2 + 1 bins, divided by the extent."""
    bins = extent // 2 + 1
    x = x.each(lambda part: resized(b, part, axis, bins))
    # The bins behind the middle are the conjugates of those before it. The imaginary parts of bins without a partner
    # mean nothing.
    partners = [bin for bin in range(1, bins) if 2 * bin != extent][::-1]
    lone = b.arrays.zeros(bins, bool)
    lone[[bin for bin in range(bins) if bin not in partners]] = True
    shape = [bins if a == axis else 1 for a in range(b.rank(x.real))]
    imaginary = b.op("where", b.const(lone.reshape(shape)), b.const(0, b.dtype(x.imaginary)), x.imaginary)
    spectrum = Complex(x.real, imaginary)
    if partners:
        behind = spectrum.each(lambda part: b.op("take", part, b.const(np.array(partners, np.int64)), axis=axis))
        behind = conjugate(b, behind)
        spectrum = Complex(
            *(b.concat([p, q], axis) for p, q in ((spectrum.real, behind.real), (spectrum.imaginary, behind.imaginary)))
        )
    return fourier(b, spectrum, axis, inverse=True).real


__all__ = [
    "PARTS",
    "Complex",
    "absolute",
    "as_complex",
    "conjugate",
    "constant",
    "fourier",
    "half",
    "paired",
    "product",
    "quotient",
    "real_inverse",
    "resized",
    "scaled",
    "unpaired",
]
