"""Pools over windows, over the whole picture, and to a given extent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Malformed, Rule
from relaylang.frontends.common.nn import padding_of, same_padding
from relaylang.frontends.keras.families.conv import layout, spatial_of
from relaylang.frontends.keras.node import Node
from relaylang.ir import Expr


def _pooled(n: Node, x: Expr, kind: str, rank: int) -> Any:
    b, first = n.b, n.channels_first()
    b.of_rank(x, rank + 2)
    size = n.ints("pool_size", rank, 2, 1)
    steps = size if n.value("strides", None) is None else n.ints("strides", rank, None, 1)
    pairs = [(0, 0)] * rank
    if n.choice("padding", "valid", ("valid", "same")) == "same":
        pairs = same_padding(spatial_of(n, x, rank, first), size, steps, [1] * rank)
    extra = {"count_include_pad": False} if kind == "avg" else {}
    return b.op(
        f"nn.{kind}_pool{rank}d", x, pool_size=size, strides=steps, padding=padding_of(pairs), layout=layout(rank, first), **extra
    )


def pool(kind: str, rank: int) -> Callable[[Node, Expr], Any]:
    return lambda n, x: _pooled(n, n.real(x) if kind == "avg" else x, kind, rank)


def pool_operation(kind: str) -> Callable[[Node, Expr], Any]:
    """The operation of Keras 3, whose operand has the number of axes."""
    return lambda n, inputs: _pooled(n, inputs, kind, _rank(n, inputs))


def _rank(n: Node, x: Expr) -> int:
    rank = n.b.rank(x) - 2
    if not 1 <= rank <= 3:
        raise Malformed(f"its operand has {rank + 2} axes")
    return rank


def global_pool(kind: str, rank: int) -> Callable[[Node, Expr], Any]:
    """The largest element or the mean of each channel. The mean of a sequence counts the steps that the mask keeps."""

    def convert(n: Node, x: Expr) -> Any:
        b = n.b
        x = b.of_rank(n.real(x) if kind == "mean" else x, rank + 2)
        axes = list(range(2, rank + 2)) if n.channels_first() else list(range(1, rank + 1))
        keep = n.bool("keepdims", False)
        if kind == "mean" and rank == 1 and n.mask is not None:
            weight = b.unsqueeze(b.cast(n.mask, b.dtype(x)), [1 if n.channels_first() else 2])
            total = b.op("sum", b.op("multiply", x, weight), axis=axes, keepdims=keep)
            return b.op("divide", total, b.op("sum", weight, axis=axes, keepdims=keep))
        return b.op(kind, x, axis=axes, keepdims=keep)

    return convert


def _adaptive(n: Node, x: Expr, kind: str, rank: int) -> Any:
    """Each result pools from floor(i * size / wanted) to ceil((i + 1) * size / wanted)."""
    b, first = n.b, n.channels_first()
    sizes = n.ints("output_size", rank, least=1)
    pooled = b.of_rank(x, rank + 2)
    for i, size in enumerate(sizes):
        axis = i + 2 if first else i + 1
        have = b.extent(pooled, axis, "the extents of its operand")
        b.budget.take_nodes(size, "writing its windows out")
        places = b.arrays.arange(size)
        starts, ends = places * have // size, -(-(places + 1) * have // size)
        parts = [
            b.op({"avg": "mean", "max": "max"}[kind], b.slice(pooled, [int(s)], [int(e)], [axis]), axis=[axis], keepdims=True)
            for s, e in zip(starts, ends)
        ]
        pooled = b.concat(parts, axis)
    return pooled


def adaptive(kind: str, rank: int) -> Callable[[Node, Expr], Any]:
    return lambda n, x: _adaptive(n, x, kind, rank)


RULES = (
    *(Rule(f"{word}Pooling{rank}D", pool(kind, rank)) for rank in (1, 2, 3) for word, kind in (("Max", "max"), ("Average", "avg"))),
    *(
        Rule(f"Global{word}Pooling{rank}D", global_pool(kind, rank))
        for rank in (1, 2, 3)
        for word, kind in (("Max", "max"), ("Average", "mean"))
    ),
    *(
        Rule(f"Adaptive{word}Pooling{rank}D", adaptive(kind, rank))
        for rank in (1, 2, 3)
        for word, kind in (("Max", "max"), ("Average", "avg"))
    ),
    Rule("MaxPool", pool_operation("max"), domain="ops"),
    Rule("AveragePool", pool_operation("avg"), domain="ops"),
    Rule("AdaptiveMaxPool", lambda n, inputs: _adaptive(n, inputs, "max", _rank(n, inputs)), domain="ops"),
    Rule("AdaptiveAveragePool", lambda n, inputs: _adaptive(n, inputs, "avg", _rank(n, inputs)), domain="ops"),
)
