"""Layers that make the variables of their weights: a layer `name` has `name_weight`, `name_bias` and so on."""

from __future__ import annotations

from typing import Any

from relaylang.ir import Expr, Var
from relaylang.tvm import op


def _or(value: Expr | None, name: str) -> Expr:
    return Var(name) if value is None else value


def batch_norm_infer(
    data: Expr,
    gamma: Expr | None = None,
    beta: Expr | None = None,
    moving_mean: Expr | None = None,
    moving_var: Expr | None = None,
    *,
    name: str,
    **kwargs: Any,
) -> Expr:
    """The normalised data of a batch normalisation."""
    parts = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    operands = {part: _or(value, f"{name}_{part}") for part, value in parts.items()}
    return op.nn.batch_norm(data, **operands, **kwargs)[0]  # type: ignore[arg-type]


def conv2d(data: Expr, weight: Expr | None = None, *, name: str, **kwargs: Any) -> Expr:
    """A convolution over two axes."""
    return op.nn.conv2d(data, _or(weight, f"{name}_weight"), **kwargs)


def conv3d(data: Expr, weight: Expr | None = None, *, name: str, **kwargs: Any) -> Expr:
    """A convolution over three axes."""
    return op.nn.conv3d(data, _or(weight, f"{name}_weight"), **kwargs)


def conv2d_transpose(data: Expr, weight: Expr | None = None, *, name: str, **kwargs: Any) -> Expr:
    """A transposed convolution over two axes."""
    return op.nn.conv2d_transpose(data, _or(weight, f"{name}_weight"), **kwargs)


def dense_add_bias(
    data: Expr, weight: Expr | None = None, bias: Expr | None = None, units: int | None = None, *, name: str, **kwargs: Any
) -> Expr:
    """A dense layer with a bias."""
    product = op.nn.dense(data, _or(weight, f"{name}_weight"), units, **kwargs)
    return op.nn.bias_add(product, _or(bias, f"{name}_bias"), axis=-1)


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The layout of weights for data in "NCHW" or "NHWC". Raises `KeyError`."""
    return {"NCHW": "OIHW", "NHWC": "HWOI" if is_depthwise else "HWIO"}[data_layout]


__all__ = ["batch_norm_infer", "conv2d", "conv2d_transpose", "conv3d", "conv_kernel_layout", "dense_add_bias"]
