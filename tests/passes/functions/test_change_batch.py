"""ChangeBatch: inputs with another extent of an axis."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.transform import ChangeBatch, InferType, PassContext, Verify

DENSE = """def @main(%x: Tensor[(8, 6), float32], %w: Tensor[(5, 6), float32]) -> Tensor[(8, 5), float32] {
  let %y = nn.dense(%x, %w, units=5);
  nn.relu(%y)
}"""


def parsed(text: str) -> IRModule:
    return InferType()(relay.parse(text))


def test_results_have_the_new_extent() -> None:
    mod = parsed(DENSE)
    with PassContext(instruments=[Verify()]):
        made = ChangeBatch({mod["main"].params[0]: 0}, batch_size=3)(mod)
    assert made["main"].checked_type.ret_type.shape == (3, 5) and mod["main"].checked_type.ret_type.shape == (8, 5)
    x, w = np.ones((3, 6), "float32"), np.ones((5, 6), "float32")
    assert np.array_equal(relay.evaluate(made, x, w), np.full((3, 5), 6, "float32"))


def test_inputs_have_names() -> None:
    made = ChangeBatch({"x": 0})(parsed(DENSE))
    assert made["main"].checked_type.arg_types[0].shape == (16, 6)


@pytest.mark.parametrize("data, says", [({"z": 0}, "no function has a parameter %z"), ({"x": 2}, "there is no axis 2")])
def test_what_is_not_there(data: dict[str, int], says: str) -> None:
    with pytest.raises(RelayError, match=says):
        ChangeBatch(data, 4)(parsed(DENSE))


def test_attributes_that_state_extents() -> None:
    mod = parsed("def @main(%x: Tensor[(2, 3), float32]) { reshape(%x, newshape=[6]) }")
    with pytest.raises(RelayError, match="cannot be reshaped"):
        ChangeBatch({"x": 0}, 4)(mod)
