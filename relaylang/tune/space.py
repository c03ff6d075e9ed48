"""The space that a tuner searches: knobs with choices, where values of some knobs decide which others there are.

`resolve` turns given values into a point: the values that count, and the knobs that asked for them. A point's values
stand in the order in which the knobs ask, so that `enumerate` visits every point once, as one counts.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from relaylang.backends.cpu.schedule_space import Choice, winograd_of
from relaylang.backends.cpu.tuning_log import frozen
from relaylang.diagnostics import RelayError
from relaylang.tune.features import NAMES, features_of
from relaylang.tune.task import Task

#: How often a random point is drawn anew where it was drawn before.
_ATTEMPTS = 64

Frozen = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Point:
    """A point of a space: the values of its knobs, the choices of each, and the features for a cost model."""

    choice: Mapping[str, Any]
    knobs: Mapping[str, Sequence[Any]]
    features: tuple[float, ...] = ()
    digest: str = ""
    key: Frozen = field(default=())


Resolve = Callable[[Choice], Point]


class SearchSpace:
    """The points of a space. A point is found by its values, and resolved once."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._points: dict[Frozen, Point] = {}
        #: The knobs that were seen, with the choices of each.
        self.knobs: dict[str, list[Any]] = {}
        self.default = self.point({})

    def point(self, choice: Choice) -> Point:
        """The point of some values. Those that are not given are defaults, those that do not fit are left out."""
        asked = frozen(choice)
        point = self._points.get(asked)
        if point is None:
            resolved = self._resolve(choice)
            point = Point(resolved.choice, resolved.knobs, resolved.features, resolved.digest, frozen(resolved.choice))
            point = self._points.setdefault(point.key, point)
            self._points[asked] = point
            for name, values in point.knobs.items():
                known = self.knobs.setdefault(name, [])
                known += [v for v in values if v not in known]
        return point

    def enumerate(self) -> Iterator[Point]:
        """Every point once. The knob that asks last changes first."""
        values: dict[str, Any] = {}
        while True:
            point = self.point(values)
            first = {name: point.choice[name] if name in values else choices[0] for name, choices in point.knobs.items()}
            if first != dict(point.choice):
                values = first
                known = self.point(values)
                if list(known.knobs) != list(point.knobs):
                    continue  # the first choices opened other knobs
                point = known
            yield point
            names = list(point.knobs)
            while names:
                last = names[-1]
                choices = list(point.knobs[last])
                at = choices.index(point.choice[last])
                if at + 1 < len(choices):
                    values = {name: point.choice[name] for name in names[:-1]} | {last: choices[at + 1]}
                    break
                names.pop()
            else:
                return

    def size(self, most: int = 10_000) -> int:
        """The number of points, counted up to a limit. Each is resolved."""
        return sum(1 for _ in islice(self.enumerate(), most))

    def sample(self, rng: random.Random) -> Point:
        """A random point: each knob's value is drawn, of those that open later likewise."""
        values: dict[str, Any] = {}
        while True:
            point = self.point(values)
            fresh = [name for name in point.knobs if name not in values]
            if not fresh:
                return point
            values.update({name: rng.choice(list(point.knobs[name])) for name in fresh})

    def mutated(self, choice: Choice, rng: random.Random, rate: float = 0.2) -> Point:
        """A neighbour: one knob at least gets another value, often the next one."""
        point = self.point(choice)
        names = [name for name, choices in point.knobs.items() if len(choices) > 1]
        values = dict(point.choice)
        if names:
            for name in {rng.choice(names), *(name for name in names if rng.random() < rate)}:
                choices = list(point.knobs[name])
                at = choices.index(values[name])
                near = [choices[n] for n in (at - 1, at + 1) if 0 <= n < len(choices)]
                others = [c for c in choices if c != values[name]]
                values[name] = rng.choice(near if rng.random() < 0.5 else others)
        return self.point(values)

    def crossed(self, one: Choice, two: Choice, rng: random.Random) -> Point:
        """A point whose values are those of one or the other."""
        names = {**one, **two}
        return self.point({name: rng.choice([c[name] for c in (one, two) if name in c]) for name in names})

    def fresh(self, draw: Callable[[], Point], seen: set[Frozen], attempts: int = _ATTEMPTS) -> Point | None:
        """A drawn point that was not seen, else the first of the space that was not. None where all were."""
        for _ in range(attempts):
            point = draw()
            if point.key not in seen:
                return point
        return next((p for p in self.enumerate() if p.key not in seen), None)


def space_of(task: Task) -> SearchSpace:
    """The space of a task's knobs: a point is lowered to find its knobs and features.

    Winograd's tiles have at most the extent that the target allows, because larger ones round more.
    """
    limit = winograd_of(task.options)

    def allowed(name: str, value: Any) -> bool:
        return name != "winograd" or value <= limit

    def resolve(choice: Choice) -> Point:
        choice = {name: value for name, value in choice.items() if allowed(name, value)}
        try:
            kernel = task.lower(choice)
        except RelayError:
            if not choice:
                raise
            # A measurement says why it cannot be lowered.
            return Point(dict(choice), {name: (value,) for name, value in choice.items()}, (0.0,) * len(NAMES))
        knobs = {name: [v for v in values if allowed(name, v)] for name, values in kernel.space.knobs.items()}
        # Another version of a lowering may have other knobs and choices.
        digest = hashlib.sha256(repr(sorted(kernel.space.knobs.items())).encode()).hexdigest()[:8]
        return Point(dict(kernel.space.choice), knobs, features_of(kernel), digest)

    return SearchSpace(resolve)


__all__ = ["Frozen", "Point", "Resolve", "SearchSpace", "space_of"]
