"""Keras 3's operations in functional models: element by element, reductions, products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.keras.families.core import unit
from relaylang.frontends.keras.node import Node, axes_of
from relaylang.ir import Expr

_RANKS = (
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "bfloat16",
    "float16",
    "float32",
    "float64",
)


def _is_real(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def common_dtype(b: Builder, operands: Sequence[Any], real: bool = False) -> str:
    """The element type of a result by Keras's rules of promotion: numbers take part by their kind alone."""
    dtypes = [b.dtype(x) for x in operands if isinstance(x, Expr)]
    numbers = {type(x) for x in operands if not isinstance(x, Expr)}
    floats = [d for d in dtypes if _is_real(d)]
    if floats:
        narrow = set(floats) == {"float16", "bfloat16"}
        return "float32" if narrow else max(floats, key=_RANKS.index)
    if real or float in numbers:
        return "float32"
    widest = max(dtypes, key=_RANKS.index, default="int32")
    signed, unsigned = ([int(d.removeprefix(kind)) for d in dtypes if d.startswith(kind)] for kind in ("int", "uint"))
    if signed and unsigned:
        widest = f"int{min(max(*signed, 2 * max(unsigned)), 64)}"
    if widest == "bool" and int in numbers:
        return "int32"
    return widest


def operand(b: Builder, x: Any, dtype: str) -> Expr:
    """A tensor or a number in an element type."""
    if isinstance(x, Expr):
        return b.cast(x, dtype)
    if isinstance(x, (bool, int, float)) or (isinstance(x, list) and all(isinstance(v, (bool, int, float)) for v in x)):
        return b.const(x, dtype)
    raise Malformed(f"an operand is {repr(x)[:40]}, which is no tensor and no number")


def binary(operator: str, real: bool = False) -> Callable[[Node, Any, Any], Any]:
    """An operator on two operands of one element type."""

    def convert(n: Node, x1: Any, x2: Any) -> Any:
        b = n.b
        dtype = common_dtype(b, [x1, x2], real)
        name = {"add": "logical_or", "multiply": "logical_and"}.get(operator, operator) if dtype == "bool" else operator
        return b.op(name, operand(b, x1, dtype), operand(b, x2, dtype))

    return convert


def logical(operator: str) -> Callable[[Node, Any, Any], Any]:
    return lambda n, x1, x2: n.b.op(operator, truth(n.b, x1), truth(n.b, x2))


def truth(b: Builder, x: Any) -> Expr:
    return b.cast(x, "bool") if isinstance(x, Expr) else b.const(bool(x), "bool")


def bits(operator: str) -> Callable[[Node, Any, Any], Any]:
    def convert(n: Node, x: Any, y: Any) -> Any:
        dtype = common_dtype(n.b, [x, y])
        return n.b.op(operator, operand(n.b, x, dtype), operand(n.b, y, dtype))

    return convert


def floats(b: Builder, x: Any) -> Expr:
    """A tensor of real numbers."""
    return operand(b, x, common_dtype(b, [x], real=True))


def unary(operator: str, real: bool = True) -> Callable[[Node, Any], Any]:
    return lambda n, x: n.b.op(operator, floats(n.b, x) if real else operand(n.b, x, common_dtype(n.b, [x])))


def composed(made: Callable[[Builder, Expr], Any]) -> Callable[[Node, Any], Any]:
    return lambda n, x: made(n.b, floats(n.b, x))


def axes_in(n: Node, x: Expr, key: str = "axis") -> list[int]:
    """The axes of a reduction; all of them for None."""
    if n.value(key, None) is None:
        return list(range(n.b.rank(x)))
    return n.axes(key, n.b.rank(x))


def reduction(operator: str, real: bool = False) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, initial: Any = None) -> Any:
        b = n.b
        x = floats(b, x) if real else x
        if operator in ("sum", "prod") and b.dtype(x) in ("bool", "int8", "int16", "uint8", "uint16"):
            x = b.cast(x, "int32")
        if operator in ("any", "all"):
            x = b.cast(x, "bool")
        if initial is not None or n.value("initial", None) is not None:
            raise Unsupported("it has an initial value")
        axes = axes_in(n, x)
        if not axes:
            return x
        reduced = b.op(operator, x, axis=axes, keepdims=n.bool("keepdims", False))
        return (
            b.cast(reduced, n.config["dtype"]) if isinstance(n.config.get("dtype"), str) and operator in ("sum", "prod") else reduced
        )

    return convert


def variance(n: Node, x: Expr) -> Any:
    return _moments(n, x)[1]


def _moments(n: Node, x: Expr, key: str = "axis") -> list[Expr]:
    b = n.b
    x = floats(b, x)
    axes = axes_in(n, x, key)
    mean = b.op("mean", x, axis=axes, keepdims=True)
    apart = b.op("subtract", x, mean)
    spread = b.op("mean", b.op("multiply", apart, apart), axis=axes, keepdims=True)
    return [mean, spread] if n.bool("keepdims", False) else [b.squeeze(mean, axes), b.squeeze(spread, axes)]


def log_sum(n: Node, x: Expr) -> Any:
    return nn.log_sum_exp(n.b, floats(n.b, x), axes_in(n, x), n.bool("keepdims", False))


def arg(operator: str) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        b = n.b
        if n.value("axis", None) is None:
            if n.bool("keepdims", False):
                raise Unsupported("it keeps the axes of all elements")
            return b.op(operator, b.reshape(x, [-1]), axis=[0])
        return b.op(operator, x, axis=n.axes("axis", b.rank(x)), keepdims=n.bool("keepdims", False))

    return convert


def clip(n: Node, x: Expr) -> Any:
    low, high = n.value("x_min"), n.value("x_max")
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (low, high)):
        raise Unsupported("its bounds are tensors")
    return nn.clip(n.b, operand(n.b, x, common_dtype(n.b, [x, low, high])), low, high)


def where(n: Node, condition: Expr, x1: Any = None, x2: Any = None) -> Any:
    b = n.b
    if x1 is None or x2 is None:
        raise Unsupported("it lists the places of true elements")
    dtype = common_dtype(b, [x1, x2])
    return b.op("where", truth(b, condition), operand(b, x1, dtype), operand(b, x2, dtype))


def product(n: Node, x1: Any, x2: Any) -> Any:
    dtype = common_dtype(n.b, [x1, x2])
    return nn.matmul(n.b, operand(n.b, x1, dtype), operand(n.b, x2, dtype))


def dot(n: Node, x1: Any, x2: Any) -> Any:
    """numpy's `dot`: a product of each matrix with each other one."""
    b = n.b
    dtype = common_dtype(b, [x1, x2])
    x, y = operand(b, x1, dtype), operand(b, x2, dtype)
    if not b.rank(x) or not b.rank(y):
        return b.op("multiply", x, y)
    if b.rank(y) <= 2:
        return nn.matmul(b, x, y)
    left, right = "abcdefg"[: b.rank(x) - 1], "mnopqrs"[: b.rank(y) - 2]
    return einsum(b, f"{left}z,{right}zy->{left}{right}y", [x, y])


def tensordot(n: Node, x1: Any, x2: Any) -> Any:
    b = n.b
    dtype = common_dtype(b, [x1, x2])
    x, y = operand(b, x1, dtype), operand(b, x2, dtype)
    axes = n.value("axes", 2)
    if isinstance(axes, int):
        if not 0 <= axes <= min(b.rank(x), b.rank(y)):
            raise Malformed(f"it sums {axes} axes")
        pairs = [list(range(b.rank(x) - axes, b.rank(x))), list(range(axes))]
    else:
        rows = [[a] if isinstance(a, int) else a for a in axes] if isinstance(axes, list) else []
        numbers = all(isinstance(r, list) and all(type(a) is int for a in r) for r in rows)
        if len(rows) != 2 or not numbers or len(rows[0]) != len(rows[1]):
            raise Malformed(f"its axes are {repr(axes)[:40]}")
        pairs = [axes_of(rows[0], b.rank(x), "axes"), axes_of(rows[1], b.rank(y), "axes")]
    left = [chr(ord("a") + i) for i in range(b.rank(x))]
    right = [chr(ord("n") + i) for i in range(b.rank(y))]
    for i, j in zip(*pairs):
        right[j] = left[i]
    result = [c for c in left if c not in right] + [c for c in right if c not in left]
    return einsum(b, f"{''.join(left)},{''.join(right)}->{''.join(result)}", [x, y])


def einstein(n: Node, *operands: Any) -> Any:
    equation = n.value("subscripts")
    if not isinstance(equation, str):
        raise Malformed("its subscripts are no text")
    dtype = common_dtype(n.b, operands)
    return einsum(n.b, equation, [operand(n.b, x, dtype) for x in operands])


def outer(n: Node, x1: Any, x2: Any) -> Any:
    dtype = common_dtype(n.b, [x1, x2])
    x, y = (n.b.reshape(operand(n.b, v, dtype), [-1]) for v in (x1, x2))
    return n.b.op("multiply", n.b.unsqueeze(x, [1]), n.b.unsqueeze(y, [0]))


def cast(n: Node, x: Expr) -> Any:
    dtype = n.value("dtype", None)
    if isinstance(dtype, dict):
        dtype = dtype.get("config", {}).get("name") if isinstance(dtype.get("config"), dict) else None
    if dtype not in _RANKS:
        raise Unsupported(f"its element type is {repr(dtype)[:40]}")
    return n.b.cast(x, dtype)


def normalize(n: Node, x: Expr) -> Any:
    if n.int("order", 2) != 2:
        raise Unsupported(f"its order is {n.int('order')}")
    epsilon = n.float("epsilon", 1e-7) if n.value("epsilon", None) is not None else 1e-7
    return unit(n, floats(n.b, x), n.axes("axis", n.b.rank(x), -1), epsilon)


def one_hot(n: Node, x: Expr) -> Any:
    b = n.b
    dtype = n.value("dtype", None)
    dtype = dtype if dtype in _RANKS else "float32"
    on, off = b.const(1, dtype), b.const(0, dtype)
    rank = b.rank(x) + 1
    axis = n.int("axis", -1)
    if not -rank <= axis < rank:
        raise Malformed(f"its axis is {axis}")
    return b.op(
        "one_hot",
        b.cast(x, "int32"),
        on,
        off,
        depth=n.int("num_classes", least=1),
        axis=axis % rank if axis != -1 else -1,
        dtype=dtype,
    )


def power(n: Node, x1: Any, x2: Any) -> Any:
    b = n.b
    if x2 == 2 and isinstance(x2, (int, float)) and isinstance(x1, Expr):
        return b.op("multiply", x1, x1)
    return binary("power")(n, x1, x2)


def square(n: Node, x: Expr) -> Any:
    x = operand(n.b, x, "int32" if n.b.dtype(x) == "bool" else n.b.dtype(x))
    return n.b.op("multiply", x, x)


def rounded(n: Node, x: Expr) -> Any:
    places = n.int("decimals", 0)
    if not places:
        return n.b.op("round", x)
    if abs(places) > 30:
        raise Malformed(f"it rounds to {places} places")
    factor = 10.0**places
    return n.b.op("divide", n.b.op("round", n.b.op("multiply", floats(n.b, x), factor)), factor)


def cumulated(operator: str) -> Callable[[Node, Expr], Any]:
    def convert(n: Node, x: Expr) -> Any:
        if n.value("axis", None) is None:
            x, axis = n.b.reshape(x, [-1]), 0
        else:
            axis = n.axis("axis", n.b.rank(x))
        return n.b.op(operator, x, axis=axis)

    return convert


def batch_norm(n: Node, x: Expr, mean: Expr, variance: Expr, offset: Any = None, scale: Any = None) -> Any:
    b = n.b
    axis = n.axis("axis", b.rank(x))
    shape = [-1 if i == axis else 1 for i in range(b.rank(x))]
    factor = b.op("rsqrt", b.op("add", variance, n.float("epsilon", 1e-3)))
    factor = factor if scale is None else b.op("multiply", factor, scale)
    scaled = b.op("multiply", b.op("subtract", x, b.reshape(mean, shape)), b.reshape(factor, shape))
    return scaled if offset is None else b.op("add", scaled, b.reshape(offset, shape))


def _logaddexp(n: Node, x1: Any, x2: Any) -> Any:
    b = n.b
    dtype = common_dtype(b, [x1, x2], real=True)
    x, y = operand(b, x1, dtype), operand(b, x2, dtype)
    return b.op("add", b.op("maximum", x, y), nn.log1p_exp(b, b.op("subtract", x, y)))


def _remainder(n: Node, x1: Any, x2: Any) -> Any:
    return binary("floor_mod")(n, x1, x2)


def same(n: Node, x: Expr) -> Any:
    return x


_BINARY = {
    "Add": "add",
    "Subtract": "subtract",
    "Multiply": "multiply",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Fmax": "maximum",
    "Fmin": "minimum",
    "FloorDivide": "floor_divide",
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
}
_UNARY = {
    "Absolute": "abs",
    "Abs": "abs",
    "Ceil": "ceil",
    "Floor": "floor",
    "Negative": "negative",
    "Sign": "sign",
    "Trunc": "trunc",
}
_REAL = {
    "Arccos": "acos",
    "Arccosh": "acosh",
    "Arcsin": "asin",
    "Arcsinh": "asinh",
    "Arctan": "atan",
    "Arctanh": "atanh",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Log": "log",
    "Log10": "log10",
    "Log2": "log2",
    "Rsqrt": "rsqrt",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
    "Isfinite": "isfinite",
    "Isinf": "isinf",
    "Isnan": "isnan",
}
_REDUCED = {"Sum": "sum", "Prod": "prod", "Max": "max", "Min": "min", "Amax": "max", "Amin": "min", "Any": "any", "All": "all"}

RULES = tuple(
    Rule(rule.name, rule.convert, domain="ops")
    for rule in (
        *(Rule(name, binary(op)) for name, op in _BINARY.items()),
        *(Rule(name, unary(op, real=name in ("Ceil",))) for name, op in _UNARY.items()),
        *(Rule(name, unary(op)) for name, op in _REAL.items()),
        *(Rule(name, reduction(op)) for name, op in _REDUCED.items()),
        Rule("Arctan2", lambda n, x1, x2: binary("atan2", real=True)(n, x1, x2)),
        Rule("Argmax", arg("argmax")),
        Rule("Argmin", arg("argmin")),
        Rule("BatchNorm", batch_norm),
        Rule("BitwiseAnd", bits("bitwise_and")),
        Rule("BitwiseOr", bits("bitwise_or")),
        Rule("BitwiseXor", bits("bitwise_xor")),
        Rule("Cast", cast),
        Rule("Cbrt", composed(lambda b, x: b.op("multiply", b.op("sign", x), b.op("power", b.op("abs", x), 1 / 3)))),
        Rule("Clip", clip),
        Rule("Copy", same),
        Rule("Cumprod", cumulated("cumprod")),
        Rule("Cumsum", cumulated("cumsum")),
        Rule("Divide", binary("divide", real=True)),
        Rule("Dot", dot),
        Rule("Einsum", einstein),
        Rule("Exp2", composed(lambda b, x: b.op("exp", b.op("multiply", x, math.log(2.0))))),
        Rule("Expm1", composed(nn.expm1)),
        Rule("Log1p", composed(nn.log1p)),
        Rule("Logaddexp", _logaddexp),
        Rule("LogicalAnd", logical("logical_and")),
        Rule("LogicalNot", lambda n, x: n.b.op("logical_not", truth(n.b, x))),
        Rule("LogicalOr", logical("logical_or")),
        Rule("LogicalXor", logical("logical_xor")),
        Rule("Logsumexp", log_sum),
        Rule("Matmul", product),
        Rule("Mean", reduction("mean", real=True)),
        Rule("Mod", _remainder),
        Rule("Moments", lambda n, x: _moments(n, x, "axes")),
        Rule("Normalize", normalize),
        Rule("OneHot", one_hot),
        Rule("Outer", outer),
        Rule("Power", power),
        Rule("Reciprocal", composed(lambda b, x: b.op("divide", b.const(1.0, b.dtype(x)), x))),
        Rule("Round", rounded),
        Rule("Square", square),
        Rule("Std", lambda n, x: n.b.op("sqrt", variance(n, x))),
        Rule("StopGradient", lambda n, variable: variable),
        Rule("Tensordot", tensordot),
        Rule("TrueDivide", binary("divide", real=True)),
        Rule("Var", variance),
        Rule("Where", where),
    )
)
