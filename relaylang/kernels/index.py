"""Index arithmetic of generated loops: affine forms of loop variables, and reshaping them.

The variables of a nest's loops are `i0`, `i1`, ..., from the outermost on. An affine form is an expression of the type
`index`: a sum of such variables times numbers or sizes. It shows which loops can be merged, and which values can be hoisted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from relaylang.kernels.ir import Expr, Extent, Linear, Var, number, plain, plus, times
from relaylang.kernels.sizes import surely_less

ZERO = number(0)


@cache
def variable(number: int) -> Expr:
    """The variable of a loop."""
    return Var(f"i{number}")


def affine(terms: Mapping[int, int], const: int = 0) -> Expr:
    """A form of the factors of loop variables, and a number."""
    return plain(Linear(tuple((variable(v), c) for v, c in sorted(terms.items()) if c != 0), const))


def terms_of(form: Expr) -> dict[int, int]:
    """The factors of loop variables in a form, in the variables' order."""
    match form:
        case Var(name):
            return {int(name[1:]): 1}
        case Linear(terms):
            return dict(sorted((int(a.name[1:]), c) for a, c in terms if isinstance(a, Var)))
    return {}


def const_of(form: Expr) -> int:
    """The number in a form, beside its variables. It may be a size."""
    match form:
        case Extent(size):
            return size
        case Linear(terms, const):
            return const + sum(const_of(a) * c for a, c in terms if isinstance(a, Extent))
    return 0


def span(form: Expr, extents: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest value, when variable `v` runs over `range(extents[v])`."""
    low = high = const_of(form)
    for v, c in terms_of(form).items():
        reach = c * (extents[v] - 1)
        low, high = (low, high + reach) if surely_less(-1, c) or c > 0 else (low + reach, high)
    return low, high


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


def linear(index: Sequence[Expr], shape: Sequence[int], strides: Sequence[int] | None = None) -> Expr:
    """The offset of an element in an array, by default in a C-contiguous one."""
    total = ZERO
    for form, stride, extent in zip(index, strides_of(shape) if strides is None else strides, shape):
        if extent != 1:
            total = plus(total, times(form, number(stride)))
    return total


def divide(form: Expr, size: int, extents: Sequence[int]) -> tuple[Expr, Expr] | None:
    """`form // size` and `form % size` as affine forms, where the form splits cleanly; else None."""
    terms, const = terms_of(form), const_of(form)
    inner = affine({v: c for v, c in terms.items() if c % size != 0}, const % size)
    low, high = span(inner, extents)
    if not (surely_less(-1, low) and surely_less(high, size)):
        return None
    return affine({v: c // size for v, c in terms.items() if c % size == 0}, const // size), inner


def unravel(form: Expr, shape: Sequence[int], extents: Sequence[int]) -> list[Expr] | None:
    """The index in an array of `shape` of the element at offset `form`, where every part is affine; else None."""
    if 0 in shape:
        return [ZERO] * len(shape)
    out: list[Expr] = []
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


def splittable(form: Expr, shape: Sequence[int], extents: Sequence[int]) -> tuple[int, int] | None:
    """The variable that stands in the way of `unravel`, and the extent at which to cut it; None for others."""
    for size in reversed(shape[1:]):
        if size == 1:
            continue
        parts = divide(form, size, extents)
        if parts is None:
            for v, c in terms_of(form).items():
                cut = size // c if surely_less(0, c) and size % c == 0 else 0
                if cut and surely_less(cut - 1, extents[v]) and extents[v] != cut and extents[v] % cut == 0:
                    return v, cut
            return None
        form = parts[0]
    return None


def digits(value: Expr, extents: Sequence[int]) -> list[Expr]:
    """The digits of a number in a mixed base, outermost first: the index of the element at an offset."""
    out: list[Expr] = []
    for n, extent in enumerate(reversed(extents)):
        if extent == 1:
            out.append(number(0))
        elif n == len(extents) - 1 or all(e == 1 for e in extents[: len(extents) - 1 - n]):
            out.append(value)
        else:
            out.append(value % extent)
            value = value // extent
    return out[::-1]
