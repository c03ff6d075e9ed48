"""Random convolutions: every order and form of weights that the U85 has gives the integers of the U55."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("tflite", reason="needs relaylang[tflite]")
pytest.importorskip("ai_edge_litert", reason="ai-edge-litert computes the expected values")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang.backends.ethosu.tflite import load_network, npu_layers
from tests.backends.ethosu.generator import some_weights
from tests.backends.ethosu.simulator.test_tflite import U85, compiled
from tests.frontends.tflite.files import const
from tests.frontends.tflite.runtime import outputs
from tests.frontends.tflite.test_quantized import layer, stored
from tests.shared import few

#: The most weights of a layer.
MOST = 600_000


class Case(NamedTuple):
    """A file of one convolution, and its input."""

    data: bytes
    x: np.ndarray


def random_convolution(seed: int) -> Case:
    """A layer of LiteRT: regular or depthwise, of 8 or 16 bits, of any kernel, stride and dilation."""
    rng = np.random.default_rng(seed)

    def number(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    dtype = "int16" if number(0, 3) == 0 else "int8"
    wide, depthwise = dtype == "int16", number(0, 3) == 0
    largest = 12 if number(0, 2) == 0 else 4
    kernel = (number(1, largest), number(1, largest))
    stride = number(1, 3)
    dilation = number(1, 2) if stride == 1 else 1
    inputs = int(rng.choice([1, 3, 5, 16, 17, 40, 64, 65, 100, 130, 300]))
    outputs = inputs if depthwise else int(rng.choice([1, 3, 8, 16, 17, 33, 64, 70, 129, 260]))
    if kernel[0] * kernel[1] * inputs * outputs > MOST:
        kernel = (1, 1)
    sizes = [dilation * (k - 1) + 1 + number(0, 14) for k in kernel]
    padding = number(0, 1)
    shape = [-(-n // stride) if padding == 0 else (n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(sizes, kernel)]
    scale, zero = (0.0005, 0) if wide else (0.05, number(-20, 20))
    reach = kernel[0] * kernel[1] * (1 if depthwise else inputs)
    given = stored((1, *sizes, inputs), dtype, scale, zero)
    out = stored((1, *shape, outputs), dtype, scale * reach**0.5 * (1 if wide else 0.01), 0 if wide else number(-20, 20))
    scales = [float(s) for s in rng.uniform(0.001, 0.011, outputs).astype(np.float32)]
    weight = some_weights(rng, (1, *kernel, inputs) if depthwise else (outputs, *kernel, inputs))
    bias = rng.integers(-3000, 3000, outputs).astype("int64" if wide else "int32")
    constants = (
        const(weight, scale=scales, zero=[0] * outputs, axis=3 if depthwise else 0),
        const(bias, scale=[scale * s for s in scales], zero=[0] * outputs),
    )
    options = {
        "Padding": padding,
        "StrideW": stride,
        "StrideH": stride,
        "DilationWFactor": dilation,
        "DilationHFactor": dilation,
        "FusedActivationFunction": number(0, 1),
    }
    if depthwise:
        data = layer("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", [given], out, *constants, DepthMultiplier=1, **options)
    else:
        data = layer("CONV_2D", "Conv2DOptions", [given], out, *constants, **options)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return Case(data, rng.integers(low, high + 1, (1, *sizes, inputs)).astype(dtype))


@pytest.mark.sample(6)
@pytest.mark.parametrize("start", few(range(0, 300, 10), 0))
def test_random_convolutions(start: int) -> None:
    """Each ten on one accelerator, in turn."""
    forms, accelerator = set(), U85[start // 10 % len(U85)]
    for seed in range(start, start + 10):
        case = random_convolution(seed)
        made = compiled(case.data, accelerator)
        found = load_network(made, "net.tflite").run(case.x)
        wanted = load_network(compiled(case.data, "ethos-u55-256"), "net.tflite").run(case.x)
        np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}")
        # LiteRT's kernels round once, the accelerators twice.
        assert np.abs(found.astype(np.int64) - outputs(case.data, [[case.x]])[0][0]).max() <= 1
        for part in npu_layers(made, "net.tflite")[1]:
            forms |= {c.param for c in part.stream().commands if c.name == "SET_WEIGHT_FORMAT"}
    assert start or {0, 16} <= forms  # the first ten have both forms of weights
