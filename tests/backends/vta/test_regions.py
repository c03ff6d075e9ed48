"""Generated regions, bit for bit against the interpreter, without a hazard."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from relaylang.ir import IRModule
from tests.backends.vta.regions import CONFIGS, differs, random_pool, random_region
from tests.shared import check_each


def _check(seeds: Iterable[int], generator: Callable[[int], tuple[IRModule, list[np.ndarray]]] = random_region) -> None:
    configs = list(CONFIGS.values())

    def same(seed: int) -> None:
        mod, inputs = generator(seed)
        assert not differs(mod, configs[seed % len(configs)], inputs)

    check_each(same, seeds)


def test_generated_regions() -> None:
    _check(range(25))


def test_generated_pools() -> None:
    _check([*range(25), 5067], random_pool)  # the last one has a column of windows on padding alone


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(2))
def test_hundreds_of_generated_regions(part: int) -> None:
    _check(range(100 + 100 * part, 200 + 100 * part))


@pytest.mark.sweep
@pytest.mark.search
@pytest.mark.parametrize("part", range(2, 50))
def test_many_generated_regions(part: int) -> None:
    _check(range(100 + 100 * part, 200 + 100 * part))
