"""FlexibleShapeDispatch: extents that have functions of their own, and all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.transform import FlexibleShapeDispatch, InferType, PassContext, Verify

DENSE = "def @main(%x: Tensor[(8, 6), float32], %w: Tensor[(5, 6), float32]) { nn.relu(nn.dense(%x, %w, units=5)) }"
RNG = np.random.default_rng(3)


def dispatched(text: str, **options: Any) -> IRModule:
    with PassContext(instruments=[Verify()]):
        return FlexibleShapeDispatch(**options)(InferType()(relay.parse(text)))


def names(mod: IRModule) -> set[str]:
    return {gv.name_hint for gv in mod.functions}


@pytest.mark.sample(2)
@pytest.mark.parametrize("auto_pad", [False, True])
@pytest.mark.parametrize("executor", ["debug", "vm"])
def test_every_extent_gives_the_same_result(auto_pad: bool, executor: str) -> None:
    mod = dispatched(DENSE, buckets=[2, 4], auto_pad=auto_pad)
    assert names(mod) == {"main", "main_2", "main_4", "main_?"}
    run = relay.create_executor(executor, mod).evaluate()
    w = RNG.normal(size=(5, 6)).astype("float32")
    for extent in (1, 2, 3, 4, 7):
        x = RNG.normal(size=(extent, 6)).astype("float32")
        np.testing.assert_allclose(np.asarray(run(x, w)), np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-6)


def test_each_function_has_its_own_types() -> None:
    mod = dispatched("def @main(%x: Tensor[(8, 6), float32]) { let %y = exp(%x); add(%y, %y) }", buckets=[3])
    (param,) = mod["main_3"].params
    assert param.checked_type.shape == (3, 6) and mod["main_3"].checked_type.ret_type.shape == (3, 6)
    assert str(mod["main"].checked_type.ret_type.shape[0]) == "?" and len(mod["main_?"].params) == 1


def test_several_inputs_and_results_of_one_shape() -> None:
    text = "def @main(%x: Tensor[(3, 9), float32], %w: Tensor[(2, 9), float32]) { nn.dense(%x, %w, units=2) }"
    mod = dispatched(text, buckets=[5], axis=1, input_indices=[0, 1], affects_output=False)
    for extent in (4, 5):
        x, w = RNG.normal(size=(3, extent)).astype("float32"), RNG.normal(size=(2, extent)).astype("float32")
        np.testing.assert_allclose(relay.evaluate(mod, x, w), x @ w.T, rtol=1e-5, atol=1e-6)


def test_values_that_fill_up_are_seen() -> None:
    """A sum over the padded axis shows what it is filled with."""
    mod = dispatched("def @main(%x: Tensor[(8), float32]) { sum(%x) }", buckets=[4], auto_pad=True, pad_value=10, affects_output=False)
    assert relay.evaluate(mod, np.ones(3, "float32")) == 13 and relay.evaluate(mod, np.ones(5, "float32")) == 5


@pytest.mark.parametrize(
    "options, says",
    [
        ({"axis": 2}, "there is no axis 2"),
        ({"input_indices": [2]}, "@main has 2 inputs"),
    ],
)
def test_inputs_that_there_are_not(options: dict[str, Any], says: str) -> None:
    with pytest.raises(RelayError, match=says):
        FlexibleShapeDispatch(buckets=[2], **options)(InferType()(relay.parse(DENSE)))
