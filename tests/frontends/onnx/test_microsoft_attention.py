"""Attention layers of com.microsoft, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import differ, ours

rng = np.random.default_rng(13)
MS = "com.microsoft"
B, S, N, H = 2, 3, 2, 8


def reals(*shape) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def run(layer, given, weights=None, outputs=("y",), dynamic: bool = False) -> float:
    shapes = {name: [f"{name}{i}" if dynamic and i < 2 else d for i, d in enumerate(x.shape)] for name, x in given.items()}
    dtypes = {name: x.dtype.name for name, x in given.items()}
    return differ(model([layer], shapes, outputs, weights or {}, dtypes=dtypes), given)


@pytest.mark.parametrize(
    "mask",
    [None, np.array([3, 2]), np.array([[1, 1, 0], [1, 0, 1]]), np.array([3, 2, 1, 0]), rng.integers(0, 2, (B, S, S))],
    ids=["none", "ends", "keys", "ranges", "pairs"],
)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(mask, causal: int) -> None:
    weights = {"w": reals(10, 3 * N * H), "b": reals(3 * N * H)}
    if mask is not None:
        weights["m"] = mask.astype("int32")
    layer = node("Attention", ["x", "w", "b", *(["m"] if mask is not None else [])], domain=MS, num_heads=N, unidirectional=causal)
    assert run(layer, {"x": reals(B, S, 10)}, weights) <= 1e-5


def test_attention_with_a_past() -> None:
    weights = {"w": reals(10, 3 * N * H), "b": reals(3 * N * H)}
    layer = node("Attention", ["x", "w", "b", "", "p"], ["y", "q"], domain=MS, num_heads=N, unidirectional=1)
    assert run(layer, {"x": reals(B, S, 10), "p": reals(2, B, N, 4, H)}, weights, ["y", "q"]) <= 1e-5


@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_whole_numbers(masked: bool) -> None:
    weights = {
        "w": rng.integers(-64, 64, (10, 3 * N * H)).astype("int8"),
        "b": reals(3 * N * H),
        "xs": np.array(0.02, "float32"),
        "ws": np.array(0.01, "float32"),
        "xz": np.array(120, "uint8"),
        "wz": np.array(0, "int8"),
        "m": np.array([3, 2], "int32"),
    }
    layer = node("QAttention", ["x", "w", "b", "xs", "ws", "m" if masked else "", "xz", "wz"], domain=MS, num_heads=N)
    assert run(layer, {"x": rng.integers(0, 256, (B, S, 10)).astype("uint8")}, weights) <= 1e-5


@pytest.mark.parametrize("dynamic", [False, True])
def test_multi_head_attention(dynamic: bool) -> None:
    layer = node("MultiHeadAttention", ["q", "k", "v", "b", "m"], domain=MS, num_heads=N)
    given = {"q": reals(B, S, N * H), "k": reals(B, 5, N * H), "v": reals(B, 5, N * H)}
    weights = {"b": reals(3 * N * H), "m": np.array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 1]], "int32")}
    assert run(layer, given, weights, dynamic=dynamic) <= 1e-5


def test_multi_head_attention_of_packed_operands() -> None:
    packed = reals(B, S, N, 3, H)
    parts = {name: packed[:, :, :, i].reshape(B, S, N * H) for i, name in enumerate("qkv")}
    apart = model([node("MultiHeadAttention", list("qkv"), domain=MS, num_heads=N)], {n: (B, S, N * H) for n in "qkv"})
    whole = model([node("MultiHeadAttention", ["q"], domain=MS, num_heads=N)], {"q": packed.shape})
    assert np.array_equal(ours(whole, {"q": packed})[0], ours(apart, parts)[0])


def test_multi_head_attention_with_a_past() -> None:
    layer = node("MultiHeadAttention", ["q", "k", "v", "", "", "a", "pk", "pv"], ["y", "k2", "v2"], domain=MS, num_heads=N)
    given = {n: reals(B, S, N * H) for n in "qkv"} | {n: reals(B, N, 4, H) for n in ("pk", "pv")} | {"a": reals(1, N, S, 4 + S)}
    assert run(layer, given, outputs=["y", "k2", "v2"]) <= 1e-5


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1},
        {"local_window_size": 2},
        {"softcap": 3.0},
        {"scale": 0.2},
        {"smooth_softmax": 1},
    ],
)
@pytest.mark.parametrize("past", [0, 4])
def test_group_query_attention(attrs, past: int) -> None:
    steps = 1 if past else S
    names = ["q", "k", "v", "pk", "pv", "l", "t", "c", "s"]
    layer = node(
        "GroupQueryAttention",
        names if attrs.get("do_rotary") else names[:7],
        ["y", "k2", "v2"],
        domain=MS,
        num_heads=4,
        kv_num_heads=2,
        **attrs,
    )
    given = {
        "q": reals(B, steps, 64),
        "k": reals(B, steps, 32),
        "v": reals(B, steps, 32),
        "pk": reals(B, 2, past, 16),
        "pv": reals(B, 2, past, 16),
    }
    whole = past + steps
    weights = {"l": np.full(B, whole - 1, "int32"), "t": np.array(whole, "int32"), "c": reals(10, 8), "s": reals(10, 8)}
    assert run(layer, given, weights, ["y", "k2", "v2"]) <= 1e-5


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("start", [True, False])
def test_rotary_embedding(interleaved: int, start: bool) -> None:
    places = np.array([2]) if start else rng.integers(0, 9, (B, S))
    layer = node("RotaryEmbedding", ["x", "p", "c", "s"], domain=MS, interleaved=interleaved)
    assert run(layer, {"x": reals(B, S, N * H)}, {"p": places, "c": reals(9, H // 2), "s": reals(9, H // 2)}) <= 1e-5
