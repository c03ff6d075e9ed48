"""Repairs of random programs: these stay well-typed, and give the same values."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.diagnostics import Diagnostic
from relaylang.diagnostics.source import SourceFile
from relaylang.interpreter import Evaluator
from relaylang.ir import IRModule, type_text
from relaylang.passes.lints import lint, repaired
from relaylang.syntax import parse
from relaylang.testing.generators.functional import Functional
from relaylang.testing.generators.typed import PRELUDE, Typed
from relaylang.typing import check
from tests.backends.vm.agree import assert_same, outcome
from tests.shared import few


def read(text: str) -> tuple[IRModule, list[Diagnostic]]:
    """A program and its findings."""
    mod = parse(text, "net.relay").module
    assert mod is not None
    check(mod)
    return mod, lint(mod, SourceFile("net.relay", text))


def repair(text: str) -> tuple[IRModule, IRModule]:
    """A program before and after its repairs. None is left, and the types are the same."""
    before, found = read(text)
    after, left = read(repaired(text, found, lambda text: read(text)[1])[0])
    assert not [d for d in left if d.fix is not None]
    old, new = before["main"].checked_type, after["main"].checked_type
    assert old is not None and new is not None and type_text(old) == type_text(new)
    return before, after


@pytest.mark.parametrize("seed", few(range(0, 500, 10), 80))
def test_types_stay(seed: int) -> None:
    repair(PRELUDE + Typed(seed, "", sums=True).text())


@pytest.mark.parametrize("seed", few(range(100), 3, 7))
def test_values_stay(seed: int) -> None:
    before, after = repair(Functional(seed, references=seed % 2 == 1, data=seed % 3 != 0).text(3 + seed % 14))
    rng = np.random.default_rng(seed)
    args = [(rng.integers(-8, 9, (2, 3)) / 4).astype("float32") for _ in range(2)]
    with np.errstate(all="ignore"):
        (old, failure), (new, failed) = (outcome(lambda mod=mod: Evaluator(mod).call("main", args)) for mod in (before, after))
    assert (failure and failure[:2]) == (failed and failed[:2])
    if failure is None:
        assert_same(new, old, 0, 0)
