"""The Arm Ethos-N: its pattern table.

TVM asks the driver's library, which must be installed. The checks here cover the fields that TVM hands to it, and TVM's
own refusals. The driver may refuse more.
"""

from __future__ import annotations

from collections.abc import Callable

from relaylang.ir import Call, Constant, Expr, TensorType, Tuple, TupleType
from relaylang.partition.checks import (
    Verdict,
    call_of,
    dtype,
    every,
    first_number,
    op_name,
    shape,
    spatial_pad,
    supports,
    wants_attr,
    wants_batch_1,
    wants_dtype,
)
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.recipe import OpCheck, Recipe
from relaylang.patterns import DFPattern, is_constant, is_op, wildcard

OPERATORS: dict[str, OpCheck] = {}
_BYTES = ("uint8", "int8")


def _constants(count: int) -> list[DFPattern]:
    return [is_constant() for _ in range(count)]


def _requantized(pattern: DFPattern) -> DFPattern:
    return is_op("qnn.requantize")(pattern, *_constants(4))


def qnn_conv_pattern() -> DFPattern:
    """A convolution with an optional pad in front, its bias, and the requantization."""
    data = is_op("nn.pad")(wildcard(), wildcard()) | wildcard()
    conv = is_op("qnn.conv2d")(data, *_constants(5))
    return _requantized(is_op("nn.bias_add")(conv, is_constant()))


def _between_quantizations(name: str) -> DFPattern:
    inner = is_op(name)(is_op("qnn.dequantize")(wildcard(), *_constants(2)))
    return is_op("qnn.quantize")(inner, *_constants(2))


def _either_constant(name: str) -> DFPattern:
    left = is_op(name)(wildcard(), is_constant(), *_constants(6))
    return left | is_op(name)(is_constant(), wildcard(), *_constants(6))


def _transposed() -> DFPattern:
    conv = is_op("qnn.conv2d_transpose")(wildcard(), *_constants(5)).has_attr({"data_layout": "NHWC"})
    return _requantized(conv.optional(lambda p: is_op("nn.bias_add")(p, is_constant())))


def _tensors(data: Expr, root: Expr) -> Verdict:
    """Bytes in and out, at most four axes, a batch of one."""
    return every(
        wants_dtype(data, _BYTES, "the input"),
        wants_dtype(root, _BYTES, "the result"),
        len(shape(data)) <= 4 or f"the input has {len(shape(data))} axes; it takes 4",
        wants_batch_1(data),
    )


def _conv2d(root: Expr) -> Verdict:
    conv = call_of(root, "qnn.conv2d")
    data = conv.args[0]
    pad: Verdict = True
    if isinstance(data, Call) and op_name(data) == "nn.pad":
        own = not any(conv.attrs.padding) or "both the convolution and a pad in front of it widen the input"
        pad = every(spatial_pad(data), own)
        data = data.args[0]
    return every(_tensors(data, root), wants_attr(conv, "data_layout", ["NHWC"]), wants_attr(conv, "dilation", [(1, 1)]), pad)


def _conv2d_transpose(root: Expr) -> Verdict:
    conv = call_of(root, "qnn.conv2d_transpose")
    return every(
        _tensors(conv.args[0], root),
        wants_attr(conv, "data_layout", ["NHWC"]),
        wants_attr(conv, "dilation", [(1, 1)]),
    )


def _first(root: Expr, calls: int) -> Expr:
    """The input of a chain of so many calls."""
    node = root
    for _ in range(calls):
        assert isinstance(node, Call)
        node = node.args[0]
    return node


def _of(calls: int):  # type: ignore[no-untyped-def]
    def check(root: Expr) -> Verdict:
        return _tensors(_first(root, calls), root)

    check.__name__ = "check_tensors"
    return check


def _on_scale(scale: float, signed: int, unsigned: int) -> Callable[[Expr], Verdict]:
    """The one quantization that a table of the accelerator's has."""

    def check(root: Expr) -> Verdict:
        assert isinstance(root, Call)
        have = (first_number(root.args[1]), first_number(root.args[2]))
        wanted = (scale, float(signed if dtype(root).startswith("int") else unsigned))
        same = have == wanted or (
            f"its result has the scale {have[0]:g} and the zero point {have[1]:g}; it takes {wanted[0]:g} and {wanted[1]:g}"
        )
        return every(_tensors(_first(root, 3), root), same)

    return check


def _leaky_relu(root: Expr) -> Verdict:
    alpha = call_of(root, "nn.leaky_relu").attrs.alpha
    return every(_tensors(_first(root, 3), root), 0 < alpha < 1 or f"alpha is {alpha:g}; it takes those between 0 and 1")


def _avg_pool2d(root: Expr) -> Verdict:
    pool = call_of(root, "nn.avg_pool2d")
    return every(_tensors(_first(root, 3), root), wants_attr(pool, "layout", ["NHWC"]))


def _with_constant(root: Expr) -> tuple[Call, Expr, Expr, int]:
    """An addition or product, its other operand, its constant, and the number of the constant's scale."""
    assert isinstance(root, Call)
    left, right = root.args[:2]
    return (root, right, left, 2) if isinstance(left, Constant) else (root, left, right, 4)


def _by_channel(root: Expr) -> Verdict:
    """With one number for each channel: a depthwise convolution says the same."""
    _, data, fixed, _ = _with_constant(root)
    size = fixed.data.size if isinstance(fixed, Constant) else 0
    channels = shape(data)[-1] if shape(data) else 0
    return every(size == channels or "the constant has not one number for each channel", _tensors(data, root))


def _mul_scalar(root: Expr) -> Verdict:
    """A product with a scalar that the result's scale takes up: the bytes stay, they are read otherwise."""
    call, data, fixed, at = _with_constant(root)
    size = fixed.data.size if isinstance(fixed, Constant) else 0
    if size != 1:
        return "the constant is no scalar"
    factor = first_number(call.args[at]) * (first_number(fixed) - first_number(call.args[at + 1]))
    same = abs(first_number(call.args[6 - at]) * factor - first_number(call.args[6])) <= 0.004
    return every(same or "the result's scale does not take up the factor", _tensors(data, root))


def _add_scalar(root: Expr) -> Verdict:
    """A sum with a scalar that the result's zero point takes up."""
    call, data, fixed, at = _with_constant(root)
    size = fixed.data.size if isinstance(fixed, Constant) else 0
    if size != 1:
        return "the constant is no scalar"
    summand = first_number(call.args[at]) * (first_number(fixed) - first_number(call.args[at + 1]))
    point = first_number(call.args[7 - at]) - summand / first_number(call.args[6 - at])
    return every(
        point - first_number(call.args[7]) <= 1 or "the result's zero point does not take up the summand", _tensors(data, root)
    )


def _add(root: Expr) -> Verdict:
    assert isinstance(root, Call)
    left, right = root.args[:2]
    same = shape(left) == shape(right) or f"the shapes are {shape(left)} and {shape(right)}; they must be the same"
    types = dtype(left) == dtype(right) or f"the element types are {dtype(left)} and {dtype(right)}"
    return every(_tensors(left, root), types, same)


def pattern_table() -> list[Entry]:
    """The rows for the Ethos-N, in TVM's order."""
    dense = _requantized(is_op("nn.bias_add")(is_op("qnn.dense")(wildcard(), *_constants(5)), is_constant()))
    mean = _requantized(is_op("mean")(is_op("cast")(wildcard())))
    average = is_op("cast")(is_op("nn.avg_pool2d")(is_op("cast")(wildcard())))
    return as_entries(
        [
            ("ethos-n.qnn_mul_to_reinterpret_quantize", _either_constant("qnn.mul"), _mul_scalar),
            ("ethos-n.qnn_mul_to_depthwise", _either_constant("qnn.mul"), _by_channel),
            ("ethos-n.qnn_add_to_reinterpret_quantize", _either_constant("qnn.add"), _add_scalar),
            ("ethos-n.qnn_add_to_depthwise", _either_constant("qnn.add"), _by_channel),
            ("ethos-n.qnn_add", is_op("qnn.add")(wildcard(), wildcard(), *_constants(6)), _add),
            ("ethos-n.qnn_conv2d", qnn_conv_pattern(), _conv2d),
            ("ethos-n.qnn_conv2d_transpose", _transposed(), _conv2d_transpose),
            ("ethos-n.qnn_avg_pool2d", average, _avg_pool2d),
            ("ethos-n.qnn_sigmoid", _between_quantizations("sigmoid"), _on_scale(1 / 256, -128, 0)),
            ("ethos-n.qnn_fc", dense, lambda root: _tensors(call_of(root, "qnn.dense").args[0], root)),
            ("ethos-n.qnn_mean", mean, _of(3)),
            ("ethos-n.qnn_tanh", _between_quantizations("tanh"), _on_scale(1 / 128, 0, 128)),
            ("ethos-n.qnn_leaky_relu", _between_quantizations("nn.leaky_relu"), _leaky_relu),
            ("ethos-n.qnn_resize", is_op("image.resize2d")(wildcard()).has_attr({"method": "nearest_neighbor"}), _of(1)),
            ("ethos-n.qnn_requantize", is_op("qnn.requantize")(wildcard(), *_constants(4)), _of(1)),
        ]
    )


@supports(OPERATORS, "nn.max_pool2d")
def _max_pool(call: Call) -> Verdict:
    return every(_tensors(call.args[0], call), wants_attr(call, "layout", ["NHWC"]))


@supports(OPERATORS, "reshape", "clip")
def _bytewise(call: Call) -> Verdict:
    return _tensors(call.args[0], call)


@supports(OPERATORS, "nn.depth_to_space")
def _depth_to_space(call: Call) -> Verdict:
    return every(_tensors(call.args[0], call), wants_attr(call, "mode", ["DCR"]), wants_attr(call, "layout", ["NHWC"]))


@supports(OPERATORS, "split")
def _split(call: Call) -> Verdict:
    data = call.args[0]
    return every(wants_dtype(data, _BYTES, "the input"), wants_batch_1(data))


@supports(OPERATORS, "qnn.concatenate")
def _concatenate(call: Call) -> Verdict:
    parts = call.args[0].checked_type
    types = [t.dtype for t in parts.fields if isinstance(t, TensorType)] if isinstance(parts, TupleType) else []
    numbers = [*_fields(call.args[1]), *_fields(call.args[2]), *call.args[3:5]]
    return every(
        all(t in _BYTES for t in types) or f"its inputs are {', '.join(dict.fromkeys(types))}; it takes {', '.join(_BYTES)}",
        all(isinstance(n, Constant) for n in numbers) or "a scale or zero point is not a constant",
        wants_dtype(call, _BYTES, "the result"),
        wants_batch_1(call),
    )


def _fields(expr: Expr) -> tuple[Expr, ...]:
    return expr.fields if isinstance(expr, Tuple) else (expr,)


RECIPE = Recipe("ethos-n", operators=OPERATORS, integers=True)
