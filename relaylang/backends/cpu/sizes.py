"""Extents that are known when a kernel runs: polynomials of the sizes of its inputs.

A `Size` stands where an extent does, in types and in all of the lowering. Arithmetic makes other sizes, whose text is C.
A comparison is answered where all sizes give the same answer; else the operator is refused. `==` asks for the same
polynomial. While types are inferred (`Sizes.inferring`), extents that must be equal are taken to be equal. The kernel checks
them when it runs (`Sizes.equal`).

A size is an `int` so that it may stand for one. Its own number is one of the numbers that it may have. Code that read this
number would be wrong for others. So a kernel is made for two of them, and must be the same (`relaylang.backends.vm.sized`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from relaylang.diagnostics import RelayError, error

#: The largest extent of an input.
MOST = 1 << 40
#: The most elements of a tensor.
MOST_ELEMENTS = 1 << 60

_Terms = Mapping[tuple[str, ...], int]


class Sizes:
    """The sizes of one kernel: `size0`, `size1`, ..., and the extents that it takes to be equal."""

    def __init__(self, numbers: list[int]) -> None:
        self.inferring = False
        self.equal: dict[tuple[str, str], tuple[int, int]] = {}
        #: of each atom: its least and its greatest value, and its number
        self.atoms: dict[str, tuple[int, int | None, int]] = {}
        self.sizes = [self.atom(f"size{n}", 1, MOST, number) for n, number in enumerate(numbers)]

    def atom(self, text: str, low: int, high: int | None, number: int) -> Size:
        self.atoms.setdefault(text, (low, high, number))
        return _size(self, {(text,): 1})  # type: ignore[return-value]


class Size(int):
    """A polynomial that is no constant. `terms` has the factor of each product of atoms."""

    sizes: Sizes
    terms: _Terms

    def __add__(self, other: int) -> int:
        return _sum(self, other, 1)

    def __sub__(self, other: int) -> int:
        return _sum(self, other, -1)

    def __rsub__(self, other: int) -> int:
        return -self + other

    def __neg__(self) -> int:
        return self * -1

    def __abs__(self) -> int:
        return self if self >= 0 else -self

    def __mul__(self, other: int) -> int:  # type: ignore[override]
        terms: dict[tuple[str, ...], int] = {}
        for one, a in self.terms.items():
            for two, b in _terms(other).items():
                both = tuple(sorted((*one, *two)))
                terms[both] = terms.get(both, 0) + a * b
        return _size(self.sizes, terms)

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other: int) -> int:
        return _divided(self.sizes, self, other)[0]

    def __mod__(self, other: int) -> int:
        return _divided(self.sizes, self, other)[1]

    def __divmod__(self, other: int) -> tuple[int, int]:
        return _divided(self.sizes, self, other)

    def __rfloordiv__(self, other: int) -> int:
        return _divided(self.sizes, other, self)[0]

    def __rmod__(self, other: int) -> int:
        return _divided(self.sizes, other, self)[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int):
            return NotImplemented
        if self.terms == _terms(other):
            return True
        if not self.sizes.inferring or (not isinstance(other, Size) and other < 2) or _between(self - other) in (1, -1):
            return False
        self.sizes.equal.setdefault((str(self), str(other)), (self, other))
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __lt__(self, other: int) -> bool:
        return _less(self, other, 0)

    def __le__(self, other: int) -> bool:
        return _less(self, other, 1)

    def __gt__(self, other: int) -> bool:
        return not self <= other

    def __ge__(self, other: int) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        if _between(self) in (1, -1):
            return True
        if not self.sizes.inferring:
            _refuse(f"whether {self} is 0")
        self.sizes.equal.setdefault((str(self), "0"), (self, 0))
        return False

    def __str__(self) -> str:
        parts = [" * ".join([*atoms, *([str(c)] if c != 1 or not atoms else [])]) for atoms, c in self.terms.items()]
        return f"({' + '.join(parts)})" if len(parts) > 1 or " " in parts[0] else parts[0]

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    def __int__(self) -> NoReturn:
        _refuse(f"the number {self}")

    def __float__(self) -> NoReturn:
        _refuse(f"the number {self}")

    def __truediv__(self, other: float) -> NoReturn:  # type: ignore[override]
        _refuse(f"a part of {self}")

    __rtruediv__ = __truediv__


def _refuse(what: str) -> NoReturn:
    raise RelayError(error("R0634", f"the code depends on {what}, which is not known before the program runs"))


def _size(sizes: Sizes, terms: _Terms) -> int:
    """The size of some terms; a plain number where they are one."""
    terms = {atoms: c for atoms, c in terms.items() if c}
    if not any(terms):
        return terms.get((), 0)
    number = 0
    for atoms, c in terms.items():
        for atom in atoms:
            c *= sizes.atoms[atom][2]
        number += c
    made = Size.__new__(Size, number)
    made.sizes, made.terms = sizes, terms
    return made


def _terms(value: int) -> _Terms:
    return value.terms if isinstance(value, Size) else {(): value} if value else {}


def _sum(one: Size, two: int, factor: int) -> int:
    terms = dict(one.terms)
    for atoms, c in _terms(two).items():
        terms[atoms] = terms.get(atoms, 0) + factor * c
    return _size(one.sizes, terms)


def bounds(value: int) -> tuple[int | None, int | None]:
    """The least and the greatest value of a size; None where there is none."""
    if not isinstance(value, Size):
        return value, value
    # In terms of what each atom is beyond its least value, of which the least is 0.
    beyond: dict[tuple[str, ...], int] = {}
    for atoms, c in value.terms.items():
        parts: dict[tuple[str, ...], int] = {(): c}
        for atom in atoms:
            least = value.sizes.atoms[atom][0]
            more = [((*product, atom), f) for product, f in parts.items()]
            parts = {**{product: f * least for product, f in parts.items()}, **dict(more)}
        for product, f in parts.items():
            beyond[product] = beyond.get(product, 0) + f
    low = high = beyond.pop((), 0)
    open_low = open_high = False
    for atoms, c in beyond.items():
        most: int | None = 1
        for atom in atoms:
            least, greatest, _ = value.sizes.atoms[atom]
            most = None if most is None or greatest is None else min(most * (greatest - least), MOST_ELEMENTS)
        if most is None:
            open_low, open_high = open_low or c < 0, open_high or c > 0
        elif c < 0:
            low += c * most
        else:
            high += c * most
    return None if open_low else low, None if open_high else high


def _between(value: int) -> int | None:
    """1 for a size that is always greater than 0, -1 for one that is always less; None for others."""
    low, high = bounds(value)
    return 1 if low is not None and low > 0 else -1 if high is not None and high < 0 else None


def surely_less(one: int, two: int) -> bool:
    """Whether one size is always less than another."""
    if not isinstance(one, Size) and not isinstance(two, Size):
        return one < two
    low = bounds(two - one)[0]
    return low is not None and low > 0


def _less(one: int, two: int, more: int) -> bool:
    """Whether `one < two + more`; refused where sizes answer it in two ways."""
    low, high = bounds(two + more - one)
    if low is not None and low > 0:
        return True
    if high is not None and high <= 0:
        return False
    _refuse(f"whether {one} is less than {two + more}")


def largest(one: int, two: int) -> int:
    """The larger of two sizes."""
    if not surely_less(one - 1, two) and not surely_less(two - 1, one):
        sizes = one.sizes if isinstance(one, Size) else two.sizes  # type: ignore[attr-defined]
        (a, b), (c, d) = bounds(one), bounds(two)
        low = max(n for n in (a, c, 0) if n is not None)
        numbers = [int.__add__(n, 0) for n in (one, two)]
        return sizes.atom(f"({one} > {two} ? {one} : {two})", low, None if b is None or d is None else max(b, d), max(numbers))
    return two if surely_less(one - 1, two) else one


def _divided(sizes: Sizes, value: int, by: int) -> tuple[int, int]:
    """Quotient and rest, rounded down."""
    if _between(by) != 1:
        _refuse(f"a quotient by {by}")
    whole: dict[tuple[str, ...], int] = {}
    rest: dict[tuple[str, ...], int] = {}
    ((atoms, factor),) = _terms(by).items() if len(_terms(by)) == 1 else (((), 0),)
    for product, c in _terms(value).items():
        left = _without(product, atoms)
        if factor and left is not None and c % factor == 0:
            whole[left] = c // factor
        elif factor and not atoms and not product:
            whole[()], rest[()] = divmod(c, factor)
        else:
            rest[product] = c
    quotient, left_over = _size(sizes, whole), _size(sizes, rest)
    low, high = bounds(left_over)
    if low is not None and low >= 0 and surely_less(left_over, by):
        return quotient, left_over
    numbers = divmod(int.__add__(left_over, 0), int.__add__(by, 0))
    if low is not None and low >= 0:
        most = None if high is None else high // (bounds(by)[0] or 1)
        least = 0 if isinstance(by, Size) else low // by
        extra = sizes.atom(f"({left_over} / {by})", least, most, numbers[0])
        part = sizes.atom(f"({left_over} % {by})", 0, None if bounds(by)[1] is None else bounds(by)[1] - 1, numbers[1])  # type: ignore[operator]
        return quotient + extra, part
    if high is not None and high <= 0:
        up = _divided(sizes, by - 1 - left_over, by)[0]
        return quotient - up, left_over + up * by
    _refuse(f"the quotient of {left_over} and {by}")


def _without(product: tuple[str, ...], atoms: tuple[str, ...]) -> tuple[str, ...] | None:
    """A product without some of its atoms; None where it lacks them."""
    left = list(product)
    for atom in atoms:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
