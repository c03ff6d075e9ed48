"""Element-wise operators: arithmetic with PyTorch's promotion, comparison, logic, activations, element types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.torch.families.indexing import nonzero_columns
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr

_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
_CATEGORY = {"bool": 0, "float16": 2, "bfloat16": 2, "float32": 2, "float64": 2}


def promoted(b: Builder, *values: Any) -> list[Expr]:
    """Operands of one element type. A number, or a tensor without axes, counts by its kind only, as in PyTorch."""
    tensors = [v for v in values if isinstance(v, Expr)]
    ranked = [b.dtype(t) for t in tensors if b.rank(t)] or [b.dtype(t) for t in tensors]
    dtype = max(ranked, key=_ORDER.index, default="float32")
    if {"float16", "bfloat16"} <= set(ranked):
        dtype = "float32"
    for v in values:
        kind = b.dtype(v) if isinstance(v, Expr) else type(v).__name__
        category = {"bool": 0, "int": 1, "float": 2}.get(kind, _CATEGORY.get(kind, 1))
        if category > _CATEGORY.get(dtype, 1):
            dtype = kind if isinstance(v, Expr) else {1: "int64", 2: "float32"}[category]
    return [b.cast(v, dtype) for v in values]


def _float(n: Node, x: Expr) -> Expr:
    """Whole numbers as real ones of the result's element type."""
    return x if "float" in n.b.dtype(x) else n.b.cast(x, n.result_dtype())


def unary(op: str) -> Callable[[Node], Any]:
    """An operator of one operand that keeps the element type."""
    return lambda n: n.b.op(op, n.x())


def real(op: str) -> Callable[[Node], Any]:
    """An operator of one operand on real numbers."""
    return lambda n: n.b.op(op, _float(n, n.x()))


def binary(op: str) -> Callable[[Node], Any]:
    """An operator of two operands."""
    return lambda n: n.b.op(op, *promoted(n.b, n.get("self"), n.get("other")))


def scaled(op: str) -> Callable[[Node], Any]:
    """`self + alpha * other`, and the difference."""

    def convert(n: Node) -> Any:
        x, y = promoted(n.b, n.get("self"), n.get("other"))
        alpha = n.get("alpha", 1)
        if n.b.dtype(x) == "bool":
            return n.b.op("logical_or", x, y) if alpha else x
        return n.b.op(op, x, y if alpha == 1 else n.b.op("multiply", y, n.b.const(alpha, n.b.dtype(y))))

    return convert


def divide(n: Node) -> Any:
    """True division, or one that is rounded down or towards zero."""
    b, mode = n.b, n.get("rounding_mode")
    x, y = promoted(b, n.get("self"), n.get("other"))
    if mode is None:
        return b.op("divide", _float(n, x), _float(n, y))
    if mode == "floor":
        return b.op("floor_divide", x, y)
    return b.op("trunc_divide", x, y) if "int" in b.dtype(x) else b.op("trunc", b.op("divide", x, y))


def power(n: Node) -> Any:
    """Small whole exponents are products."""
    b, exponent = n.b, n.get("exponent")
    if not isinstance(exponent, Expr) and not isinstance(n.get("self"), Expr):
        return n.b.const(n.get("self") ** exponent)
    if not isinstance(exponent, Expr) and exponent in (2, 3):
        x = promoted(b, n.get("self"), exponent)[0]
        square = b.op("multiply", x, x)
        return square if exponent == 2 else b.op("multiply", square, x)
    if exponent == 0.5:
        return b.op("sqrt", _float(n, n.x()))
    x, y = promoted(b, n.get("self"), exponent)
    if isinstance(exponent, Expr) and "int" in b.dtype(x):  # a negative power of 0 is 0, as that of any whole number beyond 1
        zero = b.op("logical_and", b.op("equal", x, b.const(0, b.dtype(x))), b.op("less", y, b.const(0, b.dtype(y))))
        x = b.op("where", zero, b.const(2, b.dtype(x)), x)
    return b.op("power", x, y)


def clamp(n: Node) -> Any:
    b, x = n.b, n.x()
    for name, op in (("min", "maximum"), ("max", "minimum")):
        bound = n.get(name)
        if bound is not None:
            x = b.op(op, *promoted(b, x, bound))
    return x


def where(n: Node) -> Any:
    """One of two tensors by a condition; of the condition alone, the positions of its true elements."""
    if "other" not in n.call.args:
        return nonzero_columns(n.replaced({"self": n.x("condition")}))
    x, y = promoted(n.b, n.get("self"), n.get("other"))
    return n.b.op("where", n.x("condition"), x, y)


def to(n: Node) -> Any:
    dtype = n.dtype() or n.result_dtype()
    return n.b.cast(n.x("x") if "x" in n.call.args else n.x(), dtype)


def identity(n: Node) -> Any:
    return n.x(next(iter(n.call.args), "self"))


def gelu(n: Node) -> Any:
    return nn.gelu(n.b, n.x(), n.get("approximate", "none") == "tanh")


def elu(n: Node) -> Any:
    return nn.elu(n.b, n.x(), float(n.get("alpha", 1.0)), float(n.get("scale", 1.0)), float(n.get("input_scale", 1.0)))


def celu(n: Node) -> Any:
    alpha = float(n.get("alpha", 1.0))
    return nn.elu(n.b, n.x(), alpha, 1.0, 1.0 / alpha)


def hardtanh(n: Node) -> Any:
    return nn.clip(n.b, n.x(), n.get("min_val", -1.0), n.get("max_val", 1.0))


def hardswish(n: Node) -> Any:
    return nn.hard_swish(n.b, n.x())


def softplus(n: Node) -> Any:
    """Above the threshold it is the line. From 20 on, a float32 does not tell them apart."""
    b, x, beta, threshold = n.b, n.x(), float(n.get("beta", 1.0)), float(n.get("threshold", 20.0))
    steep = x if beta == 1.0 else b.op("multiply", x, beta)
    curve = nn.softplus(b, steep)
    curve = curve if beta == 1.0 else b.op("divide", curve, beta)
    if threshold >= 20.0 and b.dtype(x) != "float64":
        return curve
    return b.op("where", b.op("greater", steep, threshold), x, curve)


def prelu(n: Node) -> Any:
    b, x, slope = n.b, n.x(), n.x("weight")
    shape = [1] * b.rank(x)
    if b.shape(slope) != (1,) and b.rank(x) > 1:
        shape[1] = -1
    return nn.prelu(b, x, b.reshape(slope, shape))


def sign_of(n: Node) -> Any:
    return n.b.op("sign", n.x())


def remainder(n: Node) -> Any:
    x, y = promoted(n.b, n.get("self"), n.get("other"))
    return n.b.op("floor_mod", x, y)


def log1p(n: Node) -> Any:
    return nn.log1p(n.b, _float(n, n.x()))


def expm1(n: Node) -> Any:
    return nn.expm1(n.b, _float(n, n.x()))


def reciprocal(n: Node) -> Any:
    x = _float(n, n.x())
    return n.b.op("divide", n.b.op("ones_like", x), x)


def bits(op: str) -> Callable[[Node], Any]:
    """Bits of whole numbers; logic of truth values."""

    def convert(n: Node) -> Any:
        x, y = promoted(n.b, n.get("self"), n.get("other"))
        return n.b.op(f"logical_{op}" if n.b.dtype(x) == "bool" else f"bitwise_{op}", x, y)

    return convert


def logic(op: str) -> Callable[[Node], Any]:
    return lambda n: n.b.op(f"logical_{op}", *[n.b.cast(n.x(a), "bool") for a in ("self", "other")])


def bitwise_not(n: Node) -> Any:
    x = n.x()
    return n.b.op("logical_not" if n.b.dtype(x) == "bool" else "bitwise_not", x)


def addcmul(n: Node) -> Any:
    b = n.b
    product = b.op("multiply", n.x("tensor1"), n.x("tensor2"))
    value = n.get("value", 1)
    return b.op("add", n.x(), product if value == 1 else b.op("multiply", product, b.const(value, b.dtype(product))))


def lerp(n: Node) -> Any:
    b, x, weight = n.b, n.x(), n.get("weight")
    change = b.op("subtract", n.x("end"), x)
    return b.op("add", x, b.op("multiply", change, weight if isinstance(weight, Expr) else b.const(weight, b.dtype(x))))


def atan2(n: Node) -> Any:
    b = n.b
    y, x = (_float(n, v) for v in promoted(b, n.get("self"), n.get("other")))
    zero = b.op("equal", x, 0.0)
    base = b.op("atan", b.op("divide", y, b.op("where", zero, b.op("ones_like", x), x)))
    half = b.op("multiply", b.op("sign", y), math.pi / 2)
    around = b.op("where", b.op("less", y, 0.0), b.op("subtract", base, math.pi), b.op("add", base, math.pi))
    return b.op("where", zero, half, b.op("where", b.op("less", x, 0.0), around, base))


def dropout(n: Node) -> Any:
    if n.get("train") is True:
        raise Unsupported("dropout in training gives random numbers")
    return n.x("input" if "input" in n.call.args else "self")


def full_like(n: Node) -> Any:
    b, x = n.b, n.x()
    dtype = n.dtype() or n.result_dtype()
    value = {"aten.zeros_like": 0, "aten.ones_like": 1}.get(n.call.target.rsplit(".", 1)[0], n.get("fill_value", 0))
    return b.op("full_like", b.cast(x, dtype), b.const(value, dtype))


_UNARY = "abs ceil floor trunc"
_REAL = "acos acosh asin asinh atan atanh cos cosh erf exp log log2 log10 rsqrt sigmoid sin sinh sqrt tan tanh"
_BINARY = {
    "mul": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "fmod": "trunc_mod",
    "floor_divide": "floor_divide",
}
RULES = (
    *(Rule(f"aten.{name}", unary(name)) for name in _UNARY.split()),
    *(Rule(f"aten.{name}", real(name)) for name in _REAL.split()),
    *(Rule(f"aten.{name}", binary(op)) for name, op in _BINARY.items()),
    *(Rule(f"aten.__{op}__", bits(op)) for op in ("and", "or", "xor")),
    Rule("aten._to_copy", to),
    Rule("aten.add", scaled("add")),
    Rule("aten.addcmul", addcmul),
    Rule("aten.alias", identity),
    Rule("aten.atan2", atan2),
    Rule("aten.bitwise_and", bits("and")),
    Rule("aten.bitwise_not", bitwise_not),
    Rule("aten.bitwise_or", bits("or")),
    Rule("aten.bitwise_xor", bits("xor")),
    Rule("aten.celu", celu),
    Rule("aten.clamp", clamp),
    Rule("aten.clamp_max", clamp),
    Rule("aten.clamp_min", clamp),
    Rule("aten.clone", identity),
    Rule("aten.contiguous", identity),
    Rule("aten.detach", identity),
    Rule("aten.detach_", identity),
    Rule("aten.div", divide),
    Rule("aten.dropout", dropout),
    Rule("aten.elu", elu),
    Rule("aten.expm1", expm1),
    Rule("aten.feature_dropout", dropout),
    Rule("aten.full_like", full_like),
    Rule("aten.gelu", gelu),
    Rule("aten.hardsigmoid", lambda n: nn.hard_sigmoid(n.b, n.x())),
    Rule("aten.hardswish", hardswish),
    Rule("aten.hardswish_", hardswish),
    Rule("aten.hardtanh", hardtanh),
    Rule("aten.hardtanh_", hardtanh),
    Rule("aten.isfinite", unary("isfinite")),
    Rule("aten.isinf", unary("isinf")),
    Rule("aten.isnan", unary("isnan")),
    Rule("aten.leaky_relu", lambda n: n.b.op("nn.leaky_relu", n.x(), alpha=float(n.get("negative_slope", 0.01)))),
    Rule("aten.lerp", lerp),
    Rule("aten.lift_fresh_copy", identity),
    Rule("aten.log1p", log1p),
    Rule("aten.logical_and", logic("and")),
    Rule("aten.logical_not", lambda n: n.b.op("logical_not", n.b.cast(n.x(), "bool"))),
    Rule("aten.logical_or", logic("or")),
    Rule("aten.logical_xor", logic("xor")),
    Rule("aten.mish", lambda n: nn.mish(n.b, n.x())),
    Rule("aten.native_dropout", lambda n: [dropout(n), n.b.cast(n.b.op("ones_like", dropout(n)), "bool")]),
    Rule("aten.neg", unary("negative")),
    Rule("aten.ones_like", full_like),
    Rule("aten.pow", power),
    Rule("aten.prelu", prelu),
    Rule("aten.reciprocal", reciprocal),
    Rule("aten.relu", unary("nn.relu")),
    Rule("aten.relu6", lambda n: nn.clip(n.b, n.x(), 0.0, 6.0)),
    Rule("aten.relu_", unary("nn.relu")),
    Rule("aten.remainder", remainder),
    Rule("aten.rsub", lambda n: scaled("subtract")(n.replaced({"self": n.get("other"), "other": n.get("self")}))),
    Rule("aten.selu", lambda n: nn.selu(n.b, n.x())),
    Rule("aten.sgn", sign_of),
    Rule("aten.sign", sign_of),
    Rule("aten.silu", lambda n: nn.swish(n.b, n.x())),
    Rule("aten.silu_", lambda n: nn.swish(n.b, n.x())),
    Rule("aten.softplus", softplus),
    Rule("aten.square", lambda n: power(n.replaced({"exponent": 2}))),
    Rule("aten.sub", scaled("subtract")),
    Rule("aten.to", to),
    Rule("aten.type_as", lambda n: n.b.cast(n.x(), n.b.dtype(n.x("other")))),
    Rule("aten.where", where),
    Rule("aten.zeros_like", full_like),
)
