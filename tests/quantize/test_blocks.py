"""Weights of four bits in blocks: their error, the interpreter, compiled code, and onnxruntime's MatMulNBits."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.formats import import_bytes
from relaylang.ir import IRModule, post_order
from relaylang.quantize import quantize_weights
from relaylang.rules.quantization.blocks import in_blocks, packed
from tests.quantize.test_static import decibels, names, run

SOURCE = """#[version = "0.0.5"]
def @main(%x: Tensor[(3, 80), float32], %w: Tensor[(48, 80), float32], %v: Tensor[(5, 48), float32]) {
  nn.dense(nn.relu(nn.dense(%x, %w, units=48)), %v, units=5)
}"""


def network() -> tuple[IRModule, dict[str, np.ndarray]]:
    rng = np.random.default_rng(4)
    params = {"w": rng.normal(size=(48, 80)), "v": rng.normal(size=(5, 48))}
    return relay.parse(SOURCE), {name: value.astype("float32") for name, value in params.items()}


X = np.random.default_rng(5).normal(size=(3, 80)).astype("float32")


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("columns", [64, 70])
def test_no_weight_is_further_than_half_a_step(bits: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    weight = (rng.normal(size=(7, columns)) + rng.normal(size=(7, 1))).astype("float32")
    weight[3] = 0
    blocks = in_blocks(weight, bits, 32)
    assert blocks.codes.max() < 1 << bits and blocks.zeros.min() >= 0 and blocks.zeros.max() < 1 << bits
    real = (blocks.codes.astype("float64") - blocks.zeros[..., None]) * blocks.scales[..., None]
    # A zero point is rounded, too, so that 0 has a number.
    far = np.abs(real.reshape(7, -1)[:, :columns] - weight) / np.repeat(blocks.scales, 32, axis=1)[:, :columns]
    assert far.max() <= 1.001 and np.median(far) <= 0.3
    assert not real[3].any()


def test_bytes_hold_two_numbers_the_lower_first() -> None:
    assert packed(np.array([[1, 2, 3]]), 4).tolist() == [[0x21, 0x03]]


def test_programs_with_blocks() -> None:
    mod, params = network()
    made = quantize_weights(mod, params)
    assert "qnn.dequantize" in names(made) and relay.ir.structural_equal(relay.parse(made.astext()), made)
    wanted = run(mod, {"x": X}, params)
    found = run(made, {"x": X})
    assert decibels(wanted, found) > 18
    assert np.allclose(np.asarray(relay.evaluate(made, X)), found, rtol=1e-5, atol=1e-4)
    finer = run(quantize_weights(mod, params, block=16), {"x": X})
    assert decibels(wanted, finer) > decibels(wanted, found)


def test_models_of_onnxruntime_and_back() -> None:
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from relaylang.export import export_onnx

    made = quantize_weights(*network())
    model = export_onnx(made)
    (*_, last) = layers = [n for n in model.graph.node if n.op_type == "MatMulNBits"]
    assert len(layers) == 2 and "DequantizeLinear" not in {n.op_type for n in model.graph.node}
    assert {a.name: a.i for a in last.attribute} == {"K": 48, "N": 5, "bits": 4, "block_size": 32}
    shapes = {t.name: tuple(t.dims) for t in model.graph.initializer}
    assert shapes[layers[0].input[1]] == (48, 3, 16)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.allclose(session.run(None, {"x": X})[0], run(made, {"x": X}), rtol=1e-4, atol=1e-4)
    back = import_bytes(onnx.load_from_string(model.SerializeToString()).SerializeToString(), "net.onnx").module
    assert {"qnn.dequantize", "nn.dense"} <= names(back)
    assert np.array_equal(run(back, {"x": X}), run(made, {"x": X}))
    again = export_onnx(back)
    assert [n.op_type for n in again.graph.node] == [n.op_type for n in model.graph.node]


def test_bad_input() -> None:
    mod, params = network()
    with pytest.raises(RelayError, match="power of two"):
        quantize_weights(mod, params, block=20)
    with pytest.raises(RelayError, match="no layer dens_0"):
        quantize_weights(mod, params, ["dens_0"])
    with pytest.raises(RelayError, match="no dense layer"):
        quantize_weights(mod)
    with pytest.raises(RelayError, match="not finite"):
        quantize_weights(mod, {**params, "v": params["v"] * np.float32(np.nan)})
    kept = quantize_weights(mod, params, ["dense_0"])
    assert sum(getattr(getattr(n, "op", None), "name", "") == "qnn.dequantize" for n in post_order(kept["main"])) == 1
