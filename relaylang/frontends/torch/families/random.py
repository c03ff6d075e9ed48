"""Random numbers, by the name of the result. They are not PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, random
from relaylang.frontends.torch.node import Node
from relaylang.frontends.torch.pt2 import Ref


def _key(n: Node) -> np.ndarray:
    return random.key(next((o.name for o in n.flat_outputs() if isinstance(o, Ref)), ""))


def drawn(name: str, like: bool = False) -> Callable[[Node], Any]:
    """Numbers of `random.uniform` or `random.normal` from 0 and 1, of a size or of the shape of a tensor."""

    def convert(n: Node) -> Any:
        shape = n.b.static_shape(n.x()) if like else n.ints("size")
        dtype = n.dtype() or (n.b.dtype(n.x()) if like else n.result_dtype())
        return random.numbers(n.b, _key(n), name, shape, dtype, 0.0, 1.0)

    return convert


def integers(n: Node) -> Any:
    """Whole numbers from `low` to `high`, without the latter."""
    low, high = n.int("low", 0), n.int("high")
    if not -(1 << 52) < low < high < 1 << 52:
        raise Malformed(f"its numbers lie from {low} to {high}")
    dtype = n.dtype() or n.result_dtype()
    width = "float32" if high - low < 1 << 20 else "float64"
    shares = random.numbers(n.b, _key(n), "random.uniform", n.ints("size"), width, 0.0, float(high - low))
    # A share that rounds up to the end would be a number beyond the last.
    whole = n.b.cast(n.b.op("minimum", n.b.op("floor", shares), float(high - low - 1)), "int64")
    return n.b.cast(n.b.op("add", whole, low), dtype)


def bernoulli(n: Node) -> Any:
    """1 by the probability of each element, or by one for all."""
    x = n.x()
    chances = n.b.op("full_like", x, n.b.const(float(n.get("p")), n.b.dtype(x))) if n.has("p") else x
    return n.b.cast(random.below(n.b, _key(n), chances), n.b.dtype(x))


def multinomial(n: Node) -> Any:
    """Places by their weights. Without replacement, they are those of the largest logarithms with noise of Gumbel's kind."""
    b, x, count = n.b, n.x(), n.int("num_samples")
    if count > 1 and not n.get("replacement", False):
        shares = random.numbers(b, _key(n), "random.uniform", b.static_shape(x), b.dtype(x), 0.0, 1.0)
        noise = b.op("negative", b.op("log", b.op("negative", b.op("log", shares))))
        return b.op("topk", b.op("add", b.op("log", x), noise), k=count, axis=-1, ret_type="indices", is_ascend=False, dtype="int64")
    total = b.op("sum", x, axis=[-1], keepdims=True)
    return b.cast(random.draw(b, _key(n), "random.multinomial", (b.op("divide", x, total),), num_samples=count), "int64")


RULES = (
    Rule("aten.bernoulli", bernoulli),
    Rule("aten.multinomial", multinomial),
    Rule("aten.rand", drawn("random.uniform")),
    Rule("aten.rand_like", drawn("random.uniform", True)),
    Rule("aten.randint", integers),
    Rule("aten.randn", drawn("random.normal")),
    Rule("aten.randn_like", drawn("random.normal", True)),
)
