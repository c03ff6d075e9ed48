"""Random layers: the numbers are not onnxruntime's, but their kind, their moments and their repetition are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.diagnostics import RelayError
from relaylang.frontends.onnx import import_onnx
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import ours, theirs

MANY = (100, 200)
HALF = {"float32": 1, "float16": 10, "float64": 11}


def drawn(op: str, inputs: dict[str, np.ndarray] | None = None, **attrs: Any) -> np.ndarray:
    """The layer's numbers. Shape and element type are onnxruntime's, which draws no float16."""
    inputs = inputs or {}
    dtypes = {k: v.dtype.name for k, v in inputs.items()}
    data = model([node(op, list(inputs), **attrs)], {k: v.shape for k, v in inputs.items()}, dtypes=dtypes)
    found, again = ours(data, inputs)[0], ours(data, inputs)[0]
    if 10 not in attrs.values() and "float16" not in dtypes.values():
        wanted = theirs(data, inputs)[0]
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
    assert np.array_equal(found, again), "a program gives the same numbers again"
    return found


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("like", [False, True])
def test_normal_and_uniform_numbers(dtype: str, like: bool) -> None:
    given = {"x": np.zeros(MANY, dtype)} if like else None
    kind: dict[str, Any] = {} if like else {"shape": MANY, "dtype": HALF[dtype]}
    ending = "Like" if like else ""
    x = drawn(f"RandomNormal{ending}", given, mean=3.0, scale=2.0, seed=7.0, **kind)
    assert x.dtype == dtype
    x = x.astype("float64")
    assert abs(x.mean() - 3) < 0.05 and abs(x.std() - 2) < 0.05 and abs(((x - x.mean()) ** 3).mean()) < 0.5
    x = drawn(f"RandomUniform{ending}", given, low=-1.0, high=3.0, seed=7.0, **kind).astype("float64")
    assert abs(x.mean() - 1) < 0.05 and abs(x.std() - 4 / 12**0.5) < 0.05 and -1 <= x.min() < -0.99 and 2.99 < x.max() <= 3


@pytest.mark.parametrize("dtype", HALF)
def test_ones_by_their_probability(dtype: str) -> None:
    x = np.full(MANY, 0.25, dtype)
    found = drawn("Bernoulli", {"x": x})
    assert set(np.unique(found)) == {0, 1} and abs(found.astype("float64").mean() - 0.25) < 0.02
    assert drawn("Bernoulli", {"x": x}, dtype=7).dtype == np.int64


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_classes_by_their_probability(dtype: str) -> None:
    chances = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    x = np.log(np.maximum(chances, 1e-30)).astype("float32") + 5
    found = drawn("Multinomial", {"x": x}, sample_size=5000, seed=1.0, dtype={"int32": 6, "int64": 7}[dtype])
    counts = np.array([np.bincount(row, minlength=3) for row in found]) / 5000
    assert np.abs(counts - chances).max() < 0.03


def test_layers_have_keys_of_their_own() -> None:
    layers = [
        node("RandomNormal", [], [name], shape=[8], **attrs)
        for name, attrs in (("a", {}), ("b", {}), ("c", {"seed": 1.0}), ("d", {"seed": 1.0}), ("e", {"seed": 2.0}))
    ]
    a, b, c, d, e = ours(model(layers, {}, list("abcde")), {})
    assert not np.array_equal(a, b) and np.array_equal(c, d) and not np.array_equal(c, e)


def test_the_operator_stays_in_the_program() -> None:
    mod = import_onnx(model([node("RandomUniform", [], shape=[4])], {})).module
    assert "random.uniform(" in str(mod)


def test_an_open_shape_is_refused() -> None:
    with pytest.raises(RelayError, match="--shape"):
        import_onnx(model([node("RandomNormalLike", ["x"])], {"x": ("n",)}))
