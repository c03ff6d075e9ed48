"""The public face: TVM's names, found when they are first used."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang._names import NAMES, PACKAGES

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %b: float32) -> Tensor[(2, 3), float32] { nn.relu(%x + %b) }
"""


@pytest.mark.parametrize("name", sorted({*NAMES, *PACKAGES, "__version__"}))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(relay, name) is not None
    assert name in dir(relay)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="frobnicate"):
        relay.frobnicate  # noqa: B018


def test_importing_loads_nothing() -> None:
    code = "import sys, relaylang; print(sorted(m for m in sys.modules if m.startswith(('relaylang.', 'numpy', 'lark'))))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert run.stdout == "['relaylang._names', 'relaylang._start', 'relaylang.aliases', 'relaylang.services']\n"


def test_build_a_function_by_hand() -> None:
    x = relay.var("x", shape=(2, 3), dtype="float32")
    function = relay.Function([x], relay.Call(relay.ops.get("nn.relu"), [x]))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
    assert "nn.relu(%x) /* ty=Tensor[(2, 3), float32] */" in relay.astext(mod)
    np.testing.assert_array_equal(relay.evaluate(mod, -np.ones((2, 3), np.float32)), np.zeros((2, 3)))


def test_build() -> None:
    artifact = relay.build(relay.parse(TEXT), target="llvm", params={"b": np.array(1, np.float32)})
    np.testing.assert_array_equal(artifact.run(x=np.zeros((2, 3), np.float32)), np.ones((2, 3)))


def test_passes_by_their_names() -> None:
    t = relay.transform
    mod = t.Sequential([t.SimplifyInference(), t.FuseOps(), t.ToANormalForm()])(relay.parse(TEXT))
    text = relay.astext(t.InferType()(mod))
    assert "Primitive=1" in text and "let %" in text


def test_errors_are_values() -> None:
    with pytest.raises(relay.RelayError) as caught:
        relay.transform.InferType()(relay.parse("def @main(%x: int32) { %x + 1f }"))
    assert caught.value.diagnostics[0].code.startswith("R03")


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["debug", "graph"])
@pytest.mark.parametrize(
    ("begin", "end", "strides", "place"),
    [
        ([1, 1, 0], [4, 1000, 3], None, np.s_[1:, 1:, :]),
        ([1, 1, 0], [4, 4], [1], np.s_[1:, 1:, :]),
        ([1, 1], [4, 4, 3], [1], np.s_[1:, 1:, :]),
        ([1, 1, 0], [4, 4, 3], [2], np.s_[1::2, 1:, :]),
        ([1, -1, 0], [2, -3, 3], [1, -1, 1], np.s_[1:2, -1:-3:-1, :]),
        ([0, 9], [3, -9], [1, -2], np.s_[:, ::-2, :]),
        ([-9], [-1], None, np.s_[:-1]),
    ],
)
def test_strided_set_of_some_axes(kind: str, begin: list[int], end: list[int], strides: list[int] | None, place: Any) -> None:
    expected = np.arange(36, dtype="float32").reshape(3, 4, 3)
    given = expected.copy()
    x, v = relay.var("x", shape=given.shape), relay.var("v", shape=given[place].shape)
    new = -1 - np.arange(given[place].size, dtype="float32").reshape(given[place].shape)
    expected[place] = new
    made = relay.strided_set(x, v, begin, end, strides)
    assert np.array_equal(relay.create_executor(kind).evaluate(relay.Function([x, v], made))(given, new), expected)


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_reverse_sequence_of_lengths_out_of_range(kind: str) -> None:
    x = relay.var("x", shape=(4, 4), dtype="int32")
    made = relay.Function([x], relay.reverse_sequence(x, relay.const(np.array([-1, 0, 9, 2], "int32")), 1, 0))
    rows = relay.create_executor(kind).evaluate(made)(np.arange(16, dtype="int32").reshape(4, 4))
    assert rows.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [11, 10, 9, 8], [13, 12, 14, 15]]


def test_sparse_reshape_of_indices_beyond_their_extents() -> None:
    old, new = np.array([9, 4]), np.array([2, -1, 6])
    i, p, n = (relay.var(name, shape=shape, dtype="int64") for name, shape in (("i", (3, 2)), ("p", (2,)), ("n", (3,))))
    run = relay.create_executor("debug").evaluate(relay.Function([i, p, n], relay.sparse_reshape(i, p, n).astuple()))
    places, shape = run(np.array([[0, 1], [3, 4], [7, 3]]), old, new)
    assert places.tolist() == [[0, 0, 1], [0, 2, 4], [1, 2, 1]] and shape.tolist() == [2, 3, 6]
    same, _ = relay.create_executor("debug").evaluate(relay.Function([i, p], relay.sparse_reshape(i, p, p).astuple()))(
        np.array([[0, 1], [3, 4], [7, 3]]), old
    )
    assert same.tolist() == [[0, 1], [3, 4], [7, 3]]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["contrib_conv2d_nchwc", "contrib_depthwise_conv2d_nchwc"])
@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_convolution_of_a_packed_weight(name: str, kind: str) -> None:
    alone = "depthwise" in name
    d, w = relay.var("d", shape=(1, 2, 5, 5, 4)), relay.var("w", shape=(2, 1 if alone else 2, 3, 3, 1 if alone else 4, 4))
    attrs = {"channels": 8, "kernel_size": (3, 3), "data_layout": "NCHW4c", "groups": 8 if alone else 1}
    made = [getattr(relay.nn, name)(d, w, **attrs, **given) for given in ({}, {"kernel_layout": f"OIHW{1 if alone else 4}i4o"})]
    shapes = (1, 2, 5, 5, 4), w.type_annotation.shape
    data, weight = (np.random.default_rng(n).integers(-3, 4, s).astype("float32") for n, s in enumerate(shapes))
    got, want = (relay.create_executor(kind).evaluate(relay.Function([d, w], e))(data, weight) for e in made)
    assert got.shape == (1, 2, 3, 3, 4) and np.array_equal(got, want) and got.any()


def test_strides_of_four_numbers() -> None:
    x, w = relay.var("x", shape=(1, 10, 22, 22)), relay.var("w", shape=(10, 8, 8))
    made = relay.image.dilation2d(x, w, strides=[1] * 4, dilations=[1] * 4, padding=[0] * 4)
    assert relay.transform.InferType()(relay.IRModule.from_expr(made))["main"].body.checked_type == relay.TensorType((1, 10, 15, 15))


W = np.zeros((4, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: relay.op.get("nn.dens"), "there is no operator nn.dens; did you mean nn.dense?"),
        (lambda: relay.var("x", shape={"x": (1, 2)}), "a shape is a list of extents such as .1, 3., not a dict"),
        (lambda: relay.var("x", shape=W), "not a tensor of 2 axes"),
        (lambda: relay.TensorType("2,3"), "not a str"),
        (lambda: relay.TensorType(3), "not a int"),
        (lambda: relay.zeros(W, "float32"), "zeros: shape must be a list of whole numbers, not a tensor of the shape .4, 3."),
        (lambda: relay.reshape(relay.var("x", shape=(2, 3)), {"a": 1}), "reshape: newshape must be a list of whole numbers"),
    ],
)
def test_values_that_do_not_fit_are_named(call: Any, says: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError), match=says):
        call()


def test_a_shape_may_be_any_list_of_extents() -> None:
    for shape in ([2, 3], (2, 3), np.array([2, 3], np.int32), range(2, 4)):
        assert relay.TensorType(shape).shape == (2, 3)


def test_params_of_unknown_names_are_named() -> None:
    mod = relay.parse("def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) { nn.dense(%x, %w, units=4) }")
    with pytest.warns(UserWarning, match="params has weight, which no parameter of @main is called; w has no value"):
        relay.vm.compile(mod, params={"weight": W})
