"""oneDNN: its pattern table, and the operators that it takes as they are."""

from __future__ import annotations

from relaylang.ir import Call, Expr, const
from relaylang.partition.checks import Verdict, dtype, every, op_name, shape, supports
from relaylang.partition.entries import Entry, as_entries
from relaylang.partition.recipe import OpCheck, Recipe
from relaylang.patterns import DFPattern, is_constant, is_expr, is_op, wildcard

OPERATORS: dict[str, OpCheck] = {}
CONVS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv2d_transpose", "nn.conv3d_transpose")
ACTIVATIONS = ("nn.relu", "tanh", "sigmoid", "clip", "gelu", "swish", "mish", None)


def _activated(pattern: DFPattern, name: str | None) -> DFPattern:
    if name is None:
        return pattern
    if name == "gelu":
        erf = is_op("erf")(is_op("divide")(pattern, wildcard()))
        return is_op("multiply")(is_op("multiply")(pattern, is_op("add")(erf, wildcard())), wildcard())
    if name == "swish":
        return is_op("multiply")(pattern, is_op("sigmoid")(pattern))
    if name == "mish":
        return is_op("multiply")(pattern, is_op("tanh")(_softplus(pattern)))
    return is_op(name)(pattern)


def _softplus(x: DFPattern) -> DFPattern:
    """The logarithm of a sum, and the form of relaylang's importers, which keeps small results exact."""
    power = is_op("exp")(is_op("negative")(is_op("abs")(x)))
    small = is_op("atanh")(is_op("divide")(power, is_op("add")(power, wildcard())))
    exact = is_op("add")(is_op("nn.relu")(x), is_op("multiply")(small, wildcard()))
    return is_op("log")(is_op("add")(is_op("exp")(x), wildcard())) | exact


def _row(op: str, with_bias: bool, activation: str | None) -> tuple:
    pattern: DFPattern = is_op(op)(wildcard(), wildcard())
    if with_bias:
        pattern = is_op("add")(pattern, wildcard())
    name = "dnnl." + op.removeprefix("nn.") + ("_bias" if with_bias else "")
    name += "_" + activation.split(".")[-1] if activation else ""
    name = name.replace("conv2d_transpose", "deconv2d").replace("conv3d_transpose", "deconv3d")
    return name, _activated(pattern, activation), check_bias if with_bias else lambda root: _no_int64(_product(root))


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


def _no_int64(call: Call) -> Verdict:
    return all(dtype(a) != "int64" for a in call.args) or "an operand is int64"


def check_bias(root: Expr) -> Verdict:
    """Element types; and the summand is a bias of channels."""
    product = _product(root)
    bias = _summand(root, product)
    if bias is None:
        return "no summand beside it"
    out = shape(product)
    axis = 0
    if op_name(product) != "nn.dense":
        attrs = product.attrs
        layout = attrs.out_layout or attrs.data_layout
        axis = len(out) - 1 - layout.index("C") if "C" in layout and len(layout) == len(out) else len(out) - 2
    have, channels = shape(bias), out[len(out) - 1 - axis]
    # From the back: every extent is 1 but that of the channels.
    wide = [extent for i, extent in enumerate(reversed(have)) if i != axis]
    fits = len(have) > axis and have[len(have) - 1 - axis] == channels and all(extent == 1 for extent in wide)
    return every(_no_int64(product), fits or f"the summand of shape {have} is no bias of {channels} channels")


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
    OPERATORS,
    "nn.batch_norm",
    *CONVS,
    "nn.dense",
    "nn.max_pool2d",
    "nn.avg_pool2d",
    "nn.global_avg_pool2d",
    "nn.max_pool3d",
    "nn.avg_pool3d",
    "abs",
    "clip",
    "exp",
    "log",
    "sqrt",
    "round",
    "nn.relu",
    "nn.leaky_relu",
    "tanh",
    "sigmoid",
    "nn.softmax",
    "add",
    "multiply",
    "nn.layer_norm",
    "nn.batch_matmul",
)
def _supported(call: Call) -> Verdict:
    ceil = getattr(call.attrs, "ceil_mode", False)
    return every(_no_int64(call), not ceil or "ceil_mode is True; it takes False")


#: What makes a region worth its way to oneDNN.
COMPUTE = frozenset({*CONVS, "nn.dense", "nn.layer_norm", "nn.batch_matmul", "nn.global_avg_pool2d"})


#: CanonicalizeOps: the rows have the bias as add.
RECIPE = Recipe(
    "dnnl",
    prepare="CanonicalizeOps,SimplifyInference,FoldConstant,FoldScaleAxis,SimplifyExpr,FoldConstant",
    operators=OPERATORS,
    worth=COMPUTE,
)
