"""Layers on whole numbers: every pair of stored values, and the roundings of layers with real operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import compare

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
rng = np.random.default_rng(11)


def all_of(dtype: str) -> np.ndarray:
    """Every number of 8 bits."""
    info = np.iinfo(dtype)
    return np.arange(info.min, info.max + 1).astype(dtype)


def layer(name: str, kind: str, given: list[T], out: T, *more: T, **options: Any) -> bytes:
    """A file of one layer: operands, then constants."""
    tensors = {f"x{i}": t for i, t in enumerate(given)} | {f"c{i}": t for i, t in enumerate(more)}
    ops = [Op(name, list(tensors), ["y"], kind, options, version=5 if name == "CONCATENATION" else 1)]
    return file({**tensors, "y": out}, ops, [f"x{i}" for i in range(len(given))], ["y"])


def stored(shape: tuple[int, ...], dtype: str, scale: float, zero: int) -> T:
    """A quantised tensor."""
    return T(shape, dtype, None, [scale], [zero])


UNARY = {
    "ABS": ("AbsOptions", 0.05, 3, 0.06, -100),
    "EXP": ("ExpOptions", 0.03, 3, 0.1, -120),
    "LOGISTIC": ("", 0.06, 3, 1 / 256, -128),
    "TANH": ("", 0.03, 3, 1 / 128, 0),
    "HARD_SWISH": ("HardSwishOptions", 0.05, 3, 0.04, -100),
    "RELU": ("", 0.05, 3, 0.03, -110),
    "RELU6": ("", 0.08, 3, 6 / 255, -128),
    "RELU_N1_TO_1": ("", 0.05, 3, 0.01, 5),
    "LEAKY_RELU": ("LeakyReluOptions", 0.05, 3, 0.04, -20),
    "QUANTIZE": ("QuantizeOptions", 0.05, 3, 0.07, 20),
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_every_integer(name: str) -> None:
    kind, scale, zero, to_scale, to_zero = UNARY[name]
    options = {"Alpha": 0.3} if name == "LEAKY_RELU" else {}
    x = all_of("int8")
    given, out = stored(x.shape, "int8", scale, zero), stored(x.shape, "int8", to_scale, to_zero)
    mod = compare(layer(name, kind, [given], out, **options), [x], apart=1)
    assert "qnn.dequantize" not in mod.astext(show_meta_data=False)


@pytest.mark.parametrize("activation", [0, 1, 3])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_arithmetic_of_every_pair(name: str, dtype: str, activation: int) -> None:
    x = all_of(dtype)[:, None]
    y = np.ascontiguousarray(all_of(dtype)[None, :])
    middle = 0 if dtype == "int8" else 128
    given = [stored(x.shape, dtype, 0.05, middle + 3), stored(y.shape, dtype, 0.021, middle - 9)]
    out = stored((256, 256), dtype, 0.06, middle - 7)
    options = {"FusedActivationFunction": activation}
    mod = compare(layer(name, f"{name.title()}Options", given, out, **options), [x, y], apart=1)
    assert f"qnn.{ {'ADD': 'add', 'SUB': 'subtract', 'MUL': 'mul'}[name] }" in mod.astext(show_meta_data=False)


@pytest.mark.parametrize("name", ["MAXIMUM", "MINIMUM"])
def test_extremes_of_pairs_are_exact(name: str) -> None:
    x, y = all_of("int8"), rng.permutation(all_of("int8"))
    one = stored((256,), "int8", 0.05, 3)
    compare(layer(name, "MaximumMinimumOptions", [one, one], one), [x, y])


@pytest.mark.parametrize("name", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"])
def test_reductions(name: str) -> None:
    x = rng.integers(-128, 128, (2, 5, 7, 3)).astype("int8")
    given = stored(x.shape, "int8", 0.05, 3)
    out = given if name.startswith("REDUCE") else stored((2, 3), "int8", 0.04 if name == "MEAN" else 0.9, -2)
    out = T((2, 3), "int8", None, out.scale, out.zero)
    data = layer(name, "ReducerOptions", [given], out, const(np.int32([1, 2])), KeepDims=False)
    compare(data, [x], apart=0 if name.startswith("REDUCE") else 1)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("size", [2, 3, 6])
def test_average_pools(padding: int, size: int) -> None:
    x = rng.integers(-128, 128, (1, 6, 6, 4)).astype("int8")
    extent = -(-6 // 2) if padding == 0 else (6 - size) // 2 + 1
    one = stored(x.shape, "int8", 0.05, 3)
    out = T((1, extent, extent, 4), "int8", None, one.scale, one.zero)
    options = {"StrideH": 2, "StrideW": 2, "FilterHeight": size, "FilterWidth": size, "Padding": padding}
    whole = size == 6 and padding == 1  # a sum, whose halves round upwards
    compare(layer("AVERAGE_POOL_2D", "Pool2DOptions", [one], out, **options), [x], apart=whole)


def test_choices_of_stored_numbers() -> None:
    one = stored((4, 5), "int8", 0.05, 3)
    data = layer("SELECT_V2", "SelectV2Options", [T((4, 5), "bool"), one, one], one)
    mod = compare(data, [rng.random((4, 5)) < 0.5, *[rng.integers(-128, 128, (4, 5)).astype("int8") for _ in "xy"]])
    assert "qnn" not in mod.astext(show_meta_data=False)


def test_parts_with_other_scales_are_joined() -> None:
    x, y = (rng.integers(0, 256, (2, 3)).astype("uint8") for _ in range(2))
    given = [stored((2, 3), "uint8", 0.05, 130), stored((2, 3), "uint8", 0.03, 100)]
    mod = compare(
        layer("CONCATENATION", "ConcatenationOptions", given, stored((2, 6), "uint8", 0.06, 120), Axis=1),
        [x, y],
        apart=1,
    )
    assert "qnn.concatenate" in mod.astext(show_meta_data=False)


CONV = {"StrideH": 1, "StrideW": 1, "Padding": 0, "DilationHFactor": 1, "DilationWFactor": 1}


def weights(shape: tuple[int, ...], channels: int, axis: int = 0) -> T:
    """int8 weights, with a scale for each channel, or with one."""
    numbers = rng.integers(-127, 128, shape).astype("int8")
    return const(numbers, scale=[0.004 * (1 + 0.3 * i) for i in range(channels)], zero=[0] * channels, axis=axis)


def test_convolutions_of_16_bits() -> None:
    x = rng.integers(-32768, 32768, (1, 5, 6, 3)).astype("int16")
    w = weights((4, 3, 3, 3), 4)
    bias = const(rng.integers(-90000, 90000, 4).astype("int64"), scale=[s * 0.001 for s in w.scale], zero=[0] * 4)
    given, out = stored(x.shape, "int16", 0.001, 0), stored((1, 5, 6, 4), "int16", 0.0015, 0)
    mod = compare(layer("CONV_2D", "Conv2DOptions", [given], out, w, bias, FusedActivationFunction=1, **CONV), [x])
    assert "qnn.conv2d" in mod.astext(show_meta_data=False)


def test_depthwise_convolutions_of_16_bits() -> None:
    x = rng.integers(-32768, 32768, (1, 5, 6, 3)).astype("int16")
    w = weights((1, 3, 3, 6), 6, axis=3)
    bias = const(rng.integers(-90000, 90000, 6).astype("int64"), scale=[s * 0.001 for s in w.scale], zero=[0] * 6)
    given, out = stored(x.shape, "int16", 0.001, 0), stored((1, 5, 6, 6), "int16", 0.0015, 0)
    compare(
        layer("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", [given], out, w, bias, DepthMultiplier=2, **CONV),
        [x],
    )


@pytest.mark.parametrize("biased", [True, False])
def test_transposed_convolutions_of_16_bits(biased: bool) -> None:
    x = rng.integers(-32768, 32768, (1, 5, 6, 3)).astype("int16")
    w = weights((4, 3, 3, 3), 4)
    scales = [s * 0.001 for s in w.scale]
    tensors = {
        "s": const(np.array([1, 10, 12, 4], np.int32)),
        "w": w,
        "x": stored(x.shape, "int16", 0.001, 0),
        "y": stored((1, 10, 12, 4), "int16", 0.0015, 0),
    }
    if biased:
        tensors["b"] = const(rng.integers(-90000, 90000, 4), scale=scales, zero=[0] * 4)
    options = {"Padding": 0, "StrideW": 2, "StrideH": 2}
    inputs = ["s", "w", "x", *(["b"] if biased else [])]
    compare(file(tensors, [Op("TRANSPOSE_CONV", inputs, ["y"], "TransposeConvOptions", options, version=3)], ["x"], ["y"]), [x])


@pytest.mark.parametrize("depth", [8, 3000])
def test_dense_layers_of_16_bits(depth: int) -> None:
    """Sums of many products need more than 32 bits: these are multiplied by 15 bits, not by 31."""
    x = rng.integers(-32768, 32768, (3, depth)).astype("int16")
    w = const(rng.integers(-127, 128, (5, depth)).astype("int8"), scale=[0.004], zero=[0])
    bias = const(rng.integers(-90000, 90000, 5).astype("int64"), scale=[0.004 * 0.001], zero=[0])
    given, out = stored(x.shape, "int16", 0.001, 0), stored((3, 5), "int16", 0.0004 * depth, 0)
    mod = compare(layer("FULLY_CONNECTED", "FullyConnectedOptions", [given], out, w, bias), [x], apart=int(depth > 8))
    assert "qnn.dense" in mod.astext(show_meta_data=False)


@pytest.mark.parametrize("name", ["ADD", "MUL"])
def test_arithmetic_of_16_bits(name: str) -> None:
    x, y = (rng.integers(-32768, 32768, 400).astype("int16") for _ in range(2))
    given = [stored((400,), "int16", 0.001, 0), stored((400,), "int16", 0.0007, 0)]
    compare(layer(name, f"{name.title()}Options", given, stored((400,), "int16", 0.0017, 0)), [x, y], apart=1)


def real(*shape: int) -> np.ndarray:
    """Real numbers around 0.3."""
    return (rng.normal(size=shape) + 0.3).astype("float32")


@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_dense_layers_round_real_operands(asymmetric: bool, channels: int) -> None:
    x = real(4, 30)
    x[2] = 0
    data = layer(
        "FULLY_CONNECTED",
        "FullyConnectedOptions",
        [T(x.shape)],
        T((4, 5)),
        weights((5, 30), channels),
        const(real(5)),
        AsymmetricQuantizeInputs=asymmetric,
        FusedActivationFunction=1,
    )
    mod = compare(data, [x], [np.abs(x)], [-np.abs(x)])
    assert '"int32"' in mod.astext(show_meta_data=False)


@pytest.mark.parametrize("channels", [1, 4])
def test_convolutions_round_real_operands(channels: int) -> None:
    x = real(2, 5, 6, 3)
    data = layer(
        "CONV_2D",
        "Conv2DOptions",
        [T(x.shape)],
        T((2, 5, 6, 4)),
        weights((4, 3, 3, 3), channels),
        const(real(4)),
        **CONV,
    )
    compare(data, [x], [np.abs(x)])


def test_depthwise_convolutions_round_real_operands() -> None:
    x = real(2, 5, 6, 3)
    w = weights((1, 3, 3, 6), 6, axis=3)
    options = {"DepthMultiplier": 2, **CONV}
    data = layer("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", [T(x.shape)], T((2, 5, 6, 6)), w, const(real(6)), **options)
    compare(data, [x], [np.abs(x)])


@pytest.mark.parametrize("asymmetric", [False, True])
def test_products_of_matrices_round_real_operands(asymmetric: bool) -> None:
    x = real(2, 4, 30)
    w = const(rng.integers(-127, 128, (2, 30, 5)).astype("int8"), scale=[0.01], zero=[0])
    options = {"AsymmetricQuantizeInputs": asymmetric}
    compare(layer("BATCH_MATMUL", "BatchMatMulOptions", [T(x.shape)], T((2, 4, 5)), w, **options), [x])


def test_products_of_integer_matrices() -> None:
    x, y = (rng.integers(-128, 128, s).astype("int8") for s in ((2, 4, 30), (2, 30, 5)))
    given = [stored(x.shape, "int8", 0.05, 3), stored(y.shape, "int8", 0.02, 0)]
    mod = compare(layer("BATCH_MATMUL", "BatchMatMulOptions", given, stored((2, 4, 5), "int8", 0.4, -4)), [x, y], apart=1)
    assert "qnn.batch_matmul" in mod.astext(show_meta_data=False)


def test_products_of_wide_matrices() -> None:
    x, y = (rng.integers(-32768, 32768, s).astype("int16") for s in ((2, 4, 30), (2, 5, 30)))
    given = [stored(x.shape, "int16", 0.01, 0), stored(y.shape, "int16", 0.02, 0)]
    mod = compare(layer("BATCH_MATMUL", "BatchMatMulOptions", given, stored((2, 4, 5), "int16", 5.0, 0), AdjY=True), [x, y])
    assert 'out_dtype="int64"' in mod.astext(show_meta_data=False)


def test_transposed_convolutions() -> None:
    x = rng.integers(-128, 128, (1, 4, 5, 3)).astype("int8")
    w = weights((4, 3, 3, 3), 4)
    bias = const(rng.integers(-900, 900, 4).astype("int32"), scale=[s * 0.05 for s in w.scale], zero=[0] * 4)
    tensors = {
        "s": const(np.int32([1, 8, 10, 4])),
        "w": w,
        "x": stored(x.shape, "int8", 0.05, 3),
        "b": bias,
        "y": stored((1, 8, 10, 4), "int8", 0.1, -4),
    }
    op = Op("TRANSPOSE_CONV", ["s", "w", "x", "b"], ["y"], "TransposeConvOptions", {"StrideH": 2, "StrideW": 2}, version=3)
    mod = compare(file(tensors, [op], ["x"], ["y"]), [x], apart=1)
    assert "qnn.conv2d_transpose" in mod.astext(show_meta_data=False)


@pytest.mark.parametrize("channels", [1, 4])
def test_transposed_convolutions_round_real_operands(channels: int) -> None:
    x = real(2, 4, 5, 3)
    tensors = {
        "s": const(np.int32([2, 8, 10, 4])),
        "w": weights((4, 3, 3, 3), channels),
        "x": T(x.shape),
        "y": T((2, 8, 10, 4)),
    }
    op = Op("TRANSPOSE_CONV", ["s", "w", "x"], ["y"], "TransposeConvOptions", {"StrideH": 2, "StrideW": 2})
    compare(file(tensors, [op], ["x"], ["y"]), [x], [np.abs(x)])


@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_weights_with_a_zero_point(name: str) -> None:
    """Files of the first converters store uint8."""
    shapes = {
        "CONV_2D": ((1, 5, 6, 3), (4, 3, 3, 3), (1, 5, 6, 4), "Conv2DOptions"),
        "DEPTHWISE_CONV_2D": ((1, 5, 6, 3), (1, 3, 3, 6), (1, 5, 6, 6), "DepthwiseConv2DOptions"),
        "FULLY_CONNECTED": ((3, 20), (4, 20), (3, 4), "FullyConnectedOptions"),
    }
    shape, filters, result, kind = shapes[name]
    x = rng.integers(0, 256, shape).astype("uint8")
    w = const(rng.integers(0, 256, filters).astype("uint8"), scale=[0.02], zero=[117])
    bias = const(rng.integers(-900, 900, result[-1]).astype("int32"), scale=[0.001], zero=[0])
    more: dict[str, Any] = {} if name == "FULLY_CONNECTED" else dict(CONV)
    if name.startswith("DEPTHWISE"):
        more["DepthMultiplier"] = 2
    given, out = stored(shape, "uint8", 0.05, 121), stored(result, "uint8", 0.3, 130)
    compare(layer(name, kind, [given], out, w, bias, FusedActivationFunction=3, **more), [x], apart=1)


@pytest.mark.parametrize("how", [{}, {"HalfPixelCenters": True}, {"AlignCorners": True}], ids=["plain", "centres", "corners"])
def test_mixed_pixels_are_exact(how: dict[str, bool]) -> None:
    """Halves, too: stored numbers are mixed, whatever their scale."""
    size = [11, 15] if "AlignCorners" in how else [12, 16]
    image, out = (stored((1, *extents, 5), "int8", 0.0371, 9) for extents in ((6, 8), size))
    content = layer("RESIZE_BILINEAR", "ResizeBilinearOptions", [image], out, const(np.array(size, np.int32)), **how)
    compare(content, [rng.integers(-128, 128, (1, 6, 8, 5)).astype("int8")])
