"""Damaged streams, weights, archives and files of Vela's end in a diagnostic (`make fuzz-npu` tries more)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from tests.backends.ethosu.damage import Rng, is_refused, targets
from tests.shared import few


@pytest.fixture(scope="module")
def runs() -> list[Callable[[Rng], None]]:
    return targets()


@pytest.mark.parametrize("start", few(range(0, 10_000, 500), 0))
def test_damage(runs: list[Callable[[Rng], None]], start: int) -> None:
    refused = sum(is_refused(runs[seed % len(runs)], seed) for seed in range(start, start + 500))
    assert 300 <= refused < 500  # the rest changes numbers alone, or nothing that is read
