"""Fused convolutions, products and pools of com.microsoft, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import differ, ours

rng = np.random.default_rng(23)
MS = "com.microsoft"


def reals(*shape) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def build(layer, given, weights=None) -> bytes:
    shapes, dtypes = {n: x.shape for n, x in given.items()}, {n: x.dtype.name for n, x in given.items()}
    return model([layer], shapes, ("y",), weights or {}, dtypes=dtypes)


def run(layer, given, weights=None) -> float:
    return differ(build(layer, given, weights), given)


@pytest.mark.parametrize(
    "kind, params",
    [
        ("Relu", []),
        ("Sigmoid", []),
        ("Tanh", []),
        ("LeakyRelu", [0.2]),
        ("Clip", [-0.5, 0.5]),
        ("HardSigmoid", [0.3, 0.4]),
    ],
)
def test_convolutions(kind: str, params) -> None:
    attrs = {"activation": kind, "pads": [1, 1, 1, 1], **({"activation_params": params} if params else {})}
    weights = {"w": reals(4, 3, 3, 3), "b": reals(4)}
    assert run(node("FusedConv", ["x", "w", "b"], domain=MS, **attrs), {"x": reals(1, 3, 6, 6)}, weights) <= 1e-5
    given = {"x": reals(1, 3, 6, 6), "z": reals(1, 4, 6, 6)}
    if kind == "Relu":
        assert run(node("FusedConv", ["x", "w", "b", "z"], domain=MS, **attrs), given, weights) <= 1e-5


def test_channels_last() -> None:
    x = rng.integers(-99, 99, (1, 6, 6, 3)).astype("int8")
    layer = node("NhwcMaxPool", ["x"], domain=MS, kernel_shape=[2, 2], strides=[2, 2])
    assert run(layer, {"x": x}) == 0
    weights, x = {"w": reals(4, 3, 3, 3)}, reals(1, 6, 6, 3)
    plain = ours(build(node("Conv", ["x", "w"]), {"x": x.transpose(0, 3, 1, 2)}, weights), {"x": x.transpose(0, 3, 1, 2)})[0]
    found = ours(build(node("NhwcConv", ["x", "w"], domain=MS), {"x": x}, weights), {"x": x})[0]
    assert np.allclose(found, plain.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("kind", ["Relu", "LeakyRelu", "HardSigmoid"])
def test_gemm(kind: str) -> None:
    alphas = {} if kind == "Relu" else {"activation_alpha": 0.3, **({"activation_beta": 0.4} if kind == "HardSigmoid" else {})}
    layer = node("FusedGemm", ["x", "w", "b"], domain=MS, transB=1, alpha=0.5, beta=2.0, activation=kind, **alphas)
    assert run(layer, {"x": reals(3, 4)}, {"w": reals(5, 4), "b": reals(5)}) <= 1e-5


@pytest.mark.parametrize(
    "attrs, x, y",
    [
        ({"transA": 1, "alpha": 0.25}, (2, 4, 3), (2, 4, 5)),
        ({"transB": 1}, (2, 3, 4), (5, 4)),
        ({"transBatchA": 1}, (3, 2, 4), (2, 4, 5)),
        ({"transBatchB": 1, "transB": 1}, (2, 3, 3, 4), (5, 2, 3, 4)),
    ],
)
def test_products(attrs, x, y) -> None:
    assert run(node("FusedMatMul", ["x", "v"], domain=MS, **attrs), {"x": reals(*x), "v": reals(*y)}) <= 1e-5


def test_triangles() -> None:
    layer = node("Trilu", ["x", "k"], domain=MS, upper=0)
    assert run(layer, {"x": reals(2, 4, 5)}, {"k": np.array(1, "int64")}) == 0
