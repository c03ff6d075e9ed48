from __future__ import annotations

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import ANY, FuncType, MetaRef, TensorType, TupleType, Var, var
from relaylang.runtime.random import random_params


def one(name: str, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    value = random_params(0, [var(name, shape=shape, dtype=dtype)])[name]
    assert value.shape == shape and value.dtype.name == dtype
    return value


def test_the_seed_and_the_name_decide() -> None:
    a, b = var("a", shape=(4,)), var("b", shape=(4,))
    both = random_params(1, [a, b])
    assert np.array_equal(both["b"], random_params(1, [b])["b"])
    assert not np.array_equal(both["a"], both["b"])
    assert not np.array_equal(both["a"], random_params(2, [a])["a"])


def test_deep_networks_stay_finite() -> None:
    weight = one("conv_weight", (64, 32, 3, 3))
    assert abs(weight.std() * (32 * 9) ** 0.5 - 1) < 0.05
    assert abs(one("data", (1, 3, 64, 64)).std() - 1) < 0.05
    for name in ("bn_moving_var", "running_var", "variance"):
        assert one(name, (100,)).min() >= 0.5
    assert one("scale", (100,)).min() > 0
    assert abs(one("bn_gamma", (1000,)).mean() - 1) < 0.05
    assert abs(one("bn_beta", (1000,)).std() - 0.1) < 0.02


def test_whole_numbers_bools_and_small_floats() -> None:
    weights = one("w", (1000,), "int8")
    assert weights.min() < -100 and weights.max() > 100
    assert one("bias", (1000,), "int32").min() >= -128
    assert 0 <= one("indices", (1000,), "int64").min() and one("indices", (1000,), "int64").max() < 8
    assert set(one("mask", (100,), "bool").tolist()) == {True, False}
    assert np.isfinite(one("w", (8, 8), "float16")).all()
    assert np.isfinite(one("w", (8, 8), "bfloat16").astype("float32")).all()


def test_tuples_missing_constants_and_types_without_a_value() -> None:
    pair = Var("p", TupleType([TensorType((1,)), TensorType((2,), "int8")]))
    meta = MetaRef("relay.Constant", 0, TensorType((3,)))
    found = random_params(0, [pair, meta])
    assert [v.shape for v in found["p"]] == [(1,), (2,)]
    assert found["meta[relay.Constant][0]"].shape == (3,)
    wrong = [Var("f", FuncType([], TensorType(()))), var("u"), var("n", shape=(ANY,))]
    with pytest.raises(RelayError) as caught:
        random_params(0, wrong)
    assert [d.code for d in caught.value.diagnostics] == ["R0015"] * 3
