"""Arithmetic on extents: numbers, `?`, names, and computations of them.

Sums, differences and products have one form, a sum of products with whole coefficients: `2 * n + 5` for `n + 2 + n + 3`.
Quotients by a number keep remainders inside: `(n + 1) / 2 + 1` for `(n + 3) / 2`. So equal ones are the
same object. A name is one that a function binds, or one that holds for a whole program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import cast

from relaylang.ir.types import ANY, ComputedDim, Dim, TypeVar, computed_dim, extent, extent_dtype


def _trunc(a: int, b: int) -> int:
    """The quotient towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


#: TVM's operators on extents, and what they do to numbers.
_COMPUTES: dict[str, Callable[[int, int], int]] = {
    "tir.Add": operator.add,
    "tir.Sub": operator.sub,
    "tir.Mul": operator.mul,
    "tir.FloorDiv": operator.floordiv,
    "tir.FloorMod": operator.mod,
    "tir.Div": _trunc,
    "tir.Mod": lambda a, b: a - _trunc(a, b) * b,
    "tir.Min": min,
    "tir.Max": max,
}
#: Operators and the right operands that leave the left one as it is.
_NEUTRAL = {"tir.Add": 0, "tir.Sub": 0, "tir.Mul": 1, "tir.FloorDiv": 1, "tir.Div": 1}
_COMMUTATIVE = ("tir.Add", "tir.Mul")
#: The deepest and the longest extent that is computed of others; a program that computes further has `?` there.
DEEPEST = 50
_LONGEST = 200
#: The most products of a sum. A sum of more is not multiplied out.
_MOST_TERMS = 40

#: A sum of products: each product's factors with its coefficient, without those of 0. The number has no factors.
Terms = Mapping[tuple[TypeVar, ...], int]


class OpenExtent(int):
    """An extent whose number is known when a kernel runs."""

    def broadcast(self, other: Dim) -> int | None:
        """The extent that this one and another broadcast to; None where the two must be equal."""
        raise AssertionError("abstract")

    def yields_to(self, wide: Dim) -> bool:
        """Whether this one may be 1 where a result has another extent. False where the two must be equal."""
        raise AssertionError("abstract")


def _known(dim: Dim) -> bool:
    """Whether others can be computed of an extent."""
    if isinstance(dim, ComputedDim):
        return dim.depth < DEEPEST and dim.size < _LONGEST
    return isinstance(dim, (int, TypeVar))


def combine(key: str, a: Dim, b: Dim) -> Dim:
    """The extent that TVM's operator `key` makes of two: a number of numbers, else a computed one.

    It is `?` where an operand is `?` or as deep as `DEEPEST`. Raises `ZeroDivisionError`.
    """
    if isinstance(a, int) and isinstance(b, int):
        # Numbers of other classes have an arithmetic of their own, but for sizes, which stay what they are here.
        computed = _COMPUTES[key](a.__index__(), b.__index__())
        return extent(computed, "int64" if "int64" in (extent_dtype(a), extent_dtype(b)) else "int32")
    if isinstance(a, int) and key in _COMMUTATIVE:
        a, b = b, a
    if isinstance(b, int) and b == _NEUTRAL.get(key):
        return a
    if not (_known(a) and _known(b)):
        return ANY
    dtype = "int64" if "int64" in (extent_dtype(a), extent_dtype(b)) else "int32"
    terms = _computed_terms(key, a, b, dtype)
    return computed_dim(key, (a, b), dtype) if terms is None else _dim_of(terms, dtype)


def terms_of(dim: Dim) -> Terms:
    """The sum of products that a known extent is. Computations of other kinds are factors in it."""
    if isinstance(dim, int):
        return {(): int(dim)} if dim else {}
    assert isinstance(dim, TypeVar)
    if not isinstance(dim, ComputedDim):
        return {(dim,): 1}
    stack = [dim]
    while stack:
        node = stack[-1]
        waiting = [o for o in node.operands if isinstance(o, ComputedDim) and o.terms is None]
        if node.terms is None and waiting:
            stack += waiting
            continue
        stack.pop()
        if node.terms is None:
            terms = None
            if len(node.operands) == 2 and all(isinstance(o, (int, TypeVar)) for o in node.operands):
                terms = _computed_terms(node.type_key, *node.operands, node.dtype)
            node.terms = {(node,): 1} if terms is None else terms
    return dim.terms or {}


def _computed_terms(key: str, a: Dim, b: Dim, dtype: str) -> Terms | None:
    """The sum of products that an operator makes of two extents; None where it makes a factor of its own."""
    if key in ("tir.Add", "tir.Sub"):
        return _sum(terms_of(a), terms_of(b), 1 if key == "tir.Add" else -1)
    if key == "tir.Mul":
        left, right = terms_of(a), terms_of(b)
        return _product(left, right) if len(left) * len(right) <= _MOST_TERMS else None
    if key == "tir.FloorDiv" and isinstance(b, int) and b > 0:
        return _quotient(terms_of(a), int(b), dtype)
    if key == "tir.FloorMod" and isinstance(b, int) and b > 0:
        rest = {factors: c % b for factors, c in terms_of(a).items() if c % b}
        return rest if not rest or list(rest) == [()] else None
    return None


def _sum(left: Terms, right: Terms, sign: int) -> Terms:
    total = dict(left)
    for factors, coefficient in right.items():
        total[factors] = total.get(factors, 0) + sign * coefficient
    return {factors: c for factors, c in total.items() if c}


def _product(left: Terms, right: Terms) -> Terms:
    total: dict[tuple[TypeVar, ...], int] = {}
    for one, c in left.items():
        for two, d in right.items():
            factors = tuple(sorted((*one, *two), key=_order))
            total[factors] = total.get(factors, 0) + c * d
    return {factors: c for factors, c in total.items() if c}


def _order(factor: TypeVar) -> tuple[bool, str, str, int]:
    """Factors of a product are sorted by their names. Only those of one name depend on the process."""
    return isinstance(factor, ComputedDim), factor.name_hint, extent_dtype(factor), id(factor)


def _quotient(terms: Terms, divisor: int, dtype: str) -> Terms:
    """A sum of products divided by a positive number, rounded down."""
    whole = {factors: c // divisor for factors, c in terms.items() if c // divisor}
    rest = {factors: c % divisor for factors, c in terms.items() if c % divisor}
    if not any(rest):  # less than one
        return whole
    common = gcd(divisor, *[c for factors, c in rest.items() if factors])
    rest = {factors: c // common for factors, c in rest.items() if c // common}
    divisor //= common
    if divisor == 1:
        return _sum(whole, rest, 1)
    named = [factors for factors in rest if factors]
    inner = named[0][0]
    if len(named) == 1 == len(named[0]) == rest[named[0]] and isinstance(inner, ComputedDim) and inner.type_key == "tir.FloorDiv":
        dividend, by = inner.operands
        if isinstance(by, int):  # a quotient of a quotient is one
            return _sum(whole, _quotient(_sum(terms_of(dividend), {(): by}, rest.get((), 0)), by * divisor, dtype), 1)
    factor = computed_dim("tir.FloorDiv", (_dim_of(rest, dtype), divisor), dtype)
    return _sum(whole, {(factor,): 1}, 1)


def _dim_of(terms: Terms, dtype: str) -> Dim:
    """The extent that a sum of products is: long products first, then negative ones, then the number."""
    number = terms.get((), 0)
    dim: Dim | None = None
    for factors in sorted(filter(None, terms), key=lambda f: (terms[f] < 0, -len(f), list(map(_order, f)))):
        coefficient = terms[factors]
        if dim is None and coefficient < 0 < number:
            dim, number = extent(number, dtype), 0
        size = coefficient if dim is None else abs(coefficient)
        made: Dim = factors[0]
        for factor in factors[1:]:
            made = computed_dim("tir.Mul", (made, factor), dtype)
        if size != 1:
            made = computed_dim("tir.Mul", (made, extent(size, dtype)), dtype)
        dim = made if dim is None else computed_dim("tir.Add" if coefficient > 0 else "tir.Sub", (dim, made), dtype)
    if dim is None:
        return extent(number, dtype)
    if number:
        dim = computed_dim("tir.Add" if number > 0 else "tir.Sub", (dim, extent(abs(number), dtype)), dtype)
    if isinstance(dim, ComputedDim) and dim.terms is None:
        dim.terms = terms
    return dim


def agree(left: Dim, right: Dim) -> bool | None:
    """Whether two extents are the same for every extent that their names may be; None where that is not known.

    Names stand for extents of which nothing is known, so that `b` and `2 * b` differ. Quotients and the like may be equal.
    """
    if left is right:
        return True
    if left is ANY or right is ANY:
        return None
    difference = _sum(terms_of(left), terms_of(right), -1)
    if not difference:
        return True
    return None if any(isinstance(f, ComputedDim) for factors in difference for f in factors) else False


def never_agree(left: Dim, right: Dim) -> bool:
    """Whether two extents differ whatever their names are, but for 0: `b` and `2 * b` do, `b` and 4 do not."""
    if agree(left, right) is not False:
        return False
    difference = _sum(terms_of(left), terms_of(right), -1)
    return len({coefficient > 0 for coefficient in difference.values()}) == 1


def bounds(dim: Dim) -> tuple[int | None, int | None]:
    """The least and the greatest number that an extent can be, each None where there is none. Names are 0 or more."""
    if dim is ANY:
        return None, None
    low: int | None = 0
    high: int | None = 0
    for factors, coefficient in terms_of(dim).items():
        least, most = _product_bounds(factors)
        if coefficient < 0:
            least, most = most, least
        low = None if low is None or least is None else low + coefficient * least
        high = None if high is None or most is None else high + coefficient * most
    return low, high


def _product_bounds(factors: Sequence[TypeVar]) -> tuple[int | None, int | None]:
    """Those of a product. A factor that may be negative leaves none."""
    low, most = 1, cast("int | None", 1)
    for factor in factors:
        least, greatest = _factor_bounds(factor)
        if least is None or least < 0:
            return (least, greatest) if len(factors) == 1 else (None, None)
        low *= least
        most = None if most is None or greatest is None else most * greatest
    return low, most


def _factor_bounds(factor: TypeVar) -> tuple[int | None, int | None]:
    """Those of a name, or of a computation that is no sum of products. Depth is at most `DEEPEST`."""
    if not isinstance(factor, ComputedDim):
        return 0, None
    if len(factor.operands) != 2:
        return None, None
    left, right = factor.operands
    if factor.type_key in ("tir.FloorDiv", "tir.FloorMod") and isinstance(right, int) and right > 0:
        if factor.type_key == "tir.FloorMod":
            return 0, int(right) - 1
        low, high = bounds(left)
        return None if low is None else low // int(right), None if high is None else high // int(right)
    if factor.type_key in ("tir.Min", "tir.Max"):
        # One bound is enough for the most that the lesser of two is, and for the least that the greater is.
        pick, enough = (min, 1) if factor.type_key == "tir.Min" else (max, 0)
        ends = [[b for b in pair if b is not None] for pair in zip(bounds(left), bounds(right))]
        low, high = [pick(known) if len(known) >= (1 if n == enough else 2) else None for n, known in enumerate(ends)]
        return low, high
    return None, None


def solve(left: Dim, right: Dim, name: TypeVar) -> Dim | None:
    """The extent that a name must be for two extents to be the same: `?` where that is not known, None where there is none."""
    difference = dict(_sum(terms_of(right), terms_of(left), -1))
    by = difference.pop((name,), 0)
    if not by or any(f is name or isinstance(f, ComputedDim) for factors in difference for f in factors):
        return ANY
    if any(c % by for c in difference.values()):
        return None if list(difference) == [()] else ANY
    made = _dim_of({factors: -c // by for factors, c in difference.items()}, extent_dtype(name))
    return None if isinstance(made, int) and made < 0 else made


def part_of(dim: Dim, name: TypeVar, extent: Dim) -> Dim:
    """What a name is where `dim` is `extent`, a sum in which it stands once: `(extent - 1) / 2` for `2 * name + 1`.

    `?` for other computations. A number that `dim` cannot be is rounded down.
    """
    by = terms_of(dim).get((name,), 0) if _known(dim) else 0
    rest = combine("tir.Sub", dim, combine("tir.Mul", name, by))
    if not by or any(n is name for n in names_in(rest)):
        return ANY
    total = combine("tir.Sub", extent, rest) if by > 0 else combine("tir.Sub", rest, extent)
    return combine("tir.FloorDiv", total, abs(by))


def exact_quotient(dividend: Dim, divisor: Dim) -> Dim:
    """How often an extent that is not 0 is in another that it divides; `?` where that is not known."""
    if not (_known(dividend) and _known(divisor)):
        return ANY
    below = terms_of(divisor)
    if len(below) != 1:
        return 1 if below and terms_of(dividend) == below else ANY
    ((factors, by),) = below.items()
    made: dict[tuple[TypeVar, ...], int] = {}
    for product, coefficient in terms_of(dividend).items():
        left = list(product)
        for factor in factors:
            if factor not in left:
                return ANY
            left.remove(factor)
        made[tuple(left)] = coefficient
    dtype = "int64" if "int64" in (extent_dtype(dividend), extent_dtype(divisor)) else "int32"
    return _dim_of(_quotient(made, by, dtype), dtype) if by > 0 else ANY


def names_in(dim: Dim) -> list[TypeVar]:
    """The names that an extent is computed of, each once."""
    found: dict[int, TypeVar] = {}
    seen: set[int] = set()
    stack = [dim]
    while stack:
        node = stack.pop()
        if not isinstance(node, ComputedDim):
            if isinstance(node, TypeVar):
                found[id(node)] = node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.extend(reversed(node.operands))
    return list(found.values())


def with_names(dim: Dim, give: Callable[[TypeVar], Dim]) -> Dim:
    """The extent computed of others: `give` is the extent in place of a name."""
    if not isinstance(dim, ComputedDim):
        return give(dim) if isinstance(dim, TypeVar) else dim
    done: dict[int, Dim] = {}
    stack: list[Dim] = [dim]
    while stack:
        node = stack[-1]
        waiting = [o for o in node.operands if id(o) not in done] if isinstance(node, ComputedDim) else []
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if isinstance(node, ComputedDim):
            operands = [done[id(o)] for o in node.operands]
            same = all(a is b for a, b in zip(operands, node.operands))
            if same or len(operands) != 2 or node.type_key not in _COMPUTES:
                done[id(node)] = node if same else computed_dim(node.type_key, operands, node.dtype)
            else:
                done[id(node)] = combine(node.type_key, *operands)
        else:
            done[id(node)] = give(node) if isinstance(node, TypeVar) else node
    return done[id(dim)]
