"""Errors in programs that were built, not read: the text of the call is their place."""

from __future__ import annotations

import pytest

import relaylang as relay
from relaylang.ir import Call, Expr, Function, IRModule, Var
from relaylang.ops import OPS
from relaylang.typing import infer

X, Y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(7,))


@pytest.mark.parametrize(
    ("body", "code", "text", "marked"),
    [
        (relay.add(X, Y), "R0301", "add(%x, %y)", "%y"),
        (relay.add(relay.nn.relu(X), Y), "R0301", "add(nn.relu(...), %y)", "%y"),
        (relay.nn.softmax(X, axis=5), "R0301", "nn.softmax(%x, axis=5)", "axis=5"),
        (relay.nn.dense(X, Y, out_dtype="int8"), "R0301", 'nn.dense(%x, %y, out_dtype="int8")', "%y"),
        (Call(OPS["add"], [X]), "R0303", "add(%x)", "add(%x)"),
        (relay.concatenate((X, Y), axis=0), "R0301", "concatenate((%x, %y))", "(%x, %y)"),
        (Call(Function([Var("a", X.type_annotation)], relay.const(1)), [Y]), "R0302", "function(%y)", "%y"),
        (Call(Var("f", relay.FuncType([], relay.TupleType([]))), [X]), "R0303", "%f(%x)", "%f(%x)"),
    ],
)
def test_the_call_is_shown(body: Expr, code: str, text: str, marked: str) -> None:
    found = infer(IRModule.from_expr(body))
    wrong = next(d for d in found if d.code == code)
    assert wrong.span is not None
    assert (wrong.span.source.name, wrong.span.source.text, wrong.span.text) == ("<built>", text, marked)
