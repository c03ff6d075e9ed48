"""oneDNN: its pattern table, and the operators that it takes as they are."""

from __future__ import annotations

from relaylang.byoc.checks import Verdict, dtype, op_name, shape, supports
from relaylang.byoc.composite import Entry, as_entries
from relaylang.ir import Call, Expr, const
from relaylang.patterns import DFPattern, is_constant, is_expr, is_op, wildcard

TARGET = "dnnl"
CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv2d_transpose", "nn.conv3d_transpose")
ACTIVATIONS = ("nn.relu", "tanh", "sigmoid", "clip", "gelu", "swish", "mish", None)
_TYPES = ("float32", "bfloat16")


def _activated(pattern: DFPattern, name: str | None) -> DFPattern:
    if name is None:
        return pattern
    if name == "gelu":
        erf = is_op("erf")(is_op("divide")(pattern, wildcard()))
        return is_op("multiply")(is_op("multiply")(pattern, is_op("add")(erf, wildcard())), wildcard())
    if name == "swish":
        return is_op("multiply")(pattern, is_op("sigmoid")(pattern))
    if name == "mish":
        softplus = is_op("log")(is_op("add")(is_op("exp")(pattern), wildcard()))
        return is_op("multiply")(pattern, is_op("tanh")(softplus))
    return is_op(name)(pattern)


def _row(op: str, with_bias: bool, activation: str | None) -> tuple:
    pattern: DFPattern = is_op(op)(wildcard(), wildcard())
    if with_bias:
        pattern = is_op("add")(pattern, wildcard())
    name = "dnnl." + op.removeprefix("nn.") + ("_bias" if with_bias else "")
    name += "_" + activation.split(".")[-1] if activation else ""
    name = name.replace("conv2d_transpose", "deconv2d").replace("conv3d_transpose", "deconv3d")
    return name, _activated(pattern, activation), check_bias if with_bias else check_dtype


def _product(root: Expr) -> Call:
    """The convolution or matrix product that a match is about: the one deepest along its operands."""
    stack: list[Expr] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen or not isinstance(node, Call):
            continue
        seen.add(id(node))
        if op_name(node) in (*CONVS, "nn.dense"):
            return node
        stack.extend(reversed(node.args))
    raise AssertionError("a row without a convolution or matrix product")


def check_dtype(root: Expr) -> Verdict:
    """float32 or bfloat16."""
    have = dtype(_product(root).args[0])
    return have in _TYPES or f"the input is {have}; it takes {' and '.join(_TYPES)}"


def check_bias(root: Expr) -> Verdict:
    """Element types; and the summand is a bias of channels."""
    product = _product(root)
    bias = _summand(root, product)
    if bias is None:
        return "no summand beside it"
    have, channels = shape(bias), shape(product)[1] if op_name(product) != "nn.dense" else shape(product)[-1]
    size = 1
    for extent in have:
        size *= extent if isinstance(extent, int) else 0
    fits = size == channels and channels in have
    if op_name(product) != "nn.dense":
        fits = fits and len(have) >= 3 and have[-1] == 1
    return check_dtype(root) if fits else f"the summand of shape {have} is no bias of {channels} channels"


def _summand(root: Expr, product: Call) -> Expr | None:
    stack: list[Expr] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen or not isinstance(node, Call):
            continue
        seen.add(id(node))
        if op_name(node) == "add" and product in node.args:
            return node.args[1] if node.args[0] is product else node.args[0]
        stack.extend(node.args)
    return None


def check_sum(root: Expr) -> Verdict:
    """The second summand has the convolution's shape, and something computes it."""
    node = root.args[0] if op_name(root) == "nn.relu" and isinstance(root, Call) else root
    assert isinstance(node, Call)
    left, right = node.args
    if shape(left) != shape(right):
        return f"the summands have the shapes {shape(left)} and {shape(right)}"
    inner = left if op_name(left) == "add" and _summand(left, _product(left)) is not None else right
    return check_bias(inner)


def _quantized(op: str) -> DFPattern:
    """A quantized product with oneDNN's own chain of scales behind it."""
    zero = is_expr(const(0, "int32"))
    pattern: DFPattern = is_op(op)(wildcard(), is_constant(), zero, zero, is_constant(), is_constant())
    pattern = is_op("cast")(pattern)
    pattern = is_op("add")(pattern, is_constant()) | pattern
    pattern = is_op("clip")(is_op("multiply")(pattern, is_constant()))
    pattern = is_op("multiply")(pattern, is_constant()) | pattern
    pattern = is_op("add")(pattern, is_op("multiply")(is_constant(), is_op("cast")(wildcard()))) | pattern
    pattern = is_op("add")(pattern, is_constant()) | pattern
    return is_op("cast")(pattern)


def pattern_table() -> list[Entry]:
    """The rows for oneDNN, in TVM's order."""
    def summed(op: str) -> DFPattern:
        return is_op("add")(is_op("add")(is_op(op)(wildcard(), wildcard()), wildcard()), wildcard())

    rows: list[tuple] = [
        ("dnnl.qnn.conv2d", _quantized("qnn.conv2d")),
        ("dnnl.qnn.dense", _quantized("qnn.dense")),
        ("dnnl.dense_bias_sum", summed("nn.dense"), check_sum),
        ("dnnl.conv2d_bias_sum_relu", is_op("nn.relu")(summed("nn.conv2d")), check_sum),
        ("dnnl.conv2d_bias_sum", summed("nn.conv2d"), check_sum),
    ]
    for with_bias in (True, False):
        for activation in ACTIVATIONS:
            if with_bias or activation:
                rows += [_row(op, with_bias, activation) for op in (*CONVS, "nn.dense")]
    return as_entries(rows)


@supports(
    TARGET, "nn.batch_norm", *CONVS, "nn.dense", "nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d",
    "nn.max_pool3d", "nn.avg_pool3d", "abs", "clip", "exp", "log", "sqrt", "round", "nn.relu", "nn.leaky_relu", "tanh",
    "sigmoid", "nn.softmax", "add", "multiply", "nn.layer_norm", "nn.batch_matmul",
)  # fmt: skip
def _floats(call: Call) -> Verdict:
    have = dtype(call.args[0])
    return have in _TYPES or f"the input is {have}; it takes {' and '.join(_TYPES)}"
