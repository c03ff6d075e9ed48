"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest


def node(op: str, inputs: Sequence[str], outputs: Sequence[str] = ("y",), **attrs: Any) -> Any:
    """A layer."""
    onnx = pytest.importorskip("onnx")
    return onnx.helper.make_node(op, list(inputs), list(outputs), **attrs)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[Any]],
    outputs: Sequence[str] = ("y",),
    weights: Mapping[str, np.ndarray] | None = None,
    opset: int = 21,
    dtypes: Mapping[str, str] | None = None,
    domains: Mapping[str, int] | None = None,
) -> bytes:
    """A model of these layers; inputs are float32 where `dtypes` does not say otherwise."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    kinds = {name: helper.np_dtype_to_tensor_dtype(np.dtype((dtypes or {}).get(name, "float32"))) for name in inputs}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, kinds[name], shape) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    versions = {"": opset, "com.microsoft": 1, **(domains or {})}
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in versions.items()])
    return made.SerializeToString()
