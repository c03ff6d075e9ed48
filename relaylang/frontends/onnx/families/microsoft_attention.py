"""Attention layers of com.microsoft, as onnxruntime's optimiser fuses them."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.common import attention as common
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.common.quantized import along
from relaylang.frontends.onnx.families.quantized import integer_matmul, product_of, qnn_scales
from relaylang.frontends.onnx.node import Node
from relaylang.ir import ANY, Expr, is_static

DOMAIN = "com.microsoft"


def _split(b: Builder, x: Expr, sizes: list[int]) -> list[Expr]:
    """Parts of the last axis, or of a vector."""
    ends = np.cumsum(sizes).tolist()
    return [b.slice(x, [end - size], [end], [b.rank(x) - 1]) for size, end in zip(sizes, ends)]


def _plus(b: Builder, x: Expr, bias: Expr | None) -> Expr:
    return x if bias is None else b.op("add", x, bias)


# ---- masks


def _mask_bias(n: Node, mask: Expr, q: Expr, k: Expr) -> Expr:
    """The bias of a key mask: a length for each sequence, or 1 for each key that counts."""
    b, rank, keys = n.b, n.b.rank(mask), n.b.shape(k)[2]
    low = n.float("mask_filter_value", -10000.0)
    seen: Expr | None
    if rank == 1:
        seen = _by_length(b, mask, q, k)
    else:
        seen = b.op("not_equal", mask, 0)
        seen = b.unsqueeze(seen, {2: [1, 2], 3: [1], 4: []}[rank])
        if rank == 4 and isinstance(keys, int):
            queries = b.extent(q, 2)
            seen = b.slice(seen, [keys - queries, 0], [keys, keys], [2, 3])
    bias = common.as_bias(b, seen, b.dtype(q), low)
    assert bias is not None
    return bias


def _by_length(b: Builder, lengths: Expr, q: Expr, k: Expr) -> Expr:
    """(batch) has ends; (2 * batch) has ends, then starts."""
    have, batch = b.shape(lengths)[0], b.shape(q)[0]
    if have == batch or have is ANY:
        return common.shorter_than(b, k, lengths)
    if not is_static(have) or not is_static(batch) or have != 2 * batch:
        raise Unsupported("a mask of packed sequences is not converted")
    ends, starts = b.slice(lengths, [0], [batch], [0]), b.slice(lengths, [batch], [have], [0])
    behind = b.op("logical_not", common.shorter_than(b, k, starts))
    return b.op("logical_and", common.shorter_than(b, k, ends), behind)


def _causal(n: Node, q: Expr, k: Expr, past: Expr | None) -> Expr | None:
    """-inf for keys behind the query, where the layer has the attribute."""
    b = n.b
    if not n.int("unidirectional", 0):
        return None
    offset: Expr | int = 0 if past is None else common.extent_of(b, past, 2)
    return common.as_bias(b, common.window(b, q, k, offset, -1, 0), b.dtype(q))


# ---- layers


def _self_attention(n: Node, qkv: Expr, sizes: list[int], mask: Expr | None, past: Expr | None, bias: Expr | None) -> list[Expr]:
    """Attention of a projection (batch, steps, q + k + v), and the keys and values for the next call."""
    b, heads = n.b, n.int("num_heads")
    if n.int("past_present_share_buffer", 0) or n.int("do_rotary", 0):
        raise Unsupported("a shared buffer of the past is not converted")
    q, k, v = (common.split_heads(b, x, heads) for x in _split(b, qkv, sizes))
    old = None
    if past is not None:
        old, old_v = (b.squeeze(b.slice(past, [i], [i + 1], [0]), [0]) for i in (0, 1))
        k, v = b.concat([old, k], 2), b.concat([old_v, v], 2)
    full_bias = common.add(b, bias, None if mask is None else _mask_bias(n, mask, q, k))
    full_bias = common.add(b, full_bias, _causal(n, q, k, old))
    y = common.attend(b, q, k, v, full_bias, n.float("scale", 0.0), guard=False)
    results = [common.join_heads(b, y)]
    return [*results, b.op("stack", b.tuple([k, v]), axis=0)] if n.has_output(1) else results


def attention(
    n: Node,
    x: Expr,
    w: Expr,
    bias: Expr | None = None,
    mask: Expr | None = None,
    past: Expr | None = None,
    extra: Expr | None = None,
    length: Expr | None = None,
) -> Any:
    b = n.b
    sizes = n.ints("qkv_hidden_sizes", [b.extent(w, 1) // 3] * 3)
    return _self_attention(n, _plus(b, matmul(b, x, w), bias), sizes, mask, past, extra)


def qattention(
    n: Node,
    x: Expr,
    w: Expr,
    bias: Expr,
    x_scale: Expr,
    w_scale: Expr,
    mask: Expr | None = None,
    x_zero: Expr | None = None,
    w_zero: Expr | None = None,
    past: Expr | None = None,
) -> Any:
    """The projection is of whole numbers; the attention itself is of real ones."""
    b = n.b
    sums = integer_matmul(b, x, w, x_zero, w_zero, qnn_scales(b, x_scale, w_scale))
    factor = along(b, product_of(b, x_scale, w_scale), -1, 3)
    qkv = b.op("add", b.op("multiply", b.cast(sums, "float32"), factor), bias)
    return _self_attention(n, qkv, [b.extent(w, 1) // 3] * 3, mask, past, None)


def multi_head_attention(
    n: Node,
    q: Expr,
    k: Expr | None = None,
    v: Expr | None = None,
    bias: Expr | None = None,
    mask: Expr | None = None,
    extra: Expr | None = None,
    past_k: Expr | None = None,
    past_v: Expr | None = None,
    length: Expr | None = None,
    beams: Expr | None = None,
) -> Any:
    b, heads = n.b, n.int("num_heads")
    if length is not None or beams is not None:
        raise Unsupported("a shared buffer of the past is not converted")
    q, k, v = _three(b, q, k, v)
    parts: list[Expr | None] = [None] * 3
    if bias is not None:
        width = b.extent(q, 2)
        parts = list(_split(b, bias, [width, width, b.extent(bias, 0) - 2 * width]))
    split = [x if b.rank(x) == 4 else common.split_heads(b, _plus(b, x, p), heads) for x, p in zip((q, k, v), parts)]
    q, k, v = split
    k = k if past_k is None else b.concat([past_k, k], 2)
    v = v if past_v is None else b.concat([past_v, v], 2)
    full_bias = common.add(b, extra, None if mask is None else _mask_bias(n, mask, q, k))
    full_bias = common.add(b, full_bias, _causal(n, q, k, past_k))
    y = common.attend(b, q, k, v, full_bias, n.float("scale", 0.0), guard=False)
    return [common.join_heads(b, y), k, v]


def _three(b: Builder, q: Expr, k: Expr | None, v: Expr | None) -> list[Expr]:
    """Query, key and value (batch, steps, size), from tensors that may hold several of them packed."""
    if k is None:
        return _packed(b, q, 3)
    return [q, *_packed(b, k, 2)] if v is None else [q, k, v]


def _packed(b: Builder, x: Expr, count: int) -> list[Expr]:
    """The parts of (batch, steps, heads, count, size)."""
    if b.rank(x) != 5:
        raise Unsupported("key and value are missing")
    parts = [b.squeeze(b.slice(x, [i], [i + 1], [3]), [3]) for i in range(count)]
    return [b.op("reshape", p, newshape=[0, 0, -3]) for p in parts]


def group_query_attention(n: Node, *operands: Expr | None) -> Any:
    """Causal attention in which several queries share a head of keys; the past grows by the new keys."""
    b = n.b
    q, k, v, past_k, past_v, lengths, total, cos, sin, places, extra, sink = (*operands, *[None] * 12)[:12]
    if any(x is not None for x in operands[12:]) or q is None or lengths is None:
        raise Unsupported("quantised or normalised keys are not converted")
    heads, own = n.int("num_heads"), n.int("kv_num_heads")
    if k is None or v is None:
        size = b.extent(q, 2) // (heads + 2 * own)
        q, k, v = _split(b, q, [heads * size, own * size, own * size])
    q, k, v = common.split_heads(b, q, heads), common.split_heads(b, k, own), common.split_heads(b, v, own)
    empty = past_k is None or b.shape(past_k)[2] == 0
    offset: Expr | int = 0
    if not empty:
        _growing(b, past_k, total)
        steps = common.extent_of(b, q, 2)
        offset = b.op("subtract", b.op("add", b.cast(lengths, "int64"), b.const(1, "int64")), steps)
        offset = b.unsqueeze(b.op("reshape", offset, newshape=[-1]), [1, 2, 3])
    if n.int("do_rotary", 0) and cos is not None and sin is not None:
        q, k = (_rotated(n, x, cos, sin, places, offset) for x in (q, k))
    if not empty and past_k is not None and past_v is not None:
        k, v = b.concat([past_k, k], 2), b.concat([past_v, v], 2)
    behind = 0 if n.int("causal", 1) else -1
    width = max(n.int("local_window_size", -1), 0)
    seen = common.window(b, q, k, offset, width - 1, behind)
    seen = common.both(b, seen, common.shorter_than(b, k, b.op("add", b.op("reshape", lengths, newshape=[-1]), 1)))
    bias = common.add(b, extra, common.as_bias(b, seen, b.dtype(q)))
    wide = [common.repeat_heads(b, x, heads) for x in (k, v)]
    scores = common.capped(b, common.scores(b, q, wide[0], n.float("scale", 0.0)), n.float("softcap", 0.0))
    scores = _plus(b, scores, bias)
    if n.int("smooth_softmax", 0) > 0 or sink is not None:
        chances = _with_sink(b, scores, sink)
    else:
        chances = common.softmax(b, scores, bias)
    return [common.join_heads(b, matmul(b, chances, wide[1])), k, v]


def _growing(b: Builder, past: Expr | None, total: Expr | None) -> None:
    """A past that has room for the new keys already is another form of cache."""
    value = b.value(total)
    have = b.shape(past)[2] if past is not None else 0
    if value is not None and isinstance(have, int) and int(value.reshape(-1)[0]) <= have:
        raise Unsupported("a cache of fixed length is not converted")


def _rotated(n: Node, x: Expr, cos: Expr, sin: Expr, places: Expr | None, offset: Expr | int) -> Expr:
    b = n.b
    if places is None:
        own = common.positions(b, x, 2)
        if not isinstance(offset, int):
            own = b.op("add", b.squeeze(offset, [2, 3]), own)
        places = own if b.rank(own) == 2 else b.unsqueeze(own, [0])
    cos_, sin_ = (b.unsqueeze(b.op("take", t, places, axis=0, mode="clip"), [1]) for t in (cos, sin))
    return common.rotate(b, x, cos_, sin_, 2 * b.extent(cos, 1), bool(n.int("rotary_interleaved", 0)))


def _with_sink(b: Builder, scores: Expr, sink: Expr | None) -> Expr:
    """A softmax whose sum has one more term for each head."""
    top = b.op("max", scores, axis=[-1], keepdims=True)
    extra = b.const(0.0, b.dtype(scores)) if sink is None else b.cast(b.unsqueeze(sink, [1, 2]), b.dtype(scores))
    top = b.op("maximum", top, extra)
    powers = b.op("exp", b.op("subtract", scores, top))
    total = b.op("add", b.op("sum", powers, axis=[-1], keepdims=True), b.op("exp", b.op("subtract", extra, top)))
    return b.op("divide", powers, total)


def rotary_embedding(n: Node, x: Expr, places: Expr, cos: Expr, sin: Expr) -> Any:
    b, flat = n.b, n.b.rank(x) == 3
    size = n.int("rotary_embedding_dim", 0)
    if flat:
        heads = n.int("num_heads", 0) or b.extent(x, 2) // (2 * b.extent(cos, 1))
        x = common.split_heads(b, x, heads)
    if b.rank(places) == 1:
        places = b.unsqueeze(b.op("add", b.cast(places, "int64"), common.positions(b, x, 2)), [0])
    cos, sin = (b.unsqueeze(b.op("take", t, places, axis=0, mode="clip"), [1]) for t in (cos, sin))
    rotated = common.rotate(b, x, cos, sin, size, bool(n.int("interleaved", 0)))
    return common.join_heads(b, rotated) if flat else rotated


_ROWS = (
    ("Attention", attention),
    ("GroupQueryAttention", group_query_attention),
    ("MultiHeadAttention", multi_head_attention),
    ("QAttention", qattention),
    ("RotaryEmbedding", rotary_embedding),
)
RULES = tuple(Rule(name, convert, domain=DOMAIN) for name, convert in _ROWS)
