"""Quantised operators: qnn calls where scales are constants, the same numbers as onnxruntime's."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import relaylang as relay
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.onnx.table import table
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import differ, ours, theirs

rng = np.random.default_rng(7)


def ints(shape, dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def small(shape) -> np.ndarray:
    """Weights of 7 bits: onnxruntime's products of uint8 and int8 saturate on some machines with 8."""
    return rng.integers(-64, 64, shape).astype("int8")


def scalar(value, dtype: str = "float32") -> np.ndarray:
    return np.array(value, dtype)


def text(data: bytes) -> str:
    return import_onnx(data).module.astext()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_quantize_and_dequantize(dtype: str) -> None:
    zero = scalar(3, dtype)
    weights = {"s": scalar(0.037), "z": zero}
    data = model(
        [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"])], {"x": (4, 5)}, ["q", "y"], weights
    )
    x = rng.normal(size=(4, 5)).astype("float32") * 10
    assert "qnn.quantize" in text(data) and "qnn.dequantize" in text(data)
    assert differ(data, {"x": x}) == 0


def test_halves_of_computed_scales_go_to_the_even_number() -> None:
    data = model([node("QuantizeLinear", ["x", "s", "z"])], {"x": (6,), "s": (), "z": ()}, dtypes={"z": "int8"})
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], "float32")
    assert ours(data, {"x": x, "s": scalar(1), "z": scalar(0, "int8")})[0].tolist() == [0, 2, 2, 0, -2, -2]


def test_scales_of_channels_and_of_blocks() -> None:
    x = rng.normal(size=(3, 4)).astype("float32")
    channels = {"s": rng.uniform(0.01, 0.1, 4).astype("float32"), "z": ints(4, "uint8")}
    assert differ(model([node("QuantizeLinear", ["x", "s", "z"], axis=-1)], {"x": (3, 4)}, weights=channels), {"x": x}) == 0
    blocks = {"s": rng.uniform(0.01, 0.1, (3, 2)).astype("float32"), "z": ints((3, 2), "int8")}
    blocked = model([node("QuantizeLinear", ["x", "s", "z"], axis=1, block_size=2)], {"x": (3, 4)}, weights=blocks)
    assert differ(blocked, {"x": x}) == 0


def conv_model(kind: str, w_shape, dtype: str = "uint8", per_channel: bool = False, **attrs) -> bytes:
    wide = (w_shape[0],) if per_channel else ()
    weights = {
        "xs": scalar(0.02),
        "xz": scalar(5, dtype),
        "w": small(w_shape),
        "ws": rng.uniform(0.01, 0.03, wide).astype("float32"),
        "wz": np.zeros(wide, "int8"),
        "ys": scalar(0.9),
        "yz": scalar(7, dtype),
        "b": ints(w_shape[0], "int16").astype("int32"),
    }
    inputs = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"] if kind == "QLinearConv" else ["x", "w", "xz"]
    shape = (2, w_shape[1] * attrs.get("group", 1), *(9,) * (len(w_shape) - 2))
    return model([node(kind, inputs, **attrs)], {"x": shape}, weights=weights, dtypes={"x": dtype})


@pytest.mark.parametrize(
    "w_shape, attrs",
    [
        ((4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((4, 3, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((4, 1, 3, 3), {"group": 4}),
        ((4, 2, 3, 3), {"group": 2, "dilations": [2, 2]}),
        ((4, 3, 3), {"pads": [1, 0]}),
    ],
)
@pytest.mark.parametrize("kind", ["QLinearConv", "ConvInteger"])
def test_convolutions(kind: str, w_shape, attrs) -> None:
    data = conv_model(kind, w_shape, per_channel=kind == "QLinearConv", **attrs)
    shape = (2, w_shape[1] * attrs.get("group", 1), *(9,) * (len(w_shape) - 2))
    assert "qnn.conv2d" in text(data)
    assert differ(data, {"x": ints(shape, "uint8")}) <= (kind == "QLinearConv")


@pytest.mark.parametrize("x_shape, y_shape", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5))])
@pytest.mark.parametrize("kind", ["QLinearMatMul", "MatMulInteger"])
def test_products(kind: str, x_shape, y_shape) -> None:
    weights = {
        "xs": scalar(0.02),
        "xz": scalar(5, "uint8"),
        "w": small(y_shape),
        "ws": scalar(0.04),
        "wz": scalar(-3, "int8"),
        "ys": scalar(0.9),
        "yz": scalar(7, "uint8"),
    }
    inputs = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"] if kind == "QLinearMatMul" else ["x", "w", "xz", "wz"]
    data = model([node(kind, inputs)], {"x": x_shape}, weights=weights, dtypes={"x": "uint8"})
    assert differ(data, {"x": ints(x_shape, "uint8")}) <= (kind == "QLinearMatMul")


def test_dynamic_quantization() -> None:
    data = model([node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])], {"x": ("n", 5)}, ["q", "s", "z"])
    x = rng.normal(size=(4, 5)).astype("float32")
    for found, wanted in zip(ours(data, {"x": x}), theirs(data, {"x": x})):
        assert np.array_equal(found, wanted)


def test_weights_between_quantize_and_dequantize_are_constants() -> None:
    weights = {"w": rng.normal(size=(3, 3)).astype("float32"), "s": scalar(0.1), "z": scalar(0, "int8")}
    nodes = [node("QuantizeLinear", ["w", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["f"]), node("Add", ["x", "f"])]
    assert "qnn.quantize" not in text(model(nodes, {"x": (3, 3)}, weights=weights))


def test_a_quantised_network_becomes_integers() -> None:
    w = rng.normal(size=(4, 3, 3, 3)).astype("float32")
    weights = {
        "s": scalar(0.05),
        "z": scalar(128, "uint8"),
        "ws": np.abs(w).max((1, 2, 3)) / 127,
        "wz": np.zeros(4, "int8"),
        "w": np.round(w / (np.abs(w).max((1, 2, 3)) / 127)[:, None, None, None]).astype("int8"),
        "ys": scalar(0.2),
    }
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "s", "z"], ["xf"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0),
        node("Conv", ["xf", "wf"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("QuantizeLinear", ["r", "ys", "z"], ["y"]),
    ]
    data = model(nodes, {"x": (1, 3, 8, 8)}, ["y"], weights)
    if table().find("Conv", 21) is None:
        pytest.skip("convolutions are not converted")
    x = rng.normal(size=(1, 3, 8, 8)).astype("float32")
    mod = import_onnx(data).module
    whole = relay.transform.FakeQuantizationToInteger(hard_fail=True)(relay.transform.InferType()(mod))
    assert "qnn.conv2d" in whole.astext() and "nn.conv2d" not in whole.astext().replace("qnn.conv2d", "")
    found = relay.create_executor("debug", relay.transform.InferType()(whole)).evaluate()(x)
    assert np.abs(np.asarray(found).astype(int) - theirs(data, {"x": x})[0].astype(int)).max() <= 1
