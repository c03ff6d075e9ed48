"""The example network reads its picture, interpreted, compiled and exported again."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.backends import compile_module
from relaylang.export import export_onnx
from relaylang.frontends.onnx import import_onnx
from relaylang.interpreter.evaluate import Evaluator
from tests.shared import ROOT


def test_digits() -> None:
    picture = np.load(ROOT / "examples" / "seven.npy")
    made = import_onnx(str(ROOT / "examples" / "digits.onnx"))
    interpreted = np.asarray(Evaluator(made.module, {}).call("main", (), {"image": picture}))
    compiled = np.asarray(compile_module(made.module, "c").run(image=picture))
    again = import_onnx(export_onnx(made.module))
    assert interpreted.argmax() == 7 and interpreted.max() > 0.9
    assert np.abs(compiled - interpreted).max() < 1e-5
    assert np.array_equal(np.asarray(Evaluator(again.module, {}).call("main", (), {"image": picture})), interpreted)
