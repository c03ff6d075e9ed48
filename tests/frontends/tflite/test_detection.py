"""The selection of boxes in TFLite's operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.frontends.tflite import import_tflite
from relaylang.interpreter.evaluate import Evaluator
from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import compare, outputs, same

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
rng = np.random.default_rng(2)


def boxes(count: int) -> np.ndarray:
    """Boxes of two opposite corners, many of which overlap."""
    corner, size = rng.uniform(0, 3, (count, 2)), rng.uniform(0.3, 2, (count, 2))
    found = np.concatenate([corner, corner + size], 1).astype("float32")
    found[::3] = found[::3][:, [2, 3, 0, 1]]
    return found


def suppression(name: str, count: int, most: int, overlap: float, least: float, sigma: float | None = None) -> bytes:
    """A layer whose boxes and scores are operands."""
    tensors = {"boxes": T((count, 4)), "scores": T((count,))}
    tensors |= {"most": const(np.int32(most)), "overlap": const(np.float32(overlap)), "least": const(np.float32(least))}
    if sigma is not None:
        tensors["sigma"] = const(np.float32(sigma))
    results = {"rows": T((most,), "int32"), "values": T((most,)), "count": T((), "int32")}
    if sigma is None:
        del results["values"]
    op = Op(
        name,
        list(tensors),
        list(results),
        "NonMaxSuppressionV5Options" if sigma is not None else "NonMaxSuppressionV4Options",
    )
    return file({**tensors, **results}, [op], ["boxes", "scores"], list(results))


@pytest.mark.parametrize("count, most, overlap, least", [(20, 6, 0.4, 0.1), (20, 30, 0.3, 0.5), (9, 9, 0.9, -2.0), (5, 3, 0.5, 9.0)])
@pytest.mark.parametrize("sigma", [None, 0.0, 0.5, 1e-4])
def test_suppression(count: int, most: int, overlap: float, least: float, sigma: float | None) -> None:
    if sigma == 1e-4:  # lowered scores of 0 would have no order
        least = max(least, 0.01)
    name = "NON_MAX_SUPPRESSION_V4" if sigma is None else "NON_MAX_SUPPRESSION_V5"
    scores = rng.permutation(np.linspace(-1 if least < 0 else 0.02, 1, count)).astype("float32")
    compare(suppression(name, count, most, overlap, least, sigma), [boxes(count), scores])


def detection(count: int, columns: int, most: int, **options: Any) -> bytes:
    """A layer with constant anchors."""
    anchors = np.concatenate([rng.uniform(0, 1, (count, 2)), rng.uniform(0.2, 0.5, (count, 2))], 1).astype("float32")
    given = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, "max_detections": most, **options}
    rows = most * options["max_classes_per_detection"]
    results = {"boxes": T((1, rows, 4)), "classes": T((1, rows)), "values": T((1, rows)), "count": T((1,))}
    tensors = {"code": T((1, count, 4)), "scores": T((1, count, columns)), "anchors": const(anchors)}
    op = Op("TFLite_Detection_PostProcess", list(tensors), list(results), custom=bytes(flexbuffers.Dumps(given)))
    return file({**tensors, **results}, [op], ["code", "scores"], list(results))


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("most, each", [(5, 1), (30, 1), (5, 2), (6, 4)])
def test_detection(regular: bool, most: int, each: int) -> None:
    """Rows behind the last box are not defined in the runtime."""
    data = detection(
        25,
        4,
        most,
        num_classes=3,
        max_classes_per_detection=each,
        detections_per_class=4,
        use_regular_nms=regular,
        nms_iou_threshold=0.4,
        nms_score_threshold=0.3,
    )
    code = rng.normal(size=(1, 25, 4)).astype("float32")
    scores = rng.permutation(np.linspace(0.01, 1, 100)).reshape(1, 25, 4).astype("float32")
    found = [np.asarray(f) for f in Evaluator(import_tflite(data).module).call("main", (code, scores))]
    wanted = outputs(data, [[code, scores]])[0]
    rows = int(wanted[3][0]) * (1 if regular else each)
    same(found[3], wanted[3])
    assert rows > 0
    for f, w in zip(found[:3], wanted):
        assert f.shape == w.shape
        part = f[:, :rows].copy(), w[:, :rows].copy()
        if each > 3 and not regular:  # three classes fill three of four rows
            part = tuple([np.delete(p, np.arange(3, rows, each), axis=1) for p in part])
        same(*part)
