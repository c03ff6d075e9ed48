"""Float operators of com.microsoft, against onnxruntime or numpy where it has no kernel for the CPU."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import differ, ours

rng = np.random.default_rng(17)
MS = "com.microsoft"


def reals(*shape) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def build(layer, given, weights=None, outputs=("y",)) -> bytes:
    shapes, dtypes = {n: x.shape for n, x in given.items()}, {n: x.dtype.name for n, x in given.items()}
    return model([layer], shapes, outputs, weights or {}, dtypes=dtypes)


def run(layer, given, weights=None, outputs=("y",)) -> float:
    return differ(build(layer, given, weights, outputs), given)


def alone(layer, given, weights=None, outputs=("y",)) -> list[np.ndarray]:
    return ours(build(layer, given, weights, outputs), given)


@pytest.mark.parametrize(
    "kind, attrs",
    [
        ("Gelu", {}),
        ("BiasGelu", {}),
        ("FastGelu", {}),
        ("QuickGelu", {"alpha": 1.3}),
        ("ScaledSiLU", {"alpha": 0.7}),
    ],
)
def test_activations(kind: str, attrs) -> None:
    names = ["x", "b"] if kind in ("BiasGelu", "FastGelu") else ["x"]
    assert run(node(kind, names, domain=MS, **attrs), {"x": reals(2, 3, 8)}, {"b": reals(8)}) <= 1e-5


@pytest.mark.parametrize("bias", [False, True])
def test_skip_layer_norms(bias: bool) -> None:
    given, weights = {"x": reals(2, 3, 8), "s": reals(2, 3, 8)}, {"g": reals(8), "t": reals(8), "b": reals(8)}
    layer = node("SkipLayerNormalization", ["x", "s", "g", "t", *(["b"] if bias else [])], ["y", "", "", "z"], domain=MS)
    assert run(layer, given, weights, ["y", "z"]) <= 1e-5
    layer = node("SkipSimplifiedLayerNormalization", ["x", "s", "g", *(["b"] if bias else [])], ["y", "", "", "z"], domain=MS)
    assert run(layer, given, weights, ["y", "z"]) <= 1e-5


def test_layer_norm_without_a_mean() -> None:
    assert run(node("SimplifiedLayerNormalization", ["x", "g"], axis=-1), {"x": reals(2, 8)}, {"g": reals(8)}) <= 1e-5


def test_gated_norm_and_sum() -> None:
    layer = node("GatedRMSNorm", ["x", "g", "z"], domain=MS, activation="silu", epsilon=1e-6)
    assert run(layer, {"x": reals(2, 3, 8), "z": reals(2, 3, 8)}, {"g": reals(4)}) <= 1e-5
    layer = node("GatedAdd", ["x", "v", "g"], domain=MS)
    assert run(layer, {"x": reals(2, 3, 8), "v": reals(2, 3, 8), "g": reals(2, 3, 1)}) <= 1e-5


@pytest.mark.parametrize("mask", [False, True])
def test_embeddings(mask: bool) -> None:
    weights = {"w": reals(10, 8), "p": reals(6, 8), "k": reals(2, 8), "g": reals(8), "t": reals(8)}
    given = {"i": rng.integers(0, 10, (2, 4)).astype("int32"), "s": rng.integers(0, 2, (2, 4)).astype("int32")}
    if mask:
        given["m"] = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], "int32")
    layer = node("EmbedLayerNormalization", ["i", "s", "w", "p", "k", "g", "t", *(["m"] if mask else [])], ["y", "z"], domain=MS)
    assert run(layer, given, weights, ["y", "z"]) <= 1e-5


def test_quantised_embeddings() -> None:
    tables = {"w": (10, 8), "p": (6, 8), "k": (2, 8), "g": (8,), "t": (8,)}
    weights = {n: rng.integers(0, 256, s).astype("uint8") for n, s in tables.items()}
    weights |= {n + "s": np.array(rng.uniform(0.01, 0.02), "float32") for n in tables}
    weights |= {n + "z": np.array(120, "uint8") for n in tables}
    given = {"i": rng.integers(0, 10, (2, 4)).astype("int32"), "s": rng.integers(0, 2, (2, 4)).astype("int32")}
    names = ["i", "s", *tables, "", *[n + "s" for n in tables], *[n + "z" for n in tables]]
    assert run(node("QEmbedLayerNormalization", names, ["y", "m"], domain=MS), given, weights, ["y", "m"]) <= 1e-5


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric: str) -> None:
    assert run(node("CDist", ["x", "v"], domain=MS, metric=metric), {"x": reals(3, 4), "v": reals(5, 4)}) <= 1e-5


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 4, 4)])
def test_inverse(shape) -> None:
    x = reals(*shape)
    x[..., 0, 0] = 0  # the first pivot is in another row
    assert run(node("Inverse", ["x"], domain=MS), {"x": x}) <= 1e-4


def test_slices_and_axes() -> None:
    assert run(node("UnfoldTensor", ["x"], domain=MS, dim=1, size=3, step=2), {"x": reals(2, 8, 2)}) == 0
    assert run(node("ExpandDims", ["x", "a"], domain=MS), {"x": reals(2, 3)}, {"a": np.array(1, "int32")}) == 0
    layer = node("MatMulInteger16", ["x", "v"], domain=MS)
    assert run(layer, {n: rng.integers(-99, 99, s).astype("int16") for n, s in (("x", (2, 3)), ("v", (3, 4)))}) == 0


def test_operators_without_a_kernel_for_the_cpu() -> None:
    x, bias = reals(2, 3, 8), reals(8)
    left, right = (x + bias)[..., :4], (x + bias)[..., 4:]
    from math import erf

    wanted = left * right * (1 + np.vectorize(erf)(right / np.sqrt(2))) / 2
    assert np.allclose(alone(node("BiasSplitGelu", ["x", "b"], domain=MS), {"x": x}, {"b": bias})[0], wanted, atol=1e-5)
    assert np.allclose(alone(node("BiasAdd", ["x", "b", "s"], domain=MS), {"x": x, "s": x}, {"b": bias})[0], 2 * x + bias)
    whole = np.exp(x + bias) / np.exp(x + bias).sum(-1, keepdims=True)
    layer = node("BiasSoftmax", ["x", "b"], domain=MS, axis=2, is_inner_broadcast=0)
    assert np.allclose(alone(layer, {"x": x}, {"b": bias.reshape(1, 1, 8)})[0], whole, atol=1e-6)
    y = reals(2, 3, 8)
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * (y[..., 0::2] + 1j * y[..., 1::2])
    given = {"x": x.reshape(2, 3, 4, 2), "v": y.reshape(2, 3, 4, 2)}
    found = alone(node("ComplexMul", ["x", "v"], domain=MS), given)[0]
    assert np.allclose(found, np.stack([z.real, z.imag], -1), atol=1e-5)
    assert not alone(node("IsAllFinite", ["x"], domain=MS), {"x": np.array([1, np.inf], "float32")})[0]
    image = reals(1, 4, 4, 6)
    parts = image.reshape(1, 16, 2, 3)
    mean, var = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    normal = ((parts - mean) / np.sqrt(var + 1e-5)).reshape(1, 4, 4, 6)
    layer = node("GroupNorm", ["x", "g", "t"], domain=MS, groups=2, activation=1)
    found = alone(layer, {"x": image}, {"g": np.ones(6, "float32"), "t": np.zeros(6, "float32")})[0]
    assert np.allclose(found, normal / (1 + np.exp(-normal)), atol=1e-5)
