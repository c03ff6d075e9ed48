"""Tensors that no tensor gives: constants, ranges, grids, random numbers."""

from __future__ import annotations

import math
from typing import Any
from zlib import crc32

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.ir import Call, Expr
from relaylang.ops import get
from relaylang.ops.record import make_attrs


def _number(n: Node, name: str, dtype: str, default: Any = 0) -> np.ndarray:
    """One number that may be infinite."""
    numbers = n.values(name, dtype) if n.has(name) else np.array([default]).astype(np.dtype(dtype))
    if numbers.size != 1:
        raise Malformed(f"its attribute {name} has {numbers.size} elements")
    return numbers.reshape(())


def _filled(n: Node, shape: Tensors, value: np.ndarray) -> Expr:
    """A tensor of one number, whose shape is known or computed."""
    b, extents = n.b, n.vector(shape)
    known = b.known(extents)
    if b.value(extents) is not None and b.value(extents).size == 0:  # type: ignore[union-attr]
        return b.const(value)
    if known is not None and None not in known:
        if any(d is None or d < 0 for d in known):
            raise Malformed(f"its shape is {known[:8]}")
        return b.const(b.arrays.full([int(d or 0) for d in known], value, value.dtype))
    return b.op("dyn.full", b.const(value), extents, dtype=value.dtype.name)


def full(n: Node) -> Any:
    dtype = n.dtype("dtype", "float32")
    return _filled(n, n.b.const(np.array(n.ints("shape"), np.int64)), _number(n, "value", dtype))


def full_with_tensor(n: Node, value: Expr | None = None, shape: Any = None) -> Any:
    """The value is an operand, a number as a text, or a number."""
    b, dtype = n.b, n.dtype("dtype", "float32")
    extents = shape if shape is not None else b.const(np.array(n.ints("shape", []), np.int64))
    if value is not None and b.value(value) is None:
        return b.op("dyn.full", b.cast(b.scalar(value), dtype), n.vector(extents), dtype=dtype)
    if value is not None:
        number = b.need(value, "its value").reshape(-1)[:1].astype(np.dtype(dtype)).reshape(())
    else:
        text = n.operation.attributes.get("str_value")
        number = _parsed(text, dtype) if text else _number(n, "value", dtype)
    return _filled(n, extents, number)


def _parsed(text: Any, dtype: str) -> np.ndarray:
    try:
        is_integer = np.dtype(dtype).kind in "iu" and str(text).lstrip("-").isdigit()
        return np.array(int(text) if is_integer else float(text)).astype(np.dtype(dtype))
    except (ValueError, OverflowError):
        raise Malformed(f"its value is {str(text)[:40]!r}") from None


def full_like(n: Node, x: Expr, value: Expr | None = None) -> Any:
    dtype = n.dtype("dtype", n.b.dtype(x))
    number = n.b.need(value, "its value").reshape(-1)[0] if value is not None else _number(n, "value", dtype)
    return _filled(n, n.b.shape_of(x), np.asarray(number).astype(np.dtype(dtype)))


def zeros_like(n: Node, x: Expr) -> Any:
    return _filled(n, n.b.shape_of(x), np.zeros((), n.dtype("dtype", n.b.dtype(x))))


def ones_like(n: Node, x: Expr) -> Any:
    return _filled(n, n.b.shape_of(x), np.ones((), n.dtype("dtype", n.b.dtype(x))))


def zeros(n: Node) -> Any:
    return _filled(n, n.b.const(np.array(n.ints("shape"), np.int64)), np.zeros((), n.dtype("dtype", "float32")))


def ones(n: Node) -> Any:
    return _filled(n, n.b.const(np.array(n.ints("shape"), np.int64)), np.ones((), n.dtype("dtype", "float32")))


def empty(n: Node, shape: Tensors) -> Any:
    """Zeros; the elements may be any."""
    return _filled(n, shape, np.zeros((), n.dtype("dtype", "float32")))


def full_batch_size_like(n: Node, x: Expr) -> Any:
    """One extent is that of the operand."""
    b, extents, dtype = n.b, n.ints("shape"), n.dtype("dtype", "float32")
    source, target = n.axis(x, "input_dim_idx", 0), n.int("output_dim_idx", 0)
    if not 0 <= target < len(extents):
        raise Malformed(f"its shape is {extents[:8]}, and the batch its axis {target}")
    text = n.operation.attributes.get("str_value")
    number = _parsed(text, dtype) if text else _number(n, "value", dtype)
    parts: list[Expr] = [b.const(np.array([d], np.int64)) for d in extents]
    parts[target] = b.slice(b.shape_of(x), [source], [source + 1], [0])
    return _filled(n, b.concat(parts, 0), number)


def assign_value(n: Node, output: Expr | None = None) -> Any:
    """A constant; files of PaddlePaddle 2 have it in an attribute for each element type."""
    dtype, shape = n.dtype("dtype", "float32"), n.ints("shape")
    names = ["values", "fp32_values", "int32_values", "int64_values", "bool_values", "fp64_values", "int8_values"]
    filled = [name for name in names if n.operation.attributes.get(name)]
    values = n.values(filled[0], dtype).reshape(-1) if filled else np.zeros(0, dtype)
    if any(d < 0 for d in shape) or math.prod(shape) != values.size:
        raise Malformed(f"it has {values.size} values, and the shape {shape[:8]}")
    return n.b.const(values.reshape(shape))


def arange(n: Node, start: Any = None, end: Any = None, step: Any = None) -> Any:
    b = n.b
    bounds = [
        b.scalar(v) if isinstance(v, Expr) else b.const(n.float(name)) for v, name in zip((start, end, step), ("start", "end", "step"))
    ]
    dtype = n.dtype("dtype", b.dtype(bounds[0]))
    ends = [b.cast(v, dtype) for v in bounds]
    known = [b.value(v) for v in ends]
    if None not in [None if v is None else 1 for v in known]:
        first, last, by = (float(v) for v in known if v is not None)
        if not by or not math.isfinite((last - first) / by):
            raise Malformed(f"it goes from {first} to {last} by {by}")
        b.arrays.reserve(max(math.ceil((last - first) / by), 0), "a range")
    return b.arange(ends[0], ends[1], ends[2], dtype)


def linspace(n: Node, start: Expr, stop: Expr, count: Expr) -> Any:
    b = n.b
    dtype = n.dtype("dtype", b.dtype(start))
    first, last = (float(b.need(v, "its ends").reshape(-1)[0]) for v in (start, stop))
    number = n.number(count, "its number of elements")
    if number < 1 or not math.isfinite(first) or not math.isfinite(last):
        raise Malformed(f"it has {number} elements from {first} to {last}")
    return b.const(b.arrays.linspace(first, last, number).astype(np.dtype(dtype)))


def eye(n: Node, rows: Any = None, columns: Any = None) -> Any:
    count = n.number(rows, "its rows", 0)
    wide = n.number(columns, "its columns", -1)
    wide = count if wide == -1 else wide
    if count < 0 or wide < 0:
        raise Malformed(f"it has {count} rows and {wide} columns")
    return n.b.const(n.b.arrays.eye(count, wide, dtype=np.dtype(n.dtype("dtype", "float32"))))


def _triangle(n: Node, x: Expr, upper: bool) -> Expr:
    b, rank = n.b, n.b.rank(x)
    if rank < 2:
        raise Malformed(f"its operand has {int(rank)} axes")
    rows, columns = (b.extent(x, a) for a in (rank - 2, rank - 1))
    b.arrays.reserve((rows, columns), size=1)
    at = b.arrays.arange(columns)[None] - b.arrays.arange(rows)[:, None]
    inside = at >= n.int("diagonal", 0) if upper else at <= n.int("diagonal", 0)
    return b.op("where", b.const(inside), x, b.const(np.zeros((), b.dtype(x))))


def tril(n: Node, x: Expr) -> Any:
    return _triangle(n, x, False)


def triu(n: Node, x: Expr) -> Any:
    return _triangle(n, x, True)


def one_hot(n: Node, x: Expr, depth: Any = None) -> Any:
    """Indices beyond the depth give zeros. The older operator drops a last axis of extent 1."""
    b, count = n.b, n.number(depth, "its depth", n.int("depth", 0))
    if count < 1:
        raise Malformed(f"its depth is {count}")
    if n.operation.name == "one_hot" and b.rank(x) and b.shape(x)[-1] == 1 and n.has("depth"):
        x = b.squeeze(x, [b.rank(x) - 1])
    if all(isinstance(d, int) for d in b.shape(x)):
        b.arrays.reserve([*b.static_shape(x), count], "a one-hot tensor", 0)
    on, off = b.const(1.0, "float32"), b.const(0.0, "float32")
    return b.op("one_hot", x, on, off, depth=count, axis=-1, dtype="float32")


def _drawn(n: Node, name: str, shape: Tensors, first: float, second: float) -> Expr:
    """Random numbers from a key that the seed gives: those of one program are the same at each run."""
    b, dtype = n.b, n.dtype("dtype", "float32")
    extents = n.numbers(shape, "its shape") if shape is not None else n.ints("shape")
    if any(d < 0 for d in extents):
        raise Malformed(f"its shape is {extents[:8]}")
    if "float" not in dtype:
        raise Unsupported(f"it draws numbers of the type {dtype}")
    seed = n.int("seed", 0) or 1 << 32 | crc32(repr(n.operation.results).encode())
    key = b.const(np.array([seed % (1 << 64), 0, 0, 0, 0, 0, 0, 0, 1 << 63, 0], np.uint64))
    op, kind = get(name), "float64" if dtype == "float64" else "float32"
    assert op.attrs is not None
    attrs = make_attrs(op.attrs, {"out_shape": extents, "out_dtype": kind})
    call = Call(op, (key, b.const(first, kind), b.const(second, kind)), attrs, (), b.span)
    b.type_call(call)
    return b.cast(b.field(call, 1), dtype)


def uniform(n: Node, shape: Any = None, low: Expr | None = None, high: Expr | None = None) -> Any:
    ends: list[float] = []
    for operand, name, default in ((low, "min", -1.0), (high, "max", 1.0)):
        value = n.b.need(operand, f"its {name}").reshape(-1)[:1] if operand is not None else None
        ends.append(float(value[0]) if value is not None and value.size else n.float(name, default))
    return _drawn(n, "random.uniform", shape, *ends)


RULES = (
    Rule("arange", arange),
    Rule("assign_value", assign_value),
    Rule("empty", empty),
    Rule("empty_like", zeros_like),
    Rule("eye", eye),
    Rule("full", full),
    Rule("full_batch_size_like", full_batch_size_like),
    Rule("full_int_array", lambda n: n.b.const(n.values("value", n.dtype("dtype", "int64")).reshape(-1))),
    Rule("full_like", full_like),
    Rule("full_with_tensor", full_with_tensor),
    Rule("gaussian", lambda n, shape=None: _drawn(n, "random.normal", shape, n.float("mean", 0.0), n.float("std", 1.0))),
    Rule("linspace", linspace),
    Rule("one_hot", one_hot),
    Rule("ones", ones),
    Rule("ones_like", ones_like),
    Rule("tril", tril),
    Rule("tril_triu", lambda n, x: _triangle(n, x, not n.bool("lower", True))),
    Rule("triu", triu),
    Rule("uniform", uniform),
    Rule("zeros", zeros),
    Rule("zeros_like", zeros_like),
)
