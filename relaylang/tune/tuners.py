"""Tuners: what to measure next. `next_batch` proposes points that were not seen, `update` takes their results.

    tuner = TUNERS["ga"](space, seed=0)
    points = tuner.next_batch(8)
    tuner.update([Result(point, ratio) for ...])

The same seed and the same results give the same points.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from relaylang.tune.space import Frozen, Point, SearchSpace


@dataclass(frozen=True)
class Result:
    """A point with its time beside the default's; None where the measurement failed."""

    point: Point
    ratio: float | None


class Tuner(Protocol):
    """What a search asks of a tuner."""

    def next_batch(self, count: int) -> list[Point]:
        """Up to `count` points that were neither proposed nor measured before; none where the space has no others."""

    def update(self, results: Iterable[Result]) -> None:
        """Take results of points, of its own batches or of an earlier search."""


class _Base(ABC):
    """A tuner that draws one point after the other."""

    def __init__(self, space: SearchSpace, seed: int = 0) -> None:
        self.space = space
        self.rng = random.Random(seed)
        self.seen: set[Frozen] = {space.default.key}
        self.results: dict[Frozen, Result] = {}

    def next_batch(self, count: int) -> list[Point]:
        out: list[Point] = []
        for point in self._points():
            if len(out) >= count:
                break
            if point.key not in self.seen:
                self.seen.add(point.key)
                out.append(point)
        return out

    def update(self, results: Iterable[Result]) -> None:
        for result in results:
            self.seen.add(result.point.key)
            self.results[result.point.key] = result

    @abstractmethod
    def _points(self) -> Iterator[Point]:
        """Points of the space, over and over."""

    def ranked(self) -> list[Result]:
        """The results without failures, the fastest first; the default among them."""
        default = Result(self.space.default, 1.0)
        known = [r for r in {default.point.key: default, **self.results}.values() if r.ratio is not None]
        return sorted(known, key=lambda r: r.ratio or 0.0)


class GridTuner(_Base):
    """Every point in order."""

    def __init__(self, space: SearchSpace, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._rest = space.enumerate()
        self._next: list[Point] = []

    def _points(self) -> Iterator[Point]:
        while True:
            if not self._next:
                point = next(self._rest, None)
                if point is None:
                    return
                self._next.append(point)
            yield self._next[0]
            self._next.clear()


class RandomTuner(_Base):
    """Random points, each once."""

    def _points(self) -> Iterator[Point]:
        while (point := self.space.fresh(lambda: self.space.sample(self.rng), self.seen)) is not None:
            yield point


class GATuner(_Base):
    """A genetic search: children of the fastest points, crossed and mutated."""

    def __init__(self, space: SearchSpace, seed: int = 0, pop_size: int = 32, elite_num: int = 8, mutation_prob: float = 0.2) -> None:
        super().__init__(space, seed)
        self.population, self.elite, self.rate = pop_size, max(2, elite_num), mutation_prob

    def _child(self) -> Point:
        ranked = self.ranked()
        if len(self.results) < max(self.elite, self.population // 4) or self.rng.random() < 0.1:
            return self.space.sample(self.rng)
        parents = ranked[: self.elite]
        one, two = (self.rng.choices(parents, weights=range(len(parents), 0, -1), k=2) + parents)[:2]
        child = self.space.crossed(one.point.choice, two.point.choice, self.rng)
        if child.key in self.seen or self.rng.random() < 0.5:
            child = self.space.mutated(child.choice, self.rng, self.rate)
        return child

    def _points(self) -> Iterator[Point]:
        while (point := self.space.fresh(self._child, self.seen)) is not None:
            yield point


Make = Callable[..., Tuner]


def evolve(
    space: SearchSpace,
    rng: random.Random,
    starts: Sequence[Point],
    score: Callable[[Sequence[Point]], Sequence[float]],
    rounds: int = 3,
    width: int = 48,
) -> list[Point]:
    """Points with high scores, the highest first: neighbours of `starts` and of each round's best."""
    pool = {point.key: point for point in starts}
    scores: dict[Frozen, float] = {}
    for _ in range(rounds):
        new = [key for key in pool if key not in scores]
        if new:
            scores.update(zip(new, score([pool[key] for key in new])))
        best = sorted(scores, key=lambda key: -scores[key])[: max(4, width // 4)]
        for _ in range(width):
            parent = pool[rng.choice(best)]
            child = space.mutated(parent.choice, rng) if rng.random() < 0.7 else space.sample(rng)
            pool.setdefault(child.key, child)
    new = [key for key in pool if key not in scores]
    if new:
        scores.update(zip(new, score([pool[key] for key in new])))
    return [pool[key] for key in sorted(scores, key=lambda key: -scores[key])]


__all__ = ["GATuner", "GridTuner", "RandomTuner", "Result", "Tuner", "evolve"]
