"""NVIDIA's CUTLASS: its pattern table. Each match is a region of its own, and constants stay outside of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from relaylang.ir import Call, Expr
from relaylang.partition.checks import Verdict, call_of, dtype, every, op_name, shape, wants_attr
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.recipe import Recipe
from relaylang.patterns import DFPattern, is_constant, is_op, wildcard

_BYTES = ("int8", "uint8")


def _biased(op: str) -> DFPattern:
    return (is_op("add") | is_op("nn.bias_add"))(is_op(op)(wildcard(), wildcard()), wildcard())


def _gelu(inner: DFPattern, half: bool) -> DFPattern:
    """The activation by erf, as importers write it out; in float16 erf is computed in float32."""
    scaled = is_op("multiply")(inner, wildcard())
    erf = is_op("cast")(is_op("erf")(is_op("cast")(scaled))) if half else is_op("erf")(scaled)
    return is_op("multiply")(is_op("add")(is_op("multiply")(erf, wildcard()), wildcard()), inner)


def _hardswish(inner: DFPattern) -> DFPattern:
    gate = is_op("divide")(is_op("clip")(is_op("add")(inner, is_constant())), is_constant())
    return is_op("multiply")(inner, gate)


#: Convolutions with their activations; each may have a residual sum or product after it.
_CONVS: dict[str, Callable[[DFPattern], DFPattern]] = {
    "cutlass.conv2d_bias_hardswish": _hardswish,
    "cutlass.conv2d_bias_silu": lambda inner: is_op("multiply")(inner, is_op("sigmoid")(inner)),
    "cutlass.conv2d_bias_relu": lambda inner: is_op("nn.relu")(inner),
    "cutlass.conv2d_bias_sigmoid": lambda inner: is_op("sigmoid")(inner),
    "cutlass.conv2d_bias": lambda inner: inner,
}


def _types(call: Call) -> Verdict:
    """Both operands in one real type of at most 32 bits, or both in bytes."""
    left, right = (dtype(arg) for arg in call.args[:2])
    fits = left == right in ("float16", "float32") or (left in _BYTES and right in _BYTES)
    return fits or f"the operands are {left} and {right}; it takes two of float16, of float32, or of bytes"


def check_dense(root: Expr) -> Verdict:
    """Element types."""
    return _types(call_of(root, "nn.dense"))


def check_batch_matmul(root: Expr) -> Verdict:
    """Element types, and the second operand transposed."""
    call = call_of(root, "nn.batch_matmul")
    return every(_types(call), wants_attr(call, "transpose_a", [False]), wants_attr(call, "transpose_b", [True]))


def check_conv2d(root: Expr, name: str = "nn.conv2d", kernel_layout: str = "OHWI") -> Verdict:
    """NHWC, element types, and no depthwise convolution."""
    call = call_of(root, name)
    layouts = every(wants_attr(call, "data_layout", ["NHWC"]), wants_attr(call, "kernel_layout", [kernel_layout]))
    data, weight = (shape(arg) for arg in call.args)
    return every(layouts, _types(call), layouts is not True or not data[3] == weight[0] == call.attrs.groups or "it is depthwise")


def check_residual(root: Expr, op: str) -> Verdict:
    """The other operand has the convolution's shape, and does not come from it."""
    left, right = call_of(root, op).args
    first, second = _convolution(left), _convolution(right)
    other = f"the operands have the shapes {shape(left)} and {shape(right)}"
    return every(
        check_conv2d(left if first is not None else right),
        first is not second or "both operands come from the convolution",
        all(a == b for a, b in zip(shape(left), shape(right), strict=False)) or other,
    )


def _convolution(node: Expr) -> Expr | None:
    """The nearest convolution along first operands."""
    while isinstance(node, Call) and op_name(node) != "nn.conv2d" and node.args:
        node = node.args[0]
    return node if op_name(node) == "nn.conv2d" else None


def pattern_table() -> list[Entry]:
    """The rows for CUTLASS, in TVM's order: what takes most comes first."""
    convs = {name: after(_biased("nn.conv2d")) for name, after in _CONVS.items()}
    rows: list[tuple] = []
    for suffix in ("_relu", ""):
        for name, pattern in convs.items():
            for op in ("add", "multiply"):
                other = wildcard()
                residual: DFPattern = is_op(op)(pattern, other) | is_op(op)(other, pattern)
                residual = is_op("nn.relu")(residual) if suffix else residual
                rows.append((f"{name}_residual_{op}{suffix}", residual, partial(check_residual, op=op)))
    plain = {
        op: is_op(op)(wildcard(), wildcard())
        for op in ("nn.dense", "nn.batch_matmul", "nn.conv2d", "nn.conv2d_transpose", "nn.conv2d_backward_weight")
    }
    transposed = partial(check_conv2d, name="nn.conv2d_transpose", kernel_layout="IHWO")
    backward = partial(check_conv2d, name="nn.conv2d_backward_weight", kernel_layout="NHWC")
    rows += [
        ("cutlass.dense_bias_gelu_fp16", _gelu(_biased("nn.dense"), True), check_dense),
        ("cutlass.dense_bias_gelu_fp32", _gelu(_biased("nn.dense"), False), check_dense),
        ("cutlass.dense_bias_relu", is_op("nn.relu")(_biased("nn.dense")), check_dense),
        ("cutlass.dense_bias", _biased("nn.dense"), check_dense),
        ("cutlass.dense", plain["nn.dense"], check_dense),
        ("cutlass.batch_matmul", plain["nn.batch_matmul"], check_batch_matmul),
        *[(name, pattern, check_conv2d) for name, pattern in convs.items()],
        ("cutlass.conv2d", plain["nn.conv2d"], check_conv2d),
        ("cutlass.conv2d_transpose", plain["nn.conv2d_transpose"], transposed),
        ("cutlass.conv2d_backward_weight", plain["nn.conv2d_backward_weight"], backward),
    ]
    return as_entries(rows)


RECIPE = Recipe(
    "cutlass",
    prepare="SimplifyInference,FoldConstant,FoldScaleAxis",
    tuples="never",
    merge="none",
    bind_constants=False,
)
