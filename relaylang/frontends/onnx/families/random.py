"""Random numbers, from a key that the layer's seed gives: the numbers of one program are the same at each run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Call, Expr
from relaylang.ops import get
from relaylang.ops.record import make_attrs


def _key(n: Node) -> Expr:
    """A key of the bits of the attribute `seed`; without one, of the name of the layer's output."""
    if n.has("seed"):
        seed = int(np.float32(n.float("seed")).view(np.uint32))
    else:
        seed = 1 << 32 | crc32(n.outputs[0].encode())
    return n.b.const(np.array([seed, 0, 0, 0, 0, 0, 0, 0, 1 << 63, 0], np.uint64))


def _drawn(n: Node, name: str, operands: tuple[Expr, ...], **attrs: Any) -> Expr:
    """The numbers of a call of a random operator. Constant operands do not make it a constant."""
    op = get(name)
    assert op.attrs is not None
    call = Call(op, (_key(n), *operands), make_attrs(op.attrs, attrs), (), n.b.span)
    n.b.type_call(call)
    return n.b.field(call, 1)


def _numbers(n: Node, name: str, shape: tuple[int, ...], dtype: str, first: float, second: float) -> Expr:
    """`random.uniform` or `random.normal` of two parameters; numbers of other element types are rounded from float32."""
    if dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise Unsupported(f"it gives numbers of the type {dtype}")
    width = dtype if dtype == "float64" else "float32"
    pair = n.b.const(first, width), n.b.const(second, width)
    return n.b.cast(_drawn(n, name, pair, out_shape=list(shape), out_dtype=width), dtype)


def drawn(name: str, first: str, second: str) -> Callable[..., Any]:
    """Numbers of the shape of the operand, or of the attribute `shape`; `first` and `second` name the two parameters."""

    def convert(n: Node, x: Expr | None = None) -> Any:
        shape, dtype = (n.ints("shape"), "float32") if x is None else (n.b.static_shape(x), n.b.dtype(x))
        return _numbers(n, name, tuple(shape), n.dtype("dtype", dtype), n.float(first, 0.0), n.float(second, 1.0))

    return convert


def bernoulli(n: Node, x: Expr) -> Any:
    """1 where a number from 0 to 1 lies below the probability."""
    b = n.b
    width = "float64" if b.dtype(x) == "float64" else "float32"
    numbers = _numbers(n, "random.uniform", b.static_shape(x), width, 0.0, 1.0)
    return b.cast(b.op("less", numbers, b.cast(x, width)), n.dtype("dtype", b.dtype(x)))


def multinomial(n: Node, x: Expr) -> Any:
    """Classes by their unnormalised logarithms of probabilities, a row of them per row."""
    b = n.b
    dtype = n.dtype("dtype", "int32")
    if dtype not in ("int32", "int64"):
        raise Unsupported(f"it gives classes of the type {dtype}")
    chances = b.op("nn.softmax", b.cast(x, "float32"), axis=-1)
    count = n.int("sample_size", 1)
    return b.cast(_drawn(n, "random.multinomial", (chances,), num_samples=count), dtype)


RULES = (
    Rule("Bernoulli", bernoulli, since=15),
    Rule("Multinomial", multinomial),
    Rule("RandomNormal", drawn("random.normal", "mean", "scale")),
    Rule("RandomNormalLike", drawn("random.normal", "mean", "scale")),
    Rule("RandomUniform", drawn("random.uniform", "low", "high")),
    Rule("RandomUniformLike", drawn("random.uniform", "low", "high")),
)
