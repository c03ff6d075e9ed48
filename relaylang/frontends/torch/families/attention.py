"""Scaled dot-product attention, and layers of attention with several heads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.common import attention as heads
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def attention(n: Node) -> Any:
    """softmax(q k^T scale + mask) v; key heads are repeated where there are fewer."""
    b = n.b
    q, k, v = (n.x(name) for name in ("query", "key", "value"))
    if n.get("dropout_p"):
        raise Unsupported("dropout in training gives random numbers")
    if n.get("enable_gqa"):
        count = b.extent(q, -3) // b.extent(k, -3)
        k, v = (b.op("repeat", t, repeats=count, axis=b.rank(t) - 3) for t in (k, v))
    depth = b.extent(q, -1)
    scale = n.get("scale")
    factor = 1 / math.sqrt(depth) if scale is None else float(scale)
    rank = b.rank(k)
    scores = matmul(b, b.op("multiply", q, factor), b.transpose(k, [*range(rank - 2), rank - 1, rank - 2]))
    bias = _mask(n, scores, q, k)
    attended = matmul(b, heads.softmax(b, scores if bias is None else b.op("add", scores, bias), bias), v)
    return attended if n.call.target.startswith("aten.scaled_dot_product_attention") else [attended]


def _mask(n: Node, scores: Expr, q: Expr, k: Expr) -> Expr | None:
    """The addend of the scores: the causal mask, and the caller's mask."""
    b, bias = n.b, None
    if n.get("is_causal"):
        bias = heads.as_bias(b, _causal(n, q, k), b.dtype(scores))
    name = "attn_bias" if "attn_bias" in n.call.args else "attn_mask"
    if n.has(name):
        mask = n.x(name)
        mask = heads.as_bias(b, mask, b.dtype(scores)) if b.dtype(mask) == "bool" else mask
        bias = heads.add(b, bias, mask)
    return bias


def _causal(n: Node, q: Expr, k: Expr) -> Expr:
    """Which keys are not behind their query."""
    b = n.b
    rows, columns = (b.shape(t)[-2] for t in (q, k))
    if isinstance(rows, int) and isinstance(columns, int):
        return b.const(np.tril(b.arrays.ones((rows, columns), bool)))
    return b.op("less_equal", heads.positions(b, k, b.rank(k) - 2), b.unsqueeze(heads.positions(b, q, b.rank(q) - 2), [1]))


def several_heads(n: Node) -> Any:
    """The fused layer of `nn.MultiheadAttention`: projections, attention, and the weights where they are asked for."""
    b, count = n.b, n.int("num_head")
    query, key, value = (n.x(name) for name in ("query", "key", "value"))
    size = n.int("embed_dim")
    weight, bias = n.x("qkv_weight"), n.x("qkv_bias")
    parts = []
    for i, x in enumerate((query, key, value)):
        own = b.slice(weight, [i * size], [(i + 1) * size], [0])
        shift = b.slice(bias, [i * size], [(i + 1) * size], [0])
        projected = b.op("add", matmul(b, x, b.transpose(own, [1, 0])), shift)
        parts.append(heads.split_heads(b, projected, count))
    q, k, v = parts
    scores = heads.scores(b, q, k)
    extra = None
    if n.has("mask"):
        extra = _heads_mask(n, scores)
        scores = b.op("add", scores, extra)
    weights = heads.softmax(b, scores, extra)
    joined = heads.join_heads(b, matmul(b, weights, v))
    output = b.op("add", matmul(b, joined, b.transpose(n.x("proj_weight"), [1, 0])), n.x("proj_bias"))
    if n.get("average_attn_weights", True):
        weights = b.op("mean", weights, axis=[1])
    return [output, weights]


def _heads_mask(n: Node, scores: Expr) -> Expr:
    """Kinds of masks: 0 is (queries, keys), 1 is padding (batch, keys), 2 is for all axes. True hides a key."""
    b, mask, kind = n.b, n.x("mask"), n.get("mask_type")
    rank = b.rank(mask)
    if kind == 1 or (kind is None and rank == 2 and b.shape(mask)[0] != b.shape(scores)[2]):
        mask = b.unsqueeze(mask, [1, 2])
    elif rank == 2:
        mask = b.unsqueeze(mask, [0, 1])
    if b.dtype(mask) != "bool":
        return mask
    return b.op("where", mask, b.const(-np.inf, b.dtype(scores)), b.const(0.0, b.dtype(scores)))


_NAMES = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)
RULES = (
    *(Rule(f"aten.{name}", attention) for name in _NAMES),
    Rule("aten._native_multi_head_attention", several_heads),
)
