"""Attention layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.attention import both, positions
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.keras.node import Node, Tensor
from relaylang.ir import Expr


def _low(n: Node) -> float:
    """What Keras adds to scores that do not count."""
    return -65504.0 if n.dtype == "float16" else -1e9


def _causal(n: Node, q: Expr, k: Expr) -> Expr:
    """Which keys are not behind a query: bool (queries, keys)."""
    b = n.b
    return b.op("greater_equal", b.unsqueeze(positions(b, q, 1), [1]), b.unsqueeze(positions(b, k, 1), [0]))


def _operands(n: Node, xs: Any) -> tuple[Expr, Expr, Expr, Expr | None, Expr | None]:
    """Query, value, key, and the masks of query and value."""
    if not isinstance(xs, list) or not 2 <= len(xs) <= 3:
        raise Malformed("it takes a list of query, value, and perhaps key")
    q, v = n.real(xs[0]), n.real(xs[1])
    masks = [*n.masks, None, None]
    return q, v, n.real(xs[2]) if len(xs) == 3 else v, masks[0], masks[1]


def _applied(n: Node, scores: Expr, q: Expr, v: Expr, q_mask: Expr | None, v_mask: Expr | None) -> list[Any]:
    """The values by the softmax of the scores; masked queries give 0."""
    b = n.b
    seen = b.unsqueeze(b.cast(v_mask, "bool"), [1]) if v_mask is not None else None
    if n.flag("use_causal_mask") or n.config.get("causal"):
        seen = both(b, seen, _causal(n, q, v))
    if seen is not None:
        scores = b.op("where", seen, scores, b.op("add", scores, _low(n)))
    weights = b.op("nn.softmax", scores, axis=-1)
    product = matmul(b, weights, v)
    if q_mask is not None:
        product = b.op("multiply", product, b.cast(b.unsqueeze(q_mask, [2]), b.dtype(product)))
    return [Tensor(product, q_mask), *([weights] if n.flag("return_attention_scores") else [])]


def attention(n: Node, xs: Any) -> Any:
    """Scores are products of queries and keys, or sums of the tanh of their sums."""
    b = n.b
    q, v, k, q_mask, v_mask = _operands(n, xs)
    scale = n.weight(0, "scale") if n.bool("use_scale", False) else None
    if n.choice("score_mode", "dot", ("dot", "concat")) == "dot":
        scores = matmul(b, q, b.transpose(k, [0, 2, 1]))
        scores = scores if scale is None else b.op("multiply", scores, scale)
    else:
        total = b.op("add", b.unsqueeze(q, [2]), b.unsqueeze(k, [1]))
        total = total if scale is None else b.op("multiply", total, scale)
        factor = n.weight(int(scale is not None), "concat_score_weight")
        scores = b.op("multiply", b.op("sum", b.op("tanh", total), axis=[-1]), factor)
    return _applied(n, scores, q, v, q_mask, v_mask)


def additive_attention(n: Node, xs: Any) -> Any:
    b = n.b
    q, v, k, q_mask, v_mask = _operands(n, xs)
    bent = b.op("tanh", b.op("add", b.unsqueeze(q, [2]), b.unsqueeze(k, [1])))
    if n.bool("use_scale", True):
        bent = b.op("multiply", bent, n.weight(0, "scale"))
    return _applied(n, b.op("sum", bent, axis=[-1]), q, v, q_mask, v_mask)


def _projected(n: Node, x: Expr, index: int, name: str, free: int) -> Expr:
    """Data (batch, free axes, width) times a kernel (width, heads, size), with a bias where the layer uses one."""
    letters = "abcdefghij"[: free + 1]
    step = 1 + n.bool("use_bias", True)
    projected = einsum(n.b, f"{letters}x,xyz->{letters}yz", [x, n.weight(index * step, f"{name}/kernel", rank=3)])
    return projected if step == 1 else n.b.op("add", projected, n.weight(index * step + 1, f"{name}/bias", rank=2))


def _mask_of(n: Node, q: Expr, v: Expr, masks: Sequence[Expr | None], axes: int) -> Expr | None:
    """Which keys a query sees: bool that broadcasts to (batch, heads, queries, keys)."""
    b = n.b
    q_mask, v_mask, k_mask = masks
    seen = None if q_mask is None else b.unsqueeze(b.cast(q_mask, "bool"), [2])
    for mask in (v_mask, k_mask):
        seen = seen if mask is None else both(b, seen, b.unsqueeze(b.cast(mask, "bool"), [1]))
    if n.flag("use_causal_mask"):
        seen = both(b, seen, b.unsqueeze(_causal(n, q, v), [0]))
    width = n.value("sliding_window", None)
    if width is not None:
        apart = b.op("subtract", b.unsqueeze(positions(b, q, 1), [1]), b.unsqueeze(positions(b, v, 1), [0]))
        seen = both(b, seen, b.unsqueeze(b.op("less", b.op("abs", apart), b.const(n.int("sliding_window", least=1), "int64")), [0]))
    attended = n.argument("attention_mask")
    if isinstance(attended, Expr):
        seen = both(b, b.cast(attended, "bool"), seen)
    if seen is None:
        return None
    if axes != 1:
        if attended is None or b.rank(seen) != 1 + 2 * axes:
            raise Unsupported("it has a mask, and attends along several axes")
        return b.unsqueeze(seen, [1])
    return b.unsqueeze(seen, list(range(0, 3 - b.rank(seen)))) if b.rank(seen) < 3 else seen


def _arguments(n: Node, query: Any, value: Any, key: Any) -> tuple[Expr, Expr, Expr, list[Expr | None]]:
    """Query, value and key of a call by place or by name, and their masks."""
    places: list[int | str] = [i if i < len(n.args) else name for i, name in enumerate(("query", "value", "key"))]
    operands = [query, value if value is not None else n.argument("value"), key if key is not None else n.argument("key")]
    if not isinstance(operands[0], Expr) or not isinstance(operands[1], Expr):
        raise Malformed("it takes a query and a value")
    masks = [n.mask_of(p) for p in places]
    for i, name in enumerate(("query_mask", "value_mask", "key_mask")):
        stated = n.argument(name)
        masks[i] = stated if isinstance(stated, Expr) else masks[i]
    b = n.b
    q, v, k = (b.cast(x, n.dtype) if isinstance(x, Expr) else None for x in operands)
    assert q is not None and v is not None
    return q, v, v if k is None else k, [masks[0], masks[1], masks[2] if k is not None else None]


def multi_head(n: Node, query: Any, value: Any = None, key: Any = None) -> Any:
    """Kernels are (width, heads, size). Attention is along `attention_axes`, by default all between batch and width."""
    b = n.b
    q, v, k, masks = _arguments(n, query, value, key)
    rank = b.rank(q)
    if rank < 3 or b.rank(v) != rank or b.rank(k) != rank:
        raise Malformed(f"its operands have {int(rank)}, {int(b.rank(v))} and {int(b.rank(k))} axes")
    axes = list(range(1, rank - 1))
    if n.value("attention_axes", None) is not None:
        axes = sorted(n.axes("attention_axes", rank))
        if not axes or 0 in axes or rank - 1 in axes:
            raise Malformed(f"its attention_axes are {axes}, and its operands have {int(rank)} axes")
    seen = _mask_of(n, q, v, masks, len(axes))
    scale = 1 / math.sqrt(n.int("key_dim", least=1))
    gate = n.bool("use_gate", False)
    query_heads, keys = _projected(n, q, 0, "query", rank - 2), _projected(n, k, 1, "key", rank - 2)
    gates = b.op("sigmoid", _projected(n, q, 2, "gate", rank - 2)) if gate else None
    values = _projected(n, v, 2 + gate, "value", rank - 2)
    # The letters of the batch axes, of those that are attended to, and of heads and sizes.
    front = [chr(ord("a") + i) for i in range(rank - 1)]
    other = [c.upper() if i in axes else c for i, c in enumerate(front)]
    rest = [c for i, c in enumerate(front) if i not in axes]
    left, right = [front[i] for i in axes], [other[i] for i in axes]
    result = "".join([*rest, "y", *left, *right])
    scores = einsum(b, f"{''.join(front)}yz,{''.join(other)}yz->{result}", [b.op("multiply", query_heads, scale), keys])
    weights = _softmax(n, scores, seen, len(axes), len(rest))
    product = einsum(b, f"{result},{''.join(other)}yz->{''.join(front)}yz", [weights, values])
    product = product if gates is None else b.op("multiply", product, gates)
    product = _out(n, product, 3 + gate, rank - 2)
    return [Tensor(product, masks[0]), *([weights] if n.flag("return_attention_scores") else [])]


def _softmax(n: Node, scores: Expr, seen: Expr | None, count: int, rest: int) -> Expr:
    """The softmax over the last `count` axes of (rest, heads, queries, keys)."""
    b = n.b
    if seen is not None:
        if count == 1 and b.rank(seen) < b.rank(scores):
            seen = b.unsqueeze(seen, list(range(b.rank(seen) - 2, b.rank(seen) - 2 + b.rank(scores) - b.rank(seen))))
        scores = b.op("where", seen, scores, b.const(_low(n), b.dtype(scores)))
    if count == 1:
        return b.op("nn.softmax", scores, axis=-1)
    shape = b.shape(scores)
    keys = [int(d) for d in shape[-count:] if isinstance(d, int)]
    if len(keys) < count:
        raise Unsupported("the extents of its operand are not known; --shape gives them")
    flat = b.op("reshape", scores, newshape=[*[0] * (len(shape) - count), -1])
    shares = b.op("nn.softmax", flat, axis=-1)
    return b.op("reshape", shares, newshape=[*[0] * (len(shape) - count), *keys])


def _out(n: Node, x: Expr, index: int, free: int) -> Expr:
    """(batch, free axes, heads, size) times a kernel (heads, size, width)."""
    letters = "abcdefghij"[: free + 1]
    step = 1 + n.bool("use_bias", True)
    kernel = n.array(index * step)
    if not 3 <= kernel.ndim <= 8:
        raise Malformed(f"its output kernel has the shape {kernel.shape}")
    ends = "nopqrs"[: kernel.ndim - 2]
    projected = einsum(n.b, f"{letters}yz,yz{ends}->{letters}{ends}", [x, n.weight(index * step, "attention_output/kernel")])
    return projected if step == 1 else n.b.op("add", projected, n.weight(index * step + 1, "attention_output/bias"))


def grouped(n: Node, query: Any, value: Any = None, key: Any = None) -> Any:
    """Several query heads share a head of keys and values."""
    b = n.b
    q, v, k, masks = _arguments(n, query, value, key)
    heads, shared = n.int("num_query_heads", least=1), n.int("num_key_value_heads", least=1)
    if heads % shared:
        raise Malformed(f"its {heads} query heads do not share {shared} heads")
    seen = _mask_of(n, q, v, masks, 1)
    gate = n.bool("use_gate", False)
    queries, keys = _projected(n, q, 0, "query", 1), _projected(n, k, 1, "key", 1)
    gates = b.op("sigmoid", _projected(n, q, 2, "gate", 1)) if gate else None
    values = _projected(n, v, 2 + gate, "value", 1)
    if heads != shared:
        keys, values = (b.op("repeat", x, repeats=heads // shared, axis=2) for x in (keys, values))
    scale = 1 / math.sqrt(n.int("head_dim", least=1))
    scores = einsum(b, "byuz,bkuz->buyk", [b.op("multiply", queries, scale), keys])
    weights = _softmax(n, scores, seen, 1, 1)
    product = einsum(b, "buyk,bkuz->byuz", [weights, values])
    product = product if gates is None else b.op("multiply", product, gates)
    return [Tensor(_out(n, product, 3 + gate, 1), masks[0]), *([weights] if n.flag("return_attention_scores") else [])]


RULES = (
    Rule("AdditiveAttention", additive_attention),
    Rule("Attention", attention),
    Rule("GroupedQueryAttention", grouped),
    Rule("MultiHeadAttention", multi_head),
)
