"""Spaces and tuners, without a clock: every point once, the same for the same seed, and the best soon."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from relaylang.backends.cpu.schedule_space import Space
from relaylang.diagnostics import RelayError
from relaylang.tune import TUNERS, Result, SearchSpace, Tuner, tuner_named
from tests.tune.made_up import BEST, POINTS, lowering, space, time_of


def tuner_for(name: str, where: SearchSpace, seed: int = 0, **options: Any) -> Tuner:
    if name == "xgb":
        pytest.importorskip("xgboost", reason="the extra `tune` brings XGBoost")
    return tuner_named(name, where, seed, **options)


def run(tuner: Tuner, where: SearchSpace, trials: int, batch: int = 4) -> list[dict[str, Any]]:
    """The choices that a tuner proposes, with honest results."""
    default = time_of(where.default.choice)
    out: list[dict[str, Any]] = []
    while len(out) < trials and (points := tuner.next_batch(min(batch, trials - len(out)))):
        tuner.update([Result(p, time_of(p.choice) / default) for p in points])
        out += [dict(p.choice) for p in points]
    return out


def test_a_space_has_each_point_once() -> None:
    where = space()
    keys = [p.key for p in where.enumerate()]
    assert len(keys) == len(set(keys)) == POINTS == where.size()
    assert where.default.key in keys and where.size(10) == 10
    assert set(where.knobs) == {"kind", "rows", "width", "wide", "edge"}


def test_a_model_of_old_records_meets_knobs_that_open_later() -> None:
    """The first model knows the default's knobs alone. Points that are drawn then have others."""
    where = space()
    tuner = tuner_for("xgb", where, transfer=[((float(n), float(n % 3)), 1 / (n + 1)) for n in range(12)])
    assert len(run(tuner, where, POINTS)) == POINTS - 1


def test_values_that_do_not_fit_are_left_out() -> None:
    where = space()
    point = where.point({"kind": "squares", "rows": 3, "edge": 5, "nonsense": 1})
    assert dict(point.choice) == {"kind": "squares", "edge": 8}


def test_a_space_without_knobs_has_one_point() -> None:
    where = space(lambda s: None)
    assert where.size() == 1 and where.sample(random.Random(0)).key == where.default.key
    assert where.mutated({}, random.Random(0)).key == where.default.key
    for name in ("grid", "random", "ga"):
        assert tuner_named(name, where).next_batch(3) == []


def test_neighbours_and_children_are_points() -> None:
    where, rng = space(), random.Random(1)
    keys = {p.key for p in where.enumerate()}
    points = [where.sample(rng) for _ in range(50)]
    children = [where.crossed(a.choice, b.choice, rng) for a, b in pairwise(points)]
    near = [where.mutated(p.choice, rng) for p in points]
    assert {p.key for p in [*points, *children, *near]} <= keys
    assert all(a.key != b.key for a, b in zip(points, near))


@pytest.mark.parametrize("name", TUNERS)
def test_a_tuner_proposes_every_point_but_the_default_once(name: str) -> None:
    where = space()
    found = run(tuner_for(name, where), where, 1000)
    assert len(found) == POINTS - 1 and BEST in found and dict(where.default.choice) not in found
    assert len({tuple(sorted(c.items())) for c in found}) == len(found)


@pytest.mark.parametrize("name", TUNERS)
def test_a_seed_decides(name: str) -> None:
    first, second = space(), space()
    one = run(tuner_for(name, first, 7), first, 20)
    assert run(tuner_for(name, second, 7), second, 20) == one
    if name != "grid":
        other = space()
        assert run(tuner_for(name, other, 8), other, 20) != one


@pytest.mark.parametrize("name", TUNERS)
def test_what_is_known_is_not_proposed(name: str) -> None:
    where = space()
    tuner = tuner_for(name, where)
    tuner.update([Result(where.point(BEST), None)])
    assert BEST not in run(tuner, where, 1000)


def large(where: Space) -> None:
    """1000 points, one of which is the best."""
    for name in ("x", "y", "z"):
        where.pick(name, tuple(range(10)), 0)


@pytest.mark.parametrize(("name", "options"), [("ga", {}), ("xgb", {"loss_type": "rank"}), ("xgb", {"loss_type": "reg"})])
def test_tuners_that_learn_are_near_the_best_soon(name: str, options: dict[str, Any]) -> None:
    where = space(large)
    tuner = tuner_for(name, where, 3, **options)
    least = 9.0
    for _ in range(15):
        points = tuner.next_batch(10)
        ratios = [1 + (abs(p.choice["x"] - 6) + abs(p.choice["y"] - 3) + abs(p.choice["z"] - 8)) for p in points]
        least = min(least, *ratios)
        tuner.update([Result(p, float(r)) for p, r in zip(points, ratios)])
    assert least <= 2


def test_a_model_learns_from_other_tasks() -> None:
    pytest.importorskip("xgboost", reason="the extra `tune` brings XGBoost")
    where = space()
    rows = [(p.features, time_of(p.choice)) for p in where.enumerate()]
    tuner = tuner_named("xgb", where, transfer=rows)
    first = [time_of(p.choice) for p in tuner.next_batch(6)]
    every = sorted(time_of(p.choice) for p in where.enumerate())
    assert sum(first) / len(first) < sum(every) / len(every)


def test_unknown_names() -> None:
    with pytest.raises(RelayError, match="there is no tuner rndom"):
        tuner_named("rndom", space(lowering))
    pytest.importorskip("xgboost", reason="the extra `tune` brings XGBoost")
    with pytest.raises(RelayError, match="has no loss best"):
        tuner_named("xgb", space(), loss_type="best")
