"""Attention with unknown extents, against onnxruntime; ONNX's own cases hold the forms with known ones."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import relaylang as relay
from relaylang.frontends.onnx import import_onnx
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import differ

rng = np.random.default_rng(5)


def values(*shape) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


@pytest.mark.parametrize("attrs", [{}, {"is_causal": 1}, {"softcap": 2.0, "scale": 0.3}])
@pytest.mark.parametrize("heads", [2, 4])
def test_attention_of_unknown_lengths(attrs, heads: int) -> None:
    layer = node("Attention", ["q", "k", "v"], q_num_heads=4, kv_num_heads=heads, **attrs)
    data = model([layer], {"q": ("b", "s", 32), "k": ("b", "t", 8 * heads), "v": ("b", "t", 8 * heads)}, opset=23)
    given = {"q": values(2, 5, 32), "k": values(2, 5, 8 * heads), "v": values(2, 5, 8 * heads)}
    assert differ(data, given) <= 1e-5


def test_attention_with_a_cache_of_unknown_length() -> None:
    layer = node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "k2", "v2"], is_causal=1)
    shapes = {"q": (1, 2, "s", 8), "k": (1, 2, "s", 8), "v": (1, 2, "s", 8), "pk": (1, 2, "p", 8), "pv": (1, 2, "p", 8)}
    given = {n: values(1, 2, 3 if len(n) == 1 else 4, 8) for n in shapes}
    assert differ(model([layer], shapes, ["y", "k2", "v2"], opset=23), given) <= 1e-5


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding_of_unknown_length(interleaved: int) -> None:
    layer = node("RotaryEmbedding", ["x", "c", "s", "p"], num_heads=2, interleaved=interleaved)
    data = model(
        [layer],
        {"x": ("b", "t", 16), "p": ("b", "t")},
        weights={"c": values(9, 4), "s": values(9, 4)},
        opset=23,
        dtypes={"p": "int64"},
    )
    assert differ(data, {"x": values(2, 3, 16), "p": rng.integers(0, 9, (2, 3))}) <= 1e-5


def test_the_text_of_unknown_lengths_reads_back() -> None:
    layer = node("Attention", ["q", "k", "v"], q_num_heads=4, kv_num_heads=4, is_causal=1)
    data = model([layer], {"q": ("b", "s", 32), "k": ("b", "t", 32), "v": ("b", "t", 32)}, opset=23)
    mod = import_onnx(data).module
    again = relay.transform.InferType()(relay.parse(mod.astext()))
    assert again.astext() == mod.astext()
