"""Extents that are known when a kernel runs: polynomials of the sizes of its inputs.

A `Size` stands where an extent does, in types and in all of the lowering. Arithmetic makes other sizes, whose text is C.
A comparison is answered where all sizes give the same answer. Else the answer is that of the sizes' own numbers, and the
kernel checks it when it runs (`Sizes.assumed`). `==` asks for the same polynomial. While types are inferred
(`Sizes.inferring`), extents that must be equal are taken to be equal. The kernel checks this, too (`Sizes.equal`).

A size is an `int` so that it may stand for one. Its own number is one of the numbers that it may have. Code that read this
number would be wrong for others. So a kernel is made for two of them, and must be the same (`relaylang.backends.vm.sized`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any, NoReturn

from relaylang.diagnostics import RelayError, error
from relaylang.ir.extents import OpenExtent

#: The largest extent of an input.
MOST = 1 << 40
#: The most elements of a tensor.
MOST_ELEMENTS = 1 << 60

#: What cost models take every size for.
_USUAL = 56

#: Operands that sizes compute with, or refuse. Others, as those of the loop language, compute with sizes.
_NUMBER = (int, float)
_Terms = Mapping[tuple[str, ...], int]


class Sizes:
    """The sizes of one kernel: `size0`, `size1`, ..., and the extents that it takes to be equal.

    With `broadcasting` an extent that may be 1 yields to others, in calls that allow it (`may_yield`). Else those that
    broadcast are taken to be equal, too.
    """

    def __init__(self, numbers: Sequence[int], least: int = 1, broadcasting: bool = False) -> None:
        self.inferring = False
        self.broadcasting = broadcasting
        self.may_yield = False
        #: whether such a call has met extents that may differ
        self.have_met = False
        #: of each extent that others broadcast to: these, by its text
        self.parts: dict[str, list[int]] = {}
        self.equal: dict[tuple[str, str], tuple[int, int]] = {}
        #: answers that hold of the numbers, as C
        self.assumed: dict[str, None] = {}
        #: of these, what code needs beside the types: the operators refuse other extents
        self.required: dict[str, None] = {}
        #: the atoms that are rests of quotients
        self.rests: set[str] = set()
        #: what a type relation asked last, and the answers: `size0 == 1`, `size1 < size0`
        self.asked: dict[str, bool] = {}
        #: the answers that others in this kernel need, which it checks
        self.answers: dict[str, bool] = {}
        #: of each atom: its least and its greatest value, and its number
        self.atoms: dict[str, tuple[int, int | None, int]] = {}
        #: what cost models take each atom for
        self.usual: dict[str, int] = {}
        #: of each atom: the numbers of the sizes that it is made of
        self.made_of = {f"size{n}": frozenset({n}) for n in range(len(numbers))}
        self.sizes = [self.atom(f"size{n}", least, MOST, number, _USUAL) for n, number in enumerate(numbers)]

    def another(self, number: int, low: int) -> Size:
        """One more size, of at least `low`."""
        name = f"size{len(self.sizes)}"
        self.made_of[name] = frozenset({len(self.sizes)})
        self.sizes.append(self.atom(name, low, MOST, number, _USUAL))
        return self.sizes[-1]

    def begin(self) -> None:
        """Forget all assumptions."""
        self.have_met = False
        self.equal.clear()
        self.assumed.clear()

    def assume(self, condition: str, holds: bool) -> bool:
        """Take the answer of the numbers for granted, or another one that is needed."""
        holds = self.answer(condition, holds)
        self.assumed.setdefault(condition if holds else f"!({condition})")
        return holds

    def answer(self, condition: str, holds: bool) -> bool:
        """The answer to a comparison: `holds`, unless a type relation needs the other answer."""
        self.asked[condition] = self.answers.get(condition, holds)
        return self.asked[condition]

    def atom(self, text: str, low: int, high: int | None, number: int, likely: int, *parts: int) -> Size:
        """A size with a text of its own, made of others."""
        self.made_of.setdefault(text, _numbers(*parts))
        self.atoms.setdefault(text, (low, high, number))
        self.usual.setdefault(text, likely)
        return _size(self, {(text,): 1})  # type: ignore[return-value]


class Size(OpenExtent):
    """A polynomial that is no constant. `terms` has the factor of each product of atoms."""

    sizes: Sizes
    terms: _Terms

    def __add__(self, other: int) -> int:
        return _sum(self, other, 1) if isinstance(other, _NUMBER) else NotImplemented

    def __sub__(self, other: int) -> int:
        return _sum(self, other, -1) if isinstance(other, _NUMBER) else NotImplemented

    def __rsub__(self, other: int) -> int:
        return -self + other

    def __neg__(self) -> int:
        return self * -1

    def __abs__(self) -> int:
        return self if self >= 0 else -self

    def __mul__(self, other: int) -> int:  # type: ignore[override]
        if isinstance(other, float):
            return _Scaled(self, other)  # type: ignore[return-value]
        if not isinstance(other, _NUMBER):
            return NotImplemented
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
        if not self.sizes.inferring:
            return bool(self.sizes.equal) and (str(self), str(other)) in self.sizes.equal
        if _between(self - other) in (1, -1):
            return False
        if not isinstance(other, Size) and other < 2 and not self.sizes.answer(f"{self} == {other}", False):
            # Code for any extent is right for 1, too. Types of no elements may be others.
            return other == 0 and self.sizes.assume(f"{self} == 0", False)
        equate(self, other)
        return True

    def broadcast(self, other: Any) -> int | None:
        if not self._may_differ(other) or (surely_less(1, self) and surely_less(1, other)):
            return None
        self.sizes.have_met = True
        return _broadcast(self, other)

    def yields_to(self, wide: Any) -> bool:
        if not self._may_differ(wide) or surely_less(1, self):
            return False
        self.sizes.have_met = True
        return self.sizes.assume(f"({self} == {wide} || {self} == 1)", True)

    def _may_differ(self, other: Any) -> bool:
        return self.sizes.broadcasting and self.sizes.may_yield and isinstance(other, int) and self.terms != _terms(other)

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
            if len(self.terms) == 1 and not self.sizes.rests.isdisjoint(*self.terms):  # code is made for extents that divide
                return not must_equal(self, 0)
            return self.sizes.assume(f"{self} != 0", number_of(self) != 0)
        equate(self, 0)
        return False

    def __str__(self) -> str:
        parts = [" * ".join([*atoms, *([str(c)] if c != 1 or not atoms else [])]) for atoms, c in self.terms.items()]
        return f"({' + '.join(parts)})" if len(parts) > 1 or " " in parts[0] else parts[0]

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    def __index__(self) -> Size:
        return self

    def __int__(self) -> NoReturn:
        _refuse(f"the number {self}")

    def __float__(self) -> NoReturn:
        _refuse(f"the number {self}")

    def __truediv__(self, other: float) -> NoReturn:  # type: ignore[override]
        _refuse(f"a part of {self}")

    __rtruediv__ = __truediv__


class _Scaled:
    """A size times a positive number that is not whole. It can be rounded."""

    def __init__(self, size: Size, factor: float) -> None:
        self.size, self.factor = size, factor

    def __round__(self) -> int:
        low, high = (None if bound is None else round(bound * self.factor) for bound in bounds(self.size))
        numbers = (round(value * self.factor) for value in (number_of(self.size), usual(self.size)))
        text = f"(int64_t)rint({self.size} * {self.factor!r})"
        return self.size.sizes.atom(text, max(low or 0, 0), high, *numbers, self.size)

    def _refused(self, *others: object) -> NoReturn:
        _refuse(f"{self.size} times {self.factor}")

    __float__ = __int__ = __index__ = __floor__ = __ceil__ = __lt__ = __le__ = __gt__ = __ge__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = _refused


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
    size = Size.__new__(Size, number)
    size.sizes, size.terms = sizes, terms
    return size


def _terms(value: int) -> _Terms:
    if isinstance(value, float):
        _refuse(f"a number times {value}")
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


def number_of(value: int) -> int:
    """A size's own number, one of those that it may have."""
    return int.__add__(value, 0)


def usual(value: int) -> int:
    """The extent that a cost model takes a size for, 1 at least. Code must be right whatever the size is."""
    if not isinstance(value, Size):
        return value
    return max(1, sum(c * prod(value.sizes.usual[a] for a in atoms) for atoms, c in value.terms.items()))


def _between(value: int) -> int | None:
    """1 for a size that is always greater than 0, -1 for one that is always less; None for others."""
    low, high = bounds(value)
    return 1 if low is not None and low > 0 else -1 if high is not None and high < 0 else None


def equate(one: Size, two: int) -> None:
    """Take two extents to be equal, which the kernel checks."""
    one.sizes.equal.setdefault((str(one), str(two)), (one, two))


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
    return sizes_of(one, two).assume(f"{one} < {two + more}", number_of(one) < number_of(two + more))


def sizes_of(one: int, two: int) -> Sizes:
    """What two numbers are made of, of which one at least is a size."""
    return one.sizes if isinstance(one, Size) else two.sizes  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True)
class Comparison:
    """A comparison that sizes answer in two ways: its text as C, and what it is for their numbers."""

    sizes: Sizes
    text: str
    holds: bool

    def answer(self) -> bool:
        """The answer of the numbers, which the kernel checks."""
        return self.sizes.assume(self.text, self.holds)


def _test(one: int, sign: str, two: int, holds: bool) -> Comparison:
    return Comparison(sizes_of(one, two), f"{one} {sign} {two}", holds)


def equals(one: int, two: int) -> bool | Comparison:
    """Whether two sizes are the same."""
    difference = one - two
    if not isinstance(difference, Size) or _between(difference) is not None:
        return not isinstance(difference, Size) and difference == 0
    return _test(one, "==", two, number_of(one) == number_of(two))


def less(one: int, two: int) -> bool | Comparison:
    """Whether one size is less than another."""
    low, high = bounds(two - one)
    if (low is not None and low > 0) or (high is not None and high <= 0):
        return low is not None and low > 0
    return _test(one, "<", two, number_of(one) < number_of(two))


def opposite(test: bool | Comparison) -> bool | Comparison:
    """The other answer to a comparison."""
    return replace(test, text=f"!({test.text})", holds=not test.holds) if isinstance(test, Comparison) else not test


def largest(one: int, two: int) -> int:
    """The larger of two sizes."""
    if not surely_less(one - 1, two) and not surely_less(two - 1, one):
        sizes = sizes_of(one, two)
        (a, b), (c, d) = bounds(one), bounds(two)
        low = max(n for n in (a, c, 0) if n is not None)
        most = None if b is None or d is None else max(b, d)
        numbers = max(number_of(one), number_of(two)), max(usual(one), usual(two))
        return sizes.atom(f"({one} > {two} ? {one} : {two})", low, most, *numbers, one, two)
    return two if surely_less(one - 1, two) else one


def _broadcast(one: Size, two: int) -> int:
    """The extent that two broadcast to, which the kernel checks. All others are 1 where one is not: their bits say which."""
    sizes = one.sizes
    own, other = ({str(p): p for p in sizes.parts.get(str(e), (e,))} for e in (one, two))
    if own.keys() >= other.keys() or own.keys() < other.keys():
        return one if own.keys() >= other.keys() else two
    open_ones = [e for e in (one, two) if not surely_less(1, e)]
    sizes.assume(f"({' || '.join([f'{one} == {two}', *(f'{e} == 1' for e in open_ones)])})", True)
    if len(open_ones) == 1:
        return two if open_ones[0] is one else one
    parts = [part for _, part in sorted({**own, **other}.items())]
    text = f"(({' | '.join(f'({part} - 1)' for part in parts)}) + 1)"
    ends = [bounds(part) for part in parts]
    high = None if any(end is None for _, end in ends) else max(end for _, end in ends if end is not None)
    low = max([start for start, _ in ends if start is not None], default=0)
    wide = sizes.atom(text, low, high, max(map(number_of, parts)), max(map(usual, parts)), *parts)
    sizes.parts[str(wide)] = parts
    return wide


def step_of(extent: int, wide: int) -> int:
    """How far an operand's index moves with that of a result, which its axis broadcasts to: 0 where the axis yields, else 1."""
    if not isinstance(extent, Size) or not extent.sizes.broadcasting or extent.terms == _terms(wide) or surely_less(1, extent):
        return 0 if not isinstance(extent, Size) and extent == 1 else 1
    return extent.sizes.atom(f"({extent} > 1)", 0, 1, 1, 1, extent)


def must_equal(one: int, two: int) -> bool:
    """Whether two extents are equal. The kernel checks it where they may be, and may not."""
    test = equals(one, two)
    if isinstance(test, bool):
        return test
    test.sizes.required.setdefault(test.text)
    return test.sizes.assume(test.text, True)


def at_least(value: int, low: int) -> int:
    """A size that is `low` at least, which the kernel checks; its number is larger. Plain numbers stay what they are."""
    if not isinstance(value, Size) or surely_less(low - 1, value):
        return value
    value.sizes.assume(f"{value} >= {low}", True)
    return value.sizes.atom(f"{value}", low, bounds(value)[1], max(number_of(value), low + 1), max(usual(value), low + 1), value)


def without_common(one: int, two: int) -> tuple[int, int]:
    """Two products that are equal, without the factors of both that are at least 1."""
    if not isinstance(one, Size) or not isinstance(two, Size) or len(one.terms) != 1 or len(two.terms) != 1:
        return one, two
    ((atoms, a),), ((others, b),) = one.terms.items(), two.terms.items()
    common: list[str] = []
    for atom in atoms:
        if atom in others and common.count(atom) < others.count(atom) and one.sizes.atoms[atom][0] > 0:
            common.append(atom)
    factor = gcd(a, b)
    left, right = _without(atoms, tuple(common)), _without(others, tuple(common))
    assert left is not None and right is not None
    return _size(one.sizes, {left: a // factor}), _size(one.sizes, {right: b // factor})


def has_sizes(extents: Iterable[int]) -> bool:
    """Whether any of some extents is a size."""
    return any(isinstance(e, Size) for e in extents)


def _numbers(*values: int) -> frozenset[int]:
    """The numbers of the sizes that numbers are made of."""
    atoms = [v.sizes.made_of[atom] for v in values if isinstance(v, Size) for product in v.terms for atom in product]
    return frozenset().union(*atoms)


def sizes_in(*values: int) -> list[str]:
    """The names of the sizes that numbers are made of, in order."""
    return [f"size{n}" for n in sorted(_numbers(*values))]


def smallest(one: int, two: int) -> int:
    """The smaller of two sizes."""
    return one + two - largest(one, two)


def _can_be_positive(size: int) -> bool:
    high = bounds(size)[1]
    return high is None or high > 0


def _divided(sizes: Sizes, value: int, by: int) -> tuple[int, int]:
    """Quotient and rest, rounded down."""
    if not by > 0:
        _refuse(f"a quotient by {by}")
    quotients: dict[tuple[str, ...], int] = {}
    rest: dict[tuple[str, ...], int] = {}
    ((atoms, factor),) = _terms(by).items() if len(_terms(by)) == 1 else (((), 0),)
    for product, c in _terms(value).items():
        left = _without(product, atoms)
        if factor and left is not None and c % factor == 0:
            quotients[left] = c // factor
        else:
            rest[product] = c
    left_over = _size(sizes, rest)
    # A negative rest stays whole. With a constant between 0 and `by` its sign would change for small sizes.
    if () in rest and factor and not atoms and (len(rest) == 1 or (_can_be_positive(left_over) and number_of(left_over) >= 0)):
        quotients[()], rest[()] = divmod(rest[()], factor)
    quotient, left_over = _size(sizes, quotients), _size(sizes, rest)
    low = bounds(left_over)[0]
    if (low == 0 and not isinstance(left_over, Size)) or (low is not None and low >= 0 and surely_less(left_over, by)):
        return quotient, left_over
    if _can_be_positive(left_over) and left_over >= 0:
        extra, left_over = _cut(sizes, left_over, by)
        return quotient + extra, left_over
    up = _cut(sizes, by - 1 - left_over, by)[0]
    return quotient - up, left_over + up * by


def _cut(sizes: Sizes, value: int, by: int) -> tuple[int, int]:
    """Quotient and rest of numbers that are not negative, as C computes them."""
    (low, high), (least, end) = bounds(value), bounds(by)
    number, likely = (divmod(f(value), max(1, f(by))) for f in (number_of, usual))
    most = None if high is None else max(high, 0) // max(1, least or 1)
    first = 0 if low is None or end is None else max(low, 0) // end
    sizes.rests.add(f"({value} % {by})")
    quotient = sizes.atom(f"({value} / {by})", first, most, number[0], likely[0], value, by)
    return quotient, sizes.atom(f"({value} % {by})", 0, None if end is None else end - 1, number[1], likely[1], value, by)


def _without(product: tuple[str, ...], atoms: tuple[str, ...]) -> tuple[str, ...] | None:
    """A product without some of its atoms; None where it lacks them."""
    left = list(product)
    for atom in atoms:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
