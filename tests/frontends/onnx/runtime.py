"""A model's outputs by relaylang and by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from relaylang.frontends.onnx.backend import run_model


def ours(data: bytes, inputs: Mapping[str, np.ndarray], device: str = "CPU") -> list[np.ndarray]:
    """The outputs of the imported program."""
    return [np.asarray(v) for v in run_model(data, inputs, device)]


def theirs(data: bytes, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs that onnxruntime computes."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(inputs))


def differ(data: bytes, inputs: Mapping[str, np.ndarray], device: str = "CPU") -> float:
    """The greatest difference: of integers as it is, of real numbers by the largest value. Shapes and dtypes are equal."""
    most = 0.0
    for found, wanted in zip(ours(data, inputs, device), theirs(data, inputs), strict=True):
        assert found.shape == wanted.shape and found.dtype == wanted.dtype, (found.dtype, found.shape, wanted.dtype, wanted.shape)
        if not wanted.size:
            continue
        apart = np.abs(found.astype("float64") - wanted.astype("float64")).max()
        most = max(most, float(apart if wanted.dtype.kind in "iub" else apart / max(np.abs(wanted).max(), 1e-6)))
    return most


def check(nodes: Any, inputs: Mapping[str, np.ndarray], *args: Any, most: float = 1e-5, **kwargs: Any) -> None:
    """Build a model for these inputs, and compare its outputs."""
    from tests.frontends.onnx.models import model

    dtypes = {name: x.dtype.name for name, x in inputs.items()}
    data = model(nodes, {name: x.shape for name, x in inputs.items()}, *args, dtypes=dtypes, **kwargs)
    found = differ(data, inputs)
    assert found <= most, found
