"""Variables: their values are those of the file."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.tensorflow.node import Node, Value, Variable, need_tensor
from relaylang.ir import Expr


def handle(n: Node) -> Any:
    return [Variable(n.name, n.text("shared_name", ""))]


def variable(n: Node) -> Any:
    """A variable of graphs before resources: reads need no layer."""
    return [n.importer.variable(Variable(n.name, n.text("shared_name", "")))]


def _value(n: Node, x: Value) -> Expr:
    if not isinstance(x, Variable):
        raise Unsupported("its operand is no variable")
    return n.importer.variable(x)


def read(n: Node, x: Value) -> Any:
    return [_value(n, x)]


def gather(n: Node, x: Value, at: Value) -> Any:
    """Rows of a variable."""
    return [n.b.op("take", _value(n, x), need_tensor(at), axis=n.int("batch_dims", 0), batch_dims=n.int("batch_dims", 0))]


def gather_nd(n: Node, x: Value, at: Value) -> Any:
    b, places = n.b, need_tensor(at)
    rank = b.rank(places)
    return [b.op("gather_nd", _value(n, x), b.transpose(places, [rank - 1, *range(rank - 1)]))]


def shape(n: Node, x: Value) -> Any:
    return [n.b.shape_of(_value(n, x), n.dtype("out_type", "int32"))]


RULES = (
    Rule("ReadVariableOp", read),
    Rule("ResourceGather", gather),
    Rule("ResourceGatherNd", gather_nd),
    Rule("VarHandleOp", handle),
    Rule("VarIsInitializedOp", lambda n, x: [n.b.const(True, "bool")]),
    Rule("Variable", variable),
    Rule("VariableShape", shape),
    Rule("VariableV2", variable),
)
