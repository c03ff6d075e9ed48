"""CMSIS-NN for Arm Cortex-M: its pattern table."""

from __future__ import annotations

from relaylang.ir import Call, Constant, Expr
from relaylang.partition.checks import (
    Verdict,
    call_of,
    dtype,
    every,
    first_number,
    has_call,
    op_name,
    shape,
    wants_attr,
    wants_batch_1,
)
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.recipe import Recipe
from relaylang.patterns import DFPattern, is_constant, is_op, wildcard


def _constants(count: int) -> list[DFPattern]:
    return [is_constant() for _ in range(count)]


def _clipped(pattern: DFPattern) -> DFPattern:
    return pattern.optional(is_op("clip"))


def _requantized(pattern: DFPattern) -> DFPattern:
    biased = is_op("nn.bias_add")(pattern, is_constant())
    return _clipped(is_op("qnn.requantize")(pattern | biased, *_constants(4)))


def _conv(with_pad: bool) -> DFPattern:
    data = is_op("nn.pad")(wildcard(), is_constant()) if with_pad else wildcard()
    return _requantized(is_op("qnn.conv2d")(data, *_constants(5)))


def _all_zero(expr: Expr) -> bool:
    return isinstance(expr, Constant) and not expr.data.any()


def _dtypes(root: Expr, call: Call) -> Verdict:
    """int8 with int32 sums, or int16 with int64 sums."""
    data = dtype(call.args[0])
    wanted = {"int8": ("int8", "int32", "int32", "int8"), "int16": ("int8", "int64", "int64", "int16")}.get(data)
    if wanted is None:
        return f"the input is {data}; it takes int8 and int16"
    biased = has_call(root, "nn.bias_add", op_name(call))
    bias = dtype(call_of(root, "nn.bias_add").args[1]) if biased else wanted[1]
    have = (dtype(call.args[1]), bias, call.attrs.out_dtype, dtype(root))
    names = ("the weight", "the bias", "the sum", "the result")
    for name, one, other in zip(names, have, wanted):
        if one != other:
            return f"{name} is {one}; with an input of {data} it must be {other}"
    return True


def check_qnn_conv2d(root: Expr) -> Verdict:
    """Element types, zero points; a depthwise convolution has a bias."""
    conv = call_of(root, "qnn.conv2d")
    data, weight = conv.args[:2]
    out = conv.attrs.kernel_layout.index("O") if "O" in conv.attrs.kernel_layout else 0
    layout = wants_attr(conv, "data_layout", ["NHWC"])
    if layout is not True:
        return layout
    depthwise = conv.attrs.groups == shape(data)[3] and conv.attrs.groups == shape(weight)[out]
    return every(
        _dtypes(root, conv),
        dtype(data) != "int16" or _all_zero(conv.args[2]) or "the zero point of an int16 input is not 0",
        _all_zero(conv.args[3]) or "the weight's zero point is not 0",
        not depthwise or has_call(root, "nn.bias_add", "qnn.conv2d") or "a depthwise convolution wants a bias",
    )


def check_qnn_conv2d_pad(root: Expr) -> Verdict:
    """As without a pad; and the sum of both paddings is the same on both sides, or one more behind."""
    conv = call_of(root, "qnn.conv2d")
    pad = call_of(root, "nn.pad")
    own = list(conv.attrs.padding)
    own = own * 4 if len(own) == 1 else own * 2 if len(own) == 2 else own
    axes = [i for i, c in enumerate(conv.attrs.data_layout) if c in "HW"]
    for axis, (front, behind) in zip(axes, ((own[0], own[2]), (own[1], own[3]))):
        before, after = pad.attrs.pad_width[axis]
        if (behind + after) - (front + before) not in (0, 1):
            return f"axis {axis} is padded by {front + before} and {behind + after}; they may differ by one, behind"
    return check_qnn_conv2d(root)


def check_qnn_fully_connected(root: Expr) -> Verdict:
    """Element types, zero points."""
    dense = call_of(root, "qnn.dense")
    return every(_dtypes(root, dense), _all_zero(dense.args[3]) or "the weight's zero point is not 0")


def _pool(name: str):  # type: ignore[no-untyped-def]
    def check(root: Expr) -> Verdict:
        pool = call_of(root, name)
        data = pool.args[0]
        if name == "nn.avg_pool2d":
            assert isinstance(data, Call)
            data = data.args[0]
        same = dtype(data) == dtype(root) and dtype(data) in ("int8", "int16")
        return every(
            wants_attr(pool, "layout", ["NHWC"]),
            wants_batch_1(data),
            same or f"{dtype(data)} becomes {dtype(root)}; it takes int8 to int8 and int16 to int16",
        )

    check.__name__ = f"check_{name.removeprefix('nn.')}"
    return check


check_avg_pool2d, check_max_pool2d = _pool("nn.avg_pool2d"), _pool("nn.max_pool2d")


def check_rounded_avg_pool2d(root: Expr) -> Verdict:
    """As an average of whole numbers; they pass through float32 as they are, without a scale and a zero point."""
    scaling = (call_of(root, "qnn.dequantize"), call_of(root, "qnn.quantize"))
    plain = all(first_number(call.args[1]) == 1 and first_number(call.args[2]) == 0 for call in scaling)
    return every(
        check_avg_pool2d(root),
        plain or "a scale is not 1, or a zero point is not 0",
        not call_of(root, "nn.avg_pool2d").attrs.count_include_pad
        or not any(call_of(root, "nn.avg_pool2d").attrs.padding)
        or "count_include_pad is True; it takes False",
    )


def check_qnn_binary_op(root: Expr) -> Verdict:
    """Element types, zero points of int16; not two scalars."""
    assert isinstance(root, Call)
    call = root if op_name(root) != "clip" else root.args[0]
    assert isinstance(call, Call)
    left, right = call.args[:2]
    scalars = all(isinstance(a, Constant) and a.data.ndim == 0 for a in (left, right))
    wide = dtype(left) == "int16"
    return every(
        not scalars or "both operands are scalars",
        dtype(left) in ("int8", "int16") or f"the input is {dtype(left)}; it takes int8 and int16",
        dtype(left) == dtype(right) or f"the operands are {dtype(left)} and {dtype(right)}",
        not wide or all(_all_zero(call.args[i]) for i in (3, 5, 7)) or "a zero point of int16 is not 0",
    )


def check_qnn_softmax(root: Expr) -> Verdict:
    """Results in [0, 1): a scale of 1/256 at -128 for int8, 1/32768 at 0 for int16."""
    assert isinstance(root, Call)
    source = dtype(call_of(root, "qnn.dequantize").args[0])
    have = (first_number(root.args[1]), first_number(root.args[2]), root.attrs.out_dtype, source)
    wanted = [(1 / 256, -128.0, "int8", "int8"), (1 / 32768, 0.0, "int16", "int16")]
    return have in wanted or f"its result has the scale {have[0]:g} and the zero point {have[1]:g}"


def pattern_table() -> list[Entry]:
    """The rows for CMSIS-NN, in TVM's order; and averages as TensorFlow Lite rounds them."""
    dense = is_op("qnn.dense")(wildcard(), *_constants(5))
    average = is_op("cast")(is_op("nn.avg_pool2d")(is_op("cast")(wildcard())))
    numbers = is_op("qnn.dequantize")(wildcard(), *_constants(2))
    rounded = is_op("qnn.quantize")(is_op("nn.avg_pool2d")(numbers), *_constants(2))
    softmax = is_op("nn.softmax")(is_op("qnn.dequantize")(wildcard(), *_constants(2)))

    def binary(name: str) -> DFPattern:
        return _clipped(is_op(name)(wildcard(), wildcard(), *_constants(6)))

    return as_entries(
        [
            ("cmsis-nn.qnn_conv2d", _conv(True), check_qnn_conv2d_pad),
            ("cmsis-nn.qnn_conv2d", _conv(False), check_qnn_conv2d),
            ("cmsis-nn.qnn_fully_connected", _requantized(dense), check_qnn_fully_connected),
            ("cmsis-nn.qnn_avg_pool2d", _clipped(average), check_avg_pool2d),
            ("cmsis-nn.qnn_max_pool2d", _clipped(is_op("nn.max_pool2d")(wildcard())), check_max_pool2d),
            ("cmsis-nn.qnn_mul", binary("qnn.mul"), check_qnn_binary_op),
            ("cmsis-nn.qnn_add", binary("qnn.add"), check_qnn_binary_op),
            ("cmsis-nn.qnn_softmax", is_op("qnn.quantize")(softmax, *_constants(2)), check_qnn_softmax),
            ("cmsis-nn.qnn_avg_pool2d", _clipped(rounded), check_rounded_avg_pool2d),
        ]
    )


RECIPE = Recipe("cmsis-nn", prepare="FoldConstant", merge="none", integers=True)
