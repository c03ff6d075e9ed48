"""FoldConstant: constants on devices, in kernels, and behind dropout."""

from __future__ import annotations

import numpy as np

import relaylang as relay
from relaylang.interpreter import evaluate
from relaylang.ir import Expr, Function, IRModule, structural_equal
from relaylang.transform import (
    FoldConstant,
    FuseOps,
    InferType,
    PassContext,
)
from tests.passes.texts import module, same


def on_device(expr: Expr) -> Expr:
    return relay.op.annotation.on_device(expr, "cpu", constrain_result=True)


def test_dropout_is_not_folded() -> None:
    text = "def @main() { %0 = nn.dropout(1f); add(%0.0, 2f) }"
    assert same(FoldConstant()(module(text)), text)


def test_constants_fold_where_they_are_placed() -> None:
    x = relay.var("x", shape=(), dtype="float32")
    first, second = relay.var("a", shape=(), dtype="float32"), relay.var("b", shape=(), dtype="float32")
    body = relay.Let(
        first, on_device(relay.const(1.0)), relay.Let(second, on_device(relay.add(first, first)), on_device(relay.add(second, x)))
    )
    found = FoldConstant()(InferType()(IRModule.from_expr(Function([x], body))))
    expected = on_device(relay.add(on_device(relay.const(2.0)), x))
    assert structural_equal(InferType()(found), InferType()(IRModule.from_expr(Function([x], expected))))


def test_fields_and_branches_of_what_is_placed() -> None:
    x = relay.var("x", shape=(), dtype="float32")
    pair = on_device(relay.Tuple([x, relay.const(1.0)]))
    chosen = relay.If(on_device(relay.const(True)), relay.TupleGetItem(pair, 1), x)
    found = FoldConstant()(InferType()(IRModule.from_expr(Function([x], chosen))))
    assert structural_equal(InferType()(found), InferType()(IRModule.from_expr(Function([x], on_device(relay.const(1.0))))))


def test_constants_inside_kernels() -> None:
    text = "def @main(%x: Tensor[(10), float32]) { take(concatenate((%x, %x), axis=0), meta[relay.Constant][0]) }"
    x = relay.var("x", shape=(10,))
    call = relay.take(relay.concatenate([x, x], axis=0), relay.const([0, 1], "int64"))
    mod = InferType()(IRModule.from_expr(Function([x], call)))
    for linked, number in ((False, 2), (True, 1)):
        with PassContext(config={"relay.FuseOps.link_params": linked}):
            body = FuseOps()(mod)["main"].body
        assert len(body.args) == number, text
        value = np.arange(10, dtype="float32")
        assert evaluate(InferType()(IRModule.from_expr(Function([x], body))), value).tolist() == [0, 1]
