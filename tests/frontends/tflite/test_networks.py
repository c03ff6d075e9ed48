"""Real networks from MediaPipe: each is imported, checked, printed, read back, and computes what its runtime computes."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.tflite import import_tflite
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from tests.frontends.networks import data as bytes_of
from tests.frontends.networks import names
from tests.frontends.originals import difference, in_double, tflite_feed, tflite_outputs
from tests.shared import few

pytest.importorskip("tflite")
#: Networks with operators that the runtime lacks.
WITHOUT_RUNTIME = ("face_landmark_with_attention.tflite",)
#: Networks whose outputs float32 gives to fewer digits: the runtime itself is as far from float64's values.
UNSTABLE = ("pose_landmark_full.tflite", "selfie_segmentation.tflite", "selfie_segmentation_landscape.tflite")


def networks() -> list[object]:
    """All networks; `make test` runs the smallest."""
    return few(names(".tflite"), *[n for n in names(".tflite") if n.startswith("face_detection_short")])


@pytest.mark.parametrize("name", networks())
def test_a_network_computes_what_its_runtime_computes(name: str) -> None:
    data = bytes_of(name)
    imported = import_tflite(data, file=name)
    mod = imported.module
    assert relay.infer(mod, fresh=True) == []
    assert structural_equal(relay.parse(mod.astext()), mod)
    inputs = list(tflite_feed(data).values())
    found = Evaluator(mod).call("main", tuple(inputs))
    found = found if isinstance(found, tuple) else (found,)
    assert all(np.isfinite(f).all() for f in found)
    if name not in WITHOUT_RUNTIME:
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert computes the expected values")
        wanted = tflite_outputs(data, inputs)
        apart = difference(found, wanted)
        if name in UNSTABLE and apart > 1e-5:
            exact = Evaluator(in_double(mod)).call("main", tuple([i.astype("float64") for i in inputs]))
            exact = [e.astype("float32") for e in (exact if isinstance(exact, tuple) else (exact,))]
            assert difference(found, exact) <= max(1e-5, 4 * difference(wanted, exact))
        else:
            assert apart <= 1e-5


@pytest.mark.sweep
@pytest.mark.parametrize("name", [n for n in names(".tflite") if n.startswith("face_detection_short")])
def test_another_layout_computes_the_same(name: str) -> None:
    from relaylang.frontends.options import Options

    data = bytes_of(name)
    inputs = tuple(tflite_feed(data).values())
    plain, planes = import_tflite(data), import_tflite(data, Options(layout="NCHW"))
    assert 'data_layout="NHWC"' not in planes.module.astext(show_meta_data=False)
    found, wanted = (Evaluator(i.module).call("main", inputs) for i in (planes, plain))
    assert difference(found, wanted) <= 1e-5


@pytest.mark.parametrize("name", [n for n in names(".tflite") if n.startswith("face_detection_short")])
def test_the_import_under_tvms_name(name: str) -> None:
    mod, params = relay.frontend.from_tflite(bytes_of(name))
    assert len(params) > 20 and {p.name_hint for p in mod["main"].params} >= set(params)
