"""The Arm Compute Library: its pattern table, and the operators that it takes as they are."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.ir import Call, Constant, Expr, const
from relaylang.partition.checks import (
    Verdict,
    call_of,
    dtype,
    every,
    one_scale,
    op_name,
    shape,
    spatial_pad,
    supports,
    wants_attr,
    wants_batch_1,
    wants_dtype,
    wants_rank,
    zero,
)
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.recipe import OpCheck, Recipe
from relaylang.patterns import DFPattern, is_constant, is_expr, is_op, is_tuple, wildcard

OPERATORS: dict[str, OpCheck] = {}
_FLOAT, _BYTES = ("float32",), ("uint8", "int8")


def _padded() -> DFPattern:
    return is_op("nn.pad")(wildcard(), wildcard()) | wildcard()


def _biased(pattern: DFPattern) -> DFPattern:
    return pattern.optional(lambda p: is_op("nn.bias_add")(p, is_constant()))


def _constants(count: int) -> list[DFPattern]:
    return [is_constant() for _ in range(count)]


def _requantized(pattern: DFPattern) -> DFPattern:
    return is_op("qnn.requantize")(pattern, wildcard(), wildcard(), is_constant(), is_constant())


def _grouped(call: Call) -> Verdict:
    """Depthwise convolutions (a kernel of HWOI, each channel a group) by 3x3 and 5x5 with strides of 1 or 2.

    Other convolutions with groups are refused.
    """
    data, kernel = shape(call.args[0]), shape(call.args[1])
    groups = call.attrs.groups
    if call.attrs.kernel_layout != "HWOI" or not data[-1] == kernel[2] == groups:
        return groups == 1 or f"it has {groups} groups, and is not depthwise with a kernel of HWOI"
    return every(
        tuple(kernel[:2]) in ((3, 3), (5, 5)) or f"a depthwise kernel is {kernel[0]}x{kernel[1]}; it takes 3x3 and 5x5",
        wants_attr(call, "strides", [(1, 1), (2, 2)]),
    )


def _images(call: Call) -> Verdict:
    return every(
        wants_attr(call, "data_layout", ["NHWC"]),
        wants_rank(call.args[0], [4], "the input"),
        wants_batch_1(call.args[0]),
        wants_rank(call.args[1], [4], "the weight"),
    )


@supports(OPERATORS, "nn.conv2d")
def conv2d(call: Call) -> Verdict:
    """NHWC, a batch of one, float32."""
    return every(
        _images(call),
        wants_attr(call, "out_dtype", ["", None, "void", "float32"]),
        wants_dtype(call.args[0], _FLOAT, "the input"),
        wants_dtype(call.args[1], _FLOAT, "the weight"),
        _grouped(call),
    )


def qnn_conv2d(call: Call) -> Verdict:
    """NHWC, a batch of one, bytes with sums in int32, one scale for all channels."""
    return every(
        _images(call),
        wants_attr(call, "out_dtype", ["int32", ""]),
        wants_dtype(call.args[0], _BYTES, "the input"),
        wants_dtype(call.args[1], _BYTES, "the weight"),
        one_scale(call, (2, 4), (3, 5)),
        _grouped(call),
    )


@supports(OPERATORS, "nn.dense")
def dense(call: Call) -> Verdict:
    """float32."""
    return every(
        wants_dtype(call.args[0], _FLOAT, "the input"),
        wants_rank(call.args[1], [2], "the weight"),
        wants_dtype(call.args[1], _FLOAT, "the weight"),
        wants_attr(call, "out_dtype", ["", None, "void", "float32"]),
    )


def qnn_dense(call: Call) -> Verdict:
    """Bytes with sums in int32, one scale for all channels."""
    return every(
        wants_dtype(call.args[0], _BYTES, "the input"),
        wants_rank(call.args[1], [2], "the weight"),
        wants_dtype(call.args[1], _BYTES, "the weight"),
        wants_attr(call, "out_dtype", ["int32"]),
        one_scale(call, (2, 4), (3, 5)),
    )


def _pool(call: Call, types: tuple[str, ...]) -> Verdict:
    dilation = wants_attr(call, "dilation", [(1, 1)]) if hasattr(call.attrs, "dilation") else True
    return every(wants_attr(call, "layout", ["NHWC"]), wants_dtype(call.args[0], types, "the input"), dilation)


@supports(OPERATORS, "nn.max_pool2d", "nn.global_max_pool2d")
def max_pool2d(call: Call) -> Verdict:
    """NHWC, float32 or bytes."""
    return _pool(call, (*_FLOAT, *_BYTES))


@supports(OPERATORS, "nn.avg_pool2d", "nn.global_avg_pool2d")
def avg_pool2d(call: Call) -> Verdict:
    """NHWC, float32."""
    return _pool(call, _FLOAT)


@supports(OPERATORS, "maximum", "add")
def elementwise(call: Call) -> Verdict:
    """float32."""
    return every(wants_dtype(call.args[0], _FLOAT, "the input"), wants_dtype(call.args[1], _FLOAT, "the other input"))


@supports(OPERATORS, "qnn.add")
def qnn_add(call: Call) -> Verdict:
    """Two tensors of bytes, one scale for all channels."""
    return every(*[wants_dtype(a, _BYTES, "the input") for a in call.args[:2]], one_scale(call, (3, 2), (5, 4), (7, 6)))


@supports(OPERATORS, "reshape")
def reshape(call: Call) -> Verdict:
    """Any."""
    return True


def _check(test, name: str, quantized: bool):  # type: ignore[no-untyped-def]
    def check(root: Expr) -> Verdict:
        out = wants_dtype(root, _BYTES, "the result") if quantized else True
        return every(out, test(call_of(root, name)), _pad(root, name))

    check.__name__ = f"check_{name.rpartition('.')[2]}"
    return check


def _pad(root: Expr, name: str) -> Verdict:
    """A pad in front of a convolution widens the rows and columns, with the zero point as its value."""
    call = call_of(root, name)
    data = call.args[0]
    if not (isinstance(data, Call) and op_name(data) == "nn.pad"):
        return True
    if name != "qnn.conv2d":
        return every(spatial_pad(data), zero(data.args[1], "the pad's value"))
    fill, point = data.args[1], call.args[2]
    filled = isinstance(fill, Constant) and isinstance(point, Constant) and bool((fill.data == point.data).all())
    return every(spatial_pad(data), filled or "the pad does not fill with zero")


def check_avg_pool2d(root: Expr) -> Verdict:
    """An average of bytes in int32."""
    assert isinstance(root, Call)
    pool = root.args[0]
    assert isinstance(pool, Call) and isinstance(pool.args[0], Call)
    return every(
        wants_dtype(root, _BYTES, "the result"),
        wants_dtype(pool.args[0].args[0], _BYTES, "the input"),
        dtype(pool.args[0]) == "int32" or "the sum is not int32",
        _pool(pool, ("int32",)),
    )


def check_concatenate(root: Expr) -> Verdict:
    """At most four axes, float32 or bytes."""
    rank = len(shape(root))
    return every(rank <= 4 or f"it has {rank} axes", wants_dtype(root, (*_FLOAT, *_BYTES), "the result"))


def pattern_table(disabled_ops: Sequence[str] = ("concatenate",)) -> list[Entry]:
    """The rows for the Arm Compute Library, in TVM's order. Concatenation is off unless asked for."""
    conv = _biased(is_op("nn.conv2d")(_padded(), is_constant())).optional(is_op("nn.relu"))
    qnn = _biased(is_op("qnn.conv2d")(_padded(), *_constants(5))).optional(is_op("nn.relu"))
    product = _biased(is_op("nn.dense")(wildcard(), is_constant()))
    qnn_product = _biased(is_op("qnn.dense")(wildcard(), *_constants(5)))
    wide = is_op("cast")(wildcard())
    average = is_op("cast")(is_op("nn.avg_pool2d")(wide) | is_op("nn.global_avg_pool2d")(wide))
    squares = is_op("power")(wildcard(), is_expr(const(2.0)))
    joined = is_op("concatenate")(is_tuple(None))
    return as_entries(
        [
            ("arm_compute_lib.conv2d", conv, _check(conv2d, "nn.conv2d", False)),
            ("arm_compute_lib.qnn_conv2d", _requantized(qnn), _check(qnn_conv2d, "qnn.conv2d", True)),
            ("arm_compute_lib.dense", product, _check(dense, "nn.dense", False)),
            ("arm_compute_lib.qnn_dense", _requantized(qnn_product), _check(qnn_dense, "qnn.dense", True)),
            ("arm_compute_lib.avg_pool2d", average, check_avg_pool2d),
            (
                "arm_compute_lib.l2_pool2d",
                is_op("sqrt")(is_op("nn.avg_pool2d")(squares)),
                lambda root: avg_pool2d(call_of(root, "nn.avg_pool2d")),
            ),
            (
                "arm_compute_lib.concatenate",
                joined,
                (lambda root: "it is in disabled_ops, where it is by default") if "concatenate" in disabled_ops else check_concatenate,
            ),
        ]
    )


RECIPE = Recipe("arm_compute_lib", operators=OPERATORS, tuples="never", merge="none")
