"""Dataflow patterns: what they match, and what a match says of it."""

from __future__ import annotations

import numpy as np

from relaylang.ir import Call, TensorType, TupleGetItem, const, var
from relaylang.ir import Tuple as TupleExpr
from relaylang.ir.typed import typed
from relaylang.ops import get, make_attrs
from relaylang.patterns import (
    find_match,
    has_attr,
    has_dtype,
    has_shape,
    is_constant,
    is_expr,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    wildcard,
)


def call(name: str, *args: object, **attrs: object) -> Call:
    op = get(name)
    return Call(op, args, make_attrs(op.attrs, attrs) if op.attrs is not None else None)  # type: ignore[arg-type]


X = var("x", shape=(2, 3))
Y = var("y", shape=(2, 3))


def test_leaves() -> None:
    assert wildcard().match(X)
    assert is_var().match(X) and is_var("x").match(X) and not is_var("y").match(X)
    assert is_constant().match(const(1)) and not is_constant().match(X)
    assert is_expr(X).match(X) and not is_expr(X).match(Y)
    assert is_expr(const(1)).match(const(1)) and not is_expr(const(1)).match(const(2))
    assert is_op("add").match(get("add")) and not is_op("add").match(get("nn.relu"))


def test_calls_and_open_arguments() -> None:
    expr = call("subtract", X, Y)
    assert is_op("subtract")(is_var("x"), is_var("y")).match(expr)
    assert not is_op("subtract")(is_var("y"), is_var("x")).match(expr)
    assert is_op("subtract")(None).match(expr)
    assert not is_op("subtract")(wildcard()).match(expr)


def test_sums_match_in_either_order() -> None:
    expr = call("add", X, const(np.ones(3, "float32")))
    assert is_op("add")(wildcard(), is_constant()).match(expr)
    assert is_op("add")(is_constant(), wildcard()).match(expr)


def test_optional_takes_the_larger_one() -> None:
    pattern = is_op("nn.relu")(wildcard()).optional(lambda p: is_op("clip")(p))
    inner = call("nn.relu", X)
    outer = call("clip", inner, a_min=0.0, a_max=6.0)
    assert pattern.match(inner) and pattern.match(outer) and not pattern.match(X)
    found = find_match(pattern, outer)
    assert found is not None
    assert found.nodes == (inner, outer)
    assert found.inputs == (X,)
    assert match(pattern, inner)


def test_either() -> None:
    pattern = is_op("nn.relu")(wildcard()) | is_op("tanh")(wildcard())
    assert pattern.match(call("tanh", X)) and pattern.match(call("nn.relu", X)) and not pattern.match(call("exp", X))


def test_a_part_that_stands_twice_meets_one_node() -> None:
    part = wildcard()
    pattern = is_op("multiply")(part, part)
    assert pattern.match(call("multiply", X, X))
    assert not pattern.match(call("multiply", X, Y))


def test_a_failed_alternative_leaves_nothing_behind() -> None:
    part = wildcard()
    pattern = is_op("subtract")(part, is_constant()) | is_op("subtract")(is_var("x"), part)
    found = find_match(pattern, call("subtract", X, Y))
    assert found is not None and found.bindings[part] is Y


def test_attributes_and_types() -> None:
    conv = call("nn.conv2d", X, Y, strides=[2, 2], kernel_size=[3, 3])
    typed(conv, TensorType((1, 8, 4, 4), "float32"))
    assert has_attr({"strides": (2, 2)}).match(conv) and is_op("nn.conv2d")(None).has_attr({"groups": 1}).match(conv)
    assert not has_attr({"strides": [1, 1]}).match(conv) and not has_attr({"axis": 1}).match(conv)
    assert has_dtype("float32").match(conv) and not has_dtype("int8").match(conv)
    assert has_shape((1, 8, 4, 4)).match(conv) and not has_shape((1, 8)).match(conv)


def test_tuples() -> None:
    pair = TupleExpr([X, Y])
    assert is_tuple(None).match(pair) and is_tuple([is_var("x"), wildcard()]).match(pair)
    assert not is_tuple([wildcard()]).match(pair)
    field = TupleGetItem(pair, 1)
    assert is_tuple_get_item(wildcard()).match(field) and is_tuple_get_item(is_tuple(None), 1).match(field)
    assert not is_tuple_get_item(wildcard(), 0).match(field)
    found = find_match(is_op("concatenate")(is_tuple(None)), call("concatenate", pair, axis=0))
    assert found is not None and found.inputs == (X, Y)
