"""Operators that stand for several others, and forms that decompositions leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, nn
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.torch.families import arithmetic, elementwise, layers, products, reduce, running, shape
from relaylang.frontends.torch.families.elementwise import floating
from relaylang.frontends.torch.families.products import lengths
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr

Convert = Callable[[Node], Any]


def _of(module: Any, name: str) -> Convert:
    return next(rule.convert for rule in module.RULES if rule.name == f"aten.{name}")


def weight_norm(n: Node) -> Any:
    """`g * v / |v|`; the length is over all axes but one."""
    b, v, g = n.b, n.x("v"), n.x("g")
    axis = n.get("dim", 0)
    axes = [i for i in range(b.rank(v)) if axis == -1 or i != axis % b.rank(v)]
    length = b.op("sqrt", b.op("sum", b.op("multiply", v, v), axis=axes, keepdims=True))
    weight = b.op("multiply", v, b.op("divide", g, length))
    return [weight, length] if n.call.target.startswith("aten._weight_norm_interface") else weight


def trilinear(n: Node) -> Any:
    """The sum over some axes of a product of three tensors, each with axes of extent 1 put in."""
    b = n.b
    x, y, z = (b.unsqueeze(n.x(f"i{i}"), n.ints(f"expand{i}")) for i in (1, 2, 3))
    product = b.op("multiply", b.op("multiply", x, y), z)
    return b.op("sum", product, axis=n.ints("sumdim")) if n.ints("sumdim") else product


def prelu(n: Node) -> Any:
    """The slope has all axes already."""
    return nn.prelu(n.b, n.x(), n.x("weight"))


def activated(n: Node) -> Any:
    """`addmm`, then relu or gelu with tanh."""
    product = _of(layers, "addmm")(n)
    return nn.gelu(n.b, product, True) if n.get("use_gelu") else n.b.op("nn.relu", product)


def safe_softmax(n: Node) -> Any:
    """0 where all elements of a row are -inf."""
    b, x, axis = n.b, n.x(), n.int("dim")
    x = b.cast(x, n.dtype() or b.dtype(x))
    none = b.op("equal", b.op("max", x, axis=[axis], keepdims=True), b.const(-np.inf, b.dtype(x)))
    shares = b.op("nn.softmax", x, axis=axis)
    return b.op("where", none, b.op("zeros_like", shares), shares)


def noisy(n: Node) -> Any:
    noise = elementwise.rrelu(n)
    return [noise] if n.call.target.endswith("functional.default") else noise


def entropy(n: Node) -> Any:
    """`-x log x`; 0 at 0, and -inf below it."""
    b, x = n.b, elementwise.floating(n)
    one, zero = b.op("ones_like", x), b.op("zeros_like", x)
    safe = b.op("where", b.op("greater", x, 0.0), x, one)
    terms = b.op("negative", b.op("multiply", x, b.op("log", safe)))
    low = b.const(-np.inf, b.dtype(x))
    terms = b.op("where", b.op("greater", x, 0.0), terms, b.op("where", b.op("equal", x, 0.0), zero, low))
    return b.op("where", b.op("isnan", x), x, terms)


def normal_share(n: Node) -> Any:
    """The share of the normal distribution below a number."""
    b = n.b
    bell = b.op("erf", b.op("multiply", elementwise.floating(n), float(np.sqrt(0.5))))
    return b.op("multiply", b.op("add", bell, 1.0), 0.5)


def window(kind: str) -> Convert:
    """The windows of signal processing, which are known now."""

    def convert(n: Node) -> Any:
        count = n.int("window_length")
        points = count + 1 if n.get("periodic", True) and count > 1 else count
        if kind == "kaiser":
            samples = np.kaiser(n.b.arrays.reserve(points), float(n.get("beta", 12.0)))
        elif kind == "hamming":
            alpha, beta = float(n.get("alpha", 0.54)), float(n.get("beta", 0.46))
            turn = 2 * np.pi * n.b.arrays.arange(points) / max(points - 1, 1)
            samples = alpha - beta * np.cos(turn) if points > 1 else n.b.arrays.ones(points)
        else:
            samples = {"hann": np.hanning, "blackman": np.blackman, "bartlett": np.bartlett}[kind](n.b.arrays.reserve(points))
        return n.b.const(samples[:count], n.dtype() or n.result_dtype())

    return convert


def triplet(n: Node) -> Any:
    b, p, eps, margin = n.b, float(n.get("p", 2.0)), float(n.get("eps", 1e-6)), float(n.get("margin", 1.0))
    anchor, near, far = (floating(n, name) for name in ("anchor", "positive", "negative"))
    rank = b.rank(anchor)

    def apart(x: Expr, y: Expr) -> Expr:
        return lengths(b, b.op("add", b.op("subtract", x, y), eps), p, rank - 1)

    to_far = apart(anchor, far)
    if n.get("swap"):
        to_far = b.op("minimum", to_far, apart(near, far))
    loss = b.op("nn.relu", b.op("add", b.op("subtract", apart(anchor, near), to_far), margin))
    how = n.int("reduction", 1)
    return loss if how == 0 else b.op("mean" if how == 1 else "sum", loss)


def cosine_embedding(n: Node) -> Any:
    b, x, y, target = n.b, n.x("input1"), n.x("input2"), n.x("target")
    axis = b.rank(x) - 1
    product = b.op("sum", b.op("multiply", x, y), axis=[axis])
    sizes = [b.op("add", b.op("sum", b.op("multiply", t, t), axis=[axis]), 1e-12) for t in (x, y)]
    cosine = b.op("divide", product, b.op("sqrt", b.op("multiply", *sizes)))
    alike = b.op("subtract", b.const(1, b.dtype(x)), cosine)
    unlike = b.op("nn.relu", b.op("subtract", cosine, float(n.get("margin", 0.0))))
    loss = b.op("where", b.op("equal", target, b.const(1, b.dtype(target))), alike, unlike)
    how = n.int("reduction", 1)
    return loss if how == 0 else b.op("mean" if how == 1 else "sum", loss)


def vander(n: Node) -> Any:
    """Powers of numbers in columns."""
    b, x = n.b, n.x("x")
    count = n.int("N", b.extent(x, -1))
    powers = b.arrays.arange(count)
    powers = powers if n.get("increasing") or "linalg" in n.call.target else powers[::-1].copy()
    wide = b.cast(b.unsqueeze(x, [-1]), "float64")
    return b.cast(b.op("power", wide, b.const(powers, "float64")), b.dtype(x))


def cast_to(dtype: str) -> Convert:
    return lambda n: n.b.cast(n.x(), dtype)


_WINDOWS = ("hann", "hamming", "blackman", "bartlett", "kaiser")
_CASTS = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
}
_RULES: dict[str, Convert] = {
    "_add_relu": lambda n: n.b.op("nn.relu", arithmetic.scaled("add")(n)),
    "_addmm_activation": activated,
    "_euclidean_dist": products.distances,
    "_int_mm": lambda n: matmul(n.b, n.x(), n.x("mat2"), "int32"),
    "_prelu_kernel": prelu,
    "_safe_softmax": safe_softmax,
    "_shape_as_tensor": lambda n: n.b.shape_of(n.x()),
    "_stack": shape.stack,
    "_trilinear": trilinear,
    "_weight_norm": weight_norm,
    "_weight_norm_interface": weight_norm,
    "cosine_embedding_loss": cosine_embedding,
    "linalg_vander": vander,
    "linalg_vecdot": lambda n: n.b.op("sum", n.b.op("multiply", n.x("x"), n.x("y")), axis=[n.int("dim", -1)]),
    "rrelu_with_noise": noisy,
    "rrelu_with_noise_functional": noisy,
    "special_entr": entropy,
    "special_log_softmax": _of(layers, "log_softmax"),
    "special_logsumexp": reduce.log_sum_exp,
    "special_ndtr": normal_share,
    "special_softmax": _of(layers, "softmax"),
    "trapz": running.trapezoid,
    "triplet_margin_loss": triplet,
    "vander": vander,
}

RULES = (
    *(Rule(f"aten.{name}", convert) for name, convert in _RULES.items()),
    *(Rule(f"aten._cast_{name}", cast_to(dtype)) for name, dtype in _CASTS.items()),
    *(Rule(f"aten.{kind}_window", window(kind)) for kind in _WINDOWS),
)
