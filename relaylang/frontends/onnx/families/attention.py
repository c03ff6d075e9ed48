"""Attention of ai.onnx: Attention, FlexAttention, LinearAttention, and their neighbours in such networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, nn
from relaylang.frontends.common import attention as common
from relaylang.frontends.common.recurrent import recurrence
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def attention(
    n: Node,
    q: Expr,
    k: Expr,
    v: Expr,
    mask: Expr | None = None,
    past_k: Expr | None = None,
    past_v: Expr | None = None,
    lengths: Expr | None = None,
) -> Any:
    b, flat = n.b, n.b.rank(q) == 3
    if flat:
        q = common.split_heads(b, q, n.int("q_num_heads"))
        k, v = (common.split_heads(b, x, n.int("kv_num_heads")) for x in (k, v))
    k = k if past_k is None else b.concat([past_k, k], 2)
    v = v if past_v is None else b.concat([past_v, v], 2)
    bias = _bias(n, q, k, mask, past_k, lengths)
    heads, mode = b.extent(q, 1), n.int("qk_matmul_output_mode", 0)
    if not 0 <= mode < 4:
        raise Malformed(f"the attribute qk_matmul_output_mode is {mode}; it must be from 0 to 3")
    stages = [common.scores(b, q, common.repeat_heads(b, k, heads), n.float("scale", 0.0), split=True)]
    stages.append(common.capped(b, stages[0], n.float("softcap", 0.0)))
    stages.append(stages[1] if bias is None else b.op("add", stages[1], bias))
    wide = b.cast(stages[2], n.dtype("softmax_precision", b.dtype(q)))
    stages.append(b.cast(common.softmax(b, wide, bias), b.dtype(q)))
    y = nn.matmul(b, stages[3], common.repeat_heads(b, v, heads))
    return [common.join_heads(b, y) if flat else y, k, v, stages[mode]]


def _bias(n: Node, q: Expr, k: Expr, mask: Expr | None, past: Expr | None, lengths: Expr | None) -> Expr | None:
    """The addend of the scores: the mask, and -inf for keys that a query may not see."""
    b, dtype = n.b, n.b.dtype(q)
    if mask is not None and b.dtype(mask) == "bool":
        mask = common.as_bias(b, mask, dtype)
    if mask is not None:
        mask = _padded(b, mask, k)
    offset: Expr | int = 0
    if past is not None:
        offset = common.extent_of(b, past, 2)
    elif lengths is not None:
        spare = b.op("subtract", b.cast(lengths, "int64"), common.extent_of(b, q, 2))
        offset = b.unsqueeze(spare, [1, 2, 3])
    before, behind = n.int("left_window_size", -1), n.int("right_window_size", -1)
    if n.int("is_causal", 0):
        behind = 0
    seen = common.window(b, q, k, offset, before, behind)
    if lengths is not None:
        seen = common.both(b, seen, common.shorter_than(b, k, lengths))
    return common.add(b, mask, common.as_bias(b, seen, dtype))


def _padded(b: Builder, mask: Expr, k: Expr) -> Expr:
    """A mask for fewer keys than there are hides the others."""
    have, wanted = b.shape(mask)[-1], b.shape(k)[2]
    if have == 1 or have == wanted or not isinstance(have, int) or not isinstance(wanted, int):
        return mask
    pads = [(0, 0)] * (b.rank(mask) - 1) + [(0, wanted - have)]
    return b.op("nn.pad", mask, b.const(-common.INFINITY, b.dtype(mask)), pad_width=pads)


def flex_attention(n: Node, q: Expr, k: Expr, v: Expr) -> Any:
    """Attention whose scores and probabilities go through graphs of the model."""
    b, heads = n.b, n.b.extent(q, 1)
    k, v = (common.repeat_heads(b, x, heads) for x in (k, v))
    wide = "float32" if b.dtype(q) in ("float16", "bfloat16") else b.dtype(q)
    wide = n.dtype("softmax_precision", wide)
    scores = b.cast(common.scores(b, q, k, n.float("scale", 0.0), split=True), wide)
    if n.has("score_mod"):
        scores = n.body("score_mod").convert([scores])[0]
    scores = b.op("nn.softmax", scores, axis=-1)
    if n.has("prob_mod"):
        scores = n.body("prob_mod").convert([scores])[0]
    return b.cast(nn.matmul(b, scores, b.cast(v, wide)), b.dtype(v))


def linear_attention(
    n: Node, q: Expr, k: Expr, v: Expr, past: Expr | None = None, decay: Expr | None = None, beta: Expr | None = None
) -> Any:
    """A recurrence over a matrix of state for each head: it decays, takes a key's value in, and is read by a query."""
    b, dtype = n.b, n.b.dtype(q)
    rule = n.string("update_rule", "gated_delta")
    heads, own = n.int("q_num_heads"), n.int("kv_num_heads")
    size, width = b.extent(q, 2) // heads, b.extent(v, 2) // own
    batch = b.extent(q, 0, "the batch")
    parts = {"q": (q, heads), "k": (k, own), "v": (v, own)}
    if rule.startswith("gated") and decay is not None:
        parts["decay"] = (decay, own)
    if rule.endswith("delta") and beta is not None:
        parts["beta"] = (beta, b.extent(beta, 2))
    # All of a step's operands lie behind each other along the last axis.
    rows = [b.cast(b.transpose(x, [1, 0, 2]), "float32") for x, _ in parts.values()]
    widths = [b.extent(x, 2) for x in rows]
    ends = np.cumsum(widths).tolist()
    scale = n.float("scale", 0.0) or 1 / math.sqrt(size)

    def step(x: Expr, states: list[Expr]) -> list[Expr]:
        slices = {}
        for (name, (_, count)), w, end in zip(parts.items(), widths, ends):
            slices[name] = b.op("reshape", b.slice(x, [end - w], [end], [1]), newshape=[batch, count, w // count, 1])
        state = states[1]
        if "decay" in slices:
            state = b.op("multiply", state, b.op("exp", slices["decay"]))
        value = b.transpose(slices["v"], [0, 1, 3, 2])
        if "beta" in slices:
            read = b.op("sum", b.op("multiply", state, slices["k"]), axis=[2], keepdims=True)
            value = b.op("multiply", slices["beta"], b.op("subtract", value, read))
        state = b.op("add", state, b.op("multiply", slices["k"], value))
        seen = common.repeat_heads(b, state, heads)
        read = b.op("sum", b.op("multiply", seen, slices["q"]), axis=[2])
        output = b.op("reshape", b.op("multiply", read, scale), newshape=[batch, heads * width])
        return [output, state]

    start = b.const(b.arrays.zeros((batch, own, size, width), "float32")) if past is None else b.cast(past, "float32")
    none = b.const(b.arrays.zeros((batch, heads * width), "float32"))
    outputs, last = recurrence(b, b.concat(rows, 2), [none, start], step)
    y = b.transpose(outputs, [1, 0, 2])
    return [b.cast(y, dtype), b.cast(last[1], dtype if past is None else b.dtype(past))]


def rotary_embedding(n: Node, x: Expr, cos: Expr, sin: Expr, places: Expr | None = None) -> Any:
    b, flat = n.b, n.b.rank(x) == 3
    heads = common.split_heads(b, x, n.int("num_heads")) if flat else x
    if places is not None:
        cos, sin = (b.op("take", t, places, axis=0, mode="clip") for t in (cos, sin))
    cos, sin = (b.unsqueeze(t, [1]) for t in (cos, sin))
    rotated = common.rotate(b, heads, cos, sin, n.int("rotary_embedding_dim", 0), bool(n.int("interleaved", 0)))
    return common.join_heads(b, rotated) if flat else rotated


def causal_conv(n: Node, x: Expr, w: Expr, bias: Expr | None = None, past: Expr | None = None) -> Any:
    """A convolution of each channel over its past, and the last places for the next call."""
    b, size = n.b, n.b.extent(w, 2)
    channels = b.extent(w, 0)
    if size == 1:
        padded = x
    elif past is None:
        padded = b.op("nn.pad", x, b.const(0, b.dtype(x)), pad_width=[(0, 0), (0, 0), (size - 1, 0)])
    else:
        padded = b.concat([past, x], 2)
    conv = b.op(
        "nn.conv1d", padded, w, strides=[1], padding=[0, 0], dilation=[1], groups=channels, channels=channels, kernel_size=[size]
    )
    conv = conv if bias is None else b.op("nn.bias_add", conv, bias, axis=1)
    if n.string("activation", "none") in ("silu", "swish"):
        conv = b.cast(nn.swish(b, b.cast(conv, "float32")), b.dtype(x))
    if size > 1:
        return [conv, b.slice(padded, [-(size - 1)], [2**31 - 1], [2])]
    return [conv, b.slice(padded, [0], [0], [2])]


def tensor_scatter(n: Node, cache: Expr, update: Expr, at: Expr | None = None) -> Any:
    """An update is written into a cache along an axis, from a place of each element of the batch on."""
    b = n.b
    axis = n.int("axis", -2) % b.rank(cache)
    shape = b.static_shape(update, "the update")
    start = b.const(b.arrays.zeros(shape[0], "int64")) if at is None else b.cast(at, "int64")
    places: Expr = b.op("add", b.unsqueeze(start, [1]), b.const(b.arrays.arange(shape[axis], dtype="int64")))
    if n.string("mode", "linear") == "circular":
        places = b.op("floor_mod", places, b.extent(cache, axis))
    places = b.unsqueeze(places, [i for i in range(b.rank(cache)) if i not in (0, axis)])
    places = b.op("broadcast_to", places, shape=shape)
    return b.op("scatter_elements", cache, places, update, axis=axis, reduction="update")


def swiglu(n: Node, x: Expr, gate: Expr) -> Any:
    return n.b.op("multiply", nn.swish(n.b, x, n.float("alpha", 1.0)), gate)


RULES = (
    Rule("Attention", attention, since=23),
    Rule("CausalConvWithState", causal_conv, since=27),
    Rule("FlexAttention", flex_attention, domain="ai.onnx.preview"),
    Rule("LinearAttention", linear_attention, since=27),
    Rule("RotaryEmbedding", rotary_embedding, since=23),
    Rule("SwiGLU", swiglu, since=28),
    Rule("TensorScatter", tensor_scatter, since=24),
)
