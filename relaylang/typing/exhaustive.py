"""Whether the clauses of a match cover every value, and if not, a value that they miss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from relaylang.ir.expr import (
    Clause,
    Constructor,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternWildcard,
    TypeData,
)
from relaylang.ir.types import GlobalTypeVar

#: The most steps of the search; ordinary matches take as many as they have patterns.
LIMIT = 200_000

# A row has the patterns that are left of a clause: a linked list (first pattern, rest), None for anything. A witness is
# a linked list of choices, from the last one back: (constructor, tuple size or None, rest).
_Row = tuple["Pattern | None", "_Row"] | None
_Choice = Constructor | int | None
_Witness = tuple[_Choice, "_Witness"] | None


class Undecided(Exception):
    """The clauses are too many to tell."""


def missing_value(clauses: Sequence[Clause], definitions: Mapping[GlobalTypeVar, TypeData]) -> str | None:
    """The text of a value that no clause takes, or None where they take all. Raises `Undecided`."""
    return next((_text(choices) for choices in _missing(clauses, definitions)), None)


def missing_patterns(clauses: Sequence[Clause], definitions: Mapping[GlobalTypeVar, TypeData]) -> Iterator[Pattern]:
    """Patterns that together take every value that no clause takes, the simplest first. Raises `Undecided`."""
    return map(_pattern, _missing(clauses, definitions))


def _missing(clauses: Sequence[Clause], definitions: Mapping[GlobalTypeVar, TypeData]) -> Iterator[list[_Choice]]:
    """The choices of values that no clause takes, from the outermost in."""
    rows: list[_Row] = [(clause.lhs, None) for clause in clauses]
    stack: list[tuple[list[_Row], int, _Witness]] = [(rows, 1, None)]
    steps = 0
    while stack:
        rows, width, witness = stack.pop()
        if not rows:
            yield _chosen(witness, width)
            continue
        if width == 0:
            continue
        steps += len(rows)
        if steps > LIMIT:
            raise Undecided
        shapes = _shapes(rows, definitions)
        parts = _specialised(rows, shapes)
        for shape in shapes:  # the simplest witness is found first
            stack.append((parts[shape], width - 1 + _size(shape), (shape, witness)))
        if not shapes:
            stack.append(([row[1] for row in rows if row is not None], width - 1, (None, witness)))


def unreachable(clauses: Sequence[Clause], definitions: Mapping[GlobalTypeVar, TypeData]) -> list[int]:
    """The numbers of clauses whose values earlier clauses take. Raises `Undecided`."""
    numbers = []
    alike: dict[Constructor | int, list[Clause]] = {}  # earlier clauses by their head: others take none of its values
    for n, clause in enumerate(clauses):
        head = _shape(clause.lhs)
        earlier = clauses[:n] if head is None else alike.setdefault(head, [])
        if not _takes_more(clause, earlier, definitions):
            numbers.append(n)
        if head is None:  # it takes every value
            return [*numbers, *range(n + 1, len(clauses))]
        alike[head].append(clause)
    return numbers


def _takes_more(clause: Clause, earlier: Sequence[Clause], definitions: Mapping[GlobalTypeVar, TypeData]) -> bool:
    """Whether a clause takes a value that no earlier one takes."""
    stack: list[tuple[list[_Row], _Row, int]] = [([(c.lhs, None) for c in earlier], (clause.lhs, None), 1)]
    steps = 0
    while stack:
        rows, own, width = stack.pop()
        if not rows:
            return True
        if width == 0:
            continue
        steps += len(rows)
        if steps > LIMIT:
            raise Undecided
        assert own is not None
        head = _shape(own[0])
        shapes = [head] if head is not None else _shapes(rows, definitions)
        parts, inner = _specialised(rows, shapes), _specialised([own], shapes)
        for shape in shapes:
            stack.append((parts[shape], inner[shape][0], width - 1 + _size(shape)))
        if not shapes:
            stack.append(([row[1] for row in rows if row is not None], own[1], width - 1))
    return False


def _shapes(rows: list[_Row], definitions: Mapping[GlobalTypeVar, TypeData]) -> list[Constructor | int]:
    """The kinds of values that the rows' first patterns tell apart, those with more fields first."""
    heads = [_shape(row[0]) for row in rows if row is not None]
    constructor = next((h for h in heads if h is not None), None)
    if not isinstance(constructor, Constructor):
        return [] if constructor is None else [constructor]
    data = definitions.get(constructor.belong_to)
    siblings = data.constructors if data is not None else tuple(dict.fromkeys(h for h in heads if isinstance(h, Constructor)))
    return sorted(siblings, key=_size, reverse=True)


def _shape(pattern: Pattern | None) -> Constructor | int | None:
    """The head of a pattern: a constructor, a tuple of a size, or nothing."""
    if isinstance(pattern, PatternConstructor):
        return pattern.constructor
    if isinstance(pattern, PatternTuple):
        return len(pattern.patterns)
    return None


def _specialised(rows: list[_Row], shapes: Sequence[Constructor | int]) -> dict[Constructor | int, list[_Row]]:
    """For each shape, the rows that take a value of it, with the patterns of its fields in front."""
    out: dict[Constructor | int, list[_Row]] = {shape: [] for shape in shapes}
    for row in rows:
        assert row is not None
        pattern, rest = row
        head = _shape(pattern)
        if isinstance(pattern, (PatternConstructor, PatternTuple)):
            if head in out:
                for part in reversed(pattern.patterns):
                    rest = (part, rest)
                out[head].append(rest)
            continue
        for shape, taken in out.items():
            inner = rest
            for _ in range(_size(shape)):
                inner = (None, inner)
            taken.append(inner)
    return out


def _chosen(witness: _Witness, width: int) -> list[_Choice]:
    """The choices of a witness in order, with None for each part that nothing looked at."""
    chosen: list[_Choice] = []
    while witness is not None:
        chosen.append(witness[0])
        witness = witness[1]
    return [*reversed(chosen), *[None] * width]


def _size(item: _Choice) -> int:
    return len(item.inputs) if isinstance(item, Constructor) else item or 0


def _pattern(choices: list[_Choice]) -> Pattern:
    """The chosen value as a pattern."""
    done: list[Pattern] = []
    for item in reversed(choices):
        parts = [done.pop() for _ in range(_size(item))]
        if isinstance(item, Constructor):
            done.append(PatternConstructor(item, parts))
        else:
            done.append(PatternWildcard() if item is None else PatternTuple(parts))
    return done[0]


def _text(choices: list[_Choice]) -> str:
    """The chosen value in pattern syntax, with `_` for each part that nothing looked at."""
    out: list[str] = []
    open_parts: list[tuple[int, str]] = []  # how many parts are still to come, and what closes them
    for item in choices:
        size = _size(item)
        if isinstance(item, Constructor):
            out.append(item.name_hint + ("(" if size else ""))
        elif item is None:
            out.append("_")
        else:
            out.append("(" if size else "()")
        if size:
            open_parts.append((size, ",)" if isinstance(item, int) and size == 1 else ")"))
            continue
        while open_parts:
            left, close = open_parts.pop()
            if left > 1:
                open_parts.append((left - 1, close))
                out.append(", ")
                break
            out.append(close)
    text = "".join(out)
    return text if len(text) <= 200 else text[:197] + "..."
