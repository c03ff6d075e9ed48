"""TVM's importers under TVM's names."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import relaylang as relay
from tests.frontends.onnx.models import model, node


def test_from_onnx_has_tvms_signature_and_results() -> None:
    import onnx

    from relaylang.frontend import from_onnx

    proto = onnx.ModelProto.FromString(model([node("Add", ["x", "w"])], {"x": ("n", 3)}, weights={"w": np.ones(3, "float32")}))
    mod, params = relay.frontend.from_onnx(proto, {"x": (2, 3)})
    assert params == {} and mod["main"].params[0].checked_type == relay.TensorType((2, 3), "float32")
    mod, params = from_onnx(proto, shape={"x": (relay.Any(), 3)}, freeze_params=False)
    assert list(params) == ["w"] and [p.name_hint for p in mod["main"].params] == ["x", "w"]
    value = relay.create_executor("debug", mod).evaluate()(np.ones((2, 3), "float32"), **params)
    assert np.array_equal(value.numpy(), np.full((2, 3), 2, "float32"))
