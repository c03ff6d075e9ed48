"""Random numbers, by the attribute `seed` or the name of the layer's output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, Unsupported, random
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def _key(n: Node) -> np.ndarray:
    return random.key(n.outputs[0], n.float("seed") if n.has("seed") else None)


def drawn(name: str, first: str, second: str) -> Callable[..., Any]:
    """Numbers of the shape of the operand, or of the attribute `shape`; `first` and `second` name the two parameters."""

    def convert(n: Node, x: Expr | None = None) -> Any:
        shape, dtype = (n.ints("shape"), "float32") if x is None else (n.b.static_shape(x), n.b.dtype(x))
        return random.numbers(n.b, _key(n), name, shape, n.dtype("dtype", dtype), n.float(first, 0.0), n.float(second, 1.0))

    return convert


def bernoulli(n: Node, x: Expr) -> Any:
    """1 where a number from 0 to 1 lies below the probability."""
    return n.b.cast(random.below(n.b, _key(n), x), n.dtype("dtype", n.b.dtype(x)))


def multinomial(n: Node, x: Expr) -> Any:
    """Classes by their unnormalised logarithms of probabilities, a row of them per row."""
    b = n.b
    dtype = n.dtype("dtype", "int32")
    if dtype not in ("int32", "int64"):
        raise Unsupported(f"it gives classes of the type {dtype}")
    chances = b.op("nn.softmax", b.cast(x, "float32"), axis=-1)
    return b.cast(random.draw(b, _key(n), "random.multinomial", (chances,), num_samples=n.int("sample_size", 1)), dtype)


RULES = (
    Rule("Bernoulli", bernoulli, since=15),
    Rule("Multinomial", multinomial),
    Rule("RandomNormal", drawn("random.normal", "mean", "scale")),
    Rule("RandomNormalLike", drawn("random.normal", "mean", "scale")),
    Rule("RandomUniform", drawn("random.uniform", "low", "high")),
    Rule("RandomUniformLike", drawn("random.uniform", "low", "high")),
)
