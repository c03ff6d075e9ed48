"""Operators that ONNX had as experiments until opset 9, as the exporters of Caffe2 and CoreML wrote them."""

from __future__ import annotations

import math
from typing import Any

from relaylang.frontends.common import Rule, Unsupported, nn
from relaylang.frontends.onnx.families.norm import batch_norm_spatial
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def _times(n: Node, x: Expr, name: str) -> Expr:
    factor = n.float(name, 1.0)
    return x if factor == 1.0 else n.b.op("multiply", x, factor)


def affine(n: Node, x: Expr) -> Any:
    shift = n.float("beta", 0.0)
    return _times(n, x, "alpha") if shift == 0.0 else n.b.op("add", _times(n, x, "alpha"), shift)


def dense(n: Node, x: Expr, weight: Expr, bias: Expr) -> Any:
    """Caffe2's fully connected layer: the axes from `axis` on are one, and the weight is (units, elements)."""
    b, axis = n.b, n.int("axis", 1)
    if n.int("axis_w", 1) != 1 or axis < 1:
        raise Unsupported(f"its axes are {axis} and {n.int('axis_w', 1)}")
    shape = b.static_shape(x)
    rows = b.reshape_exactly(x, [math.prod(shape[:axis]), math.prod(shape[axis:])])
    product = b.op("nn.bias_add", b.op("nn.dense", rows, b.of_rank(weight, 2), units=b.extent(weight, 0)), bias, axis=-1)
    return b.reshape_exactly(product, [*shape[:axis], b.extent(weight, 0)])


RULES = (
    Rule("Affine", affine),
    Rule("FC", dense),
    Rule("ParametricSoftplus", lambda n, x: _times(n, nn.softplus(n.b, _times(n, x, "beta")), "alpha")),
    Rule("Scale", lambda n, x: _times(n, x, "scale")),
    Rule("ScaledTanh", lambda n, x: _times(n, n.b.op("tanh", _times(n, x, "beta")), "alpha")),
    Rule("SpatialBN", batch_norm_spatial),
)
