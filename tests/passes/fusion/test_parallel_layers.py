"""The CombineParallel passes on layers."""

from __future__ import annotations

import pytest

from relaylang.ir import Function, IRModule, TensorType, Tuple, Var
from relaylang.ops.build import op_call
from tests.passes.layers import X, after, conv, numbers, ops


def test_parallel_convolutions_are_combined() -> None:
    x = Var("x", X)
    branches = [op_call("nn.relu", [conv(x, n, 4, seed=n)]) for n in (2, 3, 4)] + [conv(op_call("exp", [x]), 2, 4)]
    mod = after("CombineParallelConv2D,FoldConstant", IRModule.from_expr(Function([x], Tuple(branches))))
    assert ops(mod).count("nn.conv2d") == 2 and ops(mod).count("strided_slice") == 3
    few = after("CombineParallelConv2D(min_num_branches=4)", IRModule.from_expr(Function([x], Tuple(branches))))
    assert ops(few).count("nn.conv2d") == 4


@pytest.mark.parametrize("to_batch", [True, False])
def test_parallel_dense_layers_are_combined(to_batch: bool) -> None:
    x = Var("x", TensorType((2, 3)))
    units = [4, 4, 4] if to_batch else [4, 2, 3]
    branches = [op_call("nn.dense", [x, numbers(u, 3, seed=i)], units=u) for i, u in enumerate(units)]
    mod = IRModule.from_expr(Function([x], Tuple(branches)))
    new = after(f"CombineParallelDense(to_batch={to_batch}),FoldConstant", mod)
    assert ops(new).count("nn.batch_matmul") + ops(new).count("nn.dense") == 1


def test_parallel_batch_products_are_combined() -> None:
    x = Var("x", TensorType((2, 3, 4)))
    branches = [op_call("nn.batch_matmul", [x, numbers(2, n, 4, seed=n)], transpose_b=True) for n in (1, 2, 3)]
    mod = after("CombineParallelBatchMatmul,FoldConstant", IRModule.from_expr(Function([x], Tuple(branches))))
    assert ops(mod).count("nn.batch_matmul") == 1


def test_a_branch_that_needs_another_is_not_combined() -> None:
    x = Var("x", TensorType((3, 3)))
    first = op_call("nn.dense", [x, numbers(3, 3)], units=3)
    second = op_call("nn.dense", [x, first], units=3)
    third = op_call("nn.dense", [x, second], units=3)
    mod = after("CombineParallelDense(min_num_branches=2)", IRModule.from_expr(Function([x], third)))
    assert ops(mod).count("nn.dense") == 3
