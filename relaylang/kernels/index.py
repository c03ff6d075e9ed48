"""Index arithmetic of generated loops: affine forms over loop variables, and reshaping them.

A loop variable is its number (0 outermost). An index is an `Affine` where possible, and an `Expr` of the scalar graph
after a division. Affine accesses show which loops can be merged, and which values can be hoisted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.kernels.sizes import surely_less


class Affine:
    """`const + sum(coefficient * loop variable)`. `extents` of the variables are known to the loop nest."""

    __slots__ = ("terms", "const")

    def __init__(self, terms: Mapping[int, int], const: int = 0) -> None:
        self.terms = {v: c for v, c in sorted(terms.items()) if c != 0}
        self.const = const

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const + other)
        terms = dict(self.terms)
        for v, c in other.terms.items():
            terms[v] = terms.get(v, 0) + c
        return Affine(terms, self.const + other.const)

    def __mul__(self, factor: int) -> Affine:
        return Affine({v: c * factor for v, c in self.terms.items()}, self.const * factor)

    def key(self) -> tuple[object, ...]:
        return (*self.terms.items(), self.const)

    def span(self, extents: Sequence[int]) -> tuple[int, int]:
        """The least and the greatest value, when variable `v` runs over `range(extents[v])`."""
        low = high = self.const
        for v, c in self.terms.items():
            reach = c * (extents[v] - 1)
            low, high = (low, high + reach) if c > 0 else (low + reach, high)
        return low, high

    def depth(self) -> int:
        """How many loops must be open for the value to be known."""
        return max(self.terms, default=-1) + 1

    def __repr__(self) -> str:
        return " + ".join([*(f"i{v}*{c}" for v, c in self.terms.items()), str(self.const)])


ZERO = Affine({}, 0)


def constant(value: int) -> Affine:
    return Affine({}, value)


def variable(number: int) -> Affine:
    return Affine({number: 1}, 0)


def strides_of(shape: Sequence[int]) -> list[int]:
    """The element strides of a C-contiguous array."""
    out = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        out[i] = out[i + 1] * (1 if shape[i + 1] == 0 else shape[i + 1])
    return out


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether strides are those of a C-contiguous array. The stride of an axis of extent 1 says nothing."""
    return 0 in shape or all(e == 1 or s == w for e, s, w in zip(shape, strides, strides_of(shape)))


def reshaped(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> list[int] | None:
    """The strides that give an array of `shape` and `strides` the shape `new`; None where there are none."""
    if 0 in shape:
        return strides_of(new)
    if is_contiguous(shape, strides):  # no division, which extents that are computed need not have
        return [1 if extent == 1 else stride for extent, stride in zip(new, strides_of(new))]
    # Stretches of the array that are run through with one stride: extent and stride of each.
    stretches: list[tuple[int, int]] = []
    for extent, stride in zip(shape, strides):
        if extent == 1:
            continue
        if stretches and stretches[-1][1] == extent * stride:
            stretches[-1] = (stretches[-1][0] * extent, stride)
        else:
            stretches.append((extent, stride))
    out = [1] * len(new)
    left, step = 1, 1
    for d in range(len(new) - 1, -1, -1):
        if new[d] == 1:
            continue
        if left == 1:
            left, step = stretches.pop()
        if left % new[d] != 0:
            return None
        out[d] = step
        left //= new[d]
        step *= new[d]
    return out


def linear(index: Sequence[Affine], shape: Sequence[int], strides: Sequence[int] | None = None) -> Affine:
    """The offset of an element in an array, by default in a C-contiguous one."""
    total = ZERO
    for form, stride, extent in zip(index, strides_of(shape) if strides is None else strides, shape):
        if extent != 1:
            total = total + form * stride
    return total


def divide(form: Affine, size: int, extents: Sequence[int]) -> tuple[Affine, Affine] | None:
    """`form // size` and `form % size` as affine forms, where the form splits cleanly; else None."""
    inner = Affine({v: c for v, c in form.terms.items() if c % size != 0}, form.const % size)
    low, high = inner.span(extents)
    if not (surely_less(-1, low) and surely_less(high, size)):
        return None
    outer = Affine({v: c // size for v, c in form.terms.items() if c % size == 0}, form.const // size)
    return outer, inner


def unravel(form: Affine, shape: Sequence[int], extents: Sequence[int]) -> list[Affine] | None:
    """The index in an array of `shape` of the element at offset `form`, where every part is affine; else None."""
    if 0 in shape:
        return [ZERO] * len(shape)
    out: list[Affine] = []
    for size in reversed(shape[1:]):
        if size == 1:
            out.append(ZERO)
            continue
        parts = divide(form, size, extents)
        if parts is None:
            return None
        form, rest = parts
        out.append(rest)
    if shape:
        out.append(ZERO if shape[0] == 1 else form)
    return out[::-1]


def splittable(form: Affine, shape: Sequence[int], extents: Sequence[int]) -> tuple[int, int] | None:
    """The variable that stands in the way of `unravel`, and the extent at which to cut it; None for others."""
    for size in reversed(shape[1:]):
        if size == 1:
            continue
        parts = divide(form, size, extents)
        if parts is None:
            for v, c in form.terms.items():
                if c > 0 and size % c == 0 and surely_less(size // c, extents[v]) and extents[v] % (size // c) == 0:
                    return v, size // c
            return None
        form = parts[0]
    return None
