"""Writes tests/frontends/stablehlo/data/recorded.tar.xz: programs that JAX writes as StableHLO, with JAX's own results.

    scripts/stablehlo_results.py [--folder FOLDER] [--only NAME]...

JAX and Flax are needed (0.10 and 0.12 made the committed file). Operands are random, of a fixed seed. With `--folder`, the files
of each case go to a folder: the text, the portable artifact, and the results.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.frontends.stablehlo.recorded import DATA, operands  # noqa: E402

Case = tuple[Callable[..., Any], list[str]]
CASES: dict[str, Case] = {}
#: Symbolic shapes of operands: case -> a text such as "b, 8" for each operand, or None.
SYMBOLIC: dict[str, list[str | None]] = {}


def case(*described: str, name: str = "", symbolic: list[str | None] | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Register a function as a case with these operands."""

    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        known = name or f.__name__
        assert known not in CASES, known
        CASES[known] = f, list(described)
        if symbolic:
            SYMBOLIC[known] = symbolic
        return f

    return add


def real(shape: str, scale: float = 1.0, dtype: str = "float32") -> str:
    return f"normal {shape} {dtype} {scale}"


def whole(low: int, high: int, shape: str, dtype: str = "int32") -> str:
    return f"whole {low} {high} {shape} {dtype}"


# ---- networks


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * g + b


@case(real("3x8"), real("8x16", 0.3), real("16"), real("16x10", 0.3), real("10"))
def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return jax.nn.softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)


def conv(x: Any, w: Any, strides: Any = (1, 1), padding: Any = "SAME", **kw: Any) -> Any:
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **kw)


@case(real("2x12x12x3"), real("3x3x3x8", 0.3), real("8"), real("3x3x8x8", 0.2), real("72x5", 0.2))
def cnn(x: Any, w1: Any, b1: Any, w2: Any, w3: Any) -> Any:
    x = jax.nn.relu(conv(x, w1) + b1)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.gelu(conv(x, w2))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    return jax.nn.log_softmax(x.reshape(2, -1) @ w3)


@case(
    real("1x8x8x4"),
    real("3x3x4x4", 0.3),
    real("4"),
    real("4"),
    real("4"),
    real("3x3x4x4", 0.3),
    real("1x1x4x8", 0.5),
    real("3x3x4x8", 0.3),
)
def resnet_block(x: Any, w1: Any, scale: Any, offset: Any, mean: Any, w2: Any, w3: Any, w4: Any) -> Any:
    h = conv(x, w1)
    h = jax.nn.relu((h - mean) * lax.rsqrt(jnp.abs(scale) + 1e-5) * scale + offset)
    h = jax.nn.relu(conv(h, w2) + x)
    return jax.nn.relu(conv(h, w3, (2, 2)) + conv(h, w4, (2, 2))).mean((1, 2))


@case(
    real("2x8x8x3"),
    real("4x4x3x16", 0.2),
    real("5x16", 0.2),
    real("16x48", 0.2),
    real("16x16", 0.2),
    real("16"),
    real("16"),
    real("16x32", 0.2),
    real("32x16", 0.2),
)
def vit_block(x: Any, patch: Any, place: Any, qkv: Any, out: Any, g: Any, b: Any, up: Any, down: Any) -> Any:
    h = conv(x, patch, (4, 4), "VALID").reshape(2, 4, 16)
    h = jnp.concatenate([jnp.zeros((2, 1, 16)), h], 1) + place
    y = (layer_norm(h, g, b) @ qkv).reshape(2, 5, 3, 4, 4)
    q, k, v = (y[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    a = jax.nn.softmax(q @ k.swapaxes(-1, -2) / 2.0)
    h = h + (a @ v).transpose(0, 2, 1, 3).reshape(2, 5, 16) @ out
    return h + jax.nn.gelu(layer_norm(h, g, b) @ up, approximate=False) @ down


@case(real("2x1x16"), real("2x4x8x4"), real("2x4x8x4"), "value 3 int32", real("16x48", 0.2), real("16x16", 0.2))
def transformer_cache(x: Any, keys: Any, values: Any, at: Any, qkv: Any, out: Any) -> Any:
    y = (x @ qkv).reshape(2, 1, 3, 4, 4)
    q, k, v = (y[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    keys = lax.dynamic_update_slice(keys, k, (0, 0, at, 0))
    values = lax.dynamic_update_slice(values, v, (0, 0, at, 0))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, keys) / 2.0
    scores = jnp.where(jnp.arange(8) <= at, scores, -jnp.inf)
    h = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), values)
    return x + h.transpose(0, 2, 1, 3).reshape(2, 1, 16) @ out, keys, values


@case(real("5x8"), real("8"))
def scan_short(xs: Any, c: Any) -> Any:
    return lax.scan(lambda c, x: (c * 0.5 + x, jnp.tanh(c) * x), c, xs)


@case(real("40x8"), real("8"))
def scan_long(xs: Any, c: Any) -> Any:
    return lax.scan(lambda c, x: (c * 0.5 + x, jnp.tanh(c) * x), c, xs)


@case(real("7x8"), real("8"))
def scan_back(xs: Any, c: Any) -> Any:
    return lax.scan(lambda c, x: (c * 0.5 + x, c), c, xs, reverse=True)


@case(real("4"), "value 20.0 float32")
def while_open(x: Any, limit: Any) -> Any:
    return lax.while_loop(lambda v: jnp.sum(v[1]) < limit, lambda v: (v[0] + 1, v[1] * 1.5 + 1), (0, jnp.abs(x)))


@case(real("6x3x4"), real("3x8"), real("3x8"), real("4x32", 0.4), real("8x32", 0.4), real("32"))
def lstm(xs: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u + b, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (h, c), xs)


@case(real("36x2x3"), real("2x6"), real("3x18", 0.4), real("6x18", 0.4))
def gru_long(xs: Any, h: Any, w: Any, u: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        a, b = x @ w, h @ u
        r = jax.nn.sigmoid(a[:, :6] + b[:, :6])
        z = jax.nn.sigmoid(a[:, 6:12] + b[:, 6:12])
        n = jnp.tanh(a[:, 12:] + r * b[:, 12:])
        return (1 - z) * n + z * h, h.sum()

    return lax.scan(step, h, xs)


@case(real("2x3x4"), real("4x5x3"), real("3x3"), real("2x3x4"))
def einsum_mix(a: Any, b: Any, c: Any, d: Any) -> Any:
    return (
        jnp.einsum("bij,jkl->bikl", a, b),
        jnp.einsum("bij,bij->b", a, d),
        jnp.einsum("ii->i", c),
        jnp.einsum("bij,jki->bk", a, b),
        jnp.einsum("bij,bkj->bik", a, d),
        jnp.einsum("i,j->ij", c[0], c[1]),
        jnp.einsum("bij->jb", a),
        jnp.vdot(c, c),
    )


@case(real("6x5"), whole(-2, 8, "3x2"), real("4x5"), whole(0, 5, "6x3"), real("6x3"), real("2x6x5"), whole(0, 6, "2x3"))
def gather_scatter(x: Any, i: Any, u: Any, j: Any, v: Any, y: Any, k: Any) -> Any:
    rows = jnp.array([0, 2, 2, 9])
    return (
        x[i],
        x.at[rows].add(u),
        x.at[rows, 1].set(7.0, mode="drop"),
        x.at[rows].max(u),
        x.at[rows].min(u),
        x.at[rows[:3]].multiply(u[:3]),
        jnp.take_along_axis(x, j, 1),
        x[:, i[0]],
        x[i[:, 0], i[:, 1] % 5],
        jnp.take(x, i, axis=1, mode="fill", fill_value=0.5),
        jax.vmap(lambda a, b: a[b])(y, k),
        jax.vmap(lambda a, b: a.at[b].add(1.0))(y, k),
        x.at[1:4, 2:4].set(3.0),
        x.at[::2].add(1.0),
        jax.ops.segment_sum(u, jnp.array([1, 0, 1, 5]), 3),
    )


@case(real("4x9"), whole(0, 4, "4x9"))
def sort_topk(x: Any, k: Any) -> Any:
    return (
        jnp.sort(x, 1),
        jnp.argsort(x, 1),
        jnp.argsort(k, 1, stable=True),
        jnp.argsort(k, 1, stable=True, descending=True),
        lax.top_k(x, 3),
        jnp.sort(x, 0, descending=True),
        lax.sort((k, x), num_keys=2, dimension=1),
        lax.sort((k, x), num_keys=1, dimension=1),
        jnp.median(x, 1),
        jnp.argmax(x, 1),
        jnp.argmin(k, 0),
        jnp.argmax(x),
        jnp.unique(k[0], size=4),
        jnp.searchsorted(jnp.sort(x[0]), x[1]),
    )


@case(real("1x5x6x3"), real("3x3x3x4", 0.3), real("2x2x4x3", 0.3))
def conv_transposes(x: Any, w: Any, v: Any) -> Any:
    n = ("NHWC", "HWIO", "NHWC")
    return (
        lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=n),
        lax.conv_transpose(x, w, (2, 3), "VALID", dimension_numbers=n),
        lax.conv_transpose(x, v, (1, 2), "SAME", dimension_numbers=n, transpose_kernel=True),
        lax.conv_transpose(x, w, (2, 2), ((1, 2), (2, 1)), rhs_dilation=(2, 1), dimension_numbers=n),
    )


@case(real("2x6x7x3"), real("2x9"))
def pools(x: Any, y: Any) -> Any:
    w = (1, 3, 2, 1)
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, w, (1, 2, 2, 1), "SAME"),
        lax.reduce_window(x, jnp.inf, lax.min, w, (1, 1, 2, 1), "VALID"),
        lax.reduce_window(x, 0.0, lax.add, w, (1, 2, 1, 1), "SAME"),
        lax.reduce_window(x, 1.0, lax.mul, (1, 2, 2, 1), (1, 1, 1, 1), "VALID"),
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 2, 1)),
        lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", base_dilation=(1, 2, 2, 1)),
        lax.reduce_window(x, -jnp.inf, lax.max, (2, 1, 1, 2), (1, 1, 1, 1), "VALID"),
        lax.reduce_window(y, 0.0, lax.add, (1, 3), (1, 2), ((0, 0), (1, 2))),
        jnp.cumsum(y, 1),
        jnp.cumprod(y, 1),
        lax.cummax(y, 1),
        lax.cummin(y, 1, reverse=True),
        lax.cumlogsumexp(y, 1),
        lax.cumsum(y, 1, reverse=True),
        jnp.cumsum(y, 0),
    )


@case(real("1x6x6x2"))
def pool_gradients(x: Any) -> Any:
    def f(x: Any) -> Any:
        m = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        a = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return (m * m).sum() + (a**3).sum()

    return jax.grad(f)(x)


@case(real("4x8"), real("8x16", 0.3), real("16x4", 0.3), whole(0, 4, "4"))
def train_step(x: Any, w1: Any, w2: Any, y: Any) -> Any:
    def loss(w: Any) -> Any:
        logits = jnp.tanh(x @ w[0]) @ w[1]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

    value, slopes = jax.value_and_grad(loss)((w1, w2))
    return value, [w - 0.1 * s for w, s in zip((w1, w2), slopes)]


@case(real("2x8x8x3"), real("3x3x3x4", 0.3))
def conv_gradients(x: Any, w: Any) -> Any:
    return jax.grad(lambda x, w: (conv(x, w, (2, 2)) ** 2).sum(), (0, 1))(x, w)


@case(real("3x8"), real("8x4"), symbolic=["b, 8", None])
def dynamic_mlp(x: Any, w: Any) -> Any:
    h = jax.nn.relu(x @ w)
    return jax.nn.softmax(h), h.sum(0), jnp.concatenate([h, x[:, :2]], 1), jnp.arange(x.shape[0]) + h[:, 0], h.mean()


@case(real("2x5x8"), real("8x24", 0.3), symbolic=["b, t, 8", None])
def dynamic_attention(x: Any, w: Any) -> Any:
    q, k, v = jnp.split(x @ w, 3, -1)
    s = jnp.einsum("bqd,bkd->bqk", q, k)
    t = x.shape[1]
    s = jnp.where(jnp.arange(t)[:, None] >= jnp.arange(t), s, -1e9)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(s), v).reshape(x.shape[0], -1)


@case(real("2x8x8x3"), real("3x3x3x4", 0.3), real("4x5"), symbolic=["b, 8, 8, 3", None, None])
def dynamic_cnn(x: Any, w: Any, v: Any) -> Any:
    h = jax.nn.relu(conv(x, w))
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return h.mean((1, 2)) @ v, h.reshape(x.shape[0], -1)


@case(real("3x8"), real("8x16", 0.3), real("16x4", 0.3))
def mlp_bfloat16(x: Any, w1: Any, w2: Any) -> Any:
    x, w1, w2 = (v.astype(jnp.bfloat16) for v in (x, w1, w2))
    return (jax.nn.relu(x @ w1) @ w2).astype(jnp.float32)


@case(real("1x6x6x3", 1, "float16"), real("3x3x3x4", 0.3, "float16"))
def cnn_float16(x: Any, w: Any) -> Any:
    return jax.nn.relu(conv(x, w)).astype(jnp.float32)


@case(whole(-100, 100, "4x8", "int8"), whole(-100, 100, "8x5", "int8"))
def int8_matmul(x: Any, y: Any) -> Any:
    return lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)


@case(whole(0, 50, "2x6"), real("50x8"), real("8x8", 0.3))
def embedding(i: Any, table: Any, w: Any) -> Any:
    return jnp.take(table, i, axis=0).mean(1) @ w


@case("value [1,2] uint32")
def random_numbers(key: Any) -> Any:
    key = jax.random.wrap_key_data(key)
    a, b = jax.random.split(key)
    return jax.random.uniform(a, (5,)), jax.random.normal(b, (4, 3)), jax.random.randint(a, (6,), 0, 100)


@case(real("4x6"), "value 1 int32")
def branches(x: Any, i: Any) -> Any:
    a = lax.cond(x.sum() > 0, lambda x: (x + 1, x.sum()), lambda x: (x * 2, x.mean()), x)
    b = lax.switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: x], x)
    return a, b, lax.switch(i + 7, [lambda x: x + 1, lambda x: -x], x)


@case(real("4x8"))
def fourier(x: Any) -> Any:
    f = jnp.fft.rfft(x)
    g = jnp.fft.fft2(x)
    return jnp.abs(f), f.real, f.imag, jnp.fft.irfft(f), jnp.fft.ifft(g).real, jnp.abs(g * g.conj()), jnp.fft.irfft2(jnp.fft.rfft2(x))


@case(real("3x5"), real("5x3"))
def loops_of_matrices(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 60, lambda i, v: jnp.tanh(v @ y @ x * 0.3 + i * 0.01), x), lax.map(lambda r: r * 2 + r.sum(), x)


@case(real("3x4"), real("3x4"))
def associative(a: Any, b: Any) -> Any:
    first, second = lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, b), axis=1)
    return first, second, lax.reduce((a, b), (1.0, 0.0), lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (1,))


# ---- operators


def each(kind: str, functions: dict[str, Callable[..., Any]], *described: str) -> None:
    """One case of many functions of the same operands."""

    def run(*xs: Any) -> Any:
        return [f(*xs) for f in functions.values()]

    case(*described, name=kind)(run)


ONE = "abs cbrt ceil cos exp expm1 floor is_finite logistic neg round sign sin tan tanh erf erfc square".split()
each("op_unary", {n: getattr(lax, n) for n in ONE}, real("3x7", 2))
POSITIVE = "log log1p rsqrt sqrt lgamma digamma".split()
each("op_positive", {n: (lambda x, n=n: getattr(lax, n)(jnp.abs(x) + 0.01)) for n in POSITIVE}, real("4x9", 3))
UNIT = "acos asin atan asinh atanh erf_inv sinh cosh".split()
each("op_unit", {n: (lambda x, n=n: getattr(lax, n)(jnp.clip(x, -0.99, 0.99))) for n in UNIT}, real("4x9", 0.5))
each("op_acosh", {"acosh": lambda x: lax.acosh(jnp.abs(x) + 1.01), "lgamma": lambda x: lax.lgamma(x)}, real("4x9", 3))
TWO = "add sub mul div max min rem atan2 nextafter eq ne lt le gt ge".split()
each("op_binary", {n: getattr(lax, n) for n in TWO if n != "nextafter"}, real("3x5"), real("3x5"))
each(
    "op_power",
    {"pow": lambda x, y: lax.pow(jnp.abs(x), y), "int": lambda x, y: x**3, "neg": lambda x, y: (jnp.abs(x) + 1) ** -2},
    real("3x5"),
    real("3x5"),
)
INTS = "add sub mul max min bitwise_and bitwise_or bitwise_xor eq lt".split()
each("op_int", {n: getattr(lax, n) for n in INTS}, whole(-50, 50, "3x5"), whole(-50, 50, "3x5"))
each(
    "op_int_divide",
    {
        "div": lambda x, y: lax.div(x, jnp.abs(y) + 1),
        "rem": lambda x, y: lax.rem(x, jnp.abs(y) + 1),
        "floor": lambda x, y: x // (jnp.abs(y) + 1),
        "mod": lambda x, y: x % (jnp.abs(y) + 1),
        "abs": lambda x, y: abs(x),
        "sign": lambda x, y: lax.sign(y),
        "pow": lambda x, y: x**3,
    },
    whole(-50, 50, "3x5"),
    whole(-50, 50, "3x5"),
)
SHIFTS = "shift_left shift_right_arithmetic shift_right_logical".split()
each("op_shift", {n: getattr(lax, n) for n in SHIFTS}, whole(-(2**31), 2**31, "4x5"), whole(0, 40, "4x5"))
each("op_shift_unsigned", {n: getattr(lax, n) for n in SHIFTS}, whole(0, 2**32, "4x5", "uint32"), whole(0, 40, "4x5", "uint32"))
each("op_shift_8", {n: getattr(lax, n) for n in SHIFTS}, whole(-128, 128, "4x5", "int8"), whole(0, 10, "4x5", "int8"))
each("op_bits", {"popcnt": lax.population_count, "clz": lax.clz, "not": lax.bitwise_not}, whole(-(2**31), 2**31, "4x5"))
each("op_bits_8", {"popcnt": lax.population_count, "clz": lax.clz, "not": lax.bitwise_not}, whole(0, 256, "4x5", "uint8"))
each(
    "op_bool",
    {
        "and": lambda x, y: (x > 0) & (y > 0),
        "or": lambda x, y: (x > 0) | (y > 0),
        "xor": lambda x, y: (x > 0) ^ (y > 0),
        "not": lambda x, y: ~(x > 0),
        "all": lambda x, y: (x > -1).all(1),
        "any": lambda x, y: (x > 1).any(0),
        "select": lambda x, y: jnp.where(x > y, x, 0.0),
        "lt": lambda x, y: (x > 0) < (y > 0),
        "sum": lambda x, y: (x > 0).sum(),
    },
    real("3x5"),
    real("3x5"),
)
each(
    "op_clamp",
    {
        "clamp": lambda x: lax.clamp(-0.5, x, 0.7),
        "clip": lambda x: jnp.clip(x, -1, 1),
        "tensor": lambda x: lax.clamp(x - 1, x * 2, x + 1),
    },
    real("3x5"),
)
KINDS = "float16 bfloat16 int32 int8 uint8 bool".split()
each("op_convert", {k: (lambda x, k=k: x.astype(k).astype(jnp.float32)) for k in KINDS}, real("3x5", 3))
each(
    "op_convert_int",
    {k: (lambda x, k=k: x.astype(k).astype(jnp.int32)) for k in ("float32", "int8", "uint8", "bool", "int16")},
    whole(-300, 300, "3x5"),
)
each(
    "op_bitcast",
    {
        "int": lambda x: lax.bitcast_convert_type(x, jnp.int32),
        "bytes": lambda x: lax.bitcast_convert_type(x, jnp.uint8).astype(jnp.int32),
        "back": lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint8), jnp.float32),
        "half": lambda x: lax.bitcast_convert_type(x, jnp.int16).astype(jnp.int32),
    },
    real("3x5"),
)
each(
    "op_precision",
    {
        "bf16": lambda x: lax.reduce_precision(x, 8, 7),
        "f16": lambda x: lax.reduce_precision(x, 5, 10),
        "same": lambda x: lax.reduce_precision(x, 8, 23),
    },
    real("3x5"),
)
each(
    "op_move",
    {
        "transpose": lambda x: x.transpose(2, 0, 1),
        "reshape": lambda x: x.reshape(8, 3),
        "reverse": lambda x: lax.rev(x, (0, 2)),
        "broadcast": lambda x: lax.broadcast_in_dim(x[:, 0, 0], (4, 2, 3), (1,)),
        "broadcast_turned": lambda x: lax.broadcast(x, (2, 1)),
        "concatenate": lambda x: jnp.concatenate([x, x * 2, x], 1),
        "slice": lambda x: lax.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 2)),
        "pad": lambda x: lax.pad(x, 1.5, ((1, -1, 1), (0, 2, 0), (-1, 0, 2))),
        "pad_cut": lambda x: lax.pad(x, 0.0, ((-1, 0, 0), (0, -1, 0), (0, 0, 0))),
        "iota": lambda x: lax.broadcasted_iota(jnp.float32, (2, 3, 4), 1) + x,
        "roll": lambda x: jnp.roll(x, 2, 1),
        "tile": lambda x: jnp.tile(x, (1, 2, 1)),
        "stack": lambda x: jnp.stack([x, x], 1),
        "eye": lambda x: jnp.eye(3) + x[0, 0, 0],
        "tril": lambda x: jnp.tril(x),
        "empty": lambda x: jnp.concatenate([x[:, :0], x], 1),
    },
    real("2x3x4"),
)
each(
    "op_dynamic",
    {
        "slice": lambda x, i: lax.dynamic_slice(x, (i, i + 1), (2, 3)),
        "held": lambda x, i: lax.dynamic_slice(x, (i + 9, i - 9), (2, 3)),
        "one": lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False),
        "update": lambda x, i: lax.dynamic_update_slice(x, x[:2, :2] * 5, (i, i)),
        "update_row": lambda x, i: lax.dynamic_update_slice(x, x[:1] * 5, (i + 7, 0)),
        "update_all": lambda x, i: lax.dynamic_update_slice(x, x * 5, (i, i)),
        "unsigned": lambda x, i: lax.dynamic_slice(x, (i.astype(jnp.uint32), jnp.uint32(0)), (2, 3)),
    },
    real("4x5"),
    "value 1 int32",
)
each(
    "op_dot",
    {
        "batch": lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
        "two": lambda x, y: lax.dot_general(x, y, (((1, 2), (2, 1)), ((), ()))),
        "batch_last": lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((2,), (1,)))),
        "none": lambda x, y: lax.dot_general(x[0], y[0], (((), ()), ((), ()))),
        "vector": lambda x, y: x[0, 0] @ y[0, :, 0],
        "matrix": lambda x, y: x[0] @ y[0],
        "matvec": lambda x, y: x[0] @ y[0, :, 0],
        "all": lambda x, y: lax.dot_general(x, y, (((0, 1, 2), (0, 2, 1)), ((), ()))),
    },
    real("2x3x4"),
    real("2x4x3"),
)
#: Without negative padding, which XLA computes wrongly on CPUs.
CONV = {
    "nchw": lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "SAME"),
    "dilated": lambda x, w: lax.conv_general_dilated(x, w, (1, 1), ((2, 1), (0, 3)), rhs_dilation=(2, 1)),
    "spread": lambda x, w: lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (2, 0)), lhs_dilation=(2, 3)),
    "groups": lambda x, w: lax.conv_general_dilated(x, w[:, :2], (1, 1), "SAME", feature_group_count=2),
    "depthwise": lambda x, w: lax.conv_general_dilated(x, w[:4, :1], (1, 1), "SAME", feature_group_count=4),
    "batches": lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", batch_group_count=2),
    "turned": lambda x, w: lax.conv_general_dilated(
        x.transpose(1, 2, 3, 0), w.transpose(2, 3, 1, 0), (1, 1), "SAME", dimension_numbers=("CHWN", "HWIO", "NHWC")
    ),
}
each("op_conv", CONV, real("2x4x6x7"), real("6x4x3x2", 0.3))
each(
    "op_conv1d",
    {"one": lambda x, w: lax.conv_general_dilated(x, w, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))},
    real("2x9x3"),
    real("3x3x4"),
)
each("op_conv3d", {"three": lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), "SAME")}, real("1x2x4x5x3"), real("3x2x2x3x2"))
each("op_conv0d", {"none": lambda x, w: lax.conv_general_dilated(x, w, (), ())}, real("2x4"), real("3x4"))
each(
    "op_reduce",
    {
        "sum": lambda x: x.sum((0, 2)),
        "prod": lambda x: x.prod(1),
        "max": lambda x: x.max(2),
        "min": lambda x: x.min((1, 2)),
        "all": lambda x: x.sum(),
        "none": lambda x: x.sum(()),
        "first": lambda x: lax.reduce(x, 2.0, lax.add, (1,)),
        "floor": lambda x: lax.reduce(x, 0.5, lax.max, (1,)),
        "logsum": lambda x: jax.nn.logsumexp(x, 1),
        "std": lambda x: x.std(1),
        "custom": lambda x: lax.reduce(x, 0.0, lambda a, b: a + b + a * b, (1,)),
        "empty": lambda x: x[:, :0].sum(1),
        "norm": lambda x: jnp.linalg.norm(x, axis=1),
    },
    real("3x5x4"),
)
each(
    "op_reduce_int",
    {
        "sum": lambda x: x.sum(0),
        "max": lambda x: x.max(1),
        "or": lambda x: lax.reduce(x, 0, lax.bitwise_or, (1,)),
        "and": lambda x: lax.reduce(x, -1, lax.bitwise_and, (0,)),
        "xor": lambda x: lax.reduce(x, 0, lax.bitwise_xor, (0, 1)),
        "argmax": lambda x: jnp.argmax(x, 1),
        "argmin": lambda x: jnp.argmin(x, 0),
    },
    whole(-9, 9, "5x7"),
)
each(
    "op_select_n",
    {"three": lambda i, x: lax.select_n(i % 3, x, x * 2, x * 3), "bool": lambda i, x: lax.select_n(i > 1, x, -x)},
    whole(0, 3, "3x4"),
    real("3x4"),
)
each(
    "op_composite",
    {
        "silu": jax.nn.silu,
        "elu": jax.nn.elu,
        "softplus": jax.nn.softplus,
        "mish": jax.nn.mish,
        "glu": jax.nn.glu,
        "hard": jax.nn.hard_swish,
        "celu": jax.nn.celu,
        "relu6": jax.nn.relu6,
        "one_hot": lambda x: jax.nn.one_hot(jnp.argmax(x, 1), 4),
        "std": jax.nn.standardize,
    },
    real("3x4"),
)


def texts(name: str) -> tuple[str, bytes]:
    """The program of a case: text and portable artifact."""
    f, described = CASES[name]
    xs = operands(described)
    if name in SYMBOLIC:
        scope = export.SymbolicScope()
        args = [
            jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope) if s else x.shape, x.dtype) for s, x in zip(SYMBOLIC[name], xs)
        ]
        made = export.export(jax.jit(f, keep_unused=True))(*args)
        return _plain(made), made.mlir_module_serialized
    made = export.export(jax.jit(f, keep_unused=True))(*xs)
    return jax.jit(f, keep_unused=True).lower(*xs).as_text(), made.mlir_module_serialized


def _plain(made: Any) -> str:
    """The text of an exported program without places."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        return str(ir.Module.parse(made.mlir_module()).operation.get_asm())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", action="append")
    args = parser.parse_args()
    files: dict[str, bytes] = {}
    for name in args.only or CASES:
        f, described = CASES[name]
        xs = operands(described)
        results = [np.asarray(r) for r in jax.tree.leaves(jax.jit(f)(*xs))]
        text, artifact = texts(name)
        buffer = io.BytesIO()
        np.savez(buffer, **{f"out{i}": r for i, r in enumerate(results)})  # type: ignore[arg-type]
        files |= {f"{name}.mlir": text.encode(), f"{name}.json": json.dumps(described).encode(), f"{name}.npz": buffer.getvalue()}
        if args.folder is not None or name in ARTIFACTS:
            files[f"{name}.mlirbc"] = artifact
    if args.folder is not None:
        args.folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (args.folder / name).write_bytes(data)
        return
    with tarfile.open(DATA, "w:xz", preset=9) as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


#: Cases whose portable artifacts are committed, too.
ARTIFACTS = ("mlp", "cnn", "lstm", "sort_topk", "gather_scatter", "dynamic_mlp", "branches")

if __name__ == "__main__":
    main()
