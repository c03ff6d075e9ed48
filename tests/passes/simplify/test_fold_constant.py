"""FoldConstant: the folded calls, and those that must stay."""

from __future__ import annotations

import numpy as np

from relaylang.ir import Call, Constant, Tuple, post_order
from relaylang.ops import get, make_attrs
from relaylang.passes.simplify.fold_constant import evaluator, fold_expr, fold_typed
from relaylang.testing.generators.programs import T
from relaylang.typing import check
from tests.passes.texts import after, main, ops


def test_constants_are_folded() -> None:
    mod = after("FoldConstant", main("%0 = add(1f, 2f); let %c = multiply(%0, 2f); add(%x, negative(%c))"))
    assert ops(mod) == ["add"]
    (constant,) = [n for n in post_order(mod["main"]) if isinstance(n, Constant)]
    assert constant.data == -6 and mod["main"].body.checked_type == T


def test_tuples_branches_and_shapes_are_folded() -> None:
    assert ops(after("FoldConstant", main("%0 = (%x, 1f); %0.0"))) == []
    assert ops(after("FoldConstant", main("if (True) { %x } else { exp(%x) }"))) == []
    mod = after("FoldConstant", main('(shape_of(%x, dtype="int32"), ndarray_size(%x, dtype="int32"))'))
    assert ops(mod) == [] and [n.data.tolist() for n in mod["main"].body.fields] == [[2, 3], 6]


def test_what_must_not_be_folded_stays() -> None:
    assert ops(after("FoldConstant", main('add(%x, zeros(shape=[2, 3], dtype="float32"))'))) == ["zeros", "add"]
    quantize = main('add(%x, qnn.dequantize(qnn.quantize(1f, 0.5f, 0, out_dtype="int8"), 0.5f, 0, out_dtype="float32"))')
    assert "qnn.quantize" in ops(after("FoldConstant", quantize))
    assert ops(after("FoldConstant(fold_qnn=True)", quantize)) == ["add"]


def test_results_far_larger_than_their_operands_stay_calls() -> None:
    """Also where the values of the operands are the extents, so that the call's type tells no size."""
    for name, operands, attrs in (
        ("full", [np.float32(1)], {"shape": [100000, 100000]}),
        ("dyn.full", [np.float32(1), np.array([100000, 100000])], {"dtype": "float32"}),
    ):
        op = get(name)
        call = Call(op, [Constant(np.asarray(v)) for v in operands], make_attrs(op.attrs, attrs))
        assert isinstance(fold_typed(call), Call)


def test_a_run_has_a_bound_of_steps() -> None:
    """Each product takes 2**18 steps and some more; after the bound, calls stay calls."""
    square, dense = Constant(np.ones((64, 64), "float32")), get("nn.dense")
    many = Tuple([Call(dense, [square, square], make_attrs(dense.attrs, {})) for _ in range(10)])
    check(many, fragment=True)
    folded = fold_expr(many, evaluator(1 << 20))
    assert isinstance(folded, Tuple)
    assert [isinstance(f, Constant) for f in folded.fields] == [True] * 3 + [False] * 7
