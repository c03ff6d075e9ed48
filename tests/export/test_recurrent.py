"""Recurrent layers that were imported are exported as one layer of ONNX each."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import relaylang as relay
from relaylang.export import export_onnx
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.options import Options
from relaylang.ir import IRModule
from tests.export.peers import onnx_outputs
from tests.export.programs import interpreted
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import theirs
from tests.frontends.onnx.test_rnn import GATES, B, H, I, build, values

#: Numbers of steps: one, some that are written out, those of a loop, and an open one.
STEPS: dict[str, Any] = {"one": 1, "written": 5, "loop": 40, "open": "n"}
RELU = {"RNN": ["Relu"], "GRU": ["Sigmoid", "Relu"], "LSTM": ["Sigmoid", "Relu", "Relu"]}
FORMS: dict[str, dict[str, Any]] = {
    "forward": {},
    "reverse": {"direction": "reverse"},
    "both": {"directions": 2},
    "states": {"states": True},
    "lengths": {"directions": 2, "lengths": [3, 5]},
    "all": {"direction": "reverse", "lengths": [5, 2], "states": True},
    "clip": {"clip": 0.3},
    "both states": {"directions": 2, "states": True},
    "relu": {"activations": RELU},
}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "RNN": [{}],
    "GRU": [{}, {"linear_before_reset": 1}],
    "LSTM": [{}, {"peep": True}, {"input_forget": 1}],
}


def kinds(exported: Any) -> list[str]:
    return [n.op_type for n in exported.graph.node]


def apart(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    assert [f.shape for f in found] == [w.shape for w in wanted]
    return max(float(np.abs(f - w).max()) for f, w in zip(found, wanted))


def operands(exported: Any) -> dict[str, np.ndarray]:
    """The constant operands of the one layer by name, and its attributes."""
    onnx = pytest.importorskip("onnx")
    (layer,) = exported.graph.node
    arrays = {w.name: onnx.numpy_helper.to_array(w) for w in exported.graph.initializer}
    given = {f"operand {i}": arrays[name] for i, name in enumerate(layer.input) if name in arrays}
    return given | {a.name: np.asarray(onnx.helper.get_attribute_value(a)) for a in layer.attribute}


def stays_one_layer(kind: str, steps: Any, form: dict[str, Any]) -> None:
    count = steps if isinstance(steps, int) else 6
    form = dict(form)
    if "lengths" in form:
        form["lengths"] = [min(count, n) for n in form["lengths"]]
    if "activations" in form:
        form["activations"] = form["activations"][kind]
    data = build(kind, steps, **form)
    first = export_onnx(import_onnx(data).module)
    assert kinds(first) == [kind], form
    inputs = {"x": values(count, B, I)}
    # onnxruntime adds the terms of a sum in another order where the biases are one
    assert apart(theirs(first.SerializeToString(), inputs), theirs(data, inputs)) <= 1e-6, form
    again = operands(export_onnx(import_onnx(first.SerializeToString()).module))
    for name, array in operands(first).items():
        assert np.array_equal(array, again[name]), (form, name)


@pytest.mark.parametrize("form, steps", [("lengths", "written"), ("both states", "loop"), ("all", "open"), ("relu", "one")])
@pytest.mark.parametrize("kind", GATES)
def test_forms(kind: str, form: str, steps: str) -> None:
    stays_one_layer(kind, STEPS[steps], FORMS[form])


@pytest.mark.sweep
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("kind", GATES)
def test_every_form(kind: str, steps: str) -> None:
    for form in FORMS.values():
        for variant in VARIANTS[kind]:
            stays_one_layer(kind, STEPS[steps], {**form, **variant})


@pytest.mark.parametrize("outputs", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_some_outputs(outputs: tuple[int, ...]) -> None:
    names = ["y", "h", "c"]
    weights = {"w": values(2, 4 * H, I), "r": values(2, 4 * H, H)}
    layer = node(
        "LSTM", ["x", "w", "r"], [n if i in outputs else "" for i, n in enumerate(names)], hidden_size=H, direction="bidirectional"
    )
    data = model([layer], {"x": (5, B, I)}, [names[i] for i in outputs], weights, opset=14)
    made = export_onnx(import_onnx(data).module)
    assert kinds(made) == ["LSTM"]
    inputs = {"x": values(5, B, I)}
    assert apart(theirs(made.SerializeToString(), inputs), theirs(data, inputs)) <= 1e-6


@pytest.mark.parametrize("kind", GATES)
def test_operands_that_are_inputs(kind: str) -> None:
    """Lengths and states of the caller, an open batch, and weights that are not frozen."""
    shapes = {"x": (7, "b", I), "l": ("b",), "h": (2, "b", H)}
    weights = {"w": values(2, GATES[kind] * H, I), "r": values(2, GATES[kind] * H, H)}
    layer = node(kind, ["x", "w", "r", "", "l", "h"], ["y", "yh"], hidden_size=H, direction="bidirectional")
    data = model([layer], shapes, ["y", "yh"], weights, opset=14, dtypes={"l": "int32"})
    inputs = {"x": values(7, 3, I), "l": np.array([7, 1, 4], np.int32), "h": values(2, 3, H)}
    for freeze in (True, False):
        imported = import_bytes(data, "net.onnx", Options(freeze=freeze))
        assert imported is not None
        made = export_onnx(imported.module)
        assert kinds(made).count(kind) == 1 and "MatMul" not in kinds(made)
        given = [{**inputs, **imported.params}[i.name] for i in made.graph.input]
        assert apart(onnx_outputs(made, given), theirs(data, inputs)) <= 1e-6


def test_the_batch_first() -> None:
    weights = {"w": values(1, 3 * H, I), "r": values(1, 3 * H, H)}
    layer = node("GRU", ["x", "w", "r"], ["y", "yh"], hidden_size=H, layout=1)
    imported = import_onnx(model([layer], {"x": (B, 5, I)}, ["y", "yh"], weights, opset=14))
    made = export_onnx(imported.module)  # onnxruntime has this layout for no layer
    assert sorted(set(kinds(made))) == ["GRU", "Transpose"]
    inputs = [values(B, 5, I)]
    assert apart(onnx_outputs(made, inputs), interpreted(imported.module, inputs)) <= 1e-6


def test_a_program_that_was_written_down() -> None:
    imported = import_onnx(build("LSTM", "n", directions=2, lengths=[3, 4]))
    again = relay.transform.InferType()(relay.parse(imported.module.astext()))
    assert kinds(export_onnx(again)) == ["LSTM"]


def test_layers_above_each_other() -> None:
    weights = {"w": values(1, 3 * H, I), "r": values(1, 3 * H, H), "w2": values(1, 4 * H, H), "r2": values(1, 4 * H, H)}
    layers = [
        node("GRU", ["x", "w", "r"], ["y"], hidden_size=H),
        node("Squeeze", ["y", "axis"], ["z"]),
        node("LSTM", ["z", "w2", "r2"], ["u", "", "uc"], hidden_size=H),
    ]
    data = model(layers, {"x": (40, B, I)}, ["u", "uc"], {**weights, "axis": np.array([1])}, opset=14)
    made = export_onnx(import_onnx(data).module)
    assert kinds(made) == ["GRU", "Squeeze", "LSTM"]
    inputs = {"x": values(40, B, I)}
    assert apart(theirs(made.SerializeToString(), inputs), theirs(data, inputs)) <= 1e-6


# ---- steps that ONNX has no layer for


def same_without(module: IRModule, inputs: list[np.ndarray], kind: str) -> None:
    made = export_onnx(module)
    assert kind not in kinds(made)
    assert apart(onnx_outputs(made, inputs), interpreted(module, inputs)) <= 1e-6


@pytest.mark.parametrize("steps", [4, 40])
def test_other_activations_stay_steps(steps: int) -> None:
    same_without(import_onnx(build("RNN", steps, activations=["Softsign"])).module, [values(steps, B, I)], "RNN")


def test_an_inner_value_that_is_used_keeps_the_steps() -> None:
    imported = import_onnx(build("RNN", 4)).module
    steps = [n for n in relay.ir.post_order(imported["main"]) if getattr(getattr(n, "op", None), "name", "") == "tanh"]
    main: Any = imported["main"]
    for used, kept in ((steps[1], False), (steps[-1], True)):
        body = relay.Tuple([main.body, relay.exp(used)])
        module = relay.transform.InferType()(IRModule.from_expr(relay.Function(main.params, body)))
        made, inputs = export_onnx(module), [values(4, B, I)]
        assert ("RNN" in kinds(made)) == kept
        assert apart(onnx_outputs(made, inputs), interpreted(module, inputs)) <= 1e-6


@pytest.mark.parametrize("change", ["%1", "reversed", "shared"])
def test_what_only_looks_like_a_layer(change: str) -> None:
    """Steps of other weights, in another order, and of a sequence that begins later."""
    x, w, r, other = [relay.var(n, shape=s) for n, s in (("x", (3, B, I)), ("w", (H, I)), ("r", (H, H)), ("o", (H, H)))]
    state: Any = relay.const(np.ones((B, H), np.float32))
    rows = relay.split(relay.nn.dense(x, w), 3, axis=0)
    order = (0, 2, 1) if change == "reversed" else (1, 2) if change == "shared" else (0, 1, 2)
    for turn in order:
        weights = other if change == "%1" and turn == 1 else r
        state = relay.tanh(relay.squeeze(rows[turn], axis=[0]) + relay.nn.dense(state, weights))
    module = relay.transform.InferType()(IRModule.from_expr(relay.Function([x, w, r, other], state)))
    same_without(module, [values(3, B, I), values(H, I), values(H, H), values(H, H)], "RNN")


def test_two_products_are_no_step() -> None:
    text = """def @main(%a: Tensor[(2, 3), float32], %b: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
      tanh(nn.dense(%a, %w, units=4) + nn.dense(%b, %w, units=4))
    }"""
    module = relay.transform.InferType()(relay.parse(f'#[version = "0.0.5"]\n{text}'))
    assert "RNN" not in kinds(export_onnx(module))


def test_many_steps_in_linear_time() -> None:
    """Each step is compared with the one before it."""
    steps = 1000
    x, w, r = [relay.var(n, shape=s) for n, s in (("x", (steps, 1, 2)), ("w", (2, 2)), ("r", (2, 2)))]
    state: Any = relay.zeros((1, 2), "float32")
    rows = relay.split(relay.nn.dense(x, w), steps, axis=0)
    for turn in range(steps):
        state = relay.tanh(relay.squeeze(rows[turn], axis=[0]) + relay.nn.dense(state, r))
    module = relay.transform.InferType()(IRModule.from_expr(relay.Function([x, w, r], state)))
    assert kinds(export_onnx(module)) == ["Unsqueeze", "Unsqueeze", "RNN", "Squeeze"]


# ---- other importers


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("steps", [1, 4, pytest.param(40, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(
    "kind, options",
    [
        ("LSTM", {}),
        ("GRU", {}),
        ("RNN", {}),
        ("RNN", {"nonlinearity": "relu"}),
        ("GRU", {"bias": False, "bidirectional": True}),
        ("LSTM", {"bidirectional": True, "num_layers": 2, "batch_first": True}),
    ],
)
def test_torch(kind: str, options: dict[str, Any], steps: int) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = getattr(torch.nn, kind)(I, H, **options)

        def forward(self, input: Any, hx: Any = None, hx0: Any = None) -> Any:
            return self.net(input, hx if hx0 is None else (hx, hx0))

    whole = Net().eval()
    net = whole.net
    x = torch.randn(B, steps, I) if options.get("batch_first") else torch.randn(steps, B, I)
    count = net.num_layers * (1 + net.bidirectional)
    states = {"hx": torch.randn(count, B, H), "hx0": torch.randn(count, B, H)}
    for args in ((x,), (x, *list(states.values())[: 1 + (kind == "LSTM")])):
        file = io.BytesIO()
        torch.jit.save(torch.jit.trace(whole, args), file)
        given = {"input": x, **states}
        imported = import_bytes(file.getvalue(), "net.pt", Options({n: tuple(given[n].shape) for n in list(given)[: len(args)]}))
        assert imported is not None
        made = export_onnx(imported.module)
        assert kinds(made).count(kind) == net.num_layers and not {"MatMul", "Loop", "Tanh"} & set(kinds(made))
        inputs = [given[i.name].numpy() for i in made.graph.input]
        assert apart(onnx_outputs(made, inputs), interpreted(imported.module, inputs)) <= 1e-6


TFLITE = {"plain": {}, "cifg": {"cifg": True}, "peephole": {"peephole": True}, "relu": {"activation": 1}, "clip": {"clip": 0.3}}


@pytest.mark.parametrize("steps", [4, 40])
@pytest.mark.parametrize("form", TFLITE)
def test_tflite(form: str, steps: int) -> None:
    """ONNX does not clip cell states. It couples the forget gate to the input gate, not the other way round."""
    pytest.importorskip("tflite")
    from tests.frontends.tflite.files import T
    from tests.frontends.tflite.test_recurrent import BATCH, CELLS, DEPTH, gates
    from tests.frontends.tflite.test_recurrent import model as tflite_model

    options = TFLITE[form]
    found = gates(False, bool(options.get("cifg")), bool(options.get("peephole")), False, False)
    states = [T((BATCH, CELLS), variable=True) for _ in range(2)]
    data = tflite_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UnidirectionalSequenceLSTMOptions",
        [T((steps, BATCH, DEPTH)), *found[:17], *states],
        [(steps, BATCH, CELLS)],
        FusedActivationFunction=options.get("activation", 4),
        CellClip=options.get("clip", 0.0),
        TimeMajor=True,
    )
    imported = import_bytes(data, "net.tflite", Options())
    assert imported is not None
    made = export_onnx(imported.module)
    assert ("LSTM" in kinds(made)) == (form not in ("cifg", "clip")), kinds(made)
    inputs = [np.asarray(values(*[int(n) for n in p.checked_type.shape])) for p in imported.module["main"].params]
    assert apart(onnx_outputs(made, inputs), interpreted(imported.module, inputs)) <= 1e-5
