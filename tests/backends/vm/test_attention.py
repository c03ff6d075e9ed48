"""Attention with open extents on the VM, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.vm import compile_vm

#: Four heads of 8, of which each pair has the same keys. `%len` says how many of these a batch has.
OPEN = """#[version = "0.0.5"]
def @main(%q: Tensor[(?, 4, ?, 8), float32], %k: Tensor[(?, 2, ?, 8), float32], %v: Tensor[(?, 2, ?, 8), float32],
          %len: Tensor[(?), int64]) {
  let %kk = REPEATED_K;
  let %vv = REPEATED_V;
  let %a = nn.batch_matmul(reshape(%q, newshape=[-3, -2]), reshape(%kk, newshape=[-3, -2]), transpose_b=True);
  let %s = shape_of(%q, dtype="int64");
  let %b = strided_slice(%s, begin=[0], end=[1], strides=[1], axes=[0]);
  let %t = strided_slice(%s, begin=[2], end=[3], strides=[1], axes=[0]);
  let %n = strided_slice(shape_of(%k, dtype="int64"), begin=[2], end=[3], strides=[1], axes=[0]);
  let %four = expand_dims(4i64, axis=0);
  let %c = multiply(dyn.reshape(%a, concatenate((%b, %four, %t, %n)), newshape=None), 0.35f);
  let %places = cumsum(dyn.ones(%n, shape=None, dtype="int64"), axis=0, exclusive=True);
  let %seen = less(%places, expand_dims(%len, axis=1, num_newaxis=3));
  let %w = nn.softmax(where(%seen, %c, -inff), axis=-1);
  nn.batch_matmul(reshape(%w, newshape=[-3, -2]), reshape(%vv, newshape=[-3, -2]), transpose_b=False)
}"""


@pytest.mark.parametrize("grouped", [False, True])
def test_attention_of_open_extents(grouped: bool) -> None:
    text = OPEN if grouped else OPEN.replace("(?, 2, ?, 8)", "(?, 4, ?, 8)")
    for name in "kv":
        text = text.replace(f"REPEATED_{name.upper()}", f"repeat(%{name}, repeats=2, axis=1)" if grouped else f"%{name}")
    mod = relay.transform.InferType()(relay.parse(text))
    executable = compile_vm(mod, "c", entries=["main"])
    assert not executable.fallbacks()
    rng = np.random.default_rng(5)
    for batch, rows, keys in ((1, 1, 1), (2, 5, 3), (1, 1, 700), (3, 40, 40), (1, 70, 301)):
        heads = 2 if grouped else 4
        shapes = ((batch, 4, rows, 8), *[(batch, heads, keys, 8)] * 2)
        args = [rng.standard_normal(shape).astype("float32") for shape in shapes]
        args.append(rng.integers(1, keys + 1, batch))
        np.testing.assert_allclose(executable.call("main", tuple(args)), relay.evaluate(mod, *args), rtol=2e-5, atol=2e-5)


MASKED = """#[version = "0.0.5"]
def @main(%q: Tensor[(?, ?, 8), float32], %k: Tensor[(?, ?, 8), float32], %v: Tensor[(?, ?, 8), float32],
          %m: Tensor[(?, ?), float32]) {
  let %a = multiply(nn.batch_matmul(%q, %k, transpose_b=True), 0.35f);
  nn.batch_matmul(nn.softmax(add(%a, %m), axis=-1), %v, transpose_b=False)
}"""


@pytest.mark.parametrize("low", [-np.inf, np.finfo("float32").min, -1e4])
def test_masks_of_open_extents(low: float) -> None:
    mod = relay.transform.InferType()(relay.parse(MASKED))
    executable = compile_vm(mod, "c", entries=["main"])
    rng = np.random.default_rng(6)
    for batch, rows, keys in ((1, 1, 1), (2, 5, 70), (1, 70, 301), (2, 96, 96)):
        args = [rng.standard_normal((batch, extent, 8)).astype("float32") for extent in (rows, keys, keys)]
        args.append(np.where(np.tri(rows, keys, keys - rows, dtype=bool), 0, low).astype("float32"))
        want = relay.evaluate(mod, *args)
        np.testing.assert_allclose(executable.call("main", tuple(args)), want, rtol=2e-5, atol=2e-5)
        args[3][0] = low
        want = relay.evaluate(mod, *args)
        np.testing.assert_allclose(executable.call("main", tuple(args)), want, rtol=2e-5, atol=2e-5)
    assert not executable.fallbacks()
