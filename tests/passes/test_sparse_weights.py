"""Weights in blocks: which calls take them, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constant, Function, post_order
from relaylang.ir.binding import bind_params_by_name
from relaylang.ops.record import Op
from relaylang.passes.sparse_weights import in_blocks, sparse_weights, without_transposes

RNG = np.random.default_rng(11)


def function(text: str) -> Function:
    found: Function = relay.transform.InferType()(relay.parse(text))["main"]
    return found


def names(func: Function) -> list[str]:
    return [n.op.name for n in post_order(func) if isinstance(n, Call) and isinstance(n.op, Op)]


def mostly_zeros(rows: int, columns: int, high: int, wide: int) -> np.ndarray:
    kept = RNG.random((rows // high, columns // wide)) < 0.2
    kept[0, 0] = True
    return (RNG.normal(size=(rows, columns)) * np.kron(kept, np.ones((high, wide)))).astype("float32")


def same(before: Function, params: dict[str, Any], after: Function, values: dict[str, Any], x: np.ndarray) -> None:
    mods = [relay.IRModule.from_expr(bind_params_by_name(f, p)) for f, p in ((before, params), (after, values))]
    first, second = (relay.evaluate(relay.transform.InferType()(m), x) for m in mods)
    np.testing.assert_allclose(second, first, rtol=1e-4, atol=1e-5)


def test_blocks_of_a_matrix() -> None:
    matrix = np.zeros((4, 6), "float32")
    matrix[2:, 3:] = np.arange(6).reshape(2, 3)
    data, indices, rows = in_blocks(matrix, (2, 3))
    assert data.shape == (1, 2, 3) and indices.tolist() == [1] and rows.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(data[0], matrix[2:, 3:])
    with pytest.raises(RelayError, match="blocks of 3 x 3 do not divide a matrix of 4 x 6"):
        in_blocks(matrix, (3, 3))


@pytest.mark.parametrize("constant", [False, True])
def test_dense_layers(constant: bool) -> None:
    func = function("def @main(%x: Tensor[(3, 12), float32], %w: Tensor[(8, 12), float32]) { nn.relu(nn.dense(%x, %w, units=8)) }")
    params = {"w": mostly_zeros(8, 12, 4, 1)}
    given = bind_params_by_name(func, params) if constant else func
    made, values = sparse_weights(given, {} if constant else params, "nn.dense", (4, 1), 0.5)
    assert names(made) == ["nn.sparse_dense", "nn.relu"]
    assert [p.name_hint for p in made.params] == (["x"] if constant else ["x", "w.data", "w.indices", "w.indptr"])
    assert constant == any(isinstance(n, Constant) for n in post_order(made)) and "w" not in values
    same(func, params, made, values, RNG.normal(size=(3, 12)).astype("float32"))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kernel, pad", [(1, 0), (3, 1)])
@pytest.mark.parametrize("block", [(4, 1), (2, 2)])
def test_convolutions(layout: str, kernel: int, pad: int, block: tuple[int, int]) -> None:
    shape, of_weight = ("1, 5, 5, 4", f"{kernel}, {kernel}, 4, 8") if layout == "NHWC" else ("1, 4, 5, 5", f"8, 4, {kernel}, {kernel}")
    attrs = f'data_layout="{layout}", kernel_layout="{"HWIO" if layout == "NHWC" else "OIHW"}", channels=8'
    func = function(f"""def @main(%x: Tensor[({shape}), float32], %w: Tensor[({of_weight}), float32]) {{
      nn.conv2d(%x, %w, kernel_size=[{kernel}, {kernel}], padding=[{pad}, {pad}, {pad}, {pad}], {attrs}) }}""")
    matrix = mostly_zeros(8, 4 * kernel * kernel, *block)
    weight = matrix.T.reshape(kernel, kernel, 4, 8) if layout == "NHWC" else matrix.reshape(8, 4, kernel, kernel)
    made, values = sparse_weights(func, {"w": weight}, "nn.conv2d", block, 0.3)
    assert names(made) == ["nn.sparse_conv2d"]
    same(func, {"w": weight}, made, values, RNG.normal(size=eval(f"({shape})")).astype("float32"))


@pytest.mark.parametrize(
    "attrs, threshold",
    [
        ("strides=[2, 2]", 0.1),
        ("groups=2", 0.1),
        ("padding=[1, 1, 1, 1]", 0.1),
        ("padding=[0, 0, 0, 0]", 0.99),
    ],
)
def test_calls_that_stay(attrs: str, threshold: float) -> None:
    inputs = 2 if "groups" in attrs else 4
    func = function(f"""def @main(%x: Tensor[(1, 4, 5, 5), float32], %w: Tensor[(8, {inputs}, 1, 1), float32]) {{
      nn.conv2d(%x, %w, kernel_size=[1, 1], channels=8, {attrs}) }}""")
    made, values = sparse_weights(func, {"w": mostly_zeros(8, inputs, 2, 1).reshape(8, inputs, 1, 1)}, "nn.conv2d", (2, 1), threshold)
    assert made is func and list(values) == ["w"]


def test_a_weight_with_another_user_keeps_its_parameter() -> None:
    text = "(nn.dense(%x, %w, units=8), nn.dense(%x, %w, units=8), exp(%w))"
    func = function(f"def @main(%x: Tensor[(3, 12), float32], %w: Tensor[(8, 12), float32]) {{ {text} }}")
    made, values = sparse_weights(func, {"w": mostly_zeros(8, 12, 4, 1)}, "nn.dense", (4, 1), 0.5)
    assert names(made).count("nn.sparse_dense") == 2 and [p.name_hint for p in made.params][:2] == ["x", "w"]
    assert len(made.params) == 5 and set(values) == {"w", "w.data", "w.indices", "w.indptr"}


def test_transposed_weights() -> None:
    func = function("""def @main(%x: Tensor[(2, 3), float32], %a: Tensor[(3, 4), float32], %b: Tensor[(5, 4), float32]) {
      nn.dense(nn.dense(%x, transpose(%a, axes=[1, 0])), %b) }""")
    params = {"a": RNG.normal(size=(3, 4)).astype("float32"), "b": RNG.normal(size=(5, 4)).astype("float32")}
    made, values = without_transposes(func, params)
    assert names(made) == ["nn.dense", "nn.dense"] and set(values) == {"a.T", "b"}
    same(func, params, made, values, RNG.normal(size=(2, 3)).astype("float32"))
