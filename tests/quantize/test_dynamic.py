"""Dynamic quantisation of recurrent networks and of attention, compiled and in the VM."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, IRModule, post_order
from relaylang.quantize import quantize_dynamic
from tests.quantize.test_static import decibels

LSTM = """
def @main(%x: Tensor[(40, 1, 16), float32], %w: Tensor[(64, 16), float32], %r: Tensor[(64, 16), float32],
          %o: Tensor[(4, 16), float32]) {
  let %loop = fn (%i: int32, %h: Tensor[(1, 16), float32], %c: Tensor[(1, 16), float32]) -> Tensor[(1, 16), float32] {
    if (less(%i, 40)) {
      %0 = add(nn.dense(take(%x, %i, axis=0), %w, units=64), nn.dense(%h, %r, units=64));
      %1 = split(%0, indices_or_sections=4, axis=1);
      %2 = add(multiply(sigmoid(%1.0), %c), multiply(sigmoid(%1.1), tanh(%1.2)));
      %loop(add(%i, 1), multiply(sigmoid(%1.3), tanh(%2)), %2)
    } else { %h }
  };
  nn.dense(%loop(0, zeros(shape=[1, 16], dtype="float32"), zeros(shape=[1, 16], dtype="float32")), %o, units=4)
}"""
ATTENTION = """
def @main(%x: Tensor[(?, 32), float32], %q: Tensor[(32, 32), float32], %k: Tensor[(32, 32), float32],
          %v: Tensor[(32, 32), float32]) {
  %0 = expand_dims(nn.dense(%x, %q, units=32), axis=0);
  %1 = expand_dims(nn.dense(%x, %k, units=32), axis=0);
  %2 = nn.softmax(nn.batch_matmul(%0, %1, transpose_b=True));
  %3 = expand_dims(nn.dense(%x, %v, units=32), axis=0);
  squeeze(nn.batch_matmul(%2, %3, transpose_b=False), axis=[0])
}"""


def module(text: str) -> tuple[IRModule, dict[str, np.ndarray]]:
    mod = relay.transform.InferType()(relay.parse('#[version = "0.0.5"]' + text))
    rng = np.random.default_rng(0)
    shapes = {p.name_hint: tuple(map(int, p.checked_type.shape)) for p in mod["main"].params[1:]}
    return mod, {name: (rng.normal(size=s) / np.sqrt(s[1])).astype("float32") for name, s in shapes.items()}


def calls(mod: IRModule, name: str) -> int:
    return sum(isinstance(n, Call) and getattr(n.op, "name", "") == name for n in post_order(mod["main"]))


def test_a_loop_over_time() -> None:
    mod, params = module(LSTM)
    made = quantize_dynamic(mod, params)
    assert (calls(made, "qnn.dense"), calls(made, "nn.dense")) == (3, 0)
    x = np.random.default_rng(1).normal(size=(40, 1, 16)).astype("float32")
    wanted = relay.evaluate(mod, x, *params.values())
    assert decibels(np.asarray(wanted), np.asarray(relay.evaluate(made, x))) > 30


def test_attention_over_any_number_of_rows() -> None:
    mod, params = module(ATTENTION)
    made = quantize_dynamic(mod, params)
    assert (calls(made, "qnn.dense"), calls(made, "nn.dense")) == (3, 0)
    assert calls(made, "qnn.quantize") == 1  # the data are rounded once for all three
    for rows in (1, 7):
        x = np.random.default_rng(rows).normal(size=(rows, 32)).astype("float32")
        wanted = np.asarray(relay.evaluate(mod, x, *params.values()))
        assert decibels(wanted, np.asarray(relay.evaluate(made, x))) > 30
        run = relay.create_executor("vm", made).evaluate()
        assert decibels(wanted, np.asarray(run(x))) > 30


def test_a_dense_layer_without_units() -> None:
    mod, params = module(ATTENTION.replace(", units=32", ""))
    x = np.random.default_rng(1).normal(size=(5, 32)).astype("float32")
    named, _ = module(ATTENTION)
    got, want = (relay.evaluate(quantize_dynamic(m, params), x) for m in (mod, named))
    np.testing.assert_array_equal(got, want)


def test_weights_that_are_not_finite() -> None:
    mod, params = module("def @main(%x: Tensor[(2, 8), float32], %w: Tensor[(4, 8), float32]) { nn.dense(%x, %w, units=4) }")
    params["w"][1, 2] = np.inf
    with pytest.raises(RelayError, match="numbers that are not finite"):
        quantize_dynamic(mod, params)
