"""Functions of elements, of one tensor and of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, nn, special
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.ir import Expr

# ---- one operand


def real(b: Builder, x: Expr) -> Expr:
    """Whole numbers as float32, which PaddlePaddle computes functions with."""
    return x if "float" in b.dtype(x) else b.cast(x, "float32")


def _unary(op: str, reals: bool = True) -> Callable[..., Any]:
    def convert(n: Node, x: Expr) -> Any:
        return n.b.op(op, real(n.b, x) if reals else x)

    return convert


def _composed(function: Callable[..., Expr]) -> Callable[..., Any]:
    """A function of the common ones that takes one tensor."""

    def convert(n: Node, x: Expr) -> Any:
        return function(n.b, real(n.b, x))

    return convert


def same(n: Node, x: Expr) -> Any:
    """The operand itself."""
    return n.list(x) if isinstance(x, list) else x


def square(n: Node, x: Expr) -> Any:
    return n.b.op("multiply", x, x)


def reciprocal(n: Node, x: Expr) -> Any:
    return n.b.op("divide", n.b.const(1, n.b.dtype(x)), x)


def round_(n: Node, x: Expr) -> Any:
    """Halves go away from zero. `decimals` digits stay behind the point."""
    b, factor = n.b, 10.0 ** n.int("decimals", 0)
    if factor == 1.0:
        return b.op("round", x)
    return b.op("divide", b.op("round", b.op("multiply", x, factor)), factor)


def trunc(n: Node, x: Expr) -> Any:
    return n.b.op("trunc", x) if "float" in n.b.dtype(x) else x


def logit(n: Node, x: Expr) -> Any:
    """`log(x / (1 - x))`; numbers nearer to 0 and 1 than `eps` are held, or give nan where it is 0."""
    b, eps = n.b, n.float("eps", 1e-6)
    held = b.op("clip", x, a_min=eps, a_max=1 - eps) if eps else x
    logarithm = b.op("log", b.op("divide", held, b.op("subtract", b.const(1.0, b.dtype(x)), held)))
    if eps:
        return logarithm
    inside = b.op("logical_and", b.op("greater_equal", x, 0.0), b.op("less_equal", x, 1.0))
    return b.op("where", inside, logarithm, b.const(np.nan, b.dtype(x)))


def leaky_relu(n: Node, x: Expr) -> Any:
    return n.b.op("nn.leaky_relu", x, alpha=n.float("negative_slope", 0.02))


def elu(n: Node, x: Expr) -> Any:
    return nn.elu(n.b, x, n.float("alpha", 1.0))


def celu(n: Node, x: Expr) -> Any:
    alpha = n.float("alpha", 1.0)
    if not alpha:
        raise Malformed("its attribute alpha is 0")
    return nn.elu(n.b, x, alpha, inner=1 / alpha)


def selu(n: Node, x: Expr) -> Any:
    return nn.selu(n.b, x, n.float("alpha", 1.6732632423543772), n.float("scale", 1.0507009873554805))


def gelu(n: Node, x: Expr) -> Any:
    return nn.gelu(n.b, x, n.bool("approximate", False))


def swish(n: Node, x: Expr) -> Any:
    return nn.swish(n.b, x, n.float("beta", 1.0))


def silu(n: Node, x: Expr) -> Any:
    return nn.swish(n.b, x)


def hardswish(n: Node, x: Expr) -> Any:
    """`x * clip(x + offset, 0, threshold) / scale`."""
    b = n.b
    held = b.op("clip", b.op("add", x, n.float("offset", 3.0)), a_min=0.0, a_max=n.float("threshold", 6.0))
    return b.op("divide", b.op("multiply", x, held), n.float("scale", 6.0))


def hardtanh(n: Node, x: Expr) -> Any:
    return n.b.op("clip", x, a_min=n.float("t_min", 0.0), a_max=n.float("t_max", 24.0))


def softshrink(n: Node, x: Expr) -> Any:
    b, bound = n.b, n.float("threshold", 0.5)
    return b.op("subtract", x, b.op("clip", x, a_min=-bound, a_max=bound))


def thresholded_relu(n: Node, x: Expr) -> Any:
    b = n.b
    return b.op("where", b.op("greater", x, n.float("threshold", 1.0)), x, b.const(n.float("value", 0.0), b.dtype(x)))


def softplus(n: Node, x: Expr) -> Any:
    """`log(1 + exp(beta * x)) / beta`; `x` itself where `beta * x` is above the threshold."""
    b, beta = n.b, n.float("beta", 1.0)
    if not beta:
        raise Malformed("its attribute beta is 0")
    scaled = b.op("multiply", x, beta)
    soft = b.op("divide", nn.softplus(b, scaled), beta)
    return b.op("where", b.op("greater", scaled, n.float("threshold", 20.0)), x, soft)


def prelu(n: Node, x: Expr, alpha: Expr) -> Any:
    """The slope is one number, one for each channel, or one for each element."""
    b, mode, rank = n.b, n.text("mode", "all"), n.b.rank(x)
    if mode == "channel":
        axis = rank - 1 if n.text("data_format", "NCHW").endswith("C") else min(1, rank - 1)
        shape = [-1 if i == axis else 1 for i in range(rank)]
        return nn.prelu(b, x, b.op("reshape", alpha, newshape=shape))
    return nn.prelu(b, x, b.scalar(alpha) if mode == "all" else alpha)


def maxout(n: Node, x: Expr) -> Any:
    """The largest of each group of neighbouring channels."""
    b, axis, groups = n.b, n.axis(x, "axis", 1), n.int("groups")
    shape = list(b.static_shape(x))
    if groups < 1 or shape[axis] % groups:
        raise Malformed(f"its {shape[axis]} channels do not form groups of {groups}")
    parted = b.reshape_exactly(x, [*shape[:axis], shape[axis] // groups, groups, *shape[axis + 1 :]])
    return b.op("max", parted, axis=[axis + 1])


def softmax(n: Node, x: Expr) -> Any:
    return n.b.op("nn.softmax", x, axis=n.axis(x, "axis", -1)) if n.b.rank(x) else n.b.op("ones_like", x)


def log_softmax(n: Node, x: Expr) -> Any:
    return n.b.op("nn.log_softmax", x, axis=n.axis(x, "axis", -1)) if n.b.rank(x) else n.b.op("zeros_like", x)


def cross_entropy(n: Node, logits: Expr, label: Expr) -> Any:
    """The shares, and the loss of hard or soft labels."""
    b, axis = n.b, n.axis(logits, "axis", -1)
    shares, logs = b.op("nn.softmax", logits, axis=axis), b.op("nn.log_softmax", logits, axis=axis)
    if n.bool("soft_label", False):
        taken = b.op("sum", b.op("multiply", logs, label), axis=[axis], keepdims=True)
    else:
        index = label if b.rank(label) == b.rank(logits) else b.unsqueeze(label, [axis])
        taken = b.op("gather", logs, b.cast(index, "int64"), axis=axis)
    return [shares, b.op("negative", taken)]


def scale(n: Node, x: Expr, factor: Expr | None = None) -> Any:
    """`x * scale + bias`, or `(x + bias) * scale`."""
    b = n.b
    by = b.cast(b.scalar(factor), b.dtype(x)) if factor is not None else b.const(n.float("scale", 1.0), b.dtype(x))
    bias = n.float("bias", 0.0)
    shift = b.const(int(bias) if "int" in b.dtype(x) else bias, b.dtype(x))
    one = b.value(by)
    if one is not None and float(one) == 1:
        return b.op("add", x, shift) if bias else x
    if n.bool("bias_after_scale", True):
        scaled = b.op("multiply", x, by)
        return b.op("add", scaled, shift) if bias else scaled
    return b.op("multiply", b.op("add", x, shift) if bias else x, by)


def power(n: Node, x: Expr, factor: Expr | None = None) -> Any:
    b = n.b
    by = b.cast(b.scalar(factor), b.dtype(x)) if factor is not None else b.const(n.float("y", 1.0), b.dtype(x))
    known = b.value(by)
    return b.op("multiply", x, x) if known is not None and float(known) == 2 else b.op("power", x, by)


def clip(n: Node, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Any:
    b = n.b
    bounds = [v if v is None else b.cast(b.scalar(v), b.dtype(x)) for v in (low, high)]
    known = [b.value(v) if v is not None else None for v in bounds]
    if "float" in b.dtype(x) and known[0] is not None and known[1] is not None:
        return b.op("clip", x, a_min=float(known[0]), a_max=float(known[1]))
    clipped = x if bounds[0] is None else b.op("maximum", x, bounds[0])
    return clipped if bounds[1] is None else b.op("minimum", clipped, bounds[1])


def increment(n: Node, x: Expr) -> Any:
    b, step = n.b, n.float("value", 1.0)
    return b.op("add", x, b.const(int(step) if "int" in b.dtype(x) else step, b.dtype(x)))


def cast(n: Node, x: Expr) -> Any:
    b, dtype = n.b, n.dtype("dtype")
    if dtype == "bool" and b.dtype(x) != "bool":
        return b.op("not_equal", x, b.const(0, b.dtype(x)))
    return b.cast(x, dtype)


def dropout(n: Node, x: Expr, seed: Expr | None = None, p: Expr | None = None) -> Any:
    """A program that runs drops nothing. The older way of training makes the values smaller instead."""
    b = n.b
    if n.text("mode", "downgrade_in_infer") == "upscale_in_train":
        return [x]
    share = b.need(p, "the share of dropout") if p is not None else np.float32(n.float("p", 0.5))
    return [b.op("multiply", x, float(1 - share.reshape(-1)[0] if share.ndim else 1 - share))]


# ---- two operands


def joined(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Both operands with one element type: a real one comes before whole numbers, and a larger one before a smaller."""
    types = b.dtype(x), b.dtype(y)
    if types[0] == types[1]:
        return x, y
    reals = [t for t in types if "float" in t]
    wanted = reals[0] if len(reals) == 1 else str(np.promote_types(*types)) if len(reals) == 0 else max(reals, key=_bits)
    return b.cast(x, wanted), b.cast(y, wanted)


def _bits(dtype: str) -> int:
    return int(dtype.lstrip("bfloat"))


def aligned(n: Node, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Operands that broadcast. With an `axis`, the axes of the second begin at that axis of the first."""
    b, axis = n.b, n.int("axis", -1)
    x, y = joined(b, x, y)
    ranks = b.rank(x), b.rank(y)
    if axis == -1 or ranks[0] == ranks[1]:
        return x, y
    small = min(ranks)
    axis = axis % max(ranks)
    behind = max(ranks) - axis - small
    if behind < 0:
        shape = b.shape(y if ranks[1] == small else x)
        if any(d != 1 for d in shape[small + behind :]):
            raise Malformed(f"its axis is {axis}, and its operands have {ranks[0]} and {ranks[1]} axes")
        return x, y
    after = list(range(small, small + behind))
    return (x, b.unsqueeze(y, after)) if ranks[1] == small else (b.unsqueeze(x, after), y)


def _binary(op: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, y: Expr) -> Any:
        return n.b.op(op, *aligned(n, x, y))

    return convert


def divide(n: Node, x: Expr, y: Expr) -> Any:
    """Quotients of whole numbers are cut off."""
    return n.b.op("divide", *aligned(n, x, y))


def fmax(n: Node, x: Expr, y: Expr) -> Any:
    """The larger number; the other one where one is nan."""
    b = n.b
    x, y = aligned(n, x, y)
    if "float" not in b.dtype(x):
        return b.op("maximum", x, y)
    return b.op("where", b.op("isnan", x), y, b.op("where", b.op("isnan", y), x, b.op("maximum", x, y)))


def fmin(n: Node, x: Expr, y: Expr) -> Any:
    """The smaller number; the other one where one is nan."""
    b = n.b
    x, y = aligned(n, x, y)
    if "float" not in b.dtype(x):
        return b.op("minimum", x, y)
    return b.op("where", b.op("isnan", x), y, b.op("where", b.op("isnan", y), x, b.op("minimum", x, y)))


def atan2(n: Node, y: Expr, x: Expr) -> Any:
    return nn.angle(n.b, *joined(n.b, real(n.b, y), real(n.b, x)))


def heaviside(n: Node, x: Expr, y: Expr) -> Any:
    """0 below zero, 1 above, and the second operand at zero."""
    b = n.b
    x, y = aligned(n, x, y)
    zero = b.const(0, b.dtype(x))
    return b.op("where", b.op("equal", x, zero), y, b.cast(b.op("greater", x, zero), b.dtype(x)))


def _logical(op: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, y: Expr | None = None) -> Any:
        b = n.b
        operands = [v if b.dtype(v) == "bool" else b.op("not_equal", v, b.const(0, b.dtype(v))) for v in (x, y) if v is not None]
        return b.op(op, *operands)

    return convert


def equal_all(n: Node, x: Expr, y: Expr) -> Any:
    b = n.b
    if tuple(b.static_shape(x)) != tuple(b.static_shape(y)):
        return b.const(False, "bool")
    return b.op("all", b.op("equal", x, y), axis=list(range(b.rank(x)))) if b.rank(x) else b.op("equal", x, y)


def isclose(n: Node, x: Expr, y: Expr, rtol: Expr | None = None, atol: Expr | None = None) -> Any:
    """Whether elements differ by at most `atol + rtol * |y|`."""
    b = n.b
    bounds = []
    for operand, name, default in ((rtol, "rtol", 1e-5), (atol, "atol", 1e-8)):
        text = n.operation.attributes.get(name)
        value = b.need(operand, f"its {name}") if operand is not None else None
        number = value.reshape(-1)[0] if value is not None and value.size else _number(text, default)
        bounds.append(b.const(float(number), b.dtype(x)))
    apart = b.op("abs", b.op("subtract", x, y))
    fits = b.op("less_equal", apart, b.op("add", bounds[1], b.op("multiply", bounds[0], b.op("abs", y))))
    fits = b.op("logical_or", fits, b.op("equal", x, y))
    if n.bool("equal_nan", False):
        fits = b.op("logical_or", fits, b.op("logical_and", b.op("isnan", x), b.op("isnan", y)))
    return fits


def _number(text: Any, default: float) -> float:
    try:
        return float(text) if text is not None else default
    except (TypeError, ValueError):
        raise Malformed(f"its tolerance is {str(text)[:40]!r}") from None


def allclose(n: Node, x: Expr, y: Expr, rtol: Expr | None = None, atol: Expr | None = None) -> Any:
    close = isclose(n, x, y, rtol, atol)
    return n.b.op("all", close, axis=list(range(n.b.rank(close))))


def lerp(n: Node, x: Expr, y: Expr, weight: Expr) -> Any:
    b = n.b
    return b.op("add", x, b.op("multiply", weight, b.op("subtract", y, x)))


def where(n: Node, condition: Expr, x: Expr, y: Expr) -> Any:
    return n.b.op("where", condition, *joined(n.b, x, y))


def swiglu(n: Node, x: Expr, y: Expr | None = None) -> Any:
    b = n.b
    if y is None:
        x, y = b.fields(b.op("split", x, indices_or_sections=2, axis=-1))
    return b.op("multiply", nn.swish(b, x), y)


def label_smooth(n: Node, x: Expr, prior: Expr | None = None) -> Any:
    """Labels with a share of the prior, which is the same for all classes where there is none."""
    b, share = n.b, n.float("epsilon", 0.0)
    kept = b.op("multiply", x, 1.0 - share)
    if prior is not None:
        return b.op("add", kept, b.op("multiply", prior, share))
    return b.op("add", kept, share / max(b.extent(x, b.rank(x) - 1), 1))


def add_n(n: Node, xs: Tensors) -> Any:
    """The sum of a list."""
    first, *others = n.list(xs)
    for other in others:
        first = n.b.op("add", first, other)
    return first


_UNARY = "acos acosh asin asinh atan atanh cos cosh erf exp isfinite isinf isnan log log10 log2 rsqrt sigmoid sin sinh sqrt tan tanh"
_SAME = ("assign", "share_data", "memcpy", "memcpy_d2h", "memcpy_h2d", "npu_identity", "shadow_feed", "depend", "copy_to", "print")
_BINARY = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "elementwise_pow": "power",
    "remainder": "floor_mod",
    "floor_divide": "floor_divide",
    "equal": "equal",
    "not_equal": "not_equal",
    "less_than": "less",
    "less_equal": "less_equal",
    "greater_than": "greater",
    "greater_equal": "greater_equal",
}
_BITS = {"bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor"}


def _bitwise(op: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, y: Expr) -> Any:
        return n.b.op(op.replace("bitwise", "logical") if n.b.dtype(x) == "bool" else op, x, y)

    return convert


def bitwise_not(n: Node, x: Expr) -> Any:
    return n.b.op("logical_not" if n.b.dtype(x) == "bool" else "bitwise_not", x)


RULES = (
    *[Rule(name, _unary(name)) for name in _UNARY.split()],
    *[Rule(name, same) for name in _SAME],
    *[Rule(name, _binary(op)) for name, op in _BINARY.items()],
    *[Rule(name, _bitwise(op)) for name, op in _BITS.items()],
    *[Rule(name, _logical(name)) for name in ("logical_and", "logical_or", "logical_xor", "logical_not")],
    *[Rule(name, _unary(name, reals=False)) for name in ("abs", "ceil", "floor", "sign")],
    Rule("relu", _unary("nn.relu", reals=False)),
    Rule("add_n", add_n),
    Rule("allclose", allclose),
    Rule("assign_out_", lambda n, x, output: n.b.cast(x, n.b.dtype(output))),
    Rule("atan2", atan2),
    Rule("bitwise_not", bitwise_not),
    Rule("cast", cast),
    Rule("celu", celu),
    Rule("clip", clip),
    Rule("cross_entropy_with_softmax", cross_entropy),
    Rule("digamma", _composed(special.digamma)),
    Rule("divide", divide),
    Rule("dropout", dropout),
    Rule("elu", elu),
    Rule("equal_all", equal_all),
    Rule("erfinv", _composed(special.erf_inv)),
    Rule("expm1", _composed(nn.expm1)),
    Rule("fmax", fmax),
    Rule("fmin", fmin),
    Rule("gelu", gelu),
    Rule(
        "hardshrink",
        lambda n, x: n.b.op("where", n.b.op("greater", n.b.op("abs", x), n.float("threshold", 0.5)), x, n.b.const(0.0, n.b.dtype(x))),
    ),
    Rule("hardsigmoid", lambda n, x: nn.hard_sigmoid(n.b, x, n.float("slope", 0.2), n.float("offset", 0.5))),
    Rule("hardswish", hardswish),
    Rule("hardtanh", hardtanh),
    Rule("heaviside", heaviside),
    Rule("increment_", increment),
    Rule("is_empty", lambda n, x: n.b.const(0 in n.b.static_shape(x), "bool")),
    Rule("isclose", isclose),
    Rule("label_smooth", label_smooth),
    Rule("leaky_relu", leaky_relu),
    Rule("lerp", lerp),
    Rule("lgamma", _composed(special.lgamma)),
    Rule("log1p", _composed(nn.log1p)),
    Rule("log_softmax", log_softmax),
    Rule("logit", logit),
    Rule("logsigmoid", lambda n, x: n.b.op("negative", nn.softplus(n.b, n.b.op("negative", x)))),
    Rule("maxout", maxout),
    Rule("mish", _composed(nn.mish)),
    Rule("pow", power),
    Rule("prelu", prelu),
    Rule("reciprocal", reciprocal),
    Rule("relu6", lambda n, x: n.b.op("clip", x, a_min=0.0, a_max=n.float("threshold", 6.0))),
    Rule("round", round_),
    Rule("scale", scale),
    Rule("selu", selu),
    Rule("silu", silu),
    Rule("softmax", softmax),
    Rule("softplus", softplus),
    Rule("softshrink", softshrink),
    Rule("softsign", _composed(nn.softsign)),
    Rule("square", square),
    Rule(
        "stanh",
        lambda n, x: n.b.op("multiply", n.b.op("tanh", n.b.op("multiply", x, n.float("scale_a", 0.67))), n.float("scale_b", 1.7159)),
    ),
    Rule("swiglu", swiglu),
    Rule("swish", swish),
    Rule("tanh_shrink", lambda n, x: n.b.op("subtract", x, n.b.op("tanh", x))),
    Rule("thresholded_relu", thresholded_relu),
    Rule("trunc", trunc),
    Rule("where", where),
)
