"""Networks that onnxruntime's own tools quantise and optimise, in all forms that they write.

All results are equal but in two places. FakeQuantizationToInteger rounds twice where the network rounds once. The
runtime QLinearSoftmax takes its powers from a table. Its results are 1 apart, and what follows by a few.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

import relaylang as relay
from relaylang.frontends.onnx import import_onnx
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import ours, theirs

rng = np.random.default_rng(29)
_START = rng.bit_generator.state


@pytest.fixture(autouse=True)
def _the_same_numbers_in_any_order() -> None:
    rng.bit_generator.state = _START


def reals(*shape) -> np.ndarray:
    return (rng.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype("float32")


def conv_net() -> tuple[bytes, tuple[int, ...]]:
    """Convolutions with a residual sum, pools, a classifier."""
    weights = {
        "w1": reals(8, 3, 3, 3),
        "b1": reals(8),
        "w2": reals(8, 8, 3, 3),
        "b2": reals(8),
        "w3": reals(8, 1, 3, 3),
        "b3": reals(8),
        "s": np.array([0, -1]),
        "wd": reals(8, 5),
        "bd": reals(5),
    }
    pads = {"pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], **pads),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["c", "w2", "b2"], ["d"], **pads),
        node("LeakyRelu", ["d"], ["e"], alpha=0.1),
        node("Add", ["c", "e"], ["f"]),
        node("Conv", ["f", "w3", "b3"], ["g"], group=8, **pads),
        node("Sigmoid", ["g"], ["h"]),
        node("Mul", ["g", "h"], ["i"]),
        node("GlobalAveragePool", ["i"], ["j"]),
        node("Reshape", ["j", "s"], ["k"]),
        node("Gemm", ["k", "wd", "bd"], ["y"]),
    ]
    return model(nodes, {"x": (1, 3, 8, 8)}, weights=weights, opset=17), (1, 3, 8, 8)


def transformer() -> tuple[bytes, tuple[int, ...]]:
    """One block: attention of two heads, and a layer of width 32 with GELU."""
    weights = {name: reals(16, 16).T * 2 for name in ("wq", "wk", "wv", "wo")} | {
        "w1": reals(16, 32),
        "b1": reals(32),
        "w2": reals(32, 16),
        "b2": reals(16),
        "g": np.ones(16, "float32"),
        "t": reals(16),
        "bq": reals(16),
        "bk": reals(16),
        "bv": reals(16),
        "bo": reals(16),
        "h": np.array([0, 0, 2, 8]),
        "m": np.array([0, 0, 16]),
        "r": np.array(np.sqrt(8), "float32"),
        "half": np.array(0.5, "float32"),
        "one": np.array(1, "float32"),
        "two": np.array(np.sqrt(2), "float32"),
    }
    nodes = [node("LayerNormalization", ["x", "g", "t"], ["n"])]
    for p, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            node("MatMul", ["n", f"w{p}"], [f"{p}0"]),
            node("Add", [f"{p}0", f"b{p}"], [f"{p}1"]),
            node("Reshape", [f"{p}1", "h"], [f"{p}2"]),
            node("Transpose", [f"{p}2"], [p], perm=perm),
        ]
    nodes += [
        node("MatMul", ["q", "k"], ["s0"]),
        node("Div", ["s0", "r"], ["s1"]),
        node("Softmax", ["s1"], ["s"], axis=-1),
        node("MatMul", ["s", "v"], ["o0"]),
        node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["o1", "m"], ["o2"]),
        node("MatMul", ["o2", "wo"], ["o3"]),
        node("Add", ["o3", "bo"], ["o4"]),
        node("Add", ["x", "o4"], ["z"]),
        node("LayerNormalization", ["z", "g", "t"], ["f"]),
        node("MatMul", ["f", "w1"], ["f1"]),
        node("Add", ["f1", "b1"], ["f2"]),
        node("Div", ["f2", "two"], ["e0"]),
        node("Erf", ["e0"], ["e1"]),
        node("Add", ["e1", "one"], ["e2"]),
        node("Mul", ["f2", "e2"], ["e3"]),
        node("Mul", ["e3", "half"], ["e4"]),
        node("MatMul", ["e4", "w2"], ["u"]),
        node("Add", ["u", "b2"], ["u2"]),
        node("Add", ["z", "u2"], ["y"]),
    ]
    return model(nodes, {"x": (1, 6, 16)}, weights=weights, opset=17), (1, 6, 16)


NETWORKS = {"conv": conv_net, "transformer": transformer}


def saved(folder, data: bytes):
    proto = onnx.shape_inference.infer_shapes(onnx.ModelProto.FromString(data))
    proto.ir_version = 10
    path = folder / "net.onnx"
    onnx.save(proto, str(path))
    return str(path)


def quantised(folder, name: str, form: str, **options) -> tuple[bytes, np.ndarray]:
    """The network in a form that onnxruntime's quantiser writes, and an input."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    logging.disable(logging.WARNING)
    data, shape = NETWORKS[name]()
    source, target = saved(folder, data), str(folder / "int8.onnx")
    # Weights of 7 bits: products of uint8 and int8 saturate on some machines with 8.
    if form == "dynamic":
        quantization.quantize_dynamic(source, target, weight_type=quantization.QuantType.QInt8, reduce_range=True)
    else:
        samples = iter([{"x": rng.normal(size=shape).astype("float32")} for _ in range(8)])

        class Reader(quantization.CalibrationDataReader):
            def get_next(self):
                return next(samples, None)

        quantization.quantize_static(
            source,
            target,
            Reader(),
            quant_format=getattr(quantization.QuantFormat, form),
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            reduce_range=True,
            **options,
        )
    logging.disable(logging.NOTSET)
    return (folder / "int8.onnx").read_bytes(), rng.normal(size=shape).astype("float32")


def step_of(data: bytes) -> float:
    """The scale of the last quantised number."""
    proto = onnx.ModelProto.FromString(data)
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in proto.graph.initializer}
    layers = [n for n in proto.graph.node if n.op_type == "DequantizeLinear"]
    return float(weights[layers[-1].input[1]].max()) if layers else 0.0


@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator", "dynamic"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_quantised_networks(tmp_path, name: str, form: str, per_channel: bool) -> None:
    options = {} if form == "dynamic" else {"per_channel": per_channel}
    data, x = quantised(tmp_path, name, form, **options)
    found, wanted = ours(data, {"x": x})[0], theirs(data, {"x": x})[0]
    apart = np.abs(found - wanted).max()
    if form == "dynamic":
        assert apart <= 1e-5 * np.abs(wanted).max() + (0.02 if name == "transformer" else 0), apart
    else:
        assert apart <= (0 if name == "conv" else 1.01 * step_of(data)), (apart, step_of(data))


@pytest.mark.parametrize("name", list(NETWORKS))
def test_the_form_with_dequantised_operands_becomes_integers(tmp_path, name: str) -> None:
    data, x = quantised(tmp_path, name, "QDQ")
    mod = import_onnx(data).module
    whole = relay.transform.InferType()(relay.transform.FakeQuantizationToInteger()(relay.transform.InferType()(mod)))
    text = whole.astext()
    assert "qnn.conv2d" in text if name == "conv" else "qnn.dense" in text
    found = np.asarray(relay.create_executor("debug", whole).evaluate()(x))
    wanted = theirs(data, {"x": x})[0]
    # Layer normalisation spreads what the many sums of the transformer round.
    assert np.abs(found - wanted).max() <= {"conv": 1.01, "transformer": 8.01}[name] * step_of(data)


@pytest.mark.parametrize("level", ["ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"])
@pytest.mark.parametrize("form", ["float", "QDQ", "QOperator", "dynamic"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_optimised_networks(tmp_path, name: str, form: str, level: str) -> None:
    import onnxruntime as runtime

    if form == "float":
        data, shape = NETWORKS[name]()
        x = rng.normal(size=shape).astype("float32")
    else:
        data, x = quantised(tmp_path, name, form)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": x})[0]
    proto = onnx.load(str(tmp_path / "optimised.onnx"))
    if any(n.domain in ("com.microsoft.nchwc",) for n in proto.graph.node):
        pytest.skip("the layout of blocks of channels belongs to one machine")
    found = ours(proto.SerializeToString(), {"x": x})[0]
    apart = np.abs(found - wanted).max()
    step = step_of(data) if form in ("QDQ", "QOperator") else 0.0
    assert apart <= 3.01 * step + 1e-5 * np.abs(wanted).max() + (0.02 if form == "dynamic" else 0), (apart, step)
