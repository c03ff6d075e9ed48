"""TFLite files that Vela compiles: the simulator gives LiteRT's integers, layer by layer, and for whole networks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang import RelayError
from relaylang.backends.ethosu import vela
from relaylang.backends.ethosu.tflite import load_network, npu_layers
from tests.cli.command import relay
from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import outputs
from tests.frontends.tflite.test_quantized import UNARY, all_of, layer, stored
from tests.shared import few

pytest.importorskip("tflite", reason="needs relaylang[tflite]")
pytest.importorskip("ai_edge_litert", reason="ai-edge-litert computes the expected values")
regor: Any = pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

DATA = Path(__file__).parents[3] / "frontends/tflite/data"
U85 = ("ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048")
ACCELERATORS = ("ethos-u55-32", "ethos-u55-128", "ethos-u65-256", "ethos-u65-512", *U85)
Caps = pytest.CaptureFixture[str]


def compiled(data: bytes, accelerator: str) -> bytes:
    """The file as Vela writes it."""
    how = vela.settings({"accelerator": accelerator})
    architecture, macs, cores = vela.ACCELERATORS[accelerator]
    config = (
        f"[architecture]\nmacs={macs}\ncores={cores}\n"
        f"[vela]\nsystem_config_name={how.system_config}\nmemory_mode_name={how.memory_mode}\n{how.config}"
    )
    options = "[compiler]\noutput_format=TFLite\ncop_format=COP1\n[scheduler]\noptimize=Performance\ncpu_tensor_alignment=16\n"
    return bytes(regor.compile(architecture, data, "TFLITE", config, options=options).model)


def apart(data: bytes, inputs: list[np.ndarray], accelerator: str) -> np.ndarray:
    """The differences between the simulator and LiteRT."""
    found = load_network(compiled(data, accelerator), "net.tflite").run(*inputs)
    (wanted,) = outputs(data, [inputs])[0]
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    return found.astype(np.int64) - wanted


rng = np.random.default_rng(3)
IMAGE = rng.integers(-128, 128, (1, 9, 11, 5)).astype("int8")
WIDE = rng.integers(-32768, 32768, (1, 9, 11, 5)).astype("int16")
WEIGHT = rng.integers(-127, 128, (4, 3, 3, 5)).astype("int8")
SCALES = [0.01, 0.02, 0.013, 0.004]
BIAS = rng.integers(-500, 500, 4)
NONE = {"FusedActivationFunction": 0}
ONE = {"StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}
GIVEN = stored(IMAGE.shape, "int8", 0.05, 3)


def pool(name: str, padding: int) -> bytes:
    shape = (1, 5, 6, 5) if padding == 0 else (1, 4, 5, 5)
    window = {"StrideW": 2, "StrideH": 2, "FilterWidth": 3, "FilterHeight": 3}
    return layer(name, "Pool2DOptions", [GIVEN], stored(shape, "int8", 0.05, 3), Padding=padding, **window, **NONE)


def resize(name: str, half: bool) -> bytes:
    kind = "ResizeBilinearOptions" if "BILINEAR" in name else "ResizeNearestNeighborOptions"
    sizes = const(np.array([18, 22], np.int32))
    out = stored((1, 18, 22, 5), "int8", 0.05, 3)
    return layer(name, kind, [GIVEN], out, sizes, AlignCorners=False, HalfPixelCenters=half)


def conv(given: T, out: T, bias: str, padding: int, activation: int) -> bytes:
    weight = const(WEIGHT, scale=SCALES, zero=[0] * 4)
    values = const(BIAS.astype(bias), scale=[given.scale[0] * s for s in SCALES], zero=[0] * 4)
    options = {"Padding": padding, "FusedActivationFunction": activation, **ONE}
    return layer("CONV_2D", "Conv2DOptions", [given], out, weight, values, **options)


def depthwise() -> bytes:
    scales = [0.01, 0.02, 0.03, 0.04, 0.005]
    weight = const(WEIGHT[:1], scale=scales, zero=[0] * 5, axis=3)
    bias = const(np.arange(5, dtype=np.int32) * 90, scale=[0.05 * s for s in scales], zero=[0] * 5)
    out = stored(IMAGE.shape, "int8", 0.1, -7)
    options = {"Padding": 0, "DepthMultiplier": 1, **ONE, **NONE}
    return layer("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", [GIVEN], out, weight, bias, **options)


def transposed() -> bytes:
    tensors = {
        "s": const(np.array([1, 18, 22, 4], np.int32)),
        "w": const(WEIGHT, scale=SCALES, zero=[0] * 4),
        "x": GIVEN,
        "b": const(BIAS.astype(np.int32), scale=[0.05 * s for s in SCALES], zero=[0] * 4),
        "y": stored((1, 18, 22, 4), "int8", 0.3, -7),
    }
    options = {"Padding": 0, "StrideW": 2, "StrideH": 2}
    op = Op("TRANSPOSE_CONV", ["s", "w", "x", "b"], ["y"], "TransposeConvOptions", options, version=3)
    return file(tensors, [op], ["x"], ["y"])


def mean() -> bytes:
    out = stored((1, 1, 1, 5), "int8", 0.04, -5)
    return layer("MEAN", "ReducerOptions", [GIVEN], out, const(np.array([1, 2], np.int32)), KeepDims=True)


LAYERS: Mapping[str, tuple[bytes, np.ndarray]] = {
    **{f"{n} {p}": (pool(n, p), IMAGE) for n in ("AVERAGE_POOL_2D", "MAX_POOL_2D") for p in (0, 1)},
    **{f"{n} {h}": (resize(n, h), IMAGE) for n in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR") for h in (False, True)},
    "CONV same": (conv(GIVEN, stored((1, 9, 11, 4), "int8", 0.3, -7), "int32", 0, 1), IMAGE),
    "CONV valid": (conv(GIVEN, stored((1, 7, 9, 4), "int8", 0.3, -7), "int32", 1, 0), IMAGE),
    "CONV int16": (conv(stored(WIDE.shape, "int16", 0.0005, 0), stored((1, 9, 11, 4), "int16", 0.003, 0), "int64", 0, 0), WIDE),
    "DEPTHWISE": (depthwise(), IMAGE),
    "TRANSPOSE_CONV": (transposed(), IMAGE),
    "MEAN": (mean(), IMAGE),
    "SOFTMAX": (
        layer("SOFTMAX", "SoftmaxOptions", [stored((16, 40), "int8", 0.1, 3)], stored((16, 40), "int8", 1 / 256, -128), Beta=1.0),
        rng.integers(-128, 128, (16, 40)).astype("int8"),
    ),
}


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u55-128", "ethos-u85-256"))
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, accelerator: str) -> None:
    data, x = LAYERS[name]
    # Vela's mean has a multiplier of its own, LiteRT's divides: their halves may differ.
    assert np.abs(apart(data, [x], accelerator)).max() <= (name == "MEAN")


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u65-512"))
@pytest.mark.parametrize("name", [name for name in UNARY if name != "RELU_N1_TO_1"])
def test_functions_of_every_integer(name: str, accelerator: str) -> None:
    kind, scale, zero, to_scale, to_zero = UNARY[name]
    options = {"Alpha": 0.3} if name == "LEAKY_RELU" else {}
    x = all_of("int8").reshape(1, 4, 8, 8)
    data = layer(name, kind, [stored(x.shape, "int8", scale, zero)], stored(x.shape, "int8", to_scale, to_zero), **options)
    assert not apart(data, [x], accelerator).any()


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u55-128", "ethos-u85-512"))
@pytest.mark.parametrize("second", [0.021, 0.05])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM"])
def test_arithmetic_of_every_pair(name: str, second: float, accelerator: str) -> None:
    x, y = (np.repeat(np.repeat(all_of("int8").reshape(s), 256 // s[1], 1), 256 // s[2], 2) for s in ((1, 256, 1, 1), (1, 1, 256, 1)))
    limits = name in ("MINIMUM", "MAXIMUM")
    given = [stored(x.shape, "int8", 0.05, 3), stored(x.shape, "int8", 0.05, 3) if limits else stored(x.shape, "int8", second, -9)]
    out = stored(x.shape, "int8", 0.05, 3) if limits else stored(x.shape, "int8", 0.06, -7)
    kind = "MaximumMinimumOptions" if limits else f"{name.title()}Options"
    different = apart(layer(name, kind, given, out, **({} if limits else NONE)), [x, y], accelerator)
    # LiteRT multiplies the second operand of SUB by a negative number, whose halves round to the other side. The U85 rounds
    # operands twice, as LiteRT's own description has it; its kernels round once.
    halves = name == "SUB" or (name == "ADD" and accelerator in U85)
    assert np.abs(different).max() <= halves and np.count_nonzero(different) <= 8 * halves


@pytest.mark.parametrize("accelerator", ["ethos-u55-256", "ethos-u85-256"])
@pytest.mark.parametrize("name", ["ADD", "MUL"])
def test_arithmetic_of_16_bits(name: str, accelerator: str) -> None:
    x, y = (rng.integers(-32768, 32768, (1, 64, 64, 4)).astype("int16") for _ in range(2))
    given = [stored(x.shape, "int16", 0.0005, 0), stored(x.shape, "int16", 0.00021, 0)]
    data = layer(name, f"{name.title()}Options", given, stored(x.shape, "int16", 0.0006, 0), **NONE)
    different = apart(data, [x, y], accelerator)
    halves = name == "ADD" and accelerator in U85
    assert np.abs(different).max() <= halves and np.count_nonzero(different) <= 8 * halves


def rounded_twice(values: np.ndarray, ratio: float, raised: int = 0) -> np.ndarray:
    """`MultiplyByQuantizedMultiplier` of TensorFlow Lite: halves away from zero at bit 31, and at the end."""
    fraction, exponent = np.frexp(ratio)
    product = (np.abs(values) << raised) * int(np.round(fraction * (1 << 31)))
    once = (product + (1 << 30)) >> 31
    return np.sign(values) * ((once + (1 << -exponent >> 1)) >> -exponent)


@pytest.mark.parametrize("seed", few(range(30), 0, 1))
@pytest.mark.parametrize("name", ["ADD", "SUB"])
def test_sums_of_every_pair_round_twice(name: str, seed: int) -> None:
    """On the U55 and U65 one operand has a scale, for all scales as LiteRT's description has it."""
    numbers = np.random.default_rng(seed)
    scales = [float(np.float32(10 ** numbers.uniform(-3, 0.5))) for _ in range(3)]
    zeros = numbers.integers(-128, 128, 3).tolist()
    x, y = np.broadcast_arrays(all_of("int8").reshape(1, 256, 1, 1), all_of("int8").reshape(1, 1, 256, 1))
    given = [stored(x.shape, "int8", scale, zero) for scale, zero in zip(scales[:2], zeros)]
    data = layer(name, f"{name.title()}Options", given, stored(x.shape, "int8", scales[2], zeros[2]), **NONE)
    found = load_network(compiled(data, "ethos-u55-128"), "net.tflite").run(np.array(x), np.array(y))
    double = 2 * max(scales[:2])
    first, second = (rounded_twice(v.astype(np.int64) - z, s / double, 20) for v, z, s in zip((x, y), zeros, scales))
    wanted = rounded_twice(first + (second if name == "ADD" else -second), double / ((1 << 20) * scales[2])) + zeros[2]
    np.testing.assert_array_equal(found, np.clip(wanted, -128, 127))


@pytest.mark.parametrize("accelerator", few(U85, "ethos-u85-256"))
@pytest.mark.parametrize(("dtype", "raised"), [("int8", 20), ("int16", 15)])
def test_sums_of_the_u85_round_twice(dtype: str, raised: int, accelerator: str) -> None:
    info = np.iinfo(dtype)
    x, y = (rng.integers(info.min, info.max + 1, (1, 128, 128, 8)).astype(dtype) for _ in range(2))
    scale = 1.0 if dtype == "int8" else 1 / 128
    zeros = (3, -9, -7) if dtype == "int8" else (0, 0, 0)
    scales = [float(np.float32(s * scale)) for s in (0.05, 0.021, 0.06)]
    given = [stored(x.shape, dtype, s, z) for s, z in zip(scales[:2], zeros)]
    data = layer("ADD", "AddOptions", given, stored(x.shape, dtype, scales[2], zeros[2]), **NONE)
    found = load_network(compiled(data, accelerator), "net.tflite").run(x, y)
    double = 2 * max(scales[:2])
    parts = [rounded_twice(v.astype(np.int64) - z, s / double, raised) for v, z, s in zip((x, y), zeros, scales)]
    wanted = rounded_twice(sum(parts), double / ((1 << raised) * scales[2])) + zeros[2]
    np.testing.assert_array_equal(found, np.clip(wanted, info.min, info.max))


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u55-128", "ethos-u85-2048"))
@pytest.mark.parametrize("name", ["keywords_int8", "mobilenet_int8"])
def test_networks_of_velas_files(tmp_path: Path, capsys: Caps, name: str, accelerator: str) -> None:
    """The optimised file in the simulator and the original on LiteRT."""
    data = (DATA / f"{name}.tflite").read_bytes()
    made = compiled(data, accelerator)
    network = load_network(made, "net.tflite")
    ((_, spec),) = network.inputs
    x = np.random.default_rng(5).integers(-128, 128, spec.shape).astype(spec.dtype)
    np.testing.assert_array_equal(network.run(x), outputs(data, [[x]])[0][0])
    (tmp_path / "net.tflite").write_bytes(made)
    listed = relay(capsys, "disasm", str(tmp_path / "net.tflite"))
    assert listed.status == 0 and listed.out.startswith(f"layer 0: {accelerator}, ")
    ran = relay(capsys, "run", str(tmp_path / "net.tflite"), "--executor", "ethosu-sim", "--fill", "zeros")
    assert ran.status == 0 and "int8" in ran.out


def mixed() -> bytes:
    """Layers of real numbers around and between layers of integers."""
    window = {"Padding": 0, "StrideW": 1, "StrideH": 1, "FilterWidth": 3, "FilterHeight": 3, **NONE}
    tensors = {
        "x": T(IMAGE.shape),
        "a": GIVEN,
        "b": GIVEN,
        "c": T(IMAGE.shape),
        "d": T(IMAGE.shape),
        "e": GIVEN,
        "f": GIVEN,
    }
    ops = [
        Op("QUANTIZE", ["x"], ["a"], "QuantizeOptions"),
        Op("MAX_POOL_2D", ["a"], ["b"], "Pool2DOptions", window, version=2),
        Op("DEQUANTIZE", ["b"], ["c"], "DequantizeOptions"),
        Op("COS", ["c"], ["d"], "CosOptions"),
        Op("QUANTIZE", ["d"], ["e"], "QuantizeOptions"),
        Op("MAX_POOL_2D", ["e"], ["f"], "Pool2DOptions", window, version=2),
    ]
    return file(tensors, ops, ["x"], ["f", "d"])


def test_layers_of_the_cpu(tmp_path: Path, capsys: Caps) -> None:
    data = mixed()
    made = compiled(data, "ethos-u55-128")
    x = rng.standard_normal(IMAGE.shape).astype("float32")
    found = load_network(made, "net.tflite").run(x)
    wanted = outputs(data, [[x]])[0]
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6, atol=1e-7)
    (tmp_path / "net.tflite").write_bytes(made)
    plain = relay(capsys, "run", str(tmp_path / "net.tflite"), "--fill", "zeros")
    assert plain.status == 1 and "relay run --executor ethosu-sim executes it" in plain.err


def test_files_that_are_not_velas(tmp_path: Path, capsys: Caps) -> None:
    plain = DATA / "keywords_int8.tflite"
    ran = relay(capsys, "run", str(plain), "--executor", "ethosu-sim")
    assert ran.status == 1 and "error[R0615]" in ran.err and "Vela did not compile it" in ran.err
    made = bytearray(compiled(plain.read_bytes(), "ethos-u55-128"))
    start = made.index(b"COP1")
    made[start : start + 4] = b"COP9"
    _, (found,) = npu_layers(bytes(made), "net.tflite")
    with pytest.raises(RelayError, match=r"R0615.*COP1 is missing"):
        found.stream()
    (tmp_path / "cut.tflite").write_bytes(bytes(made[: len(made) // 2]))
    cut = relay(capsys, "disasm", str(tmp_path / "cut.tflite"))
    assert cut.status == 1 and "error[R0802]" in cut.err
