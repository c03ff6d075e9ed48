"""TFLite files of int16 that Vela compiles: the simulator gives the integers of LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from relaylang.backends.ethosu.tflite import load_network
from tests.backends.ethosu.simulator.test_tflite import ACCELERATORS, BIAS, NONE, ONE, SCALES, WEIGHT, WIDE, compiled
from tests.backends.ethosu.spotter import SHAPE, spotter
from tests.frontends.tflite.files import Op, const, file
from tests.frontends.tflite.runtime import outputs
from tests.frontends.tflite.test_quantized import all_of, layer, stored
from tests.shared import few

pytest.importorskip("tflite", reason="needs relaylang[tflite]")
pytest.importorskip("ai_edge_litert", reason="ai-edge-litert computes the expected values")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

rng = np.random.default_rng(4)
SCALE = 0.0005
GIVEN = stored(WIDE.shape, "int16", SCALE, 0)
ROWS, ROW = rng.integers(-32768, 32768, (99, 5)).astype("int16"), stored((99, 5), "int16", SCALE, 0)
PAIR = [rng.integers(-32768, 32768, (1, 64, 64, 4)).astype("int16") for _ in range(2)]
EACH = all_of("int16").reshape(1, 64, 64, 16)


def differing(data: bytes, inputs: list[np.ndarray], accelerator: str) -> np.ndarray:
    found = load_network(compiled(data, accelerator), "net.tflite").run(*inputs)
    (wanted,) = outputs(data, [inputs], reference=True)[0]
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    return found.astype(np.int64) - wanted


def depthwise() -> bytes:
    scales, zeros = [0.01, 0.02, 0.03, 0.04, 0.005], [0] * 5
    weight = const(WEIGHT[:1], scale=scales, zero=zeros, axis=3)
    bias = const(np.arange(5) * 9000, scale=[SCALE * s for s in scales], zero=zeros)
    options = {"Padding": 0, "DepthMultiplier": 1, **ONE, **NONE}
    out = stored(WIDE.shape, "int16", 0.001, 0)
    return layer("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", [GIVEN], out, weight, bias, **options)


def transposed() -> bytes:
    zeros = [0] * 4
    tensors = {
        "s": const(np.array([1, 18, 22, 4], np.int32)),
        "w": const(WEIGHT, scale=SCALES, zero=zeros),
        "x": GIVEN,
        "b": const(BIAS.astype(np.int64) * 500, scale=[SCALE * s for s in SCALES], zero=zeros),
        "y": stored((1, 18, 22, 4), "int16", 0.003, 0),
    }
    options = {"Padding": 0, "StrideW": 2, "StrideH": 2}
    op = Op("TRANSPOSE_CONV", ["s", "w", "x", "b"], ["y"], "TransposeConvOptions", options, version=3)
    return file(tensors, [op], ["x"], ["y"])


def dense() -> bytes:
    weight = const(rng.integers(-127, 128, (6, 5)).astype("int8"), scale=[0.004], zero=[0])
    bias = const(rng.integers(-90000, 90000, 6), scale=[0.004 * SCALE], zero=[0])
    return layer("FULLY_CONNECTED", "FullyConnectedOptions", [ROW], stored((99, 6), "int16", 0.002, 0), weight, bias)


def pool(name: str, padding: int) -> bytes:
    shape = (1, 5, 6, 5) if padding == 0 else (1, 4, 5, 5)
    window = {"StrideW": 2, "StrideH": 2, "FilterWidth": 3, "FilterHeight": 3}
    return layer(name, "Pool2DOptions", [GIVEN], stored(shape, "int16", SCALE, 0), Padding=padding, **window, **NONE)


def arithmetic(name: str) -> bytes:
    limits = name in ("MINIMUM", "MAXIMUM")
    shape = PAIR[0].shape
    given = [stored(shape, "int16", SCALE, 0), stored(shape, "int16", SCALE if limits else 0.00021, 0)]
    kind = "MaximumMinimumOptions" if limits else f"{name.title()}Options"
    return layer(name, kind, given, stored(shape, "int16", SCALE if limits else 0.0006, 0), **({} if limits else NONE))


def mean() -> bytes:
    out = stored((1, 1, 1, 5), "int16", 0.0004, 0)
    return layer("MEAN", "ReducerOptions", [GIVEN], out, const(np.array([1, 2], np.int32)), KeepDims=True)


def softmax() -> bytes:
    return layer("SOFTMAX", "SoftmaxOptions", [ROW], stored(ROWS.shape, "int16", 1 / 32768, 0), Beta=1.0)


LAYERS: Mapping[str, tuple[bytes, list[np.ndarray]]] = {
    "DEPTHWISE": (depthwise(), [WIDE]),
    "TRANSPOSE_CONV": (transposed(), [WIDE]),
    **{f"{n} {p}": (pool(n, p), [WIDE]) for n in ("AVERAGE_POOL_2D", "MAX_POOL_2D") for p in (0, 1)},
    **{n: (arithmetic(n), PAIR) for n in ("MUL", "MINIMUM", "MAXIMUM")},
    "MEAN": (mean(), [WIDE]),
    "SOFTMAX": (softmax(), [ROWS]),
}


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u55-128", "ethos-u85-256"))
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, accelerator: str) -> None:
    assert not differing(*LAYERS[name], accelerator).any()


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u65-512", "ethos-u85-512"))
@pytest.mark.parametrize("name", ["dense layer", "spotter"])
def test_dense_layers(name: str, accelerator: str) -> None:
    """Vela writes multipliers of 15 bits, and LiteRT multiplies by 31."""
    given = (dense(), [ROWS]) if name == "dense layer" else (spotter(), [rng.integers(-32768, 32768, SHAPE).astype("int16")])
    assert np.abs(differing(*given, accelerator)).max() <= 1


FUNCTIONS: Mapping[str, tuple[str, float, float, dict[str, Any]]] = {
    "LEAKY_RELU": ("LeakyReluOptions", 0.001, 0.0013, {"Alpha": 0.3}),
    "RELU6": ("", 0.001, 0.001, {}),
    "QUANTIZE": ("QuantizeOptions", 0.001, 0.0013, {}),
    "EXP": ("ExpOptions", 0.0001, 0.001, {}),
}


def function(name: str, kind: str, scale: float, to_scale: float, options: Mapping[str, Any]) -> bytes:
    return layer(name, kind, [stored(EACH.shape, "int16", scale, 0)], stored(EACH.shape, "int16", to_scale, 0), **options)


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u55-128", "ethos-u85-256"))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_every_integer(name: str, accelerator: str) -> None:
    assert not differing(function(name, *FUNCTIONS[name]), [EACH], accelerator).any()


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u55-128", "ethos-u85-256"))
@pytest.mark.parametrize("scale", few([1 / 4096, 1 / 3000, 1 / 512], 1 / 4096, 1 / 512))
@pytest.mark.parametrize("name", ["LOGISTIC", "TANH"])
def test_curves_of_every_integer(name: str, scale: float, accelerator: str) -> None:
    """The U55 and U65 have these functions inside. The table of the U85 differs at one number from LiteRT's."""
    different = differing(function(name, "", scale, 1 / 32768, {}), [EACH], accelerator)
    allowed = accelerator.startswith("ethos-u85") and name == "LOGISTIC" and scale == 1 / 512
    assert np.count_nonzero(different) <= allowed and np.abs(different).max() <= allowed
