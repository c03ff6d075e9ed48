"""Files that are damaged, or hold what cannot be converted, get diagnostics."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.keras import import_keras
from tests.frontends.keras.recorded import files

h5py = pytest.importorskip("h5py")
FILES = dict(files())


def whole(layers: list[Any], arrays: dict[str, list[np.ndarray]] | None = None, **config: Any) -> bytes:
    """A `.h5` file of Keras 2 with these layers."""
    out = io.BytesIO()
    kind = "Functional" if "input_layers" in config else "Sequential"
    with h5py.File(out, "w") as file:
        file.attrs["keras_version"] = "2.9.0"
        file.attrs["model_config"] = json.dumps({"class_name": kind, "config": {"name": "net", "layers": layers, **config}})
        weights = file.create_group("model_weights")
        for name, values in (arrays or {}).items():
            group = weights.create_group(name)
            group.attrs["weight_names"] = [f"w{i}".encode() for i in range(len(values))]
            for i, value in enumerate(values):
                group[f"w{i}"] = value
    return out.getvalue()


def layer(kind: str, name: str, calls: list[Any] | None = None, **config: Any) -> dict[str, Any]:
    made = {"class_name": kind, "config": {"name": name, **config}, "name": name}
    return made if calls is None else {**made, "inbound_nodes": calls}


GIVEN = layer("InputLayer", "x", batch_input_shape=[2, 4])


def says(data: bytes) -> str:
    with pytest.raises(RelayError) as wrong:
        import_keras(data, file="net.h5")
    return "\n".join(text for d in wrong.value.diagnostics for text in (d.code, d.title, *d.notes))


def test_all_unknown_layers_are_listed_at_once() -> None:
    said = says(whole([GIVEN, layer("Lambda", "f"), layer("Custom", "g"), layer("Lambda", "h"), layer("Custom", "i")]))
    assert "4 layers of 2 operators" in said and "2 x Lambda" in said and "its code is Python" in said and "first in g" in said


def test_files_without_a_network() -> None:
    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        file.attrs["layer_names"] = [b"dense"]
    assert "weights alone" in says(out.getvalue())
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("config.json", "{}")
    assert "no model.weights.h5" in says(archive.getvalue())
    assert "no JSON text" in says(whole([]).replace(b'{"class_name"', b'["class_name"'))


@pytest.mark.parametrize("name", ["lstm.3.keras", "conv2d.3.h5"])
def test_cut_files(name: str) -> None:
    for part in (0.3, 0.9):
        assert "R0802" in says(FILES[name][: int(len(FILES[name]) * part)])


def test_links_to_other_files_are_refused() -> None:
    out = io.BytesIO(whole([GIVEN, layer("Dense", "d", units=3)], {"d": []}))
    with h5py.File(out, "r+") as file:
        group = file["model_weights/d"]
        group.attrs["weight_names"] = [b"w"]
        group["w"] = h5py.ExternalLink("/etc/passwd", "/w")
    assert "is a link to another place" in says(out.getvalue())


def test_missing_weights_and_weights_of_another_shape() -> None:
    dense = layer("Dense", "d", units=3)
    assert "it has 0 weights, and it needs more" in says(whole([GIVEN, dense]))
    wrong = [np.ones((5, 3), "float32"), np.ones(3, "float32")]
    assert "R0" in says(whole([GIVEN, dense], {"d": wrong}))


def test_a_cycle_and_a_missing_layer() -> None:
    add = layer("Add", "a", [[["x", 0, 0, {}], ["b", 0, 0, {}]]])
    loop = layer("Activation", "b", [[["a", 0, 0, {}]]], activation="relu")
    ends = {"input_layers": [["x", 0, 0]], "output_layers": [["b", 0, 0]]}
    assert "takes its own result" in says(whole([{**GIVEN, "inbound_nodes": []}, add, loop], **ends))
    assert "takes its own result, or that of no layer" in says(whole([{**GIVEN, "inbound_nodes": []}, loop], **ends))


def test_hostile_sizes() -> None:
    assert "R0" in says(whole([GIVEN, layer("RepeatVector", "r", n=1 << 50)]))


def test_an_operand_that_is_no_tensor() -> None:
    crop = layer("CenterCrop", "c", [[[{"a": 1}]]], height=2, width=2)
    assert "R0" in says(whole([{**GIVEN, "inbound_nodes": []}, crop], input_layers=[["x", 0, 0]], output_layers=[["c", 0, 0]]))
