"""Small networks that MXNet saved: quantised and fused layers, control flow, steps of a cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.frontends.mxnet import import_mxnet
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import ANY, IRModule
from relaylang.ir.structural import structural_equal

DATA = Path(__file__).parent / "data"


def recorded(name: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The inputs by name and the outputs of a network."""
    with np.load(DATA / f"{name}.npz") as data:
        outputs = [data[key] for key in data.files if key.startswith("output")]
        return {key: data[key] for key in data.files if not key.startswith("output")}, outputs


def imported(name: str, **options: object) -> IRModule:
    shapes = {key: value.shape for key, value in recorded(name)[0].items()}
    mod = import_mxnet(DATA / f"{name}-symbol.json", Options(shapes, **options)).module  # type: ignore[arg-type]
    assert relay.infer(mod, fresh=True) == []
    assert structural_equal(relay.parse(mod.astext()), mod)
    return mod


def check(mod: IRModule, name: str, close: float = 1e-5) -> None:
    inputs, outputs = recorded(name)
    found = Evaluator(mod).call("main", tuple([inputs[p.name_hint] for p in mod["main"].params]))
    values = list(found) if isinstance(found, tuple) else [found]
    assert len(values) == len(outputs)
    for value, wanted in zip(values, outputs):
        assert np.asarray(value).shape == wanted.shape
        assert np.abs(np.asarray(value) - wanted).max() <= close * np.abs(wanted).max()


@pytest.mark.parametrize("name", ["quantised", "fused", "cell", "foreach", "while_loop", "cond"])
def test_a_network_computes_what_mxnet_computed(name: str) -> None:
    check(imported(name), name)


def test_quantised_layers_are_qnn_operators() -> None:
    text = imported("quantised").astext()
    assert text.count("qnn.conv2d(") == 2 and text.count("qnn.dense(") == 1 and "nn.batch_norm" not in text
    inputs, outputs = recorded("quantised")
    found = compile_module(imported("quantised"), "c").run(**inputs)
    assert np.abs(np.asarray(found) - outputs[0]).max() <= 1e-5 * np.abs(outputs[0]).max()


def test_a_loop_goes_over_an_unknown_number_of_slices() -> None:
    inputs, _ = recorded("foreach")
    shapes = {name: value.shape for name, value in inputs.items()} | {"data": (ANY, 2, 3)}
    mod = import_mxnet(DATA / "foreach-symbol.json", Options(shapes)).module  # type: ignore[arg-type]
    assert relay.infer(mod, fresh=True) == []
    check(mod, "foreach")


def test_a_condition_chooses_the_other_branch() -> None:
    inputs, _ = recorded("cond")
    mod = imported("cond")
    given = {**inputs, "i": np.float32([7])}
    found = Evaluator(mod).call("main", tuple([given[p.name_hint] for p in mod["main"].params]))
    assert np.allclose(np.asarray(found), inputs["first"] - inputs["fixed"])
