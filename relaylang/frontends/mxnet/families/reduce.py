"""Sums, extremes and places of extremes along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.mxnet.node import Node
from relaylang.ir import Expr


def reduced_axes(n: Node, rank: int) -> list[int]:
    """The axes that a layer reduces: those of `axis`, all without it, and the others with `exclude`."""
    axes = n.axes("axis", rank)
    if axes is None:
        return list(range(rank))
    return [i for i in range(rank) if i not in axes] if n.bool("exclude") else axes


def _result(n: Node, result: Expr) -> Expr:
    """A result of MXNet has an axis at least, unless the layer is one of numpy's."""
    plain = n.layer.op.startswith(("_np_", "_npi_", "_npx_"))
    return n.b.reshape(result, [1]) if n.b.rank(result) == 0 and not plain else result


def _reduce(operator: str) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        axes = reduced_axes(n, n.b.rank(x))
        if n.has("dtype"):
            x = n.b.cast(x, n.dtype("dtype"))
        return _result(n, n.b.op(operator, x, axis=axes, keepdims=n.bool("keepdims")))

    return convert


def _without_nan(operator: str, neutral: float) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        held = n.b.op("where", n.b.op("isnan", x), n.b.const(neutral, n.b.dtype(x)), x)
        return _reduce(operator)(n, held)

    return convert


def norm(n: Node, x: Expr) -> Any:
    b, order = n.b, n.int("ord", 2)
    axes = n.axes("axis", b.rank(x)) or list(range(b.rank(x)))
    how = {"axis": axes, "keepdims": n.bool("keepdims")}
    if order == 1:
        length = b.op("sum", b.op("abs", x), **how)
    elif order == 2:
        length = b.op("sqrt", b.op("sum", b.op("multiply", x, x), **how))
    else:
        raise Unsupported(f"norms have the order 1 or 2, not {order}")
    return b.cast(_result(n, length), n.dtype("out_dtype", b.dtype(length)))


def _place(operator: str) -> Callable[[Node, Expr], Any]:
    """The place of the first extreme, as a real number; over all elements without an axis."""

    def convert(n: Node, x: Expr) -> Any:
        b, rank = n.b, n.b.rank(x)
        numpy = n.layer.op.startswith("_npi_")
        if n.has("axis"):
            index = b.op(operator, x, axis=[n.axis("axis", rank)], keepdims=n.bool("keepdims"))
        else:
            index = b.op(operator, b.reshape(x, [-1]), axis=[0])
            if n.bool("keepdims"):
                index = b.reshape(index, [1] * rank)
        return b.cast(_result(n, index), "int64" if numpy else "float32")

    return convert


def moments(n: Node, x: Expr) -> Any:
    b, keep = n.b, n.bool("keepdims")
    axes = n.axes("axes", b.rank(x)) or list(range(b.rank(x)))
    _, variance = nn.moments(b, x, axes)
    mean = b.op("mean", x, axis=axes, keepdims=True)
    return [_result(n, v if keep else b.squeeze(v, axes)) for v in (mean, variance)]


def cumulative_sum(n: Node, x: Expr) -> Any:
    b = n.b
    if n.has("dtype"):
        x = b.cast(x, n.dtype("dtype"))
    if not n.has("axis"):
        return b.op("cumsum", b.reshape(x, [-1]), axis=0)
    return b.op("cumsum", x, axis=n.axis("axis", b.rank(x)))


def softmax_cross_entropy(n: Node, x: Expr, label: Expr) -> Any:
    """The sum of negative logarithms of the labelled classes' shares."""
    b: Builder = n.b
    picked = b.op("gather", b.op("nn.log_softmax", x, axis=-1), b.unsqueeze(b.cast(label, "int32"), [1]), axis=1)
    return b.reshape(b.op("negative", b.op("sum", picked)), [1])


_REDUCED = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "max", "min": "min"}

RULES = (
    *(Rule(name, _reduce(operator)) for name, operator in _REDUCED.items()),
    *(Rule(f"{mark}{name}", _reduce(operator)) for name, operator in _REDUCED.items() for mark in ("_np_", "_npi_")),
    Rule("nansum", _without_nan("sum", 0.0)),
    Rule("nanprod", _without_nan("prod", 1.0)),
    Rule("norm", norm),
    *(Rule(f"{mark}{name}", _place(name)) for name in ("argmax", "argmin") for mark in ("", "_npi_")),
    Rule("argmax_channel", lambda n, x: n.b.cast(n.b.op("argmax", x, axis=[1]), "float32")),
    Rule("moments", moments),
    Rule("_np_cumsum", cumulative_sum),
    Rule("softmax_cross_entropy", softmax_cross_entropy),
)
