"""MXNet's layers: the program computes what MXNet computed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from relaylang.frontends.mxnet import import_mxnet
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from tests.frontends.mxnet.cases import Case, cases
from tests.shared import check_each

DATA = Path(__file__).parent / "data"


@cache
def results() -> dict[str, np.ndarray]:
    """What `scripts/mxnet_results.py` had MXNet compute."""
    with np.load(DATA / "layers.npz") as data:
        return {name: data[name] for name in data.files}


def computed(case: Case) -> list[np.ndarray]:
    """What the imported program computes for a case's operands."""
    names = [f"x{i}" for i in range(len(case.inputs))]
    shapes = {name: x.shape for name, x in zip(names, case.inputs)}
    dtypes = {name: x.dtype.name for name, x in zip(names, case.inputs)}
    imported = import_mxnet(case.symbol(), Options(shapes, dtypes))
    given = {name: x for name, x in zip(names, case.inputs)}
    found = Evaluator(imported.module).call("main", tuple([given[p.name_hint] for p in imported.module["main"].params]))
    return [np.asarray(v) for v in (found if isinstance(found, tuple) else [found])]


def compare(name: str) -> None:
    case, wanted = cases()[name], results()
    found = computed(case)
    assert len(found) == case.outputs
    for i, value in enumerate(found):
        expected = wanted[f"{name}/{i}"]
        assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
        if case.live:
            assert np.array_equal(value[..., 0], expected[..., 0])
            value, expected = (x[expected[..., 0] != -1] for x in (value, expected))
        largest = max(float(np.abs(expected[np.isfinite(expected)].astype("float64")).max(initial=0)), 1e-3)
        np.testing.assert_allclose(value.astype("float64"), expected.astype("float64"), rtol=0, atol=case.close * largest)


def test_layers_compute_what_mxnet_computed() -> None:
    check_each(compare, sorted({name.partition("/")[0] for name in results()}))
