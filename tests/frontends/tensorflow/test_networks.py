"""SavedModels and frozen graphs of small networks against what TensorFlow recorded."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.cli import main
from relaylang.diagnostics import RelayError
from relaylang.frontends.options import Options
from relaylang.frontends.tensorflow import import_tensorflow
from relaylang.interpreter.evaluate import Evaluator
from tests.frontends.tensorflow.recorded import Network, networks, same

pytest.importorskip("google.protobuf", reason="the importer reads messages by protobuf")
NAMES = [
    "attention",
    "both_ways",
    "branches",
    "convolutions",
    "gru_40",
    "gru_5",
    "lstm_40",
    "lstm_5",
    "lstm_frames",
    "lstm_functions",
    "old",
    "quantised",
    "signature",
    "simplernn_40",
    "simplernn_5",
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Network]:
    return networks(tmp_path_factory.mktemp("networks"))


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(t), "") if t.isdigit() else (-1, t) for t in re.split(r"(\d+)", name)]


def _check(network: Network, options: Options) -> None:
    imported = import_tensorflow(str(network.path), options)
    assert relay.infer(imported.module, fresh=True) == []
    given = network.inputs | imported.params
    found = Evaluator(imported.module).call("main", tuple(given[p.name_hint] for p in imported.module["main"].params))
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(network.outputs)
    for value, name in zip(found, sorted(network.outputs, key=_by_number)):
        same(np.asarray(value), network.outputs[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_network_computes_what_tensorflow_does(recorded: dict[str, Network], name: str) -> None:
    _check(recorded[name], Options())


@pytest.mark.parametrize("options", [Options(freeze=False), Options(layout="NCHW")], ids=["weights", "layout"])
def test_a_network_with_options(recorded: dict[str, Network], options: Options) -> None:
    for name in ("convolutions", "gru_5", "old"):
        _check(recorded[name], options)


def test_tvms_names_read_both_kinds(recorded: dict[str, Network]) -> None:
    from relaylang.tvm.tensorflow_parser import TFParser

    for name in ("signature", "quantised"):
        network = recorded[name]
        mod, params = relay.frontend.from_tensorflow(TFParser(str(network.path)).parse())
        assert len(params) > 0
        assert [p.name_hint for p in mod["main"].params[: len(network.inputs)]] == list(network.inputs)
    mod, _ = relay.frontend.from_tensorflow(recorded["quantised"].path.read_bytes(), layout="NCHW", shape={"x": (7, 3)})
    assert mod["main"].params[0].checked_type.shape == (7, 3)


def test_the_command_takes_folders_and_files(recorded: dict[str, Network], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old", "branches"):
        assert main(["import", str(recorded[name].path), "-o", str(tmp_path / "net.relay")]) == 0
        assert main(["check", str(tmp_path / "net.relay")]) == 0
        assert main(["print", str(recorded[name].path), "-o", str(tmp_path / "again.relay")]) == 0


def test_missing_parts_of_a_saved_model_are_named(recorded: dict[str, Network], tmp_path: Path) -> None:
    folder = tmp_path / "net"
    shutil.copytree(recorded["old"].path, folder)
    variables = folder / "variables"
    data, index = variables / "variables.data-00000-of-00001", variables / "variables.index"

    def refused() -> str:
        with pytest.raises(RelayError) as raised:
            import_tensorflow(str(folder))
        return raised.value.diagnostics[0].title

    with pytest.raises(RelayError, match="give the folder"):
        import_tensorflow((folder / "saved_model.pb").read_bytes())
    whole = data.read_bytes()
    data.write_bytes(whole[:-8])
    assert "and the file at" in refused()
    data.unlink()
    assert f"{data}, is missing" in refused()
    index.write_bytes(index.read_bytes()[:-1])
    assert "index of the variables" in refused()
    index.unlink()
    assert f"{index}, is missing" in refused()
    (folder / "saved_model.pb").unlink()
    with pytest.raises(RelayError) as raised:
        import_tensorflow(str(folder))
    assert raised.value.diagnostics[0].code == "R0001"
