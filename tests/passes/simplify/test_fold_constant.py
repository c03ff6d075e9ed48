"""FoldConstant: the folded calls, and those that must stay."""

from __future__ import annotations

from relaylang.ir import Constant, post_order
from relaylang.testing.generators.programs import T
from tests.passes.texts import after, main, ops


def test_constants_are_folded() -> None:
    mod = after("FoldConstant", main("%0 = add(1f, 2f); let %c = multiply(%0, 2f); add(%x, negative(%c))"))
    assert ops(mod) == ["add"]
    (constant,) = [n for n in post_order(mod["main"]) if isinstance(n, Constant)]
    assert constant.data == -6 and mod["main"].body.checked_type == T


def test_tuples_branches_and_shapes_are_folded() -> None:
    assert ops(after("FoldConstant", main("%0 = (%x, 1f); %0.0"))) == []
    assert ops(after("FoldConstant", main("if (True) { %x } else { exp(%x) }"))) == []
    mod = after("FoldConstant", main("(shape_of(%x, dtype=\"int32\"), ndarray_size(%x, dtype=\"int32\"))"))
    assert ops(mod) == [] and [n.data.tolist() for n in mod["main"].body.fields] == [[2, 3], 6]


def test_what_must_not_be_folded_stays() -> None:
    assert ops(after("FoldConstant", main("add(%x, zeros(shape=[2, 3], dtype=\"float32\"))"))) == ["zeros", "add"]
    quantize = main('add(%x, qnn.dequantize(qnn.quantize(1f, 0.5f, 0, out_dtype="int8"), 0.5f, 0, out_dtype="float32"))')
    assert "qnn.quantize" in ops(after("FoldConstant", quantize))
    assert ops(after("FoldConstant(fold_qnn=True)", quantize)) == ["add"]
