"""Convolutions, products and pools of com.microsoft with an activation, a scale or a layout of their own."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.onnx.families.conv import conv
from relaylang.frontends.onnx.families.image import grid_sample
from relaylang.frontends.onnx.families.matmul import gemm
from relaylang.frontends.onnx.families.pool import max_pool
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def activated(b: Builder, x: Expr, kind: str, params: list[float]) -> Expr:
    """A fused activation; `params` are its alpha, beta and gamma."""
    alpha, beta = (*params, 0.0, 0.0)[:2]
    if kind in ("Relu", "Sigmoid", "Tanh"):
        return b.op({"Relu": "nn.relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}[kind], x)
    if kind == "LeakyRelu":
        return b.op("nn.leaky_relu", x, alpha=alpha if params else 0.01)
    if kind == "Clip":
        return b.op("clip", x, a_min=alpha, a_max=beta)
    if kind == "HardSigmoid":
        return nn.hard_sigmoid(b, x, alpha, beta)
    if kind == "Elu":
        return nn.elu(b, x, alpha if params else 1.0)
    if kind == "Softplus":
        return nn.softplus(b, x)
    if kind == "HardSwish":
        return nn.hard_swish(b, x)
    if kind:
        raise Unsupported(f"the activation {kind} is not converted")
    return x


def fused_conv(n: Node, x: Expr, w: Expr, bias: Expr | None = None, other: Expr | None = None) -> Any:
    """`other` is added before the activation."""
    b = n.b
    total = conv(n, x, w, bias)
    total = total if other is None else b.op("add", total, other)
    return activated(b, total, n.string("activation", ""), n.floats("activation_params", []) if n.has("activation_params") else [])


def _first(b: Builder, x: Expr) -> Expr:
    """Channels second."""
    rank = b.rank(x)
    return b.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def _last(b: Builder, x: Expr) -> Expr:
    """Channels last."""
    return b.transpose(x, [0, *range(2, b.rank(x)), 1])


def nhwc_conv(n: Node, x: Expr, w: Expr, bias: Expr | None = None, other: Expr | None = None) -> Any:
    b = n.b
    return _last(b, fused_conv(n, _first(b, x), w, bias, None if other is None else _first(b, other)))


def fused_gemm(n: Node, x: Expr, y: Expr, z: Expr | None = None) -> Any:
    params = [n.float(f"activation_{name}", 0.0) for name in ("alpha", "beta", "gamma") if n.has(f"activation_{name}")]
    return activated(n.b, gemm(n, x, y, z), n.string("activation", ""), params)


def fused_matmul(n: Node, x: Expr, y: Expr) -> Any:
    """Operands may have their last axes, or their leading ones, turned."""
    b, alpha = n.b, n.float("alpha", 1.0)
    left = _turned(b, x, bool(n.int("transA", 0)), bool(n.int("transBatchA", 0)))
    right = _turned(b, y, bool(n.int("transB", 0)), bool(n.int("transBatchB", 0)))
    product = nn.matmul(b, left, right)
    product = product if alpha == 1.0 else b.op("multiply", product, alpha)
    return activated(b, product, n.string("activation", ""), [])


def _turned(b: Builder, x: Expr, matrix: bool, batch: bool) -> Expr:
    rank = b.rank(x)
    if rank < 2:
        return x
    axes = list(range(rank))
    if batch:  # the first axis goes behind the other leading ones
        axes = [*axes[1:-1], axes[0], axes[-1]]
    if matrix:
        axes = [*axes[:-2], axes[-1], axes[-2]]
    return b.transpose(x, axes)


def trilu(n: Node, x: Expr, k: Expr | None = None) -> Any:
    return n.b.op("trilu", x, n.b.const(0, "int32") if k is None else n.b.scalar(n.b.cast(k, "int32")), upper=bool(n.int("upper", 1)))


_ROWS = (
    ("FusedConv", fused_conv),
    ("FusedGemm", fused_gemm),
    ("FusedMatMul", fused_matmul),
    ("FusedMatMulActivation", fused_matmul),
    ("GridSample", grid_sample),
    ("NhwcConv", nhwc_conv),
    ("NhwcFusedConv", nhwc_conv),
    ("NhwcMaxPool", lambda n, x: _last(n.b, max_pool(n, _first(n.b, x))[0])),
    ("TransposeMatMul", fused_matmul),
    ("Trilu", trilu),
)
RULES = tuple(Rule(name, convert, domain="com.microsoft") for name, convert in _ROWS)
