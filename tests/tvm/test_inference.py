"""What importers of one's own ask about their nodes."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.tvm.relay.inference import infer_channels, infer_shape, infer_type, infer_value, new_var
from relaylang.tvm.relay.op import debug


def test_types_and_shapes() -> None:
    x, w = new_var("x", shape=(2, 3)), new_var("w", shape=(5, 3, 1, 1))
    assert infer_type(relay.exp(x)).checked_type == relay.TensorType((2, 3))
    assert infer_shape(relay.Function([x], x)) == relay.FuncType([relay.TensorType((2, 3))], relay.TensorType((2, 3)))
    assert infer_shape(relay.transpose(x)) == (3, 2) and infer_channels(w) == 5 and infer_channels(w, transpose=True) == 3
    with pytest.raises(RelayError, match="axis"):
        infer_shape(relay.nn.softmax(x, axis=4))


def test_functions_of_a_module() -> None:
    mod = relay.parse("def @twice(%x: int32) -> int32 { multiply(%x, 2) }")
    call = mod.get_global_var("twice")(new_var("x", shape=(), dtype="int32"))
    assert infer_shape(call, mod) == () and infer_value(call, {"x": 4, "other": 5}, mod) == 8


def test_a_function_sees_values() -> None:
    seen: list[np.ndarray] = []
    x = new_var("x", shape=(2,))
    value = debug(relay.exp(x), debug_func=lambda v: seen.append(v.numpy()))
    run = relay.create_executor("debug").evaluate(relay.Function([x], debug(relay.add(value, value))))
    assert run(np.zeros(2, "float32")).tolist() == [2, 2] and [v.tolist() for v in seen] == [[1, 1]]
