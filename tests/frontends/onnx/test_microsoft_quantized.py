"""Quantised operators of com.microsoft, against onnxruntime: integers at most 1 apart."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import differ

rng = np.random.default_rng(11)
MS = "com.microsoft"
SCALES = {
    "xs": np.float32(0.037),
    "xz": np.uint8(120),
    "ys": np.float32(0.021),
    "yz": np.uint8(131),
    "zs": np.float32(0.05),
    "zz": np.uint8(117),
}
WEIGHTS = {name: np.array(value) for name, value in SCALES.items()}


def ints(*shape) -> np.ndarray:
    return rng.integers(0, 256, shape).astype("uint8")


def small(*shape) -> np.ndarray:
    return rng.integers(-64, 64, shape).astype("int8")


def reals(*shape) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def run(layer, given, weights=None, outputs=("y",)) -> float:
    shapes = {name: x.shape for name, x in given.items()}
    dtypes = {name: x.dtype.name for name, x in given.items()}
    return differ(model([layer], shapes, outputs, {**WEIGHTS, **(weights or {})}, dtypes=dtypes), given)


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
def test_two_operands(kind: str) -> None:
    layer = node(kind, ["x", "xs", "xz", "v", "ys", "yz", "zs", "zz"], domain=MS)
    assert run(layer, {"x": ints(2, 3, 4), "v": ints(3, 4)}) <= 1


@pytest.mark.parametrize(
    "kind, attrs",
    [
        ("QLinearLeakyRelu", {"alpha": 0.1}),
        ("QLinearSigmoid", {}),
        ("QLinearSoftmax", {"axis": -1, "opset": 13}),
        ("QLinearSoftmax", {"axis": 1, "opset": 11}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearGlobalAveragePool", {"channels_last": 1}),
        ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("QLinearAveragePool", {"kernel_shape": [3, 2], "count_include_pad": 1, "auto_pad": "SAME_UPPER"}),
    ],
)
def test_one_operand(kind: str, attrs) -> None:
    scales = {"zs": np.array(1 / 256, "float32"), "zz": np.array(0, "uint8")} if "Softmax" in kind or "Sigm" in kind else {}
    assert run(node(kind, ["x", "xs", "xz", "zs", "zz"], domain=MS, **attrs), {"x": ints(2, 4, 6, 6)}, scales) <= 1


def test_joining_and_choosing() -> None:
    joined = node("QLinearConcat", ["zs", "zz", "x", "xs", "xz", "v", "ys", "yz"], domain=MS, axis=1)
    assert run(joined, {"x": ints(2, 3), "v": ints(2, 5)}) <= 1
    chosen = node("QLinearWhere", ["c", "x", "xs", "xz", "v", "ys", "yz", "zs", "zz"], domain=MS)
    assert run(chosen, {"c": rng.random((3, 4)) < 0.5, "x": ints(3, 4), "v": ints(3, 4)}) <= 1


@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("whole", [True, False])
def test_gemm(trans: int, whole: bool) -> None:
    weights = {
        "w": small(5, 4) if trans else small(4, 5),
        "ws": rng.uniform(0.01, 0.02, 5).astype("float32"),
        "wz": np.zeros(5, "int8"),
        "b": rng.integers(-500, 500, 5).astype("int32"),
    }
    names = ["x", "xs", "xz", "w", "ws", "wz", "b", *(["zs", "zz"] if whole else [])]
    assert run(node("QGemm", names, domain=MS, transB=trans, alpha=0.5), {"x": ints(3, 4)}, weights) <= (1 if whole else 1e-5)


def test_products_with_real_results() -> None:
    weights = {"w": small(4, 5), "ws": np.array(0.02, "float32"), "wz": np.array(3, "int8"), "b": reals(5)}
    layer = node("MatMulIntegerToFloat", ["x", "w", "xs", "ws", "xz", "wz", "b"], domain=MS)
    assert run(layer, {"x": ints(2, 3, 4)}, weights) <= 1e-5
    layer = node("DynamicQuantizeMatMul", ["x", "w", "ws", "wz", "b"], domain=MS)
    assert run(layer, {"x": reals(2, 3, 4)}, weights) <= 1e-5


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_of_few_bits(bits: int, zeros: bool) -> None:
    columns, rows, size = 64, 6, 32
    weights = {"w": ints(rows, columns // size, size * bits // 8), "s": rng.uniform(0.01, 0.1, (rows, 2)).astype("float32")}
    if zeros:
        weights["wz"] = ints(rows, -(-2 * bits // 8))
    layer = node("MatMulNBits", ["x", "w", "s", *(["wz"] if zeros else [])], domain=MS, N=rows, K=columns, bits=bits, block_size=size)
    assert run(layer, {"x": reals(2, 3, columns)}, weights) <= 1e-5


def test_rows_of_quantised_tables() -> None:
    weights = {"t": ints(10, 32), "s": rng.uniform(0.01, 0.1, (10, 2)).astype("float32")}
    layer = node("GatherBlockQuantized", ["t", "i", "s"], domain=MS, bits=8, block_size=16, quantize_axis=1)
    assert run(layer, {"i": rng.integers(0, 10, (2, 3))}, weights) <= 1e-5


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_an_lstm_of_quantised_weights(direction: str) -> None:
    d = 2 if direction == "bidirectional" else 1
    weights = {
        "w": small(d, 3, 16),
        "r": small(d, 4, 16),
        "b": reals(d, 32),
        "ws": np.full(d, 0.02, "float32"),
        "wz": np.zeros(d, "int8"),
        "rs": np.full(d, 0.01, "float32"),
        "rz": np.zeros(d, "int8"),
    }
    names = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    layer = node("DynamicQuantizeLSTM", names, ["y", "h", "c"], domain=MS, hidden_size=4, direction=direction)
    # A number between two quantised ones may go either way, and the recurrence carries it on.
    assert run(layer, {"x": reals(5, 1, 3)}, weights, ("y", "h", "c")) <= 1e-2
