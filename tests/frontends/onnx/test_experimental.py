"""Operators that ONNX had as experiments; no runtime computes them any more, so numpy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.diagnostics import RelayError
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import ours

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2, 3, 4)).astype("float32")
CASES: dict[str, tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]] = {
    "Affine": ({"alpha": 2.5, "beta": -0.5}, lambda x: 2.5 * x - 0.5),
    "ParametricSoftplus": ({"alpha": 0.5, "beta": 3.0}, lambda x: 0.5 * np.log1p(np.exp(3 * x))),
    "Scale": ({"scale": 1.5}, lambda x: 1.5 * x),
    "ScaledTanh": ({"alpha": 1.7, "beta": 0.6}, lambda x: 1.7 * np.tanh(0.6 * x)),
}


@pytest.mark.parametrize("op", CASES)
@pytest.mark.parametrize("plain", [False, True])
def test_activations(op: str, plain: bool) -> None:
    attributes, wanted = CASES[op]
    known = {"Affine": lambda x: x, "Scale": lambda x: x, "ScaledTanh": np.tanh, "ParametricSoftplus": lambda x: np.log1p(np.exp(x))}
    (found,) = ours(model([node(op, ["x"], **({} if plain else attributes))], {"x": X.shape}, opset=8), {"x": X})
    np.testing.assert_allclose(found, (known[op] if plain else wanted)(X), rtol=2e-6, atol=1e-7)


def test_dense_layers_and_normalisations() -> None:
    weight, bias = RNG.normal(size=(5, 12)).astype("float32"), RNG.normal(size=5).astype("float32")
    (found,) = ours(model([node("FC", ["x", "w", "b"])], {"x": X.shape}, weights={"w": weight, "b": bias}, opset=8), {"x": X})
    np.testing.assert_allclose(found, X.reshape(2, 12) @ weight.T + bias, rtol=1e-5, atol=1e-6)
    weight = RNG.normal(size=(5, 4)).astype("float32")
    (found,) = ours(model([node("FC", ["x", "w", "b"], axis=2)], {"x": X.shape}, weights={"w": weight, "b": bias}, opset=8), {"x": X})
    np.testing.assert_allclose(found, X @ weight.T + bias, rtol=1e-5, atol=1e-6)
    parts = {name: np.abs(RNG.normal(size=3)).astype("float32") for name in ("s", "b", "m", "v")}
    (found,) = ours(model([node("SpatialBN", ["x", *parts], epsilon=1e-3)], {"x": X.shape}, weights=parts, opset=8), {"x": X})
    s, b, m, v = (part[:, None] for part in parts.values())
    np.testing.assert_allclose(found, (X - m) / np.sqrt(v + 1e-3) * s + b, rtol=1e-5, atol=1e-6)


def test_refusals() -> None:
    weights = {"w": np.ones((5, 12), "float32"), "b": np.ones(5, "float32")}
    for nodes, said in (
        ([node("FC", ["x", "w", "b"], axis_w=0)], "its axes are 1 and 0"),
        ([node("ATen", ["x"], operator="index_put")], "it calls a function of PyTorch by its name"),
    ):
        with pytest.raises(RelayError) as wrong:
            import_onnx(model(nodes, {"x": X.shape}, weights=weights if nodes[0].op_type == "FC" else {}, opset=8), Options())
        assert said in str(wrong.value)
