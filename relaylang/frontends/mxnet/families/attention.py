"""Attention as GluonNLP has it: queries, keys and values of all heads in one tensor."""

from __future__ import annotations

import math

from relaylang.frontends.common import Builder, Malformed, Rule, nn
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr


def _parts(n: Node, x: Expr, count: int) -> list[Expr]:
    """(steps, batch, heads * count * size) as `count` tensors (batch * heads, steps, size)."""
    b, heads = n.b, n.int("heads")
    steps, batch, width = b.static_shape(x, "the operand of an attention", 3)
    if heads < 1 or width % (heads * count):
        raise Malformed(f"its operand has {width} features, which are not {count} of each of {heads} heads")
    size = width // (heads * count)
    turned = b.transpose(b.reshape_exactly(x, [steps, batch * heads, count, size]), [2, 1, 0, 3])
    return [b.squeeze(b.slice(turned, [i], [i + 1], [0]), [0]) for i in range(count)]


def _scores(b: Builder, q: Expr, k: Expr) -> Expr:
    q = b.op("multiply", q, 1 / math.sqrt(b.extent(q, 2)))
    return b.op("nn.batch_matmul", q, k, transpose_b=True)


def _values(n: Node, weights: Expr, v: Expr) -> Expr:
    """(steps, batch, heads * size) of the weights (batch * heads, steps, keys)."""
    b, heads = n.b, n.int("heads")
    product = nn.matmul(b, weights, v)
    rows, steps, size = b.static_shape(product)
    turned = b.transpose(product, [1, 0, 2])
    return b.reshape_exactly(turned, [steps, rows // heads, heads * size])


RULES = (
    Rule("_contrib_interleaved_matmul_selfatt_qk", lambda n, qkv: _scores(n.b, *_parts(n, qkv, 3)[:2])),
    Rule("_contrib_interleaved_matmul_selfatt_valatt", lambda n, qkv, weights: _values(n, weights, _parts(n, qkv, 3)[2])),
    Rule("_contrib_interleaved_matmul_encdec_qk", lambda n, q, kv: _scores(n.b, _parts(n, q, 1)[0], _parts(n, kv, 2)[0])),
    Rule("_contrib_interleaved_matmul_encdec_valatt", lambda n, kv, weights: _values(n, weights, _parts(n, kv, 2)[1])),
    Rule("_contrib_div_sqrt_dim", lambda n, x: n.b.op("divide", x, math.sqrt(n.b.extent(x, -1, "the last axis")))),
)
