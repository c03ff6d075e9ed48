"""Small networks from Keras's files give Keras's own results."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.keras import import_keras
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from tests.frontends.keras.recorded import files, results

h5py = pytest.importorskip("h5py")
FILES = dict(files())


def called(mod: relay.IRModule, given: dict[str, np.ndarray], params: dict[str, np.ndarray] | None = None) -> list[np.ndarray]:
    """The results of @main. A model of one input may have another name for it."""
    values = {**given, **(params or {})}
    names = [p.name_hint for p in mod["main"].params]
    only = next(iter(given.values()))
    found = Evaluator(mod).call("main", [values.get(n, only) if len(given) == 1 else values[n] for n in names])
    return [np.asarray(v) for v in found] if isinstance(found, tuple) else [np.asarray(found)]


def same(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert [f.shape for f in found] == [w.shape for w in wanted]
    for f, w in zip(found, wanted):
        assert f.dtype == w.dtype
        close = 1e-5 * max(float(np.abs(w.astype("float64")).max(initial=0)), 1e-3)
        np.testing.assert_allclose(f.astype("float64"), w.astype("float64"), rtol=0, atol=close)


@pytest.mark.parametrize("name", FILES)
def test_a_network_gives_the_recorded_results(name: str) -> None:
    mod = import_keras(FILES[name], file=name).module
    assert relay.infer(mod, fresh=True) == []
    same(called(mod, *results(name)[:1]), results(name)[1])


@pytest.mark.parametrize("name", ["conv2d.3.keras", "nested.3.h5", "lstm_both_masked.2.h5"])
def test_the_text_means_the_same(name: str) -> None:
    mod = import_keras(FILES[name], file=name).module
    assert structural_equal(relay.parse(mod.astext()), mod)


@pytest.mark.parametrize("name", ["conv2d.3.keras", "shapes2d.3.keras", "sequential.2.h5"])
def test_from_keras_turns_pictures_around(name: str) -> None:
    """The default layout NCHW is that of inputs, convolutions and outputs of four axes; weights are parameters."""
    (given, wanted) = results(name)
    mod, params = relay.frontend.from_keras(FILES[name])
    assert 'data_layout="NHWC"' not in mod.astext(show_meta_data=False)
    turned = {n: np.ascontiguousarray(x.transpose(0, 3, 1, 2)) for n, x in given.items()}
    same(called(mod, turned, params), [w.transpose(0, 3, 1, 2) if w.ndim == 4 else w for w in wanted])
    mod, params = relay.frontend.from_keras(FILES[name], layout="NHWC")
    same(called(mod, given, params), wanted)


def test_shapes_and_values_of_inputs() -> None:
    given, wanted = results("merges.3.keras")
    options = Options({"given0": (2, 4, 3)}, values={"given1": given["given1"]})
    mod = import_keras(FILES["merges.3.keras"], options).module
    assert [p.name_hint for p in mod["main"].params] == ["given0", "given2"]
    same(called(mod, {k: v for k, v in given.items() if k != "given1"}), wanted)


def with_open_batch(name: str) -> bytes:
    """A recorded archive whose inputs state no batch."""
    source, target = zipfile.ZipFile(io.BytesIO(FILES[name])), io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for member in source.namelist():
            data = source.read(member)
            archive.writestr(member, re.sub(rb'("(?:batch_)?shape": \[)2,', rb"\1null,", data) if member == "config.json" else data)
    return target.getvalue()


@pytest.mark.parametrize(("name", "count"), [("conv2d.3.keras", 1), ("merges.3.keras", 3), ("nested.3.keras", 1)])
def test_open_batches_have_one_name(name: str, count: int) -> None:
    given, wanted = results(name)
    mod = import_keras(with_open_batch(name)).module
    main = mod["main"]
    batch = main.type_params[0]
    assert (batch.name_hint, len(main.type_params), len(main.params)) == ("batch", 1, count)
    assert all(p.type_annotation.shape[0] is batch for p in main.params)
    assert structural_equal(relay.parse(mod.astext()), mod)
    same(called(mod, given), wanted)
    known = import_keras(with_open_batch(name), Options({"batch": (2,)})).module
    assert structural_equal(known, import_keras(FILES[name]).module)


def test_the_batch_is_one_number() -> None:
    with pytest.raises(RelayError) as failed:
        import_keras(with_open_batch("conv2d.3.keras"), Options({"batch": (2, 3)}), file="net.keras")
    assert failed.value.diagnostics[0].title == "net.keras: batch is an extent, and its number must be one, not (2, 3)"


def live(name: str) -> Any:
    """What the importer asks of a model object, from a file."""
    import json

    with h5py.File(io.BytesIO(FILES[name]), "r") as file:
        config = json.loads(file.attrs["model_config"])
        layers = []
        for layer in config["config"]["layers"]:
            group = file["model_weights"].get(layer["config"]["name"])
            arrays = [] if group is None else [np.array(group[n]) for n in group.attrs["weight_names"]]
            layers.append(SimpleNamespace(name=layer["config"]["name"], get_weights=lambda a=arrays: a))
    kind = type(config["class_name"], (), {"__module__": "keras.src.models"})
    model = kind()
    model.get_config, model.layers, model.get_weights = (lambda: config["config"]), layers, list
    return model


@pytest.mark.parametrize("name", ["shared.3.h5", "gru_both.3.h5", "dense.3.h5"])
def test_a_model_object_is_taken(name: str) -> None:
    mod = import_keras(live(name)).module
    same(called(mod, results(name)[0]), results(name)[1])


def test_the_command_reads_both_kinds_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from relaylang.cli.command import main

    for name in ("dense.3.keras", "dense.2.h5"):
        path = tmp_path / name
        path.write_bytes(FILES[name])
        assert main(["check", str(path)]) == 0
    assert "2" in capsys.readouterr().out
