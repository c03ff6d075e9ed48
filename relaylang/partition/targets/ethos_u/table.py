"""The Ethos-U's pattern table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Function
from relaylang.partition.composites import composite_name, composite_nodes
from relaylang.partition.entries import Entry
from relaylang.partition.targets.ethos_u import (
    arithmetic,
    bilinear,
    convolutions,
    functions,
    logic,
    matmul,
    movement,
    picks,
    places,
    pools,
    reductions,
    softmax,
)
from relaylang.partition.targets.ethos_u.parts import BYTES, FEATURES
from relaylang.patterns import DFPattern, Match, has_dtype, is_constant, is_op, is_tuple, wildcard

#: The readers of composites' calls, by the composite's name: TVM's where it has one.
READERS: dict[str, Callable[[Sequence[Call]], Any]] = {
    "ethos-u.qnn_conv2d": convolutions.read_conv,
    "ethos-u.depthwise_conv2d": convolutions.read_conv,
    "ethos-u.qnn_conv2d_transpose": convolutions.read_transposed,
    "ethos-u.fully_connected": convolutions.read_dense,
    "ethos-u.matmul": matmul.read_matmul,
    "ethos-u.matmul_widened": matmul.read_widened,
    "ethos-u.matmul_fixed_point": matmul.read_fixed_point,
    "ethos-u.add": arithmetic.read_sum,
    "ethos-u.sub": arithmetic.read_sum,
    "ethos-u.mul": arithmetic.read_product,
    "ethos-u.min": arithmetic.read_extreme,
    "ethos-u.max": arithmetic.read_extreme,
    "ethos-u.shl": arithmetic.read_shift,
    "ethos-u.shr": arithmetic.read_shift,
    "ethos-u.concat": movement.read_concat,
    "ethos-u.maxpool2d": pools.read_max_pool,
    "ethos-u.avgpool2d": pools.read_avg_pool,
    "ethos-u.sum": reductions.read_sum_over,
    "ethos-u.mean": reductions.read_mean_over,
    "ethos-u.reduce": reductions.read_extreme_over,
    "ethos-u.argmax": reductions.read_place_over,
    "ethos-u.requantize": arithmetic.read_requantize,
    "ethos-u.clamp": arithmetic.read_clamp,
    "ethos-u.pad2d": movement.read_pad,
    "ethos-u.channel-pad": movement.read_channel_pad,
    "ethos-u.reshape": movement.read_reshape,
    "ethos-u.expand_dims": movement.read_reshape,
    "ethos-u.squeeze": movement.read_reshape,
    "ethos-u.transpose": movement.read_transpose,
    "ethos-u.strided_slice": picks.read_pick,
    "ethos-u.pick": picks.read_pick,
    "ethos-u.gather": places.read_gather,
    "ethos-u.scatter": places.read_scatter,
    "ethos-u.compare": logic.read_comparison,
    "ethos-u.logic": logic.read_plain,
    "ethos-u.select": logic.read_choice,
    "ethos-u.cast": logic.read_cast,
    "ethos-u.all": reductions.read_truth_over,
    "ethos-u.split": picks.read_split,
    "ethos-u.resize2d": bilinear.read_resize,
    "ethos-u.abs": functions.read_table,
    "ethos-u.softmax": softmax.read_softmax,
    "ethos-u.tanh": functions.read_table,
    "ethos-u.tanh_fixed_point": functions.read_table,
    "ethos-u.sigmoid": functions.read_table,
    "ethos-u.leaky_relu": functions.read_table,
    "ethos-u.hard_swish": functions.read_table,
    "ethos-u.table": functions.read_table,
}
#: What the Ethos-U85 alone does, by the types of layers.
ONLY_U85: dict[type, str] = {
    functions.Lookup: "computes functions of int16 numbers; tables of the others are linear between 513 of them",
    matmul.WideMatMul: "multiplies tensors of int16",
    places.Gather: "takes entries at computed places",
    places.Scatter: "replaces entries at computed places",
    logic.Comparison: "compares",
    logic.Plain: "divides, and combines bits and truth values",
    logic.Choice: "chooses between tensors",
    logic.TruthCast: "makes truth values of numbers",
    reductions.TruthOver: "combines truth values",
}
#: Composites that only move or limit what others computed: no reason for a region of their own.
HELPERS = frozenset(
    f"ethos-u.{name}"
    for name in (
        "reshape",
        "expand_dims",
        "squeeze",
        "pad2d",
        "channel-pad",
        "concat",
        "clamp",
        "transpose",
        "strided_slice",
        "pick",
        "split",
    )
)


def _any(count: int) -> list[DFPattern]:
    return [wildcard() for _ in range(count)]


def limits(pattern: DFPattern) -> DFPattern:
    """clip or relu of the pattern."""
    return is_op("clip")(pattern) | is_op("nn.relu")(pattern)


def _clips(pattern: DFPattern, cast: bool = True) -> DFPattern:
    """Behind the pattern: clip or relu, then a cast, then clip or relu, each of which may be missing."""
    pattern = pattern.optional(limits)
    return pattern.optional(lambda p: is_op("cast")(p)).optional(limits) if cast else pattern


def _requantize(pattern: DFPattern) -> DFPattern:
    return _clips(is_op("qnn.requantize")(pattern, *_any(4)))


def _summed(pattern: DFPattern) -> DFPattern:
    """The pattern with a bias, which may be missing."""
    return pattern.optional(lambda p: is_op("nn.bias_add")(p, wildcard()) | is_op("add")(p, is_constant()))


def _requantized(pattern: DFPattern) -> DFPattern:
    """The pattern with a bias, then requantized, or shifted as TensorFlow Lite does with int64 sums, then limited."""
    summed = _summed(pattern)
    product = is_op("multiply")(summed, is_constant())
    shifted = is_op("right_shift")(is_op("add")(product, is_constant()), is_constant())
    return _requantize(summed.optional(lambda p: is_op("nn.relu")(p))) | _clips(shifted)


def _conv(data: DFPattern) -> DFPattern:
    return is_op("qnn.conv2d")(data, *_any(5))


def _depthwise(data: DFPattern) -> DFPattern:
    return _conv(data).has_attr({"kernel_layout": "HWOI"})


def _padded() -> DFPattern:
    return is_op("nn.pad")(wildcard(), wildcard())


def _binary(name: str) -> DFPattern:
    return _clips(is_op(name)(*_any(8)), cast=False)


def _extreme(name: str) -> list[DFPattern]:
    least = is_op(name)(*_any(2)).optional(limits)
    return [_requantize(least), least]


def _real(call: Callable[[DFPattern], DFPattern]) -> DFPattern:
    """Real numbers in between: quantized numbers as real ones, the call, and quantized again."""
    return is_op("qnn.quantize")(call(is_op("qnn.dequantize")(*_any(3))), *_any(2))


def _function(name: str, quantised: str | None = None) -> DFPattern:
    """A function of one element on real numbers, or its quantized form."""
    real = _real(lambda p: is_op(name)(p))
    return real if quantised is None else real | is_op(quantised)(*_any(5))


def _products(name: str) -> list[DFPattern]:
    """A product of two tensors of whole numbers, cast in front of it."""
    product = is_op(name)(is_op("cast")(wildcard()), is_op("cast")(wildcard()))
    return [_requantized(product), product]


def _fixed_point(call: Callable[..., DFPattern], operands: int) -> DFPattern:
    """A call on numbers in fixed point, of which each has a factor, and limits on its result."""
    factors = [is_op("fixed_point_multiply")(is_op("cast")(wildcard())) for _ in range(operands)]
    return is_op("cast")(is_op("fixed_point_multiply")(call(*factors)).optional(limits))


def _hard_swish() -> DFPattern:
    def gated(p: DFPattern) -> DFPattern:
        return is_op("divide")(is_op("multiply")(p, is_op("clip")(is_op("add")(p, is_constant()))), is_constant())

    return _real(gated) | is_op("qnn.hardswish")(*_any(5))


def _tables(results: Sequence[str]) -> DFPattern:
    """Calls that make numbers of these types by a function of each element."""
    any_of = reduce(lambda a, b: a | b, [is_op(name) for name in sorted(functions.POINTWISE)])
    call = any_of(None)
    return reduce(lambda a, b: a | b, [has_dtype(dtype, call) for dtype in results])


def _check(name: str) -> Callable[[Match], str | None]:
    reader = READERS[name]

    def check(match: Match) -> str | None:
        try:
            reader([node for node in match.nodes if isinstance(node, Call)])
        except Unsupported as refusal:
            return refusal.reason
        return None

    return check


def _rows() -> list[tuple[str, DFPattern]]:
    """Names without the accelerator's, and patterns, those that take most first."""
    dense, transposed, batches = (is_op(name)(*_any(6)) for name in ("qnn.dense", "qnn.conv2d_transpose", "qnn.batch_matmul"))
    limit = limits(wildcard())
    widened = is_op("cast")(wildcard())

    def resized(p: DFPattern) -> DFPattern:
        return is_op("image.resize2d")(p) | is_op("nn.upsampling")(p)

    def average(p: DFPattern) -> DFPattern:
        return is_op("nn.avg_pool2d")(p) | is_op("nn.global_avg_pool2d")(p)

    averaged = average(widened)
    return [
        ("depthwise_conv2d", _requantized(_depthwise(_padded()))),
        ("depthwise_conv2d", _requantized(_depthwise(wildcard()))),
        ("qnn_conv2d", _requantized(_conv(_padded()))),
        ("qnn_conv2d", _requantized(_conv(wildcard()))),
        ("fully_connected", _requantized(dense)),
        ("qnn_conv2d_transpose", _requantized(transposed)),
        ("depthwise_conv2d", _summed(_depthwise(_padded()))),
        ("depthwise_conv2d", _summed(_depthwise(wildcard()))),
        ("qnn_conv2d", _summed(_conv(_padded()))),
        ("qnn_conv2d", _summed(_conv(wildcard()))),
        ("fully_connected", _summed(dense)),
        ("qnn_conv2d_transpose", _summed(transposed)),
        ("matmul_fixed_point", _fixed_point(is_op("nn.dense"), 2)),
        *[("matmul", pattern) for product in (dense, batches) for pattern in (_requantize(product), product)],
        *[("matmul_widened", pattern) for product in matmul.PRODUCTS for pattern in _products(product)],
        ("add", _binary("qnn.add")),
        ("sub", _binary("qnn.subtract")),
        ("mul", _binary("qnn.mul")),
        ("shl", _clips(is_op("left_shift")(*_any(2)), cast=False)),
        ("shr", _clips(is_op("right_shift")(*_any(2)), cast=False)),
        *[("min", pattern) for pattern in _extreme("minimum")],
        *[("max", pattern) for pattern in _extreme("maximum")],
        ("concat", is_op("qnn.concatenate")(is_tuple(None), is_tuple(None), is_tuple(None), *_any(2))),
        ("concat", is_op("concatenate")(is_tuple(None)) | is_op("stack")(is_tuple(None))),
        ("maxpool2d", is_op("nn.max_pool2d")(wildcard())),
        ("avgpool2d", _requantize(averaged)),
        ("avgpool2d", _real(average)),
        ("avgpool2d", is_op("cast")(averaged.optional(limits))),
        ("avgpool2d", _clips(is_op("qnn.avg_pool2d")(*_any(5)), cast=False)),
        ("avgpool2d", average(wildcard())),
        ("sum", _requantize(is_op("sum")(widened))),
        ("sum", is_op("sum")(widened)),
        ("mean", _requantize(is_op("mean")(widened))),
        ("mean", is_op("cast")(is_op("mean")(widened).optional(limits))),
        ("reduce", is_op("max")(wildcard()) | is_op("min")(wildcard())),
        ("argmax", is_op("argmax")(wildcard()) | is_op("argmin")(wildcard())),
        ("requantize", _requantize(wildcard())),
        ("clamp", limits(limit)),
        ("clamp", limit),
        ("channel-pad", _padded()),
        ("pad2d", _padded()),
        ("reshape", is_op("reshape")(wildcard()) | is_op("nn.batch_flatten")(wildcard())),
        ("expand_dims", is_op("expand_dims")(wildcard())),
        ("squeeze", is_op("squeeze")(wildcard())),
        ("transpose", is_op("transpose")(wildcard()) | is_op("layout_transform")(wildcard())),
        ("strided_slice", is_op("strided_slice")(wildcard())),
        ("pick", _padded()),
        *[("pick", is_op(name)(wildcard())) for name in ("reverse", "nn.mirror_pad", "tile", "repeat")],
        ("pick", is_op("take")(wildcard(), is_constant())),
        ("gather", is_op("take")(*_any(2))),
        ("scatter", is_op("scatter_nd")(*_any(3))),
        ("split", is_op("split")(wildcard())),
        ("resize2d", _real(resized)),
        ("resize2d", resized(wildcard())),
        ("abs", _function("abs", "qnn.abs")),
        ("softmax", _real(lambda p: is_op("nn.softmax")(p.optional(lambda q: is_op("multiply")(q, is_constant()))))),
        ("softmax", is_op("qnn.softmax")(*_any(5))),
        ("tanh", _function("tanh", "qnn.tanh")),
        ("tanh_fixed_point", _fixed_point(is_op("tanh"), 1)),
        ("sigmoid", _function("sigmoid", "qnn.sigmoid")),
        ("leaky_relu", _function("nn.leaky_relu", "qnn.leaky_relu")),
        ("hard_swish", _hard_swish()),
    ]


def _rows_behind_tables() -> list[tuple[str, DFPattern]]:
    """Operators of several tensors that are functions of one element where all but one are constants, and others."""
    return [
        *[("compare", is_op(name)(*_any(2))) for name in logic.COMPARISONS],
        *[("logic", is_op(name)(None)) for name in logic.PLAIN],
        ("cast", is_op("cast")(wildcard())),
        ("select", is_op("where")(*_any(3))),
        ("all", is_op("all")(wildcard()) | is_op("any")(wildcard())),
    ]


def pattern_table() -> list[Entry]:
    """The rows for the Ethos-U, those that take most first."""

    def entries(rows: Sequence[tuple[str, DFPattern]]) -> list[Entry]:
        return [Entry(f"ethos-u.{name}", pattern, _check(f"ethos-u.{name}")) for name, pattern in rows]

    # Between bytes, tables take steps of int16 in.
    tables = [
        Entry("ethos-u.table", _tables(ends), _check("ethos-u.table"), partial(functions.joins_table, ends))
        for ends in (BYTES, FEATURES)
    ]
    return [*entries(_rows()), *tables, *entries(_rows_behind_tables())]


def only_u85(call: Call) -> str | None:
    """What a composite does that the Ethos-U85 alone can; None for others."""
    assert isinstance(call.op, Function)
    calls = [node for node in composite_nodes(call.op) if isinstance(node, Call)]
    return ONLY_U85.get(type(READERS[composite_name(call) or ""](calls)))


__all__ = ["HELPERS", "READERS", "only_u85", "pattern_table"]
