"""The layers of the Ethos-U: a record each, with its patterns, its reader and its writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import zip_longest
from typing import Any

from relaylang.backends.ethosu.layers import (
    arithmetic,
    bilinear,
    convolutions,
    functions,
    indexing,
    logic,
    matmul,
    movement,
    picks,
    pools,
    reductions,
    softmax,
)
from relaylang.backends.ethosu.layers.operands import BYTES, FEATURES
from relaylang.backends.ethosu.layers.writer import Write
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Function
from relaylang.partition.composites import composite_name, composite_nodes
from relaylang.partition.entries import Entry
from relaylang.patterns import DFPattern, Match, has_dtype, is_constant, is_op, is_tuple, wildcard

_NUMBERS_OF_16_BITS = "computes functions of int16 numbers; tables of the others are linear between 513 of them"


@dataclass(frozen=True)
class Layer:
    """The composites of one name, TVM's where it has one, without the accelerator's.

    `patterns` stand in the order in which they are tried. `read` makes a value of a composite's calls, producers first, or
    raises `Unsupported`. `write` writes this value. `only_u85` says what the Ethos-U85 alone does, for the values of a type.

    A layer that is a `mover` only moves or limits what others computed: no reason for a region of its own. `joins` has for
    each pattern which calls join its composite; see `Entry`.
    """

    name: str
    patterns: Sequence[DFPattern]
    read: Callable[[Sequence[Call]], Any]
    write: Write
    only_u85: tuple[type, str] | None = None
    mover: bool = False
    joins: Sequence[Callable[[Call], bool]] = ()

    def entries(self) -> list[Entry]:
        """The layer's rows of the pattern table."""
        rows = zip_longest(self.patterns, self.joins)
        return [Entry(f"ethos-u.{self.name}", pattern, self._refusal, joins, self.mover) for pattern, joins in rows]

    def _refusal(self, match: Match) -> str | None:
        try:
            self.read([node for node in match.nodes if isinstance(node, Call)])
        except Unsupported as refusal:
            return refusal.reason
        return None


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


def _layers() -> Iterator[Layer]:
    """The layers, those that take most first."""
    dense, transposed, batches = (is_op(name)(*_any(6)) for name in ("qnn.dense", "qnn.conv2d_transpose", "qnn.batch_matmul"))
    depthwise, padded_depthwise, conv, padded_conv = _depthwise(wildcard()), _depthwise(_padded()), _conv(wildcard()), _conv(_padded())
    limit = limits(wildcard())
    widened = is_op("cast")(wildcard())

    def resized(p: DFPattern) -> DFPattern:
        return is_op("image.resize2d")(p) | is_op("nn.upsampling")(p)

    def average(p: DFPattern) -> DFPattern:
        return is_op("nn.avg_pool2d")(p) | is_op("nn.global_avg_pool2d")(p)

    def table(name: str, *patterns: DFPattern, joins: Sequence[Callable[[Call], bool]] = ()) -> Layer:
        return Layer(name, patterns, functions.read_table, functions.table, (functions.Lookup, _NUMBERS_OF_16_BITS), joins=joins)

    averaged = average(widened)
    products = matmul.WideMatMul, "multiplies tensors of int16"
    patterns = [_requantized(padded_depthwise), _requantized(depthwise), _summed(padded_depthwise), _summed(depthwise)]
    yield Layer("depthwise_conv2d", patterns, convolutions.read_conv, convolutions.conv)
    patterns = [_requantized(padded_conv), _requantized(conv), _summed(padded_conv), _summed(conv)]
    yield Layer("qnn_conv2d", patterns, convolutions.read_conv, convolutions.conv)
    yield Layer("fully_connected", [_requantized(dense), _summed(dense)], convolutions.read_dense, convolutions.conv)
    patterns = [_requantized(transposed), _summed(transposed)]
    yield Layer("qnn_conv2d_transpose", patterns, convolutions.read_transposed, convolutions.conv)
    yield Layer("matmul_fixed_point", [_fixed_point(is_op("nn.dense"), 2)], matmul.read_fixed_point, matmul.matmul, products)
    patterns = [_requantize(dense), dense, _requantize(batches), batches]
    yield Layer("matmul", patterns, matmul.read_matmul, matmul.matmul, products)
    patterns = [pattern for product in matmul.PRODUCTS for pattern in _products(product)]
    yield Layer("matmul_widened", patterns, matmul.read_widened, matmul.matmul, products)
    yield Layer("add", [_binary("qnn.add")], arithmetic.read_sum, arithmetic.sum_)
    yield Layer("sub", [_binary("qnn.subtract")], arithmetic.read_sum, arithmetic.sum_)
    one, two = [is_op("qnn.requantize")(*_any(5)) for _ in range(2)]
    finer = [(one, two), (one, is_constant()), (is_constant(), two)]
    patterns = [_requantize(is_op(name)(*sides)) for name in ("add", "subtract") for sides in finer]
    yield Layer("finer_sum", patterns, arithmetic.read_finer_sum, arithmetic.sum_)
    yield Layer("mul", [_binary("qnn.mul")], arithmetic.read_product, arithmetic.product)
    yield Layer("shl", [_clips(is_op("left_shift")(*_any(2)), cast=False)], arithmetic.read_shift, arithmetic.shift)
    yield Layer("shr", [_clips(is_op("right_shift")(*_any(2)), cast=False)], arithmetic.read_shift, arithmetic.shift)
    yield Layer("min", _extreme("minimum"), arithmetic.read_extreme, arithmetic.extreme)
    yield Layer("max", _extreme("maximum"), arithmetic.read_extreme, arithmetic.extreme)
    patterns = [
        is_op("qnn.concatenate")(is_tuple(None), is_tuple(None), is_tuple(None), *_any(2)),
        is_op("concatenate")(is_tuple(None)) | is_op("stack")(is_tuple(None)),
    ]
    yield Layer("concat", patterns, movement.read_concat, movement.concat, mover=True)
    yield Layer("maxpool2d", [is_op("nn.max_pool2d")(wildcard())], pools.read_max_pool, pools.pool)
    patterns = [
        _requantize(averaged),
        _real(average),
        is_op("cast")(averaged.optional(limits)),
        _clips(is_op("qnn.avg_pool2d")(*_any(5)), cast=False),
        average(wildcard()),
    ]
    yield Layer("avgpool2d", patterns, pools.read_avg_pool, pools.average)
    summed = is_op("sum")(widened)
    yield Layer("sum", [_requantize(summed), summed], reductions.read_sum_over, reductions.sum_over)
    mean = is_op("mean")(widened)
    patterns = [_requantize(mean), is_op("cast")(mean.optional(limits))]
    yield Layer("mean", patterns, reductions.read_mean_over, reductions.mean_over)
    patterns = [is_op("max")(wildcard()) | is_op("min")(wildcard())]
    yield Layer("reduce", patterns, reductions.read_extreme_over, reductions.extreme_over)
    patterns = [is_op("argmax")(wildcard()) | is_op("argmin")(wildcard())]
    yield Layer("argmax", patterns, reductions.read_place_over, reductions.place_over)
    yield Layer("requantize", [_requantize(wildcard())], arithmetic.read_requantize, arithmetic.elementwise)
    yield Layer("clamp", [limits(limit), limit], arithmetic.read_clamp, arithmetic.elementwise, mover=True)
    yield Layer("channel-pad", [_padded()], movement.read_channel_pad, movement.pad, mover=True)
    yield Layer("pad2d", [_padded()], movement.read_pad, movement.pad, mover=True)
    patterns = [is_op("reshape")(wildcard()) | is_op("nn.batch_flatten")(wildcard())]
    yield Layer("reshape", patterns, movement.read_reshape, movement.reshape, mover=True)
    yield Layer("expand_dims", [is_op("expand_dims")(wildcard())], movement.read_reshape, movement.reshape, mover=True)
    yield Layer("squeeze", [is_op("squeeze")(wildcard())], movement.read_reshape, movement.reshape, mover=True)
    patterns = [is_op("transpose")(wildcard()) | is_op("layout_transform")(wildcard())]
    yield Layer("transpose", patterns, movement.read_transpose, movement.transpose, mover=True)
    yield Layer("strided_slice", [is_op("strided_slice")(wildcard())], picks.read_pick, picks.pick, mover=True)
    repeats = [is_op(name)(wildcard()) for name in ("reverse", "nn.mirror_pad", "tile", "repeat")]
    patterns = [_padded(), *repeats, is_op("take")(wildcard(), is_constant())]
    yield Layer("pick", patterns, picks.read_pick, picks.pick, mover=True)
    takes = indexing.Gather, "takes entries at computed places"
    yield Layer("gather", [is_op("take")(*_any(2))], indexing.read_gather, indexing.gather, takes)
    replaces = indexing.Scatter, "replaces entries at computed places"
    yield Layer("scatter", [is_op("scatter_nd")(*_any(3))], indexing.read_scatter, indexing.scatter, replaces)
    yield Layer("split", [is_op("split")(wildcard())], picks.read_split, picks.split, mover=True)
    yield Layer("resize2d", [_real(resized), resized(wildcard())], bilinear.read_resize, bilinear.resize)
    yield table("abs", _function("abs", "qnn.abs"))
    real = _real(lambda p: is_op("nn.softmax")(p.optional(lambda q: is_op("multiply")(q, is_constant()))))
    yield Layer("softmax", [real, is_op("qnn.softmax")(*_any(5))], softmax.read_softmax, softmax.softmax)
    yield table("tanh", _function("tanh", "qnn.tanh"))
    yield table("tanh_fixed_point", _fixed_point(is_op("tanh"), 1))
    yield table("sigmoid", _function("sigmoid", "qnn.sigmoid"))
    yield table("leaky_relu", _function("nn.leaky_relu", "qnn.leaky_relu"))
    yield table("hard_swish", _hard_swish())
    # Between bytes, tables take steps of int16 in.
    ends = BYTES, FEATURES
    yield table("table", *map(_tables, ends), joins=[partial(functions.joins_table, results) for results in ends])
    # Operators of several tensors that are functions of one element where all but one are constants, and others.
    compares = logic.Comparison, "compares"
    patterns = [is_op(name)(*_any(2)) for name in logic.COMPARISONS]
    yield Layer("compare", patterns, logic.read_comparison, logic.comparison, compares)
    combines = logic.Plain, "divides, and combines bits and truth values"
    yield Layer("logic", [is_op(name)(None) for name in logic.PLAIN], logic.read_plain, logic.plain, combines)
    makes = logic.TruthCast, "makes truth values of numbers"
    yield Layer("cast", [is_op("cast")(wildcard())], logic.read_cast, logic.cast, makes)
    yield Layer("select", [is_op("where")(*_any(3))], logic.read_choice, logic.choice, (logic.Choice, "chooses between tensors"))
    truths = reductions.TruthOver, "combines truth values"
    patterns = [is_op("all")(wildcard()) | is_op("any")(wildcard())]
    yield Layer("all", patterns, reductions.read_truth_over, reductions.truth_over, truths)


#: The layers by their composites' names, those that take most first.
LAYERS = {f"ethos-u.{layer.name}": layer for layer in _layers()}


def pattern_table() -> list[Entry]:
    """The rows for the Ethos-U, those that take most first."""
    return [entry for layer in LAYERS.values() for entry in layer.entries()]


def read_layer(call: Call) -> tuple[Layer, Sequence[Call], Any]:
    """The layer of a composite's call, the composite's own calls, producers first, and the value that the layer reads."""
    assert isinstance(call.op, Function)
    layer = LAYERS[composite_name(call) or ""]
    calls = [node for node in composite_nodes(call.op) if isinstance(node, Call)]
    return layer, calls, layer.read(calls)


def only_u85(call: Call) -> str | None:
    """What a composite does that the Ethos-U85 alone can; None for others."""
    layer, _, value = read_layer(call)
    return layer.only_u85[1] if layer.only_u85 is not None and type(value) is layer.only_u85[0] else None


__all__ = ["LAYERS", "Layer", "only_u85", "pattern_table", "read_layer"]
