"""Real operands with int8 weights: the program rounds operands as LiteRT does, for each layer and kind of scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import compare

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
RNG = np.random.default_rng(1)
WINDOW = {"StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}


def real(*shape: int, middle: float = 0.0) -> np.ndarray:
    return RNG.normal(middle, size=shape).astype("float32")


def weights(shape: tuple[int, ...], kind: str, axis: int = 0) -> T:
    """Weights of one scale, of equal scales for all channels, of others for each channel, or in other types."""
    count = 1 if kind in ("one", "uint8", "zero") else shape[axis]
    scale = RNG.uniform(0.005, 0.02, count).tolist() if kind in ("each", "int4") else [0.01] * count
    zero = {"uint8": 128, "zero": 3}.get(kind, 0)
    if kind == "int4":
        halves = RNG.integers(-7, 8, shape).astype("uint8").reshape(-1, 2) & 15
        return T(shape, "int4", halves[:, 0] | halves[:, 1] << 4, scale=scale, zero=[0] * count, axis=axis)
    values = RNG.integers(0, 256, shape).astype("uint8") if kind == "uint8" else RNG.integers(-127, 128, shape).astype("int8")
    return const(values, scale=scale, zero=[zero] * count, axis=axis)


def layer(op: str, kind: str, x: np.ndarray, w: T, bias: int, out: tuple[int, ...], **options: Any) -> bytes:
    tensors = {"x": T(x.shape), "w": w, "b": const(real(bias)), "y": T(out)}
    return file(tensors, [Op(op, ["x", "w", "b"], ["y"], kind, options)], ["x"], ["y"])


@pytest.mark.parametrize("scales", ["one", "equal", "each", "uint8", "zero", "int4"])
@pytest.mark.parametrize("batch, middle, padding", [(1, 0.0, 0), (3, 2.0, 1), (2, -3.0, 0)])
def test_convolutions(scales: str, batch: int, middle: float, padding: int) -> None:
    x = real(batch, 8, 7, 2, middle=middle)
    out = (batch, 8, 7, 4) if padding == 0 else (batch, 6, 5, 4)
    data = layer("CONV_2D", "Conv2DOptions", x, weights((4, 3, 3, 2), scales), 4, out, Padding=padding, **WINDOW)
    compare(data, [x], close=2e-6)


@pytest.mark.parametrize("scales", ["equal", "each"])
@pytest.mark.parametrize("multiplier", [1, 2])
def test_convolutions_of_groups(scales: str, multiplier: int) -> None:
    x = real(2, 8, 8, 4)
    data = layer("CONV_2D", "Conv2DOptions", x, weights((6, 3, 3, 2), scales), 6, (2, 8, 8, 6), Padding=0, **WINDOW)
    compare(data, [x], close=2e-6)
    channels = 4 * multiplier
    w = weights((1, 3, 3, channels), scales, axis=3)
    options = {**WINDOW, "DepthMultiplier": multiplier}
    data = layer("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", x, w, channels, (2, 8, 8, channels), Padding=0, **options)
    compare(data, [x], close=2e-6)


@pytest.mark.parametrize("scales", ["one", "equal", "each"])
def test_transposed_convolutions(scales: str) -> None:
    x, out = real(2, 8, 8, 4), (2, 16, 16, 3)
    tensors = {"s": const(np.array(out, "int32")), "w": weights((3, 3, 3, 4), scales), "x": T(x.shape), "b": const(real(3))}
    tensors["y"] = T(out)
    op = Op("TRANSPOSE_CONV", ["s", "w", "x", "b"], ["y"], "TransposeConvOptions", {"Padding": 0, "StrideW": 2, "StrideH": 2})
    compare(file(tensors, [op], ["x"], ["y"]), [x], close=2e-6)


@pytest.mark.parametrize("scales", ["one", "equal", "each", "uint8", "zero", "int4"])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_dense_layers(scales: str, asymmetric: bool) -> None:
    flag = {"AsymmetricQuantizeInputs": asymmetric}
    for x, out, more in [
        (real(3, 6, middle=5), (3, 5), {}),
        (np.zeros((2, 6), "float32"), (2, 5), {}),
        (real(2, 3, 6), (2, 3, 5), {"KeepNumDims": True}),
        (real(2, 3, 6), (6, 5), {"FusedActivationFunction": 1}),
    ]:
        data = layer("FULLY_CONNECTED", "FullyConnectedOptions", x, weights((5, 6), scales), 5, out, **flag, **more)
        compare(data, [x], close=2e-6)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_products_of_matrices(turned: bool, asymmetric: bool) -> None:
    x = real(2, 3, 6)
    tensors = {"x": T(x.shape), "w": weights((2, 5, 6) if turned else (2, 6, 5), "one"), "y": T((2, 3, 5))}
    options = {"AdjY": turned, "AsymmetricQuantizeInputs": asymmetric}
    compare(file(tensors, [Op("BATCH_MATMUL", ["x", "w"], ["y"], "BatchMatMulOptions", options)], ["x"], ["y"]), [x], close=2e-6)
