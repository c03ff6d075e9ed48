"""FakeQuantizationToInteger: the integer form of each operator between qnn.dequantize and qnn.quantize.

A rule gets a call, its operands, and the scale that a quantize wants for its result, if any. An operand is an `Affine`,
or None for real numbers. The rule returns the result in whole numbers, or None where the call stays in floats.
"""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ops import OPS, Trait, forms, having
from relaylang.rules.fake_quantization.affine import Affine, Rule, Wanted
from relaylang.rules.fake_quantization.operators import (
    average,
    avg_pool2d,
    bias_add,
    binary,
    channel,
    clip,
    concatenate,
    extreme,
    finer_sum,
    function,
    identity,
    mean,
    pad,
    pooled,
    product,
    relu,
    resize,
    topk,
    transpose,
)

_MOVES = (
    "reshape",
    "squeeze",
    "strided_slice",
    "expand_dims",
    "nn.batch_flatten",
    "nn.depth_to_space",
    "nn.space_to_depth",
    "max",
    "min",
    "broadcast_to",
    "split",
    "take",
    "repeat",
    "tile",
    "reverse",
)
_MAX_POOLS = having(Trait.LARGEST)
#: `nn.avg_pool2d` has a quantized form, and a rule of its own.
_AVERAGES = tuple([name for name in having(Trait.AVERAGE, without=[Trait.QUANTISED]) if name != "nn.avg_pool2d"])
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_MOVES, identity),
    **dict.fromkeys(_MAX_POOLS, pooled),
    **dict.fromkeys(_AVERAGES, average),
    "transpose": transpose,
    "nn.avg_pool2d": avg_pool2d,
    "nn.relu": relu,
    "clip": clip,
    "nn.pad": pad,
    "nn.bias_add": bias_add,
    "nn.conv2d": product("qnn.conv2d", channel),
    "nn.conv2d_transpose": product("qnn.conv2d_transpose", channel),
    "nn.dense": product("qnn.dense", lambda call: -1),
    "nn.batch_matmul": product("qnn.batch_matmul", lambda call: -1),
    **{OPS[name].of: function(name) for name in forms(Trait.QUANTISED, Trait.UNARY)},
    "nn.leaky_relu": function("qnn.leaky_relu", ("alpha",)),
    "concatenate": concatenate,
    "mean": mean,
    "topk": topk,
    "image.resize2d": resize,
    "add": binary("qnn.add"),
    "subtract": binary("qnn.subtract"),
    "multiply": binary("qnn.mul"),
    "maximum": extreme,
    "minimum": extreme,
}
#: Rules that apply only where a caller asks for them by name.
OPTIONAL: Mapping[str, Rule] = {
    "nn.softmax": function("qnn.softmax", ("axis",)),
    "add": finer_sum("add"),
    "subtract": finer_sum("subtract"),
}
#: Operators that take sums of 64 bits.
WIDE = frozenset({"nn.bias_add"})
#: Operators whose operands are wanted at the scale of their result. A range may hold numbers before them or behind.
FLOWS = frozenset(
    {
        *_MOVES,
        *_MAX_POOLS,
        "transpose",
        "nn.relu",
        "clip",
        "nn.pad",
        "topk",
        "concatenate",
        "maximum",
        "minimum",
    }
)
#: Operators whose result's scale follows from the operands', so that they need no quantize behind them.
FOLLOWS = frozenset(
    {
        *_MOVES,
        *_MAX_POOLS,
        *_AVERAGES,
        "transpose",
        "nn.avg_pool2d",
        "nn.relu",
        "clip",
        "nn.pad",
        "nn.bias_add",
        "nn.conv2d",
        "nn.conv2d_transpose",
        "nn.dense",
        "nn.batch_matmul",
        "maximum",
        "minimum",
    }
) - {"take"}

__all__ = ["FLOWS", "FOLLOWS", "OPTIONAL", "RULES", "WIDE", "Affine", "Rule", "Wanted"]
