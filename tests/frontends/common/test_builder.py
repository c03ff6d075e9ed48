"""The builder: typed calls, folded constants, partly known shapes, loops."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.common import Builder, Layer, Listing, Report
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.options import Options
from relaylang.ir import ANY, Constant, TensorType


@pytest.fixture
def b() -> Builder:
    return Builder(Listing("net.onnx"), Report("net.onnx"), Options())


def tensor(*shape, dtype="float32"):
    return TensorType(shape, dtype)


def test_a_call_has_its_type_at_once(b):
    x = b.variable("x", tensor(2, 3))
    assert b.op("add", x, 1.0).checked_type == tensor(2, 3)


def test_calls_of_constants_are_folded(b):
    made = b.op("add", b.const(np.arange(3)), 1)
    assert isinstance(made, Constant) and made.data.tolist() == [1, 2, 3] and made.data.dtype == np.int64


def test_large_results_are_not_folded(b):
    assert not isinstance(b.op("zeros", shape=(1000, 1000), dtype="float32"), Constant)


def test_a_computed_shape_keeps_its_known_extents(b):
    x = b.variable("x", tensor(ANY, 3, 4))
    rows = b.slice(b.shape_of(x), [0], [1], [0])
    wanted = b.concat([rows, b.const(np.array([2, 6]))], 0)
    assert b.known(wanted) == [None, 2, 6]
    made = b.reshape_to(x, wanted)
    assert made.checked_type == tensor(ANY, 2, 6) and made.op.name == "reshape"


def test_two_unknown_extents_leave_the_third_known(b):
    x = b.variable("x", tensor(ANY, 3, 4))
    rows = b.slice(b.shape_of(x), [0], [1], [0])
    made = b.reshape_to(x, b.concat([rows, b.op("multiply", rows, b.const(np.array([1]))), b.const(np.array([12]))], 0))
    assert made.checked_type == tensor(ANY, ANY, 12)


def test_arithmetic_does_not_invent_known_elements(b):
    x = b.variable("x", tensor(ANY, 3))
    halved = b.op("floor_divide", b.shape_of(x), b.const(np.array([1 << 30, 1])))
    assert b.known(halved) == [None, 3]


def test_an_error_shows_the_layer(b):
    x = b.variable("x", tensor(2, 3))
    b.span = b.listing.add(Layer("Conv", "block1/conv", ("x", "w"), ("y",)))
    with pytest.raises(relay.RelayError) as wrong:
        b.op("nn.conv2d", x, x)
    assert "net.onnx:1:1" in str(wrong.value) and "y = Conv(x, w)  # block1/conv" in str(wrong.value)


def test_a_loop_grows_its_variable(b):
    x = b.variable("x", tensor(1, 2))
    _, rows = while_loop(
        b, lambda v: b.op("less", v[0], 3), lambda v: [b.op("add", v[0], 1), b.concat([v[1], x], 0)], [b.const(0, "int32"), x]
    )
    assert rows.checked_type == tensor(ANY, 2)
    mod = finish(b, [x], [rows]).module
    again = relay.parse(mod.astext())
    value = relay.create_executor("debug", again).evaluate()(np.ones((1, 2), "float32"))
    assert np.asarray(value).shape == (4, 2)
