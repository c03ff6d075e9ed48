"""Real networks exported again: they compute what their own runtime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tflite")

from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError
from relaylang.export import export_onnx, export_relax, export_stablehlo
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options
from tests.export import peers
from tests.export.peers import Iree, Relax
from tests.export.programs import flat
from tests.frontends import networks
from tests.frontends.onnx.test_networks import agree, imported
from tests.frontends.originals import feed, onnx_outputs
from tests.shared import few

TFLITE = ["face_detection_short_range.tflite", "palm_detection_lite.tflite", "hand_landmark_lite.tflite"]


def close(found: list[np.ndarray], wanted: list[np.ndarray], most: float = 1e-5) -> None:
    for f, w in zip(found, wanted, strict=True):
        assert f.shape == w.shape and np.abs(f - w).max() <= most * max(np.abs(w).max(), 1e-6)


@pytest.mark.parametrize("static", [True, pytest.param(False, marks=pytest.mark.sweep)], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", networks.names(".onnx"))
def test_onnx_and_back(name: str, static: bool) -> None:
    inputs = feed(name)
    try:
        model = export_onnx(imported(name, static).module)
    except RelayError as refused:
        assert not static, refused
        pytest.skip(refused.diagnostics[0].notes[0])
    given = {i.name: inputs[i.name] for i in model.graph.input}
    agree(name, onnx_outputs(model.SerializeToString(), given), inputs)


@pytest.mark.parametrize("name", few(TFLITE, "palm_detection_lite.tflite"))
def test_tflite_to_onnx(name: str) -> None:
    made = import_bytes(networks.data(name), name, Options())
    assert made is not None
    function: Any = made.module["main"]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(p.checked_type.shape).astype(p.checked_type.dtype) for p in function.params]
    wanted = flat(compile_module(made.module, "c").run(*inputs))
    close(peers.onnx_outputs(export_onnx(made.module), inputs), wanted)


@pytest.mark.sample(2)
@pytest.mark.sweep
@pytest.mark.parametrize("format", ["stablehlo", "relax"])
@pytest.mark.parametrize("name", ["ch_ppocr_mobile_v2.0_cls_infer.onnx", "hand_landmark_lite.tflite"])
def test_texts(name: str, format: str) -> None:
    shapes = {"x": (1, 3, 48, 192)} if name.endswith("onnx") else {}
    made = import_bytes(networks.data(name), name, Options(shapes=shapes))
    assert made is not None
    function: Any = made.module["main"]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(p.checked_type.shape).astype(p.checked_type.dtype) for p in function.params]
    if format == "stablehlo":
        found = Iree([export_stablehlo(made.module)]).run(0, inputs)
    else:
        text, params = export_relax(made.module)
        found = Relax([text]).run(0, [*inputs, *params.values()])
    close(found, flat(compile_module(made.module, "c").run(*inputs)))
