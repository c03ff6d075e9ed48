"""The compositions that importers share compute what numpy computes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.common import Builder, Listing, Report, Unsupported, nn
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.common.imported import finish
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import ANY, TensorType

X = np.linspace(-4, 4, 24, dtype=np.float32).reshape(2, 3, 4)
ERF = np.vectorize(math.erf)


@pytest.fixture
def b() -> Builder:
    return Builder(Listing("net.onnx"), Report("net.onnx"), Options())


def run(b, inputs, body, *arrays):
    """The program's value, after the module was checked again from scratch."""
    module = finish(b, inputs, [body]).module
    again = relay.parse(relay.astext(module))
    assert relay.transform.InferType()(again)["main"].body.checked_type == body.checked_type
    return np.asarray(Evaluator(module, {}).call("main", (), dict(zip([v.name_hint for v in inputs], arrays))))


ACTIVATIONS = {
    "hard_sigmoid": (nn.hard_sigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hard_swish": (nn.hard_swish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "swish": (nn.swish, lambda x: x / (1 + np.exp(-x))),
    "gelu": (nn.gelu, lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2),
    "softplus": (nn.softplus, lambda x: np.log1p(np.exp(x))),
    "softsign": (nn.softsign, lambda x: x / (1 + abs(x))),
    "mish": (nn.mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "elu": (nn.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    "selu": (nn.selu, lambda x: 1.05070098 * np.where(x > 0, x, 1.67326324 * np.expm1(x))),
    "clip": (lambda b, x: nn.clip(b, x, -1, None), lambda x: np.maximum(x, -1)),
    "rms_norm": (lambda b, x: nn.rms_norm(b, x, [-1], 1e-5), lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)),
    "log_sum_exp": (lambda b, x: nn.log_sum_exp(b, x, [1], False), lambda x: np.log(np.exp(x).sum(1))),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_functions(b, name):
    made, wanted = ACTIVATIONS[name]
    x = b.variable("x", TensorType(X.shape, "float32"))
    np.testing.assert_allclose(run(b, [x], made(b, x), X), wanted(X.astype(np.float64)), rtol=2e-6, atol=2e-6)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


#: Functions whose small results `log(1 + x)` and `exp(x) - 1` would cut.
EXACT = {
    "log1p": (nn.log1p, np.log1p),
    "expm1": (nn.expm1, np.expm1),
    "softplus": (nn.softplus, softplus),
    "mish": (nn.mish, lambda x: x * np.tanh(softplus(x))),
    "elu": (nn.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "celu": (lambda b, x: nn.elu(b, x, 2.0, inner=0.5), lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2))),
    "celu below": (lambda b, x: nn.elu(b, x, -2.0, inner=-0.5), lambda x: np.where(x > 0, x, -2 * np.expm1(np.maximum(-x, 0) / 2))),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_functions_keep_the_digits_of_small_results(b, dtype, compiled):
    """They are within four units in the last place, over all magnitudes, and infinities and nan are right."""
    size = np.concatenate([10.0 ** np.linspace(-30, 30, 1201), np.linspace(0, 90, 1201), [np.inf, 1.0]])
    with np.errstate(all="ignore"):
        values = np.concatenate([-size, size, [np.nan]]).astype(dtype)
        x = b.variable("x", TensorType(values.shape, dtype))
        module = finish(b, [x], [made(b, x) for made, _ in EXACT.values()]).module
        executor = relay.create_executor("graph" if compiled else "debug", module)
        for name, value in zip(EXACT, executor.evaluate()(values)):
            wanted = EXACT[name][1](values.astype(np.longdouble))
            rounded = wanted.astype(dtype)
            # Below the least normal number, a product keeps the digits of its subnormal factor alone.
            unit = np.maximum(np.spacing(abs(rounded)), np.finfo(dtype).smallest_subnormal * abs(values)).astype(np.longdouble)
            same = (value == rounded) | (np.isnan(value) & np.isnan(rounded))
            assert (same | (abs(value - wanted) <= 4 * unit)).all(), name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_functions_keep_the_dtype(b, dtype):
    x = b.variable("x", TensorType(X.shape, dtype))
    for made, _ in ACTIVATIONS.values():
        assert b.dtype(made(b, x)) == dtype


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_layer_norm(b, axis):
    shape = X.shape[axis:]
    x, gamma, beta = (b.variable(n, TensorType(s, "float32")) for n, s in (("x", X.shape), ("g", shape), ("b", shape)))
    axes = tuple(range(axis % 3, 3))
    wanted = (X - X.mean(axes, keepdims=True)) / np.sqrt(X.var(axes, keepdims=True) + 1e-5)
    g, shift = np.full(shape, 2, np.float32), np.full(shape, 0.5, np.float32)
    made = nn.layer_norm(b, x, axis, 1e-5, gamma, beta)
    np.testing.assert_allclose(run(b, [x, gamma, beta], made, X, g, shift), wanted * 2 + 0.5, rtol=1e-5, atol=1e-5)


PRODUCTS = {
    "vectors": ((4,), (4,)),
    "vector_matrix": ((4,), (4, 3)),
    "matrix_vector": ((2, 4), (4,)),
    "matrices": ((2, 4), (4, 3)),
    "batch_matrix": ((5, 2, 4), (4, 3)),
    "matrix_batch": ((2, 4), (5, 4, 3)),
    "batches": ((5, 2, 4), (5, 4, 3)),
    "one_batch": ((1, 2, 4), (5, 4, 3)),
    "spread": ((5, 1, 2, 4), (1, 6, 4, 3)),
    "deep": ((2, 3, 5, 2, 4), (2, 3, 5, 4, 3)),
    "mixed": ((3, 5, 2, 4), (5, 4, 3)),
    "vector_batch": ((4,), (5, 4, 3)),
    "batch_vector": ((5, 6, 2, 4), (4,)),
}


@pytest.mark.parametrize("dynamic", ["none", "first", "all"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_matmul(b, name, dynamic):
    shapes = PRODUCTS[name]
    x, y = (np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(shapes))
    count = {"none": 0, "first": 1, "all": 9}[dynamic]
    opened = [[ANY if i < count and d != 1 else d for i, d in enumerate(s)] for s in shapes]
    left, right = (b.variable(n, TensorType(s, "float32")) for n, s in zip("xy", opened))
    found = run(b, [left, right], nn.matmul(b, left, right), x, y)
    np.testing.assert_allclose(found, np.matmul(x, y), rtol=1e-5, atol=1e-5)


def test_a_product_with_a_weight_is_dense(b):
    x = b.variable("x", TensorType((ANY, 4), "float32"))
    assert nn.matmul(b, x, b.const(np.ones((4, 3), np.float32))).op.name == "nn.dense"


def test_same_padding():
    assert nn.same_padding([7, 8], [3, 3], [2, 2], [1, 1]) == [(1, 1), (0, 1)]
    assert nn.same_padding([8, ANY], [3, 4], [2, 1], [1, 1], lower=True) == [(1, 0), (2, 1)]
    with pytest.raises(Unsupported):
        nn.same_padding([ANY], [3], [2], [1])
    assert nn.padding_of([(1, 2), (3, 4)]) == [1, 3, 2, 4]


SUMS = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "bij,bjk->bik": ((5, 2, 3), (5, 3, 4)),
    "bhid,bhjd->bhij": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "i,i": ((4,), (4,)),
    "i,j->ij": ((3,), (4,)),
    "ij->ji": ((2, 3),),
    "ij->": ((2, 3),),
    "ii->i": ((3, 3),),
    "...ij,...jk->...ik": ((5, 1, 2, 3), (4, 3, 2)),
    "bqhd,bkhd->bhqk": ((2, 3, 4, 5), (2, 6, 4, 5)),
    "ij,j": ((2, 3), (3,)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
    "abc,cd->abd": ((2, 3, 4), (4, 5)),
    "bi,bi->b": ((2, 3), (2, 3)),
    "...ii->...i": ((2, 3, 3),),
    "bij,bj->bi": ((2, 3, 4), (2, 4)),
    "abcd,cdef->abef": ((2, 3, 4, 5), (4, 5, 6, 2)),
}


@pytest.mark.parametrize("opened", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("equation", SUMS)
def test_einsum(b, equation, opened):
    arrays = [np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(SUMS[equation])]
    types = [TensorType([ANY if opened and d != 1 else d for d in a.shape], "float32") for a in arrays]
    xs = [b.variable(f"x{i}", t) for i, t in enumerate(types)]
    found = run(b, xs, einsum(b, equation, xs), *arrays)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)
