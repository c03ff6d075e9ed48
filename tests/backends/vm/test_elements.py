"""Shapes that programs compute, or are given, are sizes of compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.kernels.sizes import Comparison, Sizes, equals, less, opposite, without_common
from relaylang.runtime.vm.executable import VMExecutable, loads
from tests.backends.vm.agree import assert_same
from tests.backends.vm.test_programs import module


def made_of(text: str) -> tuple[VMExecutable, Callable[..., None]]:
    """A program from its file without fallback, and a check of its result for some arguments."""
    mod = module(text)
    made = loads(compile_vm(mod).content())
    made.fallback = False

    def check(*args: Any) -> None:
        assert_same(made.run(*args), evaluate(mod, *args))

    return made, check


HEADS = """
def @main(%x: Tensor[(?, ?, 12), float32], %w: Tensor[(12, 12), float32]) {
  let %s = shape_of(%x, dtype="int64");
  let %b = reshape(strided_slice(%s, begin=[0], end=[1], strides=[1], axes=[0]), newshape=[]);
  let %t = reshape(strided_slice(%s, begin=[1], end=[2], strides=[1], axes=[0]), newshape=[]);
  let %bh = multiply(%b, 3i64);
  let %y = nn.dense(%x, %w);
  let %four = expand_dims(4i64, axis=0);
  let %h = dyn.reshape(%y, concatenate((stack((%b, %t, 3i64), axis=0), %four)), newshape=None);
  let %g = dyn.reshape(transpose(%h, axes=[0, 2, 1, 3]), concatenate((stack((%bh, %t), axis=0), %four)), newshape=None);
  let %a = nn.softmax(nn.batch_matmul(%g, %g, transpose_b=True));
  let %v = nn.batch_matmul(%a, %g, transpose_b=False);
  let %back = transpose(dyn.reshape(%v, stack((%b, 3i64, %t, 4i64), axis=0), newshape=None), axes=[0, 2, 1, 3]);
  (add(%x, dyn.reshape(%back, stack((%b, %t, 12i64), axis=0), newshape=None)),
   dyn.zeros(stack((floor_divide(%bh, 2i64), maximum(%b, %t)), axis=0), shape=None, dtype="float32")) }
"""


def test_shapes_that_a_program_computes() -> None:
    """They are of its inputs' extents, so that compiled code computes all of it."""
    made, check = made_of(HEADS)
    assert all(p.region >= 0 for p in made.program.packed)
    rng = np.random.default_rng(0)
    w = rng.standard_normal((12, 12)).astype("float32")
    for b, t in ((2, 5), (1, 1), (3, 17), (1, 40), (16, 2)):
        check(rng.standard_normal((b, t, 12)).astype("float32"), w)


TABLE = """
def @main(%x: Tensor[(?, ?, 4), float32], %p: Tensor[(40, 4), float32]) {
  let %n = strided_slice(shape_of(%x, dtype="int64"), begin=[1], end=[2], strides=[1], axes=[0]);
  let %end = concatenate((%n, expand_dims(4i64, axis=0)));
  add(%x, dyn.strided_slice(%p, BEGIN, %end, STEPS, begin=None, end=None, strides=None)) }
"""


def test_the_first_rows_of_a_table() -> None:
    """Positions are cut to a sequence's length, which is less than the table's."""
    pair = "concatenate((expand_dims({0}, axis=0), expand_dims({0}, axis=0)))"
    made, check = made_of(TABLE.replace("BEGIN", pair.format("0i64")).replace("STEPS", pair.format("1i64")))
    table = np.arange(160, dtype="float32").reshape(40, 4)
    for b, t in ((2, 7), (1, 40), (3, 1)):
        check(np.ones((b, t, 4), "float32"), table)
    with pytest.raises(RelayError):
        made.run(np.ones((1, 41, 4), "float32"), table)


def test_a_slice_whose_begin_and_steps_are_given() -> None:
    mod = module(TABLE.replace("BEGIN", 'zeros(shape=[2], dtype="int64")').replace("STEPS", 'ones(shape=[2], dtype="int64")'))
    made = compile_vm(mod)
    for t in (7, 40):
        args = np.ones((2, t, 4), "float32"), np.arange(160, dtype="float32").reshape(40, 4)
        assert_same(made.run(*args), evaluate(mod, *args))


_SHAPE = "%x: Tensor[(?, 6), float32], %s: Tensor[(2), int64]"
_X = np.arange(24, dtype="float32").reshape(4, 6)
#: Calls of operators whose shapes are an argument of `@main`, and such arguments.
GIVEN: dict[str, tuple[str, list[list[int]]]] = {
    "reshape": (f"{_SHAPE}) {{ tanh(dyn.reshape(%x, %s, newshape=None))", [[8, 3], [1, 24], [24, 1]]),
    "broadcast_to": (
        "%x: Tensor[(?, 6), float32], %s: Tensor[(3), int64]) { abs(dyn.broadcast_to(%x, %s, shape=None))",
        [[2, 4, 6], [1, 4, 6]],
    ),
    "tile": (f"{_SHAPE}) {{ dyn.tile(%x, %s, reps=None)", [[2, 3], [1, 1]]),
    "zeros": (f'{_SHAPE}) {{ add(dyn.zeros(%s, shape=None, dtype="float32"), %x)', [[4, 6]]),
    "full": (f'{_SHAPE}) {{ sum(dyn.full(2f, %s, shape=None, dtype="float32"), axis=[1])', [[5, 7], [2, 2]]),
    "slice": (
        '%x: Tensor[(?, 6), float32], %s: int64) { dyn.strided_slice(%x, stack((%s, 0i64)), shape_of(%x, dtype="int64"), '
        "stack((1i64, 1i64)), begin=None, end=None, strides=None)",
        [[1], [0], [3]],
    ),
    "one_hot": (
        '%x: Tensor[(?, 6), float32], %s: int64) { dyn.one_hot(cast(%x, dtype="int32"), 1f, 0f, %s, '
        'depth=0, axis=-1, dtype="float32")',
        [[30], [2]],
    ),
    "arange": (
        '%x: Tensor[(?, 6), float32], %s: int64) { arange(0i64, %s, 2i64, start=0i64, stop=None, step=2i64, dtype="int64")',
        [[7], [8], [1]],
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", GIVEN)
def test_shapes_that_a_program_is_given(name: str) -> None:
    """Kernels read their elements, and are for all of them."""
    text, shapes = GIVEN[name]
    made, check = made_of(f"def @main({text} }}")
    for shape in shapes:
        check(_X, np.array(shape if len(shape) > 1 else shape[0], "int64"))
    assert made.fallbacks() == []


def test_a_fallback_has_a_reason_and_a_place() -> None:
    mod = module("def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) { (tanh(%x), sum(%y, axis=[0]), argwhere(%x)) }")
    made = compile_vm(mod)
    x = np.arange(12, dtype="float32").reshape(4, 3)
    assert_same(made.run(x, x[:0]), evaluate(mod, x, x[:0]))
    why = {f.why: (f.calls, f.line) for f in made.fallbacks()}
    assert len(why) == 2 and all(calls == 1 and "argwhere" in line for calls, line in why.values())
    assert any(text.endswith("(4, 3), x1 (0, 3): the code is for x1.shape[0] >= 1") for text in why)
    assert any(text.startswith("argwhere: the result's shape") for text in why)
    made.fallback = False
    with pytest.raises(RelayError) as caught:
        made.run(x, x)
    (found,) = caught.value.diagnostics
    assert found.code == "R0646" and "argwhere" in found.title and found.span is not None


def test_comparisons_of_sizes() -> None:
    sizes = Sizes([7, 5])
    a, b = sizes.sizes
    assert equals(a, a) is True and equals(a, a + 1) is False and less(a, a + b) is True and less(a + b, a) is False
    open_test = equals(a, b)
    assert isinstance(open_test, Comparison) and not open_test.answer() and "!(size0 == size1)" in sizes.assumed
    turned = opposite(open_test)
    assert isinstance(turned, Comparison) and turned.holds and opposite(True) is False
    least = sizes.another(3, 0)
    assert str(least) == "size2"
    assert tuple(map(str, without_common(a * b * 8, a * 12))) == ("(size1 * 2)", "3")
    assert tuple(map(str, without_common(a * least, b * least))) == ("(size0 * size2)", "(size1 * size2)")
