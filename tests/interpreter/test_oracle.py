"""Every kernel against TVM, compiled for x86-64, on random inputs: integers exactly, floats to their precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from relaylang.interpreter import KERNELS
from relaylang.ops import get, make_attrs
from tests.interpreter.cases import CASES, Case, flat
from tests.interpreter.oracle import ORACLE, Oracle, program

pytestmark = pytest.mark.skipif(not ORACLE, reason="RELAY_ORACLE names no Python with TVM")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    made = Oracle()
    yield made
    made.close()


def same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b)
        return
    ours = np.asarray(ours)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if ours.dtype.kind == "f":
        tolerance = {2: 2e-3, 4: 2e-5, 8: 1e-12}[ours.dtype.itemsize]
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 10)
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_kernel(case: Case, oracle: Oracle) -> None:
    name, attrs, args, constant = case
    op = get(name)
    with np.errstate(all="ignore"):
        ours = KERNELS[name](make_attrs(op.attrs, attrs) if op.attrs is not None else None, *args)
    parts = flat(args)
    bound = {f"p{i}": part for i, part in enumerate(parts) if i in constant}
    inputs = [part for i, part in enumerate(parts) if i not in constant]
    same(ours, oracle.run(program(name, attrs, args), inputs, bound))
