"""The Arm Ethos-N: its pattern table. What TVM asks the driver's library is asked of the calls here: element types,
batches of one, NHWC; the driver may refuse more."""

from __future__ import annotations

from relaylang.byoc.checks import (
    Verdict,
    call_of,
    dtype,
    every,
    shape,
    supports,
    wants_attr,
    wants_batch_1,
    wants_dtype,
)
from relaylang.byoc.composite import Entry, as_entries
from relaylang.ir import Call, Constant, Expr
from relaylang.patterns import DFPattern, is_constant, is_op, wildcard

TARGET = "ethos-n"
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


def _fc() -> DFPattern:
    return _requantized(is_op("nn.bias_add")(is_op("qnn.dense")(wildcard(), *_constants(5)), is_constant()))


def _between_quantizations(name: str) -> DFPattern:
    inner = is_op(name)(is_op("qnn.dequantize")(wildcard(), *_constants(2)))
    return is_op("qnn.quantize")(inner, *_constants(2))


def _either_constant(name: str) -> DFPattern:
    left = is_op(name)(wildcard(), is_constant(), *_constants(6))
    return left | is_op(name)(is_constant(), wildcard(), *_constants(6))


def _transposed() -> DFPattern:
    conv = is_op("qnn.conv2d_transpose")(wildcard(), *_constants(5)).has_attr({"data_layout": "NHWC"})
    return _requantized(conv.optional(lambda p: is_op("nn.bias_add")(p, is_constant())))


def _layer(name: str, layout: bool = False):  # type: ignore[no-untyped-def]
    def check(root: Expr) -> Verdict:
        call = call_of(root, name)
        layouts = wants_attr(call, "data_layout", ["NHWC"]) if layout else True
        data = call.args[0]
        return every(
            wants_dtype(data, _BYTES, "the input"), wants_dtype(root, _BYTES, "the result"), wants_batch_1(data), layouts
        )

    check.__name__ = f"check_{name.rpartition('.')[2]}"
    return check


def _simple(root: Expr) -> Verdict:
    node = root
    while isinstance(node, Call):
        node = node.args[0]
    return every(wants_dtype(node, _BYTES, "the input"), wants_dtype(root, _BYTES, "the result"), wants_batch_1(root))


def _pool(root: Expr) -> Verdict:
    call = call_of(root, "nn.avg_pool2d")
    return every(
        wants_dtype(call.args[0].args[0], _BYTES, "the input"),  # type: ignore[attr-defined]
        wants_dtype(root, _BYTES, "the result"),
        wants_attr(call, "layout", ["NHWC"]),
        wants_batch_1(root),
    )


def _by_constant(kind: str):  # type: ignore[no-untyped-def]
    """An addition or product with a constant: a scalar (another scale is read in), or one number for each channel."""

    def check(root: Expr) -> Verdict:
        assert isinstance(root, Call)
        data, fixed = root.args[:2]
        if isinstance(data, Constant):
            data, fixed = fixed, data
        size = fixed.data.size if isinstance(fixed, Constant) else 0
        if kind == "scalar":
            fits: Verdict = size == 1 or "the constant is no scalar"
        else:
            channels = shape(data)[-1] if shape(data) else 0
            fits = (size == channels and size > 1) or "the constant has not one number for each channel"
        return every(fits, wants_dtype(data, _BYTES, "the input"), wants_dtype(root, _BYTES, "the result"))

    check.__name__ = f"check_{kind}_constant"
    return check


def _add(root: Expr) -> Verdict:
    assert isinstance(root, Call)
    left, right = root.args[:2]
    same = shape(left) == shape(right) or f"the shapes are {shape(left)} and {shape(right)}; they must be the same"
    types = dtype(left) == dtype(right) or f"the element types are {dtype(left)} and {dtype(right)}"
    return every(wants_dtype(left, _BYTES, "the input"), types, same, wants_batch_1(left))


def pattern_table() -> list[Entry]:
    """The rows for the Ethos-N, in TVM's order."""
    mean = _requantized(is_op("mean")(is_op("cast")(wildcard())))
    average = is_op("cast")(is_op("nn.avg_pool2d")(is_op("cast")(wildcard())))
    return as_entries([
        ("ethos-n.qnn_mul_to_reinterpret_quantize", _either_constant("qnn.mul"), _by_constant("scalar")),
        ("ethos-n.qnn_mul_to_depthwise", _either_constant("qnn.mul"), _by_constant("channel")),
        ("ethos-n.qnn_add_to_reinterpret_quantize", _either_constant("qnn.add"), _by_constant("scalar")),
        ("ethos-n.qnn_add_to_depthwise", _either_constant("qnn.add"), _by_constant("channel")),
        ("ethos-n.qnn_add", is_op("qnn.add")(wildcard(), wildcard(), *_constants(6)), _add),
        ("ethos-n.qnn_conv2d", qnn_conv_pattern(), _layer("qnn.conv2d", layout=True)),
        ("ethos-n.qnn_conv2d_transpose", _transposed(), _layer("qnn.conv2d_transpose")),
        ("ethos-n.qnn_avg_pool2d", average, _pool),
        ("ethos-n.qnn_sigmoid", _between_quantizations("sigmoid"), _simple),
        ("ethos-n.qnn_fc", _fc(), _layer("qnn.dense")),
        ("ethos-n.qnn_mean", mean, _simple),
        ("ethos-n.qnn_tanh", _between_quantizations("tanh"), _simple),
        ("ethos-n.qnn_leaky_relu", _between_quantizations("nn.leaky_relu"), _simple),
        ("ethos-n.qnn_resize", is_op("image.resize2d")(wildcard()).has_attr({"method": "nearest_neighbor"}), _simple),
        ("ethos-n.qnn_requantize", is_op("qnn.requantize")(wildcard(), *_constants(4)), _simple),
    ])  # fmt: skip


@supports(TARGET, "nn.max_pool2d")
def _max_pool(call: Call) -> Verdict:
    return every(wants_dtype(call.args[0], _BYTES, "the input"), wants_attr(call, "layout", ["NHWC"]), wants_batch_1(call))


@supports(TARGET, "reshape", "clip", "nn.relu", "nn.depth_to_space")
def _bytewise(call: Call) -> Verdict:
    return every(wants_dtype(call.args[0], _BYTES, "the input"), wants_dtype(call, _BYTES, "the result"), wants_batch_1(call))
