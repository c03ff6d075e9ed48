"""Generated regions, bit for bit against the interpreter, without a hazard."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Expr, IRModule
from tests.backends.vta.regions import CONFIGS, compiled, differs, random_pool, random_region
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


def test_a_result_of_too_many_levels() -> None:
    x = relay.var("x", shape=(1, 16, 8, 8), dtype="int8")
    result: Expr = relay.nn.max_pool2d(x, pool_size=(2, 2))
    for _ in range(2000):
        result = relay.Tuple([result])
    with pytest.raises(RelayError, match=r"R0612.*nested deeper than 50"):
        compiled(IRModule.from_expr(relay.Function([x], result)))
