"""Calls of every operator with other axes and operands of other ranks, from 0 to 6. Extents are 0 and 1, too.

A right call's tensors get more axes at one end, or lose them. Lists among the attributes get as many entries more or
less. The checker says which calls are right.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from relaylang.ops import OPS
from tests.consistency.calls import Made, bases_by_operator, emptied, leaves, put
from tests.consistency.outcome import Refused, function

MOST = 6


def reranked(x: Any, rank: int, end: int) -> Any:
    """A tensor with more or fewer axes at an end (0: the front, -1: the back). Tuples give tuples."""
    if isinstance(x, tuple):
        return tuple([reranked(part, rank, end) for part in x])
    while x.ndim < rank:
        x = np.stack([x, np.roll(x, 1)], axis=end)
    while x.ndim > rank:
        x = x.take(0, axis=end) if x.shape[end] else x.reshape(x.shape[:-1] if end else x.shape[1:])
    return x


def _rank(x: Any) -> int:
    return max([_rank(part) for part in x], default=0) if isinstance(x, tuple) else np.ndim(x)


def _attributes(attrs: dict[str, Any], old: int, new: int, end: int) -> Iterator[dict[str, Any]]:
    """The attributes as they are, and with as many entries more or less in lists of an entry an axis."""
    yield attrs
    lists = {k: list(v) for k, v in attrs.items() if isinstance(v, (list, tuple)) and len(v) == old and old}
    if old == new or not lists:
        return
    for more in (2, 0, 1):  # extents, paddings, steps
        changed = {}
        for k, v in lists.items():
            entry = [0, 1] if isinstance(v[0], (list, tuple)) else more
            extra, kept = [entry] * max(0, new - old), min(old, new)
            changed[k] = [*v[:kept], *extra] if end else [*extra, *v[old - kept :]]
        yield {**attrs, **changed}


def _axes(made: Made, rng: random.Random) -> Iterator[Made]:
    """The call with other axes."""
    name, attrs, args = made
    rank = _rank(args[0]) if args else 0
    for k, v in attrs.items():
        if k not in ("axis", "axes", "batch_axis", "seq_axis", "sparse_axis"):
            continue
        every: Iterable[Any] = range(-rank - 1, rank + 1)
        if isinstance(v, (list, tuple)):
            subsets = [list(c) for n in range(rank + 1) for c in itertools.combinations(range(rank), n)]
            every = [*rng.sample(subsets, min(len(subsets), 6)), list(range(rank))[::-1], rng.sample(range(rank), rank)]
        elif v is None:
            every = [*every, *([n] for n in range(rank))]
        for axis in every:
            yield name, {**attrs, k: axis}, args
        for k2 in ("keepdims", "exclude"):
            if k2 in attrs or k2 in OPS[name].schema:
                yield name, {**attrs, k: rng.choice(list(every)), k2: True}, args


def _targets(args: Sequence[Any]) -> Iterator[tuple[int, ...]]:
    """The ranks of arguments to try: all of up to three; of more, together or of one alone."""
    own = [_rank(a) for a in args]
    if len(args) <= 3:
        yield from itertools.product(range(MOST + 1), repeat=len(args))
        return
    for by in range(-MOST, MOST + 1):
        yield tuple([min(MOST, max(0, r + by)) for r in own])
        yield tuple([min(MOST, max(0, r + by)) if r else 0 for r in own])
        yield from [(*own[:i], r + by, *own[i + 1 :]) for i, r in enumerate(own) if 0 <= r + by <= MOST]


def _thinned(made: Made) -> Iterator[Made]:
    """The call with an axis of one argument at an extent of one."""
    name, attrs, args = made
    for at in leaves(args):
        x = args[at[0]] if at[1] is None else args[at[0]][at[1]]
        for axis, extent in enumerate(x.shape):
            if extent > 1:
                yield name, attrs, put(args, at, lambda x, axis=axis: x.take([0], axis=axis))


def right(made: Made) -> bool:
    try:
        function(made)
    except Refused:
        return False
    return True


def _form(made: Made) -> str:
    """What tells calls apart: ranks, axes with an extent of one or none, attributes that are no lists."""
    _, attrs, args = made

    def said(a: Any) -> Any:
        return [said(p) for p in a] if isinstance(a, tuple) else [min(n, 2) for n in np.shape(a)]

    fields = sorted((k, len(v) if isinstance(v, (list, tuple)) else v) for k, v in attrs.items() if not isinstance(v, float))
    return f"{[said(a) for a in args]} {fields}"


def ranked(name: str, bases: int = 4, each: int = 3) -> Iterator[Made]:
    """Right calls of an operator with every rank; of each form of operands' ranks at most `each`."""
    rng = random.Random(name)
    forms: set[str] = set()
    counts: dict[tuple[int, tuple[int, ...]], int] = {}
    origins: list[Made] = []
    kinds: set[str] = set()
    for made in bases_by_operator().get(name, []):
        kind = f"{[_rank(a) for a in made[2]]} {sorted((k, str(v)) for k, v in made[1].items() if 'transpose' in k or 'layout' in k)}"
        if kind not in kinds and len(origins) < bases:
            kinds.add(kind)
            origins.append(made)
    for number, (_, attrs, args) in enumerate(origins):
        for target, end in itertools.product(_targets(args), (0, -1)):
            if name.startswith(("dyn.", "vm.")) or counts.get((number, target), 0) >= each:
                continue
            changed = [reranked(a, r, end) for a, r in zip(args, target)]
            for new in _attributes(attrs, _rank(args[0]) if args else 0, target[0] if target else 0, end):
                made = (name, new, changed)
                if not right(made):
                    continue
                axes = [made, *_axes(made, rng)]
                thin = [*_thinned(made), *emptied(made)]
                for one in [*axes, *rng.sample(thin, min(len(thin), 3))]:
                    form = _form(one)
                    if form not in forms and (one is made or right(one)):
                        forms.add(form)
                        counts[number, target] = counts.get((number, target), 0) + 1
                        yield one
