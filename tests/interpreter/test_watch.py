"""Watching changes nothing; the events of a watch; a profile's and a limit's own arithmetic."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from relaylang.interpreter import Evaluator, Intermediates, NanWatch, Profile, Trace, Watch, Watches, evaluate
from relaylang.interpreter.memory import size_text, type_bytes
from relaylang.interpreter.watch import clock, not_finite, summary
from relaylang.ir import TensorType, TupleType
from relaylang.testing.generators.graphs import Effects, Graphs
from tests.interpreter.test_evaluate import LISTS, NUMBERS, module


class Keeping(Watch):
    """Counts, and keeps all values of a function."""

    keep_all = True

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.told: list[str] = []
        self.calls: list[str] = []

    def entered(self, code: Any, slots: Any) -> None:
        self.calls.append(code.name)

    def before(self, site: Any, slots: Any) -> None:
        self.begun.append(site.variable.name_hint)

    def bound(self, site: Any, slots: Any, seconds: float) -> None:
        assert seconds >= 0 and slots[site.into] is not None
        self.told.append(site.variable.name_hint)


def everything() -> tuple[list[str], Watches]:
    lines: list[str] = []
    return lines, Watches([Trace(lines.append), NanWatch(), Intermediates(), Profile(events=True), Keeping()])


@pytest.mark.parametrize("seed", range(20))
def test_looking_on_changes_nothing(seed: int) -> None:
    for function, args in ((Effects(seed).function(), (7,)), (Graphs(seed).function(), (3, -2))):
        wanted = evaluate(function, *args)
        lines, watch = everything()
        assert str(evaluate(function, *args, watch=watch, memory_limit=10**8)) == str(wanted)
        assert lines


def test_programs_with_loops_and_lists() -> None:
    for text, entry, args in ((LISTS, "main", (50,)), (NUMBERS, "loop", (50, 0)), (NUMBERS, "even", (51,))):
        m = module(text)
        _, watch = everything()
        assert evaluate(m, *args, entry=entry, watch=watch) == evaluate(m, *args, entry=entry)


def test_what_a_watch_is_told() -> None:
    m = module("""def @main(%n: int32) {
      let %a = add(%n, 1);
      let %b = @f(%a);
      let %c = if (less(%b, 0)) { negative(%b) } else { %b };
      @f(%c)
    }
    def @f(%n: int32) -> int32 { let %d = multiply(%n, 2); %d }""")
    watch = Keeping()
    assert evaluate(m, 4, watch=watch) == 20
    assert watch.calls == ["@main", "@f", "@f"]
    named = [n for n in watch.told if n in "abcd"]
    assert named == ["a", "d", "b", "c", "d"]
    assert [n for n in watch.begun if n in "abcd"] == ["a", "d", "d"]


def test_the_stack_is_that_of_the_callers() -> None:
    class Depth(Watch):
        def __init__(self) -> None:
            self.most = 0

        def entered(self, code: Any, slots: Any) -> None:
            self.most = max(self.most, len(self.stack))

    deep, loop = Depth(), Depth()
    evaluate(module(NUMBERS), 10, entry="sum", watch=deep)
    evaluate(module(NUMBERS), 10, 0, entry="loop", watch=loop)
    assert (deep.most, loop.most) == (10, 0)


def test_a_watched_evaluator_is_used_again() -> None:
    kept = Intermediates()
    made = Evaluator(module("def @main(%x: int32) { let %y = add(%x, 1); multiply(%y, %y) }"), watch=kept)
    assert (made.call("main", (1,)), made.call("main", (2,))) == (4, 9)
    assert [int(kept.arrays[n]) for n in ("y", "y#2")] == [2, 3]


def test_a_profile_adds_up() -> None:
    profile = Profile(events=True, most=5)
    m = module("def @main(%x: Tensor[(100), float32]) { add(add(%x, %x), exp(%x)) }")
    evaluate(m, np.zeros(100, np.float32), watch=profile)
    rows = {r.name: r for r in profile.rows()}
    assert (rows["add"].calls, rows["exp"].calls) == (2, 1)
    assert rows["add"].bytes == 800 and rows["add"].most <= rows["add"].total
    assert len(profile.events or []) <= 5
    assert Profile().table() and Profile().chrome_trace() == '{"traceEvents": [], "displayTimeUnit": "ms"}'


def test_values_in_a_few_words() -> None:
    values = np.random.default_rng(0)
    assert summary(np.float32(1.5)) == "1.5"
    assert summary(np.asarray([1, 2], np.int8)) == "[1, 2]"
    assert summary(np.arange(9, dtype=np.int32)) == "0 .. 8, mean 4"
    assert summary(np.asarray([True] * 7 + [False])) == "7 of 8 True"
    assert summary((np.int32(1), np.arange(9))) == "(1, [0 .. 8, mean 4])"
    assert summary(np.zeros((0, 7), np.float32)) == "[]"
    assert "1 NaN, 2 Inf" in summary(np.asarray([np.nan, np.inf, -np.inf, 0, 1], np.float32))
    assert not_finite(values.integers(0, 9, 5)) == "" and not_finite((np.nan,)) == ""
    assert not_finite(np.asarray(np.nan, np.float16)) == "1 NaN"


def test_sizes_and_durations() -> None:
    assert [clock(t) for t in (1.5e-6, 0.25, 3.0)] == ["1.5 us", "250.00 ms", "3.00 s"]
    assert [size_text(n) for n in (12, 1_500, 2_000_000, 3e12)] == ["12 bytes", "1.5 kB", "2.0 MB", "3000.0 GB"]
    assert type_bytes(TensorType((2, 3), "bfloat16")) == 12
    assert type_bytes(TupleType((TensorType((), "bool"), TensorType((4,), "float64")))) == 33
    assert type_bytes(TensorType((4,), "float8_e4m3fn")) == 4


@pytest.mark.parametrize("seed", range(10))
def test_a_limit_that_is_not_reached_changes_nothing(seed: int) -> None:
    n = random.Random(seed).randrange(1, 200)
    assert evaluate(module(LISTS), n, memory_limit=10_000_000) == n * (n + 1) // 2
