"""Networks that MXNet 1.9.1 exported, with the results that it computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.mxnet import import_mxnet
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from tests.shared import SHARED

FOLDER = SHARED / "mxnet"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the networks are in ../shared/mxnet")


def expected(name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The inputs and outputs of a network."""
    with np.load(FOLDER / f"{name}-expected.npz") as data:
        return [[data[key] for key in sorted(data.files) if key.startswith(kind)] for kind in ("input", "output")]  # type: ignore[return-value]


def check(found: object, outputs: list[np.ndarray]) -> None:
    """The values are MXNet's, to 1e-5 of the largest."""
    values = list(found) if isinstance(found, tuple) else [found]
    assert len(values) == len(outputs)
    for value, wanted in zip(values, outputs):
        assert np.asarray(value).shape == wanted.shape
        assert np.abs(np.asarray(value) - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("name", ["layers", "sequence", "squeezenet1_1", "mobilenet0_25"])
def test_a_network_computes_what_mxnet_computed(name: str) -> None:
    inputs, outputs = expected(name)
    imported = import_mxnet(FOLDER / f"{name}-symbol.json", Options({"data": inputs[0].shape}))
    assert relay.infer(imported.module, fresh=True) == [] and imported.params == {}
    assert structural_equal(relay.parse(imported.module.astext()), imported.module)
    check(Evaluator(imported.module).call("main", tuple(inputs)), outputs)


def test_weights_are_parameters_as_in_tvm() -> None:
    inputs, outputs = expected("sequence")
    path = str(FOLDER / "sequence-symbol.json")
    mod, params = relay.frontend.from_mxnet(path, {"data": (2, 7)})
    names = [p.name_hint for p in mod["main"].params]
    assert names[0] == "data" and set(names[1:]) == set(params) and len(params) == 23
    check(Evaluator(mod).call("main", (inputs[0], *(params[n] for n in names[1:]))), outputs)
    args = {f"arg:{name}": value for name, value in params.items()}
    again, same = relay.frontend.from_mxnet(Path(path).read_text(), {"data": (2, 7)}, arg_params=args)
    assert structural_equal(again, mod) and set(same) == set(params)


def test_a_symbol_without_values_has_inputs_for_them() -> None:
    text = (FOLDER / "layers-symbol.json").read_text()
    mod, params = relay.frontend.from_mxnet(text, {"data": (2, 3, 16, 20)})
    shapes = {p.name_hint: tuple(p.checked_type.shape) for p in mod["main"].params}
    assert params == {} and shapes["res0_conv0_weight"] == (8, 3, 3, 3) and shapes["res0_dense0_weight"] == (10, 15808)


def test_a_file_without_its_parameters_names_them(tmp_path: Path) -> None:
    symbol = tmp_path / "layers-symbol.json"
    symbol.write_bytes((FOLDER / "layers-symbol.json").read_bytes())
    with pytest.raises(RelayError, match=r"17 of its inputs are weights, and no parameter file layers-\*.params is beside it"):
        import_mxnet(symbol, Options({"data": (2, 3, 16, 20)}))
