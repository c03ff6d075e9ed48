"""Recurrent layers in all their forms, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.frontends.onnx import import_onnx
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import differ

rng = np.random.default_rng(3)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
B, I, H = 2, 3, 4


def values(*shape) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def build(kind: str, steps, directions: int = 1, lengths=None, states: bool = False, peep: bool = False, batch=B, **attrs):
    gates = GATES[kind]
    weights = {"w": values(directions, gates * H, I), "r": values(directions, gates * H, H), "b": values(directions, 2 * gates * H)}
    names = ["x", "w", "r", "b", "", "", "", ""]
    if lengths is not None:
        weights["l"], names[4] = np.array(lengths, "int32"), "l"
    if states:
        for at, name in ((5, "h"), (6, "c"))[: 1 + (kind == "LSTM")]:
            weights[name], names[at] = values(directions, B, H), name
    if peep:
        weights["p"], names[7] = values(directions, 3 * H), "p"
    while not names[-1]:
        names.pop()
    outputs = ["y", "yh", "yc"][: 2 + (kind == "LSTM")]
    way = {1: attrs.pop("direction", "forward"), 2: "bidirectional"}[directions]
    layer = node(kind, names, outputs, hidden_size=H, direction=way, **attrs)
    return model([layer], {"x": (steps, batch, I)}, outputs, weights, opset=14)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"direction": "reverse"},
        {"directions": 2},
        {"states": True},
        {"directions": 2, "lengths": [3, 5]},
        {"direction": "reverse", "lengths": [5, 2], "states": True},
        {"clip": 0.3},
        {"directions": 2, "states": True},
    ],
)
@pytest.mark.parametrize("kind", list(GATES))
def test_forms(kind: str, form) -> None:
    assert differ(build(kind, 5, **form), {"x": values(5, B, I)}) <= 1e-5


@pytest.mark.parametrize(
    "kind, attrs",
    [
        ("GRU", {"linear_before_reset": 1}),
        ("GRU", {"linear_before_reset": 1, "directions": 2, "states": True}),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"peep": True, "states": True}),
        ("LSTM", {"peep": True, "directions": 2}),
        ("RNN", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}),
        (
            "RNN",
            {"activations": ["ScaledTanh", "LeakyRelu"], "directions": 2, "activation_alpha": [0.5, 0.2], "activation_beta": [0.7]},
        ),
        ("RNN", {"activations": ["Softsign"]}),
        ("RNN", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.3]}),
        ("RNN", {"activations": ["Softplus"]}),
        ("RNN", {"activations": ["Relu"]}),
        ("RNN", {"activations": ["Elu"], "activation_alpha": [0.4]}),
        ("LSTM", {"activations": ["HardSigmoid", "Relu", "Tanh"], "activation_alpha": [0.3], "activation_beta": [0.4]}),
        ("GRU", {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3], "activation_beta": [0.4]}),
    ],
)
def test_attributes(kind: str, attrs) -> None:
    assert differ(build(kind, 4, **attrs), {"x": values(4, B, I)}) <= 1e-5


@pytest.mark.parametrize("steps, count", [("t", 3), (40, 40)])
@pytest.mark.parametrize("kind", list(GATES))
def test_long_and_dynamic_sequences_are_loops(kind: str, steps, count: int) -> None:
    data = build(kind, steps, directions=2, lengths=[count, 2], batch="n")
    assert "recurrence" in import_onnx(data).module.astext()
    assert differ(data, {"x": values(count, B, I)}) <= 1e-5
