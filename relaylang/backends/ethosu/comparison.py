"""Where a command stream first gives other numbers than a program: its operations' outputs beside the program's values.

A stream does not say which values of the program it computes. Its operations are fused, split into stripes, and have other
shapes and layouts. So outputs are looked for by their numbers. An output equals a value or a part of one, is like it, or is
like none. The last is usual for steps inside of an operator.

Behind a difference all numbers differ. So the program runs again, with the stream's numbers in place of its own values. Then
each operation shows its own difference alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import NamedTuple

import numpy as np

#: Places of an output that are tried first, and those that tell where a part may begin.
_PROBES, _FEW = 256, 32
#: The most places where a part of a value may begin that are tried.
_MOST_STARTS = 1 << 14
#: An output is like a value of which it has so many numbers. Or both rise and fall together, and as far.
_ALIKE, _TOGETHER, _AS_FAR = 0.5, 0.95, 1.5
#: The fewest elements of an output that tell which part of a value it is.
_LEAST_PART = 8
#: Candidates whose every number is compared.
_CLOSEST = 3


class Value(NamedTuple):
    """A tensor of integers of the program: its name, and where the program computes it."""

    name: str
    place: str
    array: np.ndarray


class Output(NamedTuple):
    """A tensor that a command stored: the stream, the command's byte and name, its layer, and the numbers."""

    stream: str
    at: int
    command: str
    layer: str
    array: np.ndarray


class Difference(NamedTuple):
    """How many elements of how many differ, and how far; the first such place, and the two numbers there."""

    differing: int
    total: int
    most: float
    place: tuple[int, ...]
    found: float
    wanted: float

    def __str__(self) -> str:
        where = f", first at {list(self.place)}" if self.place else ""
        return f"{self.differing} of {self.total} by up to {self.most:g}{where}: {self.found:g} instead of {self.wanted:g}"


@dataclass(frozen=True, eq=False)
class Match:
    """An output, and the number of the value that it is most alike, if there is any.

    `where` are the places of the output's elements in the value. `raised` is what the value's numbers have more: uint8 may be
    stored as int8. `score` is 1 for equal numbers.
    """

    output: Output
    value: int | None = None
    where: np.ndarray | None = None
    raised: int = 0
    score: float = 0.0

    def put(self, array: np.ndarray) -> Difference | None:
        """Store the output's numbers in an array of the value's shape; say how they differ from those before."""
        flat, numbers = array.reshape(-1), self.output.array.reshape(-1) + self.raised
        difference = _difference(numbers, flat[self.where].astype(np.int64))
        flat[self.where] = numbers
        if difference is None:
            return None
        assert self.where is not None
        place = np.unravel_index(self.where[difference.place[0]], array.shape)
        return difference._replace(place=tuple([int(i) for i in place]))


def difference_of(found: np.ndarray, wanted: np.ndarray) -> Difference | None:
    """How two tensors of one shape differ; None where they do not. NaN is like NaN."""
    difference = _difference(found.reshape(-1), wanted.reshape(-1))
    if difference is None:
        return None
    return difference._replace(place=tuple([int(i) for i in np.unravel_index(difference.place[0], found.shape)]))


def _difference(computed: np.ndarray, wanted: np.ndarray) -> Difference | None:
    unequal = computed != wanted
    if computed.dtype.kind == wanted.dtype.kind == "f":
        unequal &= ~(np.isnan(computed) & np.isnan(wanted))
    if not unequal.any():
        return None
    first = int(unequal.argmax())
    apart = np.abs(computed[unequal].astype(np.float64) - wanted[unequal])
    return Difference(len(apart), computed.size, float(apart.max()), (first,), computed[first].item(), wanted[first].item())


class _Form(NamedTuple):
    """A value's numbers as images, rows, columns and channels: its own axes, or with the second one as channels."""

    number: int
    shape: tuple[int, ...]
    array: np.ndarray
    raised: int
    has_channels_first: bool

    def places(self) -> np.ndarray:
        """The places in the value, in this form."""
        return _four(np.arange(math.prod(self.shape)).reshape(self.shape), self.has_channels_first)


def _four(array: np.ndarray, has_channels_first: bool) -> np.ndarray:
    four = array.reshape((1,) * (4 - array.ndim) + array.shape if array.ndim <= 4 else (-1, *array.shape[-3:]))
    return np.ascontiguousarray(four.transpose(0, 2, 3, 1)) if has_channels_first else four


def _forms(number: int, array: np.ndarray) -> Iterator[_Form]:
    is_image = array.ndim == 4 and array.shape[1] > 1 and math.prod(array.shape[2:]) > 1
    for raised in (0, 128) if array.dtype == np.uint8 else (0,):
        for has_channels_first in (False, True) if is_image else (False,):
            numbers = _four(array.astype(np.int64) - raised, has_channels_first)
            yield _Form(number, array.shape, numbers, raised, has_channels_first)


class _Place(NamedTuple):
    """Where an output may lie in a form: everywhere, or in a box that begins at `start`."""

    form: _Form
    start: tuple[int, ...] | None

    def part(self, array: np.ndarray, extents: tuple[int, ...]) -> np.ndarray:
        """The elements there of an array of the form's extents."""
        if self.start is None:
            return array.reshape(extents)
        box = [slice(first, first + extent) for first, extent in zip(self.start, (1, *extents))]
        return array[tuple(box)].reshape(extents)


class Search:
    """Looks for outputs among the values of a program."""

    def __init__(self, values: Sequence[Value]) -> None:
        kept = [(number, value.array) for number, value in enumerate(values) if value.array.size]
        self._forms = [form for number, array in kept for form in _forms(number, array)]
        self._last = 0

    def match(self, output: Output) -> Match:
        """The value that an output is most alike. Of several with equal numbers, it is the first one behind the last match."""
        numbers = output.array
        if not numbers.size:
            return Match(output)
        chosen = np.random.default_rng(0).choice(numbers.size, min(_PROBES, numbers.size), replace=False)
        probes = np.unravel_index(np.sort(chosen), numbers.shape)
        sample = numbers[probes]
        ranked = []
        for form in self._forms:
            for start in _starts(form.array, numbers.shape, probes, sample):
                place = _Place(form, start)
                seen = place.part(form.array, numbers.shape)[probes]
                same, together = float((seen == sample).mean()), float(_together(seen[None], sample)[0])
                ranked.append((same, together, form.number >= self._last, -form.number, place))
        best = sorted(ranked, key=lambda entry: entry[:4], reverse=True)[:_CLOSEST]
        best += sorted(ranked, key=lambda entry: entry[1:4], reverse=True)[:_CLOSEST]
        nearest: tuple[float, _Place] | None = None
        for _, together, _, _, place in best:
            same = float((place.part(place.form.array, numbers.shape) == numbers).mean())
            score = same if same == 1 or together < _TOGETHER else max(same, 0.99 * together)
            if score >= _ALIKE and (nearest is None or score > nearest[0]):
                nearest = score, place
        if nearest is None or (nearest[0] < 1 and sample.min() == sample.max()):
            return Match(output)
        form = nearest[1].form
        self._last = form.number
        where = nearest[1].part(form.places(), numbers.shape).reshape(-1)
        return Match(output, form.number, where, form.raised, nearest[0])


def _together(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far each of some rows rises and falls together with one: up to 1. It is 0 where one goes much further."""
    x, y = (np.asarray(n, np.float64) - n.mean(-1, keepdims=True) for n in (a, b))
    of_x, of_y = np.sqrt((x * x).sum(-1)), np.sqrt((y * y).sum(-1))
    fits = (of_x > 0) & (of_x < of_y * _AS_FAR) & (of_y < of_x * _AS_FAR) & (len(b) >= _LEAST_PART)
    return np.where(fits, (x @ y) / np.where(fits, of_x * of_y, 1), 0.0)


def _starts(
    form: np.ndarray, extents: tuple[int, ...], probes: Sequence[np.ndarray], sample: np.ndarray
) -> Iterator[tuple[int, ...] | None]:
    """Where an output may lie in a form: all of it, or the boxes of which most numbers fit."""
    if form.size == math.prod(extents):
        yield None
        return
    if math.prod(extents) < _LEAST_PART:
        return
    free = [range(extent - size + 1) for extent, size in zip(form.shape, (1, *extents))]
    if not all(free) or math.prod(map(len, free)) > _MOST_STARTS:
        return
    starts = np.array(list(product(*free)))
    few = slice(None, None, max(1, len(sample) // _FEW))
    images, *at = [starts[:, axis, None] + (probes[axis - 1][few] if axis else 0) for axis in range(4)]
    seen = form[tuple([images, *at])]
    fits = np.maximum((seen == sample[few]).mean(1), _together(seen, sample[few]))
    for number in np.argsort(-fits, kind="stable")[:2]:
        yield tuple([int(i) for i in starts[number]])


def matched(outputs: Sequence[Output], values: Sequence[Value]) -> list[Match]:
    """The outputs in order. Elements of a value belong to outputs that equal them, or else to the output that is most alike."""
    search = Search(values)
    matches = [search.match(output) for output in outputs]
    taken: dict[int, np.ndarray] = {}
    kept = set()
    for match in sorted(matches, key=lambda match: -match.score):
        if match.value is None:
            continue
        marks = taken.setdefault(match.value, np.zeros(values[match.value].array.size, bool))
        if match.score == 1 or not marks[match.where].any():
            marks[match.where] = True
            kept.add(match)
    return [match if match in kept else Match(match.output) for match in matches]


@dataclass(frozen=True)
class Row:
    """An operation beside the program's value, and how it differs. The program computed this from the stream's numbers."""

    match: Match
    value: Value | None
    difference: Difference | None


def rows(matches: Sequence[Match], values: Sequence[Value], differences: Mapping[Match, Difference | None]) -> list[Row]:
    """The operations in order."""
    return [Row(m, None if m.value is None else values[m.value], differences.get(m)) for m in matches]


def table(found: Sequence[Row], program: str) -> str:
    """A line for each operation. Operations in a row that store right parts of one value share a line."""

    def key(row: Row) -> tuple[object, ...]:
        output = row.match.output
        return output.stream, output.command, output.layer, row.match.value, None if row.difference is None else output.at

    lines = []
    for _, group in groupby(found, key=key):
        first, *more = group
        output, value = first.match.output, first.value
        if value is None:
            says = f"no value of {program} is alike"
        else:
            says = f"{'=' if first.difference is None else '!'} {value.name} {value.place}"
            says += "" if first.difference is None else f": {first.difference}"
        ends = f"{output.at:06x}" + (f"-{more[-1].match.output.at:06x}" if more else "")
        lines.append((output.stream, ends, output.command, output.layer, says))
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(4)]
    kept = [column for column in range(5) if column == 4 or widths[column]]
    return "".join("  ".join(line[i].ljust(widths[i]) if i < 4 else line[i] for i in kept) + "\n" for line in lines)


def first_difference(found: Sequence[Row]) -> Row | None:
    """The first operation that differs by more than 1, or by 1 where none does."""
    apart = [row for row in found if row.difference is not None]
    return next((row for row in apart if row.difference is not None and row.difference.most > 1), apart[0] if apart else None)
