"""Apple's BNNS: its pattern table, and the operators that it takes as they are."""

from __future__ import annotations

import math
from collections.abc import Iterator

from relaylang.ir import Call, Constant, Expr, const
from relaylang.partition.checks import (
    Verdict,
    call_of,
    every,
    op_name,
    shape,
    supports,
    wants_attr,
    wants_dtype,
    wants_rank,
)
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.recipe import OpCheck, Recipe
from relaylang.patterns import DFPattern, is_expr, is_op, wildcard

OPERATORS: dict[str, OpCheck] = {}
_FLOAT = ("float32",)


def _conv(with_bias: bool, activation: str | None) -> DFPattern:
    pattern: DFPattern = is_op("nn.conv2d")(wildcard(), wildcard())
    if with_bias:
        bias = wildcard()
        pattern = is_op("add")(pattern, bias) | is_op("nn.bias_add")(pattern, bias)
    return is_op(activation)(pattern) if activation else pattern


def _dense_bias() -> DFPattern:
    return is_op("add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard())


def _dense_bias_gelu() -> DFPattern:
    """x / 2 * (1 + tanh(b * (x + a * x^3))), as importers spell it out."""
    x = _dense_bias()
    cubed = is_op("multiply")(is_op("power")(x, is_expr(const(3.0))), is_expr(const(0.044715)))
    tanh = is_op("tanh")(is_op("multiply")(is_op("add")(cubed, x), is_expr(const(math.sqrt(2 / math.pi)))))
    half = is_op("multiply")(is_op("add")(tanh, is_expr(const(1.0))), is_expr(const(0.5)))
    return is_op("multiply")(half, x)


@supports(OPERATORS, "nn.conv2d")
def _conv2d(call: Call) -> Verdict:
    data, weight = call.args
    return every(
        wants_rank(data, [4], "the input"),
        wants_dtype(data, _FLOAT, "the input"),
        wants_attr(call, "data_layout", ["NCHW"]),
        wants_rank(weight, [4], "the weight"),
        wants_dtype(weight, _FLOAT, "the weight"),
        wants_attr(call, "kernel_layout", ["OIHW"]),
        isinstance(weight, Constant) or "the weight is not a constant",
        wants_attr(call, "out_dtype", ["", None, "void", "float32"]),
    )


@supports(OPERATORS, "nn.dense")
def _dense(call: Call) -> Verdict:
    data, weight = call.args
    return every(
        wants_dtype(data, _FLOAT, "the input"),
        isinstance(weight, Constant) or "the weight is not a constant",
        wants_rank(weight, [2], "the weight"),
        wants_dtype(weight, _FLOAT, "the weight"),
        wants_attr(call, "out_dtype", ["", None, "void", "float32"]),
    )


def _bias_along_channels(call: Call) -> Verdict:
    if not isinstance(call.args[1], Constant):
        return "the bias is not a constant"
    if op_name(call) == "nn.bias_add":
        return wants_attr(call, "axis", [1])
    have = shape(call.args[1])
    fits = (len(have) == 4 and have[0] == have[2] == have[3] == 1) or (len(have) == 3 and have[1] == have[2] == 1)
    return fits or f"the summand of shape {have} is no bias of channels"


def check_conv(root: Expr) -> Verdict:
    """The convolution and its bias."""
    *after, convolution = _down_to("nn.conv2d", root)
    return every(_conv2d(convolution), *(_bias_along_channels(c) for c in after if op_name(c) in ("add", "nn.bias_add")))


def _down_to(name: str, root: Expr) -> Iterator[Call]:
    """The calls from a match's root along first operands, down to the call of an operator."""
    node = root
    while isinstance(node, Call):
        yield node
        if op_name(node) == name:
            return
        node = node.args[0]


def check_dense(root: Expr) -> Verdict:
    """The matrix product."""
    node = root
    while op_name(node) not in ("nn.dense", ""):
        assert isinstance(node, Call)
        node = node.args[1] if op_name(node) == "multiply" and op_name(node.args[0]) == "multiply" else node.args[0]
    return _dense(call_of(node, "nn.dense"))


def pattern_table() -> list[Entry]:
    """The rows for BNNS, those that take most first."""
    return as_entries(
        [
            ("bnns.conv2d_bias_relu", _conv(True, "nn.relu"), check_conv),
            ("bnns.conv2d_relu", _conv(False, "nn.relu"), check_conv),
            ("bnns.conv2d_bias_sigmoid", _conv(True, "sigmoid"), check_conv),
            ("bnns.conv2d_sigmoid", _conv(False, "sigmoid"), check_conv),
            ("bnns.conv2d_bias", _conv(True, None), check_conv),
            ("bnns.dense_bias_gelu", _dense_bias_gelu(), check_dense),
            ("bnns.dense_bias", _dense_bias(), check_dense),
        ]
    )


@supports(OPERATORS, "nn.batch_matmul")
def _anything(call: Call) -> Verdict:
    return True


@supports(OPERATORS, "nn.max_pool2d", "nn.avg_pool2d", "nn.global_max_pool2d", "nn.global_avg_pool2d")
def _pool(call: Call) -> Verdict:
    data = call.args[0]
    return every(wants_rank(data, [3, 4], "the input"), wants_dtype(data, _FLOAT, "the input"), wants_attr(call, "layout", ["NCHW"]))


@supports(OPERATORS, "nn.instance_norm")
def _instance_norm(call: Call) -> Verdict:
    data, gamma, beta = call.args
    rank = len(shape(data))
    constants = isinstance(gamma, Constant) and isinstance(beta, Constant)
    return every(
        wants_rank(data, [3, 4], "the input"),
        wants_dtype(data, _FLOAT, "the input"),
        constants or "gamma and beta are not constants",
        wants_attr(call, "axis", [rank - 3]),
    )


RECIPE = Recipe(
    "bnns",
    prepare="FoldConstant,FoldScaleAxis,DynamicToStatic,FoldConstant",
    operators=OPERATORS,
    merge="none",
)
