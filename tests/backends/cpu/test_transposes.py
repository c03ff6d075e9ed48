"""Loops that turn matrices, and loops cut where reshaped indices want it: results equal numpy's to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c
from relaylang.backends.cpu.isa import AVX2, AVX512, Isa
from relaylang.backends.cpu.transposes import turn_kernel
from relaylang.kernels import render

SHAPES = [(64, 64), (50, 70), (16, 300), (300, 16), (17, 129), (8, 257)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "float64"])
def test_transpositions(dtype: str) -> None:
    x = np.arange(5 * 50 * 70).reshape(5, 50, 70).astype(dtype)
    orders = [(0, 2, 1), (1, 0, 2), (2, 0, 1), (2, 1, 0), (1, 2, 0)]
    body = ", ".join(f"transpose(%x, axes=[{', '.join(map(str, order))}])" for order in orders)
    mod = relay.parse(f"def @main(%x: Tensor[(5, 50, 70), {dtype}]) {{ ({body}) }}")
    for got, order in zip(compile_module(mod, "c -num-threads=2 -cflags=-O1").run(x), orders):
        np.testing.assert_array_equal(got, x.transpose(order))


@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_operators_around_a_transposition(shape: tuple[int, int]) -> None:
    rows, columns = shape
    mod = relay.parse(
        f"def @main(%x: Tensor[({rows}, {columns}), float32], %y: Tensor[({columns}, {rows}), float32],"
        f" %b: Tensor[({rows},), float32]) {{"
        " let %a = transpose(add(%x, 1f), axes=[1, 0]);"
        " multiply(add(nn.relu(%a), %b), %y) }"
    )
    rng = np.random.default_rng(rows)
    x, y, b = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape[::-1], (rows,)))
    got = compile_module(mod, "c -num-threads=2 -cflags=-O1").run(x, y, b)
    np.testing.assert_array_equal(got, (np.maximum((x + 1).T, 0) + b) * y)


def test_a_turned_value_is_not_written_over() -> None:
    mod = relay.parse(
        "def @main(%x: Tensor[(64, 64), float32]) {"
        " let %a = nn.softmax(%x); let %b = nn.relu(transpose(%a, axes=[1, 0])); nn.softmax(%b) }"
    )
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)

    def softmax(v: np.ndarray) -> np.ndarray:
        e = np.exp(v - v.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    np.testing.assert_allclose(compile_module(mod, "c -cflags=-O1").run(x), softmax(softmax(x).T), rtol=1e-5)


def test_shuffles_need_no_divisions() -> None:
    mod = relay.parse(
        "def @main(%x: Tensor[(1, 14, 14, 64), float32]) {"
        " let %a = reshape(%x, newshape=[1, 14, 14, 2, 2, 16]);"
        " let %b = transpose(%a, axes=[0, 1, 3, 2, 4, 5]);"
        " transpose(reshape(%b, newshape=[1, 28, 28, 16]), axes=[0, 3, 1, 2]) }"
    )
    x = np.arange(14 * 14 * 64).reshape(1, 14, 14, 64).astype(np.float32)
    want = x.reshape(14, 14, 2, 2, 16).transpose(0, 2, 1, 3, 4).reshape(1, 28, 28, 16).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(compile_module(mod, "c -cflags=-O1").run(x), want)
    text = emit_c(mod, options={"num-threads": 1})
    assert "int64_t)(" not in text[text.index("void kernel_") : text.index("void run_all")]


@pytest.mark.parametrize("isa", [AVX2, AVX512])
def test_a_square_is_read_and_written_once(isa: Isa) -> None:
    text = render.function(turn_kernel("turn", isa, "float32"))
    assert text.count("*(const r_vfu*)") == text.count("*(r_vfu*)") == isa.lanes
