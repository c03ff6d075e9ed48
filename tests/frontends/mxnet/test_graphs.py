"""Small networks that MXNet saved: quantised and fused layers, control flow, steps of a cell."""

from __future__ import annotations

import json
import sys
import types
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


@pytest.mark.parametrize("name", ["quantised", "quantised_blocks", "fused", "cell", "foreach", "while_loop", "cond"])
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


def test_quantised_blocks_equal_mxnet_bit_for_bit() -> None:
    inputs, outputs = recorded("quantised_blocks")
    mod = imported("quantised_blocks")
    np.testing.assert_array_equal(np.asarray(Evaluator(mod).call("main", tuple(inputs.values()))), outputs[0])


class _Array:
    def __init__(self, value: np.ndarray) -> None:
        self.value = value

    def asnumpy(self) -> np.ndarray:
        return self.value

    def data(self) -> _Array:
        return self


class _Symbol:
    """What the importer uses of MXNet's Symbol."""

    def tojson(self) -> str:
        return (DATA / "cell-symbol.json").read_text(encoding="utf-8")


class _Block:
    """What the importer uses of MXNet's HybridBlock: its call with symbols, and its parameters."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights

    def __call__(self, *variables: object) -> _Symbol:
        assert variables == ("variable data",)
        return _Symbol()

    def collect_params(self) -> dict[str, _Array]:
        return {name: _Array(value) for name, value in self.weights.items()}


def test_symbols_and_blocks_in_memory_are_taken_by_their_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {k.partition(":")[2]: v for k, v in _saved().items()}
    inputs, outputs = recorded("cell")
    shape = {"data": inputs["data"].shape}
    for mod, params in (
        relay.frontend.from_mxnet(_Symbol(), shape, arg_params=weights),
        relay.frontend.from_mxnet(_Symbol(), shape, arg_params={k: _Array(v) for k, v in weights.items()}),
    ):
        given = {**params, **inputs}
        found = Evaluator(mod).call("main", tuple([given[p.name_hint] for p in mod["main"].params]))
        np.testing.assert_allclose(np.asarray(found[0]), outputs[0], rtol=1e-5, atol=1e-6)
    home = types.ModuleType("mxnet")
    home.sym = types.SimpleNamespace(var=lambda name: f"variable {name}")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mxnet", home)
    mod, params = relay.frontend.from_mxnet(_Block(weights), shape)
    given = {**params, **inputs}
    found = Evaluator(mod).call("main", tuple([given[p.name_hint] for p in mod["main"].params]))
    np.testing.assert_allclose(np.asarray(found[0]), outputs[0], rtol=1e-5, atol=1e-6)


def _saved() -> dict[str, np.ndarray]:
    from relaylang.frontends.mxnet.params import read_params
    from relaylang.runtime.budget import Budget

    path = DATA / "cell-0000.params"
    found = read_params(path.read_bytes(), str(path), Budget(str(path), path.stat().st_size))
    return {name if ":" in name else f"arg:{name}": value for name, value in found.items()}


def test_buffers_of_streams() -> None:
    """TVM's importer reads these operators, which a branch of MXNet had."""
    names = ("x", "kept", "low", "high")
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    for op, count in (("ring_buffer", 2), ("_contrib_quantized_ring_buffer", 4)):
        inputs = [[i, 0, 0] for i in range(count)]
        layer = {"op": op, "name": "y", "attrs": {"axis": "1"}, "inputs": inputs}
        heads = [[count, i, 0] for i in range(1 if count == 2 else 3)]
        symbol = json.dumps({"nodes": [*nodes[:count], layer], "arg_nodes": list(range(count)), "heads": heads})
        dtypes = dict(zip(names, ["int8" if count == 4 else "float32"] * 2 + ["float32"] * 2))
        shapes = dict(zip(names[:count], [(2, 1), (2, 3), (1,), (1,)]))
        mod = import_mxnet(symbol.encode(), Options(shapes, {n: dtypes[n] for n in names[:count]})).module
        x, kept = np.array([[9], [8]], dtypes["x"]), np.arange(6).reshape(2, 3).astype(dtypes["x"])
        found = Evaluator(mod).call("main", (x, kept, np.float32([-1]), np.float32([1]))[:count])
        newest = np.asarray(found[0] if count == 4 else found)
        np.testing.assert_array_equal(newest, [[1, 2, 9], [4, 5, 8]])
        assert newest.dtype == x.dtype
